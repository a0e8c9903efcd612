//! The world's record of each node: its state, its clock, the end of its chain.

use crate::{
    actors::{
        ActorId, Event, Input, NodeId, SimTime,
        prefetch::{self, Prefetch},
    },
    ledger::{Link, codec::saved},
    protocol::{Height, TransactionId},
    sim::{NetworkEvent, Plan, Tips, clock::Clock},
};
use rand::Rng;
use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

/// All nodes.
#[derive(Clone)]
pub(crate) struct Nodes {
    /// The part that every event reads. It is small for that reason.
    brief: Vec<Brief>,
    state: Vec<NodeState>,
    tips: Tips,
    best: Arc<Link>,
    /// The greatest height that any node ever reached, also on chains that all nodes have left.
    highest: Height,
}

#[derive(Clone, Copy, Default)]
struct Brief {
    /// Grows with each crash. Inputs for an older generation are lost.
    generation: u32,
    /// True once the state has differed from the default.
    special: bool,
}

#[derive(Clone, Default)]
struct NodeState {
    down: bool,
    /// Pauses in force.
    pauses: u32,
    /// The time that one event takes.
    step: Duration,
    busy_until: SimTime,
    /// The inputs that wait until the node is neither paused nor busy, in the order of arrival.
    waiting: VecDeque<(ActorId, Input)>,
    /// True if a call is scheduled for when the node is free again.
    is_called: bool,
    clock: Clock,
    /// The clock, when no fault skews it.
    own_clock: Clock,
}

/// Whether an event reaches its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its clock shows this.
    Now(SimTime),
    Not(NotNow),
}

/// Why an event does not reach its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotNow {
    /// The node is busy or stands still, or others wait before this one.
    Waits,
    /// The node is down, or of a later generation.
    Gone,
}

/// An input that has waited long enough.
pub(crate) struct FreedInput {
    pub to: ActorId,
    pub input: Input,
    /// The time on its node's clock.
    pub local: SimTime,
    /// The time at which to call the node again.
    pub again: Option<SimTime>,
}

impl NodeState {
    /// Begins an input now and returns the time on the node's clock. `None` if the node is paused, busy or behind.
    fn hear(&mut self, now: SimTime) -> Option<SimTime> {
        if self.pauses > 0 || now < self.busy_until || !self.waiting.is_empty() {
            return None;
        }
        Some(self.begin(now))
    }

    /// Makes the node busy with an input from now on, and returns the time on its clock.
    fn begin(&mut self, now: SimTime) -> SimTime {
        self.busy_until = now + self.step;
        self.clock.local(now)
    }

    fn wait(&mut self, to: ActorId, input: Input) -> Option<SimTime> {
        self.waiting.push_back((to, input));
        self.call()
    }

    fn free(&mut self, now: SimTime) -> Option<FreedInput> {
        self.is_called = false;
        if self.pauses > 0 {
            return None;
        }
        let (to, input) = self.waiting.pop_front()?;
        Some(FreedInput { to, input, local: self.begin(now), again: self.call() })
    }

    fn resume(&mut self) -> Option<SimTime> {
        self.pauses = self.pauses.saturating_sub(1);
        self.call()
    }

    /// The time at which to call the node, if an input waits and no call is scheduled yet.
    fn call(&mut self) -> Option<SimTime> {
        if self.is_called || self.pauses > 0 || self.waiting.is_empty() {
            return None;
        }
        self.is_called = true;
        Some(self.busy_until)
    }
}

impl Prefetch<NodeId> for Nodes {
    /// The record of a node that a message to it looks at.
    fn fetch(&self, node: NodeId) {
        prefetch::line(&self.brief, node.0 as usize);
    }
}

impl Nodes {
    /// The nodes of a plan, all up.
    pub fn new(plan: &Plan, classes: &[u16]) -> Self {
        let mut state: Vec<NodeState> = plan.nodes.iter().map(|_| NodeState::default()).collect();
        let brief = Brief { generation: 0, special: plan.network.clocks.is_some() };
        if let Some(clocks) = &plan.network.clocks {
            let mut random = plan.seeds.stream("network/clocks");
            for (index, node) in state.iter_mut().enumerate() {
                let clocks = clocks.of(classes.get(index));
                let offset = i64::from(clocks.offset_ms) * 1_000;
                let drift = i32::try_from(clocks.drift_ppm).unwrap_or(i32::MAX);
                let offset = random.random_range(-offset..=offset);
                node.own_clock = Clock::new(plan.start, offset, random.random_range(-drift..=drift));
                node.clock = node.own_clock;
            }
        }
        let tips = Tips::new(state.len(), &plan.tip);
        Self { brief: vec![brief; state.len()], tips, best: plan.tip.clone(), highest: plan.tip.height(), state }
    }

