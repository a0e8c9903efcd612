//! The effects of faults, kind by kind, when they begin and when they end.

use super::{DownCause, Item, NetworkEvent, World};
use crate::{
    actors::{ActorId, Choices, NodeId, Role, SimTime, Spells, Stimulus, behaviour::Layer, delegate::ALL_ROUNDS},
    ledger::codec::saved,
    protocol::{RoundNumber, crypto::sha256},
    sim::{
        entry_names,
        fault::{FaultKind, Messages, Nodes, NoticeTime, Partition},
        network::interference::{Action, Cut, MessageRule, NodeSet},
        strategy::{PlannedStrategy, Setting},
    },
};
use rand::RngCore;
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
    time::Duration,
};

/// The faults in force.
#[derive(Clone)]
pub(crate) struct Faults {
    state: Vec<State>,
    /// The behaviours in force: fault, actor, and the behaviour as it began.
    pub(super) behaviours: Vec<(usize, ActorId, Layer)>,
    /// The delegates that are switched off: fault, node and rounds.
    off: Vec<(usize, NodeId, Spells)>,
    /// The number of the next behaviour.
    next_layer: u32,
    /// Nodes that another crash still keeps down after a crash that loses the pool has ended.
    without_pool: BTreeSet<NodeId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Ahead,
    /// `nodes` are the nodes that it affects, resolved when it began.
    On {
        since: SimTime,
        nodes: Vec<NodeId>,
        held: LastingEffect,
    },
    Over,
}

/// The part of a fault's effects on its nodes that has to be undone when it ends. Rules of the network and behaviours are found
/// by the fault's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LastingEffect {
    Nothing,
    /// They are down, and come back with or without their pools.
    Down {
        keep_pool: bool,
    },
    /// They stand still.
    Still,
    /// They take longer over each input, by this time.
    Slowed(Duration),
    /// Their clocks are wrong.
    Skewed,
    /// They come and go by draws of this name. Some are down now, and come back with or without their pools.
    ComeAndGo {
        name: u64,
        keep_pool: bool,
        down: BTreeSet<NodeId>,
    },
}

impl Faults {
    /// Begins with `count` faults, none of which has begun.
    pub fn new(count: usize) -> Self {
        Self {
            state: vec![State::Ahead; count],
            behaviours: Vec::new(),
            off: Vec::new(),
            next_layer: 0,
            without_pool: BTreeSet::new(),
        }
    }

    /// Adds a fault that has not begun.
    pub fn add(&mut self) {
        self.state.push(State::Ahead);
    }

    /// The state of each.
    pub(super) fn states(&self) -> &[State] {
        &self.state
    }

    /// The state of a fault, for changes.
    pub(super) fn state_mut(&mut self, index: usize) -> &mut State {
        &mut self.state[index]
    }

    /// Returns true if a fault is over.
    pub fn is_over(&self, index: usize) -> bool {
        self.state[index] == State::Over
    }

    /// The state that must be gone when no fault is in force.
    #[cfg(test)]
    pub fn leftovers(&self) -> String {
        let behaviours: Vec<_> = self.behaviours.iter().map(|(_, to, layer)| (to, layer)).collect();
        let off: Vec<_> = self.off.iter().map(|(_, node, rounds)| (node, rounds)).collect();
        format!("behaviours {behaviours:?}, off {off:?}, without pool {:?}", self.without_pool)
    }

    /// Behaviours that begin again draw from another seed.
    pub fn draw_anew(&mut self, seed: u64) {
        self.behaviours.iter_mut().for_each(|(.., layer)| layer.seed = seed);
    }

    /// Returns true if a node's delegate is switched off in all rounds.
    pub fn is_always_off(&self, node: NodeId) -> bool {
        self.off_of(node).any(|rounds| rounds.contains(&ALL_ROUNDS))
    }

    /// Returns true if a node's delegate is switched off in a round.
    pub fn is_off_in(&self, node: NodeId, round: RoundNumber) -> bool {
        self.off_of(node).any(|rounds| rounds.iter().any(|span| span.contains(&round)))
    }

