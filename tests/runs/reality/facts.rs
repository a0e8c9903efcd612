//! What happened in a window of time: of seven real nodes, as recorded, or of simulated ones, as observed. One form for both, so
//! that one piece of code computes the figures of both.

use serde_json::Value;
use std::{collections::BTreeMap, fs, path::Path};

/// A window. Times are in seconds since its beginning, by the clock of the node that something happened at.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub nodes: u32,
    /// Seconds of a slot.
    pub block_time: u32,
    /// The window's beginning, in seconds since the first slot began.
    pub begins: f64,
    /// The last instant something was recorded at.
    pub ends: f64,
    /// What was done to the network, and when.
    pub timeline: Vec<(f64, String)>,
    pub minimum_network_reach: Option<u32>,
    pub delegate_of_node: BTreeMap<u32, String>,
    pub blocks: BTreeMap<String, BlockFact>,
    /// The first time that a block was applied, by block and node.
    pub applied: BTreeMap<String, BTreeMap<u32, f64>>,
    pub forged: Vec<(f64, u32, String)>,
    pub reverted: Vec<(f64, u32, String)>,
    pub decisions: Vec<Decision>,
    pub health_checks: Vec<HealthCheck>,
    pub peers: Vec<PeerEvent>,
    pub pushes: Vec<Push>,
    pub pings: Vec<Ping>,
    /// What each node stood on and how many peers it had, where one of them changed.
    pub tips: BTreeMap<u32, Vec<Tip>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFact {
    pub height: u32,
    pub previous: String,
    /// Since the epoch.
    pub slot: u32,
    pub delegate: String,
    pub transactions: u32,
}

/// A relay has told its delegate the state of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub t: f64,
    pub node: u32,
    /// The time it took.
    pub ms: f64,
    pub status: String,
    pub height: u32,
    pub quorum: f64,
    pub in_quorum: u32,
    pub over_height: u32,
    pub forked: u32,
    pub allowed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    pub t: f64,
    pub node: u32,
    pub ms: f64,
    pub forked: bool,
    pub blocks_to_rollback: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PeerEvent {
    pub t: f64,
    pub node: u32,
    pub kind: PeerEventKind,
    pub peer: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEventKind {
    Added,
    Removed,
    /// Dropped without an event; real nodes only.
    Disconnect,
}

/// A block was sent to a peer, and the peer answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Push {
    pub t: f64,
    pub node: u32,
    pub to: u32,
    pub id: String,
    pub accepted: bool,
}

/// A peer was asked where it stands, and answered, or did not.
#[derive(Clone, Debug, PartialEq)]
pub struct Ping {
    pub t: f64,
    pub node: u32,
    pub to: u32,
    pub ms: f64,
    pub answered: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tip {
    pub t: f64,
    pub height: u32,
    pub id: String,
    pub peers: u32,
}

/// A window as its file has it: its facts, and the figures that whoever recorded it computed from them.
pub struct Window {
    pub name: String,
    pub facts: Facts,
    pub figures: Value,
}

impl Window {
    /// Reads a file. A member that is absent holds nothing.
    ///
    /// # Errors
    /// The file cannot be read, or a member has another form.
    pub fn load(file: &Path) -> Result<Self, String> {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))?;
        let json: Value = serde_json::from_str(&text).map_err(|why| format!("{}: {why}", file.display()))?;
        Self::of(&name, &json).map_err(|why| format!("{}: {why}", file.display()))
    }

    /// A window of this name with these members.
    ///
    /// # Errors
    /// As [`Window::load`].
    pub fn of(name: &str, json: &Value) -> Result<Self, String> {
        Ok(Self { name: name.to_owned(), facts: Reader(json).facts()?, figures: json["figures"].clone() })
    }
}

/// Reads members of a window.
struct Reader<'a>(&'a Value);