    /// Finds out whether an event for a node in its state of `generation` reaches it now.
    #[inline]
    pub fn reach(&mut self, node: NodeId, generation: u32, now: SimTime) -> Reach {
        let brief = self.brief[node.0 as usize];
        if !brief.special {
            return Reach::Now(now);
        }
        self.reach_special(node, generation, now)
    }

    #[inline(never)]
    fn reach_special(&mut self, node: NodeId, generation: u32, now: SimTime) -> Reach {
        let brief = self.brief[node.0 as usize];
        let node = &mut self.state[node.0 as usize];
        if node.down || brief.generation != generation {
            return Reach::Not(NotNow::Gone);
        }
        node.hear(now).map_or(Reach::Not(NotNow::Waits), Reach::Now)
    }

    /// Lets an input wait. Returns the time of a call to the node, if none is scheduled yet.
    pub fn wait(&mut self, to: ActorId, input: Input) -> Option<SimTime> {
        self.state[to.node.0 as usize].wait(to, input)
    }

    /// Takes the input that has waited longest on a node of this generation, with the time at which to call the node
    /// again.
    pub fn free(&mut self, node: NodeId, generation: u32, now: SimTime) -> Option<FreedInput> {
        if self.generation(node) != generation {
            return None;
        }
        self.state[node.0 as usize].free(now)
    }

    /// The number of crashes of a node.
    pub fn generation(&self, node: NodeId) -> u32 {
        self.brief[node.0 as usize].generation
    }

    /// Returns true if a node is not crashed. It may be slow or stand still.
    pub fn is_up(&self, node: NodeId) -> bool {
        !self.state[node.0 as usize].down
    }

    /// Returns true if a node is neither crashed nor paused.
    pub fn is_live(&self, node: NodeId) -> bool {
        let state = &self.state[node.0 as usize];
        !state.down && state.pauses == 0
    }

    /// Returns true if a live node hears every input at once.
    pub fn is_prompt(&self, node: NodeId) -> bool {
        let state = &self.state[node.0 as usize];
        state.step.is_zero() && state.waiting.is_empty()
    }

    /// Sets the highest block, because all nodes have left the higher ones.
    pub fn go_back_to(&mut self, link: &Arc<Link>) {
        self.best = link.clone();
    }

    /// The greatest height that any node was ever at.
    pub fn highest(&self) -> Height {
        self.highest
    }

    /// Returns true if inputs wait on a node until it is free.
    pub fn is_behind(&self, node: NodeId) -> bool {
        !self.state[node.0 as usize].waiting.is_empty()
    }

    /// Removes a transaction from all inputs that wait on nodes. Returns the number of inputs that held it.
    pub fn drop_transaction(&mut self, id: &TransactionId) -> usize {
        let mut copies = 0;
        for (_, input) in self.state.iter_mut().flat_map(|state| &mut state.waiting) {
            copies += usize::from(input.drop_transaction(id));
        }
        copies
    }

    /// All inputs that wait on nodes.
    pub fn all_waiting(&self) -> impl Iterator<Item = &(ActorId, Input)> {
        self.state.iter().flat_map(|state| &state.waiting)
    }

    /// A node's clock.
    pub fn clock(&self, node: NodeId) -> Clock {
        self.state[node.0 as usize].clock
    }

    /// The first true instant at which a node's clock shows `local`.
    pub fn true_time(&self, node: NodeId, local: SimTime) -> SimTime {
        match self.brief[node.0 as usize].special {
            true => self.clock(node).global(local),
            false => local,
        }
    }

    /// The highest block any node has applied.
    pub fn best(&self) -> &Arc<Link> {
        &self.best
    }

    /// The block a node stands on.
    pub fn tip(&self, node: NodeId) -> &Arc<Link> {
        self.tips.of(node)
    }

    /// The tips of the nodes.
    pub fn tips(&self) -> &Tips {
        &self.tips
    }

    /// Updates the highest block by an event of any node.
    pub fn rise(&mut self, event: &Event) {
        if let Event::BlockApplied(link) = event
            && link.height() > self.best.height()
        {
            self.best = link.clone();
            self.highest = self.highest.max(link.height());
        }
    }

    /// Updates a node's tip by its event.
    pub fn stand(&mut self, node: NodeId, event: &Event) {
        self.tips.follow(node, event);
    }

    /// Updates the list of live nodes by an event.
    pub fn follow_network(&mut self, event: &NetworkEvent<'_>) {
        self.tips.follow_network(event);
    }

    /// Takes a node down. Returns the inputs that it had not heard yet, which are lost.
    pub fn crash(&mut self, node: NodeId) -> VecDeque<(ActorId, Input)> {
        let brief = &mut self.brief[node.0 as usize];
        (brief.generation, brief.special) = (brief.generation + 1, true);
        let node = &mut self.state[node.0 as usize];
        node.down = true;
        node.busy_until = SimTime::default();
        node.is_called = false;
        mem::take(&mut node.waiting)
    }

