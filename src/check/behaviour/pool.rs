//! The model of a pool: what it holds, how it follows its node's chain, what it gives its delegate.
//! Source: consensus.md 2.3, 5.5 to 5.7.

use super::{
    Case, ModelContext,
    step::{ActorStep, Cause},
};
use crate::{
    actors::{Event, Message, SimTime},
    check::conduct,
    ledger::{Link, Wallet, apply},
    protocol::{Address, Asset, Height, SignedTransaction, TransactionId, hashing::IdHash, transaction::Version},
};
use indexmap::IndexMap;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

/// The bytes that a forger leaves free below the largest payload of a block.
pub(super) const MARGIN: usize = 10_240;

/// A model of a pool's content, as far as the messages to it determine it.
#[derive(Clone)]
pub(super) struct PoolModel {
    pub tip: Arc<Link>,
    /// By arrival.
    pub pending: IndexMap<TransactionId, Arc<SignedTransaction>, IdHash>,
    /// Ids handed in since the last block, the oldest first.
    pub recent: VecDeque<TransactionId>,
    pub recent_ids: BTreeSet<TransactionId>,
    /// The instant of the step, by the node's clock.
    pub now: SimTime,
}

/// The changes of a pool, as the events of a step report them.
#[derive(Clone, Default)]
pub(super) struct PoolChanges {
    pub removed: Vec<TransactionId>,
    pub expired: Vec<TransactionId>,
    pub evicted: Vec<TransactionId>,
    pub purged: Vec<TransactionId>,
    pub added: Vec<Arc<SignedTransaction>>,
    pub replaced: Option<Vec<Arc<SignedTransaction>>>,
}

impl PoolChanges {
    fn of(step: &ActorStep) -> Self {
        let mut told = Self::default();
        for event in step.events() {
            match event {
                Event::PoolRemoved(id) => told.removed.push(*id),
                Event::PoolExpired(one) => told.expired.push(one.id()),
                Event::PoolEvicted(one) => told.evicted.push(one.id()),
                Event::PoolPurged(one) => told.purged.push(one.id()),
                Event::PoolAdded(added) => told.added.extend(added.iter().cloned()),
                Event::PoolReplaced(kept) => told.replaced = Some(kept.clone()),
                _ => {}
            }
        }
        told
    }
}

pub(super) fn nonce(transaction: &SignedTransaction) -> Option<u64> {
    match transaction.transaction().version {
        Version::One(_) => None,
        Version::Two(nonce) => Some(nonce.0),
    }
}

impl PoolModel {
    pub(super) fn new(tip: &Arc<Link>) -> Self {
        Self {
            tip: tip.clone(),
            pending: IndexMap::default(),
            recent: VecDeque::new(),
            recent_ids: BTreeSet::new(),
            now: SimTime::default(),
        }
    }

    /// Judges a step, and follows it.
    pub(super) fn judge(&mut self, case: &mut Case<'_>, node_tip: &Arc<Link>) {
        self.now = case.step.local;
        let message = match &case.step.cause {
            Cause::Begins => {
                *self = Self::new(node_tip);
                return;
            }
            Cause::Message(from, message) if from.node == case.step.actor.node => message,
            _ => return,
        };
        let mut told = PoolChanges::of(case.step);
        let tip = match message {
            Message::TipMoved { tip }
            | Message::ChooseTransactions { tip }
            | Message::BlockNotApplied { tip, .. }
            | Message::Reorganised { tip, .. }
            | Message::AlreadyForged { tip, .. } => tip,
            Message::AddTransactions(add) => &add.tip,
            _ => return,
        };
        // After a block that does not apply, the pool reports its remaining content (Q4). This report cannot be distinguished from
        // the one after a rollback.
        let rebuilt = matches!(message, Message::BlockNotApplied { .. });
        self.follow(case, &mut told, tip, rebuilt);
        match message {
            Message::AddTransactions(add) => self.judge_additions(case, &mut told, add),
            Message::ChooseTransactions { .. } => self.judge_choice(case, &mut told),
            Message::AlreadyForged { ids, .. } => {
                for id in ids.iter().filter(|id| self.pending.shift_remove(*id).is_some()) {
                    let gone = take(&mut told.removed, id);
                    case.report
                        .judge(&conduct::FOLLOWED, gone, || format!("{id} is on the chain and stays in the pool"));
                }
            }
            Message::BlockNotApplied { .. } => {
                self.clear_recent();
                let kept = told.replaced.take().unwrap_or_default();
                let invented = kept.iter().find(|one| !self.pending.contains_key(&one.id()));
                case.report.judge(&conduct::FOLLOWED, invented.is_none(), || {
                    format!("a pool made anew holds {:?}, which it did not hold", invented.map(|one| one.id()))
                });
                self.pending = kept.into_iter().map(|one| (one.id(), one)).collect();
                told = PoolChanges::default();
            }
            _ => {}
        }
        self.judge_rest(case, &told);
    }

