//! Vote weights, counted anew.

use super::{Step, equal};
use crate::protocol::{PublicKey, hashing::IdHash};
use indexmap::IndexMap;

pub(super) fn weights(step: &Step<'_>) -> Result<(), String> {
    let state = &step.after.state;
    let mut weights: IndexMap<PublicKey, i128, IdHash> = IndexMap::default();
    for wallet in state.wallets() {
        if let Some(key) = wallet.vote {
            let locks = wallet.htlc.iter().flat_map(|htlc| htlc.locks.values());
            let locked: i128 = locks.map(|lock| i128::from(lock.amount.value())).sum();
            *weights.entry(key).or_default() += wallet.balance.0 + locked;
        }
    }
    for wallet in state.wallets() {
        let Some((delegate, key)) = wallet.delegate.as_deref().zip(wallet.public_key) else { continue };
        let expected = weights.get(&key).copied().unwrap_or_default();
        equal(format_args!("weight of {}", delegate.username), delegate.vote_balance.0, expected)?;
    }
    Ok(())
}
