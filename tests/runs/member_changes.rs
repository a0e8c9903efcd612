//! Assertions about the change and the convergence of each node and delegate, held against the trace of the same run.

use crate::{figures::EVENTFUL, support::run};
use dposlab::{
    check,
    scenario::{Scenario, StallRule},
    sim::SeedTree,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::Path,
};

/// A block of a trace.
struct Block {
    height: i64,
    previous: String,
    forger: String,
    /// The owners of the empty slots before it.
    missed: Vec<String>,
}

/// What a trace says of the end of a slot.
#[derive(Clone)]
struct Sample {
    slot: u64,
    live: Vec<bool>,
    /// By node: height, blocks reverted, rollbacks.
    nodes: Vec<[i64; 3]>,
    /// By key: blocks and missed slots in the winning chain.
    delegates: BTreeMap<String, [i64; 2]>,
    /// The nodes on the winning tip.
    stands: Vec<bool>,
}

/// Follows a trace.
struct Follower {
    blocks: BTreeMap<String, Block>,
    tips: Vec<String>,
    counts: Vec<[i64; 2]>,
    live: Vec<bool>,
    forgers: Vec<String>,
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

impl Follower {
    fn new(head: &Value) -> Self {
        let nodes = head["nodes"].as_u64().expect("a number") as usize;
        let forgers = head["forgers"].as_array().expect("a list");
        Self {
            blocks: BTreeMap::new(),
            tips: vec![text(&head["tip"]["id"]); nodes],
            counts: vec![[0; 2]; nodes],
            live: vec![true; nodes],
            forgers: forgers.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    fn follow(&mut self, event: &Value) {
        let Some(node) = event["node"].as_u64() else { return };
        let node = node as usize;
        match event["kind"].as_str() {
            Some("block.applied") => {
                let block = &event["block"];
                let missed = event["missed"].as_array().expect("a list").iter().map(text).collect();
                let (height, previous) = (block["height"].as_i64().expect("a height"), text(&block["previous"]));
                let known = Block { height, previous, forger: text(&block["forger"]), missed };
                self.blocks.insert(text(&block["id"]), known);
                self.tips[node] = text(&block["id"]);
            }
            Some("block.reverted") => {
                self.counts[node][0] += 1;
                self.tips[node] = text(&event["block"]["previous"]);
            }
            Some("chain.rolled-back") => self.counts[node][1] += 1,
            Some("node.down") => self.live[node] = false,
            Some("node.up") => self.live[node] = true,
            _ => {}
        }
    }

    fn height(&self, tip: &str) -> i64 {
        self.blocks.get(tip).map_or(1, |block| block.height)
    }

    /// The block that most live nodes stand on; among equals the higher one, then the one of the lower id.
    fn winning(&self) -> String {
        let tips: Vec<&String> =
            self.tips.iter().zip(&self.live).filter(|(_, live)| **live).map(|(tip, _)| tip).collect();
        let count = |tip: &String| tips.iter().filter(|other| **other == tip).count();
        let least = |one: &&String| (count(one), self.height(one), std::cmp::Reverse((*one).clone()));
        tips.iter().copied().max_by_key(least).expect("a node is live").clone()
    }

    fn sample(&self, slot: u64) -> Sample {
        let winning = self.winning();
        let mut delegates: BTreeMap<String, [i64; 2]> = BTreeMap::new();
        let mut at = self.blocks.get(&winning);
        while let Some(block) = at {
            delegates.entry(block.forger.clone()).or_default()[0] += 1;
            for key in &block.missed {
                delegates.entry(key.clone()).or_default()[1] += 1;
            }
            at = self.blocks.get(&block.previous);
        }
        let figures = |(tip, counts): (&String, &[i64; 2])| [self.height(tip), counts[0], counts[1]];
        Sample {
            slot,
            live: self.live.clone(),
            nodes: self.tips.iter().zip(&self.counts).map(figures).collect(),
            delegates,
            stands: self.tips.iter().map(|tip| *tip == winning).collect(),
        }
    }
}

/// The end of each slot of a run, and the delegates' keys by node.
fn samples(trace: &str) -> (Vec<Sample>, Vec<String>) {
    let mut lines = trace.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut follower = Follower::new(&lines.next().expect("a first line"));
    let (mut samples, mut slot) = (Vec::new(), None);
    for event in lines {
        let now = event["at"].as_u64().expect("a time") / 8_000_000;
        while let Some(open) = slot.filter(|open| *open < now) {
            samples.push(follower.sample(open));
            slot = Some(open + 1);
        }
        slot = slot.or(Some(now));
        follower.follow(&event);
    }
    (samples, follower.forgers)
}

/// A condition that holds of the values alone that members of a group have.
fn exactly(group: &str, figure: &str, values: &BTreeSet<i64>) -> String {
    let (least, most) = (values.first().expect("a member"), values.last().expect("a member"));
    let some = values.iter().map(|value| format!("some {group} {figure} == {value}"));
    let every = format!("every {group} ({figure} >= {least} and {figure} <= {most})");
    std::iter::once(every).chain(some).collect::<Vec<_>>().join(" and ")
}

/// The end of every slot: the least and the greatest change of each figure over live nodes and over delegates, every other change of
/// one of them, and who stands on the winning tip.
#[test]
fn changes_of_members_are_those_of_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut changed, mut apart, mut down, mut missed) = (0, 0, 0, 0);
    for (place, scenario) in EVENTFUL.iter().enumerate() {
        let scenario = format!("version = 1\ncrypto = \"modelled\"\n{scenario}");
        let (file, out) = (folder.path().join(format!("{place}.toml")), folder.path().join(format!("{place}")));
        fs::write(&file, &scenario).expect("it is written");
        let (file, out_name) = (file.display().to_string(), out.display().to_string());
        run(&["run", &file, "--stage", "inline", "--seed", "3", "--out", &out_name]);
        let trace = fs::read_to_string(out.join("events.jsonl")).expect("it was written");
        let (samples, forgers) = samples(&trace);
        let mut asserted = scenario.clone();
        let mut at = |slot: u64, condition: &str| {
            write!(
                asserted,
                "[[assert]]\neventually = \"{condition}\"\nafter = {{ slot = {slot} }}\nwithin_rounds = 0\n"
            )
            .expect("writing to a string");
        };
        for two in samples.windows(2) {
            let [before, now] = two else { unreachable!("two") };
            let live: Vec<usize> = (0..now.live.len()).filter(|node| now.live[*node]).collect();
            down += usize::from(live.len() < now.live.len());
            let mut parts = Vec::new();
            for (figure, name) in ["height", "blocks-reverted", "rollbacks"].into_iter().enumerate() {
                let values = live.iter().map(|node| now.nodes[*node][figure] - before.nodes[*node][figure]).collect();
                changed += usize::from(values != BTreeSet::from([0]) && figure > 0);
                parts.push(exactly("node", &format!("change {name}"), &values));
            }
            for (figure, name) in ["blocks", "missed"].into_iter().enumerate() {
                let share = |sample: &Sample, key: &String| sample.delegates.get(key).map_or(0, |share| share[figure]);
                let values: BTreeSet<i64> = forgers.iter().map(|key| share(now, key) - share(before, key)).collect();
                missed += usize::from(figure == 1 && values.len() > 1);
                parts.push(exactly("delegate", &format!("change {name}"), &values));
            }
            let all = live.iter().all(|node| now.stands[*node]);
            apart += usize::from(!all);
            parts.push(if all { "every node converged" } else { "some node not converged" }.to_owned());
            // The first nodes are those of the delegates, in their order; a delegate whose node is down has not converged.
            let all = (0..forgers.len()).all(|node| now.live[node] && now.stands[node]);
            parts.push(if all { "every delegate converged" } else { "some delegate not converged" }.to_owned());
            at(now.slot, &parts.join(" and "));
        }
        // In the first slot no change is defined, in any quantifier.
        let first = samples[0].slot;
        asserted += concat!(
            "[[assert]]\nalways = \"(converged and every node converged) or (not converged and some node not converged)\"\n",
            "[[assert]]\nalways = \"every node change rollbacks >= 0 and every node change blocks-reverted >= 0\"\n"
        );
        fs::write(&file, &asserted).expect("it is written");
        let output = run(&["run", &file, "--stage", "inline", "--seed", "3"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
        for part in
            ["every node change height >= -9", "some node change height >= -9", "some delegate change missed >= -9"]
        {
            for condition in [part.to_owned(), format!("not {part}")] {
                let undefined = format!(
                    "{scenario}[[assert]]\neventually = \"{condition}\"\nafter = {{ slot = {first} }}\nwithin_rounds = 0\n"
                );
                fs::write(&file, undefined).expect("it is written");
                let output = run(&["run", &file, "--stage", "inline", "--seed", "3"]);
                let said = String::from_utf8_lossy(&output.stdout);
                assert_eq!(output.status.code(), Some(1), "{said}");
                assert!(said.contains("is not defined, no slot is before"), "{said}");
            }
        }
    }
    assert!(
        changed > 9 && apart > 9 && down > 9 && missed > 9,
        "or nothing is shown: {changed} {apart} {down} {missed}"
    );
}

/// Whether an assertion holds, and what was found.
fn judged(body: &str, claim: &str) -> (bool, String) {
    let text = format!("version = 1\nrounds = 3\ncrypto = \"modelled\"\n{body}[[assert]]\n{claim}\n");
    let scenario = Scenario::parse(&text, Path::new("members")).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let seeds = SeedTree::new(7);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let judge = check::judge(&scenario, &plan).expect("no invariant is asked for");
    let outcome = scenario.play_inline(&plan, vec![Box::new(judge.clone())], |_| true);
    let verdict = judge.verdicts(outcome.end, outcome.ended).remove(0);
    (verdict.holds(), verdict.found)
}

/// The member that decides is named with its figure.
#[test]
fn the_member_that_decides_is_named() {
    const FIVE: &str = "[network]\ndelegates = 5\n";
    let (holds, found) = judged(FIVE, "always = \"every node change height <= 0\"");
    assert!(!holds && found.starts_with("node-0: change of height is 1 in slot 2 at height 3"), "{found}");
    let (holds, found) = judged(FIVE, "finally = \"every node (change height == 1 and change rollbacks == 0)\"");
    assert!(holds && found.starts_with("all of 5 nodes in slot"), "{found}");
    let offline = "[network]\ndelegates = 5\n[[fault]]\nkind = \"offline\"\ndelegates = [\"genesis_2\"]\nrounds = 2\n";
    let (holds, found) = judged(offline, "sometimes = \"some delegate change missed >= 1\"");
    assert!(holds && found.starts_with("genesis_2: change of missed is 1 in slot"), "{found}");
    let paused = "[network]\ndelegates = 9\n[[fault]]\nkind = \"pause\"\nnodes = [3]\nfrom = { seconds = 100.5 }\n";
    let (holds, found) = judged(paused, "finally = \"every node converged\"");
    assert!(holds && found.starts_with("all of 8 nodes"), "a node that is down is not asked: {found}");
    let (holds, found) = judged(paused, "finally = \"every delegate converged\"");
    assert!(!holds && found.starts_with("genesis_4: not converged in slot"), "{found}");
    let all =
        "[network]\ndelegates = 5\n[[fault]]\nkind = \"pause\"\nnodes = [0, 1, 2, 3, 4]\nfrom = { seconds = 20.5 }\n";
    for claim in ["every node converged", "not every node converged", "every node change height >= 0"] {
        let (holds, found) = judged(all, &format!("finally = \"{claim}\""));
        assert!(!holds && found.starts_with("no node is live"), "{claim}: {found}");
    }
}

/// A scenario waits for nodes to converge as it waits for the network.
#[test]
fn a_scenario_that_asserts_convergence_of_members_does_not_stall() {
    let rule = |condition: &str| {
        let text = format!("version = 1\nrounds = 2\n[[assert]]\neventually = '{condition}'\n");
        Scenario::parse(&text, Path::new("members")).expect("it can be read").stall_rule()
    };
    assert_eq!(rule("some node (not converged and change height > 3)"), StallRule::Off);
    assert_eq!(rule("every node change height <= 3"), StallRule::Rounds(4));
}

/// The command line takes and refuses them as a file does, with the same words, and `check` searches around them.
#[test]
fn the_command_line_and_the_search_take_and_refuse_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = folder.path().join("small.toml");
    fs::write(&small, "version = 1\nrounds = 3\n[network]\ndelegates = 5\n").expect("it is written");
    let small = small.display().to_string();
    let found = folder.path().join("found").display().to_string();
    for command in ["run", "check"] {
        let add = |condition: &str| {
            let set = format!("assert[+]={{ always = \"{condition}\" }}");
            let runs: &[&str] =
                if command == "check" { &["--runs", "2", "--crypto", "modelled", "--out", &found] } else { &[] };
            run(&[&[command, small.as_str(), "--set", set.as_str()], runs].concat())
        };
        for (condition, wanted) in [
            (
                "every block change gap > 1",
                "a condition on a block, and 'change' outside of it, for a block never changes",
            ),
            ("some node invariants", "a condition on a node, and 'invariants' outside of it"),
            ("every delegate change height > 1", "one of blocks, missed in the place of 'height'"),
        ] {
            let output = add(condition);
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command} {condition}: {error}");
            assert!(error.contains(condition) && error.contains(wanted), "{command} {condition}: {error}");
        }
        // A search may find a broken invariant, and never this assertion.
        let holds = "every node (change height <= 500 and (converged or not converged))";
        let output = add(holds);
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(matches!(output.status.code(), Some(0 | 1)), "{command}: {said}");
        assert_eq!(said.contains(holds), command == "run", "{command}: {said}");
    }
    let output = run(&[
        "check",
        &small,
        "--set",
        "assert=[{ always = \"every node change height <= 0\" }]",
        "--runs",
        "1",
        "--budget",
        "0",
        "--out",
        &found,
    ]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("change of height is"), "{said}");
}

/// Five of 51 delegates forge, each in a quarter of the slots: many slots are missed, and many have two blocks.
const FORKING_LOTTERY: &str = "[network]\ndelegates = 51\nlatency = { min_ms = 50, max_ms = 150 }\n\
    [rules]\nbase = \"corrected\"\nledger.shuffle = { lottery = 999999 }\nnode.fork_choice = \"longest-chain\"\n\
    node.keeps_branches = true\nnode.forging_ping_ms = 0\nnode.forging_poll_ms = 0\nnode.settling_s = 0\n\
    node.least_seconds_left = 1\nnode.rate_limits = false\n\
    [[fault]]\nkind = \"offline\"\ndelegates = { share = 0.9 }\n";

/// Missed slots that are counted through every fork are those of the chain at the end.
#[test]
fn missed_slots_of_a_lottery_leave_with_their_branch() {
    let at_end = "finally = \"missed < 0\"";
    let (_, once) = judged(FORKING_LOTTERY, at_end);
    let (_, followed) = judged(FORKING_LOTTERY, &format!("{at_end}\n[[assert]]\nalways = \"missed >= 0\""));
    assert_eq!(followed, once);
    let (forks, found) = judged(FORKING_LOTTERY, "sometimes = \"rollbacks > 20\"");
    assert!(forks && !once.starts_with("missed is 0 "), "or nothing is shown: {found}, {once}");
}