    /// Judges the events that nothing has accounted for.
    fn judge_rest(&mut self, case: &mut Case<'_>, told: &PoolChanges) {
        if let Some(id) = told.removed.first().or(told.purged.first()) {
            case.report.breach(&conduct::FOLLOWED, || format!("{id} left the pool without a cause"));
        }
        if let Some(id) = told.expired.first() {
            case.report
                .breach(&conduct::EXPIRED, || format!("the pool reported {id} as expired, and it has not expired"));
        }
        if let Some(id) = told.evicted.first() {
            case.report.breach(&conduct::ADMITTED, || format!("{id} gave way, and nothing asked for its place"));
        }
        if let Some(one) = told.added.first() {
            case.report.breach(&conduct::ADMITTED, || format!("{} was added without a submission", one.id()));
        }
        if told.replaced.is_some() {
            case.report.breach(&conduct::REPLAYED, || "the pool was made anew without a cause".to_owned());
        }
        // The model adopts the pool's report.
        let gone = [&told.removed, &told.purged, &told.expired, &told.evicted];
        for id in gone.into_iter().flatten() {
            self.pending.shift_remove(id);
        }
        self.pending.extend(told.added.iter().map(|one| (one.id(), one.clone())));
    }

    pub(super) fn clear_recent(&mut self) {
        self.recent.clear();
        self.recent_ids.clear();
    }

    /// Follows the node's chain to `tip`, and expires old transactions.
    fn follow(&mut self, case: &mut Case<'_>, told: &mut PoolChanges, tip: &Arc<Link>, rebuilt: bool) {
        if !tip.is(&self.tip) {
            self.clear_recent();
            let from = std::mem::replace(&mut self.tip, tip.clone());
            match tip.descends_from(&from) {
                true => self.go_forward(case, told, &from),
                false => self.go_back(case, told, &from, rebuilt),
            }
        }
        self.expire(case, told);
    }

    pub(super) fn own<'a>(&'a self, sender: &'a Address) -> impl Iterator<Item = &'a Arc<SignedTransaction>> {
        self.pending.values().filter(move |one| one.sender_address() == *sender)
    }

    /// Follows the chain forward. The pool drops the transactions of each block, and all of a sender whose transaction in the
    /// block does not fit beside the pending ones.
    fn go_forward(&mut self, case: &mut Case<'_>, told: &mut PoolChanges, from: &Arc<Link>) {
        if self.pending.is_empty() {
            return;
        }
        let mut blocks = Vec::new();
        let mut at = self.tip.clone();
        while !at.is(from) {
            let Some(parent) = at.parent() else { break };
            blocks.push(std::mem::replace(&mut at, parent));
        }
        for link in blocks.iter().rev() {
            let mut nonces: BTreeMap<Address, Option<u64>> = BTreeMap::new();
            for one in &link.block().transactions {
                let sender = one.sender_address();
                if self.own(&sender).next().is_none() {
                    continue;
                }
                let last = self.own(&sender).filter_map(|own| nonce(own)).max();
                let next = nonces.entry(sender).or_insert_with(|| last.map(|last| last + 1));
                if self.pending.shift_remove(&one.id()).is_some() {
                    let gone = take(&mut told.removed, &one.id());
                    case.report.judge(&conduct::FOLLOWED, gone, || {
                        format!("{} stands in block {} and stays in the pool", one.id(), link.id())
                    });
                    continue;
                }
                let own: Vec<TransactionId> = self.own(&sender).map(|own| own.id()).collect();
                let stays = own.iter().any(|id| !told.removed.contains(id));
                if next.is_some() && nonce(one).is_some() && nonce(one) != *next {
                    case.report.judge(&conduct::FOLLOWED, !stays, || {
                        format!("block {} holds {}, whose nonce the pool gives to another", link.id(), one.id())
                    });
                } else if stays {
                    // It fits beside what is pending.
                    *next = next.map(|next| next + 1);
                    continue;
                }
                for id in own {
                    take(&mut told.removed, &id);
                    self.pending.shift_remove(&id);
                }
            }
            if case.known.tree.config().milestones.is_milestone(link.height()) {
                self.purge(case, told, link.height());
            }
        }
    }

    /// Drops the transactions that a milestone makes invalid, with all later ones of their senders.
    fn purge(&mut self, case: &mut Case<'_>, told: &mut PoolChanges, height: Height) {
        let context = case.known.tree.config().transaction_context(height);
        let void: Vec<_> = self.pending.values().filter(|one| one.check(&context).is_err()).cloned().collect();
        for id in void.iter().flat_map(|one| self.with_later(one)).collect::<Vec<_>>() {
            if self.pending.shift_remove(&id).is_some() {
                let gone = take(&mut told.purged, &id) || take(&mut told.removed, &id);
                case.report.judge(&conduct::FOLLOWED, gone, || format!("{id} is void since height {height} and stays"));
            }
        }
    }

