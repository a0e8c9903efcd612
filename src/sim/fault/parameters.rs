//! The parameters of each kind of fault, in the form of a file, and their lists of nodes.

use super::{
    BoundedValue,
    durations::Durations,
    nodes::{Nodes, Share},
    rounds::Rounds,
};
use crate::{
    actors::{Spells, delegate::ALL_ROUNDS},
    ledger::codec::saved,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters of a kind of fault: the nodes they name, and their other values.
pub(super) trait Parameters {
    /// The lists of nodes, each under its key in a file.
    fn nodes(&self) -> Vec<(&'static str, &Nodes)>;

    /// [`Parameters::nodes`] for changes, in the same order.
    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)>;

    /// Returns the parameters other than lists of nodes, each under its key in a file.
    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)>;
}

/// A member that names nodes.
trait Lists {
    fn add<'a>(&'a self, key: &'static str, all: &mut Vec<(&'static str, &'a Nodes)>);
    fn add_mut<'a>(&'a mut self, key: &'static str, all: &mut Vec<(&'static str, &'a mut Nodes)>);
}

impl Lists for Nodes {
    fn add<'a>(&'a self, key: &'static str, all: &mut Vec<(&'static str, &'a Nodes)>) {
        all.push((key, self));
    }

    fn add_mut<'a>(&'a mut self, key: &'static str, all: &mut Vec<(&'static str, &'a mut Nodes)>) {
        all.push((key, self));
    }
}

impl Lists for Option<Nodes> {
    fn add<'a>(&'a self, key: &'static str, all: &mut Vec<(&'static str, &'a Nodes)>) {
        all.extend(self.iter().map(|nodes| (key, nodes)));
    }

    fn add_mut<'a>(&'a mut self, key: &'static str, all: &mut Vec<(&'static str, &'a mut Nodes)>) {
        all.extend(self.iter_mut().map(|nodes| (key, nodes)));
    }
}

impl Lists for Vec<Nodes> {
    fn add<'a>(&'a self, key: &'static str, all: &mut Vec<(&'static str, &'a Nodes)>) {
        all.extend(self.iter().map(|nodes| (key, nodes)));
    }

    fn add_mut<'a>(&'a mut self, key: &'static str, all: &mut Vec<(&'static str, &'a mut Nodes)>) {
        all.extend(self.iter_mut().map(|nodes| (key, nodes)));
    }
}

/// A file has its members among those of the fault itself, so they have their own keys.
impl Lists for Messages {
    fn add<'a>(&'a self, _: &'static str, all: &mut Vec<(&'static str, &'a Nodes)>) {
        self.senders.add("senders", all);
        self.receivers.add("receivers", all);
    }

    fn add_mut<'a>(&'a mut self, _: &'static str, all: &mut Vec<(&'static str, &'a mut Nodes)>) {
        self.senders.add_mut("senders", all);
        self.receivers.add_mut("receivers", all);
    }
}

/// Declares for each type its lists of nodes, and how to return its other parameters.
macro_rules! parameters {
    ($($type:ident [$($nodes:ident),*] $(|$given:ident| $values:expr)?;)*) => {
        $(impl Parameters for $type {
            fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
                #[allow(unused_mut, reason = "some name no nodes")]
                let mut all = Vec::new();
                $(self.$nodes.add(stringify!($nodes), &mut all);)*
                all
            }

            fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
                #[allow(unused_mut, reason = "some name no nodes")]
                let mut all = Vec::new();
                $(self.$nodes.add_mut(stringify!($nodes), &mut all);)*
                all
            }

            fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
                $(let $given = self; return $values;)?
                #[allow(unreachable_code, reason = "some types have no other parameters")]
                Vec::new()
            }
        })*
    };
}