impl Reader<'_> {
    fn facts(&self) -> Result<Facts, String> {
        let owners: BTreeMap<u32, String> = match self.0.get("delegate_of_node").and_then(Value::as_object) {
            Some(all) => all
                .iter()
                .map(|(node, name)| Ok((number(node)?, text(name)?)))
                .collect::<Result<_, String>>()
                .map_err(|why| format!("delegate_of_node: {why}"))?,
            None => BTreeMap::new(),
        };
        let nodes = match self.0.get("nodes") {
            Some(Value::Array(all)) => all.len() as u32,
            Some(Value::Number(count)) => count.as_u64().unwrap_or_default() as u32,
            _ => owners.len() as u32,
        };
        let block_time = self.0.get("block_time").and_then(Value::as_u64).unwrap_or(8) as u32;
        let epoch = self.0.get("epoch").and_then(Value::as_i64).ok_or("epoch: found none, allowed is a number")?;
        let begins = self.0.get("begins_unix_ms").and_then(Value::as_i64);
        let begins = begins.ok_or("begins_unix_ms: found none, allowed is a number")? - epoch * 1_000;
        let mut facts = Facts {
            nodes,
            block_time,
            begins: begins as f64 / 1_000.0,
            timeline: self.rows("timeline", |row| Ok((real(&row[0])?, text(&row[1])?)))?,
            minimum_network_reach: self
                .0
                .get("minimum_network_reach")
                .and_then(Value::as_u64)
                .map(|reach| reach as u32),
            delegate_of_node: owners,
            blocks: self.by_name("blocks", |block| {
                Ok(BlockFact {
                    height: whole(&block["height"])?,
                    previous: text(&block["previous"]).unwrap_or_default(),
                    slot: whole(&block["slot"])?,
                    delegate: text(&block["delegate"])?,
                    transactions: whole(&block["transactions"]).unwrap_or_default(),
                })
            })?,
            applied: self.by_name("applied", |by_node| {
                let all = by_node.as_object().ok_or_else(|| format!("found {by_node}, allowed is an object"))?;
                all.iter().map(|(node, t)| Ok((number(node)?, real(t)?))).collect()
            })?,
            forged: self.rows("forged", of_block)?,
            reverted: self.rows("reverted", of_block)?,
            decisions: self.rows("decisions", decision)?,
            health_checks: self.rows("health_checks", |check| {
                Ok(HealthCheck {
                    t: real(&check["t"])?,
                    node: whole(&check["node"])?,
                    ms: real(&check["ms"])?,
                    forked: check["forked"].as_bool().unwrap_or_default(),
                    blocks_to_rollback: whole(&check["blocksToRollback"]).ok(),
                })
            })?,
            peers: self.rows("peers", |row| {
                let kind = match row[2].as_str() {
                    Some("peer.added") => PeerEventKind::Added,
                    Some("peer.removed") => PeerEventKind::Removed,
                    Some("disconnect") => PeerEventKind::Disconnect,
                    _ => return Err(format!("found {}, allowed is peer.added, peer.removed or disconnect", row[2])),
                };
                Ok(PeerEvent { t: real(&row[0])?, node: whole(&row[1])?, kind, peer: whole(&row[3])? })
            })?,
            pushes: self.rows("pushes", |row| {
                let (t, node, to, id) = (real(&row[0])?, whole(&row[1])?, whole(&row[2])?, text(&row[3])?);
                Ok(Push { t, node, to, id, accepted: row[5] == true })
            })?,
            pings: self.rows("pings", |row| {
                let (t, node, to, ms) = (real(&row[0])?, whole(&row[1])?, whole(&row[2])?, real(&row[3])?);
                Ok(Ping { t, node, to, ms, answered: !row[4].is_string() && row[4] != false })
            })?,
            tips: BTreeMap::new(),
            ends: 0.0,
        };
        let tips: BTreeMap<String, Vec<Tip>> = self.by_name("tips", |rows| {
            let all = rows.as_array().ok_or_else(|| format!("found {rows}, allowed is a list"))?;
            all.iter()
                .map(|row| {
                    let (t, height, id) = (real(&row[0])?, whole(&row[1])?, text(&row[2])?);
                    Ok(Tip { t, height, id, peers: whole(&row[3])? })
                })
                .collect()
        })?;
        facts.tips = tips.into_iter().map(|(node, tips)| Ok((number(&node)?, tips))).collect::<Result<_, String>>()?;
        facts.ends = facts.last();
        Ok(facts)
    }

    fn rows<T>(&self, member: &str, read: impl Fn(&Value) -> Result<T, String>) -> Result<Vec<T>, String> {
        let Some(value) = self.0.get(member) else { return Ok(Vec::new()) };
        let rows = value.as_array().ok_or_else(|| format!("{member}: found {value}, allowed is a list"))?;
        let read = |(index, row)| read(row).map_err(|why| format!("{member}[{index}]: {why}"));
        rows.iter().enumerate().map(read).collect()
    }

    fn by_name<T>(
        &self,
        member: &str,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<BTreeMap<String, T>, String> {
        let Some(value) = self.0.get(member) else { return Ok(BTreeMap::new()) };
        let all = value.as_object().ok_or_else(|| format!("{member}: found {value}, allowed is an object"))?;
        let read = |(name, value): (&String, _)| {
            Ok((name.clone(), read(value).map_err(|why| format!("{member}.{name}: {why}"))?))
        };
        all.iter().map(read).collect()
    }
}

