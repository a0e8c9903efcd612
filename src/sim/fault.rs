//! What goes wrong in a run: a closed vocabulary of values, so that a plan can be printed, counted, shrunk and replayed.
//!
//! A [`Fault`] is a kind with its parameters, the moment it begins and, unless it is over at once or lasts to the end,
//! the moment it ends. The world carries them out.

pub mod table;
pub mod trigger;
pub mod who;

pub use trigger::{EventKind, EventTrigger, Trigger};
pub use who::{NodeRef, Nodes, Share, ShareOf};

use super::PlannedSource;
use crate::{
    actors::deviation::{FalseClaim, InvalidBlock},
    ledger::Link,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, ops::RangeInclusive, sync::Arc};

/// Something that goes wrong, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    #[serde(flatten)]
    pub kind: FaultKind,
    /// When it begins; at the start of the run if nothing is said.
    #[serde(default)]
    pub from: Trigger,
    /// When it ends; never if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Trigger>,
}

impl Fault {
    /// Whether it ends before the run does, as far as can be said beforehand.
    pub fn ends(&self) -> bool {
        let by_rounds = matches!(&self.kind, FaultKind::Offline(offline) if offline.rounds.is_some());
        self.until.is_some() || by_rounds || matches!(self.kind, FaultKind::Heal(_) | FaultKind::Restart(_))
    }
}

/// A fault for a run that goes on.
#[derive(Clone)]
pub struct AddedFault {
    pub fault: Fault,
    /// Makes those who carry it out, if it is clients' doing.
    pub clients: Option<MakeClients>,
}

/// Makes the clients of a fault, told its id and the tip of the highest chain.
pub type MakeClients = Arc<dyn Fn(usize, &Arc<Link>) -> PlannedSource + Send + Sync>;

impl fmt::Debug for AddedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

/// Declares the kinds with the name each has in a file, so that the list of names cannot fall behind the enum.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:literal => $variant:ident($parameters:ty),)*) => {
        /// What goes wrong. Each kind has a name, its `kind` in a file.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind")]
        pub enum FaultKind {
            $($(#[$doc])* #[serde(rename = $name)] $variant($parameters),)*
        }

        impl FaultKind {
            /// The names of all kinds, in the order of the declaration.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The name of this kind.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }
        }
    };
}

kinds! {
    // Between nodes.
    /// Groups of nodes that cannot reach each other.
    "partition" => Partition(Partition),
    /// Ends every partition, isolation and eclipse in force.
    "heal" => Heal(Heal),
    /// Nodes that can reach nobody and cannot be reached.
    "isolate" => Isolate(SomeNodes),
    /// Nodes that are connected to chosen others only.
    "eclipse" => Eclipse(Eclipse),
    /// Messages that never arrive.
    "drop" => Drop(DropMessages),
    /// Messages that take longer.
    "delay" => Delay(DelayMessages),
    /// Messages that arrive several times.
    "duplicate" => Duplicate(DuplicateMessages),

    // At a node.
    /// Nodes that stop without a word; when the fault ends they start again from the chain they had stored.
    "crash" => Crash(Crash),
    /// Nodes that stop and start again at once.
    "restart" => Restart(Restart),
    /// Nodes that stand still: what reaches them meanwhile waits.
    "pause" => Pause(SomeNodes),
    /// Nodes that take their time over everything they hear.
    "slow" => Slow(Slow),
    /// Nodes whose clocks are wrong.
    "clock-skew" => ClockSkew(ClockSkew),

    // By a delegate, its relay or its pool.
    /// Delegates that do not forge; their nodes go on relaying.
    "offline" => Offline(Offline),
    /// Delegates that forge later in their slot than they could.
    "late-forging" => LateForging(LateForging),
    /// Delegates whose relays keep their blocks back.
    "withhold" => Withhold(Withhold),
    /// Delegates that make two blocks in one slot, one for each half of their peers.
    "double-forge" => DoubleForge(SomeDelegates),
    /// Delegates that forge in slots of others.
    "forge-out-of-turn" => ForgeOutOfTurn(ForgeOutOfTurn),
    /// Delegates whose blocks break one rule.
    "forge-invalid" => ForgeInvalid(ForgeInvalid),
    /// Delegates that leave a sender's transactions out of their blocks.
    "censor" => Censor(Censor),
    /// Nodes that take no transactions.
    "refuse-transactions" => RefuseTransactions(SomeNodes),
    /// Nodes that claim another tip than they stand on when they are asked for it.
    "lie-about-tip" => LieAboutTip(LieAboutTip),

    // By clients.
    /// Worthless transactions by the dozen: unfunded senders, gaps in nonces, signatures that do not hold.
    "spam-pool" => SpamPool(SpamPool),
    /// Valid transactions that pay the least fee that is let in.
    "low-fee-flood" => LowFeeFlood(LowFeeFlood),
    /// Voters who change sides together, timed so that it counts for the next round or just not.
    "vote-swing" => VoteSwing(VoteSwing),
    /// Delegates who resign together.
    "mass-resignation" => MassResignation(SomeDelegates),
}