parameters! {
    Partition [groups] |partition| partition.bounded_values();
    Heal [];
    SomeNodes [nodes];
    SomeDelegates [delegates];
    Eclipse [victims, attackers];
    DropMessages [which] |drop| drop.which.bounded_values();
    DelayMessages [which] |delay| {
        let times = [milliseconds("by_ms", delay.by_ms), milliseconds("jitter_ms", delay.jitter_ms)];
        delay.which.bounded_values().into_iter().chain(times).collect()
    };
    DuplicateMessages [which] |duplicate| {
        let copies = ("copies", BoundedValue::Number(duplicate.copies, 1..=100));
        let within = milliseconds("within_ms", duplicate.within_ms);
        duplicate.which.bounded_values().into_iter().chain([copies, within]).collect()
    };
    Crash [nodes];
    NodeChurn [nodes] |churn| vec![("up", BoundedValue::Durations(&churn.up)), ("down", BoundedValue::Durations(&churn.down))];
    Restart [nodes];
    Slow [nodes] |slow| vec![milliseconds("step_ms", slow.step_ms)];
    ClockSkew [nodes] |skew| {
        let offset = u32::try_from(skew.offset_ms.unsigned_abs()).unwrap_or(u32::MAX);
        let drift = skew.drift_ppm.unsigned_abs();
        vec![
            ("offset_ms", BoundedValue::Number(offset, 0..=MILLISECONDS_LIMIT)),
            ("drift_ppm", BoundedValue::Number(drift, 0..=100_000)),
        ]
    };
    Offline [delegates] |offline| offline.rounds.iter().map(|rounds| ("rounds", BoundedValue::Rounds(rounds))).collect();
    SpamPool [nodes] |spam| vec![("per_second", BoundedValue::Rate(spam.per_second))];
    LowFeeFlood [nodes] |flood| {
        let fee = flood.fee.iter().map(|fee| ("fee", BoundedValue::Amount(*fee)));
        fee.chain([("per_second", BoundedValue::Rate(flood.per_second))]).collect()
    };
    VoteSwing [] |swing| vec![
        ("voters", BoundedValue::Accounts(swing.voters)),
        ("round", BoundedValue::LaterRound(swing.round)),
        ("delegate", BoundedValue::Delegate(&swing.delegate)),
    ];
}

impl Partition {
    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        let allowed = "groups or share";
        match (self.groups.is_empty(), self.share) {
            (true, None) => vec![("", BoundedValue::Clash { found: "neither", allowed })],
            (false, Some(_)) => vec![("share", BoundedValue::Clash { found: "both", allowed })],
            (true, Some(Share { share, .. })) => vec![("share.share", BoundedValue::Part(share))],
            (false, None) => Vec::new(),
        }
    }
}

impl Messages {
    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        let twice = (1..self.messages.len()).any(|at| self.messages[..at].contains(&self.messages[at]));
        let clash =
            twice.then_some(("messages", BoundedValue::Clash { found: "a kind twice", allowed: "each kind once" }));
        let chance = self.chance.iter().map(|chance| ("chance", BoundedValue::Part(*chance)));
        let only = self.only.iter().map(|number| ("only", BoundedValue::Number(*number, 1..=u32::MAX)));
        chance.chain(only).chain(clash).collect()
    }
}

/// The longest time that a fault can name, in milliseconds: eleven days.
const MILLISECONDS_LIMIT: u32 = 1_000_000_000;

/// A time in milliseconds as a statement, with the allowed range.
pub fn milliseconds(key: &'static str, ms: u32) -> (&'static str, BoundedValue<'static>) {
    (key, BoundedValue::Number(ms, 0..=MILLISECONDS_LIMIT))
}

/// The nodes that a partition keeps apart: groups by list, or one cut by share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Partition {
    /// The groups, each a list of nodes. Nodes of no list form one more group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Nodes>,
    /// Instead of groups: the share of nodes or of vote weight in the first of two groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// Messages from the first group to the others still arrive, those to the first group do not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub one_way: bool,
}

/// Nothing to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Heal {}

/// Some nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SomeNodes {
    /// The nodes that the fault concerns.
    pub nodes: Nodes,
}

/// Some delegates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SomeDelegates {
    /// The delegates that the fault concerns.
    pub delegates: Nodes,
}

/// The victims of an eclipse, and the only nodes that they reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Eclipse {
    /// The nodes that are cut off from all nodes but the attackers and each other.
    pub victims: Nodes,
    /// Those the victims can still reach, beside each other.
    pub attackers: Nodes,
}

/// The messages between nodes that a fault concerns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Messages {
    /// All kinds, if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageKind>,
    /// Sent by these; by anyone, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub senders: Option<Nodes>,
    /// Sent to these; to anyone, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receivers: Option<Nodes>,
    /// The part of them concerned, from 0 to 1; all, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// The number of the only message concerned, among all these that leave since the fault began, from 1 on; no limit, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<u32>,
}

/// A kind of message between nodes. A delegate, its relay and its pool are one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageKind {
    /// A pushed block (`postBlock`).
    Block,
    /// Pushed transactions (`postTransactions`).
    Transactions,
    /// Questions for a peer's tip and the answers (`getStatus`).
    Status,
    /// Questions for blocks and the answers (`getBlocks`).
    Blocks,
    /// Questions for a block in common and the answers (`getCommonBlocks`).
    CommonBlocks,
    /// Questions for peers and the answers (`getPeers`).
    Peers,
    /// A connection that is cut for breaking a limit.
    HangUp,
    /// The round trips that open a connection.
    Connect,
}

