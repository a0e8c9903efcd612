//! The world in which a stage plays: clock, queue, network, faults and observers.
//!
//! ```text
//!   queue ──► a node's actor ──► effects ──► network ──► queue        world/{coming,delivery,sending,intake}.rs
//!     │         ▲ local clock, paused, slow, down                     world/nodes.rs
//!     ├──► a fault begins or ends ──► network, nodes, behaviours      world/{faults,offline,agenda,halt}.rs
//!     └──► a client hands in transactions                             source.rs, world/requests.rs
//! ```

mod additions;
mod agenda;
mod churn;
mod clock_watch;
mod codec;
mod delivery;
mod faults;
mod halt;
mod intake;
mod moment;
mod nodes;
mod observer;
mod offline;
mod outlook;
#[cfg(test)]
mod overlaps;
mod pending_events;
mod places;
mod reorganise;
mod requests;
mod sending;
mod submissions;

use super::{
    Names, Plan, SeedTree, Tips,
    network::{MessageNetwork, Tally},
    processor::Processors,
    source::Source,
};
use crate::{
    actors::{
        ActorId, Effect, Event, HostedActor, Input, Message, NodeId, RequestId, SimTime, Stimulus, Submission,
        TransactionPool,
    },
    ledger::{BlockTree, Link, codec::saved},
    protocol::BlockId,
};
use agenda::{Agenda, Entry};
use faults::Faults;
use halt::HaltFacts;
use intake::{Intake, UnsentAnswer};
use nodes::Nodes;
use pending_events::{Arrival, PendingEvents};
use reorganise::PoolWatch;
use std::{collections::BTreeSet, mem, sync::Arc};

pub use additions::{FaultState, FaultStatus};
use clock_watch::ClockWatch;
pub use clock_watch::INSTANT_LIMIT;
pub use delivery::Delivery;
pub use halt::HaltCause;
pub use moment::Moment;
pub use observer::{Act, DownCause, Heard, NetworkEvent, Observer};
pub use outlook::{ExpectedInput, Outlook, Sort};
pub use pending_events::HandedEvent;

/// An event in the queue.
#[derive(Clone, Debug)]
enum Item {
    /// An input for an actor, if its node is still of this generation.
    Input {
        to: ActorId,
        generation: u32,
        input: Input,
    },
    /// A stimulus for an actor, of whatever generation its node is.
    Stimulus {
        to: ActorId,
        stimulus: Stimulus,
    },
    /// A message that a deviating sender sends later.
    Post {
        from: ActorId,
        to: ActorId,
        message: Message,
    },
    /// The end of the time in which a post waits for its answer, after it reached a node that stood still.
    Answerless {
        from: ActorId,
        to: ActorId,
    },
    /// An entry of the agenda is due.
    Begin(Entry),
    End(Entry),
    /// A source wants to be called.
    Poll(usize),
    /// The end of an up or down phase of a node with churn. `stays` is the number of earlier phases.
    Turn {
        fault: usize,
        node: NodeId,
        stays: u32,
    },
    /// The instant at which a node with waiting inputs may be free, if it is still of this generation.
    Free {
        node: NodeId,
        generation: u32,
    },
    /// A message that has reached its receiver's downlink or processor.
    Intake(Box<Intake>),
    /// The rates of messages that share uplinks and downlinks change.
    Departures,
    /// An answer with blocks is done.
    Answer(Box<UnsentAnswer>),
}

/// Clock, queue and network of one run.
pub struct World {
    plan: Arc<Plan>,
    now: SimTime,
    queue: PendingEvents,
    network: MessageNetwork,
    /// The processors of all nodes, if blocks take time.
    processors: Option<Box<Processors>>,
    nodes: Nodes,
    agenda: Agenda,
    faults: Faults,
    ahead: HaltFacts,
    names: Arc<Names>,
    sources: Vec<Option<Box<dyn Source>>>,
    observers: Vec<Box<dyn Observer>>,
    /// True if an observer wants messages.
    tells_messages: bool,
    /// True if an observer wants acts.
    tells_acts: bool,
    /// True if an observer wants to look at the run.
    onlookers: bool,
    answers: Vec<(RequestId, Submission)>,
    /// Requests whose clients have gone.
    abandoned: BTreeSet<RequestId>,
    /// The pool of the observed node during a requested reorganisation.
    pool_watch: Option<PoolWatch>,
    /// The events of nodes after a submission; set for this instant only.
    witness: Option<Vec<(NodeId, Event)>>,
    /// Kept for its allocated memory.
    arrivals: Vec<Arrival>,
    requests: u64,
    delivered: u64,
    clock_watch: ClockWatch,
    /// Events that the observers have got.
    events: u64,
    /// The seeds for clients that begin, if the run now draws from other streams than those it began with.
    anew: Option<SeedTree>,
    /// The added faults, each with the highest block at that time.
    added: Vec<(usize, BlockId)>,
}

