//! The view, head and dialect that one answer is read from.

use super::dialect::Dialect;
use crate::{
    api::view::{Head, View},
    ledger::{State, Wallet},
    protocol::{Address, Height, PublicKey},
};
use std::sync::Arc;

/// The view, head and dialect that one answer is read from.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'f> {
    pub view: &'f View,
    pub head: &'f Head,
    pub dialect: Dialect,
}

impl<'f> Frame<'f> {
    /// Wallets, delegates and rounds after the newest block.
    pub fn state(&self) -> &'f State {
        self.head.state()
    }

    /// The address of a key on this network.
    pub fn address(&self, key: &PublicKey) -> Address {
        key.address(self.state().network_byte())
    }

    /// Blocks on top of a height.
    pub fn blocks_above(&self, height: Height) -> u32 {
        self.head.height().0.saturating_sub(height.0)
    }

    /// The wallet that an address, a public key or a username names, in this order; all three are well-formed texts.
    pub fn find_wallet(&self, id: &str) -> Option<&'f Arc<Wallet>> {
        if let Some(wallet) = id.parse().ok().and_then(|address: Address| self.state().wallet(&address)) {
            return Some(wallet);
        }
        if let Ok(key) = id.parse::<PublicKey>() {
            return self.state().wallet(&self.address(&key)).filter(|wallet| wallet.public_key == Some(key));
        }
        self.state().wallet_by_username(id)
    }
}
