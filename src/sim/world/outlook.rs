//! All future inputs of the actors of a run, as seen between two instants.

use super::{Item, World, pending_events::Next};
use crate::{
    actors::{ActorId, Delegate, HostedActor, Input, Message, NodeId, Peer, Role, SimTime, Stimulus, Wake},
    sim::plan,
};
use std::collections::BTreeSet;

/// Observers look at the end of each slot whose number this divides.
const SLOTS_BETWEEN_LOOKS: u32 = 4;

/// A run between two instants: the queue and the inputs that wait at nodes, by actor, and the actors. It only reads.
pub struct Outlook<'w> {
    world: &'w World,
    actors: &'w [HostedActor],
    /// By the index of an actor, ascending.
    to_come: Vec<(usize, ExpectedInput)>,
    /// Nodes that will be called when they are free.
    called: BTreeSet<NodeId>,
}

/// Something that an actor will hear, if its node stays up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedInput {
    /// The true instant at which it is due. `None` if it was due and waits until the node is free.
    pub at: Option<SimTime>,
    pub what: Sort,
}

/// The sorts of inputs. Messages from peer to peer are left out, because no actor may rely on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Start,
    Wake(Wake),
    /// A message of an actor of the same node.
    Told,
}

impl Sort {
    fn of(input: &Input, to: ActorId) -> Option<Self> {
        match input {
            Input::Start => Some(Self::Start),
            Input::Wake(wake) => Some(Self::Wake(*wake)),
            Input::Message { from, .. } if from.node == to.node => Some(Self::Told),
            Input::Message { .. } | Input::Submit { .. } | Input::Reorganise(_) => None,
        }
    }
}

impl<'w> Outlook<'w> {
    pub(in crate::sim) fn new(world: &'w World, actors: &'w [HostedActor]) -> Self {
        let mut outlook = Self { world, actors, to_come: Vec::new(), called: BTreeSet::new() };
        for (at, next) in world.queue.of_nodes() {
            outlook.add(at, next);
        }
        for (to, input) in world.nodes.all_waiting() {
            if let Some(what) = Sort::of(input, *to) {
                outlook.to_come.push((plan::index(*to), ExpectedInput { at: None, what }));
            }
        }
        outlook.to_come.sort_unstable_by_key(|(index, _)| *index);
        outlook
    }

    fn add(&mut self, at: SimTime, next: Next<'_>) {
        let is_now = |to: ActorId, generation| self.world.nodes.generation(to.node) == generation;
        let (to, what) = match next {
            Next::Wake { wake, to, generation } if is_now(to, generation) => (to, Some(Sort::Wake(wake))),
            Next::Item(Item::Input { to, generation, input }) if is_now(*to, *generation) => {
                (*to, Sort::of(input, *to))
            }
            Next::Item(Item::Stimulus { to, stimulus }) => match stimulus {
                Stimulus::Input(input) => (*to, Sort::of(input, *to)),
                Stimulus::Begin(_) => (*to, Some(Sort::Start)),
                Stimulus::Behave { .. } | Stimulus::Cease { .. } | Stimulus::Share { .. } | Stimulus::Switch { .. } => {
                    return;
                }
            },
            Next::Item(Item::Free { node, generation }) => {
                if self.world.nodes.generation(*node) == *generation {
                    self.called.insert(*node);
                }
                return;
            }
            _ => return,
        };
        if let Some(what) = what {
            self.to_come.push((plan::index(to), ExpectedInput { at: Some(at), what }));
        }
    }

    /// The true instant.
    pub fn now(&self) -> SimTime {
        self.world.now
    }

    /// The nodes that have not crashed. Some of them may stand still.
    pub fn up(&self) -> impl Iterator<Item = NodeId> {
        (0..self.world.plan.nodes.len() as u32).map(NodeId).filter(|node| self.world.nodes.is_up(*node))
    }

    /// Returns true if the run has no faulty clock and no slow node, and can get none. Inputs are then heard at the instant at which they
    /// are due.
    pub fn is_timely(&self) -> bool {
        self.world.ahead.is_timely
    }

