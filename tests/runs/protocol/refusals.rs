//! Faults that an API's user meets: each names the thing, what was found and what is allowed.

use super::support::Rules;
use dposlab::protocol::{
    Arktoshi, Block, BlockDraft, BlockError, BlockId, Height, KeyPair, Milestones, Nonce, SignedTransaction, Slot,
    Slots, Timestamp, Transaction, TransactionContext,
    crypto::CryptoMode::Real,
    network::Exceptions,
    transaction::{Asset, Dialect, TransactionBuilder, TransactionError},
};
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc};

fn keys() -> KeyPair {
    KeyPair::from_passphrase("refusals", Real)
}

fn transfer() -> TransactionBuilder {
    Transaction::transfer(keys().public().address(23), Arktoshi::coins(1))
}

fn refusal(signed: &SignedTransaction, last_block: u64) -> String {
    let rules = Rules::of("testnet");
    SignedTransaction::from_bytes(&signed.bytes(), &rules.at(last_block, Dialect::Strict)).unwrap_err().to_string()
}

#[test]
fn versions_bind_by_the_last_block() {
    let (new, old) = (transfer().sign(&keys()), transfer().version_one(Timestamp(5)).sign(&keys()));
    assert_eq!(refusal(&new, 1), "Version 2 not supported.");
    assert_eq!(refusal(&old, 2), "Version 1 not supported.");
    let rules = Rules::of("testnet");
    assert!(SignedTransaction::from_bytes(&new.bytes(), &rules.at(1, Dialect::Stored)).is_ok());
    assert!(SignedTransaction::from_bytes(&old.bytes(), &rules.at(2, Dialect::Stored)).is_ok());
}

#[test]
fn texts_say_what_is_wrong() {
    let long = transfer().vendor_field("x".repeat(65)).sign(&keys());
    assert!(refusal(&long, 2).ends_with("allowed is a text of at most 64 bytes in UTF-8"), "{}", refusal(&long, 2));
    let rules = Rules::of("testnet");
    assert!(SignedTransaction::from_bytes(&long.bytes(), &rules.at(100_000, Dialect::Strict)).is_ok());

    let free = transfer().fee(Arktoshi::ZERO).sign(&keys());
    assert!(refusal(&free, 2).starts_with("transaction member `fee` is \"0\""), "{}", refusal(&free, 2));
    let genesis = BTreeSet::from([free.id()]);
    let context = TransactionContext::new(23, rules.milestones.at(Height(2)), &genesis);
    assert!(SignedTransaction::from_bytes(&free.bytes(), &context).is_ok());

    let foreign = transfer().network(30).sign(&keys());
    assert_eq!(
        refusal(&foreign, 2),
        "transaction member `network` is 30, allowed is 23, the address byte of this network"
    );
    let name = Transaction::delegate_registration("Bob").sign(&keys());
    assert!(refusal(&name, 2).starts_with("transaction member `asset.delegate.username` is \"Bob\""));
}

#[test]
fn types_not_yet_in_force_read_well_but_are_never_verified() {
    let rules = Rules::of("mainnet");
    let refund = Transaction::htlc_refund(transfer().sign(&keys()).id()).sign(&keys());
    assert!(refund.verified(Real));
    let gated = SignedTransaction::from_bytes(&refund.bytes(), &rules.at(11_273_000, Dialect::Strict)).unwrap();
    assert!(!gated.verified(Real) && !gated.is_permitted());
    assert!(!kept(&gated).verified(Real) && !kept(&gated).is_permitted());
    assert!(kept(&refund).verified(Real) && kept(&refund).is_permitted());
}

/// The same from the parts of which it is kept.
fn kept(transaction: &SignedTransaction) -> SignedTransaction {
    let (bytes, id, standing) = transaction.as_kept();
    SignedTransaction::from_kept(&bytes, id, standing).expect("it is one")
}

