//! Other protocols in a network: known answers of their schedules and rules of finality, and what each does under faults.

use crate::support::{hold_table, run};
use dposlab::{
    actors::{Event, NodeId, SimTime, fork_choice::Chain},
    ledger::{
        BlockTree, Link,
        finality::FinalBlocks,
        rules::{self, NAMED, NamedRules},
        state::Applied,
    },
    protocol::{Height, PublicKey, Slot},
    report::protocols::{Row, SITUATIONS, Situation, compare},
    scenario::{Scenario, StageKind},
    sim::{Observer, SeedTree, tips::common_height},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, iter,
    path::Path,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

fn named(name: &str) -> &'static NamedRules {
    NAMED.iter().find(|named| named.name == name).expect("it is a set of rules")
}

fn situation(name: &str) -> &'static Situation {
    SITUATIONS.iter().find(|situation| situation.name == name).expect("it is a situation")
}

fn row(rules: &str, name: &str) -> Row {
    let rows = compare(&[named(rules)], &[situation(name)], 1..2, 1, &AtomicBool::new(false), |_| {});
    rows.expect("nobody stops it").remove(0)
}

/// 21 delegates: Tron's place 6 of the sorted latest blocks lies 14 below the tip; EOS's turns of twelve come to 330.5; Lisk's shuffled
/// rounds to 33.6, as independent code has it for 21 delegates.
#[test]
fn finality_in_a_healthy_network_is_as_known() {
    let tron = row("tron", "healthy");
    assert_eq!((tron.final_below_mean, tron.final_below_max), (Some(14.0), Some(14)));
    // What is final is read from the chain, so no rule of finality sends a message.
    let reference = row("reference", "healthy");
    assert!((tron.messages / reference.messages - 1.0).abs() < 0.02, "{tron:?}, {reference:?}");
    // The forger asks 20 peers for their state and hears their answers, and each takes the block and passes it to 15 at most.
    assert!((60.0..400.0).contains(&reference.messages), "{reference:?}");
    let eos = row("eos", "healthy");
    let mean = eos.final_below_mean.expect("blocks become final");
    assert!((mean - 330.5).abs() < 0.2 && eos.final_below_max == Some(336), "{eos:?}");
    let lisk = row("lisk", "healthy");
    let mean = lisk.final_below_mean.expect("blocks become final");
    assert!((mean - 33.6).abs() < 2.0, "{lisk:?}");
    for row in [tron, eos, lisk] {
        assert_eq!((row.missed_percent, row.rollbacks, row.conflicts, row.united), (0.0, 0.0, 0, 1), "{row:?}");
    }
}

/// The tip that a node left, and the one that it went back to.
type Rollback = (Arc<Link>, Arc<Link>);

/// A run of a set of rules: its blocks, from the tip down, and what its nodes left.
struct Played {
    chain: Vec<Arc<Link>>,
    left: Vec<Rollback>,
    turn: u32,
    tree: Arc<BlockTree>,
    /// Slots that were played.
    slots: u32,
    /// Of each slot from the tenth on, how many blocks the last live node is behind the winning tip.
    behind: Vec<u32>,
    /// Health checks of all nodes.
    checks: usize,
}

#[derive(Clone, Default)]
struct Left(Arc<Mutex<(Vec<Rollback>, usize)>>);

impl Observer for Left {
    fn observe(&mut self, _: SimTime, _: NodeId, event: &Event) {
        let mut seen = self.0.lock().expect("nobody panics");
        match event {
            Event::RolledBack { from, to, .. } => seen.0.push((from.clone(), to.clone())),
            Event::HealthChecked { .. } => seen.1 += 1,
            _ => {}
        }
    }
}

