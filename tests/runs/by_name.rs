//! Draws by name: what is decided at random in a run depends on what it is about, and on nothing else that is decided in it.

use crate::{mathematics::samples::correlation, support::scenario as shipped};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    check::swarm::{Frame, draw},
    ledger::codec::{Save, Saver},
    protocol::crypto::CryptoMode,
    report::Metrics,
    scenario::{Action, Scenario, StageKind, repetition, workload::Workload},
    sim::{Fault, NetworkModel, Observer, SeedTree, fault::Trigger, stage::inline::InlineStage, trace},
};
use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

/// All events of a run: when, and what.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<(SimTime, u64)>>>);

impl Observer for Told {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.0.lock().expect("nobody panics").push((now, trace::fingerprint(now, node, event)));
    }
}

fn events(scenario: &Scenario, seed: u64) -> Vec<(SimTime, u64)> {
    let seeds = SeedTree::new(seed);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let told = Told::default();
    scenario.play(&plan, StageKind::Inline, vec![Box::new(told.clone())], |_| {}).expect("no actor dies");
    std::mem::take(&mut told.0.lock().expect("nobody panics"))
}

/// A scenario of the swarm, and two entries that draw all the time: most drawn scenarios have none.
pub fn drawn(seed: u64) -> Scenario {
    let mut drawn = draw(&Frame { delegates: Some(7), rounds: Some(3), ..Frame::default() }, seed);
    let read = "kind = \"drop\"\nchance = 0.02\n";
    drawn.faults.push(toml::from_str(read).expect("it is a fault"));
    let read = "kind = \"generate\"\nper_second = 0.5\n";
    drawn.workloads.push(toml::from_str(read).expect("it is a workload"));
    Scenario { rounds: drawn.rounds.min(4), crypto: CryptoMode::Modelled, ..drawn }
}

/// Entries that never begin.
fn idle() -> (Vec<Fault>, Action, Workload) {
    let never = "from = { seconds = 3000000000 }\n";
    let fault = |text: &str| toml::from_str(&format!("{text}{never}")).expect("it is a fault");
    let faults = [
        "kind = \"drop\"\nchance = 0.5\n",
        "kind = \"offline\"\ndelegates = [1]\n",
        "kind = \"spam-pool\"\nper_second = 3.0\n",
    ];
    let workload =
        toml::from_str(&format!("kind = \"generate\"\nper_second = 9.0\n{never}")).expect("it is a workload");
    let action = "height = 4000000000\nby = \"account_1\"\ndoes = \"transfer\"\nto = \"account_2\"\n";
    (faults.map(fault).into(), toml::from_str(action).expect("it is an action"), workload)
}

fn with_idle_entries(scenario: &Scenario) -> Scenario {
    let (faults, action, workload) = idle();
    let mut scenario = scenario.clone();
    for (place, fault) in faults.into_iter().enumerate() {
        let place = (2 * place).min(scenario.faults.len());
        scenario.faults.insert(place, fault);
    }
    scenario.actions.insert(0, action);
    scenario.workloads.insert(0, workload);
    scenario
}

/// As if they were taken away from a scenario that has them: no other decision becomes another.
#[test]
fn entries_that_do_nothing_change_no_draw_of_others() {
    let short = |name: &str| Scenario { rounds: 3, crypto: CryptoMode::Modelled, ..shipped(name) };
    let shipped = ["busy", "dropped-blocks", "duplicated-blocks", "lossy", "spam"].map(short);
    for scenario in (0..24).map(drawn).chain(shipped).chain([entries()]) {
        let (without, with) = (events(&scenario, 1), events(&with_idle_entries(&scenario), 1));
        let first = without.iter().zip(&with).position(|(one, other)| one != other);
        assert_eq!((first, without.len()), (None, with.len()), "{}", scenario.to_toml());
    }
}

