//! The pool as a head shows it.

use crate::protocol::{SignedTransaction, TransactionId};
use imbl::OrdMap;
use std::{
    cmp::Reverse,
    sync::{Arc, OnceLock},
};

/// Highest fee first, then first come.
type Place = (Reverse<u64>, u64);

/// Pending transactions.
#[derive(Clone, Default)]
pub struct Pending {
    by_fee: OrdMap<Place, Arc<SignedTransaction>>,
    by_id: OrdMap<TransactionId, Place>,
    arrivals: u64,
    /// In the order in which they would be forged, made when first asked for.
    ordered: Arc<OnceLock<Vec<Arc<SignedTransaction>>>>,
}

impl Pending {
    /// All in the order in which they would be forged.
    pub fn ordered(&self) -> &[Arc<SignedTransaction>] {
        self.ordered.get_or_init(|| crate::actors::pool::in_forging_order(self.by_fee.values().cloned()).collect())
    }

    /// One of them.
    pub fn get(&self, id: &TransactionId) -> Option<&Arc<SignedTransaction>> {
        self.by_fee.get(self.by_id.get(id)?)
    }

    pub(super) fn extend(&mut self, added: &[Arc<SignedTransaction>]) {
        added.iter().for_each(|transaction| self.add(transaction));
    }

    fn add(&mut self, transaction: &Arc<SignedTransaction>) {
        let place = (Reverse(transaction.transaction().fee.value()), self.arrivals);
        self.arrivals += 1;
        if let Some(old) = self.by_id.insert(transaction.id(), place) {
            self.by_fee.remove(&old);
        }
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
