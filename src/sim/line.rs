//! Events as JSON: the lines of a trace and of the live stream. docs/trace.md describes the same format.

use crate::{
    actors::{ActorId, Event, Message, NodeId, Role, SimTime},
    ledger::{Link, Round, round::Member},
    protocol::{Asset, Block, SignedTransaction, slots::Slots},
    sim::NetworkEvent,
};
use serde::{Serialize, Serializer};
use std::fmt::Display;

/// One event.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    /// Virtual time, in microseconds since the network's epoch.
    pub at: u64,
    /// The node of the event, or `None` for an event of the network.
    pub node: Option<u32>,
    #[serde(flatten)]
    pub payload: Payload<'a>,
}

/// Declares the kinds of lines: the name of each, the node's event that it describes, if it describes one, and its members. Live readers
/// can ask for the kinds of `live`.
macro_rules! payloads {
    (
        live { $($(#[$doc:meta])* $name:literal $(, $event:pat)? => $variant:ident { $($members:tt)* };)* }
        traces { $($(#[$other_doc:meta])* $other_name:literal => $other:ident { $($other_members:tt)* };)* }
    ) => {
        /// All kinds but those of messages between actors and of a run's end.
        pub const KINDS: &[&str] = &[$($name),*];

        /// The event; the kind is the member `kind`.
        #[derive(Debug, Serialize)]
        #[serde(tag = "kind")]
        pub enum Payload<'a> {
            $($(#[$doc])* #[serde(rename = $name)] $variant { $($members)* },)*
            $($(#[$other_doc])* #[serde(rename = $other_name)] $other { $($other_members)* },)*
        }

        impl Payload<'_> {
            /// Returns the value of the member `kind`.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                    $(Self::$other { .. } => $other_name,)*
                }
            }
        }

        /// Returns the kind of the line of a node's event, without making that line.
        pub fn kind_of(event: &Event) -> &'static str {
            match event {
                $($($event => $name,)?)*
            }
        }
    };
}

payloads! {
    live {
        "block.forged", Event::BlockForged(_) => BlockForged {
            block: BlockLine,
            /// Sum of its transactions' fees, in arktoshi.
            fees: u64,
            /// Ids of its transactions.
            holds: Vec<DisplayText<crate::protocol::TransactionId>>,
        };
        "block.received", Event::BlockReceived(_) => BlockReceived { block: BlockLine };
        "block.applied", Event::BlockApplied(_) => BlockApplied {
            block: BlockLine,
            /// Owners of the slots left empty before it, as public keys.
            missed: Vec<DisplayText<&'a crate::protocol::PublicKey>>,
            /// The round that begins with the next block, if one does.
            round: Option<u32>,
        };
        "block.refused", Event::BlockRefused(_) => BlockRefused { reason: String };
        "block.disregarded", Event::BlockDisregarded(_) => BlockDisregarded { block: BlockLine };
        "block.reverted", Event::BlockReverted(_) => BlockReverted { block: BlockLine };
        /// The run went back to a snapshot.
        "chain.moved" => Moved {
            from: TipLine,
            to: TipLine,
            #[serde(skip_serializing_if = "Option::is_none")]
            pending: Option<Vec<TransactionLine>>,
        };
        "chain.rolled-back", Event::RolledBack { .. } => RolledBack { from: TipLine, to: TipLine, cause: String };
        "forger.suspended", Event::ForgingSuspended { .. } => ForgingSuspended { reached: u32, in_quorum: u32 };
        "forger.started", Event::ForgerStarted { .. } => ForgerStarted { delegate: String };
        "forger.failed", Event::ForgerFailed { .. } => ForgerFailed { reason: &'a str };
        "health.checked", Event::HealthChecked { .. } => HealthChecked { peers: u32, forked: u32 };
        "peer.added", Event::PeerAdded(_) => PeerAdded { peer: u32 };
        "peer.removed", Event::PeerRemoved(_) => PeerRemoved { peer: u32 };
        "pool.added", Event::PoolAdded(_) => PoolAdded { transactions: Vec<TransactionLine> };
        "pool.rejected", Event::PoolRejected(_) => PoolRejected { rejected: Vec<RejectionLine> };
        "pool.removed", Event::PoolRemoved(_) => PoolRemoved { transaction: String };
        "pool.expired", Event::PoolExpired(_) => PoolExpired { transaction: TransactionLine };
        "pool.evicted", Event::PoolEvicted(_) => PoolEvicted { transaction: TransactionLine };
        "pool.purged", Event::PoolPurged(_) => PoolPurged { transaction: TransactionLine };
        "pool.replaced", Event::PoolReplaced(_) => PoolReplaced { transactions: Vec<TransactionLine> };
        "round.began" => RoundBegan {
            round: u32,
            /// The last block of the previous round. For the first round, the block on which the run begins.
            after: String,
            /// In forging order: slot `s` belongs to the member at `s` modulo their number.
            members: Vec<MemberLine>,
        };
        "fault.began" => FaultBegan { fault: usize, fault_kind: &'a str };
        "fault.ended" => FaultEnded { fault: usize, fault_kind: &'a str };
        "node.down" => NodeDown { cause: &'static str };
        "node.up" => NodeUp {};
    }
    traces {
        "run.ended" => RunEnded {};
        "network.sent" => Sent { from: ActorLine, to: ActorLine, message: MessageLine, arrives: u64 };
        "network.lost" => Lost { from: ActorLine, to: ActorLine, message: MessageLine };
    }
}

/// A value that is serialised as its `Display` text.
#[derive(Debug)]
pub struct DisplayText<T>(T);

impl<T: Display> Serialize for DisplayText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A block.
#[derive(Debug, Serialize)]
pub struct BlockLine {
    id: String,
    height: u32,
    previous: Option<String>,
    slot: u32,
    /// The forger's public key.
    forger: String,
    transactions: usize,
}

/// An active delegate of a round.
#[derive(Debug, Serialize)]
pub struct MemberLine {
    key: String,
    /// Vote weight at the beginning of the round, in arktoshi.
    weight: i128,
}

/// A block that is the end of a chain.
#[derive(Clone, Debug, Serialize)]
pub struct TipLine {
    id: String,
    height: u32,
}

/// A transaction. The fee is in arktoshi.
#[derive(Debug, Serialize)]
pub struct TransactionLine {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    sender: String,
    fee: u64,
    /// `+` or `-` and the key of the delegate that it votes for, or no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    vote: Option<String>,
}

/// A transaction that a pool refused.
#[derive(Debug, Serialize)]
pub struct RejectionLine {
    id: String,
    reason: String,
}

/// An actor: `peer`, `pool` or `delegate` of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ActorLine {
    pub node: u32,
    pub actor: &'static str,
}

/// A message: its type, and the block or the number of items that it carries.
#[derive(Debug, Serialize)]
pub struct MessageLine {
    #[serde(rename = "type")]
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

impl<'a> Line<'a> {
    /// The line of a node's event.
    pub fn of_event(now: SimTime, node: NodeId, event: &'a Event, slots: &Slots) -> Self {
        Self { at: now.micros(), node: Some(node.0), payload: payload(event, slots) }
    }

    /// The line of a round that begins after a block, the first time that any node's chain comes there.
    pub fn of_round(now: SimTime, after: &Link, round: &Round) -> Self {
        let member = |member: &Member| MemberLine { key: member.public_key.to_string(), weight: member.vote_balance.0 };
        let members = round.in_order().map(member).collect();
        let payload = Payload::RoundBegan { round: round.number().0, after: after.id().to_string(), members };
        Self { at: now.micros(), node: None, payload }
    }

    /// The line of a run's end.
    pub fn of_end(now: SimTime) -> Self {
        Self { at: now.micros(), node: None, payload: Payload::RunEnded {} }
    }

    /// The line of a network event.
    pub fn of_network(now: SimTime, event: &NetworkEvent<'a>, _: &Slots) -> Self {
        let (node, payload) = match event {
            NetworkEvent::Sent { from, to, message, arrives } => {
                let (sender, to, message) = (actor(*from), actor(*to), message_line(message));
                (Some(from.node.0), Payload::Sent { from: sender, to, message, arrives: arrives.micros() })
            }
            NetworkEvent::Lost { from, to, message } => {
                let (sender, to, message) = (actor(*from), actor(*to), message_line(message));
                (Some(from.node.0), Payload::Lost { from: sender, to, message })
            }
            NetworkEvent::FaultBegan { index, kind } => (None, Payload::FaultBegan { fault: *index, fault_kind: kind }),
            NetworkEvent::FaultEnded { index, kind } => (None, Payload::FaultEnded { fault: *index, fault_kind: kind }),
            NetworkEvent::NodeDown { node, cause } => (Some(node.0), Payload::NodeDown { cause: cause.word() }),
            NetworkEvent::NodeUp { node } => (Some(node.0), Payload::NodeUp {}),
            NetworkEvent::PoolLost { node } => (Some(node.0), Payload::PoolReplaced { transactions: Vec::new() }),
            NetworkEvent::Moved { node, from, to, pending, .. } => {
                let pending = pending.map(|pending| pending.iter().map(|one| transaction_line(one)).collect());
                (Some(node.0), Payload::Moved { from: tip_line(from), to: tip_line(to), pending })
            }
        };
        Self { at: now.micros(), node, payload }
    }
}

impl Payload<'_> {
    /// The actor that reports events of this kind.
    pub fn actor(&self) -> &'static str {
        match self.kind().split_once('.').map(|(subject, _)| subject) {
            Some("forger") => "delegate",
            Some("pool") => "pool",
            _ if matches!(self, Self::BlockForged { .. }) => "delegate",
            _ => "peer",
        }
    }
}

fn payload<'a>(event: &'a Event, slots: &Slots) -> Payload<'a> {
    match event {
        Event::BlockForged(block) => Payload::BlockForged {
            block: block_line(block, slots),
            fees: block.header.total_fee.value(),
            holds: block.transactions.iter().map(|transaction| DisplayText(transaction.id())).collect(),
        },
        Event::BlockReceived(block) => Payload::BlockReceived { block: block_line(block, slots) },
        Event::BlockApplied(link) => Payload::BlockApplied {
            block: block_line(link.block(), slots),
            missed: link.missing().iter().map(DisplayText).collect(),
            round: link.round_end().map(|end| end.created.number().0),
        },
        Event::BlockRefused(why) => Payload::BlockRefused { reason: why.to_string() },
        Event::BlockDisregarded(block) => Payload::BlockDisregarded { block: block_line(block, slots) },
        Event::BlockReverted(link) => Payload::BlockReverted { block: block_line(link.block(), slots) },
        Event::RolledBack { from, to, cause } => {
            Payload::RolledBack { from: tip_line(from), to: tip_line(to), cause: cause.to_string() }
        }
        Event::ForgingSuspended { reached, in_quorum } => {
            Payload::ForgingSuspended { reached: *reached, in_quorum: *in_quorum }
        }
        Event::ForgerStarted { delegate } => Payload::ForgerStarted { delegate: delegate.to_string() },
        Event::ForgerFailed { error } => Payload::ForgerFailed { reason: error },
        Event::HealthChecked { peers, forked } => Payload::HealthChecked { peers: *peers, forked: *forked },
        Event::PeerAdded(peer) => Payload::PeerAdded { peer: peer.0 },
        Event::PeerRemoved(peer) => Payload::PeerRemoved { peer: peer.0 },
        Event::PoolAdded(added) => {
            Payload::PoolAdded { transactions: added.iter().map(|added| transaction_line(added)).collect() }
        }
        Event::PoolRejected(rejected) => {
            let line = |rejection: &crate::actors::pool::PoolRejection| RejectionLine {
                id: rejection.transaction.id().to_string(),
                reason: rejection.error.to_string(),
            };
            Payload::PoolRejected { rejected: rejected.iter().map(line).collect() }
        }
        Event::PoolRemoved(id) => Payload::PoolRemoved { transaction: id.to_string() },
        Event::PoolExpired(transaction) => Payload::PoolExpired { transaction: transaction_line(transaction) },
        Event::PoolEvicted(transaction) => Payload::PoolEvicted { transaction: transaction_line(transaction) },
        Event::PoolPurged(transaction) => Payload::PoolPurged { transaction: transaction_line(transaction) },
        Event::PoolReplaced(pending) => {
            Payload::PoolReplaced { transactions: pending.iter().map(|pending| transaction_line(pending)).collect() }
        }
    }
}

fn block_line(block: &Block, slots: &Slots) -> BlockLine {
    let header = &block.header;
    BlockLine {
        id: block.id.to_string(),
        height: header.height.0,
        previous: header.previous.map(|id| id.to_string()),
        slot: slots.slot(header.timestamp).0,
        forger: header.generator.to_string(),
        transactions: block.transactions.len(),
    }
}

/// The end of a chain.
pub fn tip_line(link: &Link) -> TipLine {
    TipLine { id: link.id().to_string(), height: link.height().0 }
}

fn transaction_line(transaction: &SignedTransaction) -> TransactionLine {
    let content = transaction.transaction();
    TransactionLine {
        id: transaction.id().to_string(),
        kind: transaction.kind().key().to_owned(),
        sender: content.sender.to_string(),
        fee: content.fee.value(),
        vote: match &content.asset {
            Asset::Vote(vote) => Some(vote.to_string()),
            _ => None,
        },
    }
}

fn actor(id: ActorId) -> ActorLine {
    let actor = match id.role {
        Role::Peer => "peer",
        Role::Pool => "pool",
        Role::Delegate => "delegate",
    };
    ActorLine { node: id.node.0, actor }
}

fn message_line(message: &Message) -> MessageLine {
    let line = |kind, block, count| MessageLine { kind, block, count };
    match message {
        Message::Block(block) => line("block", Some(block.id.to_string()), None),
        Message::Announcement(id) => line("announcement", Some(id.to_string()), None),
        Message::BodyRequest { id, .. } => line("body-request", Some(id.to_string()), None),
        Message::Body { block, .. } => line("body", Some(block.id.to_string()), None),
        Message::Forged(block) => line("forged", Some(block.id.to_string()), None),
        Message::Transactions(transactions) => line("transactions", None, Some(transactions.len())),
        Message::ForgingTransactions(transactions) => line("forging-transactions", None, Some(transactions.len())),
        Message::Broadcast(transactions) => line("broadcast", None, Some(transactions.len())),
        Message::AddTransactions(add) => line("add-transactions", None, Some(add.transactions.len())),
        Message::Blocks { blocks, .. } => line("blocks", None, Some(blocks.len())),
        Message::Status { tip } => line("status", Some(tip.id.to_string()), None),
        Message::TipMoved { tip } => line("tip-moved", Some(tip.id().to_string()), None),
        Message::StatusRequest => line("status-request", None, None),
        Message::BlocksRequest { .. } => line("blocks-request", None, None),
        Message::CommonBlocksRequest { ids, .. } => line("common-blocks-request", None, Some(ids.len())),
        Message::CommonBlocks { common, .. } => line("common-blocks", common.as_ref().map(|id| id.to_string()), None),
        Message::PeersRequest => line("peers-request", None, None),
        Message::Peers(peers) => line("peers", None, Some(peers.len())),
        Message::HungUp => line("hung-up", None, None),
        Message::Connect { .. } => line("connect", None, None),
        Message::Connected { .. } => line("connected", None, None),
        Message::WakeUp => line("wake-up", None, None),
        Message::RelayFailed { .. } => line("relay-failed", None, None),
        Message::BlockNotApplied { .. } => line("block-not-applied", None, None),
        Message::Reorganised { dropped, .. } => line("reorganised", None, Some(dropped.len())),
        Message::AlreadyForged { ids, .. } => line("already-forged", None, Some(ids.len())),
        Message::RoundRequest => line("round-request", None, None),
        Message::Round(_) => line("round", None, None),
        Message::RoundChanged(_) => line("round-changed", None, None),
        Message::NetworkStateRequest => line("network-state-request", None, None),
        Message::NetworkState(_) => line("network-state", None, None),
        Message::ForgingTransactionsRequest => line("forging-transactions-request", None, None),
        Message::ChooseTransactions { .. } => line("choose-transactions", None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Arktoshi, KeyPair, Transaction, Vote, crypto::CryptoMode, transaction::TransactionBuilder};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    /// One line of every kind.
    fn one_of_each(key: &crate::protocol::PublicKey) -> Vec<Payload<'_>> {
        let block = || BlockLine {
            id: "1".into(),
            height: 2,
            previous: Some("0".into()),
            slot: 3,
            forger: key.to_string(),
            transactions: 4,
        };
        let tip = || TipLine { id: "1".into(), height: 2 };
        let transaction =
            || TransactionLine { id: "ab".into(), kind: "transfer".into(), sender: "02".into(), fee: 9, vote: None };
        let from = ActorLine { node: 1, actor: "peer" };
        let message = || MessageLine { kind: "block", block: Some("1".into()), count: None };
        vec![
            Payload::BlockForged {
                block: block(),
                fees: 9,
                holds: vec![DisplayText(crate::protocol::TransactionId([7; 32]))],
            },
            Payload::BlockReceived { block: block() },
            Payload::BlockApplied { block: block(), missed: vec![DisplayText(key)], round: Some(2) },
            Payload::BlockRefused { reason: "why".into() },
            Payload::BlockDisregarded { block: block() },
            Payload::BlockReverted { block: block() },
            Payload::RolledBack { from: tip(), to: tip(), cause: "forked".into() },
            Payload::Moved { from: tip(), to: tip(), pending: Some(vec![transaction()]) },
            Payload::ForgingSuspended { reached: 1, in_quorum: 0 },
            Payload::ForgerStarted { delegate: key.to_string() },
            Payload::ForgerFailed { reason: "why" },
            Payload::HealthChecked { peers: 3, forked: 1 },
            Payload::PeerAdded { peer: 3 },
            Payload::PeerRemoved { peer: 3 },
            Payload::PoolAdded { transactions: vec![transaction()] },
            Payload::PoolRejected { rejected: vec![RejectionLine { id: "ab".into(), reason: "why".into() }] },
            Payload::PoolRemoved { transaction: "ab".into() },
            Payload::PoolExpired { transaction: transaction() },
            Payload::PoolEvicted { transaction: transaction() },
            Payload::PoolPurged { transaction: transaction() },
            Payload::PoolReplaced { transactions: vec![transaction()] },
            Payload::RoundBegan {
                round: 2,
                after: "1".into(),
                members: vec![MemberLine { key: key.to_string(), weight: 7 }],
            },
            Payload::RunEnded {},
            Payload::Sent { from, to: from, message: message(), arrives: 8 },
            Payload::Lost { from, to: from, message: message() },
            Payload::FaultBegan { fault: 0, fault_kind: "partition" },
            Payload::FaultEnded { fault: 0, fault_kind: "partition" },
            Payload::NodeDown { cause: "crash" },
            Payload::NodeUp {},
        ]
    }

    /// Returns true if a value has the form that docs/trace.md calls by this name.
    fn form(name: &str, value: &Value) -> bool {
        let members = |value: &Value| -> Vec<String> {
            value.as_object().map(|object| object.keys().cloned().collect()).unwrap_or_default()
        };
        match name {
            "block" => members(value) == ["id", "height", "previous", "slot", "forger", "transactions"],
            "tip" => members(value) == ["id", "height"],
            "transaction" => members(value)[..4] == ["id", "type", "sender", "fee"] && members(value).len() <= 5,
            "transactions" => value.as_array().is_some_and(|all| all.iter().all(|one| form("transaction", one))),
            "actor" => members(value) == ["node", "actor"],
            "message" => members(value).first().is_some_and(|first| first == "type"),
            "key" | "text" | "id" => value.is_string(),
            "keys" => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
            "number" | "node" | "time" => value.is_u64(),
            "number or null" => value.is_u64() || value.is_null(),
            "ids" => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
            "member" => members(value) == ["key", "weight"],
            "members" => value.as_array().is_some_and(|all| all.iter().all(|one| form("member", one))),
            "list of `{id, reason}`" => value.as_array().is_some_and(|all| members(&all[0]) == ["id", "reason"]),
            other => panic!("docs/trace.md names a form that this test does not know: {other}"),
        }
    }

    #[test]
    fn a_vote_names_its_delegate() {
        let [sender, delegate] =
            ["sender", "delegate"].map(|text| KeyPair::from_passphrase(text, CryptoMode::Modelled));
        let line = |made: TransactionBuilder| json!(transaction_line(&made.sign(&sender)));
        let key = *delegate.public();
        assert_eq!(line(Transaction::vote(Vote::For(key)))["vote"], format!("+{key}"));
        assert_eq!(line(Transaction::vote(Vote::Against(key)))["vote"], format!("-{key}"));
        let transfer = Transaction::transfer(key.address(23), Arktoshi::new(1).expect("an amount"));
        assert_eq!(line(transfer).get("vote"), None);
    }

    #[test]
    fn every_kind_stands_in_the_documentation_with_its_members_in_order_and_no_other_does() {
        let text = include_str!("../../docs/trace.md");
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
        let kinds = rows.filter(|(kind, _)| kind.contains('.'));
        let mut documented: BTreeMap<&str, Vec<(String, String)>> = kinds
            .map(|(kind, row)| {
                let members = row.split(" |").next().unwrap_or_default();
                let member = |part: &str| part.split_once(": ").map(|(name, form)| (name.to_owned(), form.to_owned()));
                let members = members.strip_prefix('`').unwrap_or_default().replace(", `", "\u{0}").replace('`', "");
                // The one list whose form has a comma and quotes of its own.
                let members = members.replace("list of {id, reason}", "list of `{id, reason}`");
                (kind, members.split('\u{0}').filter_map(member).collect())
            })
            .collect();
        let told_live = |kind: &&&str| !["network.sent", "network.lost", "run.ended"].contains(kind);
        let mut kinds = KINDS.to_vec();
        kinds.sort_unstable();
        assert_eq!(documented.keys().filter(told_live).copied().collect::<Vec<_>>(), kinds);
        let keys = KeyPair::from_passphrase("trace", CryptoMode::Real);
        for payload in one_of_each(keys.public()) {
            let kind = payload.kind();
            let line = json!(Line { at: 5, node: Some(1), payload });
            let members: Vec<&String> = line.as_object().expect("a line is an object").keys().collect();
            assert_eq!(members[..3], ["at", "node", "kind"], "{line}");
            assert_eq!(line["kind"], kind);
            let row = documented.remove(kind).unwrap_or_else(|| panic!("docs/trace.md does not tell of {kind}"));
            assert_eq!(members[3..], row.iter().map(|(name, _)| name).collect::<Vec<_>>(), "{kind}");
            for (name, what) in &row {
                assert!(form(what, &line[name]), "{kind}: {name} is no {what}: {}", line[name]);
            }
        }
        assert_eq!(documented.keys().collect::<Vec<_>>(), Vec::<&&str>::new(), "documented, and no kind of a trace");
    }
}
