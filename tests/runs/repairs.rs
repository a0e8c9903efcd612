//! Repairs and known answers: splits that a fork choice never ends, and dated faults of other protocols. The search or a directed
//! scenario finds each fault where it is planted, and not where it is mended.

use crate::{
    checking::runs_that_break,
    support::{hold_part, root, run, search_around, search_rules},
};
use dposlab::{
    actors::{
        fork_choice::{Chain, Look, Stance, Strength, of},
        message::{NetworkState, NetworkStatus},
        peer::VerificationResult,
    },
    check::{conduct, seeds::SeedSet, trial, watchers::OptionalWatchers},
    ledger::{
        Rules,
        rules::{FinalityRule, ForkChoiceRule, all},
    },
    protocol::{BlockId, Height},
    scenario::Scenario,
    sim::SeedTree,
    statistics::interval::{Interval, of_share},
};
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    thread,
};

const TIP: Height = Height(107);
/// The heights at which chains part. As text the lower one comes first.
const PARTINGS: [Height; 2] = [Height(100), Height(90)];

/// Chains of one height, with one delegate on each node and all nodes reachable.
struct Split<'a> {
    /// The number of nodes on each chain.
    sizes: &'a [usize],
    /// The ids of each chain's blocks above the upper parting and above the lower one.
    ids: Vec<[u64; 2]>,
    /// The chain that parts from all others at the lower block, if one does. The others part at the upper one.
    apart: Option<usize>,
}

impl Split<'_> {
    /// True if the nodes of a chain forge or leave it.
    fn moves(&self, rule: ForkChoiceRule, own: usize) -> bool {
        let (rules, choice) = (Rules::reference(), of(rule));
        let nodes: usize = self.sizes.iter().sum();
        let strength = Strength { agreed: Height::GENESIS, height: TIP, id: None };
        let verified = |highest_common| VerificationResult { my_height: TIP, his_height: TIP, highest_common };
        let mut peers = vec![Stance { verified: verified(TIP), chain: None }; self.sizes[own] - 1];
        for other in (0..self.sizes.len()).filter(|other| *other != own) {
            let place = usize::from(self.apart == Some(own) || self.apart == Some(other));
            let id = |chain: usize| BlockId::Numeric(self.ids[chain][place]);
            let chain = Some(Chain { strength, parting: (id(own), id(other)) });
            peers.extend(vec![Stance { verified: verified(PARTINGS[place]), chain }; self.sizes[other]]);
        }
        let (reached, level) = (nodes as u32 - 1, self.sizes[own] as u32 - 1);
        let seen = NetworkState {
            status: NetworkStatus::Default,
            height: TIP,
            tip: BlockId::Numeric(1),
            reached,
            in_quorum: level,
            level,
            over_height: 0,
            forked: reached - level,
        };
        let look = Look { own: strength, last_final: Height::GENESIS, peers, rules: &rules.node };
        choice.may_forge(&seen, nodes as u32, &rules) || choice.goes_back_to(&look).is_some()
    }

    /// True if no node ever moves.
    fn is_dead(&self, rule: ForkChoiceRule) -> bool {
        (0..self.sizes.len()).all(|chain| !self.moves(rule, chain))
    }
}

/// All orders of the ids from 1 to `count`.
fn orders(count: usize) -> Vec<Vec<u64>> {
    match count {
        0 => vec![Vec::new()],
        _ => orders(count - 1)
            .iter()
            .flat_map(|shorter| {
                (0..count).map(|at| {
                    let mut longer = shorter.clone();
                    longer.insert(at, count as u64);
                    longer
                })
            })
            .collect(),
    }
}

/// The descending sizes, each `most` or less, of `chains` chains with `nodes` nodes in all.
fn sizes(nodes: usize, chains: usize, most: usize) -> Vec<Vec<usize>> {
    match chains {
        0 if nodes == 0 => vec![Vec::new()],
        0 => Vec::new(),
        _ => (1..=most.min(nodes))
            .rev()
            .flat_map(|first| {
                sizes(nodes - first, chains - 1, first).into_iter().map(move |rest| [vec![first], rest].concat())
            })
            .collect(),
    }
}

