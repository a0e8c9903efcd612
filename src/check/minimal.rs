//! From a failing scenario to the smallest one that fails in the same way, and to the file that shows it.
//!
//! 1. The scenario gets as many rounds as pass until the finding shows.
//! 2. It is written as a file with the one assertion that does not hold, and played as `dposlab run` plays it. If that does
//!    not show the finding, the file waits for the nominal end of its rounds; if that does not either, it stays as it was.
//! 3. Passes make it smaller (`shrink.rs`): actions, faults and workloads, rounds, the network, delegates, rules, then the
//!    details of faults and actions, and last real signatures.
//! 4. Each proposal is repaired so that it can be played: parts that concern removed nodes are removed. For a liveness
//!    finding it gets the time that recovery from its faults takes.
//! 5. It counts as failing if its run shows a finding of the same invariant and the same cause.
//! 6. The smallest one is played once more, with an observer that also receives messages and writes the story.

use super::{
    Certificate, Finding, Signature,
    assertions::names,
    conduct::is_modelled,
    liveness::{is_liveness, liveness},
    message_story::Teller,
    search::{Networks, RUN_SEED},
    shrink::{Pass, ShrinkResult, shrink, smaller, without_parts},
    simpler,
    swarm::rounds_for,
    watchers::Watchers,
};
use crate::{
    ledger::rules::Gossip,
    protocol::crypto::CryptoMode,
    scenario::{Action, Assertion, Scenario, StageKind, StallRule, TIME_LIMIT},
    sim::{
        Fault, Latency, SeedTree, Trigger,
        fault::{NodeRef, Nodes},
        network::Topology,
    },
};
use std::sync::atomic::{AtomicBool, Ordering};

/// A failing scenario, as small as it was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimal {
    /// The scenario of its file: with the assertion that does not hold, and as many rounds as it takes to see that.
    pub scenario: Scenario,
    /// The finding as it shows there.
    pub finding: Finding,
    /// The number of runs played.
    pub runs: usize,
    /// True if it had to end before everything was tried.
    pub cut_short: bool,
    /// True if the file was played and showed the finding.
    pub shown: bool,
}

/// The minimiser of findings, with its limits.
#[derive(Clone, Copy)]
pub struct Minimiser<'a> {
    pub networks: &'a Networks,
    /// The largest number of runs spent on one finding. 0 leaves it as it was found.
    pub budget: usize,
    /// Set when the caller no longer waits.
    pub stop: &'a AtomicBool,
    /// The scenario that the search draws around, if any. Its assertions apply only to scenarios that contain all of it.
    pub base: Option<&'a Scenario>,
}

