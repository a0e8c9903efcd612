//! Clocks equal arithmetic, to the microsecond: alone, and in the instants at which delegates forge.

use super::{
    samples::{critical, distance},
    scenario,
};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    scenario::{Scenario, StageKind},
    sim::{NetworkEvent, Observer, SeedTree, clock::Clock},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// The time that a clock shows, in millionths of a microsecond, by whole numbers: nothing is rounded.
fn exact(since: u64, offset: i64, ppm: i32, now: u64) -> i128 {
    let (since, now) = (i128::from(since), i128::from(now));
    (now + i128::from(offset)) * 1_000_000 + (now - since) * i128::from(ppm)
}

const ERRORS: [(i64, i32); 12] = [
    (0, 0),
    (1, 0),
    (-1, 0),
    (0, 1),
    (0, -1),
    (2_500_000, 100_000),
    (-2_500_000, -100_000),
    (1_234_567, -300),
    (-7_654_321, 499),
    (17, 99_999),
    (-3, -99_999),
    (999_999_999, 7),
];

#[test]
fn a_clock_shows_offset_and_drift_and_nothing_else() {
    for (offset, ppm) in ERRORS {
        for since in [0, 1, 50_000_000, 86_400_000_001] {
            let clock = Clock::new(SimTime::from_micros(since), offset, ppm);
            let mut before = 0;
            for step in 0..2_000_u64 {
                let now = since + step * 1_000_003 + step % 7;
                let shown = clock.local(SimTime::from_micros(now)).micros();
                let off = i128::from(shown) * 1_000_000 - exact(since, offset, ppm, now).max(0);
                assert!(off.abs() < 1_000_000, "{clock:?} at {now} shows {shown}: {off} millionths off");
                assert!(shown >= before, "time does not go back");
                before = shown;
            }
        }
    }
}

#[test]
fn a_wake_up_comes_at_the_first_instant_at_which_the_clock_shows_it() {
    for (offset, ppm) in ERRORS {
        for since in [0, 1, 50_000_000, 86_400_000_001] {
            let clock = Clock::new(SimTime::from_micros(since), offset, ppm);
            let shows = |at: u64| clock.local(SimTime::from_micros(at)).micros();
            for step in 0..2_000_u64 {
                let wanted = shows(since) + step * 1_000_003 + step % 7;
                let at = clock.global(SimTime::from_micros(wanted)).micros();
                assert!(shows(at) >= wanted, "{clock:?}: at {at} it shows {} and not {wanted}", shows(at));
                assert!(at <= since || shows(at - 1) < wanted, "{clock:?}: {wanted} is shown before {at} already");
            }
        }
    }
}

#[test]
fn errors_add_up_from_the_instant_each_begins() {
    let at = SimTime::from_micros;
    let first = Clock::new(at(10_000_000), 400_000, 200);
    let second = first.skewed(at(60_000_000), -150_000, 300);
    for now in (60_000_000..400_000_000_u64).step_by(999_983) {
        // 200 ppm over the first 50 s are 10 ms; 500 ppm from then on.
        let wanted =
            now as i128 * 1_000_000 + (400_000 + 10_000 - 150_000) * 1_000_000 + (now - 60_000_000) as i128 * 500;
        let off = i128::from(second.local(at(now)).micros()) * 1_000_000 - wanted;
        assert!(off.abs() < 1_000_000, "{off} millionths off at {now}");
    }
}

/// The times at which blocks were forged, by node and slot, and the time at which the first fault began.
#[derive(Clone, Default)]
struct Forged(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    blocks: Vec<(NodeId, u64, SimTime)>,
    fault: Option<SimTime>,
}

impl Observer for Forged {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        if let Event::BlockForged(block) = event {
            let start = u64::from(block.header.timestamp.0) * 1_000_000;
            self.0.lock().expect("nobody panics with it").blocks.push((node, start, now));
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        if let NetworkEvent::FaultBegan { .. } = event {
            self.0.lock().expect("nobody panics with it").fault = Some(now);
        }
    }
}