/// The dead splits into `chains` chains, and the number of all such splits. A split counts as dead if it is for any order of its blocks'
/// ids.
fn dead(rule: ForkChoiceRule, chains: usize, nested: bool) -> (Vec<Vec<usize>>, usize) {
    let mut dead = Vec::new();
    let mut all = 0;
    let orders = if of(rule).reads_chains() { orders(chains) } else { vec![(1..=chains as u64).collect()] };
    for sizes in (4..=101).flat_map(|nodes| sizes(nodes, chains, nodes)) {
        for apart in if nested { (0..chains).map(Some).collect() } else { vec![None] } {
            all += 1;
            let is_dead = orders.iter().any(|ids| {
                // Chains that part later share the block above the lower parting. Its id is below or above that of the other chain.
                [10, 0].iter().any(|lower| {
                    let ids =
                        ids.iter().enumerate().map(|(chain, id)| [*id, if apart == Some(chain) { 5 } else { *lower }]);
                    Split { sizes: &sizes, ids: ids.collect(), apart }.is_dead(rule)
                })
            });
            if is_dead {
                dead.push(sizes.clone());
            }
        }
    }
    (dead, all)
}

/// The table of docs/repairs.md holds the result of this enumeration.
#[test]
fn the_table_of_dead_splits_is_what_the_rules_say() {
    let rules = [
        ("ARK 2.6", ForkChoiceRule::Reference),
        ("ARK 3", ForkChoiceRule::Ark4432),
        ("Solar", ForkChoiceRule::Solar),
        ("Solar, tie broken", ForkChoiceRule::SolarTieBroken),
        ("longest chain", ForkChoiceRule::LongestChain),
    ];
    let mut table = String::from(
        "| rule | two chains | three, from one block | three, two of them from a later block |\n|---|---|---|---|\n",
    );
    let told = |(dead, all): (Vec<Vec<usize>>, usize)| {
        let words = |sizes: &Vec<usize>| sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" : ");
        match dead.first() {
            None => format!("0 of {all}"),
            Some(first) => format!("{} of {all}, first {}", dead.len(), words(first)),
        }
    };
    for (name, rule) in rules {
        let cells = [(2, false), (3, false), (3, true)].map(|(chains, nested)| told(dead(rule, chains, nested)));
        table.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    }
    hold_part("docs/repairs.md", "dead splits", &table, "REWRITE_REPAIRS");
}

/// A fault, and the finding that shows it.
struct Known {
    faulty: &'static str,
    mended: &'static str,
    invariant: &'static str,
    cause: &'static str,
}

/// The faults that the search finds. It plays EOS's rules with turns of one slot: with twelve, no drawn run is long enough for a delegate
/// to go and come back.
const KNOWN: [Known; 4] = [
    Known {
        faulty: "ark-4432",
        mended: "solar-tie-broken",
        invariant: conduct::CONVERGED.name,
        cause: "no chain grows",
    },
    Known { faulty: "lisk-6594", mended: "lisk", invariant: conduct::AGREED.name, cause: "" },
    Known { faulty: "lisk-restart", mended: "lisk", invariant: conduct::DISCLOSED.name, cause: "" },
    Known { faulty: "eos-3835", mended: "eos", invariant: conduct::RELAY.name, cause: "ConfirmsTwice" },
];

/// The runs of each search of the table.
const RUNS: u64 = 400;

impl Known {
    /// Searches `runs` runs from seed 1. Returns the number of the first run that shows the fault, and the number of all that do.
    fn shown(&self, rules: &str, runs: u64) -> Option<(u64, u64)> {
        let text = format!("base = \"{rules}\"\nledger.slots_a_turn = 1");
        let summary = search_rules(&text, Some(4), 1, runs);
        assert_eq!(summary.runs(), runs);
        let found = summary.found.values().map(|found| (&found.finding, found));
        let mut shown = found.filter(|(finding, _)| finding.invariant == self.invariant && finding.cause == self.cause);
        shown.next().and_then(|(_, found)| Some((found.seeds.first()?, found.seeds.iter().count() as u64)))
    }
}

