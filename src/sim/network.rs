//! The network between nodes: who is connected, how long a message takes, and what is lost, doubled or overtaken.
//!
//! The network delivers, a fault says what becomes of a message ([`interference`]), and the world owns the clock. No
//! table grows with the square of the nodes: what belongs to a link is computed from a hash of the seed and the link, and
//! kept in small networks only.

mod fates;
pub mod interference;
pub mod latency;
pub mod script;
pub mod topology;

pub use latency::{Distribution, Latency, Per, Profile};
pub use topology::{Links, Topology};

use super::{SeedTree, fault::MessageKind};
use crate::{
    actors::{Message, NodeId, SimTime},
    ledger::saved::{LoadError, Loader, Saved, Saver, saved},
    protocol::{Milestones, NetworkConfig},
};
use fates::{Fate, Fates};
use interference::{Interference, MessageRule, Verdict};
use rand::Rng;
use rand_xoshiro::{SplitMix64, rand_core::SeedableRng};
use schemars::JsonSchema;
use script::Script;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The network of a run, faults apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NetworkModel {
    pub topology: Topology,
    pub latency: Latency,
    /// Regions with latencies of their own between them, instead of `latency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regions: Option<Regions>,
    /// Links with latencies of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkLatency>,
    /// The part of all messages that is lost for good, from 0 to 1. Packets that TCP loses it sends again: their loss is latency, and
    /// the latency `profile = "tcp-loss-20"` is that of a network that loses a fifth of them.
    pub loss: f64,
    /// The part of all messages that arrives twice, from 0 to 1; the second takes a latency of its own.
    pub duplication: f64,
    /// Messages that others overtake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<Reordering>,
    /// Bytes a second that each link carries in each direction, one message after the other; without limit, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<u64>,
    /// The errors of clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
}

/// Nodes in regions: the latency of a link is that of its ends' regions, give or take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Regions {
    /// The share of the nodes in each region, in any unit; nodes are dealt out in ascending order.
    pub shares: Vec<f64>,
    /// From a row's region to a column's, in milliseconds.
    pub latency_ms: Vec<Vec<f64>>,
    /// A link differs from that by this part of it at most, drawn evenly.
    #[serde(default)]
    pub spread: f64,
}

/// The latency of a link: in both directions (`between`) or in one (`from` and `to`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkLatency {
    /// The numbers of its nodes: messages take this time in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<(u32, u32)>,
    /// The number of the node that sends: messages from it to `to` take this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// The number of the node that receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    pub latency: Latency,
}

/// The key and the directions, or the key, what was found and what is allowed.
type Directions = Result<(&'static str, Vec<(u32, u32)>), (&'static str, String, &'static str)>;

impl LinkLatency {
    /// The latency of a link in both directions.
    pub fn between(a: u32, b: u32, latency: Latency) -> Self {
        Self { between: Some((a, b)), from: None, to: None, latency }
    }

    /// The latency of a link in one direction.
    pub fn one_way(from: u32, to: u32, latency: Latency) -> Self {
        Self { between: None, from: Some(from), to: Some(to), latency }
    }

    /// The directions that it speaks of, each from a node to a node, and the key that says so.
    ///
    /// # Errors
    /// It says neither `between` nor `from` and `to`, or both.
    pub fn directions(&self) -> Directions {
        match (self.between, self.from, self.to) {
            (Some((a, b)), None, None) => Ok(("between", vec![(a, b), (b, a)])),
            (None, Some(from), Some(to)) => Ok(("from", vec![(from, to)])),
            (Some(_), ..) => Err(("between", "it beside 'from' or 'to'".to_owned(), "one or the other")),
            (None, from, to) => {
                let found = [("from", from), ("to", to)].into_iter().find(|(_, node)| node.is_some());
                let found = found.map_or_else(|| "no nodes".to_owned(), |(key, _)| format!("'{key}' alone"));
                Err(("", found, "'between', or 'from' and 'to'"))
            }
        }
    }
}

/// Messages that others overtake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// The part of all messages, from 0 to 1.
    pub chance: f64,
    /// The greatest delay of their arrival, in milliseconds.
    pub by_ms: u32,
}

