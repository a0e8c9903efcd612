//! Plays a scenario and collects what came of it.

use super::{
    file::Scenario,
    testnet::{Testnet, rules_for},
};
use crate::{
    actors::SimTime,
    ledger::Rules,
    protocol::{Height, Round, Slot},
    sim::{
        Digest, FaultKind, NetworkModel, NodePlan, Observer, Plan, SeedTree, TraceDigest,
        fault::{NodeRef, Nodes, Rounds},
        stage::{
            inline::InlineStage,
            ractor::{ActorDied, RactorStage},
        },
    },
};
use std::ops::RangeInclusive;

/// A chain without a block for as many slots as so many rounds have turns has stalled.
const IDLE_ROUNDS: u32 = 4;

/// Which stage hosts the actors; the outcome is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum StageKind {
    /// One plain loop in one thread.
    Inline,
    /// Every actor a ractor actor.
    #[default]
    Ractor,
}

/// What came of a run, beside what its observers saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Digest of all events.
    pub digest: Digest,
    pub events: u64,
    /// Inputs delivered to actors.
    pub delivered: u64,
    /// The instant the run ended at.
    pub end: SimTime,
}

impl Scenario {
    /// The network of this scenario under a seed.
    pub fn testnet(&self, seeds: SeedTree) -> Testnet {
        Testnet::generate(seeds, self.network.delegates)
    }

    /// The plan of a run on that network. It begins with the first slot after genesis.
    pub fn plan(&self, testnet: &Testnet, seeds: SeedTree) -> Plan {
        let rules = Rules { gossip: self.network.gossip, ..rules_for(testnet.delegates.len()) };
        let tree = testnet.tree(rules).expect("a generated genesis registers as many delegates as it needs");
        let nodes = testnet
            .delegates
            .iter()
            .map(|delegate| NodePlan {
                forger: Some(delegate.keys.clone()),
                offline: self.offline_rounds(&delegate.username),
            })
            .collect();
        let start = SimTime::from_seconds(tree.slots().start(Slot(1)));
        let tip = tree.genesis().clone();
        let network = NetworkModel { latency: self.network.latency, ..NetworkModel::default() };
        Plan { network, faults: self.faults.clone(), ..Plan::new(tree, tip, nodes, seeds, start) }
    }

    fn offline_rounds(&self, username: &str) -> Vec<RangeInclusive<Round>> {
        let names = |delegates: &Nodes| matches!(delegates, Nodes::List(list) if list.contains(&NodeRef::Delegate(username.to_owned())));
        let spans = self.faults.iter().filter_map(|fault| match &fault.kind {
            FaultKind::Offline(offline) if names(&offline.delegates) => offline.rounds.as_ref().map(Rounds::spans),
            _ => None,
        });
        spans.flatten().collect()
    }

    /// The height that ends the last round of the scenario.
    pub fn last_height(&self) -> Height {
        Height(self.rounds * self.network.delegates)
    }

    /// Plays the scenario slot by slot until `height` says that the last round is over, or until the chain has
    /// stalled. `progress` hears the height after each slot.
    ///
    /// # Errors
    /// On the ractor stage, an actor died.
    pub fn play(
        &self,
        plan: &Plan,
        stage: StageKind,
        mut observers: Vec<Box<dyn Observer>>,
        height: impl Fn() -> Height,
        mut progress: impl FnMut(Height),
    ) -> Result<Outcome, ActorDied> {
        let trace = TraceDigest::default();
        observers.push(Box::new(trace.clone()));
        let slots = plan.tree.slots();
        let first = slots.slot(plan.start.seconds());
        let ends = (first.0 + 1..=u32::MAX).map(|slot| SimTime::from_seconds(slots.start(Slot(slot))));
        let mut best = Height(0);
        let mut idle = 0;
        let mut go_on = |height: Height| {
            progress(height);
            idle = if height > best { 0 } else { idle + 1 };
            best = height;
            height < self.last_height() && idle < IDLE_ROUNDS * self.network.delegates
        };
        let (delivered, end) = match stage {
            StageKind::Inline => {
                let mut stage = InlineStage::new(plan, observers);
                for end in ends {
                    stage.run_until(end);
                    if !go_on(height()) {
                        break;
                    }
                }
                (stage.world().delivered(), stage.world().now())
            }
            StageKind::Ractor => on_current_thread(async {
                let mut stage = RactorStage::spawn(plan, observers).await.expect("each run has names of its own");
                for end in ends {
                    stage.run_until(end).await?;
                    if !go_on(height()) {
                        break;
                    }
                }
                let result = (stage.world().delivered(), stage.world().now());
                stage.stop().await;
                Ok(result)
            })?,
        };
        Ok(Outcome { digest: trace.digest(), events: trace.events(), delivered, end })
    }
}

/// Runs a future to its end on a runtime of one thread, whose order is always the same.
pub fn on_current_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("the operating system gives a process one event loop").block_on(future)
}