    /// Returns the ids of a transaction and of all later ones of its sender.
    fn with_later(&self, one: &SignedTransaction) -> Vec<TransactionId> {
        let place = self.pending.get_index_of(&one.id()).unwrap_or(usize::MAX);
        let sender = one.sender_address();
        let later = self.pending.values().skip(place).filter(|other| other.sender_address() == sender);
        later.map(|other| other.id()).collect()
    }

    /// Follows a rollback. The pool is emptied, and the reverted transactions that fit come in again, the oldest first.
    fn go_back(&mut self, case: &mut Case<'_>, told: &mut PoolChanges, from: &Arc<Link>, rebuilt: bool) {
        let mut reverted = Vec::new();
        let mut at = from.clone();
        while !self.tip.descends_from(&at) {
            reverted.push(at.clone());
            let Some(parent) = at.parent() else { break };
            at = parent;
        }
        self.pending.clear();
        for one in reverted.iter().rev().flat_map(|link| &link.block().transactions) {
            let on_chain = case.known.is_forged(&self.tip, &one.id());
            if !on_chain && self.fits(case.known, one).is_ok() {
                self.pending.insert(one.id(), one.clone());
            }
        }
        if rebuilt {
            return;
        }
        let kept = told.replaced.take();
        let same = kept.as_ref().is_some_and(|kept| kept.iter().map(|one| one.id()).eq(self.pending.keys().copied()));
        case.report.judge(&conduct::REPLAYED, same, || {
            let held: Option<Vec<TransactionId>> = kept.as_ref().map(|kept| kept.iter().map(|one| one.id()).collect());
            let wanted: Vec<&TransactionId> = self.pending.keys().collect();
            format!("after a rollback to {:?} it holds {held:?}, expected {wanted:?}", self.tip)
        });
        if let Some(kept) = kept {
            self.pending = kept.into_iter().map(|one| (one.id(), one)).collect();
        }
    }

    /// Checks that a transaction can be applied to its sender's wallet in the pool.
    pub(super) fn fits(&self, known: &ModelContext, one: &SignedTransaction) -> Result<(), crate::ledger::ApplyError> {
        let applied = known.tree.applied(&self.tip);
        let sender = one.sender_address();
        let chain = applied.state.wallet(&sender);
        let claims = matches!(one.asset(), Asset::HtlcClaim { .. } | Asset::HtlcRefund { .. });
        let is_cold =
            chain.is_none_or(|wallet| wallet.public_key.is_none() && wallet.balance == crate::ledger::Balance::ZERO);
        if is_cold && !claims {
            return Err(crate::ledger::ApplyError::ColdWallet);
        }
        let mut wallet = chain.map_or_else(|| Wallet::cold(sender, 0), |wallet| Wallet::clone(wallet));
        let votes = known.tree.rules().ledger.votes;
        self.own(&sender).for_each(|own| apply::apply_to_sender(own, &mut wallet, votes));
        apply::check(one, &wallet, &applied.state, &known.tree.terms(self.tip.height()))
    }

    /// The height at which a transaction is too old.
    pub(super) fn expires_at(&self, known: &ModelContext, one: &SignedTransaction) -> Option<i64> {
        match (one.transaction().version, one.asset()) {
            (Version::One(timestamp), _) => {
                let age = i64::from(self.now.seconds().0) - i64::from(timestamp.0);
                let blocks = age.div_euclid(i64::from(known.tree.slots().blocktime()));
                Some(i64::from(self.tip.height().0) - blocks + i64::from(known.rules().pool.max_transaction_age))
            }
            (Version::Two(_), Asset::Transfer { expiration, .. }) if *expiration > 0 => Some(i64::from(*expiration)),
            (Version::Two(_), _) => None,
        }
    }

    fn expire(&mut self, case: &mut Case<'_>, told: &mut PoolChanges) {
        let height = i64::from(self.tip.height().0);
        let old = self.pending.values().filter(|one| self.expires_at(case.known, one).is_some_and(|at| at <= height));
        let old: Vec<_> = old.cloned().collect();
        for id in old.iter().flat_map(|one| self.with_later(one)).collect::<Vec<_>>() {
            if self.pending.shift_remove(&id).is_some() {
                let gone = take(&mut told.expired, &id);
                case.report.judge(&conduct::EXPIRED, gone, || format!("{id} has expired at height {height} and stays"));
            }
        }
    }
}

/// Removes an id from a list. Returns true if it was there.
pub(super) fn take(list: &mut Vec<TransactionId>, id: &TransactionId) -> bool {
    let place = list.iter().position(|one| one == id);
    place.map(|place| list.remove(place)).is_some()
}
