//! One transaction's preconditions and effects. Source: consensus.md 4.3-4.5.
//!
//! [`check`] answers whether a sender may do it, from the sender's wallet (the pool hands in its own, with pending
//! transactions applied) and the chain's state. [`apply_to_sender`] and [`apply`] then change wallets; neither can
//! fail once `check` has passed.

use super::{Balance, State, Wallet, wallet::DelegateAttributes};
use crate::protocol::{
    Address, Asset, Milestone, Nonce, PublicKey, SignedTransaction,
    transaction::{Kind, Version, Vote},
};
use std::sync::Arc;

/// Why a transaction cannot be applied. The messages are the reference's. Source: consensus.md 4.4, 4.5.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[rustfmt::skip]
pub enum ApplyError {
    #[error("Transaction type {0} is deactivated.")]
    Deactivated(String),
    #[error("Insufficient balance in database wallet. Wallet is not allowed to spend before funding is confirmed.")]
    ColdWallet,
    #[error("Cannot apply a transaction with nonce {found}: the sender {sender} has nonce {nonce}.")]
    UnexpectedNonce { found: Nonce, sender: PublicKey, nonce: Nonce },
    #[error("Insufficient balance in the wallet.")]
    InsufficientBalance,
    #[error("Failed to apply transaction, because the public key does not match the wallet.")]
    SenderWalletMismatch,
    #[error("Failed to apply transaction, because wallet does not allow second signatures.")]
    UnexpectedSecondSignature,
    #[error("Failed to apply transaction, because the second signature could not be verified.")]
    InvalidSecondSignature,
    #[error("Failed to apply transaction, because multi signatures are currently not supported.")]
    UnexpectedMultiSignature,
    #[error("Failed to apply transaction, because second signature is already enabled.")]
    SecondSignatureAlreadyRegistered,
    #[error("Failed to apply transaction, because the wallet is not a delegate.")]
    WalletNotADelegate,
    #[error("Failed to apply transaction, because the wallet already has a registered username.")]
    WalletIsAlreadyDelegate,
    #[error("Failed to apply transaction, because the username '{0}' is already registered.")]
    UsernameAlreadyRegistered(String),
    #[error("Failed to apply transaction, because the sender wallet has already voted.")]
    AlreadyVoted,
    #[error("Failed to apply transaction, because it votes for a resigned delegate.")]
    VotedForResignedDelegate,
    #[error("Failed to apply transaction, because the wallet has not voted.")]
    NoVote,
    #[error("Failed to apply transaction, because the wallet vote does not match.")]
    UnvoteMismatch,
    #[error("Failed to apply transaction, because only delegates can be voted.")]
    VotedForNonDelegate,
    #[error("Failed to apply transaction, because the wallet already resigned as delegate.")]
    WalletAlreadyResigned,
    #[error("Failed to apply transaction, because not enough delegates to allow resignation.")]
    NotEnoughDelegates,
}

/// Whether this ledger applies a type yet. The others answer as a deactivated type does.
fn supported(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Transfer
            | Kind::SecondSignature
            | Kind::DelegateRegistration
            | Kind::Vote
            | Kind::MultiPayment
            | Kind::DelegateResignation
    )
}

/// Whether a type may be used at a milestone. Source: consensus.md 4.4.
pub fn activated(kind: Kind, milestone: &Milestone) -> bool {
    supported(kind)
        && match kind {
            Kind::Transfer | Kind::SecondSignature | Kind::DelegateRegistration | Kind::Vote => true,
            Kind::HtlcLock | Kind::HtlcClaim | Kind::HtlcRefund => milestone.aip11 && milestone.htlc_enabled,
            _ => milestone.aip11,
        }
}

/// `Core/7` or `2/3`, as the reference prints a type.
pub fn type_name(kind: Kind) -> String {
    match kind.numbers() {
        (1, number) => format!("Core/{number}"),
        (group, number) => format!("{group}/{number}"),
    }
}

/// Everything a transaction takes from its sender: amount, payments, fee.
pub fn cost(transaction: &SignedTransaction) -> Balance {
    Balance::from(transaction.amount()) + payments(transaction) + transaction.transaction().fee
}

/// The sum of a multipayment, 0 for all other types.
fn payments(transaction: &SignedTransaction) -> Balance {
    match &transaction.transaction().asset {
        Asset::MultiPayment { payments } => payments.iter().map(|payment| Balance::from(payment.amount)).sum(),
        _ => Balance::ZERO,
    }
}

/// Whether `sender` may send the transaction on top of `state`: first what its type demands, then what all demand, in
/// the reference's order. Source: consensus.md 4.4, 4.5.
///
/// `milestone` is that of the last applied block: a rule that begins at height H binds from block H+1 on.
pub fn check(
    transaction: &SignedTransaction,
    sender: &Wallet,
    state: &State,
    milestone: &Milestone,
) -> Result<(), ApplyError> {
    let kind = transaction.transaction().asset.kind();
    if !activated(kind, milestone) {
        return Err(ApplyError::Deactivated(type_name(kind)));
    }
    check_type(transaction, sender, state)?;
    check_common(transaction, sender)
}

fn check_type(transaction: &SignedTransaction, sender: &Wallet, state: &State) -> Result<(), ApplyError> {
    match &transaction.transaction().asset {
        Asset::SecondSignature { .. } if sender.second_public_key.is_some() => {
            Err(ApplyError::SecondSignatureAlreadyRegistered)
        }
        Asset::DelegateRegistration { .. } if sender.delegate.is_some() => Err(ApplyError::WalletIsAlreadyDelegate),
        Asset::DelegateRegistration { username } if state.address_of(username).is_some() => {
            Err(ApplyError::UsernameAlreadyRegistered(username.clone()))
        }
        Asset::Vote(vote) => check_vote(*vote, sender, state),
        Asset::MultiPayment { .. } if sender.balance < cost(transaction) => Err(ApplyError::InsufficientBalance),
        Asset::DelegateResignation => check_resignation(sender, state),
        _ => Ok(()),
    }
}