/// The errors of clocks: each node draws evenly between minus and plus the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Clocks {
    /// In milliseconds.
    pub offset_ms: u32,
    /// Microseconds gained or lost in a second.
    pub drift_ppm: u32,
}

/// The fate of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    Lost,
    Arrives(SimTime),
    /// More than once.
    ArrivesAt(Vec<SimTime>),
}

/// The fates of messages beside arriving. Nobody counts them in a network in which nothing is lost, doubled, reordered or
/// limited and no fault interferes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lost on the way by chance; what a fault loses does not count.
    pub lost: u64,
    /// Arrived more than once.
    pub doubled: u64,
    /// Arrived before one that left before on the same link; counted up to 128 nodes.
    pub overtook: u64,
    /// Took a second or more.
    pub slow: u64,
    /// Waited until a link had carried others.
    pub waited: u64,
}

/// The network of a run.
#[derive(Clone, Debug)]
pub struct MessageNetwork {
    links: Links,
    model: NetworkModel,
    /// Region of each node, where there are regions.
    regions: Vec<u16>,
    /// Latencies of single links.
    special: BTreeMap<(u32, u32), Latency>,
    seed: u64,
    /// For what is drawn for each message.
    fates: Fates,
    /// Latencies of the links of a small network that were asked for before.
    known: Known,
    /// The time until which a link is busy with earlier messages.
    busy: BTreeMap<(u32, u32), Busy>,
    /// Nothing is drawn or counted for a message but its latency.
    plain: bool,
    config: Arc<NetworkConfig>,
    tally: Tally,
    /// The arrival of the last message of each link, in small networks.
    last: Vec<SimTime>,
    /// The effects of faults on messages.
    pub interference: Interference,
    /// What befalls single messages, where somebody says so.
    script: Option<Box<Script>>,
}

impl MessageNetwork {
    /// The network of a model between so many nodes.
    pub fn new(nodes: u32, links: Links, model: &NetworkModel, seeds: SeedTree, config: Arc<NetworkConfig>) -> Self {
        let seed = seeds.number("network/latency");
        let directions = |link: &LinkLatency| {
            let (latency, directions) = (link.latency, link.directions().map(|(_, directions)| directions));
            directions.unwrap_or_default().into_iter().map(move |direction| (direction, latency))
        };
        Self {
            regions: model.regions.as_ref().map(|regions| regions.of_nodes(nodes)).unwrap_or_default(),
            special: model.links.iter().flat_map(directions).collect(),
            seed,
            fates: Fates::new(model.draws_for_messages(), config.slots(), seeds),
            known: Known::new(nodes),
            busy: BTreeMap::new(),
            plain: model.is_plain(),
            tally: Tally::default(),
            last: Vec::new(),
            links,
            model: model.clone(),
            config,
            interference: Interference::new(nodes),
            script: None,
        }
    }

    /// Somebody says what befalls single messages from now on.
    pub fn follow(&mut self, script: Script) {
        self.script = Some(script.into());
        // None goes by unseen.
        self.plain = false;
    }

    /// What somebody says befalls single messages.
    pub fn script(&mut self) -> Option<&mut Script> {
        self.script.as_deref_mut()
    }

    /// Messages have names from now on, for a fault draws for them.
    pub fn name_messages(&mut self) {
        self.fates.named = true;
    }

    /// A fault treats messages from now on.
    pub fn rule(&mut self, fault: usize, rule: MessageRule) {
        self.name_messages();
        self.interference.rule(fault, rule);
    }

    /// Draws from other streams from now on. What was drawn once for all messages of a link stays.
    pub fn draw_anew(&mut self, seeds: SeedTree) {
        self.fates.draw_anew(seeds);
    }