    /// The time that the clock of a node shows.
    pub fn local(&self, node: NodeId) -> SimTime {
        self.world.nodes.clock(node).local(self.world.now)
    }

    /// The first true instant at which a node's clock shows `local`.
    pub fn true_time(&self, node: NodeId, local: SimTime) -> SimTime {
        self.world.nodes.true_time(node, local)
    }

    /// Everything that an actor will hear, except messages of other nodes.
    pub fn to_come(&self, actor: ActorId) -> impl Iterator<Item = ExpectedInput> + Clone {
        let index = plan::index(actor);
        let first = self.to_come.partition_point(|(of, _)| *of < index);
        self.to_come[first..].iter().take_while(move |(of, _)| *of == index).map(|(_, to_come)| *to_come)
    }

    /// The nodes that are about to hear of a block or of another node's tip: such a message is under way to them, or they are behind with
    /// their inputs.
    pub fn about_to_hear(&self) -> BTreeSet<NodeId> {
        let tells = |message: &Message| {
            matches!(
                message,
                Message::Block(_)
                    | Message::Announcement(_)
                    | Message::Body { .. }
                    | Message::Blocks { .. }
                    | Message::CommonBlocks { .. }
                    | Message::Peers(_)
                    | Message::Status { .. }
                    | Message::HungUp
            )
        };
        let messages = self.world.under_way().filter(|(_, to, message)| to.role == Role::Peer && tells(message));
        let behind = self.up().filter(|node| self.world.nodes.is_behind(*node));
        messages.map(|(_, to, _)| to.node).chain(behind).collect()
    }

    /// Returns true if inputs wait on a node that does not stand still, and nothing will call it.
    pub fn is_forgotten(&self, node: NodeId) -> bool {
        self.world.nodes.is_live(node) && self.world.nodes.is_behind(node) && !self.called.contains(&node)
    }

    /// The peer of a node.
    pub fn peer(&self, node: NodeId) -> Option<&'w Peer> {
        self.actor(node, Role::Peer)?.peer()
    }

    /// The delegate of a node.
    pub fn delegate(&self, node: NodeId) -> Option<&'w Delegate> {
        self.actor(node, Role::Delegate)?.delegate()
    }

    /// The wake-up that releases a block of the node's delegate which a fault holds back.
    pub fn release(&self, node: NodeId) -> Option<Wake> {
        self.actor(node, Role::Delegate)?.release()
    }

    /// The outlook without the future input at index `place`, and the sort of that input. `None` beyond the last. For tests of checks that
    /// notice its absence.
    pub fn without(&self, place: usize) -> Option<(Sort, Self)> {
        let (_, lost) = *self.to_come.get(place)?;
        let mut to_come = self.to_come.clone();
        to_come.remove(place);
        Some((lost.what, Self { to_come, called: self.called.clone(), ..*self }))
    }

    fn actor(&self, node: NodeId, role: Role) -> Option<&'w HostedActor> {
        self.actors.get(plan::index(ActorId { node, role }))
    }
}

impl World {
    /// Returns true if an observer wants to look at the run now, between two instants. At the ends of slots, observers look only at every
    /// fourth one, because a phase that nothing ends is still there then.
    pub(in crate::sim) fn is_looked_at(&self) -> bool {
        let slots = self.plan.tree.slots();
        let slot = slots.slot(self.now.seconds());
        let is_slots_end = self.now == SimTime::from_seconds(slots.start(slot));
        self.onlookers && self.restless().is_none() && (!is_slots_end || slot.0.is_multiple_of(SLOTS_BETWEEN_LOOKS))
    }

    /// Shows the run to the observers that want to look, if a look is due.
    pub(in crate::sim) fn show(&mut self, actors: &[HostedActor]) {
        if !self.is_looked_at() {
            return;
        }
        let mut observers = std::mem::take(&mut self.observers);
        let outlook = Outlook::new(self, actors);
        observers.iter_mut().for_each(|observer| observer.look(&outlook));
        self.observers = observers;
    }
}
