//! Simulations in your own tests: build a network, say what must hold, play.
//!
//! ```
//! use dposlab::check::Simulation;
//!
//! let mut run = Simulation::builder().delegates(5).rounds(3).seed(7).build()?;
//! run.always("no node falls two blocks behind", |network| network.lowest().0 + 2 >= network.height().0);
//! run.eventually("the third round begins", 3, |network| network.round().0 == 3);
//! let outcome = run.play()?;
//! assert_eq!(outcome.height.0, 15);
//!
//! let mut hopeless = Simulation::builder().delegates(5).rounds(2).build()?;
//! hopeless.always("the chain is no higher than 3", |network| network.height().0 <= 3);
//! let broken = hopeless.play().unwrap_err().to_string();
//! assert!(broken.starts_with("'the chain is no higher than 3' does not hold"), "{broken}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::{
    Finding, Sometimes, Watch, assertions, check_all,
    liveness::{deviants, may_forge_in_vain},
    swarm::set,
};
use crate::{
    actors::{NodeId, SimTime},
    files,
    ledger::{BlockTree, Link, State, rules::Gossip},
    protocol::{Height, RoundNumber, Slot, crypto::CryptoMode},
    scenario::{
        Action, Assertion, Closing, Ended, Judge, Scenario, ScenarioError, StallRule, Testnet, Verdict,
        file::SourcePosition,
        section::{Change, NetworkSection},
        workload::Workload,
    },
    sim::{
        Digest, Fault, Latency, Observer, Plan, SeedTree, Tips, TraceDigest,
        network::{
            AccessRate, ByClass, Classes, Clocks, Compact, LinkLatency, Overhead, Regions, Reordering, Sharing,
            Topology,
        },
        processor::ProcessorPlan,
        stage::inline::InlineStage,
    },
};
use std::{
    fmt,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Configures a simulation. Defaults: 51 delegates on a full mesh, 20 to 100 ms apart, no faults, the rules of the reference, 3 rounds,
/// seed 1.
#[derive(Clone, Debug)]
pub struct Builder {
    scenario: Scenario,
    seed: u64,
    counterexample: Option<PathBuf>,
}

/// A simulation that is about to be played.
pub struct Simulation {
    scenario: Scenario,
    plan: Plan,
    testnet: Testnet,
    judge: Judge,
    counterexample: Option<PathBuf>,
    always: Vec<Claim>,
    eventually: Vec<(Claim, u32)>,
}

type Holds = Box<dyn Fn(&SlotEnd<'_>) -> bool>;

struct Claim {
    name: String,
    holds: Holds,
}

/// The network at the end of a slot.
pub struct SlotEnd<'a> {
    tree: &'a BlockTree,
    tips: Tips,
    best: Arc<Link>,
    now: SimTime,
    testnet: &'a Testnet,
}

/// The result of a simulation in which everything held.
#[derive(Clone, Debug)]
pub struct SimulationResult {
    /// Height of the highest chain.
    pub height: Height,
    /// Slots that passed.
    pub slots: u32,
    /// The way the run ended, as `dposlab run` says it.
    pub ended: Ended,
    /// The digest of all events until then, which `dposlab run` prints for the same scenario and seed.
    pub digest: Digest,
    /// The number of times that each interesting event happened.
    pub sometimes: Sometimes,
    /// Findings about the nodes' conduct. The rules themselves may be their cause.
    pub findings: Vec<Finding>,
}

/// A run in which something does not hold.
#[derive(Debug)]
pub struct Counterexample {
    /// The property that does not hold.
    pub broken: BrokenProperty,
    /// The seed of the run, which a scenario file does not hold.
    pub seed: u64,
    /// The scenario of the run. A broken invariant is asserted in it. Its description names a broken claim in Rust.
    pub scenario: Scenario,
    /// The file that holds the scenario, if [`Builder::counterexample`] asked for one, or why it could not be written.
    pub file: Option<Result<PathBuf, String>>,
}

/// The property that a run broke.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BrokenProperty {
    /// A claim of [`Simulation::always`].
    #[error("'{name}' does not hold in slot {slot} at height {height}")]
    Always {
        /// The name of the claim.
        name: String,
        /// The slot at whose end it does not hold.
        slot: Slot,
        /// Height of the highest live node.
        height: Height,
    },
    /// A claim of [`Simulation::eventually`].
    #[error("'{name}' did not come to hold within {rounds} rounds")]
    Eventually {
        /// The name of the claim.
        name: String,
        /// The rounds' worth of slots that it had.
        rounds: u32,
    },
    /// An assertion of the scenario.
    #[error("{0}")]
    Assertion(Verdict),
    /// An invariant of every chain.
    #[error("{finding}")]
    Invariant {
        /// The name of the invariant.
        name: &'static str,
        /// The block, and what is wrong with it.
        finding: String,
    },
}