fn forged(scenario: &Scenario, seed: u64) -> Told {
    let (seeds, forged) = (SeedTree::new(seed), Forged::default());
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(forged.clone())];
    scenario.play(&plan, StageKind::Inline, observers, |_| {}).expect("no actor dies");
    std::mem::take(&mut forged.0.lock().expect("nobody panics with it"))
}

/// In a slot that follows a full one, a delegate waits two seconds, pings its peers, which takes 100 ms here, and forges.
const INTO_SLOT: u64 = 2_000_000;
const PING: u64 = 100_000;

#[test]
fn a_skewed_delegate_forges_when_its_clock_says_so() {
    for (offset_ms, ppm) in [(400_i64, 0), (-400, 0), (0, 900), (0, -900), (250, -700), (-250, 700)] {
        let text = format!(
            "rounds = 8\n[rules]\nnode.forging_poll_ms = 0\n[network]\ndelegates = 7\nlatency = {{ distribution = \"constant\", ms = 50 }}\n[[fault]]\n\
             kind = \"clock-skew\"\nnodes = [2]\noffset_ms = {offset_ms}\ndrift_ppm = {ppm}\nfrom = {{ seconds = 61.5 }}\n"
        );
        let told = forged(&scenario(&text), 3);
        let since = told.fault.expect("it began").micros();
        let mut skewed = 0;
        for (node, start, at) in told.blocks {
            let shown = start + INTO_SLOT;
            let wanted = match node == NodeId(2) && at.micros() > since + 16_000_000 {
                false => shown,
                true => {
                    skewed += 1;
                    // shown = t + offset + (t - since)·ppm/10⁶, solved for t.
                    let passed = shown as f64 - since as f64 - offset_ms as f64 * 1e3;
                    since + (passed / (1.0 + f64::from(ppm) * 1e-6)).round() as u64
                }
            };
            let off = (at.micros() - PING).abs_diff(wanted);
            let allowed = if wanted == shown { 0 } else { 1 };
            let near_begin = node == NodeId(2) && wanted == shown && at.micros() > since;
            assert!(
                off <= allowed || near_begin,
                "{node}, {offset_ms} ms, {ppm} ppm: {off} µs off in the slot of {start}"
            );
        }
        assert!(skewed >= 4, "{skewed} blocks of the skewed delegate");
    }
}

#[test]
fn clocks_of_a_network_are_drawn_evenly_and_keep_their_offset() {
    let text = "rounds = 3\n[rules]\nnode.forging_poll_ms = 0\n[network]\ndelegates = 51\nlatency = { distribution = \"constant\", ms = 50 }\n\
                clocks = { offset_ms = 600 }\n";
    let scenario = scenario(text);
    let mut offsets = Vec::new();
    for seed in 1..=4 {
        let mut of_node = BTreeMap::<NodeId, Vec<i64>>::new();
        for (node, start, at) in forged(&scenario, seed).blocks {
            let ahead = (start + INTO_SLOT) as i64 - (at.micros() - PING) as i64;
            of_node.entry(node).or_default().push(ahead);
        }
        assert_eq!(of_node.len(), 51);
        for (node, all) in of_node {
            assert!(all.len() >= 2 && all.iter().all(|ahead| *ahead == all[0]), "{node}: {all:?}");
            offsets.push(all[0] as f64 / 1e3);
        }
    }
    assert!(offsets.iter().all(|ahead| ahead.abs() <= 600.0), "{offsets:?}");
    let uniform = |limit: f64| move |ms: f64| ((ms + limit) / (2.0 * limit)).clamp(0.0, 1.0);
    let found = distance(offsets.clone(), uniform(600.0));
    assert!(found < critical(offsets.len()), "a distance of {found}");
    // Half or twice the error would show.
    assert!(distance(offsets.clone(), uniform(400.0)) > critical(offsets.len()));
    assert!(distance(offsets, uniform(900.0)) > 0.14);
}

