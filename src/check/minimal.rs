//! From a failing scenario to the smallest one that fails in the same way, and to the file that shows it.

use super::{
    Finding, conduct,
    search::{Networks, liveness, play},
    shrink::{Pass, Shrunk, shrink, smaller, without_parts},
    simpler,
    swarm::{rounds_for, rounds_to_converge},
};
use crate::{
    ledger::rules::Gossip,
    protocol::crypto::CryptoMode,
    scenario::{Action, Assertion, Scenario},
    sim::{
        Fault, FaultKind, Latency, Trigger,
        fault::{NodeRef, Nodes},
        network::Topology,
    },
};
use std::sync::atomic::{AtomicBool, Ordering};

/// A minimal failing scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimal {
    pub scenario: Scenario,
    /// As it shows there.
    pub finding: Finding,
    /// Runs it took to get there.
    pub runs: usize,
    /// Whether it had to end before everything was tried.
    pub cut_short: bool,
}

/// Shrinks a scenario in which an invariant is broken, in `budget` runs at most or until `stop` is set. `progress` hears
/// of each run.
///
/// `None` if the scenario does not break it.
pub fn minimise(
    scenario: &Scenario,
    invariant: &str,
    networks: &Networks,
    budget: usize,
    stop: &AtomicBool,
    mut progress: impl FnMut(usize, &Scenario),
) -> Option<Minimal> {
    let first = shows(scenario, invariant, networks, stop)?;
    let asks_for_liveness = is_liveness(invariant);
    let fitted = |scenario: Scenario| if asks_for_liveness { fit(scenario) } else { scenario };
    let passes: [Pass<'_, Scenario>; 9] =
        [&actions, &faults, &rounds, &network, &delegates, &rules, &fault_details, &action_details, &signatures];
    let passes: Vec<_> = passes
        .iter()
        .map(|pass| {
            move |scenario: &Scenario| {
                pass(scenario).into_iter().map(fitted).filter(Scenario::is_allowed).collect::<Vec<_>>()
            }
        })
        .collect();
    let passes: Vec<Pass<'_, Scenario>> = passes.iter().map(|pass| pass as Pass<'_, Scenario>).collect();
    let mut last = first;
    let fails = |candidate: &Scenario| match shows(candidate, invariant, networks, stop) {
        Some(finding) => {
            last = finding;
            true
        }
        None => false,
    };
    let may_try = |tried| tried < budget && !stop.load(Ordering::Relaxed);
    let Shrunk { value, tried, cut_short } =
        shrink(scenario.clone(), &passes, may_try, fails, |tried, best| progress(tried, best));
    Some(Minimal { scenario: value, finding: last, runs: tried, cut_short })
}

fn shows(scenario: &Scenario, invariant: &str, networks: &Networks, stop: &AtomicBool) -> Option<Finding> {
    let findings = play(scenario, networks, Some(invariant), stop).findings;
    findings.into_iter().find(|finding| finding.invariant == invariant)
}

fn is_liveness(invariant: &str) -> bool {
    [conduct::CONVERGED.name, conduct::PROGRESS.name].contains(&invariant)
}

/// As many rounds as the faults and the time to recover need.
fn fit(mut scenario: Scenario) -> Scenario {
    if let Some(asked) = liveness(&scenario) {
        let round = f64::from(scenario.network.delegates * 8);
        let rounds = (asked.from_seconds / round).ceil() as u32 + asked.within_rounds + 1;
        scenario.rounds = rounds_for(&scenario.network, rounds * scenario.network.delegates);
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
        // The same time, as far as whole rounds can say it.
        scenario.rounds = (scenario.rounds * before).div_ceil(delegates).max(rounds_to_converge(delegates).min(2));
        let old = scenario.network.clone();
        scenario.network.delegates = delegates;
        simpler::refit(&old, &mut scenario.network);
        keep_who_is_there(scenario);
    })
}

/// Faults and actions of nodes that are gone concern those that are left, or nobody.
fn keep_who_is_there(scenario: &mut Scenario) {
    let (nodes, usernames) = (scenario.network.nodes(), scenario.usernames());
    let delegates = usernames.len() as u32;
    scenario.faults.retain_mut(|fault| {
        let limit = if concerns_delegates(&fault.kind) { delegates } else { nodes };
        let mut whole = true;
        for list in lists(&mut fault.kind) {
            list.retain(|node| match node {
                NodeRef::Number(number) => *number < limit,
                NodeRef::Delegate(name) => usernames.contains(name),
            });
            whole &= !list.is_empty();
        }
        whole
    });
    scenario.network.model.links.retain(|link| link.between.0.max(link.between.1) < nodes);
    let is_there = |name: &String| !name.starts_with("genesis_") || usernames.contains(name);
    scenario.actions.retain(|action| is_there(&action.by) && action.to.as_ref().is_none_or(is_there));
    for action in &mut scenario.actions {
        action.node %= nodes;
    }
}

