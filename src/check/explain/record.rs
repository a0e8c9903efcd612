//! The memory of a run: each step of an actor that changed something or carried a block, with its input, the sender of that input,
//! and the node's knowledge of its peers.
//!
//! A *step* is one input of one actor and all that came of it. Most steps are questions about a peer's tip and answers to
//! them. These are only counted. The others form a graph: a step comes after the step before it on the same node, and after
//! the step that sent its input. A decision is kept with its basis, the tips of the node's peers.

use crate::{
    actors::{ActorId, Event, Message, NodeId, Role, SimTime},
    ledger::{BlockTree, Link},
    protocol::{Block, BlockId, Height, TransactionId},
    sim::{Act, NetworkEvent, Observer, Plan, world::Heard},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

/// The number of steps that a record holds at most. A full one forgets its older half.
pub(super) const STEPS_MAX: usize = 400_000;

/// Remembers a run. Clones share what they remember.
#[derive(Clone)]
pub(super) struct Recorder(Arc<Mutex<Record>>);

/// The memory of a run.
pub(super) struct Record {
    pub(super) tree: Arc<BlockTree>,
    pub(super) steps: Vec<RecordedStep>,
    /// The number of steps before these, which are forgotten.
    pub(super) forgotten: usize,
    /// The tip of each node before the first of the steps.
    pub(super) first_tips: Vec<Arc<Link>>,
    steps_max: usize,
    /// The events of the network, in order.
    pub(super) network: Vec<Happening>,
    /// Messages sent so far, and inputs heard.
    pub(super) messages: u64,
    pub(super) heard: u64,
    nodes: Vec<NodeFacts>,
    open: Option<RecordedStep>,
    /// The steps that sent each message under way, by sender, receiver and content.
    under_way: BTreeMap<(ActorId, ActorId, MessageIdentity), Vec<usize>>,
    /// Lost blocks, by sender and block: the time of each loss, and the receiver that missed the block.
    pub(super) lost: BTreeMap<(NodeId, BlockId), Vec<(SimTime, NodeId)>>,
}

/// Facts about a node as the run goes on.
#[derive(Clone, Default)]
struct NodeFacts {
    last: Option<usize>,
    /// The tips that its peers gave.
    peers: BTreeMap<NodeId, (BlockId, Height)>,
    /// The last report of its relay about the network.
    network: Option<Quorum>,
    /// The step that moved its tip to each block.
    stood: BTreeMap<BlockId, usize>,
    forged: BTreeMap<BlockId, usize>,
}

/// The report of a relay to its delegate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quorum {
    pub(super) reached: u32,
    pub(super) in_quorum: u32,
}

/// One input of one actor, and what came of it.
#[derive(Clone)]
pub(super) struct RecordedStep {
    pub(super) at: SimTime,
    pub(super) actor: ActorId,
    pub(super) cause: Cause,
    pub(super) events: Vec<Event>,
    /// The step before on the same node.
    pub(super) before: Option<usize>,
    /// The known tips of the node's peers, and the steps that moved them there. Recorded only for a decision about peers.
    pub(super) peers: Vec<(NodeId, BlockId, Height, Option<usize>)>,
    pub(super) quorum: Option<Quorum>,
    /// Messages sent in the run before it.
    pub(super) messages: u64,
    carries: bool,
}

/// The cause of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A message, with its sender and the step that sent it.
    Message { from: ActorId, sent: Option<usize> },
    /// The transactions that a client submitted.
    Submitted(Vec<TransactionId>),
    /// A request of a client that controls the run. The node either forges a block of another branch, after the step that forged the
    /// block before it. Or it moves to that branch, after the step that forged its last block.
    Asked { after: Option<usize> },
    /// A timer of the actor, or another event of its own.
    Own,
}

/// An event of the network or of a whole node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    Fault { at: SimTime, index: usize, kind: &'static str, began: bool },
    Node { at: SimTime, node: NodeId, down: Option<&'static str> },
}