    fn off_of(&self, node: NodeId) -> impl Iterator<Item = &Spells> {
        self.off.iter().filter(move |(_, of, _)| *of == node).map(|(.., rounds)| rounds)
    }
}

impl World {
    /// Begins a fault and carries out its effects.
    pub(super) fn begin_fault(&mut self, index: usize) {
        let kind = self.plan.faults[index].kind.clone();
        self.tell(&NetworkEvent::FaultBegan { index, kind: kind.name() });
        let concerned = self.concerned(&kind);
        self.faults.state[index] =
            State::On { since: self.now, nodes: concerned.clone(), held: LastingEffect::Nothing };
        let began = self.carry_out(index, &kind, &concerned);
        if let State::On { held, .. } = &mut self.faults.state[index] {
            *held = began;
        }
    }

    /// Carries out the effects of a fault on its nodes. Returns the effects that its end has to undo.
    fn carry_out(&mut self, index: usize, kind: &FaultKind, concerned: &[NodeId]) -> LastingEffect {
        match kind {
            FaultKind::Partition(partition) => {
                let cut = self.partition(partition);
                self.cut(index, cut)
            }
            FaultKind::Heal(_) => self.heal(),
            FaultKind::Isolate(_) => self.cut(index, Cut::singles(self.count(), concerned)),
            FaultKind::Eclipse(eclipse) => {
                let (victims, attackers) = (self.set(&eclipse.victims), self.set(&eclipse.attackers));
                self.cut(index, Cut::Eclipse { victims, attackers })
            }
            FaultKind::Drop(drop) => self.rule(index, &drop.which, Action::Drop),
            FaultKind::Delay(delay) => {
                let (by, jitter) = (millis(delay.by_ms), millis(delay.jitter_ms));
                self.rule(index, &delay.which, Action::Delay { by, jitter })
            }
            FaultKind::Duplicate(duplicate) => {
                let (copies, within) = (duplicate.copies, millis(duplicate.within_ms));
                self.rule(index, &duplicate.which, Action::Duplicate { copies, within })
            }
            FaultKind::Crash(crash) => {
                concerned.iter().for_each(|node| self.crash(*node));
                LastingEffect::Down { keep_pool: crash.keep_pool }
            }
            FaultKind::NodeChurn(churn) => self.churn(index, concerned, churn.keep_pool),
            FaultKind::Restart(restart) => self.restart(concerned, restart.keep_pool),
            FaultKind::Pause(_) => {
                concerned.iter().for_each(|node| self.pause(*node));
                LastingEffect::Still
            }
            FaultKind::Slow(slow) => {
                let by = millis(slow.step_ms);
                concerned.iter().for_each(|node| self.nodes.slow_down(*node, by));
                LastingEffect::Slowed(by)
            }
            FaultKind::ClockSkew(skew) => {
                let offset = skew.offset_ms.saturating_mul(1_000);
                concerned.iter().for_each(|node| self.nodes.skew(*node, self.now, offset, skew.drift_ppm));
                LastingEffect::Skewed
            }
            FaultKind::Offline(_) => self.switch_off(index, NoticeTime::Begun),
            FaultKind::Strategy(planned) => self.behave(index, planned),
            // Clients do these.
            FaultKind::SpamPool(_)
            | FaultKind::LowFeeFlood(_)
            | FaultKind::VoteSwing(_)
            | FaultKind::MassResignation(_) => LastingEffect::Nothing,
        }
    }

