//! Laws that hold for every transaction and block, with values drawn by proptest.

use super::{
    samples::{Sample, keys, old_sample, sample},
    support::Rules,
};
use dposlab::protocol::{
    Arktoshi, Block, BlockDraft, BlockId, KeyPair, SignedTransaction, Timestamp, Transaction,
    crypto::{CryptoMode::Real, ecdsa, schnorr},
    transaction::Dialect,
};
use proptest::prelude::*;
use std::sync::Arc;

/// Decoding undoes encoding, by bytes and by JSON, and the id stays.
fn comes_back(sample: &Sample, last_block: u64) {
    let rules = Rules::of("testnet");
    let (signed, context) = (&sample.signed, rules.at(last_block, Dialect::Strict));
    assert_eq!(signed.check(&context), Ok(()));
    let from_bytes = SignedTransaction::from_bytes(&signed.bytes(), &context).unwrap();
    assert_eq!(&from_bytes, signed);
    assert_eq!([signed.size(), from_bytes.size()], [signed.bytes().len(); 2]);
    let from_json = SignedTransaction::from_json(&signed.to_json(), &context).unwrap();
    assert_eq!(&from_json, signed);
    assert_eq!(from_bytes.to_json(), signed.to_json());
    assert_eq!(SignedTransaction::new(from_bytes.transaction().clone()).id(), signed.id());
    assert!(sample.holds(&from_bytes));
    let lax = SignedTransaction::from_bytes(&signed.bytes(), &rules.at(last_block, Dialect::Reference)).unwrap();
    assert_eq!(&lax, signed);
}

