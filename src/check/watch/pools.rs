//! Pools as a watch sees them: what each holds, what it drops, and what it has to take back.

use super::{Node, Observations};
use crate::{
    actors::{Event, NodeId, PoolError, SimTime, pool::PoolRejection},
    check::{
        Certificate, Finding,
        conduct::{self, Conduct},
    },
    ledger::BlockTree,
    protocol::{Address, Arktoshi, Block, Kind, SignedTransaction, TransactionId},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

impl Observations {
    pub(super) fn pool_added(&mut self, now: SimTime, node: NodeId, added: &[Arc<SignedTransaction>]) {
        let known = &mut self.nodes[node.0 as usize];
        // A transaction that was added and evicted within one request is first reported as evicted, and then as added.
        let evicted = std::mem::take(&mut known.evicted);
        // A pool that begins anew reports all transactions that it retains as added.
        let new = added.iter().filter(|one| !known.pending.contains_key(&one.id())).map(|one| one.id()).collect();
        let stays = added.iter().filter(|one| !evicted.contains(&one.id()));
        known.pending.extend(stays.map(|one| (one.id(), one.clone())));
        let displaced = evicted.into_iter().filter(|id| added.iter().all(|one| one.id() != *id));
        known.evicted = displaced.skip(added.len()).collect();
        known.losses.adds(added);
        known.losses.holds(known.pending.len(), self.tree.rules().pool.max_transactions);
        // A transaction added at the instant at which a block comes in was handed on before it: the pool has yet to hear of
        // the block.
        if known.deviant || known.moved == Some(now) {
            return;
        }
        let broken = broken_pool(&self.tree, known, added, &new);
        for (conduct, cause, what, certificate) in broken {
            self.find_proved(conduct, (cause, certificate), now, Some(node), None, what);
        }
    }

    /// Records a transaction that a full pool evicted.
    pub(super) fn pool_evicted(&mut self, now: SimTime, node: NodeId, one: &Arc<SignedTransaction>) {
        self.sometimes.count(conduct::FULL);
        let known = &mut self.nodes[node.0 as usize];
        known.losses.makes_room(now, known.pending.len(), one);
        known.pending.remove(&one.id());
        known.evicted.insert(one.id());
    }

    pub(super) fn pool_rejected(&mut self, now: SimTime, node: NodeId, rejected: &[PoolRejection]) {
        let evicted = std::mem::take(&mut self.nodes[node.0 as usize].evicted);
        // The events do not show for which refused transaction room was made. It may have been the one with the highest fee.
        let refused = rejected.iter().filter(|rejection| matches!(rejection.error, PoolError::Apply(_)));
        let dearest = refused.map(|rejection| rejection.transaction.fee()).max();
        for rejection in rejected {
            match &rejection.error {
                PoolError::PoolFull { .. } => self.sometimes.count(conduct::FULL),
                PoolError::Apply(why) if !evicted.is_empty() => {
                    let what =
                        format!("room was made for {}, which was then refused: {why}", rejection.transaction.id());
                    let limit = self.tree.rules().pool.max_transactions;
                    let fee = dearest.unwrap_or(rejection.transaction.fee());
                    let proof = self.nodes[node.0 as usize].losses.room_proof(now, limit, fee);
                    self.find_proved(&conduct::DISPLACED, ("", proof.into()), now, Some(node), None, what);
                }
                _ => {}
            }
        }
    }

    pub(super) fn pool_removed(&mut self, now: SimTime, node: NodeId, id: &TransactionId) {
        let known = &mut self.nodes[node.0 as usize];
        if known.moved != Some(now) {
            known.grew_from = known.tip.clone();
        }
        known.removed.push(*id);
    }

    /// Records the time of a pool's event.
    pub(super) fn pool_speaks(&mut self, now: SimTime, node: NodeId) {
        self.nodes[node.0 as usize].losses.speaks(now);
    }

    /// Judges the transactions that left a pool without having been forged, outlived or outbid, though they could still be forged.
    pub(super) fn judge_removals(&mut self, now: SimTime, node: NodeId, with: &Event, beside: Option<&Block>) {
        let known = &mut self.nodes[node.0 as usize];
        if known.removed.is_empty() {
            return;
        }
        let removed = std::mem::take(&mut known.removed);
        let mut gone: Vec<_> = removed.iter().filter_map(|id| known.pending.remove(id)).collect();
        // The transactions of a block that was reverted at once have come back.
        if let Event::PoolReplaced(kept) = with {
            gone.retain(|one| !kept.iter().any(|other| other.id() == one.id()));
        }
        let forged = gone.iter().filter(|one| self.tree.block_of(&known.tip, &one.id()).is_some());
        known.taken.extend(forged.map(|one| (one.id(), one.clone())));
        let cause = match with {
            Event::BlockForged(_) => "while a block was made",
            Event::BlockApplied(_) => "with a block that was taken",
            Event::BlockRefused(_) => "with a block that was refused",
            Event::PoolReplaced(_) => "with a rollback",
            _ => "with others that came in",
        };
        let prove = |seen: &Self, lost: &SignedTransaction| seen.loss_proof(now, node, &gone, lost).into();
        self.judge_gone(now, node, &gone, beside, (&conduct::KEPT, cause), prove);
    }

    /// Reports a finding if one of the transactions that are gone could still be forged. The finding has a certificate if the loss of each
    /// such transaction is proved.
    fn judge_gone(
        &mut self,
        now: SimTime,
        node: NodeId,
        gone: &[Arc<SignedTransaction>],
        beside: Option<&Block>,
        (conduct, cause): (&Conduct, &str),
        prove: impl Fn(&Self, &SignedTransaction) -> Certificate,
    ) {
        let known = &self.nodes[node.0 as usize];
        let is_known = |finding: &&Finding| finding.invariant == conduct.name && finding.cause == cause;
        if gone.is_empty() || known.deviant || self.findings.iter().filter(is_known).count() == 2 {
            return;
        }
        let (tree, tip) = (self.tree.clone(), known.tip.clone());
        let applied = tree.applied(&tip);
        let terms = tree.terms(tip.height());
        let mut state = applied.state.clone();
        for chosen in beside.iter().flat_map(|block| &block.transactions) {
            // A block that does not apply is another finding.
            let _applied_or_not = state.try_apply(chosen, now.seconds(), &terms);
        }
        let is_lost = |one: &&Arc<SignedTransaction>| {
            let fits = state.clone().try_apply(one, now.seconds(), &terms).is_ok();
            let expired = one.transaction().expiration().is_some_and(|at| at > 0 && at <= tip.height().0 + 1);
            fits && !expired && tree.block_of(&tip, &one.id()).is_none() && !self.was_a_misfit(now, known, gone, one)
        };
        let proofs = gone.iter().filter(is_lost).map(|lost| (lost, prove(self, lost)));
        // An unproved loss takes precedence over proved ones.
        let Some((lost, certificate)) = proofs.min_by_key(|(_, certificate)| certificate.is_shown()) else { return };
        let what = format!("{} {} left the pool though it could still be forged", lost.kind().name(), lost.id());
        self.find_proved(conduct, (cause, certificate), now, Some(node), Some(&tip), what);
    }

    /// Returns true if a transaction did not fit behind its sender's other pending ones after a block below the tip, which the node
    /// applied at the instant of the drop. The pool follows block by block, so it may drop the transaction there.
    fn was_a_misfit(
        &self,
        now: SimTime,
        known: &Node,
        gone: &[Arc<SignedTransaction>],
        one: &Arc<SignedTransaction>,
    ) -> bool {
        let sender = one.sender_address();
        let others = gone.iter().chain(known.pending.values());
        let mut own: Vec<_> = others.filter(|other| other.sender_address() == sender).collect();
        own.sort_by_key(|other| other.nonce());
        let mut at = known.tip.parent();
        while let Some(link) = at.filter(|link| link.height() > known.grew_from.height()) {
            let (terms, mut state) = (self.tree.terms(link.height()), self.tree.applied(&link).state.clone());
            let pending = own.iter().filter(|other| self.tree.block_of(&link, &other.id()).is_none());
            let misfits = pending.filter(|other| state.try_apply(other, now.seconds(), &terms).is_err());
            if misfits.into_iter().any(|other| other.id() == one.id()) {
                return true;
            }
            at = link.parent();
        }
        false
    }

    pub(super) fn pool_replaced(&mut self, now: SimTime, node: NodeId, kept: &[Arc<SignedTransaction>]) {
        let limit = self.tree.rules().pool.max_transactions;
        let losses = &mut self.nodes[node.0 as usize].losses;
        let of_reverted = match self.tree.rules().pool.rollback_empties_pool {
            true => BTreeMap::new(),
            false => losses.reverted().clone(),
        };
        let reverted = losses.begins_anew(kept, limit);
        let kept: BTreeMap<_, _> = kept.iter().map(|one| (one.id(), one.clone())).collect();
        let before = std::mem::replace(&mut self.nodes[node.0 as usize].pending, kept.clone());
        let room = Room::of(&self.tree, &kept, before.values().chain(of_reverted.values()));
        let is_judged = |one: &Arc<SignedTransaction>| !kept.contains_key(&one.id()) && !room.is_denied(one);
        let gone: Vec<_> = before.into_values().filter(is_judged).collect();
        let prove = |seen: &Self, lost: &SignedTransaction| match &reverted {
            Some(reverted) if !reverted.contains(&lost.id()) => Certificate::Shown(
                "the pool begins anew with what the reverted blocks held, and this is not of it".to_owned(),
            ),
            Some(_) => Certificate::Missing(format!("{} was of a reverted block", lost.id())),
            None => seen.refused_proof(now, &seen.nodes[node.0 as usize], lost).into(),
        };
        self.judge_gone(now, node, &gone, None, (&conduct::KEPT_IN_ROLLBACK, ""), prove);
        if kept.len() > limit && !self.nodes[node.0 as usize].deviant {
            let what = format!("it holds {} after a rollback, its limit is {limit}", kept.len());
            let proof = self.nodes[node.0 as usize].losses.size_proof(kept.len());
            self.find_proved(&conduct::POOL_SIZE, ("", proof.into()), now, Some(node), None, what);
        }
        let (tree, known) = (self.tree.clone(), &mut self.nodes[node.0 as usize]);
        let (taken, tip) = (std::mem::take(&mut known.taken), known.tip.clone());
        let (still, reverted): (BTreeMap<_, _>, BTreeMap<_, _>) =
            taken.into_iter().partition(|(id, _)| tree.block_of(&tip, id).is_some());
        known.taken = still;
        let lost: Vec<_> = reverted.into_values().filter(is_judged).collect();
        self.judge_gone(now, node, &lost, None, (&conduct::RETURNED, ""), |_, _| Certificate::None);
    }
}

/// The room in a pool that has begun anew.
struct Room {
    /// The highest fee at which a transaction had to give way. `None` if the pool is not full or its transactions do not compete.
    dearest: Option<Arktoshi>,
}

impl Room {
    /// Computes the room beside `kept`, of `all` that could be pending. Only a sender's last transaction gives way. So a transaction had
    /// to give way if each sender with pending ones had a last one that was no cheaper, either still pending or already gone.
    fn of<'a>(
        tree: &BlockTree,
        kept: &BTreeMap<TransactionId, Arc<SignedTransaction>>,
        all: impl Iterator<Item = &'a Arc<SignedTransaction>>,
    ) -> Self {
        let rules = &tree.rules().pool;
        if rules.rollback_empties_pool || kept.len() < rules.max_transactions {
            return Self { dearest: None };
        }
        let mut lasts: BTreeMap<Address, &Arc<SignedTransaction>> = BTreeMap::new();
        for one in kept.values() {
            let last = lasts.entry(one.sender_address()).or_insert(one);
            if one.nonce() > last.nonce() {
                *last = one;
            }
        }
        let mut fees: BTreeMap<Address, Arktoshi> =
            lasts.into_iter().map(|(sender, last)| (sender, last.fee())).collect();
        for one in all.filter(|one| !kept.contains_key(&one.id())) {
            fees.entry(one.sender_address()).and_modify(|fee| *fee = one.fee().max(*fee));
        }
        Self { dearest: fees.into_values().min() }
    }

    /// Returns true if a transaction had to give way.
    fn is_denied(&self, one: &SignedTransaction) -> bool {
        self.dearest.is_some_and(|dearest| one.fee() <= dearest)
    }
}

