//! The nearest run that does not fail: one thing changed, and as little of it as goes.
//!
//! The minimiser ([`crate::check::minimal`]) looks for less that still fails; this looks for less change that does not.
//!
//! 1. Single changes are proposed: a fault, an action, a workload or one node of a fault taken away; a rule switched; a
//!    number of a rule or the end of a fault at one of its extremes; a plainer network.
//! 2. Each is played. A change passes if its run no longer shows the failure, and lasts until that is certain.
//! 3. A number that passes at an extreme is brought back halfway to what it was, again and again, for as long as it passes.
//! 4. Any change also changes what is drawn later, and may pass by that alone. So the first ones that pass are repeated with
//!    other draws from their start.
//! 5. Passing changes are ordered by their size: a number by the share by which it differs, one of several things by its share of them,
//!    a switch by a half, all else by one.

use super::{Course, play::Playing, target::asks_for_conduct, trials::Trials};
use crate::{
    check::minimal,
    ledger::Rules,
    scenario::{Override, Scenario, Testnet},
    sim::{FaultKind, SeedTree, Trigger, fault::Nodes},
};
use serde::Serialize;
use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
};

/// A change that was tried, and its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TriedChange {
    /// In words.
    pub change: String,
    /// The change as an argument of `--set`, if `--set` can express it.
    pub set: Option<String>,
    /// The size of the change, from 0 to 1.
    pub distance: f64,
    /// True if the run passes; `null` if it ended before that was certain, or cannot be played with the change.
    pub passes: Option<bool>,
    /// The share of failures when the changed run is repeated from its start with other draws; for the first ones that pass.
    pub other_draws: Option<RepeatCounts>,
}

/// A run that was repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RepeatCounts {
    pub failed: u64,
    pub runs: u64,
}

/// All changes that were tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Nearest {
    /// The changes that pass, the least first, then the others.
    pub tried: Vec<TriedChange>,
    /// The share of failures of the unchanged run, repeated from its start with the same other draws.
    pub unchanged: Option<RepeatCounts>,
    /// The number of runs played.
    pub runs: usize,
    /// True if there were more changes to try than runs.
    pub cut_short: bool,
    /// The changes that were not tried, and the reason.
    pub untried: Option<&'static str>,
}

impl Nearest {
    /// Returns the changes that pass, the least first.
    pub fn passing(&self) -> impl Iterator<Item = &TriedChange> {
        self.tried.iter().filter(|tried| tried.passes == Some(true))
    }
}

/// A change that may be tried.
struct Proposal {
    tried: TriedChange,
    scenario: Scenario,
    /// A number that may move back towards its original value: its path, its original value and its value here.
    number: Option<(String, f64, f64)>,
}

/// A scenario whose changes are tried.
pub(super) struct Changes<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) trials: Trials<'a, Scenario>,
}

/// Returns the run of a changed scenario at its first instant. `testnet` belongs to the unchanged `scenario`.
pub(super) fn playing(
    changed: &Scenario,
    scenario: &Scenario,
    testnet: &Arc<Testnet>,
    seeds: SeedTree,
) -> Option<Playing> {
    let same = same_network(changed, scenario);
    let testnet = if same { testnet.clone() } else { Arc::new(changed.testnet(seeds)) };
    let plan = changed.plan(&testnet, seeds);
    Playing::new(&Course::of(changed), &plan, asks_for_conduct(changed), Vec::new()).ok()
}

/// The largest number of actions that are removed one by one.
const ACTIONS: usize = 16;

