//! A scenario out of a seed: every knob is sometimes off and sometimes extreme, so that two extremes meet now and then.
//! Source: A. Groce et al., Swarm testing (2012).
//!
//! Everything that goes wrong is a fault with an end. So the network is whole once the last one is over, and must then
//! converge to one chain. The run itself always has the seed 1: the scenario alone decides its course.

mod deeds;
mod faults;
mod network;
mod rare;

use super::seeds::SeedSet;
use crate::{
    ledger::Rules,
    protocol::crypto::CryptoMode,
    scenario::{Scenario, section::NetworkSection},
    sim::{FaultKind, NetworkModel, SeedTree, fault::Timing, strategy::SpareForger},
};
use deeds::Actions;
use rand::{Rng, seq::IndexedRandom};

/// The numbers that a scenario is drawn from.
type Draw = rand_chacha::ChaCha8Rng;

/// Virtual time in which all nodes must have come to one chain once all faults are over, in seconds: half an hour.
const BOUND_SECONDS: u32 = 1_800;
/// With `ModelledRuns::Drawn`, one run in this number is compared with the model.
const MODELLED_OF: u64 = 4;
/// The approximate number of slots with faults.
const TROUBLED_SLOTS: u32 = 120;

/// The parameters around which a search draws its scenarios.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The values that stay. Everything else is drawn.
    pub base: Option<Scenario>,
    /// The rules of all nodes.
    pub rules: toml::Table,
    /// The treatment of signatures, if not the base's, or real ones.
    pub crypto: Option<CryptoMode>,
    /// Delegates, if not drawn.
    pub delegates: Option<u32>,
    /// Rounds in which things go wrong, if not derived from the number of delegates.
    pub rounds: Option<u32>,
    /// The runs in which each node is also compared with the model of an honest one.
    pub behaviour: ModelledRuns,
}

/// The choice of runs in which each node is compared with the model of an honest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelledRuns {
    Always,
    /// One run in four, chosen by its seed. The networks of these runs are fast and without a flaw, and no fault affects
    /// clocks or messages or adds a second forger. With late or missing answers the model would lose track and raise false
    /// alarms. So a scenario without these properties is never compared with the model.
    #[default]
    Drawn,
    Never,
}

impl Frame {
    /// Returns true if each node of the run of a seed is held against the model of an honest one.
    pub fn is_modelled(&self, seed: u64) -> bool {
        match self.modelled() {
            ModelledRuns::Always => true,
            ModelledRuns::Drawn => seed.is_multiple_of(MODELLED_OF),
            ModelledRuns::Never => false,
        }
    }

    /// Returns the number of runs, among those of `seeds`, in which each node is compared with the model.
    pub fn modelled_among(&self, seeds: &SeedSet) -> u64 {
        match self.modelled() {
            ModelledRuns::Always => seeds.count(),
            ModelledRuns::Drawn => seeds.count_multiples(MODELLED_OF),
            ModelledRuns::Never => 0,
        }
    }

    /// Returns the runs to compare with the model: none if the rules or the base do not allow it.
    fn modelled(&self) -> ModelledRuns {
        let is_known = match &self.base {
            Some(base) => base.rules(u32::MAX).is_of_the_reference(),
            None => Rules::from_toml(&self.rules).is_ok_and(|rules| rules.is_of_the_reference()),
        };
        let is_easy = self.behaviour != ModelledRuns::Drawn || self.base.as_ref().is_none_or(is_easy);
        if is_known && is_easy { self.behaviour } else { ModelledRuns::Never }
    }
}

/// Rounds' worth of slots ([`Scenario::round_slots`]) in which a network must come to one chain: half an hour, or four rounds.
pub fn rounds_to_converge(scenario: &Scenario) -> u32 {
    BOUND_SECONDS.div_ceil(scenario.network.block_time_s.saturating_mul(scenario.round_slots())).max(4)
}

/// Returns the smallest number of rounds in which a network's chain reaches `height`.
pub fn rounds_for(network: &NetworkSection, height: u32, turn: u32) -> u32 {
    let last = |round: u32| {
        let (first, seats) = network.round(round, turn);
        first + seats - 1
    };
    (1..).find(|round| last(*round) >= height).unwrap_or(1)
}

/// Returns true if a network, faults apart, is good enough to require one growing chain.
pub fn is_whole(model: &NetworkModel) -> bool {
    network::is_whole(model)
}