    /// Returns the fates of messages so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the links between nodes.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Decides the fate of a message sent now; within a node it arrives at once.
    #[inline]
    pub fn route(&mut self, now: SimTime, from: NodeId, to: NodeId, message: &Message) -> Route {
        if from == to {
            return Route::Arrives(now);
        }
        if self.fates.named {
            self.fates.leaves(now, from, to, message);
        }
        if self.plain && self.interference.is_idle() {
            return match self.links.connects(from, to) {
                true => Route::Arrives(self.arrival(now, from, to, Fate::Latency)),
                false => Route::Lost,
            };
        }
        self.route_with_care(now, from, to, message)
    }

    /// The time a message takes from one node to another if nothing interferes; where each message draws its own, one
    /// that might be drawn. Nothing within a node.
    pub fn delay(&self, from: NodeId, to: NodeId) -> Duration {
        if from == to {
            return Duration::ZERO;
        }
        Duration::from_micros(self.latency_of_link(from, to))
    }

    /// In microseconds.
    fn latency_of_link(&self, from: NodeId, to: NodeId) -> u64 {
        let special = self.special_latency(from, to);
        if let Some(regions) = self.model.regions.as_ref().filter(|_| special.is_none()) {
            let (a, b) = (self.regions[from.0 as usize], self.regions[to.0 as usize]);
            let ms = regions.latency_ms[usize::from(a)][usize::from(b)];
            let part = 1.0 + regions.spread * (2.0 * self.of_link(from, to).random::<f64>() - 1.0);
            return (ms * part * 1_000.0).max(0.0).round() as u64;
        }
        special.unwrap_or(self.model.latency).draw(&mut self.of_link(from, to))
    }

    /// Returns the arrival of one message that leaves now.
    #[inline]
    fn arrival(&mut self, now: SimTime, from: NodeId, to: NodeId, fate: Fate) -> SimTime {
        let micros = match self.known.get(from, to) {
            Some(known) => known,
            None => self.latency_of_message(from, to, fate),
        };
        SimTime::from_micros(now.micros().saturating_add(micros))
    }

    /// In microseconds; of a link that delays all messages alike it is known from then on, if the network is small.
    fn latency_of_message(&mut self, from: NodeId, to: NodeId, fate: Fate) -> u64 {
        let latency = self.special_latency(from, to).unwrap_or(self.model.latency);
        if latency.per == Per::Message && self.model.regions.is_none() {
            return latency.draw(&mut self.fates.of(fate));
        }
        let micros = self.latency_of_link(from, to);
        self.known.put(from, to, micros);
        micros
    }

    fn special_latency(&self, from: NodeId, to: NodeId) -> Option<Latency> {
        if self.special.is_empty() {
            return None;
        }
        self.special.get(&(from.0, to.0)).copied()
    }