fn concerns_delegates(kind: &FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::Offline(_)
            | FaultKind::LateForging(_)
            | FaultKind::Withhold(_)
            | FaultKind::DoubleForge(_)
            | FaultKind::ForgeOutOfTurn(_)
            | FaultKind::ForgeInvalid(_)
    )
}

/// The lists of nodes in a fault.
fn lists(kind: &mut FaultKind) -> Vec<&mut Vec<NodeRef>> {
    let all: Vec<&mut Nodes> = match kind {
        FaultKind::Partition(partition) => partition.groups.iter_mut().collect(),
        FaultKind::Isolate(some) | FaultKind::Pause(some) | FaultKind::RefuseTransactions(some) => {
            vec![&mut some.nodes]
        }
        FaultKind::Eclipse(eclipse) => vec![&mut eclipse.victims, &mut eclipse.attackers],
        FaultKind::Crash(crash) => vec![&mut crash.nodes],
        FaultKind::Restart(restart) => vec![&mut restart.nodes],
        FaultKind::Slow(slow) => vec![&mut slow.nodes],
        FaultKind::ClockSkew(skew) => vec![&mut skew.nodes],
        FaultKind::Offline(offline) => vec![&mut offline.delegates],
        FaultKind::LateForging(late) => vec![&mut late.delegates],
        FaultKind::Withhold(withhold) => vec![&mut withhold.delegates],
        FaultKind::DoubleForge(some) | FaultKind::MassResignation(some) => vec![&mut some.delegates],
        FaultKind::ForgeOutOfTurn(turn) => vec![&mut turn.delegates],
        FaultKind::ForgeInvalid(invalid) => vec![&mut invalid.delegates],
        FaultKind::Censor(censor) => vec![&mut censor.delegates],
        FaultKind::LieAboutTip(lie) => vec![&mut lie.nodes],
        FaultKind::Heal(_)
        | FaultKind::Drop(_)
        | FaultKind::Delay(_)
        | FaultKind::Duplicate(_)
        | FaultKind::SpamPool(_)
        | FaultKind::LowFeeFlood(_)
        | FaultKind::VoteSwing(_) => Vec::new(),
    };
    let lists = all.into_iter().filter_map(|nodes| match nodes {
        Nodes::List(list) => Some(list),
        Nodes::Span(_) | Nodes::Share(_) => None,
    });
    lists.collect()
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
        for shorter in shorter(fault).into_iter().chain(simpler::faults(fault)) {
            proposals.extend(with(scenario, vec![shorter], |scenario, fault| scenario.faults[index] = fault));
        }
        let mut probe = fault.clone();
        let counts: Vec<usize> = lists(&mut probe.kind).iter().map(|list| list.len()).collect();
        for (which, count) in counts.into_iter().enumerate() {
            for drop in (0..count).filter(|_| count > 1) {
                let mut fewer = fault.clone();
                lists(&mut fewer.kind)[which].remove(drop);
                proposals.extend(with(scenario, vec![fewer], |scenario, fault| scenario.faults[index] = fault));
            }
        }
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
    /// The scenario file: what it shows, in words, then the scenario with the assertion that does not hold.
    pub fn to_toml(&self) -> String {
        let finding = &self.finding;
        let mut text = format!("# Broken: {} ({}).\n", finding.invariant, finding.origin);
        let mut line = |line: &str| text.push_str(&format!("#{}{line}\n", if line.is_empty() { "" } else { " " }));
        if let Some(node) = finding.node {
            line(&format!("Node: {}.", node.0));
        }
        if let (Some(block), Some(height)) = (&finding.block, finding.height) {
            line(&format!("Block: {block} at height {height}."));
        }
        line(&format!("Found: {}.", finding.what.trim_end_matches('.')));
        line("");
        line("The last events before:");
        for told in finding.story.iter().rev().take(12).rev() {
            line(&format!("  {told}"));
        }
        line("");
        line("`dposlab run` on this file ends with exit code 1 and names the same.");
        let mut scenario = self.scenario.clone();
        scenario.description = format!("breaks: {}", finding.invariant);
        scenario.assertions = vec![self.assertion()];
        text + &scenario.to_toml()
    }

    fn assertion(&self) -> Assertion {
        let invariant = self.finding.invariant;
        match liveness(&self.scenario).filter(|_| is_liveness(invariant)) {
            // The run ends when the time to recover does.
            Some(_) if invariant == conduct::CONVERGED.name => {
                Assertion { finally: Some("converged".to_owned()), ..Assertion::default() }
            }
            Some(_) => Assertion {
                finally: Some(format!("height >= {}", self.scenario.last_height())),
                ..Assertion::default()
            },
            None => Assertion { always: Some(format!("invariant {invariant}")), ..Assertion::default() },
        }
    }

    /// A name for its file.
    pub fn file_name(&self) -> String {
        let letters = self.finding.invariant.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '-' });
        let name: String = letters.collect();
        format!("{}.toml", name.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-"))
    }
}