/// The search finds each fault, and in as many runs of the mended rules it does not. Writes the table of docs/repairs.md.
#[test]
#[ignore = "long"]
fn the_search_finds_dated_faults_and_not_where_they_are_mended() {
    let mut table = String::from(
        "| rules | broken invariant | first found in run | runs that show it | mended rules | runs that show it |\n|---|---|--:|--:|---|--:|\n",
    );
    let share = |so: u64| {
        let Interval { low, high } = of_share(so, RUNS);
        format!("{so} of {RUNS} ({:.1} to {:.1} %)", 100.0 * low, 100.0 * high)
    };
    for known in &KNOWN {
        let Known { faulty, mended, invariant, .. } = known;
        let (first, shown) = known.shown(faulty, RUNS).unwrap_or_else(|| panic!("{faulty} is not found"));
        assert_eq!(known.shown(mended, RUNS), None, "{mended} for {faulty}");
        table.push_str(&format!(
            "| `{faulty}` | {invariant} | {first} | {} | `{mended}` | {} |\n",
            share(shown),
            share(0)
        ));
    }
    hold_part("docs/repairs.md", "known answers", &table, "REWRITE_REPAIRS");
}

/// The same in fewer runs, and without the table.
#[test]
fn a_short_search_finds_dated_faults_and_not_where_they_are_mended() {
    for known in &KNOWN {
        assert!(known.shown(known.faulty, 60).is_some(), "{}", known.faulty);
        assert_eq!(known.shown(known.mended, 60), None, "{}", known.mended);
    }
}

/// Plays a scenario of `tests/data/known-answers` under a set of rules. Returns the line of its assertion.
fn asserted(name: &str, seed: u32, rules: &str) -> String {
    let file: PathBuf = root().join("tests/data/known-answers").join(name);
    let (seed, base) = (seed.to_string(), format!("rules.base={rules}"));
    let output = run(&["run", file.to_str().expect("it is text"), "--seed", &seed, "--set", &base]);
    let told = String::from_utf8(output.stdout).expect("it is text");
    let line = told.lines().find(|line| line.starts_with("asserted: always"));
    line.unwrap_or_else(|| panic!("{rules}: {told}")).to_owned()
}

/// Two delegates that change sides make blocks of two chains final by DPOS 2.0 and by Tron's rule, whose headers name nothing. The rules
/// that ask forgers for what they forged elsewhere keep one chain. The order of the keys decides whether the sides change as planned, so
/// some seeds show nothing.
#[test]
fn delegates_that_change_sides_contradict_final_blocks_unless_headers_name_what_they_forged() {
    for rules in ["eos-2718", "tron"] {
        for seed in 1..=10 {
            let line = asserted("eos-2718.toml", seed, rules);
            let shows = line.contains("does not hold") && line.contains("is on another one");
            assert_eq!(shows, [1, 2, 3, 7, 9].contains(&seed), "{rules}, seed {seed}: {line}");
        }
    }
    for rules in ["eos", "eos-3835", "lisk", "lisk-6594"] {
        for seed in 1..=10 {
            let line = asserted("eos-2718.toml", seed, rules);
            assert!(line.contains(": holds"), "{rules}, seed {seed}: {line}");
        }
    }
}

/// The search found this scenario where a node compared a rival with its own blocks alone.
#[test]
fn a_rival_has_to_beat_the_blocks_that_peers_have_of_the_own_chain() {
    let line = asserted("own-chain-of-peers.toml", 1, "repaired");
    assert!(line.contains("a rollback ends at the common block: holds"), "{line}");
}

/// The search found this scenario in run 156,257, where a forger looked at 150 transactions and dropped no later ones.
#[test]
fn a_forger_that_drops_a_transaction_drops_all_that_its_sender_has_after_it() {
    let line = asserted("misfits-of-a-sender.toml", 1, "repaired");
    assert!(line.contains("without a gap: holds"), "{line}");
}

