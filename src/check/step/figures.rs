//! A delegate's figures: what it forged, what it missed. Source: consensus.md 1.5, 1.6.

use super::{BlockStep, account::Delegate, equal};
use crate::protocol::PublicKey;
use std::collections::BTreeMap;

/// Checks that only the forger gains one block, its reward and fees, and the block as its last.
pub(super) fn statistics(step: &BlockStep<'_>) -> Result<(), String> {
    let header = &step.block.header;
    for (key, old, new) in step.delegates_with(&[header.generator]) {
        let forged = key == header.generator;
        let gain = |amount: u64| if forged { i128::from(amount) } else { 0 };
        let of = |what: &str| format!("{what} of {}", new.username);
        equal(of("produced blocks"), new.blocks, old.blocks + u32::from(forged))?;
        equal(of("forged rewards"), new.rewards, old.rewards + gain(header.reward.value()))?;
        equal(of("forged fees"), new.fees, old.fees + gain(header.total_fee.value()))?;
        let last = if forged { Some((step.block.id.to_string(), header.height.0)) } else { old.last };
        if new.last != last {
            return Err(format!("{}: found {:?}, expected {last:?}", of("last block"), new.last));
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
    /// The delegates whose wallets changed, and these, each with what it was before (nothing, if it is new) and is now.
    pub(super) fn delegates_with(&self, keys: &[PublicKey]) -> Vec<(PublicKey, Delegate, Delegate)> {
        let mut all: Vec<PublicKey> = keys.to_vec();
        let changed = self.changed.iter().filter(|(wallet, _)| wallet.delegate.is_some());
        all.extend(changed.filter_map(|(wallet, _)| wallet.public_key));
        all.sort_unstable();
        all.dedup();
        let both = |key: PublicKey| {
            let new = self.after.delegate_of(&key).map(Delegate::of)?;
            let old = self.before.delegate_of(&key).map(Delegate::of).unwrap_or_default();
            Some((key, old, new))
        };
        all.into_iter().filter_map(both).collect()
    }
}
