//! Forks around the end of a round, whose sides have other delegates, orders and statistics: the rounds of a report, the figures
//! of rollbacks and the times to one chain, each held against a direct computation from the blocks and events.

use dposlab::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link},
    protocol::{Height, Slot},
    report::{Metrics, RoundReport, Rounds, metrics::Figures},
    scenario::{Outcome, Scenario, StageKind},
    sim::{NetworkEvent, Observer, Plan, SeedTree, Tips},
};
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex},
};

const NODES: u32 = 7;
/// Delegates beyond those that are active at a time, which votes bring in and out.
const STANDBY: u32 = 2;

/// A network in two parts around the end of a round, and what votes and nodes do meanwhile.
#[derive(Clone, Debug)]
struct Trouble {
    round: u32,
    /// Blocks before the end of the round at which the network parts, and after it at which it is one again.
    before: u32,
    after: u32,
    /// Nodes of one part.
    part: u32,
    swing: Option<(u32, bool)>,
    crash: Option<(u32, u32)>,
    offline: Option<u32>,
    seed: u64,
}

fn trouble() -> impl Strategy<Value = Trouble> {
    let swing = prop::option::weighted(0.7, (1..=NODES, any::<bool>()));
    let crash = prop::option::weighted(0.4, (0..NODES, 10..120_u32));
    let offline = prop::option::weighted(0.4, 1..=NODES);
    ((2..4_u32, 1..4_u32, 0..6_u32, 1..NODES), swing, crash, offline, 1..1_000_u64).prop_map(
        |((round, before, after, part), swing, crash, offline, seed)| Trouble {
            round,
            before,
            after,
            part,
            swing,
            crash,
            offline,
            seed,
        },
    )
}

impl Trouble {
    fn scenario(&self) -> Scenario {
        let Self { round, before, after, part, .. } = *self;
        let active = NODES - STANDBY;
        let last = round * active;
        let mut text = format!(
            "version = 1\nrounds = 26\ncrypto = \"modelled\"\n[network]\ndelegates = {active}\nstandby = {STANDBY}\nreward = 100000000000000\n\
             latency = {{ distribution = \"constant\", ms = 40 }}\n[rules]\nminimum_network_reach = 1\nnode.retry_dropped_peers = true\n\
             [[fault]]\nkind = \"partition\"\ngroups = [{:?}]\nfrom = {{ height = {} }}\nuntil = {{ height = {} }}\n",
            (0..part).collect::<Vec<_>>(),
            last - before,
            last + after
        );
        if let Some((delegate, is_first)) = self.swing {
            let block = if is_first { "first" } else { "last" };
            text += &format!(
                "[[fault]]\nkind = \"vote-swing\"\nvoters = 3\ndelegate = \"genesis_{delegate}\"\nround = {round}\nblock = \"{block}\"\n"
            );
        }
        if let Some((node, lasts)) = self.crash {
            text += &format!(
                "[[fault]]\nkind = \"crash\"\nnodes = [{node}]\nfrom = {{ height = {} }}\nuntil = {{ after = {lasts} }}\n",
                last - 1
            );
        }
        if let Some(delegate) = self.offline {
            text += &format!(
                "[[fault]]\nkind = \"offline\"\ndelegates = [\"genesis_{delegate}\"]\nrounds = [{round}, {}]\n",
                round + 1
            );
        }
        Scenario::parse(&text, Path::new("rivals")).unwrap_or_else(|why| panic!("{why}\n{text}"))
    }
}

/// What events say, summed up as they come.
struct Direct {
    tips: Tips,
    tree: Arc<BlockTree>,
    /// The slot that runs, and the latest round that the winning chain had come to when a slot began.
    slot: u32,
    round: u32,
    /// By round, the number of rollbacks and the most blocks taken back at once.
    rollbacks: BTreeMap<u32, (u32, u32)>,
    causes: BTreeMap<String, u32>,
    depths: BTreeMap<u32, u32>,
    /// Ends of faults: when, and the first instant from then on at which all live nodes stood on one block.
    ends: Vec<(usize, u64, Option<u64>)>,
    /// By the height of blocks that ended a round, the delegates of the round after each.
    lasts: BTreeMap<u32, BTreeSet<Vec<String>>>,
}

#[derive(Clone)]
struct Log(Arc<Mutex<Direct>>);

impl Log {
    fn new(plan: &Plan) -> Self {
        let (tips, tree) = (Tips::new(plan.nodes.len(), &plan.tip), plan.tree.clone());
        let (slot, round) =
            (tree.slots().slot(plan.start.seconds()).0, tree.schedule().at(plan.tip.height().next()).round.0);
        let (rollbacks, causes, depths, ends, lasts) = Default::default();
        Self(Arc::new(Mutex::new(Direct { tips, tree, slot, round, rollbacks, causes, depths, ends, lasts })))
    }
}