/// A node that downloaded from a peer on the chain that it had left broke this in 112 of the first 400 runs (23.8 to 32.6 %).
#[test]
fn a_node_downloads_the_stronger_chain() {
    let ring = Scenario::load(&root().join("tests/data/known-answers/ring-of-27.toml")).expect("it is a scenario");
    let broken = search_around(Some(ring), "base = \"repaired\"", 1, 20).broken();
    assert!(broken.is_empty(), "{broken:?}");
}

/// The search found this scenario in run 248,149, where the checker took for added what a pool had held before.
#[test]
fn a_pool_that_begins_anew_adds_nothing() {
    let line = asserted("pool-begins-anew.toml", 1, "repaired");
    assert!(line.contains("of a sender: holds"), "{line}");
}

/// The search found these runs, each before the change that its line is about.
#[test]
fn runs_that_the_search_found_hold() {
    let (repaired, stays_behind) = ("base = \"repaired\"", "base = \"repaired\"\nnode.stays_behind = true");
    for (why, rules, seed) in [
        ("a health check read the chains of peers that were still being verified", repaired, 156),
        ("it waited a minute for one of them, and others had left theirs meanwhile", repaired, 2071),
        // `node::forks` plays one such node.
        ("a node became a peer during it by what it had said long ago", stays_behind, 12184),
        ("on a ring of 28 a node that had missed a block waited a minute and forged", repaired, 8014),
        ("so did one on a ring of 26", repaired, 20668),
        ("a late forger that had given its relay up never looked again", repaired, 4455),
        ("a node that restarted took an old answer for a newcomer's", repaired, 115_101),
        ("a pool that followed a download dropped a vote where it did not fit", repaired, 116_119),
        ("two faults had one node forge for another's delegate", repaired, 14851),
        (
            "a node asked for ever for a block that was early by its slow clock, on links that take no time",
            repaired,
            20871,
        ),
        ("clients elected only delegates that no node forges for", repaired, 493_502),
        ("a censor left out the registration that a resignation of its block needs", repaired, 547_493),
    ] {
        let broken = search_rules(rules, None, seed, 1).broken();
        assert!(broken.is_empty(), "seed {seed}, {why}: {broken:?}");
    }
}

/// A delegate that comes back confirms irreversible blocks again, and its own relay refuses the block. Without the fault none does.
#[test]
fn a_delegate_that_comes_back_confirms_twice_where_irreversible_blocks_count() {
    for seed in 1..=10 {
        let line = asserted("eos-3835.toml", seed, "eos-3835");
        let shows = line.contains("does not hold") && line.contains("its forger has confirmed up to");
        assert_eq!(shows, ![6, 10].contains(&seed), "seed {seed}: {line}");
    }
    for rules in ["eos", "eos-2718"] {
        for seed in 1..=10 {
            let line = asserted("eos-3835.toml", seed, rules);
            assert!(line.contains(": holds"), "{rules}, seed {seed}: {line}");
        }
    }
}

/// The run of seed 497983 under `repaired`, made small: two delegates of five forge on both sides of a split, and a milestone raises the
/// number of delegates meanwhile.
const SPARES_AND_A_MILESTONE: &str = r#"
version = 1
rounds = 5
[network]
delegates = 5
standby = 2
relays = 1
gossip = "once"
topology = "mesh"
milestones = [{ height = 16, delegates = 7 }]
latency = { min_ms = 50, max_ms = 50 }
[rules]
base = "repaired"
[[fault]]
kind = "spare-forger"
delegates = [0]
nodes = [7]
from = { seconds = 8 }
until = { seconds = 275 }
[[fault]]
kind = "spare-forger"
delegates = [3]
nodes = [7]
from = { seconds = 52 }
until = { seconds = 265 }
[[fault]]
kind = "partition"
groups = [[0, 1, 2, 3]]
from = { seconds = 8 }
until = { seconds = 193 }
"#;

/// Two nodes of four forge with a key of the other side, too, so each side of the split has three keys of four.
const SPARES: &str = r#"
version = 1
rounds = 12
[network]
delegates = 4
gossip = "reference"
[rules]
base = "lisk"
[[fault]]
kind = "spare-forger"
delegates = ["genesis_1"]
nodes = ["genesis_4"]
[[fault]]
kind = "spare-forger"
delegates = ["genesis_3"]
nodes = ["genesis_2"]
[[fault]]
kind = "partition"
groups = [["genesis_1", "genesis_2"]]
from = { slot = 10 }
until = { slot = 40 }
"#;