/// A chance of 0 is a draw, too: such an entry is in force, and no other decision becomes another. In half of these networks nothing
/// else is drawn for messages before a fault begins, in the middle of a slot.
#[test]
fn entries_of_chance_0_change_no_event() {
    let quiet = |mut scenario: Scenario| {
        scenario.network.model = NetworkModel::default();
        scenario
    };
    let never =
        ["kind = \"drop\"\n", "kind = \"delay\"\nby_ms = 700\n", "kind = \"duplicate\"\ncopies = 2\nwithin_ms = 9\n"];
    // Messages all the time, and a fault that begins among those of a slot.
    let text = "version = 1\nrounds = 4\ncrypto = \"modelled\"\n[network]\ndelegates = 5\n[[workload]]\nkind = \"generate\"\n\
                per_second = 4.0\n[[fault]]\nkind = \"drop\"\nchance = 0.5\nfrom = { seconds = 60 }\n";
    let busy = Scenario::parse(text, Path::new("busy")).expect("it is a scenario");
    for scenario in (0..12).map(drawn).chain([entries(), busy]).flat_map(|scenario| [quiet(scenario.clone()), scenario])
    {
        for fault in never {
            let text = format!("{fault}chance = 0.0\nfrom = {{ seconds = 3.0 }}\n");
            let mut with = scenario.clone();
            with.faults.insert(0, toml::from_str(&text).expect("it is a fault"));
            let (without, with) = (events(&scenario, 1), events(&with, 1));
            let first = without.iter().zip(&with).position(|(one, other)| one != other);
            assert_eq!((first, without.len()), (None, with.len()), "{text}{}", scenario.to_toml());
        }
    }
}

/// Five delegates, and what draws: for messages, by delegates, by clients. Each begins at its time, the last one first in its list.
const ENTRIES: &str = "version = 1\nrounds = 8\ncrypto = \"modelled\"\n\
    [network]\ndelegates = 5\nloss = 0.01\nduplication = 0.01\nlatency = { distribution = \"log-normal\", median_ms = 60, sigma = 1.0, per = \"message\" }\n\
    [[fault]]\nkind = \"drop\"\nchance = 0.2\nfrom = { seconds = 140 }\n\
    [[fault]]\nkind = \"delay\"\nby_ms = 100\njitter_ms = 900\nfrom = { seconds = 120 }\n\
    [[fault]]\nkind = \"drop\"\nchance = 0.05\nmessages = [\"block\"]\nfrom = { seconds = 30 }\n\
    [[fault]]\nkind = \"late-forging\"\ndelegates = [4]\nby_ms = 2000\nfrom = { seconds = 30 }\n\
    [[fault]]\nkind = \"late-forging\"\ndelegates = [3]\nby_ms = 2000\nfrom = { seconds = 25 }\n\
    [[fault]]\nkind = \"spam-pool\"\nper_second = 0.5\nfrom = { seconds = 90 }\n\
    [[fault]]\nkind = \"spam-pool\"\nper_second = 0.4\nnodes = [1]\nfrom = { seconds = 20 }\n\
    [[workload]]\nkind = \"generate\"\nper_second = 1.0\nfrom = { seconds = 80 }\n\
    [[workload]]\nkind = \"generate\"\nper_second = 0.5\nwallets = 3\nfrom = { seconds = 10 }\n";

pub fn entries() -> Scenario {
    Scenario::parse(ENTRIES, Path::new("entries")).expect("it is a scenario")
}

/// What a copy of a run does that draws anew from this seed, 60 seconds into the run, and until 200 seconds.
fn anew(scenario: &Scenario, seed: Option<u64>) -> Vec<(SimTime, u64)> {
    let seeds = SeedTree::new(3);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let mut stage = InlineStage::new(&plan, Vec::new());
    let after = |seconds| plan.start + Duration::from_secs(seconds);
    stage.run_until(after(60));
    let mut copy = InlineStage::at(&stage.moment());
    if let Some(seed) = seed {
        copy.draw_anew(SeedTree::new(seed));
    }
    let told = Told::default();
    copy.watch(Box::new(told.clone()));
    copy.run_until(after(200));
    std::mem::take(&mut told.0.lock().expect("nobody panics"))
}