impl Minimiser<'_> {
    /// Shrinks a scenario whose run showed a finding for as long as invariant and cause stay the same. `progress` is called
    /// after each run. Each try is played as `dposlab run` plays the file that would be written.
    ///
    /// A finding that its file does not show comes back unminimised, as does one for which there is no time.
    pub fn minimise(
        &self,
        scenario: &Scenario,
        finding: &Finding,
        mut progress: impl FnMut(usize, &Scenario),
    ) -> Minimal {
        let try_as = |scenario: &Scenario, wait| {
            let file = as_file(scenario, finding, wait);
            replay(&file, &finding.signature(), self.networks, self.stop).map(|found| (file, found))
        };
        let start = at_least_until(scenario, finding);
        let first = [false, true].into_iter().find_map(|wait| Some((wait, try_as(&start, wait)?)));
        let Some((wait, mut last)) = first else {
            let (scenario, finding) = (as_file(&start, finding, true), finding.clone());
            return Minimal { scenario, finding, runs: 0, cut_short: true, shown: false };
        };
        let passes: [Pass<'_, Scenario>; 9] =
            [&actions, &faults, &rounds, &network, &delegates, &rules, &fault_details, &action_details, &signatures];
        let passes: Vec<_> = passes.iter().map(|pass| self.allowed(pass, &start, finding)).collect();
        let passes: Vec<Pass<'_, Scenario>> = passes.iter().map(|pass| pass as Pass<'_, Scenario>).collect();
        let fails = |candidate: &Scenario| match try_as(candidate, wait) {
            Some(shown) => {
                last = shown;
                true
            }
            None => false,
        };
        let may_try = |tried| tried < self.budget && !self.stop.load(Ordering::Relaxed);
        let ShrinkResult { tried, cut_short, .. } =
            shrink(start.clone(), &passes, may_try, fails, |tried, best| progress(tried, best));
        let (scenario, mut finding) = last;
        finding.story = retold(&scenario, &finding, self.networks);
        Minimal { scenario, finding, runs: tried, cut_short, shown: true }
    }

    /// Returns a pass that proposes only valid scenarios, which for a failed assertion still contain the base.
    fn allowed<'a>(
        &'a self,
        pass: Pass<'a, Scenario>,
        start: &'a Scenario,
        finding: &'a Finding,
    ) -> impl Fn(&Scenario) -> Vec<Scenario> + 'a {
        let fitted = |scenario: Scenario| if is_liveness(finding.invariant) { fit(scenario) } else { scenario };
        let base = self.base.filter(|_| finding.is_assertion());
        let keeps_base = move |scenario: &Scenario| {
            base.is_none_or(|base| {
                (&scenario.network, &scenario.rules, scenario.rounds) == (&start.network, &start.rules, start.rounds)
                    && scenario.faults.starts_with(&base.faults)
                    && scenario.actions.starts_with(&base.actions)
                    && scenario.workloads == start.workloads
                    && scenario.agents == start.agents
            })
        };
        move |scenario| {
            let proposals = pass(scenario).into_iter().map(fitted);
            proposals.filter(|one| keeps_base(one) && one.check().is_ok()).collect()
        }
    }
}

/// Returns the scenario for the file of a finding. With `wait`, the run goes on to the nominal end of its rounds even if no
/// blocks come in.
fn as_file(scenario: &Scenario, finding: &Finding, wait: bool) -> Scenario {
    let mut file = scenario.clone();
    file.description = format!("breaks: {}", finding.invariant);
    match finding.is_assertion() {
        true => file.assertions.retain(|assertion| assertion.to_string() == finding.invariant),
        false => {
            let always = Some(format!("invariant {}", finding.invariant));
            file.assertions = vec![Assertion { always, ..Assertion::default() }];
        }
    }
    if wait {
        file.stall = Some(StallRule::Off);
        file.time_limit_seconds = Some(waiting_seconds(&file));
    }
    file
}

/// The time until the nominal end of the rounds, or until liveness is decided if that is later.
fn waiting_seconds(file: &Scenario) -> u32 {
    let slot = file.network.block_time_s;
    let nominal = f64::from(file.nominal_slots()) * f64::from(slot);
    let decided = liveness(file).map_or(0.0, |asked| asked.latest(file.round_slots() * slot).as_secs_f64());
    nominal.max(decided.ceil()).min(f64::from(TIME_LIMIT)) as u32
}

/// The scenario with as many rounds as pass until a finding shows, and one more.
fn at_least_until(scenario: &Scenario, finding: &Finding) -> Scenario {
    let slots = (finding.after_seconds / f64::from(scenario.network.block_time_s)).ceil() as u32;
    let height = slots.saturating_add(scenario.round_slots());
    let needed = rounds_for(&scenario.network, height, scenario.slots_a_turn());
    let scenario = Scenario { rounds: scenario.rounds.max(needed), ..scenario.clone() };
    if !is_liveness(finding.invariant) {
        return scenario;
    }
    // A fault may name a later round than recovery takes.
    let fitted = fit(scenario.clone());
    if fitted.is_allowed() { fitted } else { scenario }
}