    /// Ends a fault and undoes its effects, as far as possible.
    pub(super) fn end_fault(&mut self, index: usize) {
        let was = mem::replace(&mut self.faults.state[index], State::Over);
        let State::On { nodes: concerned, held, .. } = was else { return };
        match held {
            LastingEffect::Nothing => {}
            LastingEffect::Down { keep_pool } => concerned.iter().for_each(|node| self.crash_over(*node, keep_pool)),
            LastingEffect::Still => concerned.iter().for_each(|node| self.resume(*node)),
            LastingEffect::Slowed(by) => concerned.iter().for_each(|node| self.nodes.speed_up(*node, by)),
            LastingEffect::Skewed => concerned.iter().for_each(|node| self.set_right(*node)),
            LastingEffect::ComeAndGo { keep_pool, down, .. } => self.churn_over(keep_pool, &down),
        }
        self.network.interference.end(index);
        self.cease(index);
        // Rounds end by themselves: each delegate sees on its own chain when.
        self.switch_on(index, |rounds| rounds.contains(&ALL_ROUNDS));
        let kind = self.plan.faults[index].kind.name();
        self.tell(&NetworkEvent::FaultEnded { index, kind });
    }

    /// The nodes that a fault affects, if `nodes` or `delegates` is its only list of nodes.
    fn concerned(&self, kind: &FaultKind) -> Vec<NodeId> {
        match kind.nodes().as_slice() {
            [("nodes" | "delegates", nodes)] => self.resolve(nodes),
            _ => Vec::new(),
        }
    }

    pub(super) fn resolve(&self, nodes: &Nodes) -> Vec<NodeId> {
        self.names.resolve(nodes, self.best())
    }

    fn set(&self, nodes: &Nodes) -> NodeSet {
        NodeSet::new(self.count(), self.resolve(nodes))
    }

    fn count(&self) -> u32 {
        self.plan.nodes.len() as u32
    }

    // Between nodes.

    fn partition(&self, partition: &Partition) -> Cut {
        let groups: Vec<Vec<NodeId>> = match partition.share {
            Some(share) => vec![self.names.share(share, self.best())],
            None => partition.groups.iter().map(|group| self.resolve(group)).collect(),
        };
        if partition.one_way {
            return Cut::Into(NodeSet::new(self.count(), groups.into_iter().next().unwrap_or_default()));
        }
        Cut::groups(self.count(), &groups)
    }

    fn cut(&mut self, index: usize, cut: Cut) -> LastingEffect {
        self.network.interference.cut(index, cut);
        LastingEffect::Nothing
    }

    fn rule(&mut self, index: usize, which: &Messages, action: Action) -> LastingEffect {
        let rule = MessageRule {
            kinds: which.messages.clone(),
            senders: which.senders.as_ref().map(|nodes| self.set(nodes)),
            receivers: which.receivers.as_ref().map(|nodes| self.set(nodes)),
            chance: which.chance.unwrap_or(1.0),
            only: which.only,
            met: 0,
            action,
            name: self.draw_name(index),
        };
        self.network.rule(index, rule);
        LastingEffect::Nothing
    }

    /// The name by which a fault draws.
    pub(super) fn draw_name(&self, index: usize) -> u64 {
        let name = entry_names::name(&self.plan.faults[index], &self.plan.faults[..index]);
        u64::from_le_bytes(sha256(name.as_bytes())[..8].try_into().expect("8 of 32 bytes"))
    }

    fn heal(&mut self) -> LastingEffect {
        for index in self.network.interference.heal() {
            self.end_fault(index);
        }
        LastingEffect::Nothing
    }

    // At a node.

    pub(super) fn crash(&mut self, node: NodeId) {
        if !self.nodes.is_up(node) {
            return;
        }
        let was_live = self.nodes.is_live(node);
        if let Some(processors) = &mut self.processors {
            processors.stop(node);
        }
        for (to, input) in self.nodes.crash(node) {
            self.lost_with_its_node(to, input);
        }
        self.tell_whether_live(node, was_live, DownCause::Crash);
    }

    fn restart(&mut self, nodes: &[NodeId], keep_pool: bool) -> LastingEffect {
        for node in nodes {
            self.crash(*node);
            self.come_back(*node, keep_pool);
        }
        LastingEffect::Nothing
    }

