//! Vote weights: counted anew at the end of a round, and derived from changed wallets within it.

use super::{BlockStep, equal};
use crate::{
    ledger::{
        Balance, Wallet,
        rules::{VoteRule, VoteShare},
    },
    protocol::{PublicKey, hashing::IdHash},
};
use indexmap::IndexMap;

/// The coin that votes for each delegate.
type Weights = IndexMap<PublicKey, i128, IdHash>;

/// Checks vote weights. Within a round they are checked by the changes of voters' wallets. In the last block of a round,
/// and in the first block after genesis, they are checked by all voters.
pub(super) fn weights(step: &BlockStep<'_>) -> Result<(), String> {
    match step.ends_round() || step.before.height().0 == 1 {
        true => all(step),
        false => changed(step),
    }
}

fn all(step: &BlockStep<'_>) -> Result<(), String> {
    let (mut weights, mut delegates) = (Weights::default(), Vec::new());
    let rule = step.tree.rules().ledger.votes;
    for wallet in step.after.wallets() {
        count(&mut weights, wallet, 1, rule);
        delegates.extend(weighed(wallet));
    }
    for (key, username, weight) in delegates {
        let expected = weights.get(&key).copied().unwrap_or_default();
        equal(format_args!("weight of {username}"), weight.0, expected)?;
    }
    Ok(())
}

/// Checks vote weights within a round. The weights before the block were right, so a delegate's weight must grow by the gain of its
/// voters.
fn changed(step: &BlockStep<'_>) -> Result<(), String> {
    let (mut gains, rule) = (Weights::default(), step.tree.rules().ledger.votes);
    for (new, old) in &step.changed {
        count(&mut gains, new, 1, rule);
        old.iter().for_each(|old| count(&mut gains, old, -1, rule));
    }
    for (new, old) in &step.changed {
        let Some((key, username, weight)) = weighed(new) else { continue };
        let before = old.and_then(weighed).map_or(0, |(_, _, weight)| weight.0);
        let gain = gains.swap_remove(&key).unwrap_or_default();
        equal(format_args!("weight of {username}"), weight.0, before + gain)?;
    }
    // Only delegates whose own wallets are unchanged. A vote for an unknown key has no weight.
    for (key, gain) in gains {
        if let Some(delegate) = step.before.delegate_of(&key) {
            let weight = delegate.vote_balance.0;
            equal(format_args!("weight of {}", delegate.username), weight, weight + gain)?;
        }
    }
    Ok(())
}

/// Adds the coin of each of a wallet's votes, locked coin included, to the weight of its delegate, or takes it away.
fn count(weights: &mut Weights, wallet: &Wallet, sign: i128, rule: VoteRule) {
    let mut votes = wallet.votes().peekable();
    if votes.peek().is_none() {
        return;
    }
    let locks = wallet.htlc.iter().flat_map(|htlc| htlc.locks.values());
    let locked: i128 = locks.map(|lock| i128::from(lock.amount.value())).sum();
    let coin = wallet.balance.0 + locked;
    let each = match rule.weight {
        VoteShare::Full => coin,
        // Rounded down, below zero too.
        VoteShare::Unit => (coin - coin.rem_euclid(i128::from(rule.most))) / i128::from(rule.most),
    };
    for key in votes {
        *weights.entry(key).or_default() += sign * each;
    }
}

/// Returns key, username and weight of a delegate's wallet.
fn weighed(wallet: &Wallet) -> Option<(PublicKey, &str, Balance)> {
    let (delegate, key) = wallet.delegate.as_deref().zip(wallet.public_key)?;
    Some((key, &delegate.username, delegate.vote_balance))
}