/// Plays a file as `dposlab run` does. Returns the finding with the wanted signature, if the run shows one.
pub(crate) fn replay(file: &Scenario, wanted: &Signature, networks: &Networks, stop: &AtomicBool) -> Option<Finding> {
    let plan = file.plan(&networks.of(file), SeedTree::new(RUN_SEED));
    let (modelled, asserts) = (is_modelled(wanted.invariant), !names().any(|name| name == wanted.invariant));
    let mut watchers = Watchers::new(file, &plan, liveness(file), modelled, asserts).ok()?;
    let is_wanted = |found: &Finding| found.signature() == *wanted;
    let observers = watchers.observers();
    let outcome = file.play_inline(&plan, observers, |stage| {
        watchers.slot_over();
        watchers.prove(stage);
        !watchers.has_found(is_wanted) && !stop.load(Ordering::Relaxed)
    });
    watchers.run_over(outcome.end, outcome.ended, stop);
    let seen = watchers.seen();
    seen.findings().iter().find(|found| is_wanted(found)).cloned()
}

/// Returns the story of a finding, from one more run of its file with an observer of messages.
fn retold(file: &Scenario, finding: &Finding, networks: &Networks) -> Vec<String> {
    let plan = file.plan(&networks.of(file), SeedTree::new(RUN_SEED));
    let teller = Teller::new(&plan);
    let slots = finding.after_seconds / f64::from(file.network.block_time_s);
    let mut left = slots.ceil() as u32 + 1;
    let played = file.play_while(&plan, StageKind::Inline, vec![Box::new(teller.clone())], |_| {
        left = left.saturating_sub(1);
        left > 0
    });
    played.map_or_else(|_| finding.story.clone(), |_| teller.story(finding))
}

/// Gives a scenario as many rounds as the faults and the time to recover need.
pub(super) fn fit(mut scenario: Scenario) -> Scenario {
    if let Some(asked) = liveness(&scenario) {
        let slots = scenario.round_slots();
        let round = f64::from(slots * scenario.network.block_time_s);
        let rounds = (asked.from_seconds / round).ceil() as u32 + asked.within_rounds + 1;
        scenario.rounds = rounds_for(&scenario.network, rounds.saturating_mul(slots), scenario.slots_a_turn());
    }
    scenario
}

fn with<T>(scenario: &Scenario, values: Vec<T>, set: impl Fn(&mut Scenario, T)) -> Vec<Scenario> {
    let changed = values.into_iter().map(|value| {
        let mut scenario = scenario.clone();
        set(&mut scenario, value);
        scenario
    });
    changed.collect()
}

fn actions(scenario: &Scenario) -> Vec<Scenario> {
    with(scenario, without_parts(&scenario.actions), |scenario, list| scenario.actions = list)
}

fn faults(scenario: &Scenario) -> Vec<Scenario> {
    let mut proposals = with(scenario, without_parts(&scenario.workloads), |scenario, list| scenario.workloads = list);
    proposals.extend(with(scenario, without_parts(&scenario.agents), |scenario, list| scenario.agents = list));
    proposals.extend(with(scenario, without_parts(&scenario.faults), |scenario, list| scenario.faults = list));
    proposals
}

fn rounds(scenario: &Scenario) -> Vec<Scenario> {
    with(scenario, smaller(scenario.rounds, 1), |scenario, rounds| scenario.rounds = rounds)
}

fn network(scenario: &Scenario) -> Vec<Scenario> {
    let mut proposals = with(scenario, smaller(scenario.network.relays, 0), |scenario, relays| {
        scenario.network.relays = relays;
        keep_who_is_there(scenario);
    });
    proposals.extend(with(scenario, smaller(scenario.network.standby, 0), |scenario, standby| {
        scenario.network.standby = standby;
        let old = scenario.network.clone();
        simpler::refit(&old, &mut scenario.network);
        keep_who_is_there(scenario);
    }));
    let simpler: [fn(&mut Scenario); 5] = [
        |scenario| scenario.network.model.topology = Topology::Mesh,
        |scenario| scenario.network.model.latency = Latency::default(),
        |scenario| scenario.network.model.latency = Latency::uniform(50, 50),
        |scenario| {
            if scenario.network.model.topology == Topology::Mesh {
                scenario.network.gossip = Some(Gossip::Once);
            }
        },
        |scenario| scenario.network.reward = None,
    ];
    proposals.extend(with(scenario, simpler.to_vec(), |scenario, simplify| simplify(scenario)));
    proposals.extend(simpler::networks(scenario));
    proposals
}

