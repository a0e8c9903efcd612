//! Admission to a pool: the checks of the contract in their order, and their consequences. Source: consensus.md 5.1 to
//! 5.4.

use super::{
    Case, ModelContext,
    pool::{MARGIN, PoolChanges, PoolModel, take},
};
use crate::{
    actors::{Message, message::AddTransactions},
    check::{conduct, step::business},
    ledger::{
        apply::{self, Look},
        rules::PoolRules,
    },
    protocol::{Arktoshi, Asset, Kind, SignedTransaction, TransactionId, transaction::Version},
};
use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

/// The types of which a sender has at most one pending transaction.
const ONCE: [Kind; 5] =
    [Kind::SecondSignature, Kind::DelegateRegistration, Kind::Vote, Kind::MultiSignature, Kind::DelegateResignation];

/// The outcome of a request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    accept: Vec<TransactionId>,
    broadcast: Vec<TransactionId>,
    excess: Vec<TransactionId>,
    errors: Vec<(TransactionId, &'static str)>,
    added: Vec<TransactionId>,
    evicted: Vec<TransactionId>,
}

enum AdmissionVerdict {
    Excess,
    Passed { enters: bool, travels: bool },
}

impl PoolModel {
    pub(super) fn judge_additions(&mut self, case: &mut Case<'_>, told: &mut PoolChanges, add: &AddTransactions) {
        if case.known.rules().pool.eviction_compares_fee_with_nonce
            || case.known.rules().pool.refund_rule_reads_wrong_field && self.has_refunds()
        {
            // The model does not reproduce these quirks. It adopts the pool's answer.
            self.recent_ids.extend(add.transactions.iter().map(|one| one.id()));
            for one in std::mem::take(&mut told.added) {
                self.pending.insert(one.id(), one);
            }
            for id in std::mem::take(&mut told.evicted) {
                self.pending.shift_remove(&id);
            }
            return;
        }
        let wanted = self.submit(case.known, &add.transactions);
        let added: Vec<TransactionId> = told.added.iter().map(|one| one.id()).collect();
        case.report.judge(&conduct::ADMITTED, added == wanted.added, || {
            format!("it added {added:?}, expected {:?}; {:?}", wanted.added, wanted.errors)
        });
        told.added.clear();
        for id in &wanted.evicted {
            let gone = take(&mut told.evicted, id) || take(&mut told.removed, id);
            case.report.judge(&conduct::ADMITTED, gone, || format!("{id} should give way to a dearer one"));
        }
        if let Some(answer) = case.step.answer() {
            let said = Outcome {
                accept: answer.accept.clone(),
                broadcast: answer.broadcast.clone(),
                excess: answer.excess.clone(),
                errors: answer.errors.iter().map(|(id, error)| (*id, error.code())).collect(),
                added,
                evicted: wanted.evicted.clone(),
            };
            case.report
                .judge(&conduct::ADMITTED, said == wanted, || format!("it answered {said:?}, expected {wanted:?}"));
        }
        self.judge_broadcast(case, add, &wanted);
    }

    fn judge_broadcast(&self, case: &mut Case<'_>, add: &AddTransactions, wanted: &Outcome) {
        let stopped = add.request.is_none() && !wanted.errors.is_empty() && case.known.rules().pool.refusal_stops_relay;
        let travel = if stopped { Vec::new() } else { wanted.broadcast.clone() };
        let sent: Vec<TransactionId> = case
            .step
            .sent()
            .filter_map(|(_, message)| match message {
                Message::Broadcast(sent) => Some(sent),
                _ => None,
            })
            .flat_map(|sent| sent.iter().map(|one| one.id()))
            .collect();
        let distinct: BTreeSet<&TransactionId> = travel.iter().collect();
        let same = distinct == sent.iter().collect::<BTreeSet<_>>();
        case.report.judge(&conduct::BATCHED, same, || format!("its pool wants {sent:?} sent on, expected {travel:?}"));
    }

    fn has_refunds(&self) -> bool {
        self.pending.values().any(|one| one.kind() == Kind::HtlcRefund)
    }

    fn submit(&mut self, known: &ModelContext, given: &[Arc<SignedTransaction>]) -> Outcome {
        let rules = &known.rules().pool;
        let (mut outcome, mut passed) = (Outcome::default(), Vec::new());
        let mut seen = BTreeSet::new();
        for one in given.iter().filter(|one| seen.insert(one.id())) {
            match self.checks(known, one, given) {
                Ok(AdmissionVerdict::Excess) => outcome.excess.push(one.id()),
                Ok(AdmissionVerdict::Passed { enters, travels }) => match rules.checks_precede_adding {
                    true => passed.push((one, enters, travels)),
                    false => self.forged_or_added(known, one, enters, travels, &mut outcome),
                },
                Err(code) => {
                    outcome.errors.push((one.id(), code));
                    if code == "ERR_TOO_LARGE" && rules.too_large_ends_request {
                        break;
                    }
                }
            }
        }
        // Transactions on the chain are sorted out before any is added.
        let (forged, fresh): (Vec<_>, Vec<_>) =
            passed.into_iter().partition(|(one, ..)| known.is_forged(&self.tip, &one.id()));
        outcome.errors.extend(forged.iter().map(|(one, ..)| (one.id(), "ERR_FORGED")));
        for (one, enters, travels) in fresh {
            self.adds(known, one, enters, travels, &mut outcome);
        }
        outcome
    }