impl Happening {
    pub(super) fn at(&self) -> SimTime {
        match self {
            Self::Fault { at, .. } | Self::Node { at, .. } => *at,
        }
    }
}

/// The part of a message that identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MessageIdentity {
    Block(BlockId),
    Blocks(u64),
    Forged(BlockId),
    Transactions(TransactionId),
}

fn carried(message: &Message) -> Option<MessageIdentity> {
    match message {
        Message::Block(block) | Message::Body { block, .. } => Some(MessageIdentity::Block(block.id)),
        Message::Blocks { inquiry, .. } => Some(MessageIdentity::Blocks(inquiry.0)),
        Message::Forged(block) => Some(MessageIdentity::Forged(block.id)),
        Message::Transactions(some) | Message::Broadcast(some) => {
            some.first().map(|one| MessageIdentity::Transactions(one.id()))
        }
        Message::AddTransactions(added) => {
            added.transactions.first().map(|one| MessageIdentity::Transactions(one.id()))
        }
        _ => None,
    }
}

impl Recorder {
    /// Starts the record of a run that begins. It holds at most `steps_max` steps.
    pub(super) fn of_last(steps_max: usize, plan: &Plan) -> Self {
        Self(Arc::new(Mutex::new(Record {
            tree: plan.tree.clone(),
            steps: Vec::new(),
            forgotten: 0,
            first_tips: vec![plan.tip.clone(); plan.nodes.len()],
            steps_max,
            network: Vec::new(),
            messages: 0,
            heard: 0,
            nodes: vec![NodeFacts::default(); plan.nodes.len()],
            open: None,
            under_way: BTreeMap::new(),
            lost: BTreeMap::new(),
        })))
    }

    /// Returns the memory of the run.
    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        let mut record = self.0.lock().expect("no thread panics while holding it");
        record.close();
        record
    }

    /// Ends the open step, since an input from outside follows.
    pub(super) fn comes_in(&self) {
        self.lock().close();
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().expect("no thread panics while holding it")
    }
}

impl Record {
    fn close(&mut self) {
        let Some(mut step) = self.open.take() else { return };
        let submitted = matches!(step.cause, Cause::Submitted(_));
        if step.events.is_empty() && !step.carries && !submitted {
            return;
        }
        if self.steps.len() >= self.steps_max {
            self.forget(self.steps_max.div_ceil(2), &mut step);
        }
        let (index, known) = (self.steps.len(), &mut self.nodes[step.actor.node.0 as usize]);
        step.before = known.last.replace(index);
        for event in &step.events {
            match event {
                Event::BlockApplied(link) => {
                    known.stood.insert(link.id(), index);
                }
                Event::RolledBack { to, .. } => {
                    known.stood.insert(to.id(), index);
                }
                Event::BlockForged(block) => {
                    known.forged.insert(block.id, index);
                }
                _ => {}
            }
        }
        self.steps.push(step);
    }

    /// Forgets the first steps. Every index of a step, those of the open one included, counts from the first that is left.
    fn forget(&mut self, count: usize, open: &mut RecordedStep) {
        for step in self.steps.drain(..count) {
            let tip = &mut self.first_tips[step.actor.node.0 as usize];
            for event in step.events {
                match event {
                    Event::BlockApplied(link) => *tip = link,
                    Event::RolledBack { to, .. } => *tip = to,
                    _ => {}
                }
            }
        }
        self.forgotten += count;
        let moved = |index: &mut Option<usize>| *index = index.and_then(|index| index.checked_sub(count));
        for step in self.steps.iter_mut().chain([open]) {
            moved(&mut step.before);
            if let Cause::Message { sent: index, .. } | Cause::Asked { after: index } = &mut step.cause {
                moved(index);
            }
            step.peers.iter_mut().for_each(|(.., index)| moved(index));
        }
        let is_left = |index: &mut usize| {
            let left = index.checked_sub(count);
            *index = left.unwrap_or(0);
            left.is_some()
        };
        for known in &mut self.nodes {
            moved(&mut known.last);
            known.stood.retain(|_, index| is_left(index));
            known.forged.retain(|_, index| is_left(index));
        }
        self.under_way.retain(|_, steps| {
            steps.retain_mut(is_left);
            !steps.is_empty()
        });
    }

