//! Messages as another process sees them.

use crate::{
    actors::{Message, message::Transactions},
    protocol::Block,
};
use serde_json::{Value, json};

/// Names the messages, each once.
macro_rules! messages {
    ($($variant:pat => $name:literal),* $(,)?) => {
        /// The names of all messages.
        pub const NAMES: &[&str] = &[$($name),*];

        /// The name of a message.
        pub fn name_of(message: &Message) -> &'static str {
            match message {
                $($variant => $name),*
            }
        }
    };
}

messages! {
    Message::Connect { .. } => "connect",
    Message::Connected { .. } => "connected",
    Message::Block(_) => "block",
    Message::Announcement(_) => "announcement",
    Message::BodyRequest { .. } => "body-request",
    Message::Body { .. } => "body",
    Message::Transactions(_) => "transactions",
    Message::StatusRequest => "status-request",
    Message::Status { .. } => "status",
    Message::BlocksRequest { .. } => "blocks-request",
    Message::Blocks { .. } => "blocks",
    Message::CommonBlocksRequest { .. } => "common-blocks-request",
    Message::CommonBlocks { .. } => "common-blocks",
    Message::PeersRequest => "peers-request",
    Message::Peers(_) => "peers",
    Message::HungUp => "hung-up",
    Message::RoundRequest => "round-request",
    Message::Round(_) => "round",
    Message::RoundChanged(_) => "round-changed",
    Message::NetworkStateRequest => "network-state-request",
    Message::NetworkState(_) => "network-state",
    Message::ForgingTransactionsRequest => "forging-transactions-request",
    Message::ForgingTransactions(_) => "forging-transactions",
    Message::Forged(_) => "forged",
    Message::WakeUp => "wake-up",
    Message::RelayFailed { .. } => "relay-failed",
    Message::ChooseTransactions { .. } => "choose-transactions",
    Message::AddTransactions(_) => "add-transactions",
    Message::Broadcast(_) => "broadcast",
    Message::TipMoved { .. } => "tip-moved",
    Message::Reorganised { .. } => "reorganised",
    Message::BlockNotApplied { .. } => "block-not-applied",
    Message::AlreadyForged { .. } => "already-forged",
}

/// The name, if a message has it.
pub(crate) fn named(text: &str) -> Option<&'static str> {
    NAMES.iter().copied().find(|name| *name == text)
}

/// A message as the other process sees it.
pub(crate) fn described(message: &Message) -> Value {
    let ids = |all: &Transactions| json!(all.iter().map(|one| one.id()).collect::<Vec<_>>());
    let mut told = match message {
        Message::Block(block)
        | Message::Body { block, .. }
        | Message::Forged(block)
        | Message::BlockNotApplied { block, .. } => {
            json!({ "block": shown(block) })
        }
        Message::Announcement(id) | Message::BodyRequest { id, .. } => json!({ "id": id }),
        Message::Status { tip } => json!({ "block": shown(tip) }),
        Message::Transactions(all) | Message::Broadcast(all) | Message::ForgingTransactions(all) => {
            json!({ "transactions": ids(all) })
        }
        Message::AddTransactions(added) => json!({ "transactions": ids(&added.transactions) }),
        Message::AlreadyForged { ids, .. } => json!({ "transactions": ids }),
        Message::Blocks { height, blocks, .. } => {
            json!({ "height": height, "blocks": blocks.iter().map(|block| shown(block)).collect::<Vec<_>>() })
        }
        Message::BlocksRequest { above, limit, .. } => json!({ "above": above, "limit": limit }),
        Message::Peers(nodes) => json!({ "nodes": nodes }),
        Message::Round(view) | Message::RoundChanged(view) => {
            json!({ "round": view.round.number(), "height": view.tip_height })
        }
        Message::RelayFailed { error } => json!({ "error": error }),
        _ => json!({}),
    };
    told["type"] = name_of(message).into();
    told
}

/// A block as the other process sees it.
pub(crate) fn shown(block: &Block) -> Value {
    let header = &block.header;
    json!({
        "id": block.id,
        "height": header.height,
        "timestamp": header.timestamp,
        "previous": header.previous,
        "generator": header.generator,
        "transactions": block.transactions.iter().map(|one| one.id()).collect::<Vec<_>>(),
    })
}
