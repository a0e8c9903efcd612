//! The network between nodes: who is connected, how long a message takes, and what is lost, doubled or overtaken.
//!
//! The network delivers messages, faults change their fates ([`interference`]), and the world owns the clock. No table grows with the
//! square of the number of nodes: the values of a link are computed from a hash of the seed and the link. Only small networks cache them.

mod access;
mod by_class;
mod classes;
mod compact;
mod fair;
mod fates;
pub mod interference;
pub(crate) mod latency;
mod list;
mod model;
mod regions;
pub(crate) mod script;
pub(crate) mod topology;

pub use access::{AccessRate, Sharing};
pub use by_class::{ByClass, PerClass};
pub use classes::{Classes, ClassesError, SHARE_LIMIT};
pub use compact::{Compact, CompactNodes, MissingShare};
pub use fair::Flow;
pub use latency::{Distribution, Latency, Per};
pub use list::ListOrFile;
pub use model::{Clocks, LinkLatency, NetworkModel, Overhead, Reordering};
pub use regions::Regions;
pub use topology::{Links, Topology};

use super::{SeedTree, fault::MessageKind};
use crate::{
    actors::{BodyPart, Message, NodeId, SimTime},
    ledger::codec::{LoadError, Loader, Save, Saver, saved},
    protocol::{Block, Milestones, NetworkConfig},
};
use access::{AccessLinks, Departure};
use compact::CompactRelay;
use fates::{Fate, Fates};
use interference::{Interference, MessageRule, Verdict};
use rand::Rng;
use rand_xoshiro::{SplitMix64, rand_core::SeedableRng};
use script::Script;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The fate of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    Lost,
    Arrives(SimTime),
    /// More than once.
    ArrivesAt(Vec<SimTime>),
    /// Its copies come to the downlink or the processor of their receiver.
    Comes(Vec<Approach>),
    /// It shares an uplink or a downlink with others, so the departure of its last byte is not known yet. The copies arrive these times
    /// after it.
    Leaves(Vec<Duration>),
}

/// The way of a copy of a message to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approach {
    /// The time at which the first byte comes.
    pub first: SimTime,
    /// The time at which the last byte comes.
    pub last: SimTime,
}

/// The fates of messages beside arriving. They are not counted in a network in which nothing is lost, doubled, reordered or limited and
/// no fault interferes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lost on the way by chance; what a fault loses does not count.
    pub lost: u64,
    /// Arrived more than once.
    pub doubled: u64,
    /// Arrived before one that left before on the same link; counted up to 128 nodes.
    pub overtook: u64,
    /// Took a second or more, the time in downlinks, shared rates and processors not counted.
    pub slow: u64,
    /// Waited until a link or an uplink had carried others. Messages that share a rate do not count.
    pub waited: u64,
}

/// The network of a run.
#[derive(Clone, Debug)]
pub struct MessageNetwork {
    links: Links,
    model: NetworkModel,
    /// Region of each node, where there are regions.
    regions: Vec<u16>,
    /// Class of each node, where there are classes beside the regions.
    classes: Vec<u16>,
    /// Latencies of single links.
    special: BTreeMap<(u32, u32), Latency>,
    seed: u64,
    /// The random numbers for each message.
    fates: Fates,
    /// The cached latencies of links, in a small network.
    known: LatencyTable,
    /// The time until which a link is busy with earlier messages.
    busy: BTreeMap<(u32, u32), Busy>,
    /// Uplinks and downlinks, if they have limits.
    access: Option<Box<AccessLinks>>,
    /// The nodes with compact blocks, if there are any.
    compact: Option<Box<CompactRelay>>,
    /// Nodes take time to validate blocks.
    takes_time: bool,
    /// For a message the network draws its latency, and draws and counts nothing else.
    plain: bool,
    config: Arc<NetworkConfig>,
    tally: Tally,
    /// The arrival of the last message of each link, in small networks.
    last: Vec<SimTime>,
    /// The effects of faults on messages.
    pub interference: Interference,
    /// The fates of single messages, where a caller sets them.
    script: Option<Box<Script>>,
}

