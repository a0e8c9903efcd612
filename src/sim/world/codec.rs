//! A moment as bytes, and back.

use super::{Moment, World, faults::State};
use crate::{
    actors::HostedActor,
    ledger::{
        Link,
        codec::{LoadError, Loader, Save, Saver},
    },
    sim::{Plan, fault::AddedFault, source::Counts, strategy},
};
use std::sync::Arc;

impl Moment {
    /// The moment as bytes, and the blocks of the tree that they name.
    pub fn to_bytes(&self) -> (Vec<u8>, Vec<Arc<Link>>) {
        let mut out = Saver::new(self.world.tree());
        self.save(&mut out);
        out.finish()
    }

    /// [`Moment::load`] of [`Moment::to_bytes`].
    ///
    /// # Errors
    /// The bytes are none of such a moment.
    pub fn from_bytes(bytes: Vec<u8>, plan: &Plan, added: &[AddedFault]) -> Result<Self, LoadError> {
        let mut from = plan.loader(bytes);
        let moment = Self::load(&mut from, plan, added)?;
        from.finish()?;
        Ok(moment)
    }

    /// Appends it.
    pub fn save(&self, out: &mut Saver) {
        let Self { world, tallies, actors } = self;
        world.save(out);
        tallies.save(out);
        actors.save(out);
    }

    /// Reads a moment of a run that began with `plan` and received the faults `added`, in this order.
    ///
    /// # Errors
    /// The bytes are none of such a moment.
    pub fn load(from: &mut Loader, plan: &Plan, added: &[AddedFault]) -> Result<Self, LoadError> {
        // Loading a behaviour needs its kind, and the first read of the list registers the kinds.
        strategy::kinds();
        let world = World::load(from, plan, added)?;
        let (tallies, actors) = (Vec::<Counts>::load(from)?, Vec::<HostedActor>::load(from)?);
        let wanted = plan.nodes.len() * crate::sim::plan::ROLES.len();
        match (actors.len() == wanted, tallies.len() == world.plan.sources.len()) {
            (true, true) => Ok(Self { world, tallies, actors }),
            (false, _) => Err(from.wrong("number of actors", actors.len())),
            (_, false) => Err(from.wrong("number of clients", tallies.len())),
        }
    }
}

impl World {
    pub(in crate::sim) fn save(&self, out: &mut Saver) {
        let Self {
            now,
            queue,
            network,
            processors,
            nodes,
            agenda,
            faults,
            ahead,
            sources,
            abandoned,
            pool_watch,
            requests,
            delivered,
            anew,
            added,
            // Made again from the plan and the inputs.
            plan: _,
            names: _,
            // Observers are added anew.
            observers: _,
            tells_messages: _,
            tells_acts: _,
            onlookers: _,
            // Empty between two events.
            answers: _,
            witness: _,
            // A run that goes on in another process counts and looks anew.
            events: _,
            clock_watch: _,
            arrivals: _,
        } = self;
        added.save(out);
        faults.save(out);
        now.save(out);
        queue.save(out);
        network.save(out);
        nodes.save(out);
        agenda.save(out);
        ahead.save(out);
        out.number(sources.len() as u64);
        for source in sources {
            source.is_some().save(out);
            if let Some(source) = source {
                source.save(out);
            }
        }
        abandoned.save(out);
        pool_watch.save(out);
        requests.save(out);
        if out.ahead_of().is_none() {
            delivered.save(out);
        }
        anew.save(out);
        if let Some(processors) = processors {
            processors.save(out);
        }
    }

    fn load(from: &mut Loader, plan: &Plan, added: &[AddedFault]) -> Result<Self, LoadError> {
        let mut world = Self::new(&plan.apart(), &mut [], Vec::new());
        world.added = Save::load(from)?;
        world.faults = Save::load(from)?;
        world.add_again(from, added)?;
        world.now = Save::load(from)?;
        world.queue = Save::load(from)?;
        world.network.go_on(from)?;
        world.nodes = Save::load(from)?;
        world.agenda = Save::load(from)?;
        world.ahead = Save::load(from)?;
        let sources = from.number()?;
        if sources != world.plan.sources.len() as u64 {
            return Err(from.wrong("number of clients", sources));
        }
        world.sources = (0..world.plan.sources.len()).map(|_| None).collect();
        for index in 0..world.plan.sources.len() {
            if bool::load(from)? {
                let mut source = (world.plan.sources[index].make)();
                source.go_on(from)?;
                world.sources[index] = Some(source);
            }
        }
        world.abandoned = Save::load(from)?;
        world.pool_watch = Save::load(from)?;
        world.requests = Save::load(from)?;
        world.delivered = Save::load(from)?;
        world.anew = Save::load(from)?;
        if let Some(processors) = &mut world.processors {
            processors.go_on(from)?;
        }
        Ok(world)
    }

    /// Adds the faults that came in, and the clients that carry them out, to the plan again.
    fn add_again(&mut self, from: &Loader, added: &[AddedFault]) -> Result<(), LoadError> {
        if added.len() != self.added.len() || self.faults.states().len() != self.plan.faults.len() + added.len() {
            return Err(from.wrong("number of faults", self.added.len()));
        }
        for (AddedFault { fault, clients }, (id, best)) in added.iter().zip(self.added.clone()) {
            if let Some(make) = clients {
                // Clients that have begun need that block no more, because their saved state has all that they took
                // from it.
                let has_begun = self.faults.states().get(id).is_none_or(|state| *state != State::Ahead);
                let best = from.tree().link(&best).or_else(|| has_begun.then(|| from.tree().genesis().clone()));
                let best = best.ok_or_else(|| from.wrong("fault whose clients can be made", id))?;
                let source = make(&self.plan.faults, &best);
                source.tally.reset();
                Arc::make_mut(&mut self.plan).sources.push(source);
            }
            Arc::make_mut(&mut self.plan).faults.push(fault.clone());
        }
        Ok(())
    }
}