impl Counterexample {
    /// The run of this scenario and seed, written to a file if one is named.
    fn new(broken: BrokenProperty, mut scenario: Scenario, seed: u64, file: Option<PathBuf>) -> Self {
        scenario.description = format!("breaks with seed {seed}: {broken}");
        if let BrokenProperty::Invariant { name, .. } = &broken {
            scenario.assertions.push(Assertion::always(format!("invariant {name}")));
        }
        let file = file.map(|file| {
            let written = files::create(&file).and_then(|mut to| to.write_all(scenario.to_toml().as_bytes()));
            match written {
                Ok(()) => Ok(file),
                Err(why) => Err(format!("{}: {why}", file.display())),
            }
        });
        Self { broken, seed, scenario, file }
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; seed {}", self.broken, self.seed)?;
        match &self.file {
            Some(Ok(file)) => write!(f, "; dposlab run {} --seed {}", file.display(), self.seed),
            Some(Err(why)) => write!(f, "; its file cannot be written: {why}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Counterexample {}

impl Simulation {
    /// Returns a builder with the default settings.
    pub fn builder() -> Builder {
        let scenario = Scenario {
            version: 1,
            description: String::new(),
            include: Vec::new(),
            rounds: 3,
            stall: None,
            time_limit_seconds: None,
            max_events: None,
            crypto: CryptoMode::default(),
            network: NetworkSection::default(),
            rules: toml::Table::new(),
            faults: Vec::new(),
            actions: Vec::new(),
            workloads: Vec::new(),
            agents: Vec::new(),
            assertions: Vec::new(),
        };
        Builder { scenario, seed: 1, counterexample: None }
    }

    /// Adds a claim that must hold at the end of every slot.
    pub fn always(&mut self, name: impl Into<String>, holds: impl Fn(&SlotEnd<'_>) -> bool + 'static) {
        self.always.push(Claim { name: name.into(), holds: Box::new(holds) });
    }

    /// Adds a claim that must hold at the end of some slot, within `within_rounds` rounds' worth of slots from the start.
    pub fn eventually(
        &mut self,
        name: impl Into<String>,
        within_rounds: u32,
        holds: impl Fn(&SlotEnd<'_>) -> bool + 'static,
    ) {
        self.eventually.push((Claim { name: name.into(), holds: Box::new(holds) }, within_rounds));
    }

    /// The generated network: its delegates and accounts with their keys.
    pub fn testnet(&self) -> &Testnet {
        &self.testnet
    }

    /// The scenario that is played.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Plays as `dposlab run` does: all rounds, or until the chain halts, stalls or meets its time limit. The run continues for as long
    /// as a claim may still come to hold. Each block is checked against the step invariants, and the highest chain at the end of each
    /// round against all invariants.
    ///
    /// # Errors
    /// The first property that does not hold, with the scenario that shows it.
    pub fn play(mut self) -> Result<SimulationResult, Box<Counterexample>> {
        let file = self.counterexample.take();
        self.run().map_err(|broken| {
            let (scenario, seed) = (self.scenario.clone(), self.plan.seeds.seed());
            Box::new(Counterexample::new(broken, scenario, seed, file))
        })
    }

    fn run(&mut self) -> Result<SimulationResult, BrokenProperty> {
        let Self { scenario, plan, testnet, judge, always, eventually, .. } = self;
        let (seats, slots) = (scenario.round_slots(), plan.tree.slots());
        let watch = Watch::new(
            plan.tree.clone(),
            &plan.tip,
            plan.nodes.len(),
            &deviants(scenario),
            &may_forge_in_vain(scenario),
        );
        let trace = TraceDigest::default();
        let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(watch.clone()), Box::new(trace.clone())];
        observers.extend(judge.observer());
        let mut stage = InlineStage::new(plan, observers);
        let first = slots.slot(plan.start.seconds()).0;
        let mut closing = Closing::new(scenario, plan);
        let mut ended = None;
        for slot in first + 1.. {
            let now = SimTime::from_seconds(slots.start(Slot(slot)));
            stage.run_until(now);
            let network = SlotEnd::of(&plan.tree, &watch, now, testnet);
            invariants_hold(&watch, &network)?;
            if let Some(claim) = always.iter().find(|claim| !(claim.holds)(&network)) {
                return Err(BrokenProperty::Always {
                    name: claim.name.clone(),
                    slot: Slot(slot - 1),
                    height: network.height(),
                });
            }
            eventually.retain(|(claim, _)| !(claim.holds)(&network));
            if let Some((claim, rounds)) =
                eventually.iter().find(|(_, rounds)| u64::from(slot - first) > u64::from(*rounds) * u64::from(seats))
            {
                return Err(BrokenProperty::Eventually { name: claim.name.clone(), rounds: *rounds });
            }
            if ended.is_none()
                && let Some(how) = closing.look(now, stage.world(), true)
            {
                let broken = judge.verdicts(now, how).into_iter().find(Verdict::is_broken);
                broken.map_or(Ok(()), |verdict| Err(BrokenProperty::Assertion(verdict)))?;
                ended = Some((how, trace.digest()));
            }
            let waits =
                eventually.iter().any(|(_, rounds)| u64::from(slot - first) <= u64::from(*rounds) * u64::from(seats));
            if let Some((ended, digest)) = ended.filter(|_| !waits) {
                let (height, mut seen) = (network.height(), watch.seen());
                seen.close(scenario, &stage.world().tally());
                let (sometimes, findings) = (seen.sometimes().clone(), seen.findings().to_vec());
                return Ok(SimulationResult { height, slots: slot - first, ended, digest, sometimes, findings });
            }
        }
        unreachable!("a time limit or the stall rule ends every run")
    }
}

/// The conduct of nodes is reported and not judged, because the test may be about the rules themselves.
fn invariants_hold(watch: &Watch, network: &SlotEnd<'_>) -> Result<(), BrokenProperty> {
    let of_step = |name: &str| super::STEP_INVARIANTS.iter().any(|invariant| invariant.name == name);
    if let Some(finding) = watch.seen().findings().iter().find(|one| of_step(one.invariant)) {
        return Err(BrokenProperty::Invariant { name: finding.invariant, finding: finding.to_string() });
    }
    if !network.tree.schedule().begins(network.best.height().next()) {
        return Ok(());
    }
    let broken =
        |found: super::Violation| BrokenProperty::Invariant { name: found.invariant, finding: found.to_string() };
    check_all(network.tree, &network.best).map_err(broken)
}

impl<'a> SlotEnd<'a> {
    fn of(tree: &'a BlockTree, watch: &Watch, now: SimTime, testnet: &'a Testnet) -> Self {
        let tips = watch.seen().tips().clone();
        // The first of equals.
        let highest = tips.of_live().map(|(_, tip)| tip).rev().max_by_key(|tip| tip.height());
        let best = highest.unwrap_or(tips.winning()).clone();
        Self { tree, tips, best, now, testnet }
    }

    /// Height of the highest live node; that of the last winning tip while no node is live.
    pub fn height(&self) -> Height {
        self.best.height()
    }

    /// Height of the lowest live node; [`SlotEnd::height`] while no node is live.
    pub fn lowest(&self) -> Height {
        self.tips.heights().map_or(self.height(), |(least, _)| least)
    }

    /// The round of the highest live node's last block.
    pub fn round(&self) -> RoundNumber {
        self.tree.schedule().at(self.height()).round
    }

    /// The virtual instant.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// The block that a node stands on. For a node that is down, the block that it had stored.
    pub fn tip(&self, node: NodeId) -> Option<&Arc<Link>> {
        self.tips().nth(node.0 as usize)
    }

    /// The blocks all nodes stand on, in their order.
    pub fn tips(&self) -> impl ExactSizeIterator<Item = &Arc<Link>> + DoubleEndedIterator {
        self.tips.all()
    }

    /// Returns true if a node is neither crashed nor paused.
    pub fn is_live(&self, node: NodeId) -> bool {
        self.tips.is_live(node)
    }

    /// Returns true if at least one node is live and all live nodes stand on one block.
    pub fn is_converged(&self) -> bool {
        self.tips.is_converged()
    }

    /// The state after the highest live node's last block.
    pub fn state(&self) -> State {
        self.tree.applied(&self.best).state.clone()
    }

    /// The usernames of the delegates that forge the next block's round, heaviest first.
    pub fn active(&self) -> Vec<String> {
        let state = self.state();
        let name = |member: &crate::ledger::round::Member| {
            state.delegate_of(&member.public_key).map(|delegate| delegate.username.to_string())
        };
        state.round().members.iter().filter_map(name).collect()
    }

    /// The generated network: its delegates and accounts with their keys.
    pub fn testnet(&self) -> &Testnet {
        self.testnet
    }

    /// All blocks.
    pub fn tree(&self) -> &BlockTree {
        self.tree
    }
}

impl Builder {
    /// Sets the number of active delegates, each on a node of its own.
    pub fn delegates(mut self, count: u32) -> Self {
        self.scenario.network.delegates = count;
        self
    }

    /// Sets the number of registered delegates beyond the active ones, each on a node of its own.
    pub fn standby(mut self, count: u32) -> Self {
        self.scenario.network.standby = count;
        self
    }

    /// Sets the number of nodes without a delegate.
    pub fn relays(mut self, count: u32) -> Self {
        self.scenario.network.relays = count;
        self
    }

    /// Sets the number of rounds to play, including the round of the genesis block.
    pub fn rounds(mut self, count: u32) -> Self {
        self.scenario.rounds = count;
        self
    }

    /// Sets the seed of all keys, latencies and choices.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the reward of each forged block, in arktoshi.
    pub fn reward(mut self, arktoshi: u64) -> Self {
        self.scenario.network.reward = Some(arktoshi);
        self
    }

    /// Sets the length of a slot in seconds. Default: 8.
    pub fn block_time(mut self, seconds: u32) -> Self {
        self.scenario.network.block_time_s = seconds;
        self
    }

    /// Adds a change of reward or delegates at a height. Changes at lower heights must be added before it.
    pub fn milestone(mut self, change: Change) -> Self {
        self.scenario.network.milestones.push(change);
        self
    }

    /// The way blocks travel.
    pub fn gossip(mut self, gossip: Gossip) -> Self {
        self.scenario.network.gossip = Some(gossip);
        self
    }

    /// Replaces the whole network, for example by one that proptest drew.
    pub fn network(mut self, network: NetworkSection) -> Self {
        self.scenario.network = network;
        self
    }

    /// Sets the time that messages take.
    pub fn latency(mut self, latency: Latency) -> Self {
        self.scenario.network.model.latency = latency;
        self
    }

    /// Sets which nodes are connected.
    pub fn topology(mut self, topology: Topology) -> Self {
        self.scenario.network.model.topology = topology;
        self
    }

    /// Nodes in regions, with latencies between them in place of [`Builder::latency`].
    pub fn regions(mut self, regions: Regions) -> Self {
        self.scenario.network.model.regions = Some(regions);
        self
    }

    /// Nodes in classes, with an uplink, a downlink, a processor and clocks for each.
    pub fn classes(mut self, classes: Classes) -> Self {
        self.scenario.network.model.classes = Some(classes);
        self
    }

    /// A link with a latency of its own.
    pub fn link(mut self, link: LinkLatency) -> Self {
        self.scenario.network.model.links.push(link);
        self
    }

    /// Sets the share of messages that are lost for good, from 0 to 1.
    pub fn loss(mut self, part: f64) -> Self {
        self.scenario.network.model.loss = part;
        self
    }

    /// Sets the share of messages that arrive twice, from 0 to 1.
    pub fn duplication(mut self, part: f64) -> Self {
        self.scenario.network.model.duplication = part;
        self
    }

    /// Messages that others overtake.
    pub fn reordering(mut self, reordering: Reordering) -> Self {
        self.scenario.network.model.reordering = Some(reordering);
        self
    }

    /// Bytes a second that each link carries in each direction, one message after the other.
    pub fn bandwidth(mut self, bytes_per_second: u64) -> Self {
        self.scenario.network.model.bandwidth = Some(bytes_per_second);
        self
    }

    /// Bytes per second that each node sends over all its links together.
    pub fn uplink(mut self, rate: AccessRate) -> Self {
        self.scenario.network.model.uplink = Some(rate);
        self
    }

    /// Bytes per second that each node receives over all its links together.
    pub fn downlink(mut self, rate: AccessRate) -> Self {
        self.scenario.network.model.downlink = Some(rate);
        self
    }

    /// The way in which messages share uplinks and downlinks.
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        self.scenario.network.model.sharing = sharing;
        self
    }

    /// Fixed times of messages beside latencies and rates.
    pub fn overhead(mut self, overhead: Overhead) -> Self {
        self.scenario.network.model.overhead = Some(overhead);
        self
    }

    /// Compact blocks, where blocks are announced.
    pub fn compact(mut self, compact: Compact) -> Self {
        self.scenario.network.model.compact = Some(compact);
        self
    }

    /// The smallest size of a block on the wire and in a processor, in bytes.
    pub fn block_bytes(mut self, bytes: u32) -> Self {
        self.scenario.network.model.block_bytes = bytes;
        self
    }

    /// Sets the time that nodes take to validate, forge and serve blocks, for all nodes or by class.
    pub fn processor(mut self, processor: impl Into<ProcessorPlan>) -> Self {
        self.scenario.network.model.processor = Some(processor.into());
        self
    }

    /// Sets the errors of the nodes' clocks, for all nodes or by class.
    pub fn clocks(mut self, clocks: impl Into<ByClass<Clocks>>) -> Self {
        self.scenario.network.model.clocks = Some(clocks.into());
        self
    }

    /// Sets the treatment of signatures. Default: real. A modelled signature costs one hash.
    pub fn crypto(mut self, crypto: CryptoMode) -> Self {
        self.scenario.crypto = crypto;
        self
    }

    /// The reference's rules with its bugs mended.
    pub fn corrected(self) -> Self {
        self.rule("base", "corrected")
    }

    /// A rule of all nodes by its dotted name, such as `node.zero_rollback_is_random`.
    pub fn rule(mut self, name: &str, value: impl Into<toml::Value>) -> Self {
        set(&mut self.scenario.rules, name, value);
        self
    }

    /// Adds a fault: something that goes wrong, or actors that behave against the protocol. A strategy is a kind
    /// of fault.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.scenario.faults.push(fault);
        self
    }

    /// Adds several faults.
    pub fn faults(mut self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.scenario.faults.extend(faults);
        self
    }

    /// Adds a workload of submitted transactions.
    pub fn workload(mut self, workload: Workload) -> Self {
        self.scenario.workloads.push(workload);
        self
    }

    /// Adds a property, in the words of scenario files: `always`, `sometimes`, `eventually` or `finally` a condition.
    pub fn assertion(mut self, assertion: Assertion) -> Self {
        self.scenario.assertions.push(assertion);
        self
    }

    /// Sets the time without growth of the chain after which the run ends. Default: four rounds' worth of slots.
    pub fn stall(mut self, rule: StallRule) -> Self {
        self.scenario.stall = Some(rule);
        self
    }

    /// Sets the virtual seconds after which the run ends.
    pub fn time_limit(mut self, seconds: u32) -> Self {
        self.scenario.time_limit_seconds = Some(seconds);
        self
    }

    /// Sets the file to which the scenario of a broken run is written. `dposlab run` and `dposlab explain` read it. While proptest
    /// shrinks, each smaller scenario replaces the one before.
    pub fn counterexample(mut self, file: impl Into<PathBuf>) -> Self {
        self.counterexample = Some(file.into());
        self
    }

    /// Adds a transaction that a client submits.
    pub fn action(mut self, action: Action) -> Self {
        self.scenario.actions.push(action);
        self
    }

    /// Takes a scenario file in place of all earlier settings except the seed. Its key `crypto` decides the treatment of signatures.
    ///
    /// # Errors
    /// The file is no scenario.
    pub fn scenario(mut self, file: &Path) -> Result<Self, ScenarioError> {
        self.scenario = Scenario::load(file)?;
        Ok(self)
    }

    /// Makes the simulation, to which properties can be added.
    ///
    /// # Errors
    /// A number is out of range, a fault names an unknown node, or an assertion cannot be read. The error names the place and what is
    /// allowed.
    pub fn build(self) -> Result<Simulation, ScenarioError> {
        let Self { scenario, seed, counterexample } = self;
        let file = Path::new("simulation");
        let scenario = Scenario::parse(&scenario.to_toml(), file)?;
        let seeds = SeedTree::new(seed);
        let testnet = scenario.testnet(seeds);
        let plan = scenario.plan(&testnet, seeds);
        let judge = assertions::judge(&scenario, &plan).map_err(|message| ScenarioError::Malformed {
            place: SourcePosition::File(file.to_owned()),
            key: None,
            message,
        })?;
        Ok(Simulation { scenario, plan, testnet, judge, counterexample, always: Vec::new(), eventually: Vec::new() })
    }
}