fn delegates(scenario: &Scenario) -> Vec<Scenario> {
    let before = scenario.network.delegates;
    with(scenario, smaller(before, 1), |scenario, delegates| {
        // The same time, rounded up to whole rounds.
        scenario.rounds = (scenario.rounds * before).div_ceil(delegates).max(2);
        let old = scenario.network.clone();
        scenario.network.delegates = delegates;
        simpler::refit(&old, &mut scenario.network);
        keep_who_is_there(scenario);
    })
}

/// Removes nodes that are gone from faults and actions, or the fault or action itself if no node is left.
fn keep_who_is_there(scenario: &mut Scenario) {
    let (nodes, usernames) = (scenario.network.nodes(), scenario.usernames());
    let delegates = usernames.len() as u32;
    let model = &mut scenario.network.model;
    model.topology = std::mem::take(&mut model.topology).fitted(nodes);
    let is_there = |name: &str| !name.starts_with("genesis_") || usernames.iter().any(|known| known == name);
    scenario.faults.retain_mut(|fault| {
        let mut whole = fault.kind.parties().all(is_there);
        for (key, named) in fault.kind.nodes_mut() {
            let limit = if key == "delegates" { delegates } else { nodes };
            let stays = |node: &NodeRef| match node {
                NodeRef::Number(number) => *number < limit,
                NodeRef::Delegate(name) => is_there(name),
            };
            match named {
                Nodes::List(list) => {
                    list.retain(stays);
                    whole &= !list.is_empty();
                }
                Nodes::Span(span) => whole &= stays(&span.from) && stays(&span.to),
                Nodes::Share(_) => {}
            }
        }
        whole
    });
    let has_both = |(a, b): &(u32, u32)| *a.max(b) < nodes;
    let links = &mut scenario.network.model.links;
    links.retain(|link| link.directions().is_ok_and(|(_, directions)| directions.iter().all(has_both)));
    scenario.actions.retain(|action| is_there(&action.by) && action.to.as_deref().is_none_or(is_there));
    for action in &mut scenario.actions {
        action.node %= nodes;
    }
}

fn rules(scenario: &Scenario) -> Vec<Scenario> {
    let keys: Vec<String> = scenario.rules.keys().filter(|key| *key != "base").cloned().collect();
    with(scenario, keys, |scenario, key| {
        scenario.rules.remove(&key);
    })
}

/// Real signatures, once everything else is small: they take time.
fn signatures(scenario: &Scenario) -> Vec<Scenario> {
    with(scenario, vec![CryptoMode::default()], |scenario, crypto| scenario.crypto = crypto)
}

/// Fewer nodes, less time.
fn fault_details(scenario: &Scenario) -> Vec<Scenario> {
    let mut proposals = Vec::new();
    for (index, fault) in scenario.faults.iter().enumerate() {
        for shorter in shorter(fault).into_iter().chain(simpler::faults(fault, scenario.network.block_time_s)) {
            proposals.extend(with(scenario, vec![shorter], |scenario, fault| scenario.faults[index] = fault));
        }
        proposals
            .extend(with(scenario, fault.kind.with_fewer_nodes(), |scenario, kind| scenario.faults[index].kind = kind));
    }
    proposals
}