    fn hear(&mut self, now: SimTime, actor: ActorId, what: &Heard<'_>) {
        self.close();
        self.heard += 1;
        let (cause, carries) = match what {
            Heard::Message { from, message } => self.hear_message(actor, *from, message),
            Heard::Input(crate::actors::Input::Message { from, message }) => self.hear_message(actor, *from, message),
            Heard::Input(crate::actors::Input::Reorganise(to)) => {
                (Cause::Asked { after: self.forged_at(&to.tip.id()) }, true)
            }
            Heard::Input(crate::actors::Input::Submit { transactions, .. }) => {
                (Cause::Submitted(transactions.iter().map(|one| one.id()).collect()), true)
            }
            _ => (Cause::Own, false),
        };
        let messages = self.messages;
        let (events, peers) = (Vec::new(), Vec::new());
        self.open =
            Some(RecordedStep { at: now, actor, cause, events, before: None, peers, quorum: None, messages, carries });
    }

    fn hear_message(&mut self, to: ActorId, from: ActorId, message: &Message) -> (Cause, bool) {
        let known = &mut self.nodes[to.node.0 as usize];
        match message {
            Message::Status { tip } if from.node != to.node => {
                known.peers.insert(from.node, (tip.id, tip.header.height));
            }
            Message::NetworkState(state) => {
                known.network = Some(Quorum { reached: state.reached, in_quorum: state.in_quorum });
            }
            _ => {}
        }
        let carried = carried(message);
        let sent = carried.and_then(|carried| {
            let steps = self.under_way.get_mut(&(from, to, carried))?;
            // A message that arrives twice was sent once.
            if steps.len() > 1 { Some(steps.remove(0)) } else { steps.first().copied() }
        });
        (Cause::Message { from, sent }, carried.is_some() && from.node != to.node)
    }

    /// The step that forged a block.
    fn forged_at(&self, id: &BlockId) -> Option<usize> {
        self.nodes.iter().find_map(|known| known.forged.get(id)).copied()
    }

    /// Records a block of a requested branch. No input of an actor precedes it.
    fn note_asked(&mut self, now: SimTime, node: NodeId, block: &Arc<Block>) {
        self.close();
        let after = block.header.previous.and_then(|parent| self.forged_at(&parent));
        let after = after.filter(|step| matches!(self.steps[*step].cause, Cause::Asked { .. }));
        self.open = Some(RecordedStep {
            at: now,
            actor: ActorId { node, role: Role::Delegate },
            cause: Cause::Asked { after },
            events: vec![Event::BlockForged(block.clone())],
            before: None,
            peers: Vec::new(),
            quorum: None,
            messages: self.messages,
            carries: true,
        });
        self.close();
    }

    fn note(&mut self, now: SimTime, node: NodeId, event: &Event) {
        if let (None, Event::BlockForged(block)) = (&self.open, event) {
            return self.note_asked(now, node, block);
        }
        if matches!(event, Event::BlockReceived(_) | Event::PeerAdded(_) | Event::ForgerStarted { .. }) {
            return;
        }
        let Some(mut step) = self.open.take() else { return };
        if step.actor.node == node {
            let known = &self.nodes[node.0 as usize];
            if let Event::HealthChecked { .. } | Event::ForgingSuspended { .. } = event {
                let where_from = |peer: NodeId, id: &BlockId| self.nodes[peer.0 as usize].stood.get(id).copied();
                let peers = known.peers.iter();
                step.peers = peers.map(|(peer, (id, height))| (*peer, *id, *height, where_from(*peer, id))).collect();
            }
            if let Event::BlockForged(_) = event {
                step.quorum = known.network;
            }
            step.events.push(event.clone());
        }
        self.open = Some(step);
    }