fn play(rules: &str, faults: &str) -> (Played, impl Fn(&Arc<Link>) -> Arc<Applied>) {
    let text = format!(
        "version = 1\nrounds = 100000\n[network]\ndelegates = 7\ngossip = \"reference\"\n[rules]\nbase = \"{rules}\"\n{faults}"
    );
    let scenario = Scenario::parse(&text, Path::new("test")).unwrap_or_else(|error| panic!("{error}"));
    let seeds = SeedTree::new(1);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let (seen, mut slots, mut behind, mut tip) = (Left::default(), 0, Vec::new(), plan.tip.clone());
    scenario.play_inline(&plan, vec![Box::new(seen.clone())], |stage| {
        slots += 1;
        let tips = stage.world().tips();
        tip = tips.winning().clone();
        if slots >= 10 {
            let lowest = tips.of_live().map(|(_, own)| own.height()).min().unwrap_or(tip.height());
            behind.push(tip.height().0.saturating_sub(lowest.0));
        }
        slots < 400
    });
    let chain =
        iter::successors(Some(tip), |link| link.parent()).filter(|link| link.height() > Height::GENESIS).collect();
    let (left, checks) = std::mem::take(&mut *seen.0.lock().expect("nobody panics"));
    let (tree, turn) = (plan.tree.clone(), plan.tree.rules().ledger.slots_a_turn);
    let asked = tree.clone();
    (Played { chain, left, turn, tree, slots, behind, checks }, move |link| asked.applied(link))
}

const CRASHES: &str = "[[fault]]\nkind = \"crash\"\nnodes = [\"genesis_1\", \"genesis_2\"]\nfrom = { slot = 100 }\nuntil = { slot = 130 }\n";
const SPLIT: &str = "[[fault]]\nkind = \"partition\"\ngroups = [{ from = \"genesis_1\", to = \"genesis_3\" }]\nfrom = { slot = 100 }\nuntil = { slot = 160 }\n";

/// Each owns as many slots in a row as its turn has, and a round has as many turns as delegates.
#[test]
fn a_turn_is_twelve_slots_of_one_delegate() {
    let (played, _) = play("eos", "");
    assert_eq!(played.turn, 12);
    let mut owners: BTreeMap<u32, PublicKey> = BTreeMap::new();
    for link in &played.chain {
        let (slot, forger) = (Slot(link.block().header.timestamp.0 / 8), link.block().header.generator);
        assert_eq!(*owners.entry(slot.0 / 12).or_insert(forger), forger, "slot {slot}");
    }
    let turns: Vec<PublicKey> = owners.into_values().collect();
    for some in turns.windows(8) {
        let distinct: BTreeSet<&PublicKey> = some[..7].iter().collect();
        assert!(distinct.len() == 7 && some[7] == some[0]);
    }
    let ends: Vec<u32> =
        played.chain.iter().filter(|link| link.round_end().is_some()).map(|link| link.height().0).collect();
    assert_eq!(ends, [336, 252, 168, 84], "rounds of 7 turns of 12");
}

/// A delegate says how high it has forged before, also after a crash: what it forgot it would vote for twice.
#[test]
fn a_block_says_how_high_its_forger_has_forged_before() {
    for (rules, faults) in [("lisk", CRASHES), ("eos", CRASHES), ("lisk", SPLIT)] {
        let (played, _) = play(rules, faults);
        let mut before: BTreeMap<PublicKey, Height> = BTreeMap::new();
        for link in played.chain.iter().rev() {
            let block = link.block();
            let own = before.insert(block.header.generator, link.height());
            assert!(
                own.is_none_or(|own| block.header.forged_before >= own),
                "{rules}: {link:?} says {}",
                block.header.forged_before
            );
            assert!(faults == SPLIT || own.is_none_or(|own| block.header.forged_before == own), "{rules}: {link:?}");
        }
        assert!(played.chain.len() > 250, "{rules}: {}", played.chain.len());
    }
    // Where no rule asks, nobody says anything.
    assert!(play("corrected", "").0.chain.iter().all(|link| link.block().header.forged_before == Height(0)));
}