/// Of a peer, the seed alone is another one: a copy that keeps drawing as it did would be no other run.
#[test]
fn each_peer_of_a_copy_draws_anew() {
    let seeds = SeedTree::new(3);
    let scenario = entries();
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let peer = |seed: u64, node: usize| {
        let mut stage = InlineStage::new(&plan, Vec::new());
        stage.draw_anew(SeedTree::new(seed));
        let mut out = Saver::new(&plan.tree);
        stage.moment().actors()[3 * node].save(&mut out);
        out.finish().0
    };
    for node in 0..5 {
        let (one, other) = (peer(8, node), peer(9, node));
        let differing = one.iter().zip(&other).filter(|(one, other)| one != other).count();
        assert!(one == peer(8, node) && differing > 4, "{differing} bytes of peer {node} differ");
    }
}

/// The same draws anew give the same run, others another one; and they, too, depend on what each is about.
#[test]
fn a_copy_that_draws_anew_draws_by_name_as_well() {
    let all = entries();
    let (one, other) = (anew(&all, Some(8)), anew(&all, Some(9)));
    assert_eq!(one, anew(&all, Some(8)));
    assert!(one != other && one != anew(&all, None));
    assert_eq!(one, anew(&with_idle_entries(&all), Some(8)), "entries that do nothing move nothing");
    let messages = Scenario { faults: Vec::new(), workloads: Vec::new(), ..all };
    assert_ne!(anew(&messages, Some(8)), anew(&messages, Some(9)), "messages alone");
    let mut clients = messages.clone();
    clients.network.model = NetworkModel::default();
    clients.workloads = entries().workloads;
    assert_ne!(anew(&clients, Some(8)), anew(&clients, Some(9)), "clients alone");
}

/// Until an entry begins, a run is the same without it.
#[test]
fn an_entry_that_is_taken_away_changes_nothing_before_it_would_have_begun() {
    let all = entries();
    let whole = events(&all, 3);
    let start = whole[0].0;
    let seconds = |at: SimTime| at.since(start).as_secs_f64();
    let begins = |from: &Trigger| match from {
        Trigger::Seconds(seconds) => *seconds,
        other => panic!("{other:?} is no time"),
    };
    let faults = (0..all.faults.len()).map(|index| {
        let mut fewer = all.clone();
        let gone = fewer.faults.remove(index);
        (fewer, begins(&gone.from), gone.kind.name())
    });
    let workloads = (0..all.workloads.len()).map(|index| {
        let mut fewer = all.clone();
        let gone = fewer.workloads.remove(index);
        (fewer, begins(&gone.from), "workload")
    });
    for (fewer, begins, gone) in faults.chain(workloads) {
        let played = events(&fewer, 3);
        let first = whole.iter().zip(&played).find(|(one, other)| one != other);
        let first = first.map(|(one, other)| seconds(one.0).min(seconds(other.0)));
        assert!(
            first.is_some_and(|first| first >= begins),
            "{gone}: of {begins} s, the first difference at {first:?} s"
        );
    }
}

