//! A scenario for a window that has none: from its set-up, from what its nodes' pings took, and from its timeline.
//!
//! | entry of the timeline | in the scenario |
//! |---|---|
//! | `net split 1,2 3` and `net heal` | `partition` |
//! | `net delay MS [JITTER]`, `net delay 0` | `delay` of all messages |
//! | `net loss 20` at the beginning | log-normal latency, as TCP makes of it |
//! | `stop … node N`, `kill … node N` and `start node N` | `crash` until the node has a peer |
//! | `start node N clock ±Xs`, `clock node N ±Xs` | `clock-skew` |
//! | `… ask their seeds again` of `nodes N, M` | `restart` |
//! | `node N forges for delegate M too` and `node N no longer forges …` | `double-forge` |
//! | `node N keeps … to itself` | the two blocks differ from here on |
//! | `phase …`, `tx …` | nothing |

use super::{facts::Facts, simulated::Extent};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// The time between a node's start and its first peers, where no peer was recorded \[s\].
const BOOT: f64 = 4.0;
/// Round trips below which nothing is known of the latency, and that of the healthy network is taken: one way \[ms\].
const USUAL: Latency = Latency::Uniform { min: 5, max: 25 };
/// So many pings and decisions tell what messages take.
const FEW_PINGS: usize = 20;
const FEW_DECISIONS: usize = 5;
/// A loss must begin this soon to hold for the whole window \[s\].
const AT_ONCE: f64 = 20.0;
/// Before a window whose nodes begin without peers, all of them are kept apart for so long \[s\].
const APART: f64 = 130.0;

/// A real forger looks every 200 ms whether it may forge, and makes the block within 20 ms: what that takes in the mean.
const FORGING_TAKES_MS: u32 = 20;

/// What messages take, one way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Latency {
    /// In milliseconds.
    Uniform { min: u32, max: u32 },
    /// What 20 % of packets lost make of it: TCP sends them again.
    Lossy,
}

/// The scenario of a window, as the text of a file.
///
/// # Errors
/// Something in the window has a form that stands for no scenario: the message names it.
pub fn scenario_of(name: &str, facts: &Facts) -> Result<String, String> {
    if facts.block_time != 8 {
        return Err(format!("block_time: found {}, allowed is 8, that of the simulated network", facts.block_time));
    }
    if facts.nodes == 0 {
        return Err("nodes: found none, allowed is a number or 'delegate_of_node'".to_owned());
    }
    let extent = Extent::of(facts);
    let mut work = Work { facts, places: places(facts), offset: extent.begins, faults: String::new() };
    let lossy = work.read_timeline()?;
    work.begin_as_recorded()?;
    let latency = if lossy { Latency::Lossy } else { usual_latency(facts) };
    let delegates = match facts.delegate_of_node.len() as u32 {
        0 => facts.nodes,
        known => known.min(facts.nodes),
    };
    let mut text =
        format!("# Made from the timeline of the window.\nversion = 1\ndescription = \"as the window {name}\"\n");
    let seconds = (extent.begins + extent.lasts).ceil() as u32 + 60;
    let rounds = seconds.div_ceil(facts.block_time * delegates) + 2;
    put(&mut text, format_args!("rounds = {rounds}\nstall = \"off\"\ntime_limit_seconds = {seconds}\n"));
    put(&mut text, format_args!("crypto = \"modelled\"\n\n[network]\ndelegates = {delegates}\n"));
    if facts.nodes > delegates {
        put(&mut text, format_args!("relays = {}\n", facts.nodes - delegates));
    }
    put(&mut text, format_args!("gossip = \"reference\"\n{}\n\n[rules]\n", latency.in_file()));
    if let Some(reach) = facts.minimum_network_reach {
        put(&mut text, format_args!("minimum_network_reach = {reach}\n"));
    }
    text.push_str("\n[rules.node]\nretry_dropped_peers = false\n");
    text.push_str(&work.faults);
    put(&mut text, format_args!("\n[[fault]]\nkind = \"late-forging\"\n"));
    let delegates = list(0..delegates);
    put(&mut text, format_args!("delegates = {delegates}\nby_ms = {FORGING_TAKES_MS}\n"));
    Ok(text)
}

