//! Registration, votes and resignation of delegates, second keys and multisignature wallets. Source: consensus.md 4.5.

use super::{ApplyError, Terms};
use crate::{
    ledger::{
        Wallet,
        apply::Look,
        rules::{VoteRule, VoteShare},
    },
    protocol::{PublicKey, SignedTransaction, Vote},
};

pub(super) fn check_second_key(sender: &Wallet) -> Result<(), ApplyError> {
    if sender.second_public_key.is_some() {
        return Err(ApplyError::SecondSignatureAlreadyRegistered);
    }
    if sender.multi_signature.is_some() {
        return Err(ApplyError::NotSupportedForMultiSignatureWallet);
    }
    Ok(())
}

pub(super) fn check_registration(username: &str, sender: &Wallet, state: &impl Look) -> Result<(), ApplyError> {
    if sender.multi_signature.is_some() {
        return Err(ApplyError::NotSupportedForMultiSignatureWallet);
    }
    if sender.delegate.is_some() {
        return Err(ApplyError::WalletIsAlreadyDelegate);
    }
    if state.has_username(username) {
        return Err(ApplyError::UsernameAlreadyRegistered(username.to_owned()));
    }
    Ok(())
}

pub(super) fn check_vote(vote: Vote, sender: &Wallet, state: &impl Look, votes: VoteRule) -> Result<(), ApplyError> {
    let target = state.delegate_of(vote.delegate());
    match vote {
        Vote::For(key) if has_voted(&key, sender, votes) => Err(ApplyError::AlreadyVoted),
        Vote::For(_) if votes.most > 1 && sender.votes().count() >= votes.most as usize => {
            Err(ApplyError::TooManyVotes { most: votes.most })
        }
        Vote::For(_) if target.is_some_and(|delegate| delegate.resigned) => Err(ApplyError::VotedForResignedDelegate),
        Vote::Against(_) if sender.vote.is_none() => Err(ApplyError::NoVote),
        Vote::Against(key) if sender.votes().all(|one| one != key) => Err(ApplyError::UnvoteMismatch),
        _ if target.is_none() => Err(ApplyError::VotedForNonDelegate),
        _ => Ok(()),
    }
}

/// Returns true if the wallet may not vote for `key` again. It has cast its only vote, or, with votes of full weight, has voted for this
/// delegate.
fn has_voted(key: &PublicKey, sender: &Wallet, votes: VoteRule) -> bool {
    match (votes.most, votes.weight) {
        (1, _) => sender.vote.is_some(),
        (_, VoteShare::Full) => sender.votes().any(|one| one == *key),
        (_, VoteShare::Unit) => false,
    }
}

pub(super) fn check_resignation(sender: &Wallet, state: &impl Look, terms: &Terms<'_>) -> Result<(), ApplyError> {
    let delegate = sender.delegate.as_ref().ok_or(ApplyError::WalletNotADelegate)?;
    if delegate.resigned {
        return Err(ApplyError::WalletAlreadyResigned);
    }
    if state.live_delegates() <= terms.delegates as usize {
        return Err(ApplyError::NotEnoughDelegates);
    }
    Ok(())
}

pub(super) fn check_multi_signature(
    transaction: &SignedTransaction,
    min: u8,
    keys: &[PublicKey],
    state: &impl Look,
    terms: &Terms<'_>,
) -> Result<(), ApplyError> {
    if min < 1 || usize::from(min) > keys.len() || keys.len() > 16 {
        return Err(ApplyError::MultiSignatureMinimumKeys);
    }
    if keys.len() != transaction.transaction().signatures.len() {
        return Err(ApplyError::MultiSignatureKeyCountMismatch);
    }
    // A key off the curve has no sum, so no signature could ever hold for the wallet.
    let derived = transaction.registers().ok_or(ApplyError::InvalidMultiSignature)?;
    let target = state.wallet(&derived.address(state.network_byte()));
    if target.is_some_and(|wallet| wallet.multi_signature.is_some()) {
        return Err(ApplyError::MultiSignatureAlreadyRegistered);
    }
    let needed = if terms.rules.ledger.registration_checks_only_min { min } else { keys.len() as u8 };
    match transaction.verify_multi(needed, keys, terms.crypto) {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(ApplyError::InvalidMultiSignature),
    }
}