/// A node that takes a second block of a slot for double forging goes back by 4 to 102 blocks at random, and not below what is final: with
/// seven delegates Tron's rule leaves four.
#[test]
fn no_rollback_goes_below_a_final_block() {
    let faults = "ledger.finality = \"solidified\"\n[[fault]]\nkind = \"double-forge\"\ndelegates = [\"genesis_3\"]\nfrom = { slot = 50 }\n";
    let (played, state) = play("corrected", faults);
    let depths: Vec<(Height, Height)> =
        played.left.iter().map(|(from, to)| (to.height(), state(from).state.finality().height())).collect();
    assert!(depths.iter().all(|(to, last_final)| to >= last_final), "{depths:?}");
    assert!(depths.iter().any(|(to, last_final)| to == last_final), "some wanted to go farther: {depths:?}");
}

/// What is final on one side of a split stays, and the other side comes to it.
#[test]
fn after_a_split_all_stand_on_what_was_final() {
    for rules in ["tron", "eos", "lisk"] {
        let (played, state) = play(rules, SPLIT);
        assert!(!played.left.is_empty(), "{rules}: the sides leave their chains");
        for (from, to) in &played.left {
            assert!(to.height() >= state(from).state.finality().height(), "{rules}: from {from:?} to {to:?}");
        }
        assert!(state(&played.chain[0]).state.finality().height() > Height(250), "{rules}: {:?}", played.chain[0]);
    }
}

/// The checker's own count of rounds knows turns, and finds no fault of the ledger's in drawn runs of any set of rules.
#[test]
fn the_checker_knows_the_schedule_of_each_set_of_rules() {
    for named in rules::all() {
        let output = run(&["check", "--rules", named.name, "--delegates", "4", "--runs", "8", "--budget", "0"]);
        let told = String::from_utf8(output.stdout).expect("it is text");
        assert!(told.contains("8 of 8 runs"), "{}: {told}", named.name);
        for invariant in [
            "a block ",
            "round",
            "delegates",
            "only ",
            "supply",
            "weights",
            "empty slots",
            "a final block is never left",
        ] {
            let found = told.lines().find(|line| line.starts_with("broken: ") && line.contains(invariant));
            // What rules of nodes and not of the ledger bring about.
            let known = ["no deeper than a round", "next milestone"];
            assert!(found.is_none_or(|line| known.iter().any(|known| line.contains(known))), "{}: {told}", named.name);
        }
    }
}

/// ARK 3's choice has one dead split of four nodes, two against two: neither side forges, neither leaves. With the tie broken there is
/// none (`actors::fork_choice::tests`).
#[test]
fn a_search_finds_the_halt_of_two_against_two() {
    let told = |rules: &str| {
        let output = run(&["check", "--rules", rules, "--delegates", "4", "--runs", "40", "--budget", "0"]);
        String::from_utf8(output.stdout).expect("it is text")
    };
    assert!(told("ark-4432").contains("cause: no chain grows"));
    let broken = told("solar-tie-broken");
    assert!(broken.contains("40 of 40 runs") && !broken.contains("cause: no chain grows"), "{broken}");
}

/// The table of docs/protocols.md is what the command prints.
#[test]
#[ignore = "long"]
fn the_table_of_protocols_is_what_the_command_prints() {
    let output = run(&["protocols", "--runs", "3"]);
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).expect("it is text");
    hold_table("docs/protocols.md", &table, "REWRITE_PROTOCOLS");
}

/// One chain beside another: they part where they say, or the peer's word of it is worth nothing.
#[test]
fn a_chain_beside_the_own_one_parts_where_it_says() {
    let (played, state) = play("tron", SPLIT);
    let (from, _) = played.left.iter().max_by_key(|(from, to)| from.height().0 - to.height().0).expect("some left");
    let winning = &played.chain[0];
    let parts = common_height(from, winning);
    let beside = |own: &Arc<Link>, common: u32| Chain::beside(own, winning, Height(common), &state(winning).state);
    assert!(parts < from.height() && beside(from, parts.0).is_some());
    for wrong in [parts.0 - 1, parts.0 + 1, from.height().0] {
        assert!(beside(from, wrong).is_none(), "{wrong} for {parts}");
    }
    let below = winning.ancestor(Height(100)).expect("it is there");
    assert!((90..100).all(|common| beside(&below, common).is_none()), "it is the same chain");
}

