//! Network presets, exceptions, and a network directory. Source: protocol.md 5.3, 5.4.
//!
//! A [`NetworkConfig`] is everything that distinguishes one network from another. It provides the contexts in which
//! transactions and blocks are read.

mod exceptions;
mod load;
mod presets;

pub use exceptions::Exceptions;
pub use load::NetworkError;

use super::{
    Block, Height, Milestones, TransactionId,
    block::BlockContext,
    crypto::CryptoMode,
    slots::Slots,
    transaction::{Dialect, TransactionContext},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Everything that distinguishes one network from another.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// The names and numbers of the network.
    pub network: Network,
    /// The parameters by height.
    pub milestones: Milestones,
    /// The old blocks and transactions that are valid although they break a rule.
    pub exceptions: Exceptions,
    /// The genesis block, and beside it its JSON as the file has it (the API shows that).
    pub genesis: Genesis,
    /// The treatment of all signatures in this network.
    pub crypto: CryptoMode,
}

/// `network.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// The name, such as `testnet`. On a network named `devnet`, transactions do not expire while a milestone says so.
    pub name: String,
    /// The `messagePrefix` of `network.json`. Neither the protocol nor a signed message uses it.
    pub message_prefix: String,
    /// The version bytes of an extended public key (BIP32). The protocol does not use them.
    pub bip32_public: u32,
    /// The version bytes of an extended private key (BIP32). The protocol does not use them.
    pub bip32_private: u32,
    /// The first byte of every address.
    pub pub_key_hash: u8,
    /// The payload hash of the genesis block in hex, 64 digits. Nodes and clients know the network by it.
    pub nethash: String,
    /// The version byte of private keys in wallet import format.
    pub wif: u8,
    /// The coin type of HD wallets (SLIP-0044): 111 for ARK, 1 for test networks. The protocol does not use it.
    pub slip44: u32,
    /// The account number in the paths of HD wallets, `m/44'/111'/{aip20 or 1}'`. The protocol does not use it.
    pub aip20: u32,
    /// The ticker of the coin, such as `ARK`.
    pub token: String,
    /// The symbol of the coin, such as `Ѧ`.
    pub symbol: String,
    /// The URL of the block explorer.
    pub explorer: String,
}

/// The genesis block of a network.
#[derive(Clone, Debug)]
pub struct Genesis {
    /// The decoded block.
    pub block: Block,
    /// The block as its file has it.
    pub json: Value,
    pub(super) ids: BTreeSet<TransactionId>,
}

impl NetworkConfig {
    /// Slot arithmetic of this network.
    pub fn slots(&self) -> Slots {
        let first = self.milestones.at(Height::GENESIS);
        Slots::new(first.blocktime, self.milestones.epoch_ms())
    }

    /// The context in which to read a transaction while the last applied block has this height.
    pub fn transaction_context(&self, last_block: Height) -> TransactionContext<'_> {
        TransactionContext {
            network: self.network.pub_key_hash,
            milestone: self.milestones.at(last_block),
            genesis_ids: self.genesis_ids(),
            exceptions: &self.exceptions,
            dialect: Dialect::Strict,
        }
    }

    /// The context in which to read and verify blocks.
    pub fn block_context(&self) -> BlockContext<'_> {
        BlockContext {
            network: self.network.pub_key_hash,
            milestones: &self.milestones,
            genesis_ids: self.genesis_ids(),
            exceptions: &self.exceptions,
            dialect: Dialect::Strict,
            crypto: self.crypto,
        }
    }

    /// The ids of the genesis transactions: the only ones that may carry no fee.
    pub fn genesis_ids(&self) -> &BTreeSet<TransactionId> {
        self.genesis.ids()
    }
}

impl Network {
    /// Returns the network in the form of `network.json`.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "messagePrefix": self.message_prefix,
            "bip32": { "public": self.bip32_public, "private": self.bip32_private },
            "pubKeyHash": self.pub_key_hash,
            "nethash": self.nethash,
            "wif": self.wif,
            "slip44": self.slip44,
            "aip20": self.aip20,
            "client": { "token": self.token, "symbol": self.symbol, "explorer": self.explorer },
        })
    }
}
