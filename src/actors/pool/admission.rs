//! Admission to a pool: the checks in the reference's order, and the answers. Source: consensus.md 5.1 to 5.4.
//!
//! The steps are the rows of consensus.md 5.1. The first step that fails gives the answer. A transaction that comes twice in a request
//! counts once.
//!
//! 1. Steps 1 and 2: neither seen since the last block nor pending.
//! 2. Step 3: the sender has room, or the transaction is in excess, which is no error.
//! 3. Steps 4 to 6: its time has come and has not passed, and it is of this network.
//! 4. Steps 7 and 8: its type is in force, and the pool's rule for the type holds.
//! 5. Steps 9 to 11: its schema, its size, its signatures. One that is too large ends the request (Q16).
//! 6. Step 12: its fee lets it enter the pool, be relayed, or both.
//! 7. Only when all of a request have been checked (Q15) are they added, each unless it is on the chain (step 13).
//! 8. To add one (step 14), a full pool first evicts its cheapest transaction, if that is cheaper, even if the new one then fails.
//!    Then the new one is checked against its sender's wallet with all pending transactions applied, and applied to that wallet.

use super::{PAYLOAD_MARGIN, PoolError, PoolRejection, Submission, TransactionPool};
use crate::{
    actors::{Effect, Event},
    ledger::{
        ApplyError, Balance, BlockTree, Wallet,
        apply::{self, Look},
        state::Applied,
    },
    protocol::{
        Asset, SignedTransaction, TransactionId,
        transaction::{Kind, Pending, Version},
    },
};
use std::{collections::BTreeSet, sync::Arc};

/// The decision to admit a checked transaction, to relay it, or both: two independent minimum fees. Source: consensus.md 5.3.
#[derive(Clone, Copy)]
pub(super) struct FeeVerdict {
    pub enter: bool,
    pub broadcast: bool,
}

/// The result of the checks before adding.
pub(super) enum CheckOutcome {
    Passed(FeeVerdict),
    /// Over its sender's quota.
    Excess,
}

/// The outcome of the transactions that were to be added. The events report it once per request.
#[derive(Default)]
pub(super) struct Additions {
    pub added: Vec<Arc<SignedTransaction>>,
    pub rejected: Vec<PoolRejection>,
}

impl Additions {
    /// `transaction.pool.added` and `transaction.pool.rejected`. Source: consensus.md 5.8.
    pub(super) fn announce(self, effects: &mut Vec<Effect>) {
        if !self.added.is_empty() {
            effects.push(Effect::Observe(Event::PoolAdded(self.added)));
        }
        if !self.rejected.is_empty() {
            effects.push(Effect::Observe(Event::PoolRejected(self.rejected)));
        }
    }
}

impl TransactionPool {
    /// Checks all, then adds those that passed; or, where the rules say so, checks and adds one after the other.
    /// Source: consensus.md 5.1, 8 Q15, 8 Q16.
    pub(super) fn submit(&mut self, transactions: &[Arc<SignedTransaction>], effects: &mut Vec<Effect>) -> Submission {
        let (tree, applied) = (self.tree.clone(), self.tree.applied(&self.tip));
        let rules = &tree.rules().pool;
        let (mut submission, mut additions) = (Submission::default(), Additions::default());
        let mut passed: Vec<(&Arc<SignedTransaction>, FeeVerdict)> = Vec::new();
        let mut seen = BTreeSet::new();
        let usernames = repeated_usernames(transactions);
        let is_first = |transaction: &&Arc<SignedTransaction>| transactions.len() == 1 || seen.insert(transaction.id());
        for transaction in transactions.iter().filter(is_first) {
            let id = transaction.id();
            match self.check(transaction, &usernames, &tree, &applied) {
                Ok(CheckOutcome::Excess) => submission.excess.push(id),
                Ok(CheckOutcome::Passed(verdict)) if rules.checks_precede_adding => passed.push((transaction, verdict)),
                Ok(CheckOutcome::Passed(_)) if self.is_forged(transaction, &mut submission) => {}
                Ok(CheckOutcome::Passed(verdict)) => {
                    self.add(transaction, verdict, &applied, &mut submission, &mut additions, effects);
                }
                Err(error) => {
                    let ends = matches!(error, PoolError::TooLarge { .. }) && rules.too_large_ends_request;
                    submission.errors.push((id, error));
                    if ends {
                        break;
                    }
                }
            }
        }
        passed.retain(|(transaction, _)| !self.is_forged(transaction, &mut submission));
        for (transaction, verdict) in passed {
            self.add(transaction, verdict, &applied, &mut submission, &mut additions, effects);
        }
        additions.announce(effects);
        submission
    }

