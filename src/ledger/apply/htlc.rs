//! Hashed-timelock locks, claims and refunds. Source: consensus.md 4.5.

use super::{ApplyError, Look, Terms, credit};
use crate::{
    ledger::{Balance, State, rules::VoteRule, votes::VotedDelegates, wallet::Lock},
    protocol::{Address, TransactionId, crypto::sha256, transaction::Expiration},
};

/// A lock must outlast a round, or its recipient could hardly claim it.
pub(super) fn check_lock(expiration: Expiration, state: &impl Look, terms: &Terms<'_>) -> Result<(), ApplyError> {
    // Without a minimum, it must at least not be over already.
    let round = if terms.rules.ledger.minimum_lock_expiration { terms.milestone.active_delegates } else { 0 };
    let too_short = match expiration {
        Expiration::EpochTime(seconds) => {
            u64::from(seconds) <= u64::from(state.timestamp().0) + u64::from(terms.blocktime) * u64::from(round)
        }
        Expiration::BlockHeight(height) => u64::from(height) <= u64::from(state.height().0) + u64::from(round),
    };
    if too_short { Err(ApplyError::HtlcLockExpired) } else { Ok(()) }
}

pub(super) fn check_claim(
    id: &TransactionId,
    secret: &[u8; 32],
    state: &impl Look,
    terms: &Terms<'_>,
) -> Result<(), ApplyError> {
    let lock = state.lock(id).ok_or(match terms.rules.ledger.unknown_lock_is_type_error {
        true => ApplyError::TypeError("Cannot read property 'getAttribute' of undefined"),
        false => ApplyError::HtlcLockNotFound,
    })?;
    if lock.is_expired(state.height(), state.timestamp()) {
        return Err(ApplyError::HtlcLockExpired);
    }
    if sha256(secret) != lock.secret_hash {
        return Err(ApplyError::HtlcSecretHashMismatch);
    }
    Ok(())
}

pub(super) fn check_refund(id: &TransactionId, state: &impl Look) -> Result<(), ApplyError> {
    let lock = state.lock(id).ok_or(ApplyError::HtlcLockNotFound)?;
    if lock.is_expired(state.height(), state.timestamp()) { Ok(()) } else { Err(ApplyError::HtlcLockNotExpired) }
}

/// The locked coin stays with its owner, and in the weight of the owner's delegate, until it is claimed.
pub(super) fn lock(id: TransactionId, owner: Address, lock: Lock, state: &mut State) {
    let wallet = state.wallet_mut(owner);
    let htlc = wallet.htlc_mut();
    htlc.locked_balance += lock.amount;
    htlc.locks.insert(id, lock);
    state.index_lock(id, owner);
}

/// Credits the recipient with the coin and its vote weight. By a quirk the weight goes to `weighs_for` instead, the delegates that the
/// claim's sender votes for, if those are given.
pub(super) fn claim(id: &TransactionId, weighs_for: Option<VotedDelegates>, votes: VoteRule, state: &mut State) {
    if let Some((owner, lock)) = open(id, state) {
        if let Some(wallet) = state.wallet(&owner) {
            let (voted, weight) = (wallet.voted_delegates(), wallet.weight());
            state.reweigh(&voted, votes, weight + lock.amount, weight);
        }
        match weighs_for {
            None => credit(state, lock.recipient, lock.amount.into(), votes),
            Some(voted) => {
                state.wallet_mut(lock.recipient).balance += lock.amount;
                state.reweigh(&voted, votes, Balance::ZERO, lock.amount.into());
            }
        }
    }
}

/// The owner gets the coin back; its weight never left.
pub(super) fn refund(id: &TransactionId, state: &mut State) {
    if let Some((owner, lock)) = open(id, state) {
        state.wallet_mut(owner).balance += lock.amount;
    }
}

/// Removes a lock from its owner's wallet.
fn open(id: &TransactionId, state: &mut State) -> Option<(Address, Lock)> {
    let owner = state.forget_lock(id)?;
    let htlc = state.wallet_mut(owner).htlc_mut();
    let lock = htlc.locks.remove(id)?;
    htlc.locked_balance -= lock.amount;
    Some((owner, lock))
}
