//! What a pool takes: the checks in the reference's order, and what it answers. Source: consensus.md 5.1-5.4.

use super::{PAYLOAD_MARGIN, TransactionPool};
use crate::{
    actors::{Effect, Event},
    ledger::{ApplyError, Balance, Wallet, apply, rules::DynamicFees},
    protocol::{
        Arktoshi, Asset, SignedTransaction, TransactionId,
        transaction::{Kind, Version},
    },
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Why a pool refuses a transaction. [`PoolError::code`] is the `type` a client sees, `Display` the `message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[rustfmt::skip]
pub enum PoolError {
    #[error("Already in cache.")]
    InCache,
    #[error("Duplicate transaction {0}")]
    Duplicate(TransactionId),
    #[error("Transaction {id} is {seconds} seconds in the future")]
    FromFuture { id: TransactionId, seconds: u32 },
    #[error("Transaction {id} is expired since {blocks} blocks.")]
    Expired { id: TransactionId, blocks: i64 },
    #[error("Transaction type {0} is deactivated.")]
    Deactivated(String),
    #[error("Version {0} not supported.")]
    UnsupportedVersion(u8),
    #[error("Recipient {address} is not on the same network: {network}")]
    InvalidRecipient { address: String, network: u8 },
    #[error("Sender {sender} already has a transaction of type '{name}' in the pool")]
    PendingType { sender: String, name: &'static str },
    #[error("Multiple delegate registrations for \"{0}\" in transaction payload")]
    UsernameTwice(String),
    #[error("Delegate registration for \"{0}\" already in the pool")]
    UsernamePending(String),
    #[error("The associated lock transaction id \"{0}\" was not found.")]
    LockNotFound(TransactionId),
    #[error("{name} for \"{lock}\" already in the pool")]
    LockPending { name: &'static str, lock: TransactionId },
    #[error("Business {what} for \"{subject}\" already in the pool")]
    BusinessPending { what: &'static str, subject: &'static str },
    #[error("Bridgechain {what} for bridgechainId \"{id}\" already in the pool")]
    BridgechainPending { what: &'static str, id: String },
    #[error("{0}")]
    Schema(String),
    #[error("Transaction {id} is larger than {limit} bytes.")]
    TooLarge { id: TransactionId, limit: usize },
    #[error("Transaction didn't pass the verification process.")]
    NotVerified,
    #[error("The fee is too low to broadcast and accept the transaction")]
    LowFee,
    #[error("Already forged.")]
    AlreadyForged,
    #[error("Already in pool")]
    AlreadyInPool,
    #[error("Pool is full (has {count} transactions) and this transaction's fee {fee} is not higher than the lowest fee already in pool {lowest}")]
    PoolFull { count: usize, fee: Arktoshi, lowest: Arktoshi },
    #[error("{0}")]
    Apply(ApplyError),
    #[error("{0}")]
    Unknown(String),
}

impl PoolError {
    /// The `type` of the error as the API shows it. Source: consensus.md 5.1.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InCache | Self::Duplicate(_) => "ERR_DUPLICATE",
            Self::FromFuture { .. } => "ERR_FROM_FUTURE",
            Self::Expired { .. } => "ERR_EXPIRED",
            Self::Deactivated(_) | Self::UnsupportedVersion(_) | Self::Unknown(_) => "ERR_UNKNOWN",
            Self::InvalidRecipient { .. } => "ERR_INVALID_RECIPIENT",
            Self::PendingType { .. }
            | Self::UsernamePending(_)
            | Self::LockPending { .. }
            | Self::BusinessPending { .. }
            | Self::BridgechainPending { .. } => "ERR_PENDING",
            Self::LockNotFound(_) => "ERR_HTLCLOCKNOTFOUND",
            Self::UsernameTwice(_) => "ERR_CONFLICT",
            Self::Schema(_) => "ERR_TRANSACTION_SCHEMA",
            Self::TooLarge { .. } => "ERR_TOO_LARGE",
            Self::NotVerified => "ERR_BAD_DATA",
            Self::LowFee => "ERR_LOW_FEE",
            Self::AlreadyForged => "ERR_FORGED",
            Self::AlreadyInPool => "ERR_ALREADY_IN_POOL",
            Self::PoolFull { .. } => "ERR_POOL_FULL",
            Self::Apply(_) => "ERR_APPLY",
        }
    }
}

/// What became of a request's transactions. Source: consensus.md 5.1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// In the pool now, in the order given.
    pub accept: Vec<TransactionId>,
    /// Worth sending on.
    pub broadcast: Vec<TransactionId>,
    /// Over their sender's quota: neither taken nor refused.
    pub excess: Vec<TransactionId>,
    /// Why each refused one was refused, in the order found.
    pub errors: Vec<(TransactionId, PoolError)>,
}

/// A transaction the pool would not add, for `transaction.pool.rejected`.
#[derive(Clone, Debug)]
pub struct PoolRejection {
    pub transaction: Arc<SignedTransaction>,
    pub error: PoolError,
}

/// Whether a checked transaction is kept, sent on, or both: two independent minimum fees. Source: consensus.md 5.3.
struct FeeVerdict {
    enter: bool,
    broadcast: bool,
}

impl TransactionPool {
    /// Checks all, then adds those that passed. Source: consensus.md 5.1.
    pub(super) fn submit(&mut self, transactions: &[Arc<SignedTransaction>], effects: &mut Vec<Effect>) -> Submission {
        let mut submission = Submission::default();
        let mut passed: Vec<(&Arc<SignedTransaction>, FeeVerdict)> = Vec::new();
        let mut seen = BTreeSet::new();
        let usernames = repeated_usernames(transactions);
        for transaction in transactions.iter().filter(|transaction| seen.insert(transaction.id())) {
            let id = transaction.id();
            match self.check(transaction, &usernames) {
                Ok(None) => submission.excess.push(id),
                Ok(Some(verdict)) => passed.push((transaction, verdict)),
                Err(error) => submission.errors.push((id, error)),
            }
        }
        passed.retain(|(transaction, _)| {
            let forged = self.tree.block_of(&self.tip, &transaction.id()).is_some();
            if forged {
                submission.errors.push((transaction.id(), PoolError::AlreadyForged));
            }
            !forged
        });
        self.add(&passed, &mut submission, effects);
        submission
    }

    fn add(
        &mut self,
        passed: &[(&Arc<SignedTransaction>, FeeVerdict)],
        submission: &mut Submission,
        effects: &mut Vec<Effect>,
    ) {
        let (mut added, mut rejected) = (Vec::new(), Vec::new());
        for (transaction, verdict) in passed {
            let id = transaction.id();
            let outcome = if verdict.enter { self.make_room_and_admit(transaction, effects) } else { Ok(()) };
            if verdict.broadcast && matches!(outcome, Ok(()) | Err(PoolError::PoolFull { .. })) {
                submission.broadcast.push(id);
            }
            match outcome {
                Ok(()) if verdict.enter => {
                    submission.accept.push(id);
                    added.push(Arc::clone(transaction));
                }
                Ok(()) => {}
                Err(error) => {
                    rejected.push(PoolRejection { transaction: Arc::clone(transaction), error: error.clone() });
                    submission.errors.push((id, error));
                }
            }
        }
        if !added.is_empty() {
            effects.push(Effect::Observe(Event::PoolAdded(added)));
        }
        if !rejected.is_empty() {
            effects.push(Effect::Observe(Event::PoolRejected(rejected)));
        }
    }

    /// Steps 1 to 12; `None` for one over its sender's quota.
    fn check(
        &mut self,
        transaction: &SignedTransaction,
        repeated: &BTreeSet<&str>,
    ) -> Result<Option<FeeVerdict>, PoolError> {
        let (id, rules) = (transaction.id(), self.tree.rules().pool.clone());
        if self.seen(id) {
            return Err(PoolError::InCache);
        }
        if self.pending.contains_key(&id) {
            return Err(PoolError::Duplicate(id));
        }
        let own = self.by_sender.get(&transaction.sender_address()).map_or(0, BTreeMap::len);
        if own >= rules.max_transactions_per_sender {
            return Ok(None);
        }
        self.check_time(transaction)?;
        self.check_type(transaction, repeated)?;
        let max_payload = self.tree.config().milestones.at(self.tip.height()).block.max_payload;
        let limit = max_payload.saturating_sub(PAYLOAD_MARGIN);
        if transaction.bytes().len() > limit {
            return Err(PoolError::TooLarge { id, limit });
        }
        if !transaction.verified() && !self.tree.applied(&self.tip).state.vouches_for(transaction) {
            return Err(PoolError::NotVerified);
        }
        self.check_fee(transaction, rules.dynamic_fees.as_ref()).map(Some)
    }

    /// Steps 4 and 5.
    fn check_time(&self, transaction: &SignedTransaction) -> Result<(), PoolError> {
        let (id, seconds) = (transaction.id(), self.now.seconds().0);
        if let Version::One(timestamp) = transaction.transaction().version
            && timestamp.0 > seconds.saturating_add(3_600)
        {
            return Err(PoolError::FromFuture { id, seconds: timestamp.0 - seconds });
        }
        let height = i64::from(self.tip.height().0);
        match self.expires_at(transaction) {
            Some(expiry) if expiry <= height + 1 => Err(PoolError::Expired { id, blocks: height - expiry }),
            _ => Ok(()),
        }
    }

    /// Steps 7 and 8. Source: consensus.md 5.2.
    fn check_type(&self, transaction: &SignedTransaction, repeated: &BTreeSet<&str>) -> Result<(), PoolError> {
        let content = transaction.transaction();
        let kind = content.asset.kind();
        let milestone = self.tree.config().milestones.at(self.tip.height());
        if !apply::activated(kind, milestone) {
            return Err(PoolError::Deactivated(apply::type_name(kind)));
        }
        match content.version {
            Version::One(_) if milestone.aip11 => return Err(PoolError::UnsupportedVersion(1)),
            Version::Two(_) if !milestone.aip11 => return Err(PoolError::UnsupportedVersion(2)),
            _ => {}
        }
        self.check_asset(transaction, repeated)?;
        let once = matches!(
            kind,
            Kind::SecondSignature
                | Kind::DelegateRegistration
                | Kind::Vote
                | Kind::MultiSignature
                | Kind::DelegateResignation
        );
        if once && self.has_pending(transaction, |asset| asset.kind() == kind) {
            return Err(PoolError::PendingType { sender: content.sender.to_string(), name: kind.name() });
        }
        Ok(())
    }

    fn check_asset(&self, transaction: &SignedTransaction, repeated: &BTreeSet<&str>) -> Result<(), PoolError> {
        let network = self.tree.config().network.pub_key_hash;
        let asset = &transaction.transaction().asset;
        let kind = asset.kind();
        match asset {
            Asset::Transfer { recipient, .. } if recipient.network_byte() != network => {
                Err(PoolError::InvalidRecipient { address: recipient.to_string(), network })
            }
            Asset::DelegateRegistration { username } if repeated.contains(username.as_str()) => {
                Err(PoolError::UsernameTwice(username.clone()))
            }
            Asset::DelegateRegistration { username } if self.has_pending_username(username) => {
                Err(PoolError::UsernamePending(username.clone()))
            }
            Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } => self.check_lock(kind, lock),
            Asset::BusinessRegistration { .. } | Asset::BusinessResignation | Asset::BusinessUpdate { .. }
                if self.has_pending(transaction, |asset| asset.kind() == kind) =>
            {
                // The reference prints the asset as JavaScript prints an object, and a resignation has none.
                let (what, subject) = match kind {
                    Kind::BusinessRegistration => ("registration", "[object Object]"),
                    Kind::BusinessUpdate => ("update", "[object Object]"),
                    _ => ("resignation", "undefined"),
                };
                Err(PoolError::BusinessPending { what, subject })
            }
            Asset::BridgechainResignation { bridgechain: id }
                if self.has_pending(
                    transaction,
                    |asset| matches!(asset, Asset::BridgechainResignation { bridgechain } if bridgechain == id),
                ) =>
            {
                Err(PoolError::BridgechainPending { what: "resignation", id: hex::encode(id) })
            }
            Asset::BridgechainUpdate { bridgechain: id, .. }
                if self.has_pending(
                    transaction,
                    |asset| matches!(asset, Asset::BridgechainUpdate { bridgechain, .. } if bridgechain == id),
                ) =>
            {
                Err(PoolError::BridgechainPending { what: "update", id: hex::encode(id) })
            }
            _ => Ok(()),
        }
    }

    /// A claim or refund needs an open lock, and must be the only one of its kind for it.
    fn check_lock(&self, kind: Kind, wanted: &TransactionId) -> Result<(), PoolError> {
        if self.tree.applied(&self.tip).state.lock(wanted).is_none() {
            return Err(PoolError::LockNotFound(*wanted));
        }
        let pending = self.pending.values().any(|pending| match &pending.transaction.transaction().asset {
            asset @ (Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock }) => {
                asset.kind() == kind && lock == wanted
            }
            _ => false,
        });
        if pending { Err(PoolError::LockPending { name: kind.name(), lock: *wanted }) } else { Ok(()) }
    }

    /// Whether the transaction's sender has one pending whose asset is like this.
    fn has_pending(&self, transaction: &SignedTransaction, like: impl Fn(&Asset) -> bool) -> bool {
        let own = self.by_sender.get(&transaction.sender_address());
        own.into_iter().flat_map(BTreeMap::values).any(|id| like(&self.pending[id].transaction.transaction().asset))
    }

    fn has_pending_username(&self, wanted: &str) -> bool {
        self.pending.values().any(|pending| {
            matches!(&pending.transaction.transaction().asset, Asset::DelegateRegistration { username } if username == wanted)
        })
    }

    /// Step 12. Source: consensus.md 5.3.
    fn check_fee(&self, transaction: &SignedTransaction, fees: Option<&DynamicFees>) -> Result<FeeVerdict, PoolError> {
        let content = transaction.transaction();
        let (enter, broadcast) = match fees {
            Some(fees) => {
                let minimum = |rate| DynamicFees::minimum(transaction, rate);
                (content.fee >= minimum(fees.min_fee_pool), content.fee >= minimum(fees.min_fee_broadcast))
            }
            None => {
                let milestone = self.tree.config().milestones.at(self.tip.height());
                let exact = content.fee == milestone.fees.of(content);
                (exact, exact)
            }
        };
        if enter || broadcast { Ok(FeeVerdict { enter, broadcast }) } else { Err(PoolError::LowFee) }
    }

    /// Step 14: in a full pool the cheapest last transaction of a sender gives way to a dearer one.
    /// Source: consensus.md 5.4.
    fn make_room_and_admit(
        &mut self,
        transaction: &Arc<SignedTransaction>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), PoolError> {
        if self.pending.contains_key(&transaction.id()) {
            return Err(PoolError::AlreadyInPool);
        }
        let (count, limit) = (self.pending.len(), self.tree.rules().pool.max_transactions);
        if count >= limit + usize::from(planted!(PoolOverfull)) {
            let fee = transaction.transaction().fee;
            let (lowest, id) = self.cheapest_last().unwrap_or((Arktoshi::MAX, transaction.id()));
            if lowest >= fee {
                return Err(PoolError::PoolFull { count, fee, lowest });
            }
            self.forget(&id);
            effects.push(Effect::Observe(Event::PoolRemoved(id)));
        }
        self.admit(transaction, effects).map_err(PoolError::Apply)
    }

    /// The cheapest transaction that is its sender's last, the newest of equals.
    fn cheapest_last(&self) -> Option<(Arktoshi, TransactionId)> {
        self.by_fee.iter().rev().find_map(|(Reverse(fee), arrival, id)| {
            let own = &self.by_sender[&self.pending[id].transaction.sender_address()];
            (own.last_key_value()?.0 == arrival || planted!(PoolForgetsSilently)).then_some((*fee, *id))
        })
    }

    /// Applies a transaction to its sender's wallet in the pool and keeps it.
    pub(super) fn admit(
        &mut self,
        transaction: &Arc<SignedTransaction>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ApplyError> {
        let tree = self.tree.clone();
        let (terms, applied) = (tree.terms(self.tip.height()), tree.applied(&self.tip));
        let address = transaction.sender_address();
        let claims = matches!(transaction.transaction().asset, Asset::HtlcClaim { .. } | Asset::HtlcRefund { .. });
        let cold = |wallet: &Wallet| wallet.public_key.is_none() && wallet.balance == Balance::ZERO;
        if !claims && applied.state.wallet(&address).is_none_or(|wallet| cold(wallet)) {
            return Err(ApplyError::ColdWallet);
        }
        let wallet = self.pool_wallet(&address, effects);
        match apply::check(transaction, wallet, &applied.state, &terms) {
            Err(ApplyError::UnexpectedNonce { .. }) if planted!(PoolTakesNonceGap) => {}
            checked => checked?,
        }
        apply::apply_to_sender(transaction, wallet);
        self.keep(transaction);
        Ok(())
    }
}

/// Usernames that more than one registration of a request asks for.
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