impl Facts {
    /// When the last thing done to the network was over, if anything was.
    pub fn over(&self) -> Option<f64> {
        let is_end = |what: &str| {
            matches!(what, "net heal" | "net delay 0" | "net delay 0 0" | "net loss 0")
                || what.starts_with("start node ")
                || what.contains("no longer forges")
                || what.contains("ask their seeds again")
        };
        self.timeline.iter().filter(|(_, what)| is_end(what)).map(|(t, _)| *t).reduce(f64::max)
    }

    /// Seconds by which a node's clock is ahead at an instant of its own.
    pub fn skew(&self, node: u32, t: f64) -> f64 {
        let mut starts = self.timeline.iter().filter_map(|(at, what)| {
            let rest = what.strip_prefix(&format!("start node {node} clock "))?;
            let skew: f64 = rest.trim_end_matches('s').trim_start_matches('+').parse().ok()?;
            (t - skew >= *at).then_some(skew)
        });
        starts.next_back().unwrap_or(0.0)
    }

    /// The last instant of anything.
    fn last(&self) -> f64 {
        let forged = self.forged.iter().map(|(t, ..)| *t);
        let tips = self.tips.values().flatten().map(|tip| tip.t);
        let decisions = self.decisions.iter().map(|decision| decision.t);
        let pushes = self.pushes.iter().map(|push| push.t);
        forged.chain(tips).chain(decisions).chain(pushes).fold(0.0, f64::max)
    }
}

fn of_block(row: &Value) -> Result<(f64, u32, String), String> {
    Ok((real(&row[0])?, whole(&row[1])?, text(&row[2])?))
}

fn decision(one: &Value) -> Result<Decision, String> {
    Ok(Decision {
        t: real(&one["t"])?,
        node: whole(&one["node"])?,
        ms: real(&one["ms"])?,
        status: text(&one["status"])?,
        height: whole(&one["height"])?,
        quorum: real(&one["quorum"]).unwrap_or_default(),
        in_quorum: whole(&one["in_quorum"]).unwrap_or_default(),
        over_height: whole(&one["over_height"]).unwrap_or_default(),
        forked: whole(&one["forked"]).unwrap_or_default(),
        allowed: one["allowed"].as_bool().ok_or("allowed: found none, allowed is true or false")?,
    })
}

fn real(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("found {value}, allowed is a number"))
}

fn whole(value: &Value) -> Result<u32, String> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| format!("found {value}, allowed is a whole number"))
}

fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("found {value}, allowed is text"))
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("found node '{text}', allowed is a number"))
}