/// A rule that a pool breaks, the cause, how, and the proof of the cause.
type PoolBreach = (&'static Conduct, &'static str, String, Certificate);

/// Returns the transactions that a pool should not hold, for the senders of what was just added.
/// `new` are those of them that were not pending before.
fn broken_pool(
    tree: &BlockTree,
    node: &Node,
    added: &[Arc<SignedTransaction>],
    new: &BTreeSet<TransactionId>,
) -> Vec<PoolBreach> {
    let mut broken = Vec::new();
    let limit = tree.rules().pool.max_transactions;
    if node.pending.len() > limit {
        let held = node.pending.len();
        let what = format!("it holds {held}, its limit is {limit}");
        broken.push((&conduct::POOL_SIZE, "", what, node.losses.size_proof(held).into()));
    }
    let applied = tree.applied(&node.tip);
    let senders: BTreeSet<Address> = added.iter().map(|one| one.sender_address()).collect();
    for sender in senders {
        let own: Vec<_> = node.pending.values().filter(|one| one.sender_address() == sender).collect();
        if let Some(one) = own.iter().find(|one| tree.block_of(&node.tip, &one.id()).is_some()) {
            let what = format!("{} {} is on its chain", one.kind().name(), one.id());
            broken.push((&conduct::POOL_FORGED, "", what, Certificate::None));
        }
        if let Some(what) = broken_share(tree, &sender, &own, new) {
            broken.push((&conduct::POOL_SIZE, "of one sender", what, Certificate::None));
        }
        let mut nonces: Vec<u64> = own.iter().filter_map(|one| one.nonce()).map(|nonce| nonce.0).collect();
        nonces.sort_unstable();
        let forged = applied.state.wallet(&sender).map_or(0, |wallet| wallet.nonce.0);
        if !nonces.iter().copied().eq((forged + 1..).take(nonces.len())) {
            let what = format!("it holds nonces {nonces:?} of {sender}, whose nonce is {forged}");
            broken.push((&conduct::POOL_NONCES, "", what, Certificate::None));
        }
        for kind in ONE_OF_A_KIND {
            let of_kind = own.iter().filter(|one| one.kind() == kind);
            let alike: Vec<TransactionId> = of_kind.map(|one| one.id()).collect();
            // A rollback that does not empty the pool brings a transaction back beside a later one. Each was allowed at its time.
            let came_back = !tree.rules().pool.rollback_empties_pool && alike.iter().all(|one| !new.contains(one));
            if alike.len() > 1 && !came_back {
                let what = format!("it holds {} of type {} of {sender}", alike.len(), kind.name());
                broken.push((&conduct::POOL_ONE_OF_A_KIND, "", what, node.losses.request_proof(&alike).into()));
            }
        }
    }
    broken
}

/// Returns how a pool breaks its limit for a sender, whose pending transactions are `own`. Where a whole request is checked before any of
/// it is added (Q15), all of it counts as the first of it. A rollback may bring back more than the limit, and adds none.
fn broken_share(
    tree: &BlockTree,
    sender: &Address,
    own: &[&Arc<SignedTransaction>],
    new: &BTreeSet<TransactionId>,
) -> Option<String> {
    let rules = &tree.rules().pool;
    let limit = rules.max_transactions_per_sender;
    let is_free = own.iter().any(|one| rules.allowed_senders.contains(one.sender()));
    let new = own.iter().filter(|one| new.contains(&one.id())).count();
    let counted = if rules.checks_precede_adding { new } else { 1 };
    let is_broken = !is_free && new > 0 && own.len() >= limit + counted;
    is_broken.then(|| format!("it holds {} of {sender}, its limit for a sender is {limit}", own.len()))
}

/// The types of which a pool takes one of each sender at a time. Source: consensus.md 5.2.
const ONE_OF_A_KIND: [Kind; 5] =
    [Kind::SecondSignature, Kind::DelegateRegistration, Kind::Vote, Kind::MultiSignature, Kind::DelegateResignation];
