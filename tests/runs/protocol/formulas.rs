//! Formulas of the contract, worked out again here and held over whole ranges: forging orders, fees, the id that a block
//! names its parent by, and what is remembered of a second signature. Source: consensus.md 1.3, 5.3; protocol.md 4.

use super::{samples::sample, support::Rules};
use dposlab::protocol::{
    Arktoshi, Block, BlockDraft, BlockId, Height, KeyPair, Milestones, Nonce, RoundNumber, SignedTransaction,
    Timestamp, Transaction,
    crypto::CryptoMode::Real,
    shuffle::forging_order,
    transaction::{Dialect, StaticFees},
};
use proptest::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256};

/// The forging order as consensus.md 1.3 writes it down.
fn shuffled(round: u32, members: usize) -> Vec<usize> {
    let mut list: Vec<usize> = (0..members).collect();
    let mut digest = Sha256::digest(round.to_string()).to_vec();
    let mut active = 0;
    while active < members {
        for byte in &digest[..4] {
            if active < members {
                list.swap(active, usize::from(*byte) % members);
                active += 1;
            }
        }
        digest = Sha256::digest(&digest).to_vec();
        active += 1;
    }
    list
}

#[test]
fn every_round_has_its_own_order() {
    let mut seen = std::collections::BTreeSet::new();
    for round in (1..3_000).chain([65_535, 65_536, 65_537, 1 << 24, u32::MAX]) {
        let order = forging_order(RoundNumber(round), 51);
        assert_eq!(order, shuffled(round, 51), "round {round}");
        assert!(seen.insert(order), "round {round} has the order of an earlier one");
    }
}

/// Half of the bytes count, rounded up.
fn least_fee(bytes: usize, addon: u64, rate: u64) -> u128 {
    u128::from(addon + bytes as u64 / 2 + bytes as u64 % 2) * u128::from(rate)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_forging_order_is_the_contracts(round in any::<u32>(), members in 1..80usize) {
        prop_assert_eq!(forging_order(RoundNumber(round), members), shuffled(round, members));
    }

    #[test]
    fn a_dynamic_fee_counts_half_of_the_bytes_rounded_up(
        sample in sample(), addon in 0..500_000u64, rate in 1..9_000u64,
    ) {
        let per_byte = Arktoshi::new(rate).expect("an amount");
        let fee = StaticFees::dynamic(&sample.signed, addon, per_byte);
        prop_assert_eq!(u128::from(fee.value()), least_fee(sample.signed.bytes().len(), addon, rate));
    }

    /// Of each kind what the table says; a registration of a shared wallet pays for each participant and once more.
    #[test]
    fn a_static_fee_is_that_of_the_table(sample in sample()) {
        let milestones = Milestones::testnet();
        let fees = &milestones.at(Height(100_000)).fees;
        let transaction = sample.signed.transaction();
        let json = sample.signed.to_json();
        let participants = json["asset"]["multiSignature"]["publicKeys"].as_array().map_or(0, Vec::len) as u64;
        let wanted = fees.get(transaction.asset.kind()).value() * (participants + 1);
        prop_assert_eq!(fees.of(transaction).value(), wanted);
    }

    /// The limit of a vendor field is one of bytes: 64 at first, 255 from the milestone on.
    #[test]
    fn a_vendor_field_has_so_many_bytes(
        letters in prop::collection::vec(prop::sample::select(vec!["a", "ä", "€", "𝄞"]), 1..140),
    ) {
        let (text, keys) = (letters.concat(), KeyPair::from_passphrase("a writer", Real));
        prop_assume!(text.len() <= 255);
        let transfer = Transaction::transfer(keys.public().address(23), Arktoshi::coins(1)).nonce(Nonce(1));
        let signed = transfer.vendor_field(&text).sign(&keys);
        for (last_block, limit) in [(2, 64), (99_999, 64), (100_000, 255)] {
            let rules = Rules::of("testnet");
            let context = rules.at(last_block, Dialect::Strict);
            let fits = text.len() <= limit;
            prop_assert_eq!(signed.check(&context).is_ok(), fits, "{} bytes, {} at most", text.len(), limit);
            prop_assert_eq!(SignedTransaction::from_bytes(&signed.bytes(), &context).is_ok(), fits);
            prop_assert_eq!(SignedTransaction::from_json(&signed.to_json(), &context).is_ok(), fits);
        }
    }

    /// Whichever keys are asked for, in whichever order, a second signature holds for the key that made it alone.
    #[test]
    fn a_second_signature_is_one_keys(asked in prop::collection::vec(0..3usize, 1..8), by in 0..3usize) {
        let seconds = ["one", "two", "three"].map(|text| KeyPair::from_passphrase(text, Real));
        let first = KeyPair::from_passphrase("first", Real);
        let transfer = Transaction::transfer(first.public().address(23), Arktoshi::coins(1)).nonce(Nonce(1));
        let signed = transfer.sign(&first).second_sign(&seconds[by]);
        for key in asked {
            prop_assert_eq!(signed.verify_second(seconds[key].public(), Real), key == by, "key {} of {}", key, by);
        }
    }
}

/// A chain over the height at which ids become long: each block names its parent by the id that the parent has, and bytes
/// and JSON keep it. Up to the switch that is a number of eight bytes; the first long one stands above it.
#[test]
fn each_block_names_its_parent_by_the_id_it_has() {
    const SWITCH: u32 = 5;
    let mut list: Vec<_> = Milestones::testnet().all().iter().map(|one| one.json.clone()).collect();
    list.insert(2, json!({ "height": SWITCH, "block": { "idFullSha256": true } }));
    let milestones = Milestones::from_json(&list.into()).expect("a valid change");
    let (mut rules, forger) = (Rules::of("testnet"), KeyPair::from_passphrase("a forger", Real));
    rules.milestones = milestones;
    let mut parent: Option<(BlockId, usize)> = None;
    for height in 1..SWITCH + 4 {
        let draft = BlockDraft {
            timestamp: Timestamp(8 * height),
            height: Height(height),
            previous: parent.map(|(id, _)| id),
            reward: Arktoshi::ZERO,
            version: 0,
            transactions: Vec::new(),
        };
        let block = Block::forge(draft, &forger, &rules.milestones);
        assert_eq!(matches!(block.id, BlockId::Numeric(_)), height < SWITCH, "height {height}");
        let bytes = block.to_bytes(&rules.milestones);
        assert_eq!(bytes.len(), block.size(&rules.milestones), "height {height}");
        let ends = bytes.len() - block.header.signature.len();
        if let Some((_, before)) = parent {
            assert_eq!(ends - before, if height == SWITCH + 1 { 24 } else { 0 }, "height {height}");
        }
        let read = Block::from_bytes(&bytes, &rules.blocks()).expect("it has its form");
        assert_eq!((read.id, read.header.previous), (block.id, parent.map(|(id, _)| id)), "height {height}");
        let read = Block::from_json(&block.to_json(&rules.milestones), &rules.blocks()).expect("it has its form");
        assert_eq!((read.id, read.header.previous), (block.id, parent.map(|(id, _)| id)), "height {height}");
        parent = Some((block.id, ends));
    }
}
