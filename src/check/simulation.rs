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
    Finding, Sometimes, Watch, check_all,
    liveness::{deviants, paired},
    swarm::set,
};
use crate::{
    actors::{NodeId, SimTime},
    ledger::{BlockTree, Link, State},
    protocol::{Height, Round, Slot},
    scenario::{Action, Scenario, ScenarioError, Stall, Testnet, section::NetworkSection},
    sim::{Fault, Latency, Observer, Plan, SeedTree, Tips, network::Topology, stage::inline::InlineStage},
};
use std::{path::Path, sync::Arc};

/// Puts a simulation together. What nobody says otherwise: 51 delegates on a full mesh, 20 to 100 ms apart, nothing goes
/// wrong, the rules of the reference, 3 rounds, seed 1.
#[derive(Clone, Debug)]
pub struct Builder {
    scenario: Scenario,
    seed: u64,
}

/// A simulation that is about to be played.
pub struct Simulation {
    scenario: Scenario,
    plan: Plan,
    testnet: Testnet,
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
pub struct Played {
    /// Height of the highest chain.
    pub height: Height,
    /// Slots that passed.
    pub slots: u32,
    /// The number of times that interesting things happened; see [`super::conduct`].
    pub sometimes: Sometimes,
    /// Findings about the nodes' conduct. The rules themselves may be their cause.
    pub findings: Vec<Finding>,
}

/// Something did not hold.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[rustfmt::skip]
pub enum Broken {
    #[error("'{name}' does not hold in slot {slot} at height {height}; seed {seed}")]
    Always { name: String, slot: Slot, height: Height, seed: u64 },
    #[error("'{name}' did not come to hold within {rounds} rounds; seed {seed}")]
    Eventually { name: String, rounds: u32, seed: u64 },
    #[error("{finding}; seed {seed}")]
    Invariant { finding: String, seed: u64 },
}

impl Simulation {
    /// Begins to put one together.
    pub fn builder() -> Builder {
        let scenario = Scenario {
            version: 1,
            description: String::new(),
            include: Vec::new(),
            rounds: 3,
            stall: None,
            time_limit_seconds: None,
            crypto: crate::protocol::crypto::CryptoMode::default(),
            network: NetworkSection::default(),
            rules: toml::Table::new(),
            faults: Vec::new(),
            actions: Vec::new(),
            workloads: Vec::new(),
            assertions: Vec::new(),
        };
        Builder { scenario, seed: 1 }
    }

    /// Must hold at the end of every slot.
    pub fn always(&mut self, name: impl Into<String>, holds: impl Fn(&SlotEnd<'_>) -> bool + 'static) {
        self.always.push(Claim { name: name.into(), holds: Box::new(holds) });
    }

    /// Must hold at the end of some slot within so many rounds' worth of slots from the start.
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

    /// Plays all rounds, or until the chain stalls. Every block is held against all invariants of a chain.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn play(self) -> Result<Played, Broken> {
        let Self { scenario, plan, testnet, always, mut eventually } = self;
        let (seed, seats, slots) = (plan.seeds.seed(), scenario.round_slots(), plan.tree.slots());
        let watch =
            Watch::new(plan.tree.clone(), &plan.tip, plan.nodes.len(), &deviants(&scenario), &paired(&scenario));
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(watch.clone())];
        let mut stage = InlineStage::new(&plan, observers);
        let first = slots.slot(plan.start.seconds()).0;
        let mut stall = Stall::new(&scenario, &plan);
        let mut best = Height(0);
        let mut last_slot = first;
        for slot in first + 1.. {
            let now = SimTime::from_seconds(slots.start(Slot(slot)));
            stage.run_until(now);
            last_slot = slot;
            let network = SlotEnd::of(&plan.tree, &watch, now, &testnet);
            invariants_hold(&watch, &network, seed)?;
            if let Some(claim) = always.iter().find(|claim| !(claim.holds)(&network)) {
                let (name, height) = (claim.name.clone(), network.height());
                return Err(Broken::Always { name, slot: Slot(slot - 1), height, seed });
            }
            eventually.retain(|(claim, _)| !(claim.holds)(&network));
            if let Some((claim, rounds)) = eventually.iter().find(|(_, rounds)| slot - first > rounds * seats) {
                return Err(Broken::Eventually { name: claim.name.clone(), rounds: *rounds, seed });
            }
            best = network.height();
            let stalled = stall.look(now, best).is_some();
            let waits = eventually.iter().any(|(_, rounds)| slot - first <= rounds * seats);
            if (best >= scenario.last_height() || stalled) && !waits {
                break;
            }
        }
        let seen = watch.seen();
        let (sometimes, findings) = (seen.sometimes().clone(), seen.findings().to_vec());
        Ok(Played { height: best, slots: last_slot - first, sometimes, findings })
    }
}

