//! The world a stage plays in: the clock and queue, the network, what goes wrong, and those who watch.
//!
//! ```text
//!   queue ──► a node's actor ──► effects ──► network ──► queue        world.rs, world/coming.rs
//!     │         ▲ local clock, paused, slow, down                     world/nodes.rs
//!     ├──► a fault begins or ends ──► network, nodes, deviations      world/faults.rs, world/agenda.rs, world/halt.rs
//!     └──► a client hands in transactions                             source.rs
//! ```

mod added;
mod agenda;
mod coming;
mod faults;
mod halt;
mod moment;
mod names;
mod nodes;
mod reorganise;

use super::{
    Plan, SeedTree, Tips,
    network::{Network, Route, Tally},
    plan,
    queue::Soon,
    source::{Poll, Source},
};
use crate::{
    actors::{
        ActorId, Effect, Event, Input, Message, NodeId, PoolError, RequestId, Role, SimTime, Stimulus, Submission,
        Wake, message::Transactions,
    },
    ledger::{BlockTree, Link},
    protocol::SignedTransaction,
};
use agenda::{Agenda, Entry};
use coming::{Arrival, Coming, Next};
use faults::Faults;
use halt::Ahead;
use nodes::{Freed, Nodes, NotNow, Reach};
use reorganise::PoolWatch;
use std::{collections::BTreeSet, mem, sync::Arc};

pub use added::{FaultState, FaultStatus};
pub use coming::{Copied, Kept, Waking};
pub use halt::HaltCause;
pub use moment::Moment;
pub use names::Names;

