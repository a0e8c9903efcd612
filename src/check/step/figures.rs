//! A delegate's figures: what it forged, what it missed. Source: consensus.md 1.5, 1.6.

use super::{BlockStep, account::Delegate, equal};
use crate::{ledger::Wallet, protocol::PublicKey};
use std::collections::BTreeMap;

/// Checks that only the forger gains one block, its reward and fees, and the block as its last.
pub(super) fn statistics(step: &BlockStep<'_>) -> Result<(), String> {
    let header = &step.block.header;
    for (key, old, new) in step.delegates_with(&[header.generator]) {
        let forged = key == header.generator;
        let gain = |amount: u64| if forged { i128::from(amount) } else { 0 };
        let name = &new.username;
        equal(format_args!("produced blocks of {name}"), new.blocks, old.blocks + u32::from(forged))?;
        equal(format_args!("forged rewards of {name}"), new.rewards, old.rewards + gain(header.reward.value()))?;
        equal(format_args!("forged fees of {name}"), new.fees, old.fees + gain(header.total_fee.value()))?;
        let last = if forged { Some((step.block.id, header.height.0)) } else { old.last };
        if new.last != last {
            return Err(format!("last block of {name}: found {:?}, expected {last:?}", new.last));
        }
    }
    Ok(())
}

/// Checks that each delegate's count of missed blocks grows by the number of its entries in `expected`.
pub(super) fn missed(step: &BlockStep<'_>, expected: &[PublicKey]) -> Result<(), String> {
    let mut more: BTreeMap<PublicKey, u32> = BTreeMap::new();
    for key in expected {
        *more.entry(*key).or_default() += 1;
    }
    for (key, old, new) in step.delegates_with(expected) {
        let more = more.get(&key).copied().unwrap_or_default();
        equal(format_args!("missed blocks of {}", new.username), new.missed, old.missed + more)?;
    }
    Ok(())
}

impl BlockStep<'_> {
    /// Returns the delegates whose wallets changed and the delegates of `keys`, ascending by key. Each has its figures before the
    /// block (zero, if it is new) and after it.
    pub(super) fn delegates_with(&self, keys: &[PublicKey]) -> Vec<(PublicKey, Delegate, Delegate)> {
        let figures = |wallet: &Wallet| wallet.delegate.as_deref().map(Delegate::of);
        let changed = self
            .changed
            .iter()
            .filter_map(|(new, old)| Some((new.public_key?, old.and_then(figures).unwrap_or_default(), figures(new)?)));
        let mut all: Vec<_> = changed.collect();
        all.sort_unstable_by_key(|(key, ..)| *key);
        let is_changed = |key: &PublicKey| all.binary_search_by_key(key, |(key, ..)| *key).is_ok();
        let same = keys.iter().filter(|key| !is_changed(key)).filter_map(|key| {
            let figures = self.after.delegate_of(key).map(Delegate::of)?;
            Some((*key, figures.clone(), figures))
        });
        let same: Vec<_> = same.collect();
        all.extend(same);
        all.sort_unstable_by_key(|(key, ..)| *key);
        all.dedup_by_key(|(key, ..)| *key);
        all
    }
}
