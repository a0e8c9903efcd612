//! The world at one instant, to which a run can go back.

use super::{FaultState, FaultStatus, NetworkEvent, World};
use crate::{
    actors::{HostedActor, NodeId, SimTime},
    protocol::{Height, SignedTransaction},
    sim::{Fault, SeedTree, network::script::Script, plan, source::Counts, tips::Tips},
};
use std::{mem, sync::Arc};

/// Everything of a run at one instant: clock, queue, network, faults, clients, every actor and every random stream. Blocks
/// are shared with the run.
#[derive(Clone)]
pub struct Moment {
    pub(super) world: World,
    /// By source, the counts of its transactions by outcome.
    pub(super) tallies: Vec<Counts>,
    /// In the order of [`crate::sim::Plan::actors`].
    pub(super) actors: Vec<HostedActor>,
}

impl Moment {
    /// The instant between two events at which a world and its actors are.
    pub fn of(world: &World, actors: Vec<HostedActor>) -> Self {
        Self::last_of(world.clone(), actors)
    }

    /// The last moment of a run, which does not go on.
    pub fn last_of(world: World, actors: Vec<HostedActor>) -> Self {
        let tallies = world.plan.sources.iter().map(|source| source.tally.counts()).collect();
        Self { world: world.unwatched(), tallies, actors }
    }

    /// The time on its clock.
    pub fn now(&self) -> SimTime {
        self.world.now
    }

    /// Inputs delivered to actors before it.
    pub fn delivered(&self) -> u64 {
        self.world.delivered
    }

    /// The tips of its nodes.
    pub fn tips(&self) -> &Tips {
        self.world.tips()
    }

    /// The least height of all nodes, live or down.
    pub fn lowest(&self) -> Height {
        self.tips().all().map(|tip| tip.height()).min().unwrap_or_default()
    }

    /// Its actors.
    pub fn actors(&self) -> &[HostedActor] {
        &self.actors
    }

    /// Returns a separate world without observers, and its actors.
    pub fn parts(&self) -> (World, Vec<HostedActor>) {
        let mut world = self.world.clone();
        if !self.tallies.is_empty() {
            let sources = &mut Arc::make_mut(&mut world.plan).sources;
            sources.iter_mut().zip(&self.tallies).for_each(|(source, counts)| source.tally = counts.into());
        }
        (world, self.actors.clone())
    }

    /// An estimate of its bytes, without data that others share, from the number and sizes of its parts.
    pub fn bytes(&self) -> usize {
        self.world.queue.bytes() + self.actors.iter().map(HostedActor::bytes).sum::<usize>() + size_of::<World>()
    }

    /// The connected peers of each node, ascending.
    pub fn peers(&self) -> Vec<Vec<NodeId>> {
        let peers = self.actors.iter().filter_map(HostedActor::peer);
        peers.map(|peer| peer.connected().collect()).collect()
    }

    /// The transactions that wait in a node's pool.
    pub fn pending(&self, node: NodeId) -> Vec<Arc<SignedTransaction>> {
        plan::pool_of(&self.actors, node)
    }
}

impl Clone for World {
    /// The same world, without observers.
    fn clone(&self) -> Self {
        Self {
            plan: self.plan.clone(),
            now: self.now,
            queue: self.queue.clone(),
            network: self.network.clone(),
            processors: self.processors.clone(),
            nodes: self.nodes.clone(),
            agenda: self.agenda.clone(),
            faults: self.faults.clone(),
            ahead: self.ahead.clone(),
            names: self.names.clone(),
            sources: self.sources.clone(),
            observers: Vec::new(),
            tells_messages: false,
            tells_acts: false,
            onlookers: false,
            answers: self.answers.clone(),
            abandoned: self.abandoned.clone(),
            pool_watch: self.pool_watch.clone(),
            witness: None,
            arrivals: Vec::new(),
            requests: self.requests,
            delivered: self.delivered,
            clock_watch: self.clock_watch,
            events: self.events,
            anew: self.anew,
            added: self.added.clone(),
        }
    }
}

impl World {
    fn unwatched(self) -> Self {
        let (tells_messages, tells_acts, onlookers) = (false, false, false);
        Self { observers: Vec::new(), tells_messages, tells_acts, onlookers, ..self }
    }