impl World {
    /// The world of a plan at its first instant: every actor is about to start.
    pub fn new(plan: &Plan, actors: &mut [(ActorId, HostedActor)], observers: Vec<Box<dyn Observer>>) -> Self {
        let mut queue = PendingEvents::default();
        for (to, _) in &*actors {
            queue.push(plan.start, Item::Input { to: *to, generation: 0, input: Input::Start });
        }
        let network = plan.network();
        let (nodes, classes) = (Nodes::new(plan, network.classes()), network.classes());
        let processors =
            Processors::new(plan.nodes.len(), plan.network.processor.as_ref(), classes, plan.tree.schedule());
        let mut world = Self {
            now: plan.start,
            queue,
            network,
            processors: processors.map(Box::new),
            nodes,
            agenda: Agenda::new(plan),
            faults: Faults::new(plan.faults.len()),
            ahead: HaltFacts::new(plan),
            names: Arc::new(plan.names()),
            sources: plan.sources.iter().map(|_| None).collect(),
            tells_messages: observers.iter().any(|observer| observer.wants_messages()),
            tells_acts: observers.iter().any(|observer| observer.wants_acts()),
            onlookers: observers.iter().any(|observer| observer.looks()),
            observers,
            answers: Vec::new(),
            abandoned: BTreeSet::new(),
            pool_watch: None,
            witness: None,
            arrivals: Vec::new(),
            requests: 0,
            delivered: 0,
            clock_watch: ClockWatch::every(INSTANT_LIMIT),
            events: 0,
            anew: None,
            added: Vec::new(),
            plan: Arc::new(plan.clone()),
        };
        plan.sources.iter().for_each(|source| source.tally.reset());
        world.switch_off_from_the_start(actors);
        world.plan_agenda();
        world
    }

    /// Adds an observer from now on.
    pub(super) fn watch(&mut self, observer: Box<dyn Observer>) {
        self.tells_messages |= observer.wants_messages();
        self.tells_acts |= observer.wants_acts();
        self.onlookers |= observer.looks();
        self.observers.push(observer);
    }

    /// The blocks of the network.
    pub fn tree(&self) -> &Arc<BlockTree> {
        &self.plan.tree
    }

    /// The plan that the run began with, and the faults that came in since.
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

    /// The cause that keeps a node down now, a crash before a pause; `None` while it is live.
    pub fn down_cause(&self, node: NodeId) -> Option<DownCause> {
        match (self.nodes.is_up(node), self.nodes.is_live(node)) {
            (false, _) => Some(DownCause::Crash),
            (true, false) => Some(DownCause::Pause),
            (true, true) => None,
        }
    }

    /// Events so far that a digest counts, since the run began in this process.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Inputs delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The tally of the messages under way: lost, doubled and others.
    pub fn tally(&self) -> Tally {
        self.network.tally()
    }

    /// The time of the next event.
    pub fn next_time(&self) -> Option<SimTime> {
        self.queue.next_time()
    }

    /// Moves the clock to `until`. Nothing may be due before.
    pub(super) fn rest_until(&mut self, until: SimTime) {
        self.now = self.now.max(until);
        self.observers.iter_mut().for_each(|observer| observer.clock_at(self.now));
        self.rest();
    }

    /// Reports the end of the run and the content of its pools to the observers.
    pub(super) fn tell_end(&mut self, actors: &[HostedActor]) {
        let pools = actors.iter().filter_map(HostedActor::pool);
        let pending = pools.flat_map(TransactionPool::pending).map(|transaction| transaction.id()).collect();
        self.observers.iter_mut().for_each(|observer| observer.run_ended(&pending));
    }

    /// Observers hand on what they have gathered.
    pub(super) fn rest(&mut self) {
        self.observers.iter_mut().for_each(|observer| observer.rest());
    }

    /// Carries out what an actor wants, in order.
    pub(super) fn absorb(&mut self, from: ActorId, effects: &mut Vec<Effect>) {
        // Handles the effects in place, because moving one takes longer than most of them.
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
                Effect::Share { layer, value } => self.share(*layer, value),
            }
        }
        effects.clear();
    }

    /// The first true instant, from now on, at which a node's clock shows `local`.
    fn true_time(&self, node: NodeId, local: SimTime) -> SimTime {
        self.nodes.true_time(node, local).max(self.now)
    }

    fn observe(&mut self, node: NodeId, event: &Event) {
        self.nodes.rise(event);
        if self.agenda.is_waiting() {
            for due in self.agenda.observe(node, event) {
                self.schedule(self.now, due);
            }
        }
        if self.pool_watch.is_some() {
            self.watch_pool(node, event);
        }
        if let Some(seen) = &mut self.witness {
            seen.push((node, event.clone()));
        }
        self.events += 1;
        for observer in &mut self.observers {
            observer.observe(self.now, node, event);
        }
        self.nodes.stand(node, event);
        if let Event::BlockApplied(_) = event {
            self.chains_moved();
        }
        self.ahead.observe(self.now, node, event, &self.plan.tree.rules().node);
    }

    /// The highest block any node has applied.
    pub fn best(&self) -> &Arc<Link> {
        self.nodes.best()
    }

    /// The tips of the nodes, and which of them are live.
    pub fn tips(&self) -> &Tips {
        self.nodes.tips()
    }
}

saved!(enum Item {
    0 Input { to, generation, input },
    1 Stimulus { to, stimulus },
    2 Post { from, to, message },
    3 Begin(entry),
    4 End(entry),
    5 Poll(source),
    6 Free { node, generation },
    7 Answerless { from, to },
    8 Intake(intake),
    9 Departures,
    10 Answer(answer),
    11 Turn { fault, node, stays },
});
