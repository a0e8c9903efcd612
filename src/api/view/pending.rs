//! The pending transactions of one head: in the pool's order, and by id.

use crate::protocol::{SignedTransaction, TransactionId};
use imbl::OrdMap;
use std::{cmp::Reverse, sync::Arc};

/// Pending transactions. A copy shares all that does not change.
#[derive(Clone, Default)]
pub(super) struct Pending {
    /// Highest fee first, then first come.
    by_fee: OrdMap<Place, Arc<SignedTransaction>>,
    places: OrdMap<TransactionId, Place>,
    arrivals: u64,
}

type Place = (Reverse<u64>, u64);

impl Pending {
    /// Adds one behind those of its fee, unless it is there.
    pub fn add(&mut self, transaction: &Arc<SignedTransaction>) {
        if self.places.contains_key(&transaction.id()) {
            return;
        }
        let place = (Reverse(transaction.transaction().fee.value()), self.arrivals);
        self.arrivals += 1;
        self.places.insert(transaction.id(), place);
        self.by_fee.insert(place, transaction.clone());
    }

    /// Takes one out, if it is there.
    pub fn remove(&mut self, id: &TransactionId) {
        if let Some(place) = self.places.remove(id) {
            self.by_fee.remove(&place);
        }
    }

    /// One of them.
    pub fn get(&self, id: &TransactionId) -> Option<&Arc<SignedTransaction>> {
        self.by_fee.get(self.places.get(id)?)
    }

    /// All, highest fee first, then first come.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<SignedTransaction>> {
        self.by_fee.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Arktoshi, KeyPair, Nonce, Transaction};

    #[test]
    fn what_is_added_twice_is_there_once_and_what_is_removed_is_gone() {
        let keys = KeyPair::from_passphrase("pending");
        let transfer = |nonce, fee| {
            let transfer = Transaction::transfer(keys.public().address(23), Arktoshi::coins(1));
            Arc::new(transfer.nonce(Nonce(nonce)).fee(Arktoshi::coins(fee)).sign(&keys))
        };
        let all = [transfer(1, 1), transfer(2, 3), transfer(3, 1), transfer(4, 2)];
        let mut pending = Pending::default();
        all.iter().chain(&all).for_each(|transaction| pending.add(transaction));
        let fees = |pending: &Pending| pending.iter().map(|one| one.fee().value() / 100_000_000).collect::<Vec<_>>();
        assert_eq!(fees(&pending), [3, 2, 1, 1]);
        assert_eq!(pending.iter().nth(2).unwrap().id(), all[0].id(), "first come");
        let before = pending.clone();
        pending.remove(&all[0].id());
        pending.remove(&all[0].id());
        assert!(pending.get(&all[0].id()).is_none() && before.get(&all[0].id()).is_some());
        assert_eq!(fees(&pending), [3, 2, 1]);
    }
}