fn shorter(fault: &Fault) -> Vec<Fault> {
    let (Trigger::Seconds(from), Some(Trigger::Seconds(until))) = (&fault.from, &fault.until) else {
        return Vec::new();
    };
    let (from, until) = (*from as u32, *until as u32);
    let earlier = smaller(from, 8.min(from)).into_iter().map(|sooner| (sooner, until - (from - sooner)));
    let ends = smaller(until, from + 1).into_iter().map(|end| (from, end));
    let spans = earlier.chain(ends).map(|(from, until)| Fault {
        from: Trigger::Seconds(from.into()),
        until: Some(Trigger::Seconds(until.into())),
        ..fault.clone()
    });
    spans.collect()
}

fn action_details(scenario: &Scenario) -> Vec<Scenario> {
    let mut proposals = Vec::new();
    for (index, action) in scenario.actions.iter().enumerate() {
        let mut simpler = vec![
            Action { wrong: None, ..action.clone() },
            Action { fee: None, ..action.clone() },
            Action { amount: None, ..action.clone() },
            Action { node: 0, ..action.clone() },
            Action { blocks: 0, ..action.clone() },
        ];
        simpler.extend(simpler::actions(action));
        simpler.extend(smaller(action.height, 1).into_iter().map(|height| Action { height, ..action.clone() }));
        proposals.extend(with(scenario, simpler, |scenario, action| scenario.actions[index] = action));
    }
    proposals
}

impl Minimal {
    /// The finding that the run of a file shows. `None` if it shows none of this invariant and cause.
    pub fn of_file(file: &Scenario, wanted: &Signature, networks: &Networks) -> Option<Self> {
        let mut finding = replay(file, wanted, networks, &AtomicBool::new(false))?;
        finding.story = retold(file, &finding, networks);
        Some(Self { scenario: file.clone(), finding, runs: 1, cut_short: false, shown: true })
    }

    /// The scenario file: the head, then the scenario with the assertion that does not hold.
    pub fn to_toml(&self) -> String {
        self.head() + &self.scenario.to_toml()
    }

    /// The comments at the top of the file: the finding, its certificate, and the last events before it.
    pub fn head(&self) -> String {
        let finding = &self.finding;
        let mut text = format!("# Broken: {} ({}).\n", finding.invariant, finding.origin);
        let mut line = |line: &str| text.push_str(&format!("#{}{line}\n", if line.is_empty() { "" } else { " " }));
        if !finding.cause.is_empty() {
            line(&format!("Cause: {}.", finding.cause));
        }
        if let Some(node) = finding.node {
            line(&format!("Node: {}.", node.0));
        }
        if let (Some(block), Some(height)) = (&finding.block, finding.height) {
            line(&format!("Block: {block} at height {height}."));
        }
        line(&format!("Found: {}.", finding.what.trim_end_matches('.')));
        match &finding.certificate {
            Certificate::Shown(proof) => line(&format!("Certificate: {}.", proof.trim_end_matches('.'))),
            Certificate::Missing(missing) => {
                line(&format!("The run shows no certificate of the cause: {}.", missing.trim_end_matches('.')));
            }
            Certificate::None => {}
        }
        line("");
        line("The last events before:");
        for told in finding.story.iter().rev().take(24).rev() {
            line(&format!("  {told}"));
        }
        line("");
        line("`dposlab run` on this file ends with exit code 1 and names the same.");
        text
    }
}