#[test]
fn listed_exceptions_stand_whatever_they_say() {
    let rules = Rules::of("testnet");
    let broken = transfer().fee(Arktoshi::ZERO).sign(&KeyPair::from_passphrase("another", Real));
    let mut value = broken.into_transaction();
    value.sender = *keys().public();
    let broken = SignedTransaction::new(value);
    let exceptions = Exceptions { transactions: [broken.id()].into(), ..Exceptions::default() };
    let context = rules.at(2, Dialect::Strict).with_exceptions(&exceptions);
    let exempt = SignedTransaction::from_bytes(&broken.bytes(), &context).unwrap();
    assert!(exempt.verified(Real) && kept(&exempt).verified(Real) && !kept(&broken).verified(Real));

    let key = *keys().public();
    let legacy = Asset::MultiSignatureLegacy { min: 1, lifetime: 24, keysgroup: vec![key] };
    let legacy = TransactionBuilder::new(legacy).version_one(Timestamp(1)).sign(&keys());
    assert!(matches!(
        SignedTransaction::from_bytes(&legacy.bytes(), &rules.at(1, Dialect::Strict)),
        Err(TransactionError::Bytes(_))
    ));
    let exceptions = Exceptions { transactions: [legacy.id()].into(), ..Exceptions::default() };
    let context = rules.at(1, Dialect::Strict).with_exceptions(&exceptions);
    assert!(SignedTransaction::from_bytes(&legacy.bytes(), &context).unwrap().verified(Real));
    assert_eq!(SignedTransaction::from_json(&legacy.to_json(), &context).unwrap(), legacy);
}

#[test]
fn a_block_names_all_its_faults_in_order() {
    let (rules, slots) = (Rules::of("testnet"), Slots::new(8, 0));
    let milestones: &Milestones = &rules.milestones;
    let late = Arc::new(transfer().expiration(9).sign(&keys()));
    let mut value = late.as_ref().clone().into_transaction();
    value.fee = Arktoshi::coins(2);
    let forged = Arc::new(SignedTransaction::new(value));
    let draft = BlockDraft {
        timestamp: Timestamp(80),
        height: Height(10),
        previous: Some(BlockId::Numeric(1)),
        reward: Arktoshi::coins(2),
        version: 7,
        transactions: vec![late.clone(), late.clone(), forged.clone()],
    };
    let mut block = Block::forge(draft, &keys(), milestones);
    block.header.total_fee = Arktoshi::ZERO;
    block.header.number_of_transactions = 5;
    block.header.previous = None;
    let errors = block.verify(&rules.blocks(), &slots, Slot(9)).unwrap_err();
    let texts: Vec<String> = errors.iter().map(BlockError::to_string).collect();
    let (id, other) = (late.id(), forged.id());
    assert_eq!(
        texts,
        [
            "Invalid previous block".to_owned(),
            "Invalid block reward: 200000000 expected: 0".to_owned(),
            "Failed to verify block signature".to_owned(),
            "Invalid block version".to_owned(),
            "Invalid block timestamp".to_owned(),
            "One or more transactions are not verified:".to_owned(),
            format!("=> {}", hex::encode(forged.bytes())),
            "Invalid number of transactions".to_owned(),
            format!("Encountered expired transaction: {id}"),
            format!("Encountered duplicate transaction: {id}"),
            format!("Encountered expired transaction: {id}"),
            format!("Encountered expired transaction: {other}"),
            "Invalid total fee".to_owned(),
        ]
    );
    assert!(block.verify(&rules.blocks(), &slots, Slot(10)).unwrap_err().len() == texts.len() - 1);
    block.header.signature = vec![0; 70];
    let errors = block.clone().verify(&rules.blocks(), &slots, Slot(9)).unwrap_err();
    assert!(errors.last().unwrap().to_string().starts_with("Invalid signature."), "and the list ends");
}