impl FaultKind {
    /// The nodes it names, each list under its key in a file.
    pub fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        match self {
            Self::Partition(partition) => partition.groups.iter().map(|group| ("groups", group)).collect(),
            Self::Isolate(some) | Self::Pause(some) | Self::RefuseTransactions(some) => vec![("nodes", &some.nodes)],
            Self::Crash(crash) => vec![("nodes", &crash.nodes)],
            Self::Restart(restart) => vec![("nodes", &restart.nodes)],
            Self::Slow(slow) => vec![("nodes", &slow.nodes)],
            Self::ClockSkew(skew) => vec![("nodes", &skew.nodes)],
            Self::Eclipse(eclipse) => vec![("victims", &eclipse.victims), ("attackers", &eclipse.attackers)],
            Self::Offline(offline) => vec![("delegates", &offline.delegates)],
            Self::LateForging(late) => vec![("delegates", &late.delegates)],
            Self::Withhold(withhold) => vec![("delegates", &withhold.delegates)],
            Self::DoubleForge(some) | Self::MassResignation(some) => vec![("delegates", &some.delegates)],
            Self::ForgeOutOfTurn(out_of_turn) => vec![("delegates", &out_of_turn.delegates)],
            Self::ForgeInvalid(invalid) => vec![("delegates", &invalid.delegates)],
            Self::Censor(censor) => vec![("delegates", &censor.delegates)],
            Self::LieAboutTip(lie) => vec![("nodes", &lie.nodes)],
            Self::SpamPool(SpamPool { nodes, .. }) | Self::LowFeeFlood(LowFeeFlood { nodes, .. }) => {
                nodes.iter().map(|nodes| ("nodes", nodes)).collect()
            }
            Self::Drop(DropMessages { which })
            | Self::Delay(DelayMessages { which, .. })
            | Self::Duplicate(DuplicateMessages { which, .. }) => {
                let senders = which.senders.iter().map(|nodes| ("senders", nodes));
                senders.chain(which.receivers.iter().map(|nodes| ("receivers", nodes))).collect()
            }
            Self::Heal(_) | Self::VoteSwing(_) => Vec::new(),
        }
    }

    /// [`FaultKind::nodes`], to be changed; in the same order.
    pub fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        match self {
            Self::Partition(partition) => partition.groups.iter_mut().map(|group| ("groups", group)).collect(),
            Self::Isolate(some) | Self::Pause(some) | Self::RefuseTransactions(some) => {
                vec![("nodes", &mut some.nodes)]
            }
            Self::Crash(crash) => vec![("nodes", &mut crash.nodes)],
            Self::Restart(restart) => vec![("nodes", &mut restart.nodes)],
            Self::Slow(slow) => vec![("nodes", &mut slow.nodes)],
            Self::ClockSkew(skew) => vec![("nodes", &mut skew.nodes)],
            Self::LieAboutTip(lie) => vec![("nodes", &mut lie.nodes)],
            Self::Eclipse(eclipse) => vec![("victims", &mut eclipse.victims), ("attackers", &mut eclipse.attackers)],
            Self::Offline(offline) => vec![("delegates", &mut offline.delegates)],
            Self::LateForging(late) => vec![("delegates", &mut late.delegates)],
            Self::Withhold(withhold) => vec![("delegates", &mut withhold.delegates)],
            Self::DoubleForge(some) | Self::MassResignation(some) => vec![("delegates", &mut some.delegates)],
            Self::ForgeOutOfTurn(out_of_turn) => vec![("delegates", &mut out_of_turn.delegates)],
            Self::ForgeInvalid(invalid) => vec![("delegates", &mut invalid.delegates)],
            Self::Censor(censor) => vec![("delegates", &mut censor.delegates)],
            Self::SpamPool(SpamPool { nodes, .. }) | Self::LowFeeFlood(LowFeeFlood { nodes, .. }) => {
                nodes.iter_mut().map(|nodes| ("nodes", nodes)).collect()
            }
            Self::Drop(DropMessages { which })
            | Self::Delay(DelayMessages { which, .. })
            | Self::Duplicate(DuplicateMessages { which, .. }) => {
                let senders = which.senders.iter_mut().map(|nodes| ("senders", nodes));
                senders.chain(which.receivers.iter_mut().map(|nodes| ("receivers", nodes))).collect()
            }
            Self::Heal(_) | Self::VoteSwing(_) => Vec::new(),
        }
    }

    /// The account or delegate it names beside its lists, by name or address.
    pub fn party(&self) -> Option<&str> {
        match self {
            Self::Censor(censor) => Some(&censor.sender),
            Self::VoteSwing(swing) => Some(&swing.delegate),
            Self::Partition(_)
            | Self::Heal(_)
            | Self::Isolate(_)
            | Self::Eclipse(_)
            | Self::Drop(_)
            | Self::Delay(_)
            | Self::Duplicate(_)
            | Self::Crash(_)
            | Self::Restart(_)
            | Self::Pause(_)
            | Self::Slow(_)
            | Self::ClockSkew(_)
            | Self::Offline(_)
            | Self::LateForging(_)
            | Self::Withhold(_)
            | Self::DoubleForge(_)
            | Self::ForgeOutOfTurn(_)
            | Self::ForgeInvalid(_)
            | Self::RefuseTransactions(_)
            | Self::LieAboutTip(_)
            | Self::SpamPool(_)
            | Self::LowFeeFlood(_)
            | Self::MassResignation(_) => None,
        }
    }

    /// Whether it makes the nodes it names break the rules, or takes from them what it takes to keep them: what such a node does
    /// is not held against it.
    pub fn makes_deviant(&self) -> bool {
        match self {
            Self::Crash(_)
            | Self::Restart(_)
            | Self::Pause(_)
            | Self::Slow(_)
            | Self::ClockSkew(_)
            | Self::LateForging(_)
            | Self::Withhold(_)
            | Self::DoubleForge(_)
            | Self::ForgeOutOfTurn(_)
            | Self::ForgeInvalid(_)
            | Self::LieAboutTip(_) => true,
            // What the network, the clients or a delegate that leaves something out do is nobody's breach.
            Self::Partition(_)
            | Self::Heal(_)
            | Self::Isolate(_)
            | Self::Eclipse(_)
            | Self::Drop(_)
            | Self::Delay(_)
            | Self::Duplicate(_)
            | Self::Offline(_)
            | Self::Censor(_)
            | Self::RefuseTransactions(_)
            | Self::SpamPool(_)
            | Self::LowFeeFlood(_)
            | Self::VoteSwing(_)
            | Self::MassResignation(_) => false,
        }
    }

    /// Which messages it concerns, if it is about messages.
    pub fn messages(&self) -> Option<&Messages> {
        match self {
            Self::Drop(DropMessages { which })
            | Self::Delay(DelayMessages { which, .. })
            | Self::Duplicate(DuplicateMessages { which, .. }) => Some(which),
            _ => None,
        }
    }
}