/// A rule of finality promises one chain under conditions. The finding names the condition that does not hold.
#[test]
fn a_final_block_that_is_left_names_what_the_rule_does_not_promise() {
    let causes = |text: &str| -> Vec<String> {
        let scenario = Scenario::parse(text, Path::new("test")).unwrap_or_else(|error| panic!("{error}"));
        let seeds = SeedTree::new(1);
        let testnet = scenario.testnet(seeds);
        let outcome =
            trial::play(&scenario, &testnet, seeds, None, None, &OptionalWatchers::default(), &AtomicBool::new(false));
        let left = outcome.findings.into_iter().filter(|finding| finding.invariant == conduct::FINAL.name);
        left.map(|finding| finding.cause).collect()
    };
    let known =
        |name: &str| fs::read_to_string(root().join("tests/data/known-answers").join(name)).expect("it is there");
    let sides = known("eos-2718.toml");
    for rules in ["eos-2718", "tron"] {
        let text = sides.replace("\"eos-2718\"", &format!("\"{rules}\""));
        assert_eq!(causes(&text), ["a delegate counts on each chain on which it forges"], "{rules}");
    }
    let others = known("lisk-other-delegates.toml");
    assert_eq!(causes(&others), ["the chains have other delegates"]);
    // The same split under Lisk's own rule, and a split that outlasts it.
    let late = others.replace("\"at-once\"", "\"two-rounds-before\"");
    assert_eq!(causes(&late), Vec::<String>::new());
    let long = late.replace("223.0", "900.0").replace("rounds = 5", "rounds = 40");
    assert_eq!(causes(&long), ["the chains have other delegates"]);
    // Members that wait until they are final do not differ, however long the split is.
    assert_eq!(causes(&long.replace("two-rounds-before", "when-final")), Vec::<String>::new());
    assert_eq!(causes(SPARES), ["a third of the delegates breaks the rules"]);
    assert_eq!(causes(SPARES_AND_A_MILESTONE), ["a third of the delegates breaks the rules"]);
    assert_eq!(causes(&sides.replace("\"eos-2718\"", "\"eos\"")), Vec::<String>::new());
}

/// Each switch off mends a finding of the reference, whose file breaks its invariant with the switch on.
#[test]
fn a_switch_that_is_off_mends_its_finding() {
    for (finding, switch) in [
        ("a-refused-transaction-displaces-nobody", "pool.makes_room_first"),
        ("a-rollback-keeps-what-is-pending", "pool.rollback_empties_pool"),
        ("resignations-leave-enough-delegates-for-the-next-milestone", "ledger.resignations_ignore_later_milestones"),
        ("a-forger-s-own-relay-takes-its-block", "node.forges_on_another_tip"),
    ] {
        for (value, expected) in [(true, ": does not hold"), (false, ": holds")] {
            let file = root().join("scenarios/findings").join(finding).with_extension("toml");
            let set = format!("rules.{switch}={value}");
            let output = run(&["run", file.to_str().expect("it is text"), "--set", &set]);
            let told = String::from_utf8(output.stdout).expect("it is text");
            let line = told.lines().find(|line| line.starts_with("asserted: always"));
            assert!(line.is_some_and(|line| line.contains(expected)), "{switch} = {value}: {told}");
        }
    }
}

/// A delegate that forges two blocks in each slot makes nodes go back by a round and more at random. Without that rule they take back a
/// block or two, and then only because their peers stand elsewhere.
#[test]
fn second_blocks_take_back_few_blocks_where_the_fork_choice_alone_decides() {
    let deepest = |value: bool| -> u32 {
        let file = root().join("scenarios/double-forging.toml");
        let set = format!("rules.node.second_block_rolls_back={value}");
        let output = run(&["run", file.to_str().expect("it is text"), "--set", "rules.base=corrected", "--set", &set]);
        let told = String::from_utf8(output.stdout).expect("it is text");
        let (_, rest) = told.split_once("and took back ").unwrap_or_else(|| panic!("{told}"));
        rest.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{rest}"))
    };
    let (on, off) = (deepest(true), deepest(false));
    assert!(on > 51 && off <= 2, "{on} and {off}");
}