    fn sent(&mut self, from: ActorId, to: ActorId, message: &Message) {
        self.messages += 1;
        let Some(carried) = carried(message) else { return };
        let known = &self.nodes[from.node.0 as usize];
        let step = match &mut self.open {
            Some(open) if open.actor == from => {
                open.carries = true;
                Some(self.steps.len())
            }
            // A node that keeps a block back sends it later, on its own.
            _ => match carried {
                MessageIdentity::Block(id) | MessageIdentity::Forged(id) => {
                    known.forged.get(&id).copied().or(known.last)
                }
                _ => known.last,
            },
        };
        if let Some(step) = step {
            self.under_way.entry((from, to, carried)).or_default().push(step);
        }
    }
}

impl Observer for Recorder {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.lock().note(now, node, event);
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut guard = self.lock();
        let record = &mut *guard;
        match event {
            NetworkEvent::Sent { from, to, message, .. } => record.sent(*from, *to, message),
            NetworkEvent::Lost { from, to, message: Message::Block(block) | Message::Body { block, .. } } => {
                record.messages += 1;
                record.lost.entry((from.node, block.id)).or_default().push((now, to.node));
            }
            NetworkEvent::Lost { .. } => record.messages += 1,
            NetworkEvent::FaultBegan { index, kind } => {
                record.network.push(Happening::Fault { at: now, index: *index, kind, began: true });
            }
            NetworkEvent::FaultEnded { index, kind } => {
                record.network.push(Happening::Fault { at: now, index: *index, kind, began: false });
            }
            NetworkEvent::NodeDown { node, cause } => {
                record.network.push(Happening::Node { at: now, node: *node, down: Some(cause.word()) });
            }
            NetworkEvent::NodeUp { node } => {
                record.nodes[node.0 as usize].peers.clear();
                record.network.push(Happening::Node { at: now, node: *node, down: None });
            }
            NetworkEvent::PoolLost { .. } | NetworkEvent::Moved { .. } => {}
        }
    }

    fn wants_messages(&self) -> bool {
        true
    }

    fn observe_act(&mut self, now: SimTime, actor: ActorId, act: &Act<'_>) {
        if let Act::Hears { what, .. } = act {
            self.lock().hear(now, actor, what);
        }
    }

    fn wants_acts(&self) -> bool {
        true
    }
}

impl Record {
    /// Marks every step that happened before the steps of `from`, or is one of them. It goes backwards over the senders of inputs,
    /// over earlier steps on the same node, and over the steps that moved peers to the tips that a decision found.
    pub(super) fn slice(&self, from: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut within = vec![false; self.steps.len()];
        let mut open: Vec<usize> = from.into_iter().filter(|index| *index < self.steps.len()).collect();
        while let Some(index) = open.pop() {
            if std::mem::replace(&mut within[index], true) {
                continue;
            }
            let step = &self.steps[index];
            open.extend(step.before);
            if let Cause::Message { sent: Some(sent), .. } | Cause::Asked { after: Some(sent) } = step.cause
                && sent < self.steps.len()
            {
                open.push(sent);
            }
            open.extend(step.peers.iter().filter_map(|(.., step)| *step).filter(|step| *step < index));
        }
        within
    }

    /// Returns true if steps before an instant are forgotten, and steps after it recorded.
    pub(super) fn has_forgotten(&self, before: SimTime) -> bool {
        self.forgotten > 0 && self.steps.last().is_some_and(|last| last.at > before)
    }

    /// Returns the other node whose peer sent the input of a step, if there is one.
    pub(super) fn supplier(&self, step: &RecordedStep) -> Option<NodeId> {
        match step.cause {
            Cause::Message { from, .. } if from.node != step.actor.node && from.role == Role::Peer => Some(from.node),
            _ => None,
        }
    }
}