/// No bit can change without somebody noticing.
fn guards_every_bit(sample: &Sample, last_block: u64, bit: usize) {
    let rules = Rules::of("testnet");
    let mut bytes = sample.signed.bytes();
    let bit = bit % (8 * bytes.len());
    bytes[bit / 8] ^= 1 << (bit % 8);
    if let Ok(changed) = SignedTransaction::from_bytes(&bytes, &rules.at(last_block, Dialect::Strict)) {
        assert_ne!(changed.id(), sample.signed.id(), "bit {bit} of {}", hex::encode(sample.signed.bytes()));
        assert!(!sample.holds(&changed), "bit {bit} of {}", hex::encode(sample.signed.bytes()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_transaction_comes_back_from_bytes_and_json(sample in sample()) {
        comes_back(&sample, 100_000);
    }

    #[test]
    fn an_old_transaction_comes_back_from_bytes_and_json(sample in old_sample()) {
        comes_back(&sample, 1);
    }

    #[test]
    fn any_bit_of_a_transaction_is_guarded(sample in sample(), bits in proptest::collection::vec(any::<usize>(), 8)) {
        bits.into_iter().for_each(|bit| guards_every_bit(&sample, 100_000, bit));
    }

    /// All but the expiration, which version 1 sends and does not sign.
    #[test]
    fn any_signed_bit_of_an_old_transaction_is_guarded(sample in old_sample(), bit in any::<usize>()) {
        let bit = bit % (8 * sample.signed.bytes().len());
        let transfer = sample.signed.amount() > Arktoshi::ZERO;
        // After the fixed part (49 bytes), the length of the absent vendor field (1) and the amount (8).
        let expiration = 58..62;
        prop_assume!(!(transfer && expiration.contains(&(bit / 8))));
        guards_every_bit(&sample, 1, bit);
    }

    /// Whatever is decoded is exactly what encoding gives: encoding undoes decoding.
    #[test]
    fn what_decodes_encodes_to_the_same(sample in sample(), at in any::<usize>(), new in proptest::collection::vec(any::<u8>(), 0..4)) {
        let mut bytes = sample.signed.bytes();
        let at = at % bytes.len();
        bytes.splice(at..(at + 2).min(sample.signed.bytes().len()), new);
        let rules = Rules::of("testnet");
        if let Ok(changed) = SignedTransaction::from_bytes(&bytes, &rules.at(100_000, Dialect::Strict)) {
            let again = SignedTransaction::new(changed.transaction().clone());
            prop_assert_eq!(again.bytes(), &bytes[..]);
            prop_assert_eq!(again.id(), changed.id());
        }
    }

    #[test]
    fn random_bytes_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let rules = Rules::of("testnet");
        for dialect in [Dialect::Strict, Dialect::Reference, Dialect::Stored] {
            let _ = SignedTransaction::from_bytes(&bytes, &rules.at(2, dialect));
        }
        prop_assert!(Block::from_bytes(&bytes, &rules.blocks()).is_err());
    }

    #[test]
    fn what_is_signed_verifies_and_nothing_else_does(keys in keys(), other in keys(), hash in any::<[u8; 32]>(), bit in 0usize..512) {
        let signature = schnorr::sign(&hash, &keys);
        prop_assert!(schnorr::verify(&hash, &signature, keys.public(), Real));
        prop_assert!(keys == other || !schnorr::verify(&hash, &signature, other.public(), Real));
        let mut broken = signature;
        broken[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!schnorr::verify(&hash, &broken, keys.public(), Real));

        let signature = ecdsa::sign(&hash, &keys);
        prop_assert!(ecdsa::verify(&hash, &signature, keys.public(), Real));
        let mut broken = signature.clone();
        broken[bit / 8 % signature.len()] ^= 1 << (bit % 8);
        prop_assert!(!ecdsa::verify(&hash, &broken, keys.public(), Real));
    }

    #[test]
    fn a_block_comes_back_and_any_bit_of_it_is_guarded(samples in proptest::collection::vec(sample(), 0..4), bits in proptest::collection::vec(any::<usize>(), 8)) {
        let rules = Rules::of("testnet");
        let (context, milestones) = (rules.blocks(), &rules.milestones);
        // A block's sum must stay an amount, and participants' signatures are the wallet's business.
        let mut transactions: Vec<Arc<SignedTransaction>> = Vec::new();
        for sample in samples.into_iter().filter(|sample| sample.wallet.is_none() && sample.second.is_none()) {
            let expires = sample.signed.transaction().expiration().is_some_and(|height| height <= 75_000);
            let small = sample.signed.amount().value() < 1 << 60 && sample.signed.fee().value() < 1 << 60;
            if small && !expires {
                transactions.push(Arc::new(sample.signed));
            }
        }
        transactions.dedup_by_key(|transaction| transaction.id());
        let draft = BlockDraft {
            timestamp: Timestamp(8000),
            height: 75_000.into(),
            previous: Some(BlockId::Numeric(7)),
            reward: Arktoshi::ZERO,
            version: 0,
            transactions,
        };
        let block = Block::forge(draft, &KeyPair::from_passphrase("forger", Real), milestones);
        prop_assert_eq!(&**block.check_content(&context), []);
        let bytes = block.to_bytes(milestones);
        prop_assert_eq!(bytes.len(), block.size(milestones));
        prop_assert_eq!(&Block::from_bytes(&bytes, &context).unwrap(), &block);
        prop_assert_eq!(&Block::from_json(&block.to_json(milestones), &context).unwrap(), &block);
        let count = block.transactions.len() as u32;
        let mut some: Vec<Vec<u32>> = (0..=count).map(|index| vec![index]).collect();
        // All in another order, one twice, and some that are not there.
        some.extend([Vec::new(), (0..count).rev().collect(), vec![count / 2, u32::MAX, count / 2, count]]);
        for indexes in &some {
            let read = Block::excerpt_from_bytes(&bytes, indexes, &context);
            prop_assert_eq!(read, Ok(block.excerpt(indexes)), "{:?}", indexes);
        }
        for bit in bits {
            let (mut changed, bit) = (bytes.clone(), bit % (8 * bytes.len()));
            changed[bit / 8] ^= 1 << (bit % 8);
            for indexes in &some {
                let _no_panic = Block::excerpt_from_bytes(&changed, indexes, &context);
                let _no_panic = Block::excerpt_from_bytes(&changed[..bit / 8], indexes, &context);
            }
            if let Ok(changed) = Block::from_bytes(&changed, &context) {
                prop_assert!(!changed.check_content(&context).is_empty(), "bit {}", bit);
            }
        }
    }
}

/// Version 1 leaves exactly the 32 bits of a transfer's expiration unguarded, and not one more.
#[test]
fn an_old_transfer_leaves_only_its_expiration_unguarded() {
    let rules = Rules::of("testnet");
    let keys = KeyPair::from_passphrase("an old sender", Real);
    let signed =
        Transaction::transfer(keys.public().address(23), Arktoshi::coins(1)).version_one(Timestamp(100)).sign(&keys);
    let escapes = |bit: &usize| {
        let mut bytes = signed.bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let changed = SignedTransaction::from_bytes(&bytes, &rules.at(1, Dialect::Strict));
        changed.is_ok_and(|changed| changed.id() == signed.id() || changed.verified(Real))
    };
    let unguarded: Vec<usize> = (0..8 * signed.bytes().len()).filter(escapes).collect();
    assert_eq!(unguarded, (8 * 58..8 * 62).collect::<Vec<_>>());
}
