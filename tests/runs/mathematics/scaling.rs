//! A network in which every time is twice as long does the same in twice the time: no time is left that is no value of the scenario.

use super::scenario;
use dposlab::{
    actors::{Event, NodeId, SimTime},
    ledger::{Rules, rules::NodeRules},
    protocol::Height,
    scenario::StageKind,
    sim::{Observer, SeedTree},
};
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    mem::{Discriminant, discriminant},
    sync::{Arc, Mutex},
};

/// An event without the ids in it, for they depend on timestamps.
type Deed = (NodeId, Discriminant<Event>, Option<Height>);

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(SimTime, Deed)>>>);

impl Observer for Log {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let height = match event {
            Event::BlockForged(block) | Event::BlockReceived(block) => Some(block.header.height),
            Event::BlockApplied(link) => Some(link.height()),
            _ => None,
        };
        self.0.lock().expect("nobody panics with it").push((now, (node, discriminant(event), height)));
    }
}

/// All times of a node's rules, by the names of their keys.
fn times(rules: &NodeRules) -> Vec<(String, i64)> {
    let table = toml::Table::try_from(rules).expect("rules are TOML");
    let is_time = |name: &str| {
        // Other numbers have these ends, too.
        ["_ms", "_s"].iter().any(|end| name.ends_with(end)) || name == "least_seconds_left"
    };
    let numbers = table.into_iter().filter(|(name, _)| is_time(name));
    numbers.map(|(name, value)| (name, value.as_integer().expect("a time is a number"))).collect()
}

/// What happens where every time is `scale` times as long, with the time of each event in microseconds since the first slot.
fn played(scale: i64, change: impl Fn(&str, i64) -> i64) -> Vec<(u64, Deed)> {
    let block_s = 8 * scale;
    let mut text = format!(
        "rounds = 40\nstall = \"off\"\n[network]\ndelegates = 7\nrelays = 1\ngossip = \"reference\"\nblock_time_s = {block_s}\n\
         latency = {{ distribution = \"constant\", ms = {} }}\n[rules]\nminimum_network_reach = 4\nnode.rate_limits = false\n\
         node.retry_dropped_peers = true\nnode.transactions_in_order = true\n",
        40 * scale
    );
    for (name, value) in times(&Rules::reference().node) {
        // A poll and a first discovery come at any time within theirs, which is drawn in whole steps.
        let value = if name == "forging_poll_ms" { 0 } else { change(&name, value) };
        writeln!(text, "node.{name} = {value}").expect("a text takes all");
    }
    let mut fault = |kind: &str, rest: &str, from: i64, until: i64| {
        let (from, until) = (from * scale, until * scale);
        write!(
            text,
            "[[fault]]\nkind = \"{kind}\"\n{rest}\nfrom = {{ seconds = {from} }}\nuntil = {{ seconds = {until} }}\n"
        )
        .expect("a text takes all");
    };
    fault("partition", "groups = [[0, 1, 2]]", 100, 420);
    fault("crash", "nodes = [4]", 620, 700);
    fault("double-forge", "delegates = [5]", 900, 1_000);
    fault("pause", "nodes = [6, 7]", 1_100, 1_130);
    fault("late-forging", &format!("delegates = [3]\nby_ms = {}", 4_000 * scale), 1_200, 1_300);
    fault("withhold", &format!("delegates = [1]\nrelease_ms = {}", 11_000 * scale), 1_350, 1_500);
    fault("slow", &format!("nodes = [2]\nstep_ms = {}", 30 * scale), 1_550, 1_700);
    let scenario = scenario(&text);
    let (seeds, log) = (SeedTree::new(1), Log::default());
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    scenario.play(&plan, StageKind::Inline, vec![Box::new(log.clone())], |_: Height| ()).expect("no actor dies");
    let told = log.0.lock().expect("nobody panics with it");
    let since = |at: &SimTime| at.micros() - block_s as u64 * 1_000_000;
    told.iter().map(|(at, deed)| (since(at), *deed)).collect()
}

/// The first event of a node that is another in the longer run, or comes at another time: a first discovery is drawn in whole
/// milliseconds, so what follows from it may come some later.
fn difference(once: &[(u64, Deed)], longer: &[(u64, Deed)], scale: u64) -> Option<String> {
    let of = |events: &[(u64, Deed)], node: u32| {
        events.iter().filter(|(_, deed)| deed.0 == NodeId(node)).copied().collect::<Vec<_>>()
    };
    (0..8).find_map(|node| {
        let (once, longer) = (of(once, node), of(longer, node));
        let is_same = |place: usize| match (once.get(place), longer.get(place)) {
            (Some((time, deed)), Some((other, other_deed))) => {
                deed == other_deed && (time * scale).abs_diff(*other) <= 2_000 * scale
            }
            _ => false,
        };
        let first = (0..once.len().max(longer.len())).find(|place| !is_same(*place))?;
        Some(format!("event {first} of node {node}: {:?}, {:?}", once.get(first), longer.get(first)))
    })
}

#[test]
fn a_network_with_all_times_twice_as_long_does_the_same() {
    let once = played(1, |_, value| value);
    let kinds = once.iter().map(|(_, (_, kind, _))| format!("{kind:?}")).collect::<BTreeSet<_>>();
    assert!(once.len() > 3_000 && kinds.len() > 9, "or nothing is shown: {} events, {} kinds", once.len(), kinds.len());
    for scale in [2, 5] {
        let longer = played(scale, |_, value| scale * value);
        assert_eq!(difference(&once, &longer, scale as u64), None, "scale {scale}");
    }
}

/// The law can fail: most of the times matter in that run.
#[test]
fn a_time_that_is_not_twice_as_long_shows() {
    let once = played(1, |_, value| value);
    let matters = times(&Rules::reference().node).into_iter().map(|(name, _)| name).filter(|name| {
        let other = played(2, |of, value| if of == name { value } else { 2 * value });
        difference(&once, &other, 2).is_some()
    });
    let matters: Vec<String> = matters.collect();
    assert!(matters.len() >= 9, "{matters:?}");
}
