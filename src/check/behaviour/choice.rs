//! The choice of a pool's transactions for a block. Source: consensus.md 2.3, 5.5.

use super::{
    Case,
    pool::{MARGIN, PoolChanges, PoolModel, nonce, take},
};
use crate::{
    actors::{Message, Role},
    check::{conduct, selection::ChosenTransactions},
    protocol::{SignedTransaction, TransactionId, hashing::IdHash},
};
use indexmap::IndexMap;
use std::sync::Arc;

impl PoolModel {
    /// Returns the pending transactions by falling fee, then by arrival. The lower nonces of a sender precede
    /// each of its transactions.
    fn in_order(&self) -> Vec<Arc<SignedTransaction>> {
        let mut by_fee: Vec<_> = self.pending.values().cloned().collect();
        by_fee.sort_by_key(|one| std::cmp::Reverse(one.fee()));
        let mut order: IndexMap<TransactionId, Arc<SignedTransaction>, IdHash> = IndexMap::default();
        for one in by_fee {
            if let Some(last) = nonce(&one) {
                let sender = one.sender_address();
                let mut before: Vec<_> =
                    self.own(&sender).filter(|own| nonce(own).is_some_and(|nonce| nonce < last)).collect();
                before.sort_by_key(|own| nonce(own));
                for own in before {
                    order.entry(own.id()).or_insert_with(|| own.clone());
                }
            }
            order.entry(one.id()).or_insert(one);
        }
        order.into_values().collect()
    }

    pub(super) fn judge_choice(&mut self, case: &mut Case<'_>, told: &mut PoolChanges) {
        let milestone = case.known.tree.config().milestones.at(self.tip.height());
        let (most, bytes) = (milestone.block.max_transactions, milestone.block.max_payload.saturating_sub(MARGIN));
        let (applied, terms) = (case.known.tree.applied(&self.tip), case.known.tree.terms(self.tip.height()));
        let mut chosen = ChosenTransactions::new(&applied.state, &case.known.rules().pool);
        let (mut wanted, mut failed, mut size) = (Vec::new(), Vec::new(), 0);
        let now = case.step.local.seconds();
        let next = i64::from(self.tip.height().0) + 1;
        for one in self.in_order().into_iter().take(10 * most) {
            if wanted.len() == most {
                break;
            }
            let expires = !case.known.rules().pool.chooses_what_expires_next
                && self.expires_at(case.known, &one).is_some_and(|at| at <= next);
            let on_chain = case.known.is_forged(&self.tip, &one.id());
            if expires || on_chain || !chosen.add(&one, now, &terms) {
                failed.push(one.id());
                continue;
            }
            size += one.size();
            if size > bytes {
                break;
            }
            wanted.push(one.id());
        }
        let said = case.step.sent().find_map(|(to, message)| match message {
            Message::ForgingTransactions(chosen) if to.role == Role::Delegate => Some(chosen),
            _ => None,
        });
        let same = said.is_some_and(|chosen| chosen.iter().map(|one| one.id()).eq(wanted.iter().copied()));
        case.report.judge(&conduct::CHOSEN, same, || {
            let said: Option<Vec<TransactionId>> = said.map(|chosen| chosen.iter().map(|one| one.id()).collect());
            format!("of {} pending it chose {said:?}, expected {wanted:?}", self.pending.len())
        });
        for id in failed {
            self.pending.shift_remove(&id);
            let gone = take(&mut told.removed, &id);
            case.report.judge(&conduct::CHOSEN, gone, || format!("{id} cannot be forged and stays in the pool"));
        }
    }
}