impl Latency {
    fn in_file(self) -> String {
        match self {
            Self::Uniform { min, max } => {
                format!("latency = {{ distribution = \"uniform\", min_ms = {min}, max_ms = {max}, per = \"message\" }}")
            }
            Self::Lossy => {
                "latency = { distribution = \"log-normal\", median_ms = 50, sigma = 1.3, per = \"message\" }".to_owned()
            }
        }
    }
}

/// Half of what pings took before anything was done to the network; of most of them, for a busy machine delays a few.
fn usual_latency(facts: &Facts) -> Latency {
    let is_act = |what: &str| !what.starts_with("phase ") && !what.starts_with("tx ");
    let until = facts.timeline.iter().find(|(_, what)| is_act(what)).map_or(f64::INFINITY, |(t, _)| *t);
    let quiet = facts.pings.iter().filter(|ping| ping.answered && ping.t < until);
    let mut took: Vec<f64> = quiet.map(|ping| ping.ms / 2.0).collect();
    took.sort_by(f64::total_cmp);
    if took.len() < FEW_PINGS {
        return latency_of_decisions(facts, until);
    }
    let at = |percent: usize| took[took.len() * percent / 100];
    // A tenth that takes five times the median: something is sent again.
    if at(90) > 5.0 * at(50) {
        return Latency::Lossy;
    }
    Latency::Uniform { min: at(2) as u32, max: at(90).ceil() as u32 }
}

/// Without pings: before it forges, a node waits for the slowest of them.
fn latency_of_decisions(facts: &Facts, until: f64) -> Latency {
    let quiet = facts.decisions.iter().filter(|decision| decision.t < until);
    let mut took: Vec<f64> = quiet.map(|decision| decision.ms / 2.0).collect();
    took.sort_by(f64::total_cmp);
    let Some(median) = took.get(took.len() / 2).filter(|_| took.len() >= FEW_DECISIONS) else { return USUAL };
    Latency::Uniform { min: (took[0] / 2.0).max(2.0 * took[0] - median) as u32, max: median.ceil() as u32 }
}

/// The place of each node in the scenario: those with delegates come first.
fn places(facts: &Facts) -> BTreeMap<u32, u32> {
    let known = facts.delegate_of_node.keys().copied();
    let others = (1..=facts.nodes).filter(|node| !facts.delegate_of_node.contains_key(node));
    known.chain(others).zip(0..).collect()
}

struct Work<'a> {
    facts: &'a Facts,
    places: BTreeMap<u32, u32>,
    /// Seconds of the run before the window.
    offset: f64,
    faults: String,
}

/// What is in force while the timeline is read.
#[derive(Default)]
struct InForce {
    split: Option<(f64, Vec<Vec<u32>>)>,
    delay: Option<(f64, u32, u32)>,
    down: BTreeMap<u32, f64>,
    double: Option<(f64, u32)>,
    lossy: bool,
}

