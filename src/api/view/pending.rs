//! The pool as a head shows it.

use crate::protocol::{SignedTransaction, TransactionId};
use imbl::OrdMap;
use std::{
    cmp::Reverse,
    sync::{Arc, OnceLock},
};

/// The sort key: highest fee first, then first arrival.
type FeeOrder = (Reverse<u64>, u64);

/// Pending transactions.
#[derive(Clone, Default)]
pub struct Pending {
    by_fee: OrdMap<FeeOrder, Arc<SignedTransaction>>,
    by_id: OrdMap<TransactionId, FeeOrder>,
    arrivals: u64,
    /// The transactions in the order in which they would be forged, computed on first use.
    ordered: Arc<OnceLock<Vec<Arc<SignedTransaction>>>>,
}

impl Pending {
    /// All in the order in which they would be forged.
    pub fn ordered(&self) -> &[Arc<SignedTransaction>] {
        self.ordered.get_or_init(|| crate::actors::pool::in_forging_order(self.by_fee.values().cloned()).collect())
    }

    /// The pending transaction with an id.
    pub fn get(&self, id: &TransactionId) -> Option<&Arc<SignedTransaction>> {
        self.by_fee.get(self.by_id.get(id)?)
    }

    pub(super) fn extend(&mut self, added: &[Arc<SignedTransaction>]) {
        added.iter().for_each(|transaction| self.add(transaction));
    }

    fn add(&mut self, transaction: &Arc<SignedTransaction>) {
        if self.by_id.contains_key(&transaction.id()) {
            return;
        }
        let place = (Reverse(transaction.transaction().fee.value()), self.arrivals);
        self.arrivals += 1;
        self.by_id.insert(transaction.id(), place);
        self.by_fee.insert(place, transaction.clone());
        self.ordered = Arc::default();
    }

    pub(super) fn remove(&mut self, id: &TransactionId) {
        if let Some(place) = self.by_id.remove(id) {
            self.by_fee.remove(&place);
            self.ordered = Arc::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Arktoshi, KeyPair, Nonce, Transaction, crypto::CryptoMode};

    #[test]
    fn what_is_added_twice_is_there_once_and_what_is_removed_is_gone() {
        let keys = KeyPair::from_passphrase("pending", CryptoMode::Real);
        let transfer = |nonce, fee| {
            let transfer = Transaction::transfer(keys.public().address(23), Arktoshi::coins(1));
            Arc::new(transfer.nonce(Nonce(nonce)).fee(Arktoshi::coins(fee)).sign(&keys))
        };
        let all = [transfer(1, 1), transfer(2, 3), transfer(3, 1), transfer(4, 2)];
        let mut pending = Pending::default();
        all.iter().chain(&all).for_each(|transaction| pending.add(transaction));
        let fees = |pending: &Pending| -> Vec<u64> {
            pending.by_fee.values().map(|transaction| transaction.fee().value() / 100_000_000).collect()
        };
        assert_eq!(fees(&pending), [3, 2, 1, 1]);
        assert_eq!(pending.by_fee.values().nth(2).unwrap().id(), all[0].id(), "first come");
        let before = pending.clone();
        pending.remove(&all[0].id());
        pending.remove(&all[0].id());
        assert!(pending.get(&all[0].id()).is_none() && before.get(&all[0].id()).is_some());
        assert_eq!(fees(&pending), [3, 2, 1]);
        assert_eq!((before.ordered().len(), pending.ordered().len()), (4, 3));
    }
}
