//! Network presets, exceptions, and a network directory. Source: protocol.md 5.3, 5.4.

use super::{Block, Milestones, slots::Slots};
use serde_json::Value;

/// Everything that distinguishes one network from another.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    pub network: Network,
    pub milestones: Milestones,
    pub exceptions: Exceptions,
    /// The genesis block, and beside it its JSON as the file has it (the API shows that).
    pub genesis: Genesis,
}

/// `network.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub name: String,
    pub message_prefix: String,
    pub bip32_public: u32,
    pub bip32_private: u32,
    /// The first byte of every address.
    pub pub_key_hash: u8,
    pub nethash: String,
    pub wif: u8,
    pub slip44: u32,
    pub aip20: u32,
    pub token: String,
    pub symbol: String,
    pub explorer: String,
}

/// `exceptions.json`; empty on testnet and unitnet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exceptions {
    pub json: Value,
}

#[derive(Clone, Debug)]
pub struct Genesis {
    pub block: Block,
    pub json: Value,
}

impl NetworkConfig {
    /// Slot arithmetic of this network.
    pub fn slots(&self) -> Slots {
        todo!()
    }
}
