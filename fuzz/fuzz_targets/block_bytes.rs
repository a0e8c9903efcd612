//! Any bytes as a block: never a panic, and what is accepted is exactly what encoding gives.
#![no_main]

use dposlab::protocol::{Block, BlockContext, Milestones, crypto::CryptoMode, transaction::Dialect};
use libfuzzer_sys::fuzz_target;
use std::{collections::BTreeSet, sync::LazyLock};

static MILESTONES: LazyLock<Milestones> = LazyLock::new(Milestones::testnet);

fuzz_target!(|bytes: &[u8]| {
    let genesis = BTreeSet::new();
    let context = BlockContext::new(23, &MILESTONES, &genesis, CryptoMode::Real);
    if let Ok(block) = Block::from_bytes(bytes, &context) {
        assert_eq!(block.to_bytes(&MILESTONES), bytes);
        assert_eq!(block.size(&MILESTONES), bytes.len());
        let _ = block.check_content(&context);
        let again = Block::from_json(&block.to_json(&MILESTONES), &context).expect("what we write we read");
        assert_eq!(again, block);
    }
    let _ = Block::from_bytes(bytes, &context.with_dialect(Dialect::Reference));
});