    /// Brings a node back. Events check its generation from its first crash on.
    pub fn come_back(&mut self, node: NodeId) {
        self.state[node.0 as usize].down = false;
    }

    /// Adds a pause to a node.
    pub fn pause(&mut self, node: NodeId) {
        self.brief[node.0 as usize].special = true;
        self.state[node.0 as usize].pauses += 1;
    }

    /// Ends a pause of a node. Returns the time at which to call the node, if it goes on and inputs wait.
    pub fn resume(&mut self, node: NodeId) -> Option<SimTime> {
        self.state[node.0 as usize].resume()
    }

    /// The effects of faults on a node, except on its clock.
    #[cfg(test)]
    pub fn shown(&self, node: NodeId) -> String {
        let NodeState { down, pauses, step, busy_until, waiting, is_called, .. } = &self.state[node.0 as usize];
        let busy = *busy_until > SimTime::default();
        format!("down {down}, pauses {pauses}, step {step:?}, busy {busy}, {} wait, called {is_called}", waiting.len())
    }

    /// The time that one event takes a node.
    #[cfg(test)]
    pub fn step(&self, node: NodeId) -> Duration {
        self.state[node.0 as usize].step
    }

    /// From now on each event takes a node longer, by `by`.
    pub fn slow_down(&mut self, node: NodeId, by: Duration) {
        self.brief[node.0 as usize].special = true;
        self.state[node.0 as usize].step += by;
    }

    /// From now on each event takes a node less time, by `by`.
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

saved!(struct Nodes { brief, state, tips, best, highest });
saved!(struct Brief { generation, special });
saved!(struct NodeState { down, pauses, step, busy_until, waiting, is_called, clock, own_clock });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        actors::{RequestId, Role},
        sim::queue::EventQueue,
    };
    use proptest::prelude::*;

    const PEER: ActorId = ActorId { node: NodeId(0), role: Role::Peer };

    #[derive(Clone, Copy)]
    enum Due {
        Input(u64),
        Free,
        Pause,
        Resume,
    }

    /// The inputs that a node hears and their instants, where inputs come in this order, as the world has it.
    fn heard(mut node: NodeState, inputs: &[SimTime], pause: Option<(SimTime, SimTime)>) -> Vec<(SimTime, u64)> {
        let (mut queue, mut heard) = (EventQueue::new(), Vec::new());
        if let Some((from, until)) = pause {
            queue.push(from, Due::Pause);
            queue.push(until, Due::Resume);
        }
        for (number, at) in inputs.iter().enumerate() {
            queue.push(*at, Due::Input(number as u64));
        }
        while let Some((now, due)) = queue.pop(SimTime::from_micros(u64::MAX)) {
            let call = match due {
                Due::Input(number) if node.hear(now).is_some() => {
                    heard.push((now, number));
                    None
                }
                Due::Input(number) => {
                    let (request, transactions) = (RequestId(number), Vec::new().into());
                    node.wait(PEER, Input::Submit { request, transactions })
                }
                Due::Free => node.free(now).and_then(|freed| {
                    if let Input::Submit { request, .. } = freed.input {
                        heard.push((now, request.0));
                    }
                    freed.again
                }),
                Due::Pause => {
                    node.pauses += 1;
                    None
                }
                Due::Resume => node.resume(),
            };
            if let Some(at) = call {
                queue.push(at.max(now), Due::Free);
            }
        }
        heard
    }

    proptest! {
        /// One server with a queue: each input is heard when it has come and the one before is done, and no pause runs.
        #[test]
        fn a_slow_node_hears_everything_once_in_order_and_one_after_the_other(
            gaps in prop::collection::vec(0..900_u64, 1..60),
            step in 0..1_000_u64,
            pause in prop::option::of((0..9_000_u64, 0..20_000_u64)),
        ) {
            let arrivals: Vec<u64> =
                gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let inputs: Vec<SimTime> = arrivals.iter().map(|at| SimTime::from_micros(*at)).collect();
            let pause = pause.map(|(from, lasts)| (from, from + lasts));
            let mut free = 0;
            let expected: Vec<(SimTime, u64)> = (0..).zip(&arrivals).map(|(number, at)| {
                let at = free.max(*at);
                let at = pause.filter(|(from, until)| (*from..*until).contains(&at)).map_or(at, |(_, until)| until);
                free = at + step;
                (SimTime::from_micros(at), number)
            }).collect();
            let node = NodeState { step: Duration::from_micros(step), ..NodeState::default() };
            let limits = pause.map(|(from, until)| (SimTime::from_micros(from), SimTime::from_micros(until)));
            prop_assert_eq!(heard(node, &inputs, limits), expected);
        }
    }
}