    fn pause(&mut self, node: NodeId) {
        let was_live = self.nodes.is_live(node);
        self.nodes.pause(node);
        self.tell_whether_live(node, was_live, DownCause::Pause);
    }

    /// Reports that a node has gone down or come back, if it has. A node that is both crashed and paused is down until both are over.
    /// `cause` is the possible cause.
    fn tell_whether_live(&mut self, node: NodeId, was_live: bool, cause: DownCause) {
        let event = match (was_live, self.nodes.is_live(node)) {
            (true, false) => NetworkEvent::NodeDown { node, cause },
            (false, true) => NetworkEvent::NodeUp { node },
            _ => return,
        };
        self.nodes.follow_network(&event);
        self.ahead.turn(self.now);
        self.tell(&event);
        self.chains_moved();
    }

    /// A crash is over: its node comes back, unless another crash in force keeps it down.
    pub(super) fn crash_over(&mut self, node: NodeId, keep_pool: bool) {
        if !self.is_kept_down(node) {
            self.come_back(node, keep_pool);
        } else if !keep_pool && !self.nodes.is_up(node) {
            self.faults.without_pool.insert(node);
        }
    }

    fn is_kept_down(&self, node: NodeId) -> bool {
        self.faults.state.iter().any(|state| match state {
            State::On { nodes, held: LastingEffect::Down { .. }, .. } => nodes.contains(&node),
            State::On { held: LastingEffect::ComeAndGo { down, .. }, .. } => down.contains(&node),
            _ => false,
        })
    }

    /// Starts new actors on the chain that the node had stored. Behaviours in force apply to the new actors, too.
    fn come_back(&mut self, node: NodeId, keep_pool: bool) {
        let keep_pool = !self.faults.without_pool.remove(&node) && keep_pool;
        if self.nodes.is_up(node) {
            return;
        }
        let was_live = self.nodes.is_live(node);
        self.nodes.come_back(node);
        if !keep_pool {
            self.tell(&NetworkEvent::PoolLost { node });
        }
        self.tell_whether_live(node, was_live, DownCause::Crash);
        let (tip, generation) = (self.nodes.tip(node).clone(), self.nodes.generation(node));
        let roles: &[Role] =
            if keep_pool { &[Role::Peer, Role::Delegate] } else { &[Role::Peer, Role::Pool, Role::Delegate] };
        for role in roles {
            let to = ActorId { node, role: *role };
            let actor = self.plan.actor_again(to, &tip, generation, self.network.links().given(node));
            self.queue.push(self.now, Item::Stimulus { to, stimulus: Stimulus::Begin(actor) });
        }
        let off: Vec<Spells> = self.faults.off_of(node).cloned().collect();
        for rounds in off {
            self.tell_switched(node, rounds, true);
        }
        let on = self.faults.behaviours.iter().filter(|(_, to, _)| to.node == node && roles.contains(&to.role));
        let on: Vec<(ActorId, Layer)> = on.map(|(_, to, layer)| (*to, layer.clone())).collect();
        for (to, layer) in on {
            self.tell_to_behave(to, layer);
        }
    }

    fn resume(&mut self, node: NodeId) {
        let was_live = self.nodes.is_live(node);
        let call = self.nodes.resume(node);
        self.tell_whether_live(node, was_live, DownCause::Pause);
        self.call(node, call);
    }

    /// Sets a node's clock to its own and applies the skews in force, in the order in which they began.
    fn set_right(&mut self, node: NodeId) {
        self.nodes.set_right(node);
        let mut skews = Vec::new();
        for (state, fault) in self.faults.state.iter().zip(&self.plan.faults) {
            if let (State::On { since, nodes, held: LastingEffect::Skewed }, FaultKind::ClockSkew(skew)) =
                (state, &fault.kind)
                && nodes.contains(&node)
            {
                skews.push((*since, skew.offset_ms.saturating_mul(1_000), skew.drift_ppm));
            }
        }
        skews.sort_by_key(|(since, ..)| *since);
        skews.into_iter().for_each(|(since, offset, drift)| self.nodes.skew(node, since, offset, drift));
    }