/// The scenario of a seed.
pub fn draw(frame: &Frame, seed: u64) -> Scenario {
    let mut random = SeedTree::new(seed).stream("swarm");
    let draw = &mut random;
    let mut scenario = frame.base.clone().unwrap_or_else(|| Scenario {
        version: 1,
        description: String::new(),
        include: Vec::new(),
        rounds: 0,
        stall: None,
        time_limit_seconds: None,
        max_events: None,
        crypto: CryptoMode::default(),
        network: network::network(draw, frame.delegates),
        rules: toml::Table::new(),
        faults: Vec::new(),
        actions: Vec::new(),
        workloads: Vec::new(),
        agents: Vec::new(),
        assertions: Vec::new(),
    });
    scenario.description = format!("drawn from seed {seed}");
    for (key, value) in &frame.rules {
        scenario.rules.entry(key.clone()).or_insert_with(|| value.clone());
    }
    if frame.base.is_none() {
        draw_rules(draw, &mut scenario);
    }
    if scenario.slots_a_turn() > 1 {
        scenario.network.milestones.retain(|change| change.delegates.is_none());
    }
    let seats = scenario.network.delegates;
    let troubled = troubled_slots(frame, &scenario.network) / seats;
    scenario.faults.extend(faults::faults(draw, &scenario.network, troubled));
    if frame.behaviour == ModelledRuns::Drawn && frame.is_modelled(seed) {
        if frame.base.is_none() {
            network::ease(&mut scenario.network.model);
        }
        scenario.faults.retain(|fault| is_easy_fault(&fault.kind));
    }
    let deeds = *[0, 10, 30, 30, 60, 120].choose(draw).unwrap_or(&30);
    scenario.actions.extend(Actions::new(draw, &scenario.network, troubled * seats).draw(deeds));
    rare::add(seed, &mut scenario, troubled * seats, frame.base.is_none());
    make_room(&mut scenario, troubled * seats);
    scenario.crypto = frame.crypto.unwrap_or(scenario.crypto);
    scenario
}

/// Returns the number of slots in which faults occur.
pub(super) fn troubled_slots(frame: &Frame, network: &NetworkSection) -> u32 {
    let seats = network.delegates;
    seats * frame.rounds.unwrap_or_else(|| (TROUBLED_SLOTS / seats).clamp(3, 12))
}

/// Makes the run long enough for the network to come to one chain after `slots` slots in which things go wrong.
pub(super) fn make_room(scenario: &mut Scenario, slots: u32) {
    let more = if is_whole(&scenario.network.model) { rounds_to_converge(scenario) + 1 } else { 2 };
    let height = slots + more * scenario.round_slots();
    scenario.rounds = scenario.rounds.max(rounds_for(&scenario.network, height, scenario.slots_a_turn()));
    // The turn of an action above the last height never comes.
    let last = scenario.last_height().0;
    scenario.actions.retain(|action| action.height <= last);
}

/// Returns true if nothing delays, loses or doubles messages, sets clocks wrong, or adds a second forger.
fn is_easy(scenario: &Scenario) -> bool {
    network::is_easy(&scenario.network.model) && scenario.faults.iter().all(|fault| is_easy_fault(&fault.kind))
}

fn is_easy_fault(kind: &FaultKind) -> bool {
    let touches_messages = matches!(kind, FaultKind::Drop(_) | FaultKind::Delay(_) | FaultKind::Duplicate(_));
    let doubles_forgers = kind.strategy::<SpareForger>().is_some();
    !touches_messages && !doubles_forgers && kind.facts().timing == Timing::True
}

fn draw_rules(draw: &mut Draw, scenario: &mut Scenario) {
    if draw.random_ratio(1, 4) {
        let limit = *[2, 2, 3, 4, 5, 8, 12_i64].choose(draw).unwrap_or(&12);
        set(&mut scenario.rules, "pool.max_transactions", limit);
    }
    // A duplicated request breaks the limits of its sender, and a network whose nodes hang up on each other shows nothing.
    if scenario.network.model.duplication > MANY_DOUBLED {
        set(&mut scenario.rules, "node.rate_limits", false);
    }
}

/// The share of duplicated messages above which nodes do not limit their callers.
const MANY_DOUBLED: f64 = 0.005;

/// Returns the heights up to `last` whose next block is one of the last two of a round or of the first two of the next
/// round.
fn near_boundary(network: &NetworkSection, last: u32) -> Vec<u32> {
    let firsts =
        (2..).map(|round| network.round(round, 1).0).take_while(|first| *first <= last.max(network.delegates + 1));
    firsts.flat_map(|first| first.saturating_sub(3).max(1)..=first).collect()
}

/// One to `most` of these, in their order.
fn some_of<T: Copy>(draw: &mut Draw, all: &[T], most: usize) -> Vec<T> {
    let count = draw.random_range(1..=most);
    let mut places = rand::seq::index::sample(draw, all.len(), count).into_vec();
    places.sort_unstable();
    places.into_iter().map(|place| all[place]).collect()
}

