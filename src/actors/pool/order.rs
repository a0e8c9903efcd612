//! The order in which pending transactions are forged. Source: consensus.md 5.5.

use super::nonce;
use crate::protocol::{Address, SignedTransaction, TransactionId};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Turns the order of fees (highest first, then first come) into the order of forging: each transaction follows all lower nonces
/// of its sender that have not come yet, ascending.
pub fn in_forging_order(
    by_fee: impl Iterator<Item = Arc<SignedTransaction>>,
) -> impl Iterator<Item = Arc<SignedTransaction>> {
    let by_fee: Vec<_> = by_fee.collect();
    let mut waiting: BTreeMap<Address, BTreeMap<u64, Arc<SignedTransaction>>> = BTreeMap::new();
    for transaction in &by_fee {
        if let Some(nonce) = nonce(transaction) {
            waiting.entry(transaction.sender_address()).or_default().insert(nonce, transaction.clone());
        }
    }
    let mut emitted: BTreeSet<TransactionId> = BTreeSet::new();
    by_fee.into_iter().flat_map(move |transaction| {
        let Some(nonce) = nonce(&transaction) else { return vec![transaction] };
        if emitted.contains(&transaction.id()) {
            return Vec::new();
        }
        let own = waiting.get_mut(&transaction.sender_address()).expect("every sender was entered above");
        let later = own.split_off(&(nonce + 1));
        let due = std::mem::replace(own, later);
        emitted.extend(due.values().map(|transaction| transaction.id()));
        due.into_values().collect()
    })
}
