//! One transaction's preconditions and effects. Source: consensus.md 4.3 to 4.5.
//!
//! [`check`] decides whether a sender may send it, from the sender's wallet (the pool passes its own, with pending
//! transactions applied) and the chain's state. [`apply_to_sender`] and `apply` then change wallets; neither can
//! fail once `check` has passed.

mod businesses;
mod delegates;
mod error;
mod htlc;
mod look;

pub use error::ApplyError;
pub use look::Look;

use super::{
    Balance, Rules, State, Wallet,
    rules::{LedgerRules, VoteRule},
    votes::VotedDelegates,
    wallet::{DelegateAttributes, Lock, MultiSignature},
};
use crate::protocol::{
    Address, Asset, Kind, Milestone, PublicKey, SignedTransaction, Timestamp, Vote, crypto::CryptoMode,
    network::Exceptions, transaction::Version,
};
use std::sync::Arc;

/// The rules that judge a transaction, in addition to wallets. The milestone is that of the last applied block: a rule that
/// begins at height H binds from block H+1 on.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    pub milestone: &'a Milestone,
    /// The number of delegates that must be left after a resignation.
    pub delegates: u32,
    pub rules: &'a Rules,
    /// The exceptions that the network tolerates.
    pub exceptions: &'a Exceptions,
    /// Slot length of the network, in seconds.
    pub blocktime: u32,
    /// The network's treatment of signatures.
    pub crypto: CryptoMode,
}