/// The rules in which two sets differ, by dotted name, with the value of the second.
fn differences(of: &toml::Table, other: &toml::Table, group: &str) -> Vec<(String, toml::Value)> {
    let mut all = Vec::new();
    for (name, value) in of {
        let key = format!("{group}{name}");
        match (value, &other[name]) {
            (toml::Value::Table(of), toml::Value::Table(other)) => {
                all.extend(differences(of, other, &format!("{key}.")));
            }
            (value, other) if value != other => all.push((key, other.clone())),
            _ => {}
        }
    }
    all
}

/// The changes of `repaired` to the reference: the dotted name of each, and its values in both.
fn changes() -> Vec<(String, toml::Value, toml::Value)> {
    let table = |name: &str| {
        let named = all().find(|named| named.name == name).expect("it is a set");
        toml::Table::try_from((named.rules)()).expect("TOML holds rules")
    };
    let (repaired, reference) = (table("repaired"), table("reference"));
    let (before, after) = (differences(&repaired, &reference, ""), differences(&reference, &repaired, ""));
    before.into_iter().zip(after).map(|((key, reference), (_, repaired))| (key, repaired, reference)).collect()
}

/// The seed and the broken invariant that a row of the table of changes names.
fn shown(row: &str) -> Option<(u64, &str)> {
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    Some((cells.get(4)?.parse().ok()?, cells.get(6)?.split(':').next()?.trim_matches('`')))
}

/// The network around which a row of the table of changes searches, and the number of its runs. Nodes that stay behind need a sparse network.
fn around(key: &str) -> (Option<Scenario>, u64) {
    let ring = || Scenario::load(&root().join("tests/data/known-answers/ring-of-27.toml")).expect("it is a scenario");
    if key == "node.stays_behind" { (Some(ring()), 100) } else { (None, 1_000) }
}

/// `repaired` leaves `second_block_rolls_back` as it is: nodes that take the blocks of one peer at a time never ask it, forks or not.
#[test]
fn second_blocks_are_never_met_by_nodes_that_go_to_the_stronger_chain() {
    let ring =
        || Some(Scenario::load(&root().join("tests/data/known-answers/ring-of-27.toml")).expect("it is a scenario"));
    let rules = |value| format!("base = \"repaired\"\nnode.second_block_rolls_back = {value}");
    let [with, without] = [true, false].map(|value| search_around(ring(), &rules(value), 1, 20).session);
    assert!(
        with.sometimes.of("a fork") > 100 && with.sometimes.of("two blocks in one slot") > 0,
        "or nothing is shown"
    );
    assert_eq!(with, without);
}