impl Direct {
    fn clock(&mut self, now: SimTime) {
        while SimTime::from_seconds(self.tree.slots().start(Slot(self.slot + 1))) <= now {
            self.slot += 1;
            let reached = self.tree.schedule().at(self.tips.winning().height().next()).round.0;
            self.round = self.round.max(reached);
        }
    }

    fn look(&mut self, now: SimTime) {
        let mut live = self.tips.of_live().map(|(_, tip)| tip.id());
        let first = live.next();
        if first.is_some() && live.all(|tip| Some(tip) == first) {
            self.ends.iter_mut().for_each(|(_, _, converged)| *converged = converged.or(Some(now.micros())));
        }
    }
}

impl Observer for Log {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut direct = self.0.lock().expect("nobody panics with it");
        direct.clock(now);
        direct.tips.follow(node, event);
        direct.look(now);
        match event {
            Event::RolledBack { from, to, cause } => {
                let (depth, round) = (from.height().0 - to.height().0, direct.round);
                let (count, most) = direct.rollbacks.entry(round).or_default();
                (*count, *most) = (*count + 1, depth.max(*most));
                *direct.causes.entry(cause.to_string()).or_default() += 1;
                *direct.depths.entry(depth).or_default() += 1;
            }
            Event::BlockApplied(link) => {
                let Some(end) = link.round_end() else { return };
                let keys = end.created.members.iter().map(|member| member.public_key.to_string());
                direct.lasts.entry(link.height().0).or_default().insert(keys.collect());
            }
            _ => {}
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut direct = self.0.lock().expect("nobody panics with it");
        direct.clock(now);
        direct.tips.follow_network(event);
        if let NetworkEvent::FaultEnded { index, .. } = event {
            direct.ends.push((*index, now.micros(), None));
        }
        direct.look(now);
    }
}

struct Played {
    plan: Plan,
    outcome: Outcome,
    rounds: Rounds,
    figures: Figures,
    log: Log,
}

fn play(scenario: &Scenario, seed: u64) -> Played {
    let seeds = SeedTree::new(seed);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let (rounds, metrics, log) = (Rounds::new(&plan), Metrics::new(&plan), Log::new(&plan));
    let observers: Vec<Box<dyn Observer>> =
        vec![Box::new(rounds.clone()), Box::new(metrics.clone()), Box::new(log.clone())];
    let outcome = scenario.play(&plan, StageKind::Inline, observers, |_: Height| {}).expect("no actor dies");
    rounds.close(plan.tree.slots().slot(outcome.end.seconds()));
    log.0.lock().expect("nobody panics with it").clock(outcome.end);
    let figures = metrics.finish(outcome.end);
    Played { plan, outcome, rounds, figures, log }
}

/// A round by its slots: owner, and the height of a block.
#[derive(Default)]
struct OneRound {
    blocks: u32,
    last_height: u32,
    /// Forged and missed, by key.
    slots: BTreeMap<String, (u32, u32)>,
}

/// The rounds of a chain: each block's round is that of the state before it, on a tree that knows no other chain.
fn rounds_of(plan: &Plan, tip: &Arc<Link>, end: Slot) -> BTreeMap<u32, OneRound> {
    let fresh = BlockTree::new(plan.tree.config().clone(), plan.tree.rules().clone()).expect("the same genesis block");
    let slots = fresh.slots();
    let (mut at, mut next) = (fresh.genesis().clone(), slots.slot(plan.start.seconds()));
    let mut all: BTreeMap<u32, OneRound> = BTreeMap::new();
    let mut count = |at: &Arc<Link>, from: Slot, to: Slot, block: Option<u32>| {
        let applied = fresh.applied(at);
        let round = applied.state.round();
        let number = fresh.schedule().at(at.height().next()).round.0;
        let one = all.entry(number).or_insert_with(|| OneRound { last_height: at.height().0, ..OneRound::default() });
        for missed in from.0..to.0 {
            one.slots
                .entry(round.owner(Slot(missed)).expect("each slot has an owner").public_key.to_string())
                .or_default()
                .1 += 1;
        }
        if let Some(height) = block {
            one.slots.entry(round.owner(to).expect("each slot has an owner").public_key.to_string()).or_default().0 +=
                1;
            (one.blocks, one.last_height) = (one.blocks + 1, height);
        }
    };
    for height in 2..=tip.height().0 {
        let block = tip.ancestor(Height(height)).expect("it is the tip's").block().clone();
        let slot = slots.slot(block.header.timestamp);
        count(&at, next, slot, Some(height));
        next = Slot(slot.0 + 1);
        at = fresh.extend(&at, &block).expect("it was taken before");
    }
    count(&at, next, end, None);
    all
}