/// Whom a partition keeps apart: groups by list, or one cut by share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Partition {
    /// Each a list of nodes; those that stand in none form a group of their own.
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
    pub nodes: Nodes,
}

/// Some delegates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SomeDelegates {
    pub delegates: Nodes,
}

/// Who is cut off from all but whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Eclipse {
    pub victims: Nodes,
    /// Those the victims can still reach, beside each other.
    pub attackers: Nodes,
}

/// Which messages between nodes.
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
}

/// What passes between nodes. A delegate, its relay and its pool are one node.
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
}

impl MessageKind {
    /// Every one.
    pub const ALL: [Self; 7] =
        [Self::Block, Self::Transactions, Self::Status, Self::Blocks, Self::CommonBlocks, Self::Peers, Self::HangUp];
}

/// Which messages are lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropMessages {
    #[serde(flatten)]
    pub which: Messages,
}

/// How much later which messages arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayMessages {
    /// In milliseconds.
    pub by_ms: u32,
    /// So many milliseconds more at most, drawn evenly for each message.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: u32,
    #[serde(flatten)]
    pub which: Messages,
}

/// How often which messages arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DuplicateMessages {
    /// Arrivals beside the first.
    #[serde(default = "one")]
    pub copies: u32,
    /// How long after the first the last arrives, in milliseconds; the copies lie evenly between.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub within_ms: u32,
    #[serde(flatten)]
    pub which: Messages,
}

/// What a crashed node has when it starts again. Its chain is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    pub nodes: Nodes,
    /// Its pool is stored too, as the reference stores it.
    #[serde(default = "yes")]
    pub keep_pool: bool,
}

/// What a restarted node still has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    pub nodes: Nodes,
    #[serde(default = "yes")]
    pub keep_pool: bool,
}

/// How slow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slow {
    pub nodes: Nodes,
    /// What one message or wake-up takes, in milliseconds; the next waits until it is done.
    pub step_ms: u32,
}