/// Sets a rule by its dotted name.
pub fn set(rules: &mut toml::Table, name: &str, value: impl Into<toml::Value>) {
    match name.split_once('.') {
        None => {
            rules.insert(name.to_owned(), value.into());
        }
        Some((group, rest)) => {
            let table = rules.entry(group).or_insert_with(|| toml::Table::new().into());
            if let Some(table) = table.as_table_mut() {
                set(table, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::liveness::liveness;

    fn around(lines: &str) -> Frame {
        let text = format!("version = 1\nrounds = 5\n[network]\ndelegates = 5\n{lines}\n");
        let base = Scenario::parse(&text, "base.toml".as_ref()).unwrap_or_else(|error| panic!("{lines}: {error}"));
        Frame { base: Some(base), ..Frame::default() }
    }

    #[test]
    fn no_run_around_a_scenario_with_a_flaw_is_held_against_the_model() {
        let fault = |kind: &str| format!("[[fault]]\nkind = {kind}\nfrom = {{ slot = 3 }}\nuntil = {{ slot = 9 }}");
        let flaws = [
            "loss = 0.01".to_owned(),
            "duplication = 0.01".to_owned(),
            "reordering = { chance = 0.1, by_ms = 50 }".to_owned(),
            "bandwidth = 10000".to_owned(),
            "overhead = { block_ms = 2, other_ms = 600 }".to_owned(),
            "regions = { shares = [1, 1], latency_ms = [[20, 20], [20, 20]], pareto = true }".to_owned(),
            "clocks = { offset_ms = 100, drift_ppm = 0 }".to_owned(),
            "latency = { min_ms = 20, max_ms = 121 }".to_owned(),
            "links = [{ between = [0, 1], latency = { distribution = \"constant\", ms = 200 } }]".to_owned(),
            fault("\"drop\"\nchance = 0.1"),
            fault("\"slow\"\nnodes = [1]\nstep_ms = 20"),
            fault("\"spare-forger\"\ndelegates = [3]\nnodes = [4]"),
        ];
        for flaw in flaws {
            assert!((0..8).all(|seed| !around(&flaw).is_modelled(seed)), "{flaw}");
        }
        let easy = around(&fault("\"crash\"\nnodes = [1]"));
        assert!((0..8).all(|seed| easy.is_modelled(seed) == (seed % 4 == 0)));
    }

    #[test]
    fn a_round_has_the_slots_of_all_turns() {
        let rules = |base: &str| toml::Table::from_iter([("base".to_owned(), base.into())]);
        let of = |base| Frame { rules: rules(base), delegates: Some(7), ..Frame::default() };
        let decided = |base| {
            let drawn = (0..20).map(|seed| draw(&of(base), seed)).filter(|drawn| is_whole(&drawn.network.model));
            let times = drawn.map(|drawn| {
                let asked = liveness(&drawn).expect("each drawn fault ends");
                let round = drawn.round_slots() * drawn.network.block_time_s;
                assert!(asked.from_seconds >= f64::from(round));
                asked.within_rounds * round
            });
            times.collect::<std::collections::BTreeSet<u32>>()
        };
        // Half an hour in rounds of 56 seconds, and four rounds of 672 seconds.
        assert_eq!(decided("corrected"), [33 * 56].into());
        assert_eq!(decided("eos"), [4 * 672].into());
    }

    #[test]
    fn a_network_of_one_node_gets_no_fault_that_needs_two() {
        let text = "version = 1\nrounds = 5\n[network]\ndelegates = 1\n";
        let base = Scenario::parse(text, "one.toml".as_ref()).expect("it is a scenario");
        let frame = Frame { base: Some(base), ..Frame::default() };
        let mut faults = 0;
        for seed in 0..1_000 {
            let drawn = draw(&frame, seed);
            assert_eq!(drawn.check(), Ok(()), "seed {seed}");
            faults += drawn.faults.len();
            let groups = |kind: &FaultKind| matches!(kind, FaultKind::Partition(_) | FaultKind::Eclipse(_));
            assert!(drawn.faults.iter().all(|fault| !groups(&fault.kind)), "seed {seed}");
        }
        assert!(faults > 1_000, "others are drawn: {faults}");
    }

    #[test]
    fn what_is_held_against_the_model_is_drawn_without_flaws() {
        let (drawn, base) = (Frame::default(), around(""));
        let flawed = (0..400).filter(|seed| !is_easy(&draw(&drawn, *seed))).count();
        assert!(flawed > 100, "or nothing is shown: {flawed}");
        for seed in (0..400).step_by(4) {
            assert!(is_easy(&draw(&drawn, seed)) && is_easy(&draw(&base, seed)), "seed {seed}");
        }
    }
}
