//! The tip of every node of the network, and the faults in force: a table that an observer keeps and requests read.

use super::recent_events::RecentEvents;
use crate::{
    actors::{Event, NodeId, SimTime},
    api::view::View,
    ledger::Link,
    protocol::{BlockId, Height},
    sim::{DownCause, NetworkEvent, Observer, Plan, Tips},
};
use imbl::OrdMap;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The number of retained blocks that nodes have reverted.
const LEFT: usize = 2_000;

/// The table. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct LabBoard(Arc<BoardContent>);

struct BoardContent {
    seed: Option<u64>,
    /// The stage that hosts the actors, by its name on the command line.
    stage: Option<&'static str>,
    /// By node, the username of its delegate.
    delegates: Vec<Option<String>>,
    state: Mutex<BoardState>,
}

/// The part of the board that the run's events change. It follows a run that goes back to a snapshot.
#[derive(Clone)]
pub struct BoardState {
    /// The block each node stands on, and whether the node is live.
    pub tips: Tips,
    /// By node, why it is down; `None` while it is live.
    pub down: Vec<Option<DownCause>>,
    /// By node, the number of transactions in its pool.
    pub pools: Vec<u64>,
    /// Faults in force, by their number in the plan.
    pub faults: BTreeMap<usize, FaultInForce>,
    pub counts: Counts,
    /// The highest blocks that nodes have reverted. A block that was applied again stays here, although it is on a
    /// node's chain.
    pub left: OrdMap<(Height, BlockId), Arc<Link>>,
    /// The newest events.
    pub told: RecentEvents,
}

/// A fault that has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultInForce {
    /// The word of its kind in scenario files.
    pub kind: &'static str,
    pub since: SimTime,
}

/// The counts of events since the run began, on all nodes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub forged: u64,
    /// Rollbacks, and the blocks that they reverted.
    pub rollbacks: u64,
    pub reverted: u64,
    /// Slots left empty before blocks that node 0 has applied.
    pub missed: u64,
}

impl LabBoard {
    /// The board of a run that is about to begin.
    pub fn new(plan: &Plan) -> Self {
        let genesis = plan.tree.applied(&plan.tip);
        let username = |node: &crate::sim::NodePlan| {
            let delegate = genesis.state.delegate_of(node.forger.as_ref()?.public())?;
            Some(delegate.username.to_string())
        };
        Self::of(&plan.tip, plan.nodes.iter().map(username).collect())
    }

    /// The board of a node of which only the view is known.
    pub fn of_view(view: &View) -> Self {
        Self::of(view.head().tip(), vec![None; view.node().0 as usize + 1])
    }

    fn of(tip: &Arc<Link>, delegates: Vec<Option<String>>) -> Self {
        let nodes = delegates.len();
        let state = BoardState {
            tips: Tips::new(nodes, tip),
            down: vec![None; nodes],
            pools: vec![0; nodes],
            faults: BTreeMap::new(),
            counts: Counts::default(),
            left: OrdMap::new(),
            told: RecentEvents::default(),
        };
        Self(Arc::new(BoardContent { seed: None, stage: None, delegates, state: Mutex::new(state) }))
    }

    /// The same board with the seed and the stage of the network's run. Called before the board is shared.
    #[must_use]
    pub fn of_run(self, seed: u64, stage: &'static str) -> Self {
        let state = Mutex::new(self.state());
        let delegates = self.0.delegates.clone();
        Self(Arc::new(BoardContent { seed: Some(seed), stage: Some(stage), delegates, state }))
    }

    /// A copy of the board, which follows another run from now on.
    #[must_use]
    pub fn apart(&self) -> Self {
        let (seed, stage, delegates) = (self.0.seed, self.0.stage, self.0.delegates.clone());
        Self(Arc::new(BoardContent { seed, stage, delegates, state: Mutex::new(self.state()) }))
    }

    /// The observer that updates the board. A reader delays it only for the time of a copy of the state.
    pub fn observer(&self) -> BoardObserver {
        BoardObserver(self.clone())
    }

    /// The seed of the run, if that is known.
    pub fn seed(&self) -> Option<u64> {
        self.0.seed
    }