impl Work<'_> {
    /// Says whether packets are lost all the time.
    fn read_timeline(&mut self) -> Result<bool, String> {
        let mut now = InForce::default();
        for (index, (t, what)) in self.facts.timeline.iter().enumerate() {
            self.read(*t, what, &mut now).map_err(|why| format!("timeline[{index}]: '{what}': {why}"))?;
        }
        let end = self.facts.ends + 60.0;
        self.split_over(end, &mut now);
        self.delay_over(end, &mut now);
        for (node, since) in std::mem::take(&mut now.down) {
            self.crash(node, since, end);
        }
        self.double_over(end, &mut now);
        Ok(now.lossy)
    }

    fn read(&mut self, t: f64, what: &str, now: &mut InForce) -> Result<(), String> {
        let words: Vec<&str> = what.split_whitespace().collect();
        match &*words {
            ["net", "split", groups @ ..] if groups.len() > 1 => {
                let groups = groups.iter().map(|group| self.nodes(group)).collect::<Result<_, String>>()?;
                self.split_over(t, now);
                now.split = Some((t, groups));
            }
            ["net", "heal"] => self.split_over(t, now),
            ["net", "delay", ms, rest @ ..] => {
                let jitter = rest.first().map_or(Ok(0), |jitter| whole(jitter))?;
                self.delay_over(t, now);
                let ms = whole(ms)?;
                now.delay = (ms > 0 || jitter > 0).then_some((t, ms, jitter));
            }
            ["net", "loss", percent, ..] => match percent.trim_end_matches('%') {
                "20" if t < AT_ONCE => now.lossy = true,
                "0" if !now.lossy => {}
                _ => return Err("allowed is a loss of 20 % that begins with the window and does not end".to_owned()),
            },
            ["stop" | "kill", .., "node", node] => {
                let node = self.node(node)?;
                now.down.entry(node).or_insert(t);
            }
            ["start", "node", node, rest @ ..] => {
                let node = self.node(node)?;
                let skew = match rest {
                    [] => None,
                    ["clock", skew] => Some(milliseconds(skew)?),
                    _ => return Err("allowed after the node is 'clock' with seconds, such as '-3s'".to_owned()),
                };
                if let Some(since) = now.down.remove(&node) {
                    let ahead = skew.unwrap_or(0) as f64 / 1_000.0;
                    self.crash(node, since, self.first_peer(node, t, ahead));
                }
                skew.into_iter().for_each(|skew| self.skew(node, t, skew));
            }
            ["clock", "node", node, skew] => {
                let (node, skew) = (self.node(node)?, milliseconds(skew)?);
                self.skew(node, t, skew);
            }
            ["node", node, "no", "longer", "forges", ..] => {
                self.node(node)?;
                self.double_over(t, now);
            }
            ["node", node, "keeps", ..] if what.contains("to itself") => {
                self.node(node)?;
                // Until here both blocks were one.
                now.double = now.double.map(|(_, delegate)| (t, delegate));
            }
            ["phase", .., "node", _, "forges", "for", "delegate", delegate, "too"] => {
                now.double = Some((t, self.node(delegate)?));
            }
            ["phase", rest @ ..] if what.contains("ask their seeds again") => {
                let numbers = rest.iter().map(|word| word.trim_end_matches(','));
                let nodes: BTreeSet<u32> = numbers.filter_map(|word| self.node(word).ok()).collect();
                if nodes.is_empty() {
                    return Err("allowed is one that names nodes".to_owned());
                }
                let nodes = list(nodes.iter().map(|node| self.places[node]));
                self.fault("restart", format_args!("nodes = {nodes}"), t, None);
            }
            ["phase" | "tx", ..] => {}
            _ => {
                return Err(
                    "allowed is a split, heal, delay or loss of the net, a stop, kill, start or clock of a node, \
                            a phase, or a transaction"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }

    fn node(&self, word: &str) -> Result<u32, String> {
        let node = whole(word)?;
        let known = self.places.contains_key(&node).then_some(node);
        known.ok_or_else(|| format!("found node {node}, allowed are those from 1 to {}", self.facts.nodes))
    }

    fn nodes(&self, list: &str) -> Result<Vec<u32>, String> {
        list.split(',').map(|node| self.node(node)).collect()
    }

    /// When a node that was started had its first peer; its clock may be wrong by so many seconds.
    fn first_peer(&self, node: u32, started: f64, ahead: f64) -> f64 {
        use super::facts::PeerEventKind::Added;
        let added = self.facts.peers.iter().filter(|event| event.node == node && event.kind == Added);
        let true_times = added.map(|event| event.t - ahead).filter(|t| *t >= started);
        true_times.reduce(f64::min).unwrap_or(started + BOOT)
    }

    fn split_over(&mut self, t: f64, now: &mut InForce) {
        let Some((since, groups)) = now.split.take() else { return };
        let groups: Vec<String> = groups.iter().map(|group| list(group.iter().map(|node| self.places[node]))).collect();
        self.fault("partition", format_args!("groups = [{}]", groups.join(", ")), since, Some(t));
    }

    fn delay_over(&mut self, t: f64, now: &mut InForce) {
        let Some((since, ms, jitter)) = now.delay.take() else { return };
        let more = if jitter > 0 { format!("\njitter_ms = {jitter}") } else { String::new() };
        self.fault("delay", format_args!("by_ms = {ms}{more}"), since, Some(t));
    }

    fn double_over(&mut self, t: f64, now: &mut InForce) {
        let Some((since, delegate)) = now.double.take() else { return };
        let delegates = list([self.places[&delegate]].into_iter());
        self.fault("double-forge", format_args!("delegates = {delegates}"), since, Some(t));
    }

    fn crash(&mut self, node: u32, since: f64, until: f64) {
        let nodes = list([self.places[&node]].into_iter());
        self.fault("crash", format_args!("nodes = {nodes}"), since, Some(until));
    }

    fn skew(&mut self, node: u32, since: f64, ms: i64) {
        let nodes = list([self.places[&node]].into_iter());
        self.fault("clock-skew", format_args!("nodes = {nodes}\noffset_ms = {ms}"), since, None);
    }

    fn fault(&mut self, kind: &str, what: std::fmt::Arguments<'_>, since: f64, until: Option<f64>) {
        let from = self.offset + since;
        put(
            &mut self.faults,
            format_args!("\n[[fault]]\nkind = \"{kind}\"\n{what}\nfrom = {{ seconds = {from:.3} }}\n"),
        );
        // What the window does not see the end of has none.
        if let Some(until) = until.filter(|until| *until <= self.facts.ends) {
            put(&mut self.faults, format_args!("until = {{ after = {:.3} }}\n", until - since));
        }
    }

    /// How the nodes stood when the window began: on one chain, and who did not know whom.
    fn begin_as_recorded(&mut self) -> Result<(), String> {
        let first: BTreeMap<u32, (u32, &str, u32)> = self
            .facts
            .tips
            .iter()
            .filter_map(|(node, tips)| Some((*node, tips.first()?)))
            .map(|(node, tip)| (node, (tip.height, tip.id.as_str(), tip.peers)))
            .collect();
        let mut at_height: BTreeMap<u32, &str> = BTreeMap::new();
        for (node, (height, id, _)) in &first {
            if *at_height.entry(*height).or_insert(id) != *id {
                return Err(format!(
                    "tips.{node}: the nodes begin on several chains, allowed is one; such a window needs a scenario of its own"
                ));
            }
        }
        if first.values().all(|(.., peers)| *peers == 0) && !first.is_empty() {
            let alone: Vec<String> = self.places.values().map(|place| format!("[{place}]")).collect();
            self.fault("partition", format_args!("groups = [{}]", alone.join(", ")), -APART, Some(0.0));
            return Ok(());
        }
        let others = self.facts.nodes - 1;
        let lacking: Vec<u32> =
            first.iter().filter(|(_, (.., peers))| *peers < others).map(|(node, _)| *node).collect();
        for (index, one) in lacking.iter().enumerate() {
            for other in &lacking[index + 1..] {
                if !self.have_met(*one, *other) {
                    self.keep_apart(*one, *other);
                }
            }
        }
        Ok(())
    }

    /// They spoke with each other before one of them added the other.
    fn have_met(&self, one: u32, other: u32) -> bool {
        let until = self.meet_at(one, other).unwrap_or(f64::INFINITY);
        let between = |a: u32, b: u32| (a, b) == (one, other) || (b, a) == (one, other);
        let pings = self.facts.pings.iter().any(|ping| ping.answered && ping.t < until && between(ping.node, ping.to));
        pings || self.facts.pushes.iter().any(|push| push.t < until && between(push.node, push.to))
    }

    fn meet_at(&self, one: u32, other: u32) -> Option<f64> {
        use super::facts::PeerEventKind::Added;
        let met = self
            .facts
            .peers
            .iter()
            .find(|event| event.kind == Added && [(one, other), (other, one)].contains(&(event.node, event.peer)));
        met.map(|event| event.t)
    }

    fn keep_apart(&mut self, one: u32, other: u32) {
        let until = self.facts.over().unwrap_or(self.facts.ends + 60.0);
        for (from, to) in [(one, other), (other, one)] {
            let (from, to) = (self.places[&from], self.places[&to]);
            let what = format!("messages = []\nsenders = [{from}]\nreceivers = [{to}]");
            self.fault("drop", format_args!("{what}"), -self.offset, Some(until));
        }
    }
}

fn list(places: impl Iterator<Item = u32>) -> String {
    let places: Vec<String> = places.map(|place| place.to_string()).collect();
    format!("[{}]", places.join(", "))
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("text takes everything");
}

fn whole(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("found '{word}', allowed is a whole number"))
}

/// Seconds with a unit, such as `-3s`.
fn milliseconds(word: &str) -> Result<i64, String> {
    let seconds: Option<f64> = word.trim_end_matches('s').trim_start_matches('+').parse().ok();
    let ms = seconds.filter(|seconds| seconds.is_finite()).map(|seconds| (seconds * 1_000.0).round() as i64);
    ms.ok_or_else(|| format!("found '{word}', allowed is a number of seconds, such as '-3s'"))
}