    /// Draws from the streams of another seed from now on: messages, faults, clients, nodes that come back. Messages on their way stay.
    /// Actors receive their streams separately.
    pub(in crate::sim) fn draw_anew(&mut self, seeds: SeedTree) {
        Arc::make_mut(&mut self.plan).seeds = seeds;
        self.network.draw_anew(seeds);
        self.faults.draw_anew(seeds.seed());
        self.anew = Some(seeds);
        for index in 0..self.sources.len() {
            self.source_draws_anew(index);
        }
    }

    /// Follows a caller's fates of single messages.
    pub(in crate::sim) fn follow(&mut self, script: Script) {
        self.network.follow(script);
    }

    /// Returns the caller's fates of single messages.
    pub(in crate::sim) fn script(&mut self) -> Option<&mut Script> {
        self.network.script()
    }

    /// Gives a client the streams from which the run draws now.
    pub(super) fn source_draws_anew(&mut self, index: usize) {
        if let (Some(seeds), Some(source)) = (self.anew, &mut self.sources[index]) {
            source.draw_anew(seeds.choices(&format!("anew/{}", self.plan.sources[index].name)));
        }
    }

    /// Goes back, or over, to a moment of this run. Observers stay, and receive the differences; `was` are the actors that the run had
    /// until now. With `begins`, nothing has happened in the run yet.
    pub(in crate::sim) fn become_as(&mut self, moment: &Moment, was: &[HostedActor], begins: bool) {
        let mut left = mem::replace(self, moment.world.clone());
        self.observers = mem::take(&mut left.observers);
        (self.tells_messages, self.tells_acts) = (left.tells_messages, left.tells_acts);
        self.onlookers = left.onlookers;
        if !moment.tallies.is_empty() {
            let sources = &mut Arc::make_mut(&mut self.plan).sources;
            for ((source, left), counts) in sources.iter_mut().zip(&left.plan.sources).zip(&moment.tallies) {
                source.tally = left.tally.clone();
                source.tally.set(counts);
            }
        }
        self.tell_faults(&left);
        for node in (0..self.plan.nodes.len() as u32).map(NodeId) {
            let (from, to) = (left.nodes.tip(node).clone(), self.nodes.tip(node).clone());
            let pending = moment.pending(node);
            let had = plan::pool_of(was, node);
            let same = had.len() == pending.len() && had.iter().zip(&pending).all(|(a, b)| a.id() == b.id());
            // Equal pools can look different on different chains, because a block's transactions stay in a pool until it hears of the
            // block.
            let pending = (!same || !from.is(&to)).then_some(&*pending);
            self.tell(&NetworkEvent::Moved { node, from: &from, to: &to, pending, begins });
            match (left.nodes.is_live(node), self.down_cause(node)) {
                (true, Some(cause)) => self.tell(&NetworkEvent::NodeDown { node, cause }),
                (false, None) => self.tell(&NetworkEvent::NodeUp { node }),
                _ => {}
            }
        }
        self.rest_until(self.now);
    }

    /// Reports the faults that are in force only now, and those that were in force only before. Another branch of the run may have given
    /// the same number to another fault. Each beginning is reported with its instant.
    fn tell_faults(&mut self, left: &Self) {
        let (before, now): (Vec<_>, Vec<_>) = (left.in_force().collect(), self.in_force().collect());
        for (index, _, fault) in before.iter().filter(|in_force| !now.contains(in_force)) {
            self.tell(&NetworkEvent::FaultEnded { index: *index, kind: fault.kind.name() });
        }
        for (index, since, fault) in now.iter().filter(|in_force| !before.contains(in_force)) {
            let began = NetworkEvent::FaultBegan { index: *index, kind: fault.kind.name() };
            self.observers.iter_mut().for_each(|observer| observer.observe_network(*since, &began));
        }
    }

    /// The faults in force, by their numbers, and since when.
    fn in_force(&self) -> impl Iterator<Item = (usize, SimTime, Fault)> {
        self.faults().filter_map(|FaultStatus { id, fault, state }| match state {
            FaultState::InForce { since } => Some((id, since, fault)),
            FaultState::Waiting | FaultState::Over => None,
        })
    }
}