    /// The random numbers of a link: the same ones whenever they are asked for.
    fn of_link(&self, from: NodeId, to: NodeId) -> SplitMix64 {
        let link = u64::from(from.0) << 32 | u64::from(to.0);
        SplitMix64::seed_from_u64(self.seed ^ link.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn route_with_care(&mut self, now: SimTime, from: NodeId, to: NodeId, message: &Message) -> Route {
        let mut verdict = match self.interference.is_idle() {
            true => Verdict::default(),
            false => self.interference.judge(from, to, kind_of(message), self.fates.of_faults()),
        };
        if let Some(script) = &mut self.script
            && !self.interference.separates(from, to)
        {
            script.befall(from, to, message, &mut verdict);
        }
        if verdict.lost || !self.links.connects(from, to) {
            return Route::Lost;
        }
        if self.happens(Fate::Lost, self.model.loss) {
            self.tally.lost += 1;
            return Route::Lost;
        }
        let sent = self.transmitted(now, from, to, message);
        let mut at = self.arrival(sent, from, to, Fate::Latency) + verdict.delay;
        if let Some(Reordering { chance, by_ms }) = self.model.reordering.clone()
            && self.happens(Fate::Overtaken, chance)
        {
            let delay = self.fates.of(Fate::Delay).random_range(0..=u64::from(by_ms) * 1_000);
            at = at + Duration::from_micros(delay);
        }
        let again = self
            .happens(Fate::Doubled, self.model.duplication)
            .then(|| self.arrival(sent, from, to, Fate::SecondLatency) + verdict.delay);
        self.tally.slow += u64::from(at.micros() >= now.micros() + 1_000_000);
        self.tally.doubled += u64::from(again.is_some() || !verdict.copies.is_empty());
        self.count_overtaking(from, to, at);
        if again.is_none() && verdict.copies.is_empty() {
            return Route::Arrives(at);
        }
        let copies = verdict.copies.iter().map(|later| at + *later);
        Route::ArrivesAt([at].into_iter().chain(again).chain(copies).collect())
    }

    /// Returns the time at which the last byte of a message has left: a link carries one message after the other.
    fn transmitted(&mut self, now: SimTime, from: NodeId, to: NodeId, message: &Message) -> SimTime {
        let Some(bandwidth) = self.model.bandwidth else { return now };
        let size = size_of(message, &self.config.milestones);
        let busy = self.busy.entry((from.0, to.0)).or_default();
        self.tally.waited += u64::from(busy.until > now);
        busy.send(now, size, bandwidth.max(1))
    }

    fn count_overtaking(&mut self, from: NodeId, to: NodeId, at: SimTime) {
        let nodes = self.known.nodes;
        if self.last.is_empty() {
            self.last.resize((nodes * nodes) as usize, SimTime::default());
        }
        if let Some(last) = self.last.get_mut(self.known.place(from, to)) {
            self.tally.overtook += u64::from(at < *last);
            *last = at.max(*last);
        }
    }

    fn happens(&self, fate: Fate, chance: f64) -> bool {
        chance > 0.0 && self.fates.of(fate).random::<f64>() < chance
    }
}

/// The time until which one direction of a link is busy.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    until: SimTime,
    /// The rest of a microsecond, in parts of which the bandwidth makes a whole one: many small messages take as
    /// long as a large one.
    part: u64,
}

impl Busy {
    /// Returns the time at which the last byte of a message sent now has left, in whole microseconds.
    fn send(&mut self, now: SimTime, size: u64, bandwidth: u64) -> SimTime {
        if self.until < now {
            *self = Self { until: now, part: 0 };
        }
        let parts = u128::from(size) * 1_000_000 + u128::from(self.part);
        let micros = u64::try_from(parts / u128::from(bandwidth)).unwrap_or(u64::MAX);
        self.part = (parts % u128::from(bandwidth)) as u64;
        self.until = SimTime::from_micros(self.until.micros().saturating_add(micros));
        self.until
    }
}

/// Latencies of links by sender and receiver, where a table of all fits beside what every message looks at.
#[derive(Clone, Debug)]
struct Known {
    /// Nodes; 0 where there are too many.
    nodes: u32,
    /// In microseconds, each more by one; 0 where it is not known.
    micros: Vec<u32>,
}

impl Known {
    /// Nodes whose table is small.
    const FEW: u32 = 128;

    fn new(nodes: u32) -> Self {
        let nodes = if nodes > Self::FEW { 0 } else { nodes };
        Self { nodes, micros: vec![0; (nodes * nodes) as usize] }
    }

    fn place(&self, from: NodeId, to: NodeId) -> usize {
        (from.0 * self.nodes + to.0) as usize
    }

    fn get(&self, from: NodeId, to: NodeId) -> Option<u64> {
        let known = *self.micros.get(self.place(from, to))?;
        (known > 0).then(|| u64::from(known) - 1)
    }

    fn put(&mut self, from: NodeId, to: NodeId, micros: u64) {
        let place = self.place(from, to);
        if let (Some(known), Ok(more)) = (self.micros.get_mut(place), u32::try_from(micros + 1)) {
            *known = more;
        }
    }
}

impl NetworkModel {
    fn is_plain(&self) -> bool {
        self.loss == 0.0
            && self.duplication == 0.0
            && self.reordering.is_none()
            && self.bandwidth.is_none()
            && self.links.is_empty()
    }