/// An amount that becomes another changes the outcomes of draws and not the draws: who loses messages at a chance of 0.2 loses those
/// at 0.3, too.
#[test]
fn what_is_lost_at_a_chance_is_lost_at_a_greater_one() {
    let lost = |chance: f64| {
        let text = format!(
            "version = 1\nrounds = 1\ncrypto = \"modelled\"\n[network]\ndelegates = 1\nrelays = 40\n\
             topology = \"star\"\ngossip = \"once\"\n[[fault]]\nkind = \"drop\"\nmessages = [\"block\"]\nchance = {chance}\n",
        );
        let mut scenario = Scenario::parse(&text, Path::new("chance")).expect("it is a scenario");
        scenario.rounds = 3;
        let told = Told::default();
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let received = Received::default();
        scenario
            .play(&plan, StageKind::Inline, vec![Box::new(received.clone()), Box::new(told)], |_| {})
            .expect("no actor dies");
        let received = received.0.lock().expect("nobody panics").clone();
        (0..2)
            .map(|block| (1..41).filter(|node| !received.contains(&(block, *node))).collect::<Vec<u32>>())
            .collect::<Vec<_>>()
    };
    let (few, more) = (lost(0.2), lost(0.5));
    let counts = |lost: &[Vec<u32>]| lost.iter().map(Vec::len).sum::<usize>();
    assert!(counts(&few) > 4 && counts(&more) > 2 * counts(&few) - 8 && counts(&more) < 70, "{few:?} {more:?}");
    for (few, more) in few.iter().zip(&more) {
        assert!(few.iter().all(|node| more.contains(node)), "{few:?} {more:?}");
    }
}

/// The nodes that were pushed the first blocks: the number of the block, and the node.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<std::collections::BTreeSet<(u32, u32)>>>);

impl Observer for Received {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        if let Event::BlockReceived(block) = event {
            let number = block.header.height.0.saturating_sub(2);
            self.0.lock().expect("nobody panics").insert((number, node.0));
        }
    }
}

#[test]
fn a_run_is_the_same_on_both_stages() {
    let shipped = ["lossy", "slow-answers", "busy", "spare-node"].map(shipped);
    for scenario in (0..10).map(drawn).chain([entries()]).chain(shipped) {
        let stages = [StageKind::Inline, StageKind::Ractor];
        let both = repetition::play_twice(&scenario, SeedTree::new(1), stages, |_, _| true).expect("no actor dies");
        assert!(matches!(both, repetition::RepetitionResult::Same { .. }), "{}", scenario.to_toml());
    }
}

/// Missed slots of a run in which each message takes its own time, 150 ms in the median.
fn missed(rules: &str, seed: u64) -> f64 {
    let text = format!(
        "version = 1\nrounds = 5\ncrypto = \"modelled\"\n[network]\ndelegates = 11\nlatency = {{ distribution = \"log-normal\", \
         median_ms = 150, sigma = 1.2, per = \"message\" }}\n[rules]\nbase = \"{rules}\"\n"
    );
    let scenario = Scenario::parse(&text, Path::new("paired")).expect("it is a scenario");
    let seeds = SeedTree::new(seed);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let metrics = Metrics::new(&plan);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(metrics.clone())];
    let outcome = scenario.play(&plan, StageKind::Inline, observers, |_| {}).expect("no actor dies");
    metrics.finish(outcome.end).total.missed_slots as f64
}

/// The study that docs/simulation.md states: two rule sets of the reference, compared seed by seed.
#[test]
fn two_rule_sets_are_compared_draw_by_draw() {
    let pairs: Vec<(f64, f64)> = (0..60).map(|seed| (missed("reference", seed), missed("corrected", seed))).collect();
    let apart: Vec<(f64, f64)> = pairs.iter().zip(&pairs[1..]).map(|(one, next)| (one.0, next.1)).collect();
    let near = |found: f64, said: f64, digit: f64| {
        assert!((found - said).abs() <= 0.5 * digit, "found {found}, docs/simulation.md says {said}");
    };
    near(correlation(&pairs), 0.97, 0.01);
    assert!(correlation(&apart).abs() < 0.3, "runs of different seeds have nothing to do with each other");
    let variance = |all: &mut dyn Iterator<Item = f64>| {
        let all: Vec<f64> = all.collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (all.len() - 1) as f64
    };
    let alone = variance(&mut pairs.iter().map(|pair| pair.0)) + variance(&mut pairs.iter().map(|pair| pair.1));
    let paired = variance(&mut pairs.iter().map(|pair| pair.0 - pair.1));
    near(alone / paired, 30.0, 1.0);
}
