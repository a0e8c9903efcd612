//! Wallets and delegates of one head in their default orders. Each order is computed once, on first use.

use crate::ledger::{State, Wallet};
use std::{
    cmp::Reverse,
    sync::{Arc, OnceLock},
};

/// The orders of one state. Every call must pass that state.
#[derive(Debug, Default)]
pub struct Lists {
    wallets: OnceLock<Vec<Arc<Wallet>>>,
    delegates: OnceLock<Vec<Arc<Wallet>>>,
}

impl Lists {
    /// All wallets, richest first, then by first appearance.
    pub fn wallets(&self, state: &State) -> &[Arc<Wallet>] {
        self.wallets.get_or_init(|| {
            let mut wallets: Vec<_> = state.wallets().cloned().collect();
            wallets.sort_unstable_by_key(|wallet| (Reverse(wallet.balance), wallet.first_seen));
            wallets
        })
    }

    /// All delegates by rank, then by registration. Delegates without a rank come last.
    pub fn delegates(&self, state: &State) -> &[Arc<Wallet>] {
        self.delegates.get_or_init(|| {
            let place = |wallet: &Wallet| {
                wallet.delegate.as_ref().map(|delegate| (delegate.rank.unwrap_or(u32::MAX), delegate.registered))
            };
            let mut delegates: Vec<_> = state.delegates().cloned().collect();
            delegates.sort_unstable_by_key(|wallet| place(wallet));
            delegates
        })
    }
}