/// Blocks that are final by one and the same rule on two chains contradict each other.
#[test]
fn final_blocks_on_two_chains_contradict_each_other() {
    // EOS's rule comes to heights slowly, one turn after the other.
    let (played, state) = play("eos", SPLIT);
    let (from, _) = played.left.iter().max_by_key(|(from, to)| from.height().0 - to.height().0).expect("some left");
    let parts = common_height(from, &played.chain[0]);
    let is_beyond = |link: &&Arc<Link>| {
        let height = state(link).state.finality().height();
        height > parts && height <= from.height()
    };
    let later = played.chain.iter().find(is_beyond).expect("the winning chain has become final where the other was");
    let mut finals = FinalBlocks::new(&played.tree);
    assert!(finals.take(from, &state(from).state).is_ok() && finals.take(later, &state(later).state).is_ok());
    // As if the other chain had come as far.
    assert!(finals.take(from, &state(later).state).is_err());
    assert!(finals.take(later, &state(later).state).is_ok());
}

/// A node that has gone back downloads at once what came meanwhile, and does not wait for its timer of a minute. Nobody
/// looks where others stand for nothing, though links double blocks.
#[test]
fn nodes_that_look_at_once_are_never_far_behind() {
    let double = "[[fault]]\nkind = \"double-forge\"\ndelegates = [\"genesis_3\"]\nfrom = { slot = 20 }\n";
    for rules in ["tron", "solar"] {
        let (played, _) = play(rules, double);
        let most = played.behind.iter().max().expect("slots were played");
        assert!(!played.left.is_empty() && *most <= 2, "{rules}: {:?}", played.behind);
    }
    let (played, _) = play("tron", "[[fault]]\nkind = \"duplicate\"\nchance = 0.2\nmessages = [\"block\"]\n");
    assert_eq!((played.checks, played.left.len()), (0, 0));
}

/// One of seven delegates forges in twelve of 84 slots: the others are no standstill.
#[test]
fn long_turns_without_a_block_are_no_standstill() {
    let (played, _) = play(
        "eos",
        "[[fault]]\nkind = \"crash\"\nnodes = { from = \"genesis_1\", to = \"genesis_6\" }\nfrom = { slot = 40 }\n",
    );
    assert_eq!(played.slots, 400);
}

/// One node of seven is left. Whoever asks for peers before it forges never forges again, which is proved; whoever does not goes on.
#[test]
fn a_halt_is_proved_where_delegates_ask_for_peers_only() {
    let crash =
        "[[fault]]\nkind = \"crash\"\nnodes = { from = \"genesis_2\", to = \"genesis_7\" }\nfrom = { slot = 20 }\n";
    for (rules, halts) in [("reference", true), ("ark-4432", true), ("solar", false), ("tron", false), ("lisk", false)]
    {
        let text =
            format!("version = 1\nrounds = 1000\n[network]\ndelegates = 7\n[rules]\nbase = \"{rules}\"\n{crash}");
        let scenario = Scenario::parse(&text, Path::new("test")).unwrap_or_else(|error| panic!("{error}"));
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let (mut slots, mut proof) = (0, None);
        scenario.play_inline(&plan, Vec::new(), |stage| {
            slots += 1;
            proof = proof.or_else(|| stage.world().standstill().map(|(cause, _)| cause.name()));
            proof.is_none() && slots < 200
        });
        assert_eq!(proof.is_some(), halts, "{rules}: {proof:?} after {slots} slots");
    }
}

#[test]
fn a_run_says_how_far_its_blocks_are_final() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("ten.toml");
    let text = "version = 1\nrounds = 4\n[network]\ndelegates = 10\n[rules]\nbase = \"tron\"\n";
    fs::write(&file, text).expect("it can be written");
    let name = file.to_str().expect("it is text");
    let told = |arguments: &[&str]| String::from_utf8(run(arguments).stdout).expect("it is text");
    // Place 3 of ten sorted heights, the tip's last.
    assert!(told(&["run", name]).contains("final:   up to height 34, 6 blocks below the tip"));
    assert!(told(&["run", name, "--json"]).contains("\"final_height\":34"));
    fs::write(&file, text.replace("tron", "lisk")).expect("it can be written");
    let data = folder.path().join("data");
    let refused = run(&["up", name, "--data-dir", data.to_str().expect("it is text"), "--port", "0"]);
    let told = String::from_utf8(refused.stderr).expect("it is text");
    assert!(refused.status.code() == Some(2) && told.contains("found \"lisk-bft\""), "{told}");
}

