//! Vote weights, counted anew.

use super::{Step, equal};
use crate::protocol::PublicKey;
use std::collections::BTreeMap;

pub(super) fn weights(step: &Step<'_>) -> Result<(), String> {
    let state = &step.after.state;
    let mut weights: BTreeMap<PublicKey, i128> = BTreeMap::new();
    for wallet in state.wallets() {
        if let Some(key) = wallet.vote {
            let locks = wallet.htlc.iter().flat_map(|htlc| htlc.locks.values());
            let locked: i128 = locks.map(|lock| i128::from(lock.amount.value())).sum();
            *weights.entry(key).or_default() += wallet.balance.0 + locked;
        }
    }
    for wallet in state.delegates() {
        let Some((delegate, key)) = wallet.delegate.as_deref().zip(wallet.public_key) else { continue };
        let expected = weights.get(&key).copied().unwrap_or_default();
        equal(format_args!("weight of {}", delegate.username), delegate.vote_balance.0, expected)?;
    }
    Ok(())
}
