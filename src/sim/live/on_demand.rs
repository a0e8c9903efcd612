//! Forging on demand: the clock stands until a transaction comes in at a node, and plays until a block of that node's chain
//! holds it and all live nodes have come to rest. Transactions that come in meanwhile share the block, or the next one.

use super::{Live, Pace, handle::Answer};
use crate::{
    actors::{Event, NodeId, SimTime, Submission},
    ledger::Link,
    protocol::{Height, Slot, TransactionId},
    sim::{Observer, Outcome, Stage, World, intervention::DroppedPending, stage::ractor::ActorDied},
};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};

/// The largest number of slots that are played for a transaction, the running one included: two rounds of 51 delegates, and some more. If
/// no block holds the transaction by then, the clock stands until the next one comes in.
pub const ON_DEMAND_SLOTS: u32 = 120;

/// Transactions that have come in at a node and wait for their block.
pub(super) struct Demand {
    node: NodeId,
    missing: BTreeSet<TransactionId>,
    /// The node's tip at the last check.
    tip: Option<Arc<Link>>,
    /// The instant at which the run stops waiting for the block.
    deadline: SimTime,
    submission: Submission,
    answer: Answer,
}

impl Demand {
    /// Returns true if no transaction is missing any more, or the deadline has passed.
    fn is_over(&mut self, world: &World, dropped: &DropRecord) -> bool {
        let tip = world.tips().of(self.node);
        if !self.tip.as_ref().is_some_and(|seen| seen.is(tip)) {
            self.tip = Some(tip.clone());
            self.missing.retain(|id| world.tree().block_of(tip, id).is_none());
        }
        dropped.take_out_of(self.node, &mut self.missing);
        self.missing.is_empty() || world.now() >= self.deadline
    }

    fn answer(self, stage: &Stage) {
        (self.answer)(Outcome::Submitted(self.submission), stage);
    }
}

/// Records the transactions that each node's pool has dropped, while a client waits for a block. Clones share the record.
#[derive(Clone, Default)]
pub(super) struct DropRecord(Arc<DroppedSet>);

#[derive(Default)]
struct DroppedSet {
    is_wanted: AtomicBool,
    gone: Mutex<BTreeSet<(NodeId, TransactionId)>>,
}

impl DropRecord {
    fn want(&self, is_wanted: bool) {
        self.0.is_wanted.store(is_wanted, Ordering::Relaxed);
        if !is_wanted {
            self.lock().clear();
        }
    }

    /// Adds transactions that left pools on request.
    pub(super) fn add(&self, dropped: &DroppedPending) {
        if self.0.is_wanted.load(Ordering::Relaxed) {
            let pairs = |node: &NodeId| {
                dropped.transactions.iter().map({
                    let node = *node;
                    move |id| (node, *id)
                })
            };
            self.lock().extend(dropped.nodes.iter().flat_map(pairs));
        }
    }

    /// Removes the transactions that the node's own pool has dropped: another node may still hold one, but its client asked here.
    fn take_out_of(&self, node: NodeId, missing: &mut BTreeSet<TransactionId>) {
        let gone = self.lock();
        missing.retain(|id| !gone.contains(&(node, *id)));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(NodeId, TransactionId)>> {
        self.0.gone.lock().expect("no thread panics while holding it")
    }
}

impl Observer for DropRecord {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        if let Event::PoolExpired(transaction) | Event::PoolEvicted(transaction) | Event::PoolPurged(transaction) =
            event
            && self.0.is_wanted.load(Ordering::Relaxed)
        {
            self.lock().insert((node, transaction.id()));
        }
    }
}

impl Live {
    /// The run after its first block, if it forges on demand. Clients sign transactions that nodes accept only from height 2 on.
    ///
    /// # Errors
    /// An actor died.
    pub async fn begun(mut self) -> Result<Self, ActorDied> {
        let at_genesis = |live: &Self| live.stage.world().tips().of(NodeId(0)).height() <= Height::GENESIS;
        let first = self.slots.slot(self.stage.world().now().seconds());
        let last = SimTime::from_seconds(self.slots.start(Slot(first.0.saturating_add(ON_DEMAND_SLOTS))));
        while self.pace == Pace::OnDemand && at_genesis(&self) && self.step(last).await? {}
        self.come_to_rest().await?;
        Ok(self)
    }

    /// At the pace that forges on demand, plays until all live nodes stand on one block, so that a reader finds no block under way
    /// while the clock stands. Nodes that a fault keeps apart cannot converge: they play as far as they can before the next slot, in
    /// which another block would be forged.
    pub(super) async fn come_to_rest(&mut self) -> Result<(), ActorDied> {
        let running = self.slots.slot(self.stage.world().now().seconds());
        let last = SimTime::from_seconds(self.slots.start(Slot(running.0.saturating_add(1)))).just_before();
        while self.pace == Pace::OnDemand && !self.is_broken() && !self.goal_is_reached() {
            if self.stage.world().tips().is_converged() {
                break;
            }
            if !self.step(last).await? {
                self.stage.rest_until(last);
                break;
            }
        }
        Ok(())
    }

    /// Plays events while a client waits for a block. Otherwise waits for a command.
    pub(super) async fn play_on_demand(&mut self) -> Result<(), ActorDied> {
        if self.demands.is_empty() {
            return self.wait_for_command().await;
        }
        // Clients that have asked by now share the block.
        while let Ok(command) = self.commands.try_recv() {
            self.obey(command).await?;
        }
        let Some(last) = self.demands.iter().map(|demand| demand.deadline).max() else { return Ok(()) };
        if self.stage.world().next_time().is_none_or(|next| next > last) {
            self.stage.rest_until(last);
            self.answer_demands();
            return Ok(());
        }
        self.play_some(last).await
    }

    /// Defers the answer about these transactions until a block holds the accepted ones.
    pub(super) fn demand(&mut self, node: NodeId, submission: Submission, answer: Answer) {
        let missing = submission.accept.iter().copied().collect();
        let running = self.slots.slot(self.stage.world().now().seconds());
        let deadline = SimTime::from_seconds(self.slots.start(Slot(running.0.saturating_add(ON_DEMAND_SLOTS))));
        self.dropped.want(true);
        self.demands.push(Demand { node, missing, tip: None, deadline, submission, answer });
    }

    /// Answers the clients whose transactions are in blocks, or will not be, once all nodes are at rest. Returns true if no client
    /// waits any more.
    pub(super) async fn settle_demands(&mut self) -> Result<bool, ActorDied> {
        let (world, dropped) = (self.stage.world(), &self.dropped);
        if self.demands.iter_mut().any(|demand| demand.is_over(world, dropped)) {
            self.come_to_rest().await?;
        }
        if self.is_broken() {
            self.demands.clear();
        }
        let (stage, dropped) = (&self.stage, &self.dropped);
        let over = self.demands.extract_if(.., |demand| demand.is_over(stage.world(), dropped));
        over.for_each(|demand| demand.answer(stage));
        if self.demands.is_empty() {
            self.dropped.want(false);
        }
        Ok(self.demands.is_empty())
    }

    /// Answers all waiting clients now, with or without a block.
    pub(super) fn answer_demands(&mut self) {
        if self.is_broken() {
            self.demands.clear();
        }
        self.demands.drain(..).for_each(|demand| demand.answer(&self.stage));
        self.dropped.want(false);
    }
}