fn check_rounds(found: &[RoundReport], wanted: &BTreeMap<u32, OneRound>) -> Result<(), TestCaseError> {
    let some = wanted.iter().filter(|(_, one)| !one.slots.is_empty());
    prop_assert_eq!(
        found.iter().map(|round| round.round).collect::<Vec<_>>(),
        some.clone().map(|(n, _)| *n).collect::<Vec<_>>()
    );
    for (found, (number, wanted)) in found.iter().zip(some) {
        let slots: BTreeMap<String, (u32, u32)> = found
            .delegates
            .iter()
            .filter(|delegate| delegate.owned > 0)
            .map(|delegate| (delegate.public_key.clone(), (delegate.forged, delegate.missed)))
            .collect();
        prop_assert_eq!(&slots, &wanted.slots, "round {}", number);
        prop_assert!(found.delegates.iter().all(|delegate| delegate.owned == delegate.forged + delegate.missed));
        prop_assert_eq!(found.delegates.len() as u32, NODES - STANDBY, "round {}", number);
        let missed: u32 = wanted.slots.values().map(|(_, missed)| missed).sum();
        prop_assert_eq!(
            (found.blocks, found.last_height, found.missed_slots),
            (wanted.blocks, wanted.last_height, missed)
        );
    }
    Ok(())
}

fn check_figures(figures: &Figures, direct: &Direct, end: SimTime) -> Result<(), TestCaseError> {
    let rollbacks: BTreeMap<u32, (u32, u32)> = figures
        .rounds
        .iter()
        .filter(|round| round.rollbacks > 0)
        .map(|round| (round.round, (round.rollbacks, round.rollback_depth_max)))
        .collect();
    prop_assert_eq!(&rollbacks, &direct.rollbacks);
    let total = &figures.total;
    prop_assert_eq!(total.rollbacks, direct.rollbacks.values().map(|(count, _)| count).sum::<u32>());
    prop_assert_eq!(total.rollback_depth_max, direct.rollbacks.values().map(|(_, most)| *most).max().unwrap_or(0));
    prop_assert_eq!(&total.rollbacks_by_cause, &direct.causes);
    prop_assert_eq!(&total.rollbacks_by_depth, &direct.depths);
    let seconds = |from: u64, to: u64| (to - from) as f64 / 1e6;
    prop_assert_eq!(figures.heals.len(), direct.ends.len());
    for (heal, (fault, at, converged)) in figures.heals.iter().zip(&direct.ends) {
        prop_assert_eq!((heal.fault, heal.at_us), (*fault, *at));
        prop_assert_eq!(heal.converged_seconds, converged.map(|to| seconds(*at, to)), "fault {}", fault);
        prop_assert_eq!(heal.observed_seconds, seconds(*at, converged.unwrap_or(end.micros())), "fault {}", fault);
    }
    let times: Option<Vec<f64>> = direct.ends.iter().map(|(_, at, to)| to.map(|to| seconds(*at, to))).collect();
    prop_assert_eq!(total.converged_seconds_max, times.and_then(|times| times.into_iter().reduce(f64::max)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reports_of_rounds_and_forks_are_what_blocks_and_events_say(trouble in trouble()) {
        let scenario = trouble.scenario();
        let played = play(&scenario, trouble.seed);
        let (tip, end) = (played.rounds.tip(), played.plan.tree.slots().slot(played.outcome.end.seconds()));
        let wanted = rounds_of(&played.plan, &tip, end);
        check_rounds(&played.rounds.rounds(), &wanted)?;
        check_rounds(&played.figures.chain, &wanted)?;
        let direct = played.log.0.lock().expect("nobody panics with it");
        check_figures(&played.figures, &direct, played.outcome.end)?;
    }
}

/// Of the runs above enough have two blocks that end the same round, and other delegates after them.
#[test]
fn rival_ends_of_a_round_have_other_delegates_and_are_left() {
    let (mut rivals, mut left) = (0, 0);
    for seed in 1..=6 {
        let trouble = Trouble {
            round: 2,
            before: 3,
            after: 3,
            part: 3,
            swing: Some((7, false)),
            crash: None,
            offline: Some(2),
            seed,
        };
        let played = play(&trouble.scenario(), seed);
        let direct = played.log.0.lock().expect("nobody panics with it");
        rivals += direct.lasts.values().filter(|lasts| lasts.len() > 1).count();
        left += direct.rollbacks.values().map(|(count, _)| *count).sum::<u32>();
    }
    assert!(rivals > 0 && left > 0, "{rivals} rival ends of a round, {left} rollbacks");
}