    /// Step 13.
    fn is_forged(&self, transaction: &SignedTransaction, submission: &mut Submission) -> bool {
        let forged = self.tree.holds(&self.tip, transaction);
        if forged {
            submission.errors.push((transaction.id(), PoolError::AlreadyForged));
        }
        forged
    }

    /// Step 14.
    fn add(
        &mut self,
        transaction: &Arc<SignedTransaction>,
        verdict: FeeVerdict,
        applied: &Applied,
        submission: &mut Submission,
        additions: &mut Additions,
        effects: &mut Vec<Effect>,
    ) {
        let id = transaction.id();
        let outcome = match verdict.enter {
            true => self.make_room_and_admit(transaction, applied, additions, effects),
            false => Ok(()),
        };
        if verdict.broadcast && matches!(outcome, Ok(()) | Err(PoolError::PoolFull { .. })) {
            submission.broadcast.push(id);
        }
        match outcome {
            Ok(()) if verdict.enter => submission.accept.push(id),
            Ok(()) => {}
            Err(error) => submission.errors.push((id, error)),
        }
    }

    /// Steps 1 to 12.
    fn check(
        &mut self,
        transaction: &SignedTransaction,
        repeated: &BTreeSet<&str>,
        tree: &BlockTree,
        applied: &Applied,
    ) -> Result<CheckOutcome, PoolError> {
        let (id, rules) = (transaction.id(), &tree.rules().pool);
        if rules.recent_ids > 0 && self.recent.seen(id, rules.recent_ids) {
            return Err(PoolError::InCache);
        }
        self.check_unseen(transaction, repeated, tree, applied)
    }

    /// Steps 2 to 12.
    pub(super) fn check_unseen(
        &self,
        transaction: &SignedTransaction,
        repeated: &BTreeSet<&str>,
        tree: &BlockTree,
        applied: &Applied,
    ) -> Result<CheckOutcome, PoolError> {
        let (id, rules) = (transaction.id(), &tree.rules().pool);
        if self.store.contains(&id) {
            return Err(PoolError::Duplicate(id));
        }
        let own = self.store.count_of(&transaction.sender_address());
        if own >= rules.max_transactions_per_sender && !rules.allowed_senders.contains(transaction.sender()) {
            return Ok(CheckOutcome::Excess);
        }
        self.check_time(transaction)?;
        if transaction.transaction().network != tree.config().network.pub_key_hash {
            return Err(PoolError::WrongNetwork(transaction.transaction().network));
        }
        self.check_type(transaction, repeated, applied)?;
        let context = tree.transaction_context(self.tip.height());
        transaction.check(&context).map_err(|error| PoolError::Schema(error.reference_text()))?;
        let limit = context.milestone.block.max_payload.saturating_sub(PAYLOAD_MARGIN);
        if transaction.size() > limit {
            return Err(PoolError::TooLarge { id, limit });
        }
        let crypto = tree.config().crypto;
        if !transaction.verified(crypto) && !applied.state.vouches_for(transaction, crypto) {
            return Err(PoolError::NotVerified);
        }
        self.check_fee(transaction).map(CheckOutcome::Passed)
    }

    /// Steps 4 and 5.
    fn check_time(&self, transaction: &SignedTransaction) -> Result<(), PoolError> {
        let id = transaction.id();
        if let Version::One(timestamp) = transaction.transaction().version {
            PoolError::check_timestamp(id, timestamp, self.now.seconds())?;
        }
        let height = i64::from(self.tip.height().0);
        match self.expires_at(transaction) {
            Some(expiry) if expiry <= height + 1 => Err(PoolError::Expired { id, blocks: height - expiry }),
            _ => Ok(()),
        }
    }

    /// Steps 7 and 8. Source: consensus.md 5.2.
    fn check_type(
        &self,
        transaction: &SignedTransaction,
        repeated: &BTreeSet<&str>,
        applied: &Applied,
    ) -> Result<(), PoolError> {
        let content = transaction.transaction();
        let kind = content.asset.kind();
        let milestone = self.tree.milestone_after(self.tip.height());
        match content.version {
            _ if !apply::activated(kind, milestone) => return Err(PoolError::Deactivated(apply::type_name(kind))),
            Version::One(_) if milestone.aip11 => return Err(PoolError::UnsupportedVersion(1)),
            Version::Two(_) if !milestone.aip11 => return Err(PoolError::UnsupportedVersion(2)),
            _ => {}
        }
        self.check_pending(transaction)?;
        self.check_asset(transaction, repeated, applied)
    }

