//! Pools as a watch sees them: what each holds, what it drops, and what it has to take back.

use super::{Node, Seen};
use crate::{
    actors::{Event, NodeId, PoolError, SimTime, pool::PoolRejection},
    check::{
        Finding,
        conduct::{self, Conduct},
    },
    ledger::BlockTree,
    protocol::{Address, Block, Kind, SignedTransaction, TransactionId},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

impl Seen {
    pub(super) fn pool_added(&mut self, now: SimTime, node: NodeId, added: &[Arc<SignedTransaction>]) {
        let known = &mut self.nodes[node.0 as usize];
        // One that was added and gave way within one request is told as given way first and as added after that.
        let evicted = std::mem::take(&mut known.evicted);
        let stays = added.iter().filter(|one| !evicted.contains(&one.id()));
        known.pending.extend(stays.map(|one| (one.id(), one.clone())));
        let displaced = evicted.iter().filter(|id| added.iter().all(|one| one.id() != **id));
        known.evicted = displaced.copied().skip(added.len()).collect();
        // A transaction added at the instant at which a block comes in was handed on before it: the pool has yet to hear of
        // the block.
        if known.deviant || known.moved == Some(now) {
            return;
        }
        let broken = broken_pool(&self.tree, known, added);
        for (conduct, what) in broken {
            self.find(conduct, now, Some(node), None, what);
        }
    }

    pub(super) fn pool_rejected(&mut self, now: SimTime, node: NodeId, rejected: &[PoolRejection]) {
        let evicted = std::mem::take(&mut self.nodes[node.0 as usize].evicted);
        for rejection in rejected {
            match &rejection.error {
                PoolError::PoolFull { .. } => self.sometimes.count(conduct::FULL),
                PoolError::Apply(why) if !evicted.is_empty() => {
                    let what =
                        format!("room was made for {}, which was then refused: {why}", rejection.transaction.id());
                    self.find(&conduct::DISPLACED, now, Some(node), None, what);
                }
                _ => {}
            }
        }
    }

    pub(super) fn pool_removed(&mut self, node: NodeId, id: &TransactionId) {
        self.nodes[node.0 as usize].removed.push(*id);
    }

    /// Judges the transactions that left a pool without having been forged, outlived or outbid, though they could still be forged.
    pub(super) fn judge_removals(&mut self, now: SimTime, node: NodeId, with: &Event, beside: Option<&Block>) {
        let known = &mut self.nodes[node.0 as usize];
        if known.removed.is_empty() {
            return;
        }
        let removed = std::mem::take(&mut known.removed);
        let gone: Vec<_> = removed.iter().filter_map(|id| known.pending.remove(id)).collect();
        let forged = gone.iter().filter(|one| self.tree.block_of(&known.tip, &one.id()).is_some());
        known.taken.extend(forged.map(|one| (one.id(), one.clone())));
        let cause = match with {
            Event::BlockForged(_) => "while a block was made",
            Event::BlockApplied(_) => "with a block that was taken",
            Event::BlockRefused(_) => "with a block that was refused",
            Event::PoolReplaced(_) => "with a rollback",
            _ => "with others that came in",
        };
        let cause = cause.to_owned();
        self.judge_gone(now, node, &gone, beside, (&conduct::KEPT, cause));
    }

    fn judge_gone(
        &mut self,
        now: SimTime,
        node: NodeId,
        gone: &[Arc<SignedTransaction>],
        beside: Option<&Block>,
        (conduct, cause): (&Conduct, String),
    ) {
        let known = &self.nodes[node.0 as usize];
        let is_known = |finding: &Finding| finding.invariant == conduct.name && finding.cause == cause;
        if gone.is_empty() || known.deviant || self.findings.iter().any(is_known) {
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
        let lost = gone.iter().find(|one| {
            let fits = state.clone().try_apply(one, now.seconds(), &terms).is_ok();
            let expired = one.transaction().expiration().is_some_and(|at| at > 0 && at <= tip.height().0 + 1);
            fits && !expired && tree.block_of(&tip, &one.id()).is_none()
        });
        if let Some(lost) = lost {
            let what = format!("{} {} left the pool though it could still be forged", lost.kind().name(), lost.id());
            self.find_for(conduct, cause, now, Some(node), Some(&tip), what);
        }
    }

    pub(super) fn pool_replaced(&mut self, now: SimTime, node: NodeId, kept: &[Arc<SignedTransaction>]) {
        let kept: BTreeMap<_, _> = kept.iter().map(|one| (one.id(), one.clone())).collect();
        let before = std::mem::replace(&mut self.nodes[node.0 as usize].pending, kept.clone());
        let gone: Vec<_> = before.into_values().filter(|one| !kept.contains_key(&one.id())).collect();
        self.judge_gone(now, node, &gone, None, (&conduct::KEPT_IN_ROLLBACK, String::new()));
        let limit = self.tree.rules().pool.max_transactions;
        if kept.len() > limit && !self.nodes[node.0 as usize].deviant {
            let what = format!("it holds {} after a rollback, its limit is {limit}", kept.len());
            self.find(&conduct::POOL_SIZE, now, Some(node), None, what);
        }
        let (tree, known) = (self.tree.clone(), &mut self.nodes[node.0 as usize]);
        let (taken, tip) = (std::mem::take(&mut known.taken), known.tip.clone());
        let (still, reverted): (BTreeMap<_, _>, BTreeMap<_, _>) =
            taken.into_iter().partition(|(id, _)| tree.block_of(&tip, id).is_some());
        known.taken = still;
        let lost: Vec<_> = reverted.into_values().filter(|one| !kept.contains_key(&one.id())).collect();
        self.judge_gone(now, node, &lost, None, (&conduct::RETURNED, String::new()));
    }
}

/// Returns the transactions that a pool should not hold, for the senders of what was just added.
fn broken_pool(tree: &BlockTree, node: &Node, added: &[Arc<SignedTransaction>]) -> Vec<(&'static Conduct, String)> {
    let mut broken = Vec::new();
    let limit = tree.rules().pool.max_transactions;
    if node.pending.len() > limit {
        broken.push((&conduct::POOL_SIZE, format!("it holds {}, its limit is {limit}", node.pending.len())));
    }
    let applied = tree.applied(&node.tip);
    let senders: BTreeSet<Address> = added.iter().map(|one| one.sender_address()).collect();
    for sender in senders {
        let own: Vec<_> = node.pending.values().filter(|one| one.sender_address() == sender).collect();
        if let Some(one) = own.iter().find(|one| tree.block_of(&node.tip, &one.id()).is_some()) {
            broken.push((&conduct::POOL_FORGED, format!("{} {} is on its chain", one.kind().name(), one.id())));
        }
        let mut nonces: Vec<u64> = own.iter().filter_map(|one| one.nonce()).map(|nonce| nonce.0).collect();
        nonces.sort_unstable();
        let forged = applied.state.wallet(&sender).map_or(0, |wallet| wallet.nonce.0);
        if !nonces.iter().copied().eq((forged + 1..).take(nonces.len())) {
            let what = format!("it holds nonces {nonces:?} of {sender}, whose nonce is {forged}");
            broken.push((&conduct::POOL_NONCES, what));
        }
        for kind in ONE_OF_A_KIND {
            let count = own.iter().filter(|one| one.kind() == kind).count();
            if count > 1 {
                let what = format!("it holds {count} of type {} of {sender}", kind.name());
                broken.push((&conduct::POOL_ONE_OF_A_KIND, what));
            }
        }
    }
    broken
}

/// The types of which a pool takes one of each sender at a time. Source: consensus.md 5.2.
const ONE_OF_A_KIND: [Kind; 5] =
    [Kind::SecondSignature, Kind::DelegateRegistration, Kind::Vote, Kind::MultiSignature, Kind::DelegateResignation];
