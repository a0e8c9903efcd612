//! What the world knows of each node: whether it is up, what its clock shows, where its chain ends.

use crate::{
    actors::{ActorId, Event, Input, NodeId, SimTime},
    ledger::Link,
    sim::{Plan, clock::Clock},
};
use rand::Rng;
use std::{mem, sync::Arc, time::Duration};

/// All nodes.
pub struct Nodes {
    /// What every event looks at; small, for that.
    brief: Vec<Brief>,
    state: Vec<NodeState>,
    tips: Vec<Arc<Link>>,
    best: Arc<Link>,
}

#[derive(Clone, Copy, Default)]
struct Brief {
    /// Grows with each crash: what was meant for an older one is lost.
    generation: u32,
    /// Something of the state is not as usual, or was so once.
    special: bool,
}

#[derive(Default)]
struct NodeState {
    down: bool,
    /// Pauses in force.
    pauses: u32,
    held: Vec<(ActorId, Input)>,
    /// What one event takes.
    step: Duration,
    busy_until: SimTime,
    clock: Clock,
    /// The clock, when no fault skews it.
    own_clock: Clock,
}

/// Whether an event reaches its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its clock shows this.
    Now(SimTime),
    Not(NotNow),
}

/// Why an event does not reach its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// The node is busy until then.
    Busy(SimTime),
    /// The node stands still.
    Held,
    /// The node is down, or another than it was.
    Gone,
}

impl Nodes {
    /// The nodes of a plan, all up.
    pub fn new(plan: &Plan) -> Self {
        let mut state: Vec<NodeState> = plan.nodes.iter().map(|_| NodeState::default()).collect();
        let brief = Brief { generation: 0, special: plan.network.clocks.is_some() };
        if let Some(clocks) = plan.network.clocks {
            let mut random = plan.seeds.stream("network/clocks");
            for node in &mut state {
                let offset = i64::from(clocks.offset_ms) * 1_000;
                let drift = i32::try_from(clocks.drift_ppm).unwrap_or(i32::MAX);
                let offset = random.random_range(-offset..=offset);
                node.own_clock = Clock::new(plan.start, offset, random.random_range(-drift..=drift));
                node.clock = node.own_clock;
            }
        }
        let tips = vec![plan.tip.clone(); state.len()];
        Self { brief: vec![brief; state.len()], tips, best: plan.tip.clone(), state }
    }

    /// Whether an event for a node in its state of `generation` reaches it now.
    pub fn reach(&mut self, node: NodeId, generation: u32, now: SimTime) -> Reach {
        let brief = self.brief[node.0 as usize];
        if !brief.special {
            return Reach::Now(now);
        }
        let node = &mut self.state[node.0 as usize];
        if node.down || brief.generation != generation {
            Reach::Not(NotNow::Gone)
        } else if node.pauses > 0 {
            Reach::Not(NotNow::Held)
        } else if now < node.busy_until {
            Reach::Not(NotNow::Busy(node.busy_until))
        } else {
            node.busy_until = now + node.step;
            Reach::Now(node.clock.local(now))
        }
    }

    /// Keeps what a node hears while it stands still.
    pub fn hold(&mut self, to: ActorId, input: Input) {
        self.state[to.node.0 as usize].held.push((to, input));
    }

    /// Counts the times a node has come back.
    pub fn generation(&self, node: NodeId) -> u32 {
        self.brief[node.0 as usize].generation
    }

    /// Whether a node runs, be it slowly or not at all for a while.
    pub fn is_up(&self, node: NodeId) -> bool {
        !self.state[node.0 as usize].down
    }

    /// A node's clock.
    pub fn clock(&self, node: NodeId) -> Clock {
        self.state[node.0 as usize].clock
    }

    /// The highest block any node has applied.
    pub fn best(&self) -> &Arc<Link> {
        &self.best
    }

    /// The block a node stands on.
    pub fn tip(&self, node: NodeId) -> &Arc<Link> {
        &self.tips[node.0 as usize]
    }

    /// The block each node stands on.
    pub fn tips(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.tips.iter()
    }

    /// Follows the nodes' chains.
    pub fn observe(&mut self, node: NodeId, event: &Event) {
        let tip = match event {
            Event::BlockApplied { link, .. } => link,
            Event::RolledBack { to, .. } => to,
            _ => return,
        };
        if tip.height() > self.best.height() {
            self.best = tip.clone();
        }
        self.tips[node.0 as usize] = tip.clone();
    }

    /// A node goes down, and with it what it had not heard yet; answers that.
    pub fn crash(&mut self, node: NodeId) -> Vec<(ActorId, Input)> {
        let brief = &mut self.brief[node.0 as usize];
        (brief.generation, brief.special) = (brief.generation + 1, true);
        let node = &mut self.state[node.0 as usize];
        node.down = true;
        node.busy_until = SimTime::default();
        mem::take(&mut node.held)
    }

    /// A node comes back. From its first crash on its generation is looked at.
    pub fn come_back(&mut self, node: NodeId) {
        self.state[node.0 as usize].down = false;
    }

    /// A node stands still once more.
    pub fn pause(&mut self, node: NodeId) {
        self.brief[node.0 as usize].special = true;
        self.state[node.0 as usize].pauses += 1;
    }

    /// A node stands still once less; answers what it shall hear now, if it goes on.
    pub fn resume(&mut self, node: NodeId) -> Vec<(ActorId, Input)> {
        let node = &mut self.state[node.0 as usize];
        node.pauses = node.pauses.saturating_sub(1);
        if node.pauses == 0 { mem::take(&mut node.held) } else { Vec::new() }
    }

    /// From now on each event takes a node so much longer.
    pub fn slow_down(&mut self, node: NodeId, by: Duration) {
        self.brief[node.0 as usize].special = true;
        self.state[node.0 as usize].step += by;
    }

    /// From now on each event takes a node so much less.
    pub fn speed_up(&mut self, node: NodeId, by: Duration) {
        let node = &mut self.state[node.0 as usize];
        node.step = node.step.saturating_sub(by);
    }

    /// Skews a node's clock from now on.
    pub fn skew(&mut self, node: NodeId, now: SimTime, offset: i64, drift_ppm: i32) {
        self.brief[node.0 as usize].special = true;
        let node = &mut self.state[node.0 as usize];
        node.clock = node.clock.skewed(now, offset, drift_ppm);
    }

    /// Sets a node's clock as it would be without any fault.
    pub fn set_right(&mut self, node: NodeId) {
        let node = &mut self.state[node.0 as usize];
        node.clock = node.own_clock;
    }
}