/// How wrong a clock is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockSkew {
    pub nodes: Nodes,
    /// Ahead of the others, in milliseconds; negative is behind.
    #[serde(default)]
    pub offset_ms: i64,
    /// Microseconds gained in a second; negative is lost.
    #[serde(default)]
    pub drift_ppm: i32,
}

/// Who does not forge, and when: by rounds of their own relay's chain, or as any fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Offline {
    pub delegates: Nodes,
    /// Instead of `from` and `until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Rounds>,
}

/// Who forges how late.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LateForging {
    pub delegates: Nodes,
    /// In milliseconds after the instant at which it could forge first.
    pub by_ms: u32,
}

/// Who keeps blocks back, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Withhold {
    pub delegates: Nodes,
    /// Sent after so many milliseconds; never, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_ms: Option<u32>,
}

/// Who forges in slots of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgeOutOfTurn {
    pub delegates: Nodes,
    /// In every slot, in every second one, and so on.
    #[serde(default = "one")]
    pub every: u32,
}

/// Whose blocks break which rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgeInvalid {
    pub delegates: Nodes,
    pub error: InvalidBlock,
}

/// Who leaves whose transactions out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Censor {
    pub delegates: Nodes,
    /// An address, or the name of an account or a delegate.
    pub sender: String,
}

/// Who claims which tip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LieAboutTip {
    pub nodes: Nodes,
    /// What of the header is false: its height, if absent.
    #[serde(default)]
    pub claim: FalseClaim,
    /// So many blocks or slots more than it is; negative is fewer.
    #[serde(default = "one_more")]
    pub by: i32,
    /// The node's own delegate signs the false header, which holds together then. A relay has none and signs nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
}

/// Worthless transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpamPool {
    /// Where they are handed in, one node after the other; at all, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    /// Transactions a second.
    pub per_second: f64,
}

/// Cheap transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LowFeeFlood {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    /// Transactions a second.
    pub per_second: f64,
    /// In arktoshi; the least that pools take, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fee: Option<u64>,
}

/// Who changes sides, to whom, and in which block of a round it shall be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VoteSwing {
    /// How many of the funded accounts vote.
    pub voters: u32,
    /// The delegate they vote for, by name.
    pub delegate: String,
    /// The round.
    pub round: u32,
    pub block: Boundary,
}

/// Which end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Boundary {
    /// Its first block: counts for the round after it only.
    First,
    /// Its last block: counts for the next round in full.
    Last,
}

/// One round, a list of rounds, or a span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a round number, a list of round numbers, or { from = …, to = … }")]
pub enum Rounds {
    One(u32),
    List(Vec<u32>),
    #[serde(deserialize_with = "table::only")]
    Span(Span),
}

/// From one round to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    pub from: u32,
    pub to: u32,
}

impl Rounds {
    /// The spans of rounds named.
    pub fn spans(&self) -> Vec<RangeInclusive<crate::protocol::Round>> {
        use crate::protocol::Round;
        let span = |from, to| Round(from)..=Round(to);
        match self {
            Self::One(round) => vec![span(*round, *round)],
            Self::List(rounds) => rounds.iter().map(|round| span(*round, *round)).collect(),
            Self::Span(Span { from, to }) => vec![span(*from, *to)],
        }
    }
}

fn one() -> u32 {
    1
}

fn one_more() -> i32 {
    1
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_a_table_with_its_kind_beside_its_parameters() {
        let read = |text: &str| toml::from_str::<Fault>(text).map_err(|error| error.message().to_owned());
        let text = "kind = \"delay\"\nby_ms = 300\nmessages = [\"block\"]\nsenders = [\"genesis_1\", 4]\nfrom = { round = 2 }\n\
                    until = { event = { kind = \"rolled-back\", count = 2 } }\n";
        let fault = read(text).expect("it is a fault");
        assert_eq!(fault.kind.name(), "delay");
        assert_eq!(fault.from, Trigger::Round(2));
        let FaultKind::Delay(delay) = &fault.kind else { panic!("{fault:?}") };
        assert_eq!((delay.by_ms, delay.which.messages.as_slice()), (300, [MessageKind::Block].as_slice()));
        let json = serde_json::to_string(&fault).expect("values have a text");
        assert_eq!(serde_json::from_str::<Fault>(&json).expect("its own text"), fault);
        assert!(read("kind = \"delay\"\nby_ms = 1\nby_s = 2\n").expect_err("unknown").contains("by_s"));
        assert!(read("kind = \"isolate\"\nnodes = [0]\nnode = 1\n").expect_err("unknown").contains("node"));
        let unknown = read("kind = \"delya\"\n").expect_err("unknown");
        assert!(FaultKind::NAMES.iter().all(|name| unknown.contains(name)), "{unknown}");
    }
}