    // By a delegate, its relay or its pool.

    /// Gives the actors of a strategy their behaviours.
    fn behave(&mut self, index: usize, planned: &PlannedStrategy) -> LastingEffect {
        let setting = Setting::new(&self.plan, &self.names, self.best());
        let choices = Choices::new(self.draw_name(index));
        let mut of_actors = BTreeMap::<ActorId, u64>::new();
        for (to, behaviour) in planned.behaviours(&setting) {
            let number = of_actors.entry(to).or_default();
            let name = choices.at(&[to.role as u64, *number]).next_u64();
            *number += 1;
            let id = self.faults.next_layer;
            self.faults.next_layer += 1;
            let seed = self.anew.unwrap_or(self.plan.seeds).seed();
            let layer = Layer { id, kind: planned.name(), behaviour, seed, name, memory: None };
            self.faults.behaviours.push((index, to, layer.clone()));
            self.tell_to_behave(to, layer);
        }
        LastingEffect::Nothing
    }

    fn tell_to_behave(&mut self, to: ActorId, layer: Layer) {
        let peers = self.network.links().of(to.node).into();
        self.queue.push(self.now, Item::Stimulus { to, stimulus: Stimulus::Behave { layer, peers } });
    }

    /// The behaviours of a fault end.
    pub(super) fn cease(&mut self, index: usize) {
        let all = mem::take(&mut self.faults.behaviours);
        let (over, on): (Vec<_>, Vec<_>) = all.into_iter().partition(|(of, ..)| *of == index);
        self.faults.behaviours = on;
        for (_, to, Layer { id: layer, behaviour, .. }) in over {
            let spare = behaviour.spare_key().copied();
            self.queue.push(self.now, Item::Stimulus { to, stimulus: Stimulus::Cease { layer, spare } });
        }
    }

    /// Distributes the memory that a behaviour has written to its coalition. The writer receives it, too, in order with the writes of
    /// others at this instant, so that all read the same value in the end.
    pub(super) fn share(&mut self, layer: u32, value: &Arc<[u8]>) {
        let Some((fault, ..)) = self.faults.behaviours.iter().find(|(.., one)| one.id == layer) else { return };
        let fault = *fault;
        for (_, to, one) in self.faults.behaviours.iter_mut().filter(|(of, ..)| *of == fault) {
            one.memory = Some(value.clone());
            let stimulus = Stimulus::Share { layer: one.id, by: layer, value: value.clone() };
            self.queue.push(self.now, Item::Stimulus { to: *to, stimulus });
        }
    }

    /// Notes that a fault switches a node's delegate off.
    pub(super) fn note_off(&mut self, index: usize, node: NodeId, rounds: Spells) {
        self.faults.off.push((index, node, rounds));
    }

    /// Switches on the delegates that a fault has switched off in rounds for which `ends` holds.
    pub(super) fn switch_on(&mut self, index: usize, ends: impl Fn(&Spells) -> bool) {
        let all = mem::take(&mut self.faults.off);
        let (over, on): (Vec<_>, Vec<_>) = all.into_iter().partition(|(of, _, rounds)| *of == index && ends(rounds));
        self.faults.off = on;
        for (_, node, rounds) in over {
            self.tell_switched(node, rounds, false);
        }
    }

    pub(super) fn tell_switched(&mut self, node: NodeId, rounds: Spells, off: bool) {
        let to = ActorId { node, role: Role::Delegate };
        self.queue.push(self.now, Item::Stimulus { to, stimulus: Stimulus::Switch { rounds, off } });
    }
}

fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

saved!(struct Faults { state, behaviours, off, next_layer, without_pool });
saved!(enum State { 0 Ahead, 1 On { since, nodes, held }, 2 Over });
saved!(enum LastingEffect { 0 Nothing, 1 Down { keep_pool }, 2 Still, 3 Slowed(step), 4 Skewed, 5 ComeAndGo { name, keep_pool, down } });
