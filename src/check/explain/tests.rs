use super::{
    Course, Explanation, Lines, Options, Session, SideBySide, TargetKind, explain, explain_recorded, explained_by,
    play::Playing,
    record::{Cause, Recorder},
    target::asks_for_conduct,
};
use crate::{
    actors::{Choices, Event, NodeId, SimTime},
    check::conduct,
    ledger::Link,
    protocol::{Height, Slot, crypto::sha256},
    scenario::{FaultDesk, Scenario, StageKind},
    sim::{
        Intervention, Observer, SeedTree, TraceDigest, entry_names,
        fault::MessageKind,
        intervention::{ReorgRequest, ReturnedTransactions},
        snapshots::{CameIn, SnapshotId},
        stage::inline::InlineStage,
    },
    statistics::interval::of_share,
};
use rand::{Rng, RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::{
    path::Path,
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::Duration,
};

const OPTIONS: Options = Options { seed: 1, repeats: Some(60), instants: 12, budget: 0, lines: 60, jobs: 2 };

fn scenario(text: &str) -> Scenario {
    Scenario::parse(&format!("version = 1\n{text}"), Path::new("explained")).expect("a scenario")
}

fn explained(scenario: &Scenario, options: &Options) -> Explanation {
    explain(scenario, options, &AtomicBool::new(false), &|_, _, _| ()).expect("its assertions name what there is")
}

/// Two delegates, and for one slot what node 0 pushes gets lost with this chance. Each slot has one block, so that one
/// message decides.
fn one_message(slot: u32, chance: f64) -> Scenario {
    let (from, until) = (8 * slot, 8 * (slot + 1));
    scenario(&format!(
        "rounds = 4\ncrypto = 'modelled'\n[network]\ndelegates = 2\ngossip = 'once'\ntopology = 'mesh'\n\
         [[fault]]\nkind = 'drop'\nmessages = ['block']\nsenders = [0]\nreceivers = [1]\nchance = {chance}\n\
         from = {{ seconds = {from} }}\nuntil = {{ seconds = {until} }}\n\
         [[assert]]\nalways = 'agreement >= 1'\n"
    ))
}

/// A slot in which node 0 forges: without its message the nodes part.
fn slot_of_node_0() -> u32 {
    let options = Options { repeats: Some(0), ..OPTIONS };
    (2..6).find(|slot| explained(&one_message(*slot, 1.0), &options).failed).expect("it has slots of its own")
}

#[test]
fn the_curve_counts_what_each_copy_draws() {
    let slot = slot_of_node_0();
    // The base run need not fail: what is asked is given.
    let chance = 0.4;
    let certain = explained(&one_message(slot, 1.0), &Options { repeats: Some(4), ..OPTIONS });
    assert_eq!(certain.target.kind, TargetKind::Assertion);
    let curve = certain.curve.expect("copies were asked for");
    assert!(curve.points.iter().all(|point| point.failed == 4), "with a chance of 1 every copy fails");

    let likely = one_message(slot, chance);
    let seed = (1..40).find(|seed| {
        let options = Options { seed: *seed, repeats: Some(0), ..OPTIONS };
        explained(&likely, &options).failed
    });
    let seed = seed.expect("of 39 seeds one fails");
    let options = Options { seed, repeats: Some(200), ..OPTIONS };
    let curve = explained(&likely, &options).curve.expect("copies were asked for");
    let seeds = SeedTree::new(seed);
    // A second way to the same number: a copy fails if and only if what the fault draws for the message of that slot is below the
    // chance.
    let plan = likely.plan(&likely.testnet(seeds), seeds);
    let in_slot = plan.tree.slots().slot((plan.start + Duration::from_secs(u64::from(8 * slot))).seconds());
    let (block, fault) = (2 * MessageKind::Block as u64, 6);
    let name = sha256(entry_names::name(&likely.faults[0], &[]).as_bytes());
    let name = u64::from_le_bytes(name[..8].try_into().expect("8 of 32 bytes"));
    let recount = |at: u64| {
        let fails = |copy: u64| {
            let own = SeedTree::new(seeds.number(&format!("explain/{at}/{copy}"))).choices("network/messages");
            let message = Choices::new(own.at(&[in_slot.0.into(), 0, 1, block, 0]).next_u64());
            message.of(fault).at(&[name]).random::<f64>() < chance
        };
        (0..200).filter(|copy| fails(*copy)).count() as u64
    };
    let (mut before, mut after) = (0, 0);
    for point in &curve.points {
        let seconds = point.after_seconds;
        assert_eq!(point.interval, of_share(point.failed, point.runs));
        if point.failed == point.runs {
            after += 1;
        } else {
            assert_eq!(point.failed, recount(point.at.micros()), "at {seconds}");
            assert!(point.interval.low < chance && chance < point.interval.high, "at {seconds}: {point:?}");
            before += 1;
        }
    }
    assert!(before > 2 && after > 0, "{curve:?}");
    let certain = curve.certain_from_seconds.expect("it fails in the end");
    let hope = curve.last_hope_seconds.expect("it may go well in the beginning");
    // The last instant comes just after the failure.
    let (from, until) = (f64::from(8 * slot), f64::from(8 * (slot + 1)) + 1e-3);
    assert!(from <= hope && hope < certain && certain <= until, "{hope} and {certain} of {from} to {until}");
    let jump = curve.jump.expect("it rises");
    assert!(jump.is_clear && jump.to_seconds <= until && jump.from_seconds >= from, "{jump:?}");
    assert!(jump.events.iter().any(|event| event.contains("forges block")), "{jump:?}");
}

#[test]
fn a_copy_without_other_draws_is_the_run_itself() {
    let text = "rounds = 4\ncrypto = 'modelled'\n[network]\ndelegates = 5\nloss = 0.05\n\
                [network.latency]\ndistribution = 'uniform'\nmin_ms = 10\nmax_ms = 400\nper = 'message'\n\
                [[workload]]\nkind = 'generate'\nper_second = 0.5\n";
    let scenario = scenario(text);
    let stop = AtomicBool::new(false);
    let seeds = SeedTree::new(3);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let digest = TraceDigest::default();
    let played = scenario.play(&plan, StageKind::Inline, Vec::new(), |_| ()).expect("no actor dies");
    let mut run =
        Playing::new(&Course::of(&scenario), &plan, asks_for_conduct(&scenario), vec![Box::new(digest.clone())])
            .expect("nothing is asserted");
    // In the middle of a slot.
    run.play_until(SimTime::from_micros(51_234_567), &AtomicBool::new(false));
    let mut copy = run.apart(None);
    let mut other = run.apart(Some(SeedTree::new(9)));
    let mut same = run.apart(Some(SeedTree::new(9)));
    let ends = [&mut run, &mut copy, &mut other, &mut same].map(|run| {
        let ended = run.play_to_end(&stop);
        let best = run.seen().best().id();
        (ended, run.now(), run.delivered(), best)
    });
    assert_eq!(digest.digest(), played.digest, "it is the run that `dposlab run` plays");
    assert_eq!((ends[0].2, ends[0].1), (played.delivered, played.end));
    assert_eq!(ends[0], ends[1]);
    assert_ne!(ends[0].2, ends[2].2, "other draws, another run");
    assert_eq!(ends[2], ends[3], "the same draws, the same run");
}

#[test]
fn where_nothing_fails_the_nearest_to_it_is_told() {
    let plain = "rounds = 3\ncrypto = 'modelled'\n[network]\ndelegates = 3\n";
    let nothing = explained(&scenario(plain), &OPTIONS);
    assert_eq!((nothing.target.kind, nothing.failed), (TargetKind::Nothing, false));
    assert!(nothing.curve.is_none() && nothing.nearest.is_none());
    let off = format!("{plain}[[fault]]\nkind = 'offline'\ndelegates = [1]\nrounds = 2\n");
    let missed = explained(&scenario(&off), &Options { repeats: Some(4), ..OPTIONS });
    assert_eq!((missed.target.kind, missed.failed), (TargetKind::MissedSlots, false), "{:?}", missed.target);
    let text = missed.to_string();
    assert!(text.contains("nothing failed; the nearest to it was the slots without a block"), "{text}");
}

/// The blocks of a loaded chain fill no slots of the session.
#[test]
fn missed_slots_count_from_the_height_at_which_a_session_began() {
    let scenario = scenario(
        "rounds = 20\ncrypto = 'modelled'\n[network]\ndelegates = 5\n\
         [[fault]]\nkind = 'offline'\ndelegates = [1]\n",
    );
    let seeds = SeedTree::new(1);
    let testnet = scenario.testnet(seeds);
    let before = scenario.plan(&testnet, seeds);
    let mut stage = InlineStage::new(&before, Vec::new());
    stage.run_until(before.start + Duration::from_secs(400));
    let tip = stage.world().tips().winning().clone();
    assert!(tip.height() > Height(30), "{tip:?}");
    let first = Slot(before.tree.slots().slot(tip.block().header.timestamp).0 + 1);
    let plan = scenario.plan_on(&testnet, before.tree.clone(), tip, first, seeds);
    let course = Course { end: Some(plan.start + Duration::from_secs(20 * 8)), ..Course::of(&scenario) };
    let mut session = Playing::new(&course, &plan, false, Vec::new()).expect("it asserts nothing");
    session.play_to_end(&AtomicBool::new(false));
    let found = session.extremes();
    assert_eq!((found.slots, found.first_missed.is_some()), (20, true));
    assert!((1..10).contains(&found.missed()), "one of five is offline: {found:?}");
}

#[test]
fn a_number_is_brought_back_to_where_it_just_passes() {
    let until = |seconds: u32| {
        scenario(&format!(
            "rounds = 6\ncrypto = 'modelled'\n[network]\ndelegates = 3\n\
             [[fault]]\nkind = 'offline'\ndelegates = [1]\nfrom = {{ seconds = 20 }}\nuntil = {{ seconds = {seconds} }}\n\
             [[assert]]\nalways = 'missed < 3'\n"
        ))
    };
    let none = Options { repeats: Some(0), budget: 60, ..OPTIONS };
    let explanation = explained(&until(130), &none);
    assert!(explanation.failed, "{:?}", explanation.target);
    let nearest = explanation.nearest.expect("changes were to be tried");
    let tried = nearest.passing().find_map(|tried| tried.set.as_ref()?.strip_prefix("fault[0].until.seconds="));
    let seconds: u32 = tried.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{nearest:?}"));
    let fails = |seconds| explained(&until(seconds), &Options { budget: 0, ..none }).failed;
    assert!(!fails(seconds) && fails(seconds + 1), "at {seconds} s it just passes");
    assert!(nearest.passing().any(|tried| tried.change == "without fault 0 'offline'"), "{nearest:?}");
    let distances: Vec<f64> = nearest.passing().map(|tried| tried.distance).collect();
    assert!(distances.is_sorted() && nearest.runs <= 60 + 9 * 8, "the least change comes first: {nearest:?}");
    let one = explained(&until(130), &Options { jobs: 1, ..none });
    assert_eq!(one.nearest.as_ref(), Some(&nearest), "the number of threads changes nothing");
}

#[test]
fn a_joined_condition_is_described_by_the_violation_that_breaks_it() {
    let deep = "invariant \"a rollback is no deeper than a round\"";
    let broken = |condition: &str| {
        let text = format!(
            "rounds = 4\ncrypto = 'modelled'\n[network]\ndelegates = 7\n\
             topology = {{ small-world = {{ reach = 2, rewired = 0.5 }} }}\n[[assert]]\nfinally = '{condition}'\n"
        );
        let explanation = explained(&scenario(&text), &Options { repeats: Some(0), budget: 0, ..OPTIONS });
        assert!(explanation.failed, "{condition}: {:?}", explanation.target);
        explanation.target
    };
    for condition in [format!("{deep} and height > 3"), format!("height > 3 and ({deep} and height > 4)")] {
        assert!(broken(&condition).what.contains("blocks behind"), "{condition}");
    }
    for condition in
        [format!("not {deep} and height < 3"), format!("not ({deep} or height > 3)"), format!("{deep} or height < 3")]
    {
        assert!(broken(&condition).node.is_none(), "{condition}");
    }
    let converged = conduct::CONVERGED.name;
    assert!(broken(&format!("height < 3 and invariant \"{converged}\"")).is_liveness());
    assert!(!broken("height < 3").is_liveness());
}

/// A few copies and changes, so that many runs can be explained.
const FEW: Options = Options { seed: 1, repeats: Some(2), instants: 3, budget: 6, lines: 30, jobs: 1 };

/// Findings with numbers and words changed by chance: each is refused by the reader, or explained; none panics.
#[test]
fn changed_findings_are_refused_or_explained() {
    let seeds = [
        include_str!("../../../scenarios/findings/a-pool-holds-no-more-than-its-limit.toml"),
        include_str!("../../../scenarios/findings/a-rollback-is-no-deeper-than-a-round.toml"),
        include_str!("../../../scenarios/findings/a-forger-sees-registered-hashes.toml"),
    ];
    let words =
        ["0", "1", "3", "7", "66", "4294967295", "-1", "0.5", "'all'", "[]", "true", "'crash'", "'partition'", ""];
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let (mut read, cases) = (0, 320);
    for case in 0..cases {
        let mut lines: Vec<String> = seeds[case % seeds.len()].lines().map(str::to_owned).collect();
        for _ in 0..random.random_range(1..=2) {
            let place = random.random_range(0..lines.len());
            let word = words[random.random_range(0..words.len())];
            lines[place] = match (random.random_range(0..4), lines[place].split_once('=')) {
                (0, _) => String::new(),
                (1, _) => lines[random.random_range(0..lines.len())].clone(),
                (_, Some((key, _))) => format!("{key}= {word}"),
                (_, None) => word.to_owned(),
            };
        }
        let Ok(mut changed) = Scenario::parse(&lines.join("\n"), Path::new("changed.toml")) else { continue };
        if changed.network.nodes() > 9 || changed.faults.len() + changed.actions.len() > 12 {
            continue;
        }
        changed.rounds = changed.rounds.min(3);
        changed.time_limit_seconds = Some(changed.time_limit_seconds.unwrap_or(200).min(200));
        read += 1;
        if let Ok(explanation) = explain(&changed, &FEW, &AtomicBool::new(false), &|_, _, _| ()) {
            assert!(!explanation.to_string().is_empty() && !serde_json::json!(explanation).is_null());
        }
    }
    assert!(read > 30, "{read} of {cases} were read");
}

/// Draws an input of a live run: faults of all sorts, ends of faults that exist and that do not, reorganisations,
/// snapshots, going back.
fn came_in(random: &mut Xoshiro256PlusPlus, desk: &FaultDesk) -> Intervention {
    let faults = [
        serde_json::json!({ "kind": "partition", "groups": [[0, 1]] }),
        serde_json::json!({ "kind": "crash", "nodes": [1, 2] }),
        serde_json::json!({ "kind": "offline", "delegates": [0] }),
        serde_json::json!({ "kind": "double-forge", "delegates": [3] }),
        serde_json::json!({ "kind": "drop", "messages": ["block"], "chance": 0.5 }),
        serde_json::json!({ "kind": "heal" }),
    ];
    let (node, depth) = (NodeId(random.random_range(0..6)), random.random_range(0..4));
    match random.random_range(0..8) {
        0..=2 => {
            let fault = &faults[random.random_range(0..faults.len())];
            Intervention::AddFault(desk.read(fault).unwrap_or_else(|why| panic!("{fault}: {why}")).into())
        }
        3 => Intervention::EndFault { id: random.random_range(0..5) },
        4 => Intervention::Reorganise(ReorgRequest { node, depth, transactions: ReturnedTransactions::All }.into()),
        5 => Intervention::TakeSnapshot { name: None },
        6 => Intervention::Revert { to: SnapshotId(random.random_range(0..4)) },
        _ => Intervention::DeleteSnapshot { id: SnapshotId(random.random_range(0..4)) },
    }
}

#[test]
fn whatever_came_into_a_session_is_explained() {
    let scenario =
        scenario("rounds = 9\ncrypto = 'modelled'\n[network]\ndelegates = 5\n[[assert]]\nalways = 'missed < 4'\n");
    let seeds = SeedTree::new(1);
    let testnet = scenario.testnet(seeds);
    let plan = || scenario.plan(&testnet, seeds);
    let desk = FaultDesk::new(&plan(), scenario.testnet(seeds));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let (mut went_back, mut failed) = (0, 0);
    for _ in 0..24 {
        let start = plan().start;
        let (mut at, mut inputs, mut taken) = (start.micros(), Vec::new(), Vec::new());
        for _ in 0..random.random_range(1..14) {
            at += random.random_range(0..20_000_000);
            let what = came_in(&mut random, &desk);
            inputs.push(CameIn { at: SimTime::from_micros(at), delivered: 0, what: what.clone() });
            match what {
                Intervention::TakeSnapshot { .. } => taken.push(at),
                // A session that goes back goes on from there.
                Intervention::Revert { to } => at = taken.get((to.0 as usize).wrapping_sub(1)).copied().unwrap_or(at),
                _ => {}
            }
        }
        let lines = Lines::of(inputs, start, SimTime::from_micros(at + 40_000_000));
        let session =
            Session { scenario: &scenario, plan: &plan, lines: &lines, line: None, delegates: Vec::new(), rules: 0 };
        let told = explain_recorded(session, &FEW, &AtomicBool::new(false), &|_, _, _| ());
        let told = told.expect("its assertions name what there is");
        let recording = told.recording.as_ref().expect("it is of a session");
        assert_eq!(recording.left.len() + 1, recording.lines);
        assert!(!told.to_string().is_empty());
        went_back += recording.left.len();
        failed += usize::from(told.failed);
    }
    assert!(went_back > 0 && failed > 3, "{went_back} {failed}");
}

/// Blocks that nodes took back one by one, and the height of the highest block.
#[derive(Clone, Default)]
struct Reverted(Arc<Mutex<(u64, u32)>>);

impl Observer for Reverted {
    fn observe(&mut self, _now: SimTime, _node: NodeId, event: &Event) {
        let mut seen = self.0.lock().expect("no observer panics");
        match event {
            Event::BlockReverted(_) => seen.0 += 1,
            Event::BlockApplied(link) => seen.1 = seen.1.max(link.height().0),
            _ => {}
        }
    }
}

/// Four delegates, cut into two and two: under the reference each side forges one block, under Solar's rule none.
const CUT: &str = "rounds = 30\ncrypto = 'modelled'\n[network]\ndelegates = 4\nrelays = 0\n\
                   [[fault]]\nkind = 'partition'\ngroups = [[0, 1], [2, 3]]\nfrom = { seconds = 64.0 }\nuntil = { seconds = 128.0 }\n";

#[test]
fn a_run_stands_beside_itself_under_other_rules() {
    let cut = scenario(CUT);
    let stop = AtomicBool::new(false);
    let mut explanation = explained(&cut, &Options { repeats: Some(0), ..OPTIONS });
    let names = ["reference", "solar-tie-broken"].map(str::to_owned);
    explanation.play_beside(&cut, &names, &stop).expect("no rule is changed");
    let beside = explanation.beside.as_ref().expect("it was asked for");
    assert_eq!(beside.runs.len(), 3);
    assert_eq!(beside.runs[0].height, beside.runs[1].height, "the default is the reference");
    let first = beside.slots.first().expect("the rules differ");
    assert_eq!((first.seconds, first.alike_before), (64.0, 8), "before the cut nothing tells them apart: {first:?}");
    assert!(beside.slots.iter().all(|slot| slot.cells[0] == slot.cells[1] && slot.cells[0] != slot.cells[2]));
    let in_cut = beside.slots.iter().filter(|slot| (64.0..128.0).contains(&slot.seconds));
    let (quorum, chains) = in_cut.fold((0, 0), |(quorum, chains), slot| {
        (
            quorum + usize::from(slot.cells[2].contains("lacks a quorum")),
            chains + usize::from(slot.cells[0].contains("2 chains")),
        )
    });
    assert!(quorum >= 4 && chains >= 4, "{quorum} slots without a quorum, {chains} with two chains: {beside:?}");
    counts_are_those_of_the_runs(&cut, beside);
    let slots: u32 = beside.runs.iter().map(|run| run.slots).max().expect("three");
    assert_eq!(beside.alike + beside.slots.len() as u32, slots);
    let text = explanation.to_string();
    assert!(
        text.contains("slots alike") && text.contains("rules 'solar-tie-broken'") && text.contains("lacks a quorum"),
        "{text}"
    );
    let mut same = explained(&cut, &Options { repeats: Some(0), ..OPTIONS });
    same.play_beside(&cut, &names[..1], &stop).expect("the same");
    let beside = same.beside.as_ref().expect("it was asked for");
    assert!(beside.slots.is_empty() && beside.alike == beside.runs[0].slots);
    // Here nodes leave blocks.
    same.play_beside(&cut, &["corrected".to_owned()], &stop).expect("no rule is changed");
    let beside = same.beside.as_ref().expect("it was asked for");
    assert!(beside.runs[1].rolled_back > 0);
    counts_are_those_of_the_runs(&cut, beside);
}

/// Holds the counts of each run against the events of the run played alone.
fn counts_are_those_of_the_runs(scenario: &Scenario, beside: &SideBySide) {
    for run in &beside.runs {
        let mut alone = scenario.clone();
        alone.rules.insert("base".to_owned(), run.rules.clone().into());
        let seeds = SeedTree::new(1);
        let plan = alone.plan(&alone.testnet(seeds), seeds);
        let reverted = Reverted::default();
        let watching: Vec<Box<dyn Observer>> = vec![Box::new(reverted.clone())];
        let outcome = alone.play_while(&plan, StageKind::Inline, watching, |_| true).expect("it can be played");
        let reverted = reverted.0.lock().expect("no observer panics");
        assert_eq!(
            (run.ended, run.rolled_back, run.height.0),
            (outcome.ended, reverted.0, reverted.1),
            "{}",
            run.rules
        );
        assert_eq!(run.missed, run.slots - (run.height.0 - 1), "{}: a block or none in each slot", run.rules);
    }
}

/// Where no number of the rules decides, a row says what the node found.
#[test]
fn a_row_under_other_rules_says_what_the_node_found() {
    for (rules, text) in [("solar", "does not forge: 3 of 3 peers = 100 % on the chain"), ("ark-4432", "66 % needed")] {
        let mut cut = scenario(CUT);
        cut.rules.insert("base".to_owned(), rules.into());
        let explanation = explained(&cut, &Options { repeats: Some(0), ..OPTIONS });
        let rows: Vec<&str> = explanation.chain.rows.iter().map(|row| row.text.as_str()).collect();
        assert!(rows.iter().all(|row| !row.trim_end().ends_with(':')), "{rules}: {rows:#?}");
        assert!(rows.iter().any(|row| row.contains(text)), "{rules}: {rows:#?}");
    }
}

/// A record that forgets the beginning of a run holds the same of the rest as one of the whole run, by indices of its own.
#[test]
fn a_full_record_forgets_the_beginning_and_keeps_how_the_rest_hangs_together() {
    let scenario = scenario(
        "rounds = 6\ncrypto = 'modelled'\n[network]\ndelegates = 7\ngossip = 'reference'\n\
         [[fault]]\nkind = 'partition'\ngroups = [{ share = 0.6 }]\nfrom = { seconds = 150 }\nuntil = { seconds = 250 }\n",
    );
    let seeds = SeedTree::new(1);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let reorganised = |seconds| CameIn {
        at: plan.start + Duration::from_secs(seconds),
        delivered: 0,
        what: Intervention::Reorganise(
            ReorgRequest { node: NodeId(0), depth: 3, transactions: ReturnedTransactions::All }.into(),
        ),
    };
    let course = Course { inputs: (2..30).map(|count| reorganised(40 * count)).collect(), ..Course::of(&scenario) };
    let played = |recorder: &Recorder| {
        let watched: Vec<Box<dyn Observer>> = vec![Box::new(recorder.clone())];
        let run = Playing::new(&course, &plan, false, watched).expect("nothing is asserted");
        run.recorded_by(recorder.clone()).play_to_end(&AtomicBool::new(false));
    };
    let (whole, last) = (Recorder::of_last(usize::MAX, &plan), Recorder::of_last(500, &plan));
    played(&whole);
    played(&last);
    let (whole, last) = (whole.record(), last.record());
    let (count, forgotten) = (last.steps.len(), last.forgotten);
    assert!((250..=500).contains(&count) && forgotten > 500, "{count} steps, {forgotten} before");
    assert_eq!((whole.steps.len(), whole.forgotten), (forgotten + count, 0));
    let mut links = 0;
    let mut moved = |index: Option<usize>| {
        let left = index?.checked_sub(forgotten);
        links += usize::from(left.is_some());
        left
    };
    for (of_whole, of_last) in whole.steps[forgotten..].iter().zip(&last.steps) {
        assert_eq!((of_whole.at, of_whole.actor), (of_last.at, of_last.actor));
        assert_eq!(moved(of_whole.before), of_last.before);
        let cause = match of_whole.cause.clone() {
            Cause::Message { from, sent } => Cause::Message { from, sent: moved(sent) },
            Cause::Asked { after } => Cause::Asked { after: moved(after) },
            other => other,
        };
        assert_eq!(cause, of_last.cause);
        let peers = of_whole.peers.iter().map(|(peer, id, height, step)| (*peer, *id, *height, moved(*step)));
        assert_eq!(peers.collect::<Vec<_>>(), of_last.peers);
    }
    assert!(links > count, "or next to nothing hangs together: {links}");
    let asked = last.steps.iter().filter(|step| matches!(step.cause, Cause::Asked { after: Some(_) })).count();
    assert!(asked >= 2, "or no reorganisation follows the forgetting: {asked}");
    let slice = whole.slice([whole.steps.len() - 1]);
    assert_eq!(slice[forgotten..], last.slice([count - 1]));
    let mut tips = whole.first_tips.clone();
    for (step, event) in whole.steps[..forgotten].iter().flat_map(|step| step.events.iter().map(move |one| (step, one)))
    {
        if let Event::BlockApplied(link) | Event::RolledBack { to: link, .. } = event {
            tips[step.actor.node.0 as usize] = link.clone();
        }
    }
    let ids = |tips: &[Arc<Link>]| tips.iter().map(|tip| tip.id()).collect::<Vec<_>>();
    assert_eq!(ids(&tips), ids(&last.first_tips));
    assert!(tips.iter().any(|tip| tip.height() > plan.tip.height()));
}

/// A run that goes on long after its failure is recorded again, up to the failure.
#[test]
fn an_early_failure_of_a_long_run_has_its_steps() {
    let scenario = scenario(
        "rounds = 30\ncrypto = 'modelled'\n[network]\ndelegates = 5\ngossip = 'reference'\n\
         [[fault]]\nkind = 'partition'\ngroups = [{ share = 0.6 }]\nfrom = { seconds = 60 }\nuntil = { seconds = 150 }\n\
         [[fault]]\nkind = 'offline'\ndelegates = [1]\nfrom = { seconds = 900 }\nuntil = { seconds = 940 }\n\
         [[assert]]\nalways = 'chains <= 1'\n",
    );
    let seeds = SeedTree::new(1);
    let anew = || scenario.plan(&scenario.testnet(seeds), seeds);
    let by = |steps_max: usize| {
        let (options, stop) = (Options { repeats: Some(0), ..OPTIONS }, AtomicBool::new(false));
        explained_by(steps_max, &Course::of(&scenario), &anew, &options, &stop, &|_, _, _| ())
            .expect("its assertion is known")
    };
    let whole = by(usize::MAX);
    let before = whole.chain.steps as usize;
    assert!(whole.failed && before > 100, "{before} steps before the failure");
    let text = |explanation: &Explanation| serde_json::to_value(explanation).expect("it has a JSON");
    assert_eq!(text(&by(before + 20)), text(&whole));
    let late = by(before / 2);
    assert!(late.chain.steps_forgotten > 0 && late.chain.steps >= before as u64 / 4, "{:?}", late.chain.steps);
    assert_eq!(text(&late)["faults"], text(&whole)["faults"], "the later fault, too");
    assert_eq!(late.chain.rows.last().map(|row| &row.text), whole.chain.rows.last().map(|row| &row.text));
}