impl MessageKind {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::Block,
        Self::Transactions,
        Self::Status,
        Self::Blocks,
        Self::CommonBlocks,
        Self::Peers,
        Self::HangUp,
        Self::Connect,
    ];
}

/// The messages that are lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropMessages {
    /// The messages that are lost.
    #[serde(flatten)]
    pub which: Messages,
}

/// The delay of messages, and which messages it concerns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayMessages {
    /// In milliseconds.
    pub by_ms: u32,
    /// The greatest further delay in milliseconds, drawn evenly for each message.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: u32,
    /// The messages that are delayed.
    #[serde(flatten)]
    pub which: Messages,
}

/// The number of copies of messages, and which messages they are of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DuplicateMessages {
    /// Arrivals beside the first.
    #[serde(default = "one")]
    pub copies: u32,
    /// The time from the first copy to the last, in milliseconds; the copies lie evenly between.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub within_ms: u32,
    /// The messages that are copied.
    #[serde(flatten)]
    pub which: Messages,
}

/// Nodes that crash, and whether they still have their pools when they start again. Their chains are stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// The nodes that crash.
    pub nodes: Nodes,
    /// Its pool is stored too, as the reference stores it.
    #[serde(default = "yes")]
    pub keep_pool: bool,
}

/// Nodes that come and go, for how long, and whether they still have their pools when they come back. Their chains are stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeChurn {
    /// The nodes that come and go.
    pub nodes: Nodes,
    /// The time that a node is up, drawn anew each time.
    pub up: Durations,
    /// The time that it is down after that.
    pub down: Durations,
    /// True if a node still has its pool when it comes back, which is the default.
    #[serde(default = "yes")]
    pub keep_pool: bool,
}

/// Nodes that restart, and whether they still have their pools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// The nodes that restart.
    pub nodes: Nodes,
    /// True if a node still has its pool when it comes back, which is the default.
    #[serde(default = "yes")]
    pub keep_pool: bool,
}

/// Nodes that are slow, and by how much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slow {
    /// The nodes that are slow.
    pub nodes: Nodes,
    /// The time that one message or wake-up takes, in milliseconds; the next waits until it is done.
    pub step_ms: u32,
}

/// Nodes whose clocks are wrong, and by how much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockSkew {
    /// The nodes with wrong clocks.
    pub nodes: Nodes,
    /// Ahead of the others, in milliseconds; negative is behind.
    #[serde(default)]
    pub offset_ms: i64,
    /// Microseconds gained in a second; negative is lost.
    #[serde(default)]
    pub drift_ppm: i32,
}

/// Delegates that do not forge, and when: by rounds of their own relay's chain, or as any fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Offline {
    /// The delegates that do not forge.
    pub delegates: Nodes,
    /// Instead of `from` and `until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Rounds>,
}

impl Offline {
    /// Returns when the delegates learn that they are off, and the rounds in which they are off. A delegate compares these rounds with the
    /// round of its own relay's chain, which may be ahead of the highest chain or behind it. So it must know the rounds before the fault
    /// begins, and needs no message at the end.
    pub fn told(&self) -> (NoticeTime, Spells) {
        match &self.rounds {
            Some(rounds) => (NoticeTime::Planned, rounds.spans().into()),
            None => (NoticeTime::Begun, Spells::from([ALL_ROUNDS])),
        }
    }
}

/// The moment at which a fault tells delegates that they are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeTime {
    /// As soon as the run has the fault: at its start, or when the fault comes in.
    Planned,
    /// At the beginning of the fault.
    Begun,
}

/// Worthless transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpamPool {
    /// The nodes at which they are handed in, one after the other; all, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    /// Transactions a second.
    pub per_second: f64,
}

/// Cheap transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LowFeeFlood {
    /// The nodes at which they are handed in, one after the other; all, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    /// Transactions a second.
    pub per_second: f64,
    /// In arktoshi; the least that pools take, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fee: Option<u64>,
}

/// Voters that change sides, the delegate they vote for, and the block of a round in which they do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VoteSwing {
    /// The number of funded accounts that vote.
    pub voters: u32,
    /// The delegate they vote for, by name.
    pub delegate: String,
    /// The round.
    pub round: u32,
    /// The block of that round that is to contain the votes.
    pub block: Boundary,
}

/// An end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Boundary {
    /// Its first block: counts for the round after it only.
    First,
    /// Its last block: counts for the next round in full.
    Last,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// Returns true for 0: a member that files leave out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}

saved!(enum MessageKind { 0 Block, 1 Transactions, 2 Status, 3 Blocks, 4 CommonBlocks, 5 Peers, 6 HangUp, 7 Connect });