impl MessageNetwork {
    /// The network of a model between `nodes` nodes.
    pub fn new(nodes: u32, links: Links, model: &NetworkModel, seeds: SeedTree, config: Arc<NetworkConfig>) -> Self {
        let seed = seeds.number("network/latency");
        let directions = |link: &LinkLatency| {
            let (latency, directions) = (link.latency, link.directions().map(|(_, directions)| directions));
            directions.unwrap_or_default().into_iter().map(move |direction| (direction, latency))
        };
        let regions = model.regions.as_ref().map(|regions| regions.of_nodes(nodes, seeds)).unwrap_or_default();
        let classes =
            model.classes.as_ref().map(|classes| classes.of_nodes(nodes, seeds, "network/classes")).unwrap_or_default();
        let decisive = if model.classes.is_some() { &classes } else { &regions };
        Self {
            access: AccessLinks::new(nodes, decisive, model).map(Box::new),
            compact: model.compact.as_ref().map(|compact| CompactRelay::new(nodes, compact, seeds).into()),
            takes_time: model.takes_time(),
            regions,
            classes,
            special: model.links.iter().flat_map(directions).collect(),
            seed,
            fates: Fates::new(model.draws_for_messages(), config.slots(), seeds),
            known: LatencyTable::new(nodes),
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

    /// Follows a caller's fates of single messages from now on.
    pub fn follow(&mut self, script: Script) {
        self.script = Some(script.into());
        // The script must see every message.
        self.plain = false;
    }

    /// Returns the caller's fates of single messages.
    pub fn script(&mut self) -> Option<&mut Script> {
        self.script.as_deref_mut()
    }

    /// Names messages from now on, because a fault draws by these names.
    pub fn name_messages(&mut self) {
        self.fates.named = true;
    }

    /// Applies the rule of a fault to messages from now on.
    pub fn rule(&mut self, fault: usize, rule: MessageRule) {
        self.name_messages();
        self.interference.rule(fault, rule);
    }

    /// Draws from other streams from now on. Values drawn once for all messages of a link, and kinds of nodes, stay.
    pub fn draw_anew(&mut self, seeds: SeedTree) {
        self.fates.draw_anew(seeds);
        if let Some(compact) = &mut self.compact {
            compact.draw_anew(seeds);
        }
    }

    /// Returns the fates of messages so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the class of each node: its region, where regions are the classes. Empty if there are neither.
    pub(super) fn classes(&self) -> &[u16] {
        if self.model.classes.is_some() { &self.classes } else { &self.regions }
    }

    /// Returns the links between nodes.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Decides the fate of a message sent now.
    #[inline]
    pub fn route(&mut self, now: SimTime, from: NodeId, to: NodeId, message: &Message) -> Route {
        match self.plain_arrival(now, from, to, message) {
            Some(at) => Route::Arrives(at),
            None => self.route_with_care(now, from, to, message),
        }
    }

    /// The arrival of a message sent now, if nothing but a latency happens to it; within a node it arrives at once. Otherwise
    /// [`MessageNetwork::route`] decides.
    #[inline]
    pub fn plain_arrival(&mut self, now: SimTime, from: NodeId, to: NodeId, message: &Message) -> Option<SimTime> {
        if from == to {
            return Some(now);
        }
        if !self.plain || !self.interference.is_idle() || !self.links.connects(from, to) {
            return None;
        }
        self.name_draws(now, from, to, message);
        Some(self.arrival(now, from, to, Fate::Latency))
    }

    /// Has the draws about a message that leaves now go by its name.
    #[inline]
    fn name_draws(&mut self, now: SimTime, from: NodeId, to: NodeId, message: &Message) {
        if self.fates.named {
            self.fates.leaves(now, from, to, message);
        }
    }

    /// The latency of a message from one node to another without interference, or zero within a node. If each message draws its latency,
    /// this is one possible draw.
    pub fn delay(&self, from: NodeId, to: NodeId) -> Duration {
        if from == to {
            return Duration::ZERO;
        }
        Duration::from_micros(self.latency_of_link(from, to))
    }

    /// The latency of every message from one node to another, in microseconds. `None` if each message draws its own.
    pub fn fixed_latency(&self, from: NodeId, to: NodeId) -> Option<u64> {
        self.drawn_latency(from, to).is_none().then(|| self.latency_of_link(from, to))
    }

    /// In microseconds.
    fn latency_of_link(&self, from: NodeId, to: NodeId) -> u64 {
        let special = self.special_latency(from, to);
        if let Some(regions) = self.model.regions.as_ref().filter(|_| special.is_none()) {
            if regions.pareto {
                return self.pareto(regions, from, to).draw(&mut self.of_link(from, to));
            }
            let ms = self.between_regions(&regions.latency_ms, from, to);
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

    /// The latency of a message, in microseconds. Caches it if the link delays all messages alike and the network is small.
    fn latency_of_message(&mut self, from: NodeId, to: NodeId, fate: Fate) -> u64 {
        if let Some(drawn) = self.drawn_latency(from, to) {
            return drawn.draw(&mut self.fates.of(fate));
        }
        let micros = self.latency_of_link(from, to);
        self.known.put(from, to, micros);
        micros
    }

    /// The distribution of the latency of each message of a link, if each message draws its own.
    fn drawn_latency(&self, from: NodeId, to: NodeId) -> Option<Distribution> {
        let special = self.special_latency(from, to);
        match &self.model.regions {
            Some(regions) if special.is_none() => regions.pareto.then(|| self.pareto(regions, from, to)),
            _ => {
                let latency = special.unwrap_or(self.model.latency);
                (latency.per == Per::Message).then_some(latency.distribution)
            }
        }
    }

    fn pareto(&self, regions: &Regions, from: NodeId, to: NodeId) -> Distribution {
        Distribution::Pareto { mean_ms: self.between_regions(&regions.latency_ms, from, to) }
    }

    /// The entry of a matrix of regions for a link.
    fn between_regions<T: Copy>(&self, matrix: &[Vec<T>], from: NodeId, to: NodeId) -> T {
        let (a, b) = (self.regions[from.0 as usize], self.regions[to.0 as usize]);
        matrix[usize::from(a)][usize::from(b)]
    }

    /// Bytes per second of a link, if it has a limit.
    fn bandwidth(&self, from: NodeId, to: NodeId) -> Option<u64> {
        match &self.model.regions {
            Some(regions) if !regions.bandwidth.is_empty() => Some(self.between_regions(&regions.bandwidth, from, to)),
            _ => self.model.bandwidth,
        }
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
        self.name_draws(now, from, to, message);
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
        let departure = self.depart(now, from, to, message);
        let sent = departure.last;
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
        let copies = verdict.copies.iter().map(|later| at + *later);
        let all = [at].into_iter().chain(again).chain(copies);
        if let Some(access) = self.access.as_mut().filter(|access| access.is_one_at_a_time() && has_blocks(message)) {
            access.occupy(from, at);
        }
        if let Some(access) = self.access.as_ref().filter(|access| access.is_fair())
            && !access.flows.is_instant(from, to, self.size(from, to, message))
        {
            return Route::Leaves(all.map(|at| at.since(now)).collect());
        }
        if self.is_taken_in(message) {
            let lead = departure.last.since(departure.first);
            return Route::Comes(all.map(|last| Approach { first: last.before(lead), last }).collect());
        }
        if again.is_none() && verdict.copies.is_empty() {
            return Route::Arrives(at);
        }
        Route::ArrivesAt(all.collect())
    }

    /// Sends a message over its sender's uplink, and then over the link. Each carries one message after the other.
    fn depart(&mut self, now: SimTime, from: NodeId, to: NodeId, message: &Message) -> Departure {
        let mut departure = Departure::at_once(now);
        if self.model.limits_links() || self.access.is_some() {
            departure = self.depart_in_turn(now, from, to, message);
        }
        if let Some(overhead) = &self.model.overhead {
            let ms = if has_blocks(message) { overhead.block_ms } else { overhead.other_ms };
            let time = Duration::from_millis(ms.into());
            departure = Departure { first: departure.first + time, last: departure.last + time, ..departure };
        }
        departure
    }

    fn depart_in_turn(&mut self, now: SimTime, from: NodeId, to: NodeId, message: &Message) -> Departure {
        let mut departure = Departure::at_once(now);
        let size = self.size(from, to, message);
        if let Some(access) = &mut self.access {
            departure = match access.is_one_at_a_time() {
                true if has_blocks(message) => access.send_alone(now, from, to, size),
                true => departure,
                false => access.send(now, from, size),
            };
        }
        if let Some(bandwidth) = self.bandwidth(from, to)
            && !self.access.as_ref().is_some_and(|access| access.is_fair())
        {
            let busy = self.busy.entry((from.0, to.0)).or_default();
            departure.waited |= busy.until > departure.last;
            departure.first = busy.until.max(departure.last);
            departure.last = busy.send(departure.last, size, bandwidth.max(1));
        }
        self.tally.waited += u64::from(departure.waited);
        departure
    }

    /// Returns true if a message passes a downlink or a processor with a queue on its way into a node.
    pub(super) fn is_taken_in(&self, message: &Message) -> bool {
        self.access.as_ref().is_some_and(|access| access.queues_downlinks())
            || self.takes_time && has_blocks(message)
            || self.compact.is_some() && matches!(message, Message::Body { .. })
    }

    /// Takes a message whose first byte came to a node at `first`, and whose last byte comes now. Returns the time at which it has passed
    /// the downlink.
    pub(super) fn receive(
        &mut self,
        now: SimTime,
        from: NodeId,
        to: NodeId,
        message: &Message,
        first: SimTime,
    ) -> SimTime {
        let size = self.size(from, to, message);
        match &mut self.access {
            Some(access) if access.queues_downlinks() => access.receive(now, to, size, first),
            _ => now,
        }
    }

    /// Adds a message that begins to leave now and shares rates with others. Returns the time at which to call
    /// [`MessageNetwork::departed`], if no such call is scheduled yet.
    pub(super) fn start_flow(&mut self, now: SimTime, flow: Flow) -> Option<SimTime> {
        self.access.as_mut()?.flows.begin(now, flow)
    }

    /// Removes and returns the messages that have left by now, with the time of the next call.
    pub(super) fn departed(&mut self, now: SimTime) -> (Vec<Flow>, Option<SimTime>) {
        self.access.as_mut().map(|access| access.flows.departed(now)).unwrap_or_default()
    }

    /// The messages that are leaving and share rates.
    pub(super) fn flows(&self) -> &[Flow] {
        self.access.as_ref().map_or(&[], |access| access.flows.all())
    }

    /// The messages that are leaving and share rates, for changes.
    pub(super) fn flows_mut(&mut self) -> &mut [Flow] {
        self.access.as_mut().map_or(&mut [], |access| access.flows.all_mut())
    }

    /// Returns the bytes that the receiver of a compact block lacks, and the time at which its sender learns of it. `None` if the receiver
    /// has the whole block now.
    pub(super) fn missing(&self, now: SimTime, from: NodeId, to: NodeId, message: &Message) -> Option<(u32, SimTime)> {
        let (compact, Message::Body { block, part: BodyPart::Whole, .. }) = (self.compact.as_ref()?, message) else {
            return None;
        };
        let share = compact.missing(from, to, block)?;
        let overhead = self.model.overhead.map_or(0, |overhead| overhead.other_ms);
        let micros = match self.drawn_latency(to, from) {
            Some(drawn) => drawn.draw(&mut compact.question(from, to, block)),
            None => self.latency_of_link(to, from),
        };
        let at = SimTime::from_micros(now.micros().saturating_add(micros)) + Duration::from_millis(overhead.into());
        Some(((self.size_of_block(block) as f64 * share) as u32, at))
    }

    /// The size of a message on the wire, in bytes.
    pub(super) fn size(&self, from: NodeId, to: NodeId, message: &Message) -> u64 {
        match (message, &self.compact) {
            (Message::Body { part: BodyPart::Missing { bytes }, .. }, _) => return (*bytes).into(),
            (Message::Body { .. }, Some(compact)) if compact.are_both(from, to) => return compact.bytes(),
            _ => {}
        }
        let more = |block: &Block| self.size_of_block(block) - block.size(&self.config.milestones) as u64;
        let more = match message {
            _ if self.model.block_bytes == 0 => 0,
            Message::Block(block) | Message::Body { block, .. } => more(block),
            Message::Blocks { blocks, .. } => blocks.iter().map(|block| more(block)).sum(),
            _ => 0,
        };
        size_of(message, &self.config.milestones) + more
    }

    /// The size of a block on the wire and in a processor, in bytes.
    pub(super) fn size_of_block(&self, block: &Block) -> u64 {
        (block.size(&self.config.milestones) as u64).max(self.model.block_bytes.into())
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
    /// The part of a microsecond beyond `until`, as a numerator over the bandwidth. With it, many small messages take as long as a large
    /// one.
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

/// Cached latencies of links by sender and receiver. Only small networks have the table, because it must fit beside the data that every
/// message reads.
#[derive(Clone, Debug)]
struct LatencyTable {
    /// The number of nodes, or 0 if the network is too large for the table.
    nodes: u32,
    /// The latency plus one, in microseconds, or 0 if it is not known.
    micros: Vec<u32>,
}

impl LatencyTable {
    /// The largest number of nodes that has a table.
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

/// The kind of a message between nodes, or `None` for a message within a node.
pub fn kind_of(message: &Message) -> Option<MessageKind> {
    Some(match message {
        Message::Block(_) | Message::Announcement(_) | Message::BodyRequest { .. } | Message::Body { .. } => {
            MessageKind::Block
        }
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
            | Message::BodyRequest { .. }
    )
}

/// Returns true if a message carries blocks.
fn has_blocks(message: &Message) -> bool {
    matches!(message, Message::Block(_) | Message::Body { .. } | Message::Blocks { .. })
}

/// Bytes of a message on the wire: its blocks and transactions, and a frame around them.
pub fn size_of(message: &Message, milestones: &Milestones) -> u64 {
    const FRAME: usize = 128;
    let content = match message {
        Message::Block(block) | Message::Body { block, .. } => block.size(milestones),
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
            classes: _,
            special: _,
            seed: _,
            known: _,
            compact,
            plain: _,
            config: _,
            takes_time: _,
            access,
            fates,
            busy,
            tally,
            last,
            interference,
            // A search sets it, and a search loads no saved moment.
            script: _,
        } = self;
        fates.save(out);
        busy.save(out);
        if out.ahead_of().is_none() {
            tally.save(out);
            last.save(out);
        }
        interference.save(out);
        if let Some(access) = access {
            access.save(out);
        }
        if let Some(compact) = compact {
            compact.save(out);
        }
    }

    /// Continues from the saved values of a network that began like this one.
    pub(super) fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        self.fates.go_on(from)?;
        self.busy = Save::load(from)?;
        self.tally = Save::load(from)?;
        self.last = Save::load(from)?;
        self.interference = Save::load(from)?;
        self.access.as_mut().map_or(Ok(()), |access| access.go_on(from))?;
        self.compact.as_mut().map_or(Ok(()), |compact| compact.go_on(from))
    }
}
