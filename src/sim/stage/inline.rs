//! One plain loop over one queue, no async at all: for runs, sweeps and property tests.

use crate::{
    actors::{
        ActorId, Effect, HostedActor, Message, NodeId, Peer, Role, SimTime,
        prefetch::{self, Prefetch, UpcomingInput},
    },
    ledger::codec::{Save, Saver},
    sim::{
        Observer, Outlook, Plan, SeedTree, World,
        network::script::Script,
        plan,
        queue::Soon,
        world::{Delivery, HandedEvent, Moment},
    },
};

/// A run in this thread.
pub struct InlineStage {
    world: World,
    actors: Vec<HostedActor>,
    effects: Vec<Effect>,
    /// True if the run has at least [`MANY`] actors, so that the processor waits for memory.
    many: bool,
}

/// Below this number of actors the processor's caches hold everything that each message needs.
const MANY: usize = 6_000;

impl InlineStage {
    /// A run at its first instant.
    pub fn new(plan: &Plan, observers: Vec<Box<dyn Observer>>) -> Self {
        let mut actors = plan.actors();
        let world = World::new(plan, &mut actors, observers);
        let actors: Vec<HostedActor> = actors.into_iter().map(|(_, actor)| actor).collect();
        Self { world, many: actors.len() >= MANY, actors, effects: Vec::new() }
    }

    /// A run that goes on from a moment of another, without observers.
    pub fn at(moment: &Moment) -> Self {
        let (world, actors) = moment.parts();
        Self { world, many: actors.len() >= MANY, actors, effects: Vec::new() }
    }

    /// All of the run as it is now.
    pub fn moment(&self) -> Moment {
        Moment::of(&self.world, self.actors.clone())
    }

    /// All of the run as it is now. Ends the run.
    pub fn into_moment(self) -> Moment {
        Moment::last_of(self.world, self.actors)
    }

    /// Appends all that decides what is ahead of the run, at the beginning of a slot.
    pub fn save_what_is_ahead(&self, out: &mut Saver) {
        self.world.save(out);
        self.actors.save(out);
    }

    /// Adds an observer from now on.
    pub fn watch(&mut self, observer: Box<dyn Observer>) {
        self.world.watch(observer);
    }

    /// Draws from the streams of another seed from now on. Earlier draws stay: keys, links and their latencies, clocks, and messages on
    /// their way.
    pub fn draw_anew(&mut self, seeds: SeedTree) {
        self.world.draw_anew(seeds);
        for (index, actor) in self.actors.iter_mut().enumerate() {
            let node = index / plan::ROLES.len();
            actor.draw_anew(
                || seeds.choices(&format!("anew/peer/{node}")),
                || seeds.number(&format!("anew/forger/{node}")),
            );
        }
    }

    /// Replaces all actors. Returns the previous ones.
    pub(super) fn exchange(&mut self, actors: Vec<HostedActor>) -> Vec<HostedActor> {
        std::mem::replace(&mut self.actors, actors)
    }

    /// Follows a caller's fates of single messages.
    pub fn follow(&mut self, script: Script) {
        self.world.follow(script);
    }

    /// Returns the caller's fates of single messages.
    pub fn script(&mut self) -> Option<&mut Script> {
        self.world.script()
    }

    /// The peer of a node, to look at.
    ///
    /// # Panics
    /// There is no node of this number.
    pub fn peer(&self, node: NodeId) -> &Peer {
        let hosted = &self.actors[plan::index(ActorId { node, role: Role::Peer })];
        hosted.peer().expect("the actors are in the order of the plan")
    }

    /// Returns the pending events. Call it between two instants; it visits all of them.
    pub fn outlook(&self) -> Outlook<'_> {
        Outlook::new(&self.world, &self.actors)
    }

    /// Delivers a message to the peer of a node now, with another node as its sender. For tests of how a node handles it.
    pub fn say(&mut self, from: NodeId, to: NodeId, message: Message) {
        self.world.say(from, to, message);
    }

    /// Has the world look after fewer inputs whether its clock moves.
    #[cfg(test)]
    pub(crate) fn look_every(&mut self, inputs: u64) {
        self.world.look_every(inputs);
    }

    /// Makes the peer of a node behave so from now on.
    #[cfg(test)]
    pub(crate) fn bend(
        &mut self,
        node: NodeId,
        layer: crate::actors::behaviour::Layer,
        peers: std::sync::Arc<[NodeId]>,
    ) {
        let peer = &mut self.actors[plan::index(ActorId { node, role: Role::Peer })];
        peer.take(self.world.now(), crate::actors::Stimulus::Behave { layer, peers }, &mut Vec::new());
    }

    /// Clock and queue of the run.
    pub fn world(&self) -> &World {
        &self.world
    }

    pub(super) fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// Plays all events due before `until`; the clock then stands there.
    pub fn run_until(&mut self, until: SimTime) {
        let through = until.just_before();
        while (0..self.world.inputs_until_look()).all(|_| self.play(through)) {
            self.world.watch_clock();
        }
        self.world.rest_until(until);
        self.world.show(&self.actors);
    }

    /// Tells the observers that the run ends here.
    pub fn end(&mut self) {
        self.world.tell_end(&self.actors);
    }

    /// Moves the clock on, over a time in which nothing is due.
    pub fn rest_until(&mut self, until: SimTime) {
        self.world.rest_until(until);
    }

    /// Plays one event due at `through` or before. Returns true if there was one. A reader may ask the observers after it.
    pub fn step(&mut self, through: SimTime) -> bool {
        let has_played = self.play(through);
        if has_played {
            self.world.watch_clock();
            self.world.rest();
        }
        has_played
    }

    /// Plays one event due at `through` or before, and says whether there was one.
    fn play(&mut self, through: SimTime) -> bool {
        let (actors, effects) = (&mut self.actors, &mut self.effects);
        let Some(Delivery { index, to, now, what }) = next(&mut self.world, actors, self.many, through) else {
            return false;
        };
        hand_over(&mut actors[index], now, what, effects);
        self.world.absorb(to, effects);
        true
    }
}

/// The next event due at `through` or before. With many actors, memory is fetched ahead of those that follow it.
fn next<'w>(world: &'w mut World, actors: &[HostedActor], many: bool, through: SimTime) -> Option<Delivery<'w>> {
    if !many {
        return world.next(through);
    }
    let soon = |index: usize, from: Option<NodeId>, soon| match soon {
        Soon::Far => prefetch::line(actors, index),
        Soon::Near => actors[index].fetch(UpcomingInput::Near { is_wake: from.is_none() }),
        Soon::Next => from.into_iter().for_each(|from| actors[index].fetch(UpcomingInput::Next { from })),
    };
    world.next_foreseeing(through, Some(soon))
}

/// Hands an input to an actor. Most inputs are messages to a peer, which reads them in place.
fn hand_over(actor: &mut HostedActor, now: SimTime, what: HandedEvent<'_>, effects: &mut Vec<Effect>) {
    if let Some(peer) = actor.reader()
        && let Some((from, message)) = what.message()
    {
        peer.read(now, from, message, effects);
    } else {
        actor.take(now, what.stimulus(), effects);
    }
}