#[test]
fn each_class_of_nodes_has_clocks_of_its_own() {
    let text = "rounds = 2\n[rules]\nnode.forging_poll_ms = 0\n[network]\ndelegates = 51\nlatency = { distribution = \"constant\", ms = 50 }\n\
                classes = { shares = [1, 2] }\nclocks = [{}, { offset_ms = 600 }]\n";
    let mut wrong = 0;
    for (node, start, at) in forged(&scenario(text), 1).blocks {
        let ahead = (start + INTO_SLOT) as i64 - (at.micros() - PING) as i64;
        assert!(ahead.abs() <= if node.0 < 17 { 0 } else { 600_000 }, "{node}: {ahead}");
        wrong += usize::from(ahead.abs() > 60_000);
    }
    assert!(wrong > 50, "{wrong} of 68 blocks, and nine tenths of an even draw are expected");
}

/// A delegate polls its relay every 200 ms from an instant of its own (consensus.md 2.1), so its blocks come anywhere in that
/// time, drawn apart for each slot.
#[test]
fn the_instants_of_polls_are_drawn_evenly_from_the_time_between_two() {
    let text = "rounds = 3\n[network]\ndelegates = 51\nlatency = { distribution = \"constant\", ms = 50 }\n";
    let into = |text: &str, seed| -> Vec<f64> {
        let blocks = forged(&scenario(text), seed).blocks.into_iter();
        blocks.map(|(_, start, at)| (at.micros() - PING - start - INTO_SLOT) as f64 / 1e3).collect()
    };
    let found: Vec<f64> = (1..=4).flat_map(|seed| into(text, seed)).collect();
    let uniform = |limit: f64| move |ms: f64| (ms / limit).clamp(0.0, 1.0);
    assert!(distance(found.clone(), uniform(200.0)) < critical(found.len()));
    assert!(distance(found, uniform(220.0)) > critical(4 * 152), "a tenth more would show");
    let long: Vec<f64> = into(&format!("{text}[rules]\nnode.forging_poll_ms = 1000\n"), 1);
    assert!(distance(long.clone(), uniform(1_000.0)) < critical(long.len()));
}

/// The effect of a fault on a clock ends with the fault: before and afterwards each clock is off by what the network has drawn
/// for it, and between by the fault's own offset on top.
#[test]
fn a_fault_leaves_each_clock_as_it_was() {
    let text = "rounds = 16\n[rules]\nnode.forging_poll_ms = 0\n[network]\ndelegates = 7\nlatency = { distribution = \"constant\", ms = 50 }\n\
                clocks = { offset_ms = 300 }\n\
                [[fault]]\nkind = \"clock-skew\"\nnodes = [1, 2]\noffset_ms = 350\n\
                from = { seconds = 124.5 }\nuntil = { seconds = 300.5 }\n\
                [[fault]]\nkind = \"clock-skew\"\nnodes = [2, 3]\noffset_ms = -250\n\
                from = { seconds = 420.5 }\nuntil = { seconds = 600.5 }\n";
    for seed in 1..=3 {
        let mut ahead = BTreeMap::<(NodeId, usize), Vec<i64>>::new();
        for (node, start, at) in forged(&scenario(text), seed).blocks {
            let edges = [124_500_000, 300_500_000, 420_500_000, 600_500_000].map(|edge| edge + 8_000_000);
            // A slot's block is begun some seconds before it is told.
            if edges.iter().all(|edge| at.micros().abs_diff(*edge) > 16_000_000) {
                let part = edges.iter().filter(|edge| at.micros() > **edge).count();
                let off = (start + INTO_SLOT) as i64 - (at.micros() - PING) as i64;
                ahead.entry((node, part)).or_default().push(off);
            }
        }
        for node in (0..7).map(NodeId) {
            let own = ahead[&(node, 0)][0];
            assert!(own != 0, "{node}: its clock is off by itself");
            for part in 0..5 {
                let added = match (part, node.0) {
                    (1, 1 | 2) => 350_000,
                    (3, 2 | 3) => -250_000,
                    _ => 0,
                };
                let found = ahead.get(&(node, part)).unwrap_or_else(|| panic!("{node} forges in part {part}"));
                assert!(
                    found.iter().all(|off| *off == own + added),
                    "{node} in part {part}: {found:?}, {own} + {added}"
                );
            }
        }
    }
}
