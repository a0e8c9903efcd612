//! The beginning of a testnet: from the options, or from a snapshot.

use super::{
    Start, Up,
    network::{self, Secrets, UpNetwork},
    starts_from,
};
use crate::{
    cli::{Failure, replay},
    ledger::Link,
    protocol::Slot,
    report::session::{
        Session,
        state::{LoadedState, StateFile},
    },
    scenario::{Scenario, run::among_actors},
    sim::{Observer, Plan, SeedTree},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The network, and the run that it begins.
pub(crate) struct Beginning {
    pub network: UpNetwork,
    /// True if the scenario asks for modelled signatures.
    pub was_modelled: bool,
    pub plan: Plan,
    /// The description of the same run for files.
    pub session: Session,
    /// The moment from which the run goes on, if that is not its first instant.
    pub arrived: Option<LoadedState>,
}

impl Beginning {
    /// A beginning at a snapshot. The observers in `watching` see all earlier events.
    ///
    /// # Errors
    /// The file is not a snapshot, is damaged, or its network no longer exists.
    pub fn from_file(file: &Path, watching: Vec<Box<dyn Observer>>) -> Result<Self, Failure> {
        let wrong = |why| Failure::usage(format!("--from {why}"));
        let state = StateFile::open(file).map_err(wrong)?;
        let session = state.session().clone();
        let (network, plan) = replay::planned(file, &session)?;
        let desk = network.desk(&plan);
        let arrived = among_actors(state.arrive(&plan, &desk, watching)).map_err(wrong)?;
        Ok(Self { network, was_modelled: false, plan, session, arrived: Some(arrived) })
    }
}

impl Up {
    /// The beginning that the options describe.
    ///
    /// # Errors
    /// A file cannot be read or understood, or options do not fit together.
    pub(super) fn beginning(&self) -> Result<Beginning, Failure> {
        let (network, was_modelled) = self.network()?;
        let tip = self.chain.as_deref().map_or(Ok(network.tree.genesis().clone()), |file| network.import(file))?;
        let plan = self.plan(&network, tip)?;
        let session = self.session(&network.scenario, &plan)?;
        Ok(Beginning { network, was_modelled, plan, session, arrived: None })
    }

    /// The network of the options, and true if its scenario asks for modelled signatures.
    fn network(&self) -> Result<(UpNetwork, bool), Failure> {
        let secrets = self.secrets.as_deref().map(Secrets::load).transpose()?;
        let scenario = match &self.scenario {
            Some(file) => Scenario::load_with(file, &self.set),
            None => network::plain(secrets.as_ref().map_or(self.delegates, Secrets::nodes), self.gossip, &self.set),
        };
        let (scenario, was_modelled) = network::made_live(scenario.map_err(Failure::usage)?);
        let seeds = SeedTree::new(self.seed);
        let network = match (&self.network_dir, secrets, &self.secrets) {
            (Some(dir), Some(secrets), Some(file)) => UpNetwork::load(dir, secrets, file, scenario, seeds)?,
            _ => UpNetwork::generate(scenario, seeds)?,
        };
        Ok((network, was_modelled))
    }

    fn session(&self, scenario: &Scenario, plan: &Plan) -> Result<Session, Failure> {
        let absolute = |path: &Option<PathBuf>| {
            let absolute = path.as_ref().map(std::path::absolute).transpose();
            absolute.map_err(|why| Failure::usage(format!("the working folder: {why}")))
        };
        let start = plan.tree.slots().slot(plan.start.seconds()).0;
        Ok(Session {
            network_dir: absolute(&self.network_dir)?,
            secrets: absolute(&self.secrets)?,
            chain: absolute(&self.chain)?,
            ..Session::new(self.seed, scenario, start, plan.tree.config())
        })
    }

    /// Returns a plan that begins in the requested slot, or in the slot after `tip` if that is later.
    ///
    /// # Errors
    /// The requested time is before the first slot after genesis.
    fn plan(&self, network: &UpNetwork, tip: Arc<Link>) -> Result<Plan, Failure> {
        let slots = network.tree.slots();
        let first = slots.start(Slot(1));
        let slot = match self.start {
            Start::Genesis => Slot(1),
            Start::Now => slots.slot(slots.timestamp(wall_clock_ms())),
            Start::At(timestamp) if timestamp < first => {
                return Err(Failure::usage(format!("--start: found {timestamp}; {}", starts_from(first.0))));
            }
            Start::At(timestamp) => slots.slot(timestamp),
        };
        let earliest = slots.slot(tip.block().header.timestamp).0 + 1;
        Ok(network.plan(tip, Slot(slot.0.max(earliest))))
    }
}

#[expect(clippy::disallowed_methods, reason = "--start now asks for the wall clock")]
fn wall_clock_ms() -> i64 {
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(unix.as_millis()).unwrap_or(i64::MAX)
}