/// The table of docs/repairs.md names for each change a run that breaks an invariant without it, and that breaks none with all of them.
/// `REWRITE_REPAIRS` searches them anew.
#[test]
fn without_any_of_its_changes_the_search_breaks_the_repaired_rules() {
    let without = |key: &str, reference: &toml::Value| format!("base = \"repaired\"\n{key} = {reference}");
    if env::var_os("REWRITE_REPAIRS").is_some() {
        let mut table = String::from(
            "| rule | `repaired` | `reference` | first seed | runs that break an invariant | broken invariants and the runs of each |\n\
             |---|---|---|--:|--:|---|\n",
        );
        for (key, repaired, reference) in changes() {
            let (base, runs) = around(&key);
            let summary = search_around(base, &without(&key, &reference), 1, runs);
            let mut broken: Vec<(&str, u64)> = summary.broken().into_iter().collect();
            broken.sort_by_key(|(name, runs)| (Reverse(*runs), *name));
            let most = broken.first().map(|(most, _)| *most);
            let of_most = summary.found.values().filter(|found| Some(found.finding.invariant) == most);
            let first = of_most.filter_map(|found| found.seeds.first()).min();
            let seed = first.map_or_else(|| "-".to_owned(), |seed| seed.to_string());
            let mut seeds = SeedSet::default();
            summary.found.values().for_each(|found| seeds.extend(&found.seeds));
            let so = seeds.count();
            let Interval { low, high } = of_share(so, runs);
            let words: Vec<String> = broken.iter().map(|(name, runs)| format!("`{name}`: {runs}")).collect();
            table.push_str(&format!(
                "| `{key}` | `{repaired}` | `{reference}` | {seed} | {so} ({:.1} to {:.1} %) | {} |\n",
                100.0 * low,
                100.0 * high,
                words.join(", ")
            ));
        }
        return hold_part("docs/repairs.md", "changes", &table, "REWRITE_REPAIRS");
    }
    let page = fs::read_to_string(root().join("docs/repairs.md")).expect("it is there");
    for (key, _, reference) in changes() {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{key}` | ")));
        let row = row.unwrap_or_else(|| panic!("docs/repairs.md has a row for {key}"));
        let (seed, invariant) = shown(row).unwrap_or_else(|| panic!("{row}"));
        let broken = search_around(around(&key).0, &without(&key, &reference), seed, 1).broken();
        assert!(broken.contains_key(invariant), "{key} = {reference}, seed {seed}: {broken:?}");
        let whole = search_around(around(&key).0, "base = \"repaired\"", seed, 1).broken();
        assert!(whole.is_empty(), "seed {seed}: {whole:?}");
    }
}

/// Drawn runs of each set of rules in the table of findings.
const RUNS_OF_A_SET: u64 = 200;
/// The sets of rules in the table of findings, in its order.
const SETS: [&str; 8] = ["reference", "corrected", "solar", "ark-4432", "lisk", "eos", "tron", "repaired"];

/// Deep rollbacks are judged without a rule of finality only, and final blocks with one only.
fn is_without_meaning(invariant: &str, rules: &str) -> bool {
    let named = all().find(|named| named.name == rules).expect("it is a set");
    let is_final = (named.rules)().ledger.finality != FinalityRule::None;
    match invariant {
        "a rollback is no deeper than a round" => is_final,
        "a final block is never left" => !is_final,
        _ => false,
    }
}

#[test]
#[ignore = "long"]
fn the_table_of_findings_by_rules_is_what_is_measured() {
    let mut broken: Vec<BTreeMap<String, u64>> = Vec::new();
    for pair in SETS.chunks(2) {
        let searches: Vec<_> =
            pair.iter().map(|rules| thread::spawn(|| runs_that_break(rules, RUNS_OF_A_SET))).collect();
        broken.extend(searches.into_iter().map(|search| search.join().expect("it ends")));
    }
    let mut names: Vec<&String> = broken.iter().flat_map(BTreeMap::keys).collect();
    let runs = |name: &String| -> u64 { broken.iter().filter_map(|by_name| by_name.get(name)).sum() };
    names.sort_by_key(|name| (Reverse(runs(name)), name.as_str()));
    names.dedup();
    let mut table = format!("| finding | {} |\n|---|{}\n", SETS.join(" | "), "--:|".repeat(SETS.len()));
    for name in names {
        let cells = broken.iter().zip(SETS).map(|(by_name, rules)| {
            if is_without_meaning(name, rules) {
                return "-".to_owned();
            }
            let so = by_name.get(name).copied().unwrap_or(0);
            let Interval { low, high } = of_share(so, RUNS_OF_A_SET);
            format!("{so} ({:.1} to {:.1} %)", 100.0 * low, 100.0 * high)
        });
        table.push_str(&format!("| {name} | {} |\n", cells.collect::<Vec<_>>().join(" | ")));
    }
    hold_part("docs/repairs.md", "findings by rules", &table, "REWRITE_REPAIRS");
}

/// The table of costs of docs/repairs.md is what the command prints.
#[test]
#[ignore = "long"]
fn the_table_of_costs_is_what_the_command_prints() {
    let output = run(&["protocols", "--rules", "reference,corrected,repaired", "--runs", "5"]);
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).expect("it is text");
    hold_part("docs/repairs.md", "costs", &table, "REWRITE_REPAIRS");
}