    /// Returns true if random numbers are drawn for each message.
    fn draws_for_messages(&self) -> bool {
        let special = self.links.iter().map(|link| link.latency);
        let per_message = special.chain([self.latency]).any(|latency| latency.per == Per::Message);
        per_message || self.loss > 0.0 || self.duplication > 0.0 || self.reordering.is_some()
    }
}

impl Regions {
    /// The region of each node.
    fn of_nodes(&self, nodes: u32) -> Vec<u16> {
        let total: f64 = self.shares.iter().sum();
        let region = |node: u32| {
            let place = (f64::from(node) + 0.5) / f64::from(nodes) * total;
            let mut sum = 0.0;
            let found = self.shares.iter().position(|share| {
                sum += share;
                place < sum
            });
            found.unwrap_or(self.shares.len().saturating_sub(1)) as u16
        };
        (0..nodes).map(region).collect()
    }
}

/// The kind of a message between nodes; `None` of one that stays within a node.
pub fn kind_of(message: &Message) -> Option<MessageKind> {
    Some(match message {
        Message::Block(_) => MessageKind::Block,
        Message::Transactions(_) => MessageKind::Transactions,
        Message::StatusRequest | Message::Status { .. } => MessageKind::Status,
        Message::BlocksRequest { .. } | Message::Blocks { .. } => MessageKind::Blocks,
        Message::CommonBlocksRequest { .. } | Message::CommonBlocks { .. } => MessageKind::CommonBlocks,
        Message::PeersRequest | Message::Peers(_) => MessageKind::Peers,
        Message::HungUp => MessageKind::HangUp,
        Message::Connect { .. } | Message::Connected { .. } => MessageKind::Connect,
        Message::RoundRequest
        | Message::Round(_)
        | Message::RoundChanged(_)
        | Message::NetworkStateRequest
        | Message::NetworkState(_)
        | Message::ForgingTransactionsRequest
        | Message::ForgingTransactions(_)
        | Message::Forged(_)
        | Message::WakeUp
        | Message::RelayFailed { .. }
        | Message::ChooseTransactions { .. }
        | Message::AddTransactions(_)
        | Message::Broadcast(_)
        | Message::TipMoved { .. }
        | Message::BlockNotApplied { .. }
        | Message::Reorganised { .. }
        | Message::AlreadyForged { .. } => return None,
    })
}

/// Returns true if a message asks for something that another one answers.
fn is_question(message: &Message) -> bool {
    matches!(
        message,
        Message::StatusRequest
            | Message::BlocksRequest { .. }
            | Message::CommonBlocksRequest { .. }
            | Message::PeersRequest
            | Message::Connect { .. }
    )
}

/// Bytes of a message on the wire: its blocks and transactions, and a frame around them.
pub fn size_of(message: &Message, milestones: &Milestones) -> u64 {
    const FRAME: usize = 128;
    let content = match message {
        Message::Block(block) => block.size(milestones),
        Message::Blocks { blocks, .. } => blocks.iter().map(|block| block.size(milestones)).sum(),
        Message::Transactions(transactions) => transactions.iter().map(|transaction| transaction.size()).sum(),
        _ => 0,
    };
    (FRAME + content) as u64
}

saved!(struct Tally { lost, doubled, overtook, slow, waited });
saved!(struct Busy { until, part });

impl MessageNetwork {
    /// Appends what changes while a run goes on.
    pub(super) fn save(&self, out: &mut Saver) {
        // The facts about a link are computed again.
        let Self {
            links: _,
            model: _,
            regions: _,
            special: _,
            seed: _,
            known: _,
            plain: _,
            config: _,
            fates,
            busy,
            tally,
            last,
            interference,
            // Of a search, which reads no moment again.
            script: _,
        } = self;
        fates.save(out);
        busy.save(out);
        if out.ahead_of().is_none() {
            tally.save(out);
            last.save(out);
        }
        interference.save(out);
    }

    /// Goes on from what was written down of a network that began like this one.
    pub(super) fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        self.fates.go_on(from)?;
        self.busy = Saved::load(from)?;
        self.tally = Saved::load(from)?;
        self.last = Saved::load(from)?;
        self.interference = Saved::load(from)?;
        Ok(())
    }
}