    /// Checks the number of pending transactions of this type that a sender may have.
    fn check_pending(&self, transaction: &SignedTransaction) -> Result<(), PoolError> {
        let kind = transaction.kind();
        match kind.pending() {
            Pending::One if self.has_pending(transaction, |asset| asset.kind() == kind) => {
                Err(PoolError::PendingType { sender: transaction.sender().to_string(), name: kind.name() })
            }
            Pending::OneOfBusiness(what) if self.has_pending(transaction, |asset| asset.kind() == kind) => {
                // The reference prints the asset as JavaScript prints an object, and a resignation has none.
                let has_asset = !kind.asset_members().is_empty();
                let subject = if has_asset { "[object Object]" } else { "undefined" };
                Err(PoolError::BusinessPending { what, subject })
            }
            Pending::Any | Pending::One | Pending::OneOfBusiness(_) => Ok(()),
        }
    }

    fn check_asset(
        &self,
        transaction: &SignedTransaction,
        repeated: &BTreeSet<&str>,
        applied: &Applied,
    ) -> Result<(), PoolError> {
        let network = self.tree.config().network.pub_key_hash;
        let asset = transaction.asset();
        let kind = asset.kind();
        match asset {
            Asset::Transfer { recipient, .. } if recipient.network_byte() != network => {
                Err(PoolError::InvalidRecipient { address: recipient.to_string(), network })
            }
            Asset::DelegateRegistration { username } if repeated.contains(username.as_str()) => {
                Err(PoolError::UsernameTwice(username.clone()))
            }
            Asset::DelegateRegistration { username } if self.store.has_username(username) => {
                Err(PoolError::UsernamePending(username.clone()))
            }
            Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } => self.check_lock(kind, lock, applied),
            Asset::BridgechainResignation { bridgechain: id }
                if self.has_pending(
                    transaction,
                    |asset| matches!(asset, Asset::BridgechainResignation { bridgechain } if bridgechain == id),
                ) =>
            {
                Err(PoolError::BridgechainPending { what: "resignation", id: hex::encode(id) })
            }
            Asset::BridgechainUpdate(update)
                if self.has_pending(
                    transaction,
                    |asset| matches!(asset, Asset::BridgechainUpdate(other) if other.bridgechain == update.bridgechain),
                ) =>
            {
                Err(PoolError::BridgechainPending { what: "update", id: hex::encode(update.bridgechain) })
            }
            _ => Ok(()),
        }
    }

    /// A claim or refund needs an open lock, and must be the only one of its kind for it.
    fn check_lock(&self, kind: Kind, wanted: &TransactionId, applied: &Applied) -> Result<(), PoolError> {
        if applied.state.lock(wanted).is_none() {
            return Err(PoolError::LockNotFound(*wanted));
        }
        let stumbles = self.tree.rules().pool.refund_rule_reads_wrong_field;
        if kind == Kind::HtlcRefund && stumbles && self.store.has_refunds() {
            return Err(PoolError::RefundPending);
        }
        match self.store.has_release(kind, wanted) {
            true => Err(PoolError::LockPending { name: kind.name(), lock: *wanted }),
            false => Ok(()),
        }
    }

    /// Returns true if the transaction's sender has one pending whose asset is like this.
    fn has_pending(&self, transaction: &SignedTransaction, like: impl Fn(&Asset) -> bool) -> bool {
        let sender = self.store.sender(&transaction.sender_address());
        sender.is_some_and(|sender| sender.own().any(|pending| like(pending.asset())))
    }

    /// Step 12. Source: consensus.md 5.3.
    fn check_fee(&self, transaction: &SignedTransaction) -> Result<FeeVerdict, PoolError> {
        let (rules, fee) = (&self.tree.rules().pool, transaction.fee());
        let (enter, broadcast) = match &rules.dynamic_fees {
            Some(fees) => (
                fee >= rules.least_fee(transaction, fees.min_fee_pool),
                fee >= rules.least_fee(transaction, fees.min_fee_broadcast),
            ),
            None => {
                let milestone = self.tree.config().milestones.at(self.tip.height());
                let exact = fee == milestone.fees.of(transaction.transaction());
                (exact, exact)
            }
        };
        if enter || broadcast { Ok(FeeVerdict { enter, broadcast }) } else { Err(PoolError::LowFee) }
    }

    /// Step 14: a full pool evicts a transaction for one with a higher fee, even if that one is then rejected.
    /// Source: consensus.md 5.4.
    pub(super) fn make_room_and_admit(
        &mut self,
        transaction: &Arc<SignedTransaction>,
        applied: &Applied,
        additions: &mut Additions,
        effects: &mut Vec<Effect>,
    ) -> Result<(), PoolError> {
        let fits = match self.tree.rules().pool.makes_room_first || self.store.contains(&transaction.id()) {
            true => Ok(()),
            false => self.fits(transaction, applied).map(drop).map_err(PoolError::Apply),
        };
        let outcome = fits.and_then(|()| self.make_room(transaction, effects)).and_then(|()| {
            let admitted = self.admit(transaction, applied);
            admitted.map_err(PoolError::Apply)
        });
        match &outcome {
            Ok(()) => additions.added.push(transaction.clone()),
            Err(error) => {
                additions.rejected.push(PoolRejection { transaction: transaction.clone(), error: error.clone() });
            }
        }
        outcome
    }

    fn make_room(&mut self, transaction: &SignedTransaction, effects: &mut Vec<Effect>) -> Result<(), PoolError> {
        if self.store.contains(&transaction.id()) {
            return Err(PoolError::AlreadyInPool);
        }
        let rules = &self.tree.rules().pool;
        let (count, fee) = (self.store.len(), transaction.fee());
        if count < rules.max_transactions {
            return Ok(());
        }
        let lowest = self.store.to_give_way(rules.eviction_compares_fee_with_nonce);
        let lowest = lowest.expect("a full pool is not empty: the rules allow at least one").clone();
        if lowest.fee() >= fee {
            return Err(PoolError::PoolFull { count, fee, lowest: lowest.fee() });
        }
        // The nonce of this transaction follows that of its sender's last one, which would be evicted.
        if lowest.sender_address() == transaction.sender_address() && !rules.makes_room_first {
            return Err(PoolError::PoolFull { count, fee, lowest: lowest.fee() });
        }
        let event = match rules.uneven_removal_events {
            true => Event::PoolEvicted(lowest.clone()),
            false => Event::PoolRemoved(lowest.id()),
        };
        self.store.forget(&lowest.id());
        effects.push(Effect::Observe(event));
        Ok(())
    }

    /// Applies a transaction to its sender's wallet in the pool and keeps it.
    pub(super) fn admit(&mut self, transaction: &Arc<SignedTransaction>, applied: &Applied) -> Result<(), ApplyError> {
        let wallet = self.fits(transaction, applied)?;
        self.store.keep(transaction, applied.state.wallet(&transaction.sender_address()).cloned(), wallet);
        Ok(())
    }

    /// Returns the sender's wallet in the pool after a transaction that fits.
    fn fits(&self, transaction: &SignedTransaction, applied: &Applied) -> Result<Wallet, ApplyError> {
        let tree = self.tree.clone();
        let terms = tree.terms(self.tip.height());
        let address = transaction.sender_address();
        let chain = applied.state.wallet(&address);
        let claims = matches!(transaction.kind(), Kind::HtlcClaim | Kind::HtlcRefund);
        let cold = |wallet: &Wallet| wallet.public_key.is_none() && wallet.balance == Balance::ZERO;
        if !claims && chain.is_none_or(|wallet| cold(wallet)) {
            return Err(ApplyError::ColdWallet);
        }
        let mut wallet = self.pool_wallet(&address, chain);
        apply::check(transaction, &wallet, &applied.state, &terms)?;
        apply::apply_to_sender(transaction, &mut wallet, terms.rules.ledger.votes);
        Ok(wallet)
    }
}

/// The usernames that several registrations of a request ask for.
fn repeated_usernames(transactions: &[Arc<SignedTransaction>]) -> BTreeSet<&str> {
    let mut once = BTreeSet::new();
    let mut again = BTreeSet::new();
    for transaction in transactions {
        if let Asset::DelegateRegistration { username } = &transaction.transaction().asset
            && !once.insert(username.as_str())
        {
            again.insert(username.as_str());
        }
    }
    again
}