    fn forged_or_added(
        &mut self,
        known: &ModelContext,
        one: &Arc<SignedTransaction>,
        enters: bool,
        travels: bool,
        outcome: &mut Outcome,
    ) {
        match known.is_forged(&self.tip, &one.id()) {
            true => outcome.errors.push((one.id(), "ERR_FORGED")),
            false => self.adds(known, one, enters, travels, outcome),
        }
    }

    /// Steps 1 to 12.
    fn checks(
        &mut self,
        known: &ModelContext,
        one: &SignedTransaction,
        given: &[Arc<SignedTransaction>],
    ) -> Result<AdmissionVerdict, &'static str> {
        let (id, rules, sender) = (one.id(), &known.rules().pool, one.sender_address());
        let content = one.transaction();
        if rules.recent_ids > 0 {
            if !self.recent_ids.insert(id) {
                return Err("ERR_DUPLICATE");
            }
            self.recent.push_back(id);
            if self.recent.len() > rules.recent_ids
                && let Some(oldest) = self.recent.pop_front()
            {
                self.recent_ids.remove(&oldest);
            }
        }
        if self.pending.contains_key(&id) {
            return Err("ERR_DUPLICATE");
        }
        let own = self.pending.values().filter(|other| other.sender_address() == sender).count();
        if own >= rules.max_transactions_per_sender && !rules.allowed_senders.contains(one.sender()) {
            return Ok(AdmissionVerdict::Excess);
        }
        if let Version::One(timestamp) = content.version
            && timestamp.0 > self.now.seconds().0 + 3_600
        {
            return Err("ERR_FROM_FUTURE");
        }
        if self.expires_at(known, one).is_some_and(|at| at <= i64::from(self.tip.height().0) + 1) {
            return Err("ERR_EXPIRED");
        }
        let network = known.tree.config().network.pub_key_hash;
        if content.network != network {
            return Err("ERR_WRONG_NETWORK");
        }
        self.checks_type(known, one, given)?;
        let context = known.tree.transaction_context(self.tip.height());
        if one.check(&context).is_err() {
            return Err("ERR_TRANSACTION_SCHEMA");
        }
        if one.size() > context.milestone.block.max_payload.saturating_sub(MARGIN) {
            return Err("ERR_TOO_LARGE");
        }
        let crypto = known.tree.config().crypto;
        if !one.verified(crypto) && !known.tree.applied(&self.tip).state.vouches_for(one, crypto) {
            return Err("ERR_BAD_DATA");
        }
        let (enters, travels) = match &rules.dynamic_fees {
            Some(fees) => {
                let pays = |rate| one.fee() >= least_fee(rules, one, rate);
                (pays(fees.min_fee_pool), pays(fees.min_fee_broadcast))
            }
            None => {
                let exact = one.fee() == known.tree.config().milestones.at(self.tip.height()).fees.of(content);
                (exact, exact)
            }
        };
        if enters || travels { Ok(AdmissionVerdict::Passed { enters, travels }) } else { Err("ERR_LOW_FEE") }
    }

    /// Steps 7 and 8.
    fn checks_type(
        &self,
        known: &ModelContext,
        one: &SignedTransaction,
        given: &[Arc<SignedTransaction>],
    ) -> Result<(), &'static str> {
        let (kind, content) = (one.kind(), one.transaction());
        let milestone = known.tree.milestone_after(self.tip.height());
        let old = matches!(content.version, Version::One(_));
        if !apply::activated(kind, milestone) || old == milestone.aip11 {
            return Err("ERR_UNKNOWN");
        }
        let own: Vec<_> =
            self.pending.values().filter(|other| other.sender_address() == one.sender_address()).collect();
        if (ONCE.contains(&kind) || business::ONCE.contains(&kind)) && own.iter().any(|other| other.kind() == kind) {
            return Err("ERR_PENDING");
        }
        let state = &known.tree.applied(&self.tip).state;
        let pending = |like: &dyn Fn(&Asset) -> bool| self.pending.values().any(|other| like(other.asset()));
        match one.asset() {
            Asset::Transfer { recipient, .. }
                if recipient.network_byte() != known.tree.config().network.pub_key_hash =>
            {
                Err("ERR_INVALID_RECIPIENT")
            }
            Asset::DelegateRegistration { username } => {
                let same =
                    |other: &Asset| matches!(other, Asset::DelegateRegistration { username: name } if name == username);
                let twice = given.iter().filter(|other| same(other.asset())).count() > 1;
                match (twice, pending(&same)) {
                    (true, _) => Err("ERR_CONFLICT"),
                    (_, true) => Err("ERR_PENDING"),
                    _ => Ok(()),
                }
            }
            Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } => {
                let same = |other: &Asset| match other {
                    Asset::HtlcClaim { lock: of, .. } => kind == Kind::HtlcClaim && of == lock,
                    Asset::HtlcRefund { lock: of } => kind == Kind::HtlcRefund && of == lock,
                    _ => false,
                };
                match (state.lock(lock), pending(&same)) {
                    (None, _) => Err("ERR_HTLCLOCKNOTFOUND"),
                    (_, true) => Err("ERR_PENDING"),
                    _ => Ok(()),
                }
            }
            Asset::BridgechainResignation { .. } | Asset::BridgechainUpdate(_) => {
                let chain = |asset: &Asset| match asset {
                    Asset::BridgechainResignation { bridgechain } => Some(*bridgechain),
                    Asset::BridgechainUpdate(update) => Some(update.bridgechain),
                    _ => None,
                };
                let alike = own.iter().filter(|other| other.kind() == kind);
                let twice = alike.into_iter().any(|other| chain(other.asset()) == chain(one.asset()));
                if twice { Err("ERR_PENDING") } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Step 14.
    fn adds(
        &mut self,
        known: &ModelContext,
        one: &Arc<SignedTransaction>,
        enters: bool,
        travels: bool,
        outcome: &mut Outcome,
    ) {
        let id = one.id();
        let error = if enters { self.makes_room_and_adds(known, one, outcome).err() } else { None };
        if travels && matches!(error, None | Some("ERR_POOL_FULL")) {
            outcome.broadcast.push(id);
        }
        match error {
            Some(code) => outcome.errors.push((id, code)),
            None if enters => outcome.accept.push(id),
            None => {}
        }
    }

    fn makes_room_and_adds(
        &mut self,
        known: &ModelContext,
        one: &Arc<SignedTransaction>,
        outcome: &mut Outcome,
    ) -> Result<(), &'static str> {
        if self.pending.len() >= known.rules().pool.max_transactions {
            let lowest = self.gives_way().filter(|lowest| lowest.1 < one.fee()).ok_or("ERR_POOL_FULL")?;
            self.pending.shift_remove(&lowest.0);
            outcome.evicted.push(lowest.0);
        }
        self.fits(known, one).map_err(|_| "ERR_APPLY")?;
        self.pending.insert(one.id(), one.clone());
        outcome.added.push(one.id());
        Ok(())
    }

    /// Returns the transaction to evict. Among the hundred cheapest (the newest of equal fees first), it is the first one that is its
    /// sender's last. If there is none, it is the cheapest among the last transactions of the first hundred senders.
    fn gives_way(&self) -> Option<(TransactionId, Arktoshi)> {
        let is_last = |place: usize, one: &SignedTransaction| {
            let sender = one.sender_address();
            !self.pending.values().skip(place + 1).any(|later| later.sender_address() == sender)
        };
        let mut all: Vec<_> = self.pending.values().enumerate().collect();
        all.sort_by_key(|(place, one)| (one.fee(), Reverse(*place)));
        let cheap = all.iter().take(100).find(|(place, one)| is_last(*place, one));
        if let Some((_, one)) = cheap {
            return Some((one.id(), one.fee()));
        }
        let mut senders = BTreeSet::new();
        let mut first: Vec<_> = self.pending.values().filter(|one| senders.insert(one.sender_address())).collect();
        first.truncate(100);
        let lasts = first.into_iter().filter_map(|one| {
            let sender = one.sender_address();
            self.pending.values().rfind(|other| other.sender_address() == sender)
        });
        lasts.min_by_key(|one| one.fee()).map(|one| (one.id(), one.fee()))
    }
}

/// The least fee at a rate in arktoshi a byte: half the bytes count, and some more by type. Source: consensus.md 5.3.
pub(super) fn least_fee(rules: &PoolRules, one: &SignedTransaction, rate: u64) -> Arktoshi {
    let more: u64 = match one.kind() {
        Kind::HtlcClaim | Kind::HtlcRefund => return Arktoshi::ZERO,
        Kind::DelegateRegistration => 400_000,
        Kind::MultiSignature | Kind::MultiPayment => 500,
        Kind::SecondSignature | Kind::Ipfs => 250,
        Kind::Transfer | Kind::Vote | Kind::DelegateResignation | Kind::HtlcLock => 100,
        kind => business::more_bytes(kind),
    };
    let bytes = one.size() as u64;
    let counted = if rules.fees_count_half_size { bytes.div_ceil(2) } else { bytes.div_ceil(2) + bytes / 2 };
    (more + counted).checked_mul(rate.max(1)).and_then(Arktoshi::new).unwrap_or(Arktoshi::MAX)
}