impl Changes<'_> {
    /// Tries the changes. `progress` receives the number of runs played and the total.
    pub(super) fn run(&self, progress: &(dyn Fn(u64, u64) + Sync)) -> Nearest {
        let budget = self.trials.budget;
        let mut proposals = self.proposals();
        let cut_short = proposals.len() > budget;
        proposals.truncate(budget);
        let all = budget.max(proposals.len()) as u64;
        let verdicts = self.trials.all_pass(proposals.len(), |index| &proposals[index].scenario, progress);
        let mut runs = proposals.len();
        let mut tried: Vec<(TriedChange, Scenario)> = Vec::new();
        for (proposal, passes) in proposals.into_iter().zip(verdicts) {
            let first = (TriedChange { passes, ..proposal.tried }, proposal.scenario);
            let closer = proposal.number.filter(|_| passes == Some(true)).and_then(|(path, was, is)| {
                let (closer, took) = self.closer(&path, was, is, budget.saturating_sub(runs));
                runs += took;
                progress(runs as u64, all);
                closer
            });
            tried.push(closer.unwrap_or(first));
        }
        let told = self.trials.told(self.scenario, tried, runs, progress);
        Nearest { cut_short: told.cut_short || cut_short, ..told }
    }

    /// Returns the passing value nearest to the original one, and the number of runs spent.
    fn closer(&self, path: &str, was: f64, is: f64, budget: usize) -> (Option<(TriedChange, Scenario)>, usize) {
        let (mut fails, mut passes, mut runs, mut best) = (was, is, 0, None);
        while (passes - fails).abs() > 1.0 && runs < budget && !self.trials.stop.load(Ordering::Relaxed) {
            let middle = f64::midpoint(passes, fails).round();
            if middle == passes || middle == fails {
                break;
            }
            let Some(proposal) = self.number(path, was, middle) else { break };
            runs += 1;
            match self.trials.passes(&proposal.scenario) {
                Some(true) => {
                    passes = middle;
                    best = Some((TriedChange { passes: Some(true), ..proposal.tried }, proposal.scenario));
                }
                _ => fails = middle,
            }
        }
        (best, runs)
    }

    fn proposals(&self) -> Vec<Proposal> {
        let mut all = self.taken_away();
        all.extend(self.ends());
        all.extend(self.thresholds());
        all.extend(self.switches());
        all.extend(self.plainer());
        all.extend(self.moved());
        all
    }

    fn proposal(&self, change: String, distance: f64, edit: impl FnOnce(&mut Scenario)) -> Option<Proposal> {
        let mut scenario = self.scenario.clone();
        edit(&mut scenario);
        let tried = TriedChange { change, set: None, distance, passes: None, other_draws: None };
        self.checked(Proposal { tried, scenario, number: None })
    }

    /// Returns the proposal if it can be played and differs from the original. For a failure of liveness the run gets the time that
    /// recovery takes.
    fn checked(&self, mut proposal: Proposal) -> Option<Proposal> {
        if proposal.scenario == *self.scenario {
            return None;
        }
        if self.trials.target.is_liveness() {
            proposal.scenario.rounds = minimal::fit(proposal.scenario.clone()).rounds.max(self.scenario.rounds);
        }
        proposal.scenario.check().is_ok().then_some(proposal)
    }

    fn set(&self, path: &str, value: &str, distance: f64) -> Option<Proposal> {
        let set = format!("{path}={value}");
        let change: Override = set.parse().ok()?;
        let text = self.scenario.to_toml();
        let scenario = Scenario::parse_with(&text, Path::new("the scenario"), &[change]).ok()?;
        let tried = TriedChange {
            change: format!("{path} is {value}"),
            set: Some(set),
            distance,
            passes: None,
            other_draws: None,
        };
        self.checked(Proposal { tried, scenario, number: None })
    }

    fn number(&self, path: &str, was: f64, is: f64) -> Option<Proposal> {
        let distance = ((is - was).abs() / was.abs().max(1.0)).min(1.0);
        let mut proposal = self.set(path, &format!("{is:.0}"), distance)?;
        proposal.tried.change = format!("{path} is {is:.0} and not {was:.0}");
        proposal.number = Some((path.to_owned(), was, is));
        Some(proposal)
    }

    fn taken_away(&self) -> Vec<Proposal> {
        let Scenario { faults, actions, workloads, agents, .. } = self.scenario;
        let mut all = Vec::new();
        for (index, fault) in faults.iter().enumerate() {
            let name = fault.kind.name();
            // An assertion after a fault names it by its number.
            let is_named = |number: Option<u32>| number.is_some_and(|number| number as usize >= index);
            if !self.scenario.assertions.iter().any(|assertion| is_named(assertion.after_fault)) {
                let change = format!("without fault {index} '{name}'");
                all.extend(self.proposal(change, 1.0, |scenario| drop(scenario.faults.remove(index))));
            }
            for (key, nodes) in fault.kind.nodes() {
                let Nodes::List(list) = nodes else { continue };
                for (place, node) in list.iter().enumerate().filter(|_| list.len() > 1) {
                    let change = format!("fault {index} '{name}' without {node} among its {key}");
                    all.extend(self.proposal(change, 1.0 / list.len() as f64, |scenario| {
                        remove_node(&mut scenario.faults[index].kind, key, place);
                    }));
                }
            }
        }
        for (index, action) in actions.iter().enumerate().take(ACTIONS) {
            let change = format!("without action {index} of {}", action.by);
            let distance = 1.0 / actions.len() as f64;
            all.extend(self.proposal(change, distance, |scenario| drop(scenario.actions.remove(index))));
        }
        for (index, group) in agents.iter().enumerate() {
            let change = format!("without agents {index} '{}'", group.policy.name());
            all.extend(self.proposal(change, 1.0, |scenario| drop(scenario.agents.remove(index))));
        }
        for index in 0..workloads.len() {
            let change = format!("without workload {index}");
            all.extend(self.proposal(change, 1.0, |scenario| drop(scenario.workloads.remove(index))));
        }
        all
    }

    /// Proposes earlier ends of faults.
    fn ends(&self) -> Vec<Proposal> {
        let faults = self.scenario.faults.iter().enumerate();
        let ends = faults.filter_map(|(index, fault)| match (&fault.from, &fault.until) {
            (Trigger::Start, Some(Trigger::Seconds(until))) if *until > 1.0 => {
                self.number(&format!("fault[{index}].until.seconds"), *until, 1.0)
            }
            (Trigger::Seconds(from), Some(Trigger::Seconds(until))) if until - from > 1.0 => {
                self.number(&format!("fault[{index}].until.seconds"), *until, from + 1.0)
            }
            _ => None,
        });
        ends.collect()
    }

    /// The numbers that decide who forges and who rolls back.
    fn thresholds(&self) -> Vec<Proposal> {
        let rules = Rules::from_toml(&self.scenario.rules).unwrap_or_default();
        let nodes = f64::from(self.scenario.network.nodes());
        let reach = f64::from(rules.minimum_network_reach.unwrap_or(0));
        let numbers = [
            ("rules.quorum_percent", f64::from(rules.quorum_percent), 1.0, 100.0),
            ("rules.node.forked_percent", f64::from(rules.node.forked_percent), 1.0, 100.0),
            ("rules.minimum_network_reach", reach, 1.0, nodes - 1.0),
        ];
        let extremes = numbers.into_iter().flat_map(|(path, was, least, most)| {
            [least, most].into_iter().filter(move |is| *is != was).map(move |is| (path, was, is))
        });
        extremes.filter_map(|(path, was, is)| self.number(path, was, is)).collect()
    }

    /// Proposes to switch each boolean rule.
    fn switches(&self) -> Vec<Proposal> {
        let rules = Rules::from_toml(&self.scenario.rules).unwrap_or_default();
        let Ok(toml::Value::Table(table)) = toml::Value::try_from(&rules) else { return Vec::new() };
        let rooms = ["pool", "node"].into_iter().filter_map(|room| Some((room, table.get(room)?.as_table()?)));
        let switches = rooms.flat_map(|(room, table)| {
            let on_or_off = table.iter().filter_map(|(key, value)| Some((key, value.as_bool()?)));
            on_or_off.map(move |(key, is)| (format!("rules.{room}.{key}"), !is)).collect::<Vec<_>>()
        });
        switches.filter_map(|(path, value)| self.set(&path, &value.to_string(), 0.5)).collect()
    }

    /// A network without one of its imperfections.
    fn plainer(&self) -> Vec<Proposal> {
        let latency = "{distribution = \"uniform\", min_ms = 50, max_ms = 50, per = \"link\"}";
        let changes = [
            ("network.loss", "0.0"),
            ("network.duplication", "0.0"),
            ("network.topology", "mesh"),
            ("network.latency", latency),
            ("network.gossip", "once"),
            ("network.gossip", "reference"),
        ];
        changes.into_iter().filter_map(|(path, value)| self.set(path, value, 1.0)).collect()
    }

    /// Actions one block sooner or later.
    fn moved(&self) -> Vec<Proposal> {
        let actions = self.scenario.actions.iter().enumerate().take(ACTIONS);
        let moved = actions.flat_map(|(index, action)| {
            let height = f64::from(action.height);
            [height - 1.0, height + 1.0].map(|is| (format!("action[{index}].height"), height, is))
        });
        moved.filter_map(|(path, was, is)| Some(Proposal { number: None, ..self.number(&path, was, is)? })).collect()
    }
}

/// Removes a node from one of a fault's lists.
pub(super) fn remove_node(kind: &mut FaultKind, key: &str, place: usize) {
    for (known, nodes) in kind.nodes_mut() {
        if let Nodes::List(list) = nodes
            && known == key
        {
            list.remove(place);
            return;
        }
    }
}

/// Returns true if two scenarios have the same keys and genesis.
fn same_network(one: &Scenario, other: &Scenario) -> bool {
    one.origin() == other.origin()
}