    /// The stage that the run is on, if that is known.
    pub fn stage(&self) -> Option<&'static str> {
        self.0.stage
    }

    /// Number of nodes of the network.
    pub fn nodes(&self) -> usize {
        self.0.delegates.len()
    }

    /// By node, the username of its delegate; `None` for a relay.
    pub fn delegates(&self) -> &[Option<String>] {
        &self.0.delegates
    }

    /// A consistent copy of the part that the run's events change.
    pub fn state(&self) -> BoardState {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BoardState> {
        // A panic while it was locked leaves whole lines.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The observer that updates a board.
pub struct BoardObserver(LabBoard);

impl BoardState {
    fn follow(&mut self, node: NodeId, event: &Event) {
        self.tips.follow(node, event);
        match event {
            Event::BlockForged(_) => self.counts.forged += 1,
            Event::BlockApplied(link) if node == NodeId(0) => self.counts.missed += link.missing().len() as u64,
            Event::BlockReverted(link) => {
                self.counts.reverted += 1;
                self.keep(link);
            }
            Event::RolledBack { .. } => self.counts.rollbacks += 1,
            _ => {}
        }
        let Some(pool) = self.pools.get_mut(node.0 as usize) else { return };
        match event {
            Event::PoolAdded(added) => *pool += added.len() as u64,
            Event::PoolRemoved(_) | Event::PoolExpired(_) | Event::PoolEvicted(_) | Event::PoolPurged(_) => {
                *pool = pool.saturating_sub(1);
            }
            Event::PoolReplaced(pending) => *pool = pending.len() as u64,
            _ => {}
        }
    }

    /// Retains a block that a node has reverted, and evicts the lowest one if there are too many.
    fn keep(&mut self, link: &Arc<Link>) {
        self.left.insert((link.height(), link.id()), link.clone());
        if self.left.len() > LEFT {
            self.left = self.left.without_min().1;
        }
    }

    fn follow_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        self.tips.follow_network(event);
        if let NetworkEvent::Moved { .. } = event {
            // Reverted blocks may be younger than the snapshot, and then do not exist in the restored run.
            self.left = OrdMap::new();
        }
        match event {
            NetworkEvent::FaultBegan { index, kind } => {
                self.faults.insert(*index, FaultInForce { kind, since: now });
            }
            NetworkEvent::FaultEnded { index, .. } => _ = self.faults.remove(index),
            NetworkEvent::NodeDown { node, cause } => self.set_down(*node, Some(*cause)),
            NetworkEvent::NodeUp { node } => self.set_down(*node, None),
            NetworkEvent::PoolLost { node } => {
                self.pools.get_mut(node.0 as usize).into_iter().for_each(|pool| *pool = 0);
            }
            NetworkEvent::Moved { node, pending: Some(pending), .. } => {
                self.pools.get_mut(node.0 as usize).into_iter().for_each(|pool| *pool = pending.len() as u64);
            }
            NetworkEvent::Moved { pending: None, .. } | NetworkEvent::Sent { .. } | NetworkEvent::Lost { .. } => {}
        }
    }

    fn set_down(&mut self, node: NodeId, cause: Option<DownCause>) {
        self.down.get_mut(node.0 as usize).into_iter().for_each(|down| *down = cause);
    }
}

impl Observer for BoardObserver {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let changes_nothing = matches!(
            event,
            Event::BlockReceived(_)
                | Event::BlockRefused(_)
                | Event::BlockDisregarded(_)
                | Event::ForgingSuspended { .. }
                | Event::PoolRejected(_)
                | Event::HealthChecked { .. }
                | Event::PeerAdded(_)
                | Event::PeerRemoved(_)
                | Event::ForgerStarted { .. }
                | Event::ForgerFailed { .. }
        );
        let is_told = RecentEvents::wants(event);
        if !changes_nothing || is_told {
            let mut state = self.0.lock();
            if !changes_nothing {
                state.follow(node, event);
            }
            if is_told {
                state.told.hear(now, node, event);
            }
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut state = self.0.lock();
        state.follow_network(now, event);
        state.told.hear_network(now, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        actors::RollbackCause, ledger::Rules, protocol::crypto::CryptoMode, scenario::testnet::Testnet, sim::SeedTree,
    };

    fn at(seconds: u64) -> SimTime {
        SimTime::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn faults_and_nodes_that_are_down_are_told_until_they_are_over() {
        let tree =
            Testnet::generate(SeedTree::new(1), 3, CryptoMode::Real).tree(Rules::reference()).expect("a network");
        let board = LabBoard::of(tree.genesis(), vec![None; 3]);
        let mut observer = board.observer();
        observer.observe_network(at(5), &NetworkEvent::FaultBegan { index: 2, kind: "crash" });
        observer.observe_network(at(5), &NetworkEvent::NodeDown { node: NodeId(1), cause: DownCause::Crash });
        let kept = board.state();
        assert_eq!(kept.faults[&2], FaultInForce { kind: "crash", since: at(5) });
        assert_eq!(kept.down, [None, Some(DownCause::Crash), None]);
        assert_eq!((kept.tips.live(), kept.tips.down()), (2, 1));
        observer.observe_network(at(9), &NetworkEvent::NodeUp { node: NodeId(1) });
        observer.observe_network(at(9), &NetworkEvent::FaultEnded { index: 2, kind: "crash" });
        assert!(board.state().faults.is_empty());
        assert_eq!((board.state().down, board.state().tips.live()), (vec![None; 3], 3));
    }

    #[test]
    fn rollbacks_are_counted() {
        let tree =
            Testnet::generate(SeedTree::new(1), 3, CryptoMode::Real).tree(Rules::reference()).expect("a network");
        let (board, genesis) = (LabBoard::of(tree.genesis(), vec![None; 3]), tree.genesis());
        let mut observer = board.observer();
        observer.observe(at(1), NodeId(0), &Event::BlockReverted(genesis.clone()));
        let cause = RollbackCause::Forked;
        let rolled_back = Event::RolledBack { from: genesis.clone(), to: genesis.clone(), cause };
        observer.observe(at(1), NodeId(0), &rolled_back);
        assert_eq!(board.state().counts, Counts { forged: 0, rollbacks: 1, reverted: 1, missed: 0 });
    }
}
