//! Any bytes as a transaction: never a panic, and what is strictly accepted is exactly what encoding gives.
#![no_main]

use dposlab::protocol::{Height, Milestones, SignedTransaction, TransactionContext, transaction::Dialect};
use libfuzzer_sys::fuzz_target;
use std::{collections::BTreeSet, sync::LazyLock};

static MILESTONES: LazyLock<Milestones> = LazyLock::new(Milestones::testnet);

fuzz_target!(|bytes: &[u8]| {
    let genesis = BTreeSet::new();
    for height in [1, 2, 100_000] {
        let context = TransactionContext::new(23, MILESTONES.at(Height(height)), &genesis);
        let strict = SignedTransaction::from_bytes(bytes, &context);
        if let Ok(transaction) = &strict {
            assert_eq!(SignedTransaction::new(transaction.transaction().clone()).bytes(), bytes);
            let again = SignedTransaction::from_json(&transaction.to_json(), &context).expect("what we write we read");
            assert_eq!(&again, transaction);
        }
        let lax = SignedTransaction::from_bytes(bytes, &context.with_dialect(Dialect::Reference));
        if let Ok(strict) = strict {
            assert_eq!(lax.expect("strict is not laxer").id(), strict.id());
        }
    }
});