/// Both stages agree on a run under other rules, blocks' claims included.
#[test]
fn both_stages_play_other_protocols_alike() {
    for rules in ["eos", "lisk", "solar-tie-broken"] {
        let text = format!(
            "version = 1\nrounds = 12\n[network]\ndelegates = 5\ngossip = \"reference\"\n[rules]\nbase = \"{rules}\"\n[[fault]]\n\
             kind = \"partition\"\ngroups = [[\"genesis_1\", \"genesis_2\"]]\nfrom = {{ slot = 20 }}\nuntil = {{ slot = 35 }}\n"
        );
        let scenario = Scenario::parse(&text, Path::new("test")).unwrap_or_else(|error| panic!("{error}"));
        let digest = |stage| {
            let seeds = SeedTree::new(3);
            let plan = scenario.plan(&scenario.testnet(seeds), seeds);
            scenario.play(&plan, stage, Vec::new(), |_| {}).expect("no actor dies").digest
        };
        assert_eq!(digest(StageKind::Inline), digest(StageKind::Ractor), "{rules}");
    }
}

/// A slot is as long as the scenario says: Tron's three seconds, and an hour.
#[test]
fn slots_are_as_long_as_the_scenario_says() {
    let height = |network: &str, rules: &str, slots: u32| {
        let text = format!("version = 1\nrounds = 1000\n[network]\ndelegates = 5\n{network}\n[rules]\n{rules}\n");
        let scenario = Scenario::parse(&text, Path::new("test")).unwrap_or_else(|error| panic!("{error}"));
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let (mut played, mut last) = (0, None);
        let outcome = scenario.play_inline(&plan, Vec::new(), |stage| {
            played += 1;
            last = Some(stage.world().tips().winning().clone());
            played < slots
        });
        let link = last.expect("slots were played");
        (link.height().0, link.block().header.timestamp.0, outcome.end.seconds().0)
    };
    let short = "base = \"tron\"\nnode.settling_s = 0\nnode.least_seconds_left = 1";
    for (network, rules, seconds) in [
        ("block_time_s = 8", "", 8),
        ("block_time_s = 3", short, 3),
        ("block_time_s = 1", short, 1),
        ("block_time_s = 3600", "", 3_600),
    ] {
        let (height, timestamp, end) = height(network, rules, 30);
        assert_eq!(height, 31, "{network}: each slot has a block");
        assert_eq!((timestamp % seconds, end % seconds, end - timestamp), (0, 0, seconds), "{network}");
    }
}

#[test]
fn slots_too_short_for_what_a_delegate_waits_are_refused() {
    let refused = |text: &str| {
        Scenario::parse(&format!("version = 1\nrounds = 2\n{text}"), Path::new("test")).unwrap_err().to_string()
    };
    let told = refused("[network]\nblock_time_s = 3\n");
    assert!(told.contains("network.block_time_s") && told.contains("found 3") && told.contains("4 or more"), "{told}");
    let told = refused("[network]\nblock_time_s = 3601\n");
    assert!(told.contains("found 3601") && told.contains("1 to 3600"), "{told}");
}

/// The rounds of a scenario are those of its schedule.
#[test]
fn a_scenario_of_turns_ends_with_its_last_round() {
    let text = "version = 1\nrounds = 2\n[network]\ndelegates = 3\n[rules]\nbase = \"eos\"\n";
    let scenario = Scenario::parse(text, Path::new("test")).expect("it is one");
    assert_eq!(scenario.last_height(), Height(72));
    let of_key = "version = 1\nrounds = 2\n[network]\ndelegates = 3\n[rules]\nledger.slots_a_turn = 4\n";
    assert_eq!(Scenario::parse(of_key, Path::new("test")).expect("it is one").last_height(), Height(24));
}