/// Someone who watches a run; may not change it.
pub trait Observer: Send {
    /// Something happened at a node.
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event);

    /// Something happened between nodes, or to one of them from outside. The trace digest leaves it out: it is the
    /// cause of events and not one of a node's own. Messages are told only to those who want them
    /// ([`Observer::wants_messages`]), faults to all.
    fn observe_network(&mut self, _now: SimTime, _event: &NetworkEvent<'_>) {}

    /// All that happened up to now has been told, and somebody may ask: for those who hand on what they gather. The inline
    /// stage rests at the end of each `run_until`, the ractor stage after each event.
    fn rest(&mut self) {}

    /// The clock has moved over a time in which nothing happened, and stands here.
    fn clock_at(&mut self, _now: SimTime) {}

    /// Whether [`NetworkEvent::Sent`] and [`NetworkEvent::Lost`] are wanted. There are millions of them. Asked once.
    fn wants_messages(&self) -> bool {
        false
    }

    /// An actor hears something, or does something because of what it heard last. Told to those who want it.
    fn observe_act(&mut self, _now: SimTime, _actor: ActorId, _act: &Act<'_>) {}

    /// Whether [`Observer::observe_act`] is wanted. Acts are more than messages. Asked once.
    fn wants_acts(&self) -> bool {
        false
    }
}

/// What an actor hears, and what it does. Each [`Act::Hears`] comes before all that the actor does because of it, events
/// ([`Observer::observe`]) among them, and no other actor acts between.
#[derive(Debug)]
pub enum Act<'a> {
    /// It hears something; its node's clock shows `local`.
    Hears { local: SimTime, what: Heard<'a> },
    /// It sends a message, whatever becomes of that.
    Sends { to: ActorId, message: &'a Message },
    /// It answers a client.
    Answers(&'a Submission),
}

/// What an actor hears.
#[derive(Debug)]
pub enum Heard<'a> {
    Input(&'a Input),
    /// [`Input::Message`], where that is shared.
    Message {
        from: ActorId,
        message: &'a Message,
    },
    /// [`Input::Wake`].
    Wake(Wake),
    /// Its node comes back, and this is a new actor.
    Begins,
    /// A fault makes it deviate from the protocol from now on, or no longer.
    Deviates {
        on: bool,
    },
}

/// What happens between nodes, or to a node from outside.
#[derive(Debug)]
pub enum NetworkEvent<'a> {
    /// A message left its sender and will arrive at the given instant.
    Sent { from: ActorId, to: ActorId, message: &'a Message, arrives: SimTime },
    /// A message left its sender and will never arrive.
    Lost { from: ActorId, to: ActorId, message: &'a Message },
    /// The fault of this index in the plan begins.
    FaultBegan { index: usize, kind: &'static str },
    /// The fault of this index in the plan ends.
    FaultEnded { index: usize, kind: &'static str },
    /// A node that was live is down from now on: it crashed, or stands still.
    NodeDown { node: NodeId, cause: DownCause },
    /// A node that was down is live again: nothing keeps it down any more.
    NodeUp { node: NodeId },
    /// A node has come back without the transactions that waited in its pool.
    PoolLost { node: NodeId },
    /// The run went back, or over, to another moment: a node that stood on `from` stands on `to` now, and these wait in its
    /// pool, in the order of arrival; `None` where both block and pool are those of before. Told of every node.
    Moved {
        node: NodeId,
        from: &'a Arc<Link>,
        to: &'a Arc<Link>,
        pending: Option<&'a [Arc<SignedTransaction>]>,
        /// The run begins there: what is between the two blocks has not happened in it.
        begins: bool,
    },
}

/// Why a node that was live is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownCause {
    Crash,
    Pause,
}

impl DownCause {
    /// The word in traces.
    pub fn word(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Pause => "pause",
        }
    }
}

/// What a stage hands to an actor next.
#[derive(Debug)]
pub struct Delivery {
    /// Index of the actor in [`Plan::actors`].
    pub index: usize,
    pub to: ActorId,
    /// What the node's clock shows.
    pub now: SimTime,
    pub what: What,
}

/// What an actor is handed.
#[derive(Debug)]
pub enum What {
    /// Something of its own, which the world keeps until it is fetched.
    Kept(Kept),
    /// What it asked to be woken for.
    Wake(Waking),
    /// A copy of a message from peer to peer, to be read where it lies and given back, or taken.
    Copy(Copied),
}

/// What waits in the queue.
#[derive(Clone, Debug)]
enum Item {
    /// For an actor, if its node is still the one it was when this was sent.
    Input {
        to: ActorId,
        generation: u32,
        input: Input,
    },
    /// For an actor, whatever its node is.
    Stimulus {
        to: ActorId,
        stimulus: Stimulus,
    },
    /// Sent later than its sender wanted.
    Post {
        from: ActorId,
        to: ActorId,
        message: Message,
    },
    /// An entry of the agenda is due.
    Begin(Entry),
    End(Entry),
    /// A source wants to be called.
    Poll(usize),
    /// A node on which something waits may be free, if it is still the one it was.
    Free {
        node: NodeId,
        generation: u32,
    },
}

/// Requests from a source have this bit; the rest is the source's index.
const FROM_SOURCE: u64 = 1 << 63;

/// Clock, queue and network of one run.
pub struct World {
    plan: Arc<Plan>,
    now: SimTime,
    queue: Coming,
    network: Network,
    nodes: Nodes,
    agenda: Agenda,
    faults: Faults,
    ahead: Ahead,
    names: Arc<Names>,
    sources: Vec<Option<Box<dyn Source>>>,
    observers: Vec<Box<dyn Observer>>,
    /// Some observer wants to hear of messages.
    tells_messages: bool,
    /// Some observer wants to hear of acts.
    tells_acts: bool,
    answers: Vec<(RequestId, Submission)>,
    /// Requests whose answers nobody waits for any more.
    abandoned: BTreeSet<RequestId>,
    /// Set while a reorganisation that was asked for goes on.
    pool_watch: Option<PoolWatch>,
    /// Kept for its room.
    arrivals: Vec<Arrival>,
    requests: u64,
    delivered: u64,
    /// Clients that begin draw from these, where the run draws from other streams by now than it began with.
    anew: Option<SeedTree>,
}

impl World {
    /// Bytes of a copy of a message that is under way.
    pub const COPY_BYTES: u64 = Coming::COPY_BYTES;
    /// Bytes that the world takes for a node, its wake-ups among them: of its peer two, of its delegate one.
    pub const NODE_BYTES: u64 = nodes::NODE_BYTES + 3 * (Coming::COPY_BYTES + size_of::<Wake>() as u64);

    /// The world of a plan at its first instant: every actor is about to start.
    pub fn new(plan: &Plan, actors: impl Iterator<Item = ActorId>, observers: Vec<Box<dyn Observer>>) -> Self {
        let mut queue = Coming::default();
        for to in actors {
            queue.push(plan.start, Item::Input { to, generation: 0, input: Input::Start });
        }
        let mut world = Self {
            now: plan.start,
            queue,
            network: plan.network(),
            nodes: Nodes::new(plan),
            agenda: Agenda::new(plan),
            faults: Faults::new(plan.faults.len()),
            ahead: Ahead::new(plan),
            names: Arc::new(Names::new(plan)),
            sources: plan.sources.iter().map(|_| None).collect(),
            tells_messages: observers.iter().any(|observer| observer.wants_messages()),
            tells_acts: observers.iter().any(|observer| observer.wants_acts()),
            observers,
            answers: Vec::new(),
            abandoned: BTreeSet::new(),
            pool_watch: None,
            arrivals: Vec::new(),
            requests: 0,
            delivered: 0,
            anew: None,
            plan: Arc::new(plan.clone()),
        };
        plan.sources.iter().for_each(|source| source.tally.reset());
        world.plan_agenda();
        world
    }

    /// Has somebody watch from now on.
    pub(super) fn watch(&mut self, observer: Box<dyn Observer>) {
        self.tells_messages |= observer.wants_messages();
        self.tells_acts |= observer.wants_acts();
        self.observers.push(observer);
    }

    /// The blocks of the network.
    pub fn tree(&self) -> &Arc<BlockTree> {
        &self.plan.tree
    }

    /// What the run began with, and the faults that came in since.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The names of the nodes.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The virtual instant.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// What keeps a node down now, a crash before a pause; `None` while it is live.
    pub fn down_cause(&self, node: NodeId) -> Option<DownCause> {
        match (self.nodes.is_up(node), self.nodes.is_live(node)) {
            (false, _) => Some(DownCause::Crash),
            (true, false) => Some(DownCause::Pause),
            (true, true) => None,
        }
    }

    /// Inputs delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// What became of messages on the way.
    pub fn tally(&self) -> Tally {
        self.network.tally()
    }

    /// When the next event is due.
    pub fn next_time(&self) -> Option<SimTime> {
        self.queue.next_time()
    }

    /// The next event for an actor due at `through` or before; the clock moves onto it.
    #[inline]
    pub(super) fn next(&mut self, through: SimTime) -> Option<Delivery> {
        self.next_foreseeing(through, None::<fn(usize, Option<NodeId>, Soon)>)
    }

    /// [`World::next`] that tells the index of an actor that will hear something soon, and of which node's, or that will
    /// be woken, if that is wanted.
    #[inline]
    pub(super) fn next_foreseeing(
        &mut self,
        through: SimTime,
        mut soon: Option<impl FnMut(usize, Option<NodeId>, Soon)>,
    ) -> Option<Delivery> {
        loop {
            let links = self.network.links();
            let soon = soon.as_mut().map(|soon| {
                |to: ActorId, from: Option<NodeId>, how| {
                    soon(plan::index(to), from, how);
                    // Who is woken sends.
                    if from.is_none() && how == Soon::Next {
                        links.prefetch(to.node);
                    }
                }
            });
            let (now, next) = self.queue.pop(through, soon)?;
            self.now = now;
            match next {
                Next::Copy { copy, to, generation } => {
                    let to = ActorId { node: to, role: Role::Peer };
                    match self.nodes.reach(to.node, generation, now) {
                        Reach::Now(local) => return Some(self.delivery(to, local, What::Copy(copy))),
                        Reach::Not(why) => {
                            let input = self.taken(copy);
                            self.not_now(why, to, input);
                        }
                    }
                }
                Next::Wake { wake, to, generation } => match self.nodes.reach(to.node, generation, now) {
                    Reach::Now(local) => return Some(self.delivery(to, local, What::Wake(wake))),
                    Reach::Not(why) => {
                        let input = Input::Wake(self.queue.woken(wake));
                        self.not_now(why, to, input);
                    }
                },
                Next::Item(kept) => {
                    if let Some(delivery) = self.item(kept) {
                        return Some(delivery);
                    }
                }
            }
        }
    }

    /// What is for an actor that hears it now stays where it is until the actor is called.
    fn item(&mut self, kept: Kept) -> Option<Delivery> {
        match *self.queue.look(&kept) {
            Item::Input { to, generation, .. } => match self.nodes.reach(to.node, generation, self.now) {
                Reach::Now(local) => return Some(self.delivery(to, local, What::Kept(kept))),
                Reach::Not(why) => {
                    if let Stimulus::Input(input) = self.queue.stimulus(kept) {
                        self.not_now(why, to, input);
                    }
                    return None;
                }
            },
            Item::Stimulus { to, .. } if self.nodes.is_up(to.node) => {
                let local = self.nodes.clock(to.node).local(self.now);
                return Some(self.delivery(to, local, What::Kept(kept)));
            }
            _ => {}
        }
        match self.queue.item(kept) {
            // A node that is down hears nothing; when it comes back, it is told anew what makes it deviate.
            Item::Input { .. } | Item::Stimulus { .. } => {}
            Item::Post { from, to, message } => {
                if self.nodes.is_up(from.node) {
                    self.send(from, to, &mut { message });
                }
            }
            Item::Begin(entry) => self.begin(entry),
            Item::End(entry) => self.end(entry),
            Item::Poll(index) => self.poll(index),
            Item::Free { node, generation } => return self.free(node, generation),
        }
        None
    }

    fn delivery(&mut self, to: ActorId, now: SimTime, what: What) -> Delivery {
        self.delivered += 1;
        if self.tells_acts {
            self.tell_heard(to, now, &what);
        }
        Delivery { index: plan::index(to), to, now, what }
    }

    fn tell_heard(&mut self, to: ActorId, local: SimTime, what: &What) {
        let what = match what {
            What::Wake(wake) => Heard::Wake(self.queue.wake(wake)),
            What::Copy(copy) => {
                let (from, message) = self.queue.copied(copy);
                Heard::Message { from, message }
            }
            What::Kept(kept) => match self.queue.look(kept) {
                Item::Input { input, .. } | Item::Stimulus { stimulus: Stimulus::Input(input), .. } => {
                    Heard::Input(input)
                }
                Item::Stimulus { stimulus: Stimulus::Begin(_), .. } => Heard::Begins,
                Item::Stimulus { stimulus: Stimulus::Deviate { on, .. }, .. } => Heard::Deviates { on: *on },
                // Nobody hears these.
                Item::Post { .. } | Item::Begin(_) | Item::End(_) | Item::Poll(_) | Item::Free { .. } => return,
            },
        };
        let act = Act::Hears { local, what };
        for observer in &mut self.observers {
            observer.observe_act(self.now, to, &act);
        }
    }

    fn tell_sent(&mut self, from: ActorId, to: ActorId, message: &Message) {
        for observer in &mut self.observers {
            observer.observe_act(self.now, from, &Act::Sends { to, message });
        }
    }

    fn tell_effect(&mut self, from: ActorId, effect: &Effect) {
        match effect {
            Effect::Send { to, message } => self.tell_sent(from, *to, message),
            Effect::SendToPeers { to, message } => {
                to.iter().for_each(|node| self.tell_sent(from, ActorId { node: *node, role: Role::Peer }, message));
            }
            Effect::Answer { submission, .. } => {
                for observer in &mut self.observers {
                    observer.observe_act(self.now, from, &Act::Answers(submission));
                }
            }
            // Events are told anyway; only a deviant sends later.
            Effect::SendAt { .. } | Effect::WakeAt { .. } | Effect::Observe(_) => {}
        }
    }

    /// What happens to an input that does not reach its node now.
    fn not_now(&mut self, why: NotNow, to: ActorId, input: Input) {
        match why {
            NotNow::Waits => {
                let call = self.nodes.wait(to, input);
                self.call(to.node, call);
            }
            NotNow::Gone => self.lost_with_its_node(input),
        }
    }

    /// Hands on what has waited longest on a node.
    fn free(&mut self, node: NodeId, generation: u32) -> Option<Delivery> {
        let Freed { to, input, local, again } = self.nodes.free(node, generation, self.now)?;
        self.call(node, again);
        let kept = self.queue.keep(Item::Input { to, generation, input });
        Some(self.delivery(to, local, What::Kept(kept)))
    }

    fn call(&mut self, node: NodeId, at: Option<SimTime>) {
        if let Some(at) = at {
            let generation = self.nodes.generation(node);
            self.queue.push(at.max(self.now), Item::Free { node, generation });
        }
    }

    /// What an actor hears, for it to take.
    pub(super) fn stimulus(&mut self, what: What) -> Stimulus {
        match what {
            What::Kept(kept) => self.queue.stimulus(kept),
            What::Wake(wake) => Stimulus::Input(Input::Wake(self.queue.woken(wake))),
            What::Copy(copy) => Stimulus::Input(self.taken(copy)),
        }
    }

    /// Who sent what, for an actor that reads it where it lies; `None` of anything but a message.
    pub(super) fn message(&self, what: &What) -> Option<(ActorId, &Message)> {
        match what {
            What::Kept(kept) => match self.queue.look(kept) {
                Item::Input { input: Input::Message { from, message }, .. } => Some((*from, message)),
                _ => None,
            },
            What::Copy(copy) => Some(self.queue.copied(copy)),
            What::Wake(_) => None,
        }
    }

    /// A message has been read.
    pub(super) fn heard(&mut self, what: What) {
        match what {
            What::Kept(kept) => drop(self.queue.item(kept)),
            What::Copy(copy) => self.queue.heard(copy),
            What::Wake(wake) => {
                self.queue.woken(wake);
            }
        }
    }

    /// A copy as an input of its own.
    fn taken(&mut self, copy: Copied) -> Input {
        let (from, message) = self.queue.taken(copy);
        Input::Message { from, message }
    }

    /// Moves the clock on where nothing is left to do before.
    pub(super) fn rest_until(&mut self, until: SimTime) {
        self.now = self.now.max(until);
        self.observers.iter_mut().for_each(|observer| observer.clock_at(self.now));
        self.rest();
    }

    /// Observers hand on what they have gathered.
    pub(super) fn rest(&mut self) {
        self.observers.iter_mut().for_each(|observer| observer.rest());
    }

    /// Carries out what an actor wants, in order.
    pub(super) fn absorb(&mut self, from: ActorId, effects: &mut Vec<Effect>) {
        // They are worked on where they lie: to move each out first takes longer than most of them.
        for effect in effects.iter_mut() {
            if self.tells_acts {
                self.tell_effect(from, effect);
            }
            match effect {
                Effect::Send { to, message } => self.send(from, *to, message),
                Effect::SendToPeers { to, message } => self.send_to_peers(from, to, message),
                Effect::SendAt { at, to, message } => {
                    let at = self.true_time(from.node, *at);
                    self.queue.push(at, Item::Post { from, to: *to, message: message.take() });
                }
                Effect::WakeAt { at, wake } => {
                    let at = self.true_time(from.node, *at);
                    let generation = self.nodes.generation(from.node);
                    self.queue.push_wake(at, from, generation, *wake);
                }
                Effect::Observe(event) => self.observe(from.node, event),
                Effect::Answer { request, submission } => self.answer(*request, mem::take(&mut **submission)),
            }
        }
        effects.clear();
    }

    /// Hands transactions in at a node's API, now. The answer comes with [`World::take_answer`].
    pub(super) fn submit(&mut self, node: NodeId, transactions: Transactions) -> RequestId {
        let request = RequestId(self.requests);
        self.requests += 1;
        self.hand_in(node, request, transactions);
        request
    }

    /// A peer hears a message now, whoever may have sent it.
    pub(super) fn say(&mut self, from: NodeId, to: NodeId, message: Message) {
        let [from, to] = [from, to].map(|node| ActorId { node, role: Role::Peer });
        let generation = self.nodes.generation(to.node);
        self.queue.push(self.now, Item::Input { to, generation, input: Input::Message { from, message } });
    }

    /// The answer to a request. A node that a fault holds up gives none at once: its client is told so, and what the node
    /// says later is said to nobody.
    pub(super) fn take_answer(&mut self, request: RequestId, transactions: &Transactions) -> Submission {
        match self.answers.iter().position(|(answered, _)| *answered == request) {
            Some(index) => self.answers.swap_remove(index).1,
            None => {
                self.abandoned.insert(request);
                unavailable(transactions, "The node does not answer.")
            }
        }
    }

    fn hand_in(&mut self, node: NodeId, request: RequestId, transactions: Transactions) {
        let to = ActorId { node, role: Role::Peer };
        let generation = self.nodes.generation(node);
        self.queue.push(self.now, Item::Input { to, generation, input: Input::Submit { request, transactions } });
    }

    /// The first true instant, from now on, at which a node's clock shows this.
    fn true_time(&self, node: NodeId, local: SimTime) -> SimTime {
        self.nodes.true_time(node, local).max(self.now)
    }

    fn observe(&mut self, node: NodeId, event: &Event) {
        self.nodes.rise(event);
        if self.agenda.is_waiting() {
            for due in self.agenda.observe(node, event, self.nodes.best(), &self.plan.tree) {
                self.schedule(self.now, due);
            }
        }
        if self.pool_watch.is_some() {
            self.watch_pool(node, event);
        }
        for observer in &mut self.observers {
            observer.observe(self.now, node, event);
        }
        self.nodes.stand(node, event);
        self.ahead.observe(event);
    }

    /// The message is taken, unless others that are under way say the same.
    fn send(&mut self, from: ActorId, to: ActorId, message: &mut Message) {
        let route = self.network.route(self.now, from.node, to.node, message);
        if self.tells_messages {
            self.tell_route(from, to, message, &route);
        }
        match route {
            Route::Lost => {}
            Route::Arrives(at) => self.arrive(at, from, to, message),
            Route::ArrivesAt(all) => all.into_iter().for_each(|at| self.arrive(at, from, to, &mut message.clone())),
        }
    }

    fn arrive(&mut self, at: SimTime, from: ActorId, to: ActorId, message: &mut Message) {
        let generation = self.nodes.generation(to.node);
        match (from.role, to.role) {
            (Role::Peer, Role::Peer) => {
                let to = to.node;
                self.queue.push_copies(from.node, message, &[Arrival { at, to, generation }]);
            }
            _ => {
                let input = Input::Message { from, message: message.take() };
                self.queue.push(at, Item::Input { to, generation, input });
            }
        }
    }

    fn send_to_peers(&mut self, from: ActorId, to: &[NodeId], message: &mut Message) {
        if from.role != Role::Peer {
            let peers = to.iter().map(|node| ActorId { node: *node, role: Role::Peer });
            return peers.for_each(|to| self.send(from, to, &mut message.clone()));
        }
        let mut arrivals = mem::take(&mut self.arrivals);
        for node in to {
            let route = self.network.route(self.now, from.node, *node, message);
            if self.tells_messages {
                self.tell_route(from, ActorId { node: *node, role: Role::Peer }, message, &route);
            }
            let generation = self.nodes.generation(*node);
            let arrival = |at| Arrival { at, to: *node, generation };
            match route {
                Route::Lost => {}
                Route::Arrives(at) => arrivals.push(arrival(at)),
                Route::ArrivesAt(all) => arrivals.extend(all.into_iter().map(arrival)),
            }
        }
        self.queue.push_copies(from.node, message, &arrivals);
        arrivals.clear();
        self.arrivals = arrivals;
    }

    fn tell_route(&mut self, from: ActorId, to: ActorId, message: &Message, route: &Route) {
        match route {
            Route::Lost => self.tell(&NetworkEvent::Lost { from, to, message }),
            Route::Arrives(arrives) => self.tell(&NetworkEvent::Sent { from, to, message, arrives: *arrives }),
            Route::ArrivesAt(all) => {
                for arrives in all {
                    self.tell(&NetworkEvent::Sent { from, to, message, arrives: *arrives });
                }
            }
        }
    }

    fn tell(&mut self, event: &NetworkEvent<'_>) {
        for observer in &mut self.observers {
            observer.observe_network(self.now, event);
        }
    }

    fn answer(&mut self, request: RequestId, submission: Submission) {
        if request.0 & FROM_SOURCE == 0 {
            if !self.abandoned.remove(&request) {
                self.answers.push((request, submission));
            }
            return;
        }
        let index = (request.0 & !FROM_SOURCE) as usize;
        self.plan.sources[index].tally.answered(&submission);
        if let Some(source) = &mut self.sources[index] {
            source.answered(self.now, &submission);
        }
    }

    /// A client that asked a node that is down is told so; everything else is lost.
    fn lost_with_its_node(&mut self, input: Input) {
        if let Input::Submit { request, transactions } = input {
            self.answer(request, unavailable(&transactions, "The node is down."));
        }
    }

    fn poll(&mut self, index: usize) {
        let tip = self.nodes.best().clone();
        let Some(source) = &mut self.sources[index] else { return };
        let Poll { submissions, again } = source.poll(self.now, &tip);
        for (node, transactions) in submissions {
            self.plan.sources[index].tally.submitted(transactions.len());
            self.hand_in(node, RequestId(FROM_SOURCE | index as u64), transactions);
        }
        if let Some(at) = again {
            self.queue.push(at.max(self.now), Item::Poll(index));
        }
    }

    /// The highest block any node has applied.
    pub fn best(&self) -> &Arc<Link> {
        self.nodes.best()
    }

    /// Where the nodes stand, and which of them are live.
    pub fn tips(&self) -> &Tips {
        self.nodes.tips()
    }
}

/// No transaction was looked at, for this reason.
fn unavailable(transactions: &Transactions, why: &'static str) -> Submission {
    let errors = transactions.iter().map(|transaction| (transaction.id(), PoolError::Unavailable(why))).collect();
    Submission { errors, ..Submission::default() }
}