/// Returns true if a type may be used at a milestone. Source: consensus.md 4.4.
pub fn activated(kind: Kind, milestone: &Milestone) -> bool {
    match kind {
        Kind::Transfer | Kind::SecondSignature | Kind::DelegateRegistration | Kind::Vote | Kind::MultiSignature => true,
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

/// Everything a transaction takes from its sender's balance: amount, payments, fee.
pub fn cost(transaction: &SignedTransaction) -> Balance {
    let payments: Balance = match &transaction.transaction().asset {
        Asset::MultiPayment { payments } => payments.iter().map(|payment| Balance::from(payment.amount)).sum(),
        _ => Balance::ZERO,
    };
    payments + transaction.amount() + transaction.transaction().fee
}

/// Every address a transaction pays.
pub fn recipients(transaction: &SignedTransaction) -> Vec<Address> {
    match &transaction.transaction().asset {
        Asset::Transfer { recipient, .. } | Asset::HtlcLock { recipient, .. } => vec![*recipient],
        Asset::MultiPayment { payments } => payments.iter().map(|payment| payment.recipient).collect(),
        _ => Vec::new(),
    }
}

/// Checks that `sender` may send the transaction on top of `state`: first the preconditions of its type, then those of all types, in the
/// reference's order; for claims and refunds the other way round. Accepts a transaction that the network lists as an exception. Source:
/// consensus.md 4.4, 4.5.
pub fn check(
    transaction: &SignedTransaction,
    sender: &Wallet,
    state: &impl Look,
    terms: &Terms<'_>,
) -> Result<(), ApplyError> {
    if terms.exceptions.transactions.contains(&transaction.id()) {
        return Ok(());
    }
    let kind = transaction.transaction().asset.kind();
    match transaction.transaction().version {
        Version::One(_) if terms.milestone.aip11 => return Err(ApplyError::UnsupportedVersion(1)),
        Version::Two(_) if !terms.milestone.aip11 => return Err(ApplyError::UnsupportedVersion(2)),
        _ if !activated(kind, terms.milestone) => return Err(ApplyError::Deactivated(type_name(kind))),
        _ => {}
    }
    if matches!(kind, Kind::HtlcClaim | Kind::HtlcRefund) {
        check_common(transaction, sender, state, terms)?;
        return check_type(transaction, sender, state, terms);
    }
    check_type(transaction, sender, state, terms)?;
    check_common(transaction, sender, state, terms)
}

/// Returns true if the network lists this balance below zero, for this sender after this transaction.
fn is_listed_debt(left: Balance, transaction: &SignedTransaction, sender: &Wallet, exceptions: &Exceptions) -> bool {
    let listed = exceptions.negative_balances.get(transaction.sender());
    let after = sender.nonce.next().0;
    listed.and_then(|by_nonce| by_nonce.get(&after)).is_some_and(|debt| left == Balance(i128::from(*debt)))
}

fn check_type(
    transaction: &SignedTransaction,
    sender: &Wallet,
    state: &impl Look,
    terms: &Terms<'_>,
) -> Result<(), ApplyError> {
    match &transaction.transaction().asset {
        Asset::Transfer { .. } => Ok(()),
        Asset::SecondSignature { .. } => delegates::check_second_key(sender),
        Asset::DelegateRegistration { username } => delegates::check_registration(username, sender, state),
        Asset::Vote(vote) => delegates::check_vote(*vote, sender, state, terms.rules.ledger.votes),
        Asset::MultiSignature { min, public_keys } => {
            delegates::check_multi_signature(transaction, *min, public_keys, state, terms)
        }
        Asset::MultiSignatureLegacy { .. } => Err(ApplyError::LegacyMultiSignature),
        Asset::Ipfs { multihash } if state.has_ipfs(multihash) => Err(ApplyError::IpfsHashAlreadyExists),
        Asset::MultiPayment { .. } if sender.balance < cost(transaction) => Err(ApplyError::InsufficientBalance),
        Asset::Ipfs { .. } | Asset::MultiPayment { .. } => Ok(()),
        Asset::DelegateResignation => delegates::check_resignation(sender, state, terms),
        Asset::HtlcLock { expiration, .. } => htlc::check_lock(*expiration, state, terms),
        Asset::HtlcClaim { lock, unlock_secret } => htlc::check_claim(lock, unlock_secret, state, terms),
        Asset::HtlcRefund { lock } => htlc::check_refund(lock, state),
        asset => businesses::check(asset, sender),
    }
}

fn check_common(
    transaction: &SignedTransaction,
    sender: &Wallet,
    state: &impl Look,
    terms: &Terms<'_>,
) -> Result<(), ApplyError> {
    let content = transaction.transaction();
    if let Version::Two(found) = content.version
        && Some(found.0) != sender.nonce.0.checked_add(1)
    {
        return Err(ApplyError::UnexpectedNonce { found, sender: content.sender, nonce: sender.nonce });
    }
    let left = sender.balance - cost(transaction);
    if left.is_negative() && !is_listed_debt(left, transaction, sender, terms.exceptions) {
        return Err(ApplyError::InsufficientBalance);
    }
    if sender.public_key.is_some_and(|key| key != content.sender) {
        return Err(ApplyError::SenderWalletMismatch);
    }
    let confirmed = state.wallet(&sender.address).and_then(|wallet| wallet.second_public_key);
    match &sender.second_public_key {
        // Only in a pool: the registration of the key is still pending. Source: consensus.md 8 Q20.
        Some(_) if confirmed.is_none() && terms.rules.pool.pending_second_key_blocks_sender => {
            return Err(ApplyError::UnexpectedSecondSignature);
        }
        Some(key) if !transaction.verify_second(key, terms.crypto) => {
            return Err(ApplyError::InvalidSecondSignature);
        }
        None if content.second_signature.is_some() && !terms.milestone.ignore_invalid_second_signature_field => {
            return Err(ApplyError::UnexpectedSecondSignature);
        }
        _ => {}
    }
    let registers = matches!(content.asset, Asset::MultiSignature { .. });
    if registers && !terms.milestone.aip11 {
        return Err(ApplyError::UnexpectedMultiSignature);
    }
    match &sender.multi_signature {
        Some(owners)
            if !matches!(transaction.verify_multi(owners.min, &owners.public_keys, terms.crypto), Ok(true)) =>
        {
            Err(ApplyError::InvalidMultiSignature)
        }
        None if !content.signatures.is_empty() && !registers => Err(ApplyError::UnexpectedMultiSignature),
        _ => Ok(()),
    }
}

/// Applies the sender's part: balance, nonce, and the changes that the type makes in the sender's own wallet. A pool applies only
/// this part of a pending transaction. Source: consensus.md 4.4, 5.
pub fn apply_to_sender(transaction: &SignedTransaction, sender: &mut Wallet, votes: VoteRule) {
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
        Asset::Vote(vote) => votes.cast(*vote, content.network, sender),
        Asset::Ipfs { multihash } => Arc::make_mut(sender.ipfs.get_or_insert_default()).push(multihash.clone()),
        Asset::DelegateResignation => {
            if let Some(delegate) = sender.delegate_mut() {
                delegate.resigned = true;
            }
        }
        asset => businesses::apply(asset, sender),
    }
}

/// Applies the whole transaction: sender, recipients, indexes, vote weights. A lock has the time of its block.
/// Source: consensus.md 4.2, 4.3.
pub(super) fn apply(transaction: &SignedTransaction, block: Timestamp, rules: &LedgerRules, state: &mut State) {
    let (content, address) = (transaction.transaction(), transaction.sender_address());
    let sender = state.wallet_mut(address);
    let (weight, voted) = (sender.weight(), sender.voted_delegates());
    apply_to_sender(transaction, sender, rules.votes);
    let new_weight = sender.weight();
    match &content.asset {
        Asset::Vote(vote) => {
            let kept = match vote {
                // A wallet of one vote has no other before or after.
                _ if rules.votes.most == 1 => VotedDelegates::default(),
                Vote::For(_) => voted.clone(),
                Vote::Against(_) => sender.voted_delegates(),
            };
            state.reweigh(&kept, rules.votes, weight, new_weight);
            let change = match vote {
                Vote::For(_) => rules.votes.weight_of(new_weight),
                Vote::Against(_) => Balance::ZERO - rules.votes.weight_of(weight),
            };
            state.add_vote_weight(vote.delegate().address(content.network), change);
        }
        // The coin of a lock leaves the balance, and stays in the weight.
        Asset::HtlcLock { amount, .. } => state.reweigh(&voted, rules.votes, weight, new_weight + *amount),
        _ => state.reweigh(&voted, rules.votes, weight, new_weight),
    }
    match &content.asset {
        Asset::Transfer { amount, recipient, .. } => credit(state, *recipient, (*amount).into(), rules.votes),
        Asset::MultiPayment { payments } => {
            for payment in payments {
                credit(state, payment.recipient, payment.amount.into(), rules.votes);
            }
        }
        Asset::DelegateRegistration { username } => state.register_delegate(username.as_str().into(), address),
        Asset::DelegateResignation => state.count_resignation(),
        Asset::MultiSignature { min, public_keys } => {
            found_multi_signature(transaction.registers(), *min, public_keys, state);
        }
        Asset::Ipfs { multihash } => state.index_ipfs(multihash, address),
        Asset::BusinessRegistration { .. } => state.index_business(address),
        Asset::HtlcLock { .. } => {
            if let Some(lock) = Lock::of(transaction, block) {
                htlc::lock(transaction.id(), address, lock, state);
            }
        }
        Asset::HtlcClaim { lock, .. } => {
            let weighs_for = rules.claim_weighs_for_claimant.then_some(voted);
            htlc::claim(lock, weighs_for, rules.votes, state);
        }
        Asset::HtlcRefund { lock } => htlc::refund(lock, state),
        _ => {}
    }
}

/// The wallet of the derived key belongs to its participants from now on, and its key is known.
fn found_multi_signature(key: Option<PublicKey>, min: u8, public_keys: &[PublicKey], state: &mut State) {
    if let Some(key) = key {
        let wallet = state.wallet_mut(key.address(state.network_byte()));
        wallet.public_key = Some(key);
        wallet.multi_signature = Some(Arc::new(MultiSignature { min, public_keys: public_keys.to_vec() }));
    }
}

fn credit(state: &mut State, recipient: Address, amount: Balance, votes: VoteRule) {
    let wallet = state.wallet_mut(recipient);
    wallet.balance += amount;
    if wallet.vote.is_some() {
        let (voted, weight) = (wallet.voted_delegates(), wallet.weight());
        state.reweigh(&voted, votes, weight - amount, weight);
    }
}