#[test]
fn a_block_holds_as_many_as_its_milestone_lets_it() {
    let (rules, slots) = (Rules::of("testnet"), Slots::new(8, 0));
    let limit = rules.milestones.at(Height(10)).block.max_transactions;
    let many: Vec<_> = (1..=limit as u64 + 2).map(|n| Arc::new(transfer().nonce(Nonce(n)).sign(&keys()))).collect();
    for (count, height, crowded) in
        [(limit, 10, false), (limit + 1, 10, true), (limit + 2, 10, true), (limit + 1, 1, false)]
    {
        let draft = BlockDraft {
            timestamp: Timestamp(80),
            height: Height(height),
            previous: Some(BlockId::Numeric(1)),
            reward: Arktoshi::ZERO,
            version: 0,
            transactions: many[..count].to_vec(),
        };
        let errors = Block::forge(draft, &keys(), &rules.milestones).verify(&rules.blocks(), &slots, Slot(10));
        let named =
            |errors: &Vec<BlockError>| errors.iter().any(|error| error.to_string().contains("length is too high"));
        assert_eq!(errors.err().is_some_and(|errors| named(&errors)), crowded, "{count} at height {height}");
    }
}

#[test]
fn old_transactions_have_an_age() {
    let rules = Rules::of("testnet");
    let block = |timestamp: u32, sent: u32| {
        let transactions = vec![Arc::new(transfer().version_one(Timestamp(sent)).sign(&keys()))];
        let (timestamp, height, previous) = (Timestamp(timestamp), Height(2), Some(BlockId::Numeric(1)));
        let draft = BlockDraft { timestamp, height, previous, reward: Arktoshi::ZERO, version: 0, transactions };
        let block = Block::forge(draft, &keys(), &rules.milestones);
        block.check_content(&rules.blocks()).iter().map(BlockError::to_string).collect::<Vec<_>>()
    };
    assert_eq!(block(21_600, 0), [""; 0]);
    assert!(block(21_601, 0)[0].starts_with("Encountered expired transaction"));
    assert_eq!(block(0, 3608), [""; 0]);
    assert!(block(0, 3609)[0].starts_with("Encountered future transaction"));
}

#[test]
fn a_multipayment_of_one_passes_the_first_test_of_a_batch() {
    let rules = Rules::of("testnet");
    let context = rules.at(2, Dialect::Strict);
    let payment = json!({ "amount": "1", "recipientId": keys().public().address(23) });
    let mut json = transfer().sign(&keys()).to_json();
    json["type"] = json!(6);
    json["amount"] = json!("0");
    json["asset"] = json!({ "payments": [payment] });
    assert_eq!(SignedTransaction::check_shape(&json, &context), Ok(()));
    assert!(SignedTransaction::from_json(&json, &context).is_err());
    json["type"] = json!(5);
    assert!(SignedTransaction::check_shape(&json, &context).is_err());
}

#[test]
fn verified_together_or_alone_the_flags_are_the_same() {
    let mut all: Vec<Arc<SignedTransaction>> = (0..20u64)
        .map(|n| {
            let signer = KeyPair::from_passphrase(&format!("together {n}"), Real);
            let builder = transfer().nonce((n + 1).into());
            Arc::new(if n % 5 == 4 { builder.sign_ecdsa(&signer) } else { builder.sign(&signer) })
        })
        .collect();
    SignedTransaction::verify_together(&all, Real);
    assert!(all.iter().all(|one| one.verified(Real)));
    let mut value = all[7].as_ref().clone().into_transaction();
    value.sender = *keys().public();
    all[7] = Arc::new(SignedTransaction::new(value));
    let again: Vec<_> = all.iter().map(|one| Arc::new(SignedTransaction::new(one.transaction().clone()))).collect();
    SignedTransaction::verify_together(&again, Real);
    for (n, one) in again.iter().enumerate() {
        assert_eq!(one.verified(Real), n != 7, "{n}");
    }
}

#[test]
fn a_vendor_field_that_outgrows_its_length_is_refused() {
    let long = transfer().vendor_field("x".repeat(255)).sign(&keys());
    let mut bytes = long.bytes();
    bytes[59..314].fill(0x80);
    for dialect in [Dialect::Strict, Dialect::Reference] {
        let rules = Rules::of("testnet");
        assert!(SignedTransaction::from_bytes(&bytes, &rules.at(100_000, dialect)).is_err());
    }
}