fn check_vote(vote: Vote, sender: &Wallet, state: &State) -> Result<(), ApplyError> {
    let (Vote::For(key) | Vote::Against(key)) = vote;
    let target = state.delegate_of(&key);
    match vote {
        Vote::For(_) if sender.vote.is_some() => Err(ApplyError::AlreadyVoted),
        Vote::For(_) if target.is_some_and(|delegate| delegate.resigned) => Err(ApplyError::VotedForResignedDelegate),
        Vote::Against(_) if sender.vote.is_none() => Err(ApplyError::NoVote),
        Vote::Against(_) if sender.vote != Some(key) => Err(ApplyError::UnvoteMismatch),
        _ if target.is_none() => Err(ApplyError::VotedForNonDelegate),
        _ => Ok(()),
    }
}

fn check_resignation(sender: &Wallet, state: &State) -> Result<(), ApplyError> {
    let delegate = sender.delegate.as_ref().ok_or(ApplyError::WalletNotADelegate)?;
    if delegate.resigned {
        return Err(ApplyError::WalletAlreadyResigned);
    }
    if state.live_delegates() <= state.round().position.delegates as usize {
        return Err(ApplyError::NotEnoughDelegates);
    }
    Ok(())
}

fn check_common(transaction: &SignedTransaction, sender: &Wallet) -> Result<(), ApplyError> {
    let content = transaction.transaction();
    if let Version::Two(found) = content.version
        && found.0 != sender.nonce.0 + 1
    {
        return Err(ApplyError::UnexpectedNonce { found, sender: content.sender, nonce: sender.nonce });
    }
    if (sender.balance - cost(transaction)).is_negative() {
        return Err(ApplyError::InsufficientBalance);
    }
    if sender.public_key.is_some_and(|key| key != content.sender) {
        return Err(ApplyError::SenderWalletMismatch);
    }
    match &sender.second_public_key {
        Some(key) if !transaction.verify_second(key) => return Err(ApplyError::InvalidSecondSignature),
        None if content.second_signature.is_some() => return Err(ApplyError::UnexpectedSecondSignature),
        _ => {}
    }
    if !content.signatures.is_empty() {
        return Err(ApplyError::UnexpectedMultiSignature);
    }
    Ok(())
}

/// The sender's part: balance, nonce, and what the type changes in the sender's own wallet. This is all a pool
/// applies of a pending transaction. Source: consensus.md 4.4, 5.
pub fn apply_to_sender(transaction: &SignedTransaction, sender: &mut Wallet) {
    let content = transaction.transaction();
    sender.public_key = Some(content.sender);
    sender.balance -= cost(transaction);
    sender.nonce = match content.version {
        Version::One(_) => sender.nonce.next(),
        Version::Two(nonce) => nonce,
    };
    match &content.asset {
        Asset::SecondSignature { public_key } => sender.second_public_key = Some(*public_key),
        Asset::DelegateRegistration { username } => {
            sender.delegate = Some(Arc::new(DelegateAttributes::new(username.as_str().into())));
        }
        Asset::Vote(Vote::For(key)) => sender.vote = Some(*key),
        Asset::Vote(Vote::Against(_)) => sender.vote = None,
        Asset::DelegateResignation => {
            if let Some(delegate) = sender.delegate_mut() {
                delegate.resigned = true;
            }
        }
        _ => {}
    }
}

/// The whole transaction: sender, recipients, indexes, vote weights. Source: consensus.md 4.2, 4.3.
pub(super) fn apply(transaction: &SignedTransaction, state: &mut State) {
    let content = transaction.transaction();
    let sender = state.wallet_mut(transaction.sender_address());
    let (weight, vote) = (sender.weight(), sender.vote);
    apply_to_sender(transaction, sender);
    let weight_left = sender.weight();
    match content.asset {
        Asset::Vote(Vote::For(key)) => state.add_vote_weight(&key, weight_left),
        Asset::Vote(Vote::Against(key)) => state.add_vote_weight(&key, Balance::ZERO - weight),
        _ => {
            if let Some(key) = vote {
                state.add_vote_weight(&key, weight_left - weight);
            }
        }
    }
    match &content.asset {
        Asset::Transfer { amount, recipient, .. } => credit(state, *recipient, (*amount).into()),
        Asset::MultiPayment { payments } => {
            for payment in payments {
                credit(state, payment.recipient, payment.amount.into());
            }
        }
        Asset::DelegateRegistration { username } => {
            state.register_delegate(username.as_str().into(), transaction.sender_address());
        }
        Asset::DelegateResignation => state.count_resignation(),
        // The target's key is known from now on: it registered, so it was known already.
        _ => {}
    }
}

fn credit(state: &mut State, recipient: Address, amount: Balance) {
    let wallet = state.wallet_mut(recipient);
    wallet.balance += amount;
    if let Some(key) = wallet.vote {
        state.add_vote_weight(&key, amount);
    }
}

/// Every address a transaction pays.
pub fn recipients(transaction: &SignedTransaction) -> Vec<Address> {
    match &transaction.transaction().asset {
        Asset::Transfer { recipient, .. } | Asset::HtlcLock { recipient, .. } => vec![*recipient],
        Asset::MultiPayment { payments } => payments.iter().map(|payment| payment.recipient).collect(),
        _ => Vec::new(),
    }
}