/// Returns a name for the file of a finding. It contains the number from the second finding of an invariant on.
#[cfg(feature = "cli")]
pub(crate) fn file_name(invariant: &str, number: u32) -> String {
    let letters = invariant.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '-' });
    let name: String = letters.collect();
    let name = name.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    match number {
        1 => format!("{name}.toml"),
        _ => format!("{name}-{number}.toml"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        check::{conduct::CONVERGED, search::play},
        sim::{
            FaultKind,
            fault::{NodeSpan, Share, ShareOf},
        },
    };
    use proptest::prelude::*;
    use std::path::Path;

    /// The network of the examples, with nodes that go when it is made smaller.
    fn with_fault(fault: &Fault) -> Scenario {
        let text = "version = 1\nrounds = 9\ncrypto = 'modelled'\n[network]\ndelegates = 5\nstandby = 1\nrelays = 2\n\
                    [rules]\nminimum_network_reach = 3\n\
                    [[action]]\nheight = 3\nnode = 7\nby = 'genesis_6'\ndoes = 'transfer'\nto = 'account_2'\n";
        let mut scenario = Scenario::parse(text, Path::new("each kind")).expect("it is a scenario");
        scenario.faults.push(fault.clone());
        scenario
    }

    /// One of the kinds, by its number, that lasts for a while.
    fn example(number: usize) -> Fault {
        let text = FaultKind::examples()[number];
        let kind: FaultKind = toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let until = (!kind.facts().is_over_at_once()).then_some(Trigger::Seconds(90.0));
        Fault { kind, from: Trigger::Seconds(40.0), until }
    }

    /// Some nodes: those with numbers from 0 to 7, or the delegates of the first six.
    fn nodes(limit: u32) -> impl Strategy<Value = Nodes> {
        let one = (0..limit, any::<bool>()).prop_map(|(number, by_name)| match by_name && number < 6 {
            true => NodeRef::Delegate(format!("genesis_{}", number + 1)),
            false => NodeRef::Number(number),
        });
        prop_oneof![
            3 => prop::collection::vec(one, 1..5).prop_map(Nodes::List),
            1 => (0..limit, 0..limit).prop_map(|(from, to)| {
                Nodes::Span(NodeSpan { from: NodeRef::Number(from.min(to)), to: NodeRef::Number(from.max(to)) })
            }),
            1 => (0..=4_u8).prop_map(|part| Nodes::Share(Share { share: f64::from(part) / 4.0, of: ShareOf::Nodes })),
        ]
    }

    /// Any kind, on any nodes of the network, at any time.
    fn fault() -> impl Strategy<Value = Fault> {
        let lists = (prop::collection::vec(nodes(8), 4), prop::collection::vec(nodes(6), 4));
        let time = (1..300_u32, 1..300_u32, any::<bool>());
        (0..FaultKind::names().len(), lists, time)
            .prop_map(|(number, (nodes, delegates), (from, later, by_height))| {
                let mut fault = example(number);
                for (index, (key, named)) in fault.kind.nodes_mut().into_iter().enumerate() {
                    *named = if key == "delegates" { &delegates[index] } else { &nodes[index] }.clone();
                }
                fault.from =
                    if by_height { Trigger::HeightAtAny(1 + from % 45) } else { Trigger::Seconds(from.into()) };
                fault.until = fault.until.map(|_| Trigger::Seconds((from + later).into()));
                fault
            })
            .prop_filter("a file may say it", |fault| with_fault(fault).is_allowed())
    }

    /// Returns a finding that lets its scenario be made smaller.
    fn finding(invariant: &'static str) -> Finding {
        Finding {
            invariant,
            origin: "",
            cause: String::new(),
            node: None,
            block: None,
            height: None,
            at: crate::actors::SimTime::default(),
            after_seconds: 0.0,
            what: String::new(),
            certificate: crate::check::Certificate::None,
            story: Vec::new(),
        }
    }

    const ALL: [Pass<'static, Scenario>; 6] = [&faults, &rounds, &network, &delegates, &fault_details, &action_details];

    /// Everything that the minimiser may make of a scenario in one step, for one of two invariants.
    fn proposals(start: &Scenario, invariant: &'static str) -> Vec<Vec<Scenario>> {
        let (networks, stop) = (Networks::default(), AtomicBool::new(false));
        let minimiser = Minimiser { networks: &networks, budget: 0, stop: &stop, base: None };
        let finding = finding(invariant);
        ALL.into_iter().map(|pass| minimiser.allowed(pass, start, &finding)(start)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// `dposlab run` takes each file that the minimiser may write, whatever the fault is.
        #[test]
        fn every_file_is_one_that_can_be_run(fault in fault(), by_time in any::<bool>(), wait in any::<bool>()) {
            let start = with_fault(&fault);
            prop_assert_eq!(start.check(), Ok(()), "{:?}", fault);
            let invariant = if by_time { CONVERGED.name } else { "any" };
            let finding = finding(invariant);
            let first = at_least_until(&start, &finding);
            for scenario in proposals(&start, invariant).iter().flatten().chain([&first]) {
                let file = as_file(scenario, &finding, wait).to_toml();
                let read = Scenario::parse(&file, Path::new("smaller"));
                prop_assert!(read.is_ok(), "{:?}\n{}", read.err(), file);
            }
        }
    }

    #[test]
    fn a_smaller_scenario_of_each_kind_can_be_played() {
        let (networks, stop) = (Networks::default(), AtomicBool::new(false));
        for (number, name) in FaultKind::names().iter().enumerate() {
            let (mut left, start) = (0, with_fault(&example(number)));
            for proposals in proposals(&start, "any") {
                left += proposals.iter().map(|smaller| smaller.faults.len()).sum::<usize>();
                for smaller in proposals.iter().take(2) {
                    assert!(play(smaller, &networks, None, false, &stop).slots > 0, "{name}");
                }
            }
            assert!(left > 0, "{name}: nothing that has it is smaller");
        }
    }

    #[test]
    fn a_file_waits_until_liveness_is_decided() {
        let file = |rounds: u32, network: &str| {
            let text = format!("version = 1\nrounds = {rounds}\n[network]\n{network}\n");
            let start = Scenario::parse(&text, Path::new("waits")).expect("it is a scenario");
            let finding = finding(crate::check::conduct::PROGRESS.name);
            let file = as_file(&at_least_until(&start, &finding), &finding, true);
            assert_eq!(file.check(), Ok(()));
            file
        };
        let turns = "delegates = 7\n[rules]\nbase = 'eos'";
        for network in ["delegates = 4\nstandby = 36\nmilestones = [{ height = 5, delegates = 40 }]", turns] {
            let file = file(2, network);
            let asked = liveness(&file).expect("there is no fault");
            let within = asked.within_rounds * file.round_slots() * file.network.block_time_s;
            let limit = file.time_limit_seconds.expect("it waits");
            assert!(f64::from(limit) >= asked.from_seconds + f64::from(within), "{network}: {limit}");
        }
        let long = Scenario::parse(
            "version = 1\nrounds = 40000\n[network]\ndelegates = 51\nblock_time_s = 3600\n",
            Path::new("long"),
        );
        let long = as_file(&long.expect("it is a scenario"), &finding("any"), true);
        assert_eq!((long.check(), long.time_limit_seconds), (Ok(()), Some(TIME_LIMIT)));
    }

    #[test]
    fn a_file_lasts_until_its_finding_shows() {
        let text =
            "version = 1\nrounds = 1\n[network]\ndelegates = 40\nmilestones = [{ height = 41, delegates = 4 }]\n";
        let start = Scenario::parse(text, Path::new("lasts")).expect("it is a scenario");
        let late = Finding { after_seconds: 800.0, ..finding("any") };
        assert!(at_least_until(&start, &late).nominal_slots() >= 100);
    }

    #[test]
    fn who_is_gone_is_named_by_no_fault() {
        let censors = "kind = 'censor'\ndelegates = [1, 5]\nsender = 'genesis_6'";
        let kind = toml::from_str(censors).expect("it is a kind");
        let mut censored = with_fault(&Fault { kind, from: Trigger::Start, until: None });
        censored.network.standby = 0;
        keep_who_is_there(&mut censored);
        assert!(censored.faults.is_empty() && censored.actions.is_empty(), "whom it censors is gone");
    }
}
