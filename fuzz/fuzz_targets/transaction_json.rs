//! Any JSON as a transaction: never a panic, and what is accepted can be sent and read again.
#![no_main]

use dposlab::protocol::{Height, Milestones, SignedTransaction, TransactionContext, transaction::Dialect};
use libfuzzer_sys::fuzz_target;
use std::{collections::BTreeSet, sync::LazyLock};

static MILESTONES: LazyLock<Milestones> = LazyLock::new(Milestones::testnet);

fuzz_target!(|bytes: &[u8]| {
    let Ok(json) = serde_json::from_slice(bytes) else { return };
    let genesis = BTreeSet::new();
    for height in [1, 2] {
        let context = TransactionContext::new(23, MILESTONES.at(Height(height)), &genesis);
        for dialect in [Dialect::Strict, Dialect::Reference, Dialect::Stored] {
            let context = context.with_dialect(dialect);
            let _ = SignedTransaction::check_shape(&json, &context);
            if let Ok(transaction) = SignedTransaction::from_json(&json, &context) {
                let again = SignedTransaction::from_bytes(&transaction.bytes(), &context).expect("what we send we read");
                assert_eq!(again.id(), transaction.id());
            }
        }
    }
});