/// The conduct of nodes is told and not judged: the rules may be what is looked into.
fn invariants_hold(watch: &Watch, network: &SlotEnd<'_>, seed: u64) -> Result<(), Broken> {
    let of_step = |name: &str| super::STEP_INVARIANTS.iter().any(|invariant| invariant.name == name);
    let finding = watch.seen().findings().iter().find(|one| of_step(one.invariant)).map(ToString::to_string);
    let ends_round = network.tree.schedule().begins(network.best.height().next());
    let of_chain = || {
        let checked = ends_round.then(|| check_all(network.tree, &network.best));
        checked.and_then(Result::err).map(|violation| violation.to_string())
    };
    match finding.or_else(of_chain) {
        Some(finding) => Err(Broken::Invariant { finding, seed }),
        None => Ok(()),
    }
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
    pub fn round(&self) -> Round {
        self.tree.schedule().at(self.height()).round
    }

    /// The virtual instant.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// The block a node stands on; of one that is down, the block it had stored.
    pub fn tip(&self, node: NodeId) -> Option<&Arc<Link>> {
        self.tips().get(node.0 as usize)
    }

    /// The blocks all nodes stand on, in their order.
    pub fn tips(&self) -> &[Arc<Link>] {
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
    /// Active delegates, one node each.
    pub fn delegates(mut self, count: u32) -> Self {
        self.scenario.network.delegates = count;
        self
    }

    /// Registered delegates beyond those, on nodes of their own.
    pub fn standby(mut self, count: u32) -> Self {
        self.scenario.network.standby = count;
        self
    }

    /// Nodes without a delegate.
    pub fn relays(mut self, count: u32) -> Self {
        self.scenario.network.relays = count;
        self
    }

    /// Rounds to play, the one of the genesis block included.
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

    /// The reference's rules with its bugs mended.
    pub fn corrected(self) -> Self {
        self.rule("base", "corrected")
    }

    /// A rule of all nodes by its dotted name, such as `node.zero_rollback_is_random`.
    pub fn rule(mut self, name: &str, value: impl Into<toml::Value>) -> Self {
        set(&mut self.scenario.rules, name, value);
        self
    }

    /// Something that goes wrong.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.scenario.faults.push(fault);
        self
    }

    /// A transaction that a client hands in.
    pub fn action(mut self, action: Action) -> Self {
        self.scenario.actions.push(action);
        self
    }

    /// A scenario file instead of all that was said before, its seed apart. Signatures are treated as its key `crypto` says.
    ///
    /// # Errors
    /// The file is no scenario.
    pub fn scenario(mut self, file: &Path) -> Result<Self, ScenarioError> {
        self.scenario = Scenario::load(file)?;
        Ok(self)
    }

    /// The simulation, ready to be told what must hold.
    ///
    /// # Errors
    /// A number is out of range, or a fault names a node that there is not: which, and what is allowed.
    pub fn build(self) -> Result<Simulation, ScenarioError> {
        let Self { scenario, seed } = self;
        let scenario = Scenario::parse(&scenario.to_toml(), Path::new("simulation"))?;
        let seeds = SeedTree::new(seed);
        let testnet = scenario.testnet(seeds);
        let plan = scenario.plan(&testnet, seeds);
        Ok(Simulation { scenario, plan, testnet, always: Vec::new(), eventually: Vec::new() })
    }
}
