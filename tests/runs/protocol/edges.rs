//! The limits of what can be read: values at a limit and one beyond it, and what the reference says there.

use super::support::Rules;
use dposlab::protocol::{
    Address, Arktoshi, Block, BlockDraft, BlockError, BlockId, Height, KeyPair, Network, Nonce, PublicKey,
    SignedTransaction, Timestamp, Transaction, TransactionId,
    crypto::CryptoMode::Real,
    keys::SignedMessage,
    transaction::{Asset, BytesError, Dialect, Expiration, Payment, TransactionBuilder, TransactionError, Vote},
};
use indexmap::IndexMap;
use serde_json::{Value, json};
use std::sync::Arc;

fn keys() -> KeyPair {
    KeyPair::from_passphrase("edges", Real)
}

fn members(count: usize) -> Vec<KeyPair> {
    (0..count).map(|number| KeyPair::from_passphrase(&format!("member {number} of edges"), Real)).collect()
}

fn address() -> Address {
    keys().public().address(23)
}

fn transfer() -> TransactionBuilder {
    Transaction::transfer(address(), Arktoshi::coins(1))
}

/// A block's draft, of its height's first possible slot.
fn draft(height: u32, previous: Option<BlockId>, transactions: Vec<SignedTransaction>) -> BlockDraft {
    BlockDraft {
        timestamp: Timestamp(8 * height),
        height: Height(height),
        previous,
        reward: Arktoshi::ZERO,
        version: 0,
        transactions: transactions.into_iter().map(Arc::new).collect(),
    }
}

/// The verdict on JSON.
fn said(json: &Value, dialect: Dialect) -> String {
    let read = SignedTransaction::from_json(json, &Rules::of("testnet").at(100_000, dialect));
    read.map_or_else(|error| error.reference_text(), |_| "read".to_owned())
}

/// The verdict on a transaction with one member replaced.
fn said_with(signed: &SignedTransaction, key: &str, value: &Value, dialect: Dialect) -> String {
    let mut json = signed.to_json();
    json[key] = value.clone();
    said(&json, dialect)
}

fn from_bytes(bytes: &[u8], dialect: Dialect) -> Result<SignedTransaction, TransactionError> {
    SignedTransaction::from_bytes(bytes, &Rules::of("testnet").at(100_000, dialect))
}

#[test]
fn members_end_where_the_reference_says() {
    let signed = transfer().sign(&keys());
    let hex = |digits: usize| json!("0".repeat(digits));
    let not_base58 =
        "data.recipientId should match pattern \"^[123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz]+$\"";
    for (key, value, text) in [
        ("expiration", json!(4_294_967_295_u32), "read"),
        ("expiration", json!(4_294_967_296_u64), "data.expiration should be <= 4294967295"),
        ("expiration", json!(-1), "data.expiration should be >= 0"),
        ("expiration", json!("x"), "data.expiration should be integer"),
        ("senderPublicKey", hex(65), "data.senderPublicKey should NOT be shorter than 66 characters"),
        ("senderPublicKey", hex(67), "data.senderPublicKey should NOT be longer than 66 characters"),
        (
            "senderPublicKey",
            json!("g".repeat(66)),
            "data.senderPublicKey should match pattern \"^[0123456789A-Fa-f]+$\"",
        ),
        ("recipientId", json!("A".repeat(33)), "data.recipientId should NOT be shorter than 34 characters"),
        ("recipientId", json!(1), "data.recipientId should be string"),
        ("recipientId", json!("0".repeat(34)), not_base58),
        ("recipientId", json!("A".repeat(34)), "Invalid checksum"),
        ("signatures", json!([]), "data.signatures should NOT have fewer than 1 items"),
        ("signatures", json!(vec!["0"; 17]), "data.signatures should NOT have more than 16 items"),
        ("signatures", json!(["0"]), "data.signatures[0] should NOT be shorter than 130 characters"),
        ("signatures", json!(["0".repeat(131)]), "data.signatures[0] should NOT be longer than 130 characters"),
        ("signatures", json!(["0".repeat(999)]), "data.signatures[0] should NOT be longer than 130 characters"),
        ("signatures", json!([1]), "data.signatures[0] should be string"),
        ("type", json!(70), "Unknown transaction type: Core/70"),
        ("typeGroup", json!(7), "Unknown transaction type: 7/0"),
    ] {
        assert_eq!(said_with(&signed, key, &value, Dialect::Strict), text, "{key}: {value}");
    }
    let unlike = SignedTransaction::from_json(
        &json!({ "type": 70, "typeGroup": 7 }),
        &Rules::of("testnet").at(2, Dialect::Strict),
    );
    assert_eq!(unlike.unwrap_err().reference_text(), "Unknown transaction type: 7/70");
}

#[test]
fn the_reference_takes_numbers_in_texts_that_we_refuse() {
    let signed = transfer().sign(&keys());
    for (key, value, strict, lax) in [
        ("fee", json!("0x10"), false, true),
        ("nonce", json!("0x1"), false, true),
        ("nonce", json!(""), false, false),
        ("fee", json!([]), false, false),
        ("fee", json!(["7"]), false, true),
        ("fee", json!(true), false, true),
        ("fee", json!("7"), true, true),
    ] {
        let read = |dialect| said_with(&signed, key, &value, dialect) == "read";
        assert_eq!((read(Dialect::Strict), read(Dialect::Reference)), (strict, lax), "{key}: {value}");
    }
}

#[test]
fn what_an_update_leaves_out_may_be_nought_to_the_reference() {
    let update = Transaction::bridgechain_update([7; 32], Some(vec!["1.2.3.4".to_owned()]), None, None, None);
    let json = update.sign(&keys()).to_json();
    for (value, strict, lax) in [
        (json!(null), true, true),
        (json!(0), false, true),
        (json!([]), false, true),
        (json!(1), false, false),
        (json!([0]), false, false),
    ] {
        let mut json = json.clone();
        json["asset"]["bridgechainUpdate"]["bridgechainRepository"] = value.clone();
        let read = |dialect| said(&json, dialect) == "read";
        assert_eq!((read(Dialect::Strict), read(Dialect::Reference)), (strict, lax), "{value}");
    }
}

#[test]
fn a_registration_holds_as_many_signatures_as_it_asks_for() {
    let members = members(3);
    let all: Vec<PublicKey> = members.iter().map(|keys| *keys.public()).collect();
    let registration = |count: usize| {
        let unsigned = Transaction::multi_signature(2, all.clone()).sender(all[0]);
        let signed = members[..count].iter().enumerate();
        signed
            .fold(unsigned, |unsigned, (index, keys)| unsigned.multi_sign(index as u8, keys))
            .sign(&members[0])
            .finish()
    };
    let few = "data.signatures should NOT have fewer than 2 items";
    assert_eq!(said(&registration(1).to_json(), Dialect::Strict), few);
    assert_eq!(said(&registration(2).to_json(), Dialect::Strict), "read");
    let text = |signed: &SignedTransaction| {
        from_bytes(&signed.bytes(), Dialect::Strict).map_err(|error| error.reference_text())
    };
    assert_eq!(text(&registration(1)), Err(few.to_owned()));
    assert_eq!(text(&registration(0)), Err("data should have required property 'signatures'".to_owned()));
    assert!(text(&registration(3)).is_ok());
    let signed_by = |count: u8| {
        let keys = keys();
        let unsigned = transfer().sender(*keys.public());
        text(&(0..count).fold(unsigned, |unsigned, index| unsigned.multi_sign(index, &keys)).finish())
    };
    assert!(signed_by(16).is_ok());
    assert_eq!(signed_by(17), Err("data.signatures should NOT have more than 16 items".to_owned()));
}

#[test]
fn counting_signatures_stops_where_too_few_are_left() {
    let members = members(4);
    let all: Vec<PublicKey> = members[..3].iter().map(|keys| *keys.public()).collect();
    let unsigned =
        transfer().sender(all[0]).multi_sign(0, &members[0]).multi_sign(1, &members[3]).multi_sign(1, &members[1]);
    let signed = unsigned.finish();
    assert_eq!(
        signed.verify_multi(3, &all, Real),
        Ok(false),
        "the second does not hold, so the third is not looked at"
    );
    assert!(
        SignedTransaction::new(signed.into_transaction()).verify_multi(2, &all, Real).is_err(),
        "here it is, and comes twice"
    );
}

/// The only place of some bytes in others.
fn place(of: &[u8], bytes: &[u8]) -> usize {
    let mut places = (0..=bytes.len() - of.len()).filter(|at| bytes[*at..].starts_with(of));
    let place = places.next().expect("they are there");
    assert_eq!(places.next(), None);
    place
}

#[test]
fn bytes_that_the_reference_reads_another_way_are_refused() {
    let vote = Transaction::vote(Vote::For(*keys().public())).sign(&KeyPair::from_passphrase("a voter", Real));
    let mut bytes = vote.bytes();
    bytes[place(keys().public().as_bytes(), &vote.bytes()) - 1] = 0x11;
    assert!(matches!(
        from_bytes(&bytes, Dialect::Strict),
        Err(TransactionError::Bytes(BytesError::Byte { found: 0x11, .. }))
    ));
    assert!(from_bytes(&bytes, Dialect::Reference).is_ok_and(|read| read.asset() == vote.asset()));

    let ports: IndexMap<String, u16> = [("7".to_owned(), 1), ("@arkecosystem/core-api".to_owned(), 2)].into();
    let nodes = vec!["1.2.3.4".to_owned()];
    let chain = Transaction::bridgechain_registration("name", nodes, [9; 32], "http://repo.example", None, ports);
    let chain = chain.sign(&keys());
    // The ports as they stand on the wire, and the other way round.
    let wire = |names: [&str; 2], ports: [u8; 2]| {
        let one = |name: &str, port: u8| [&[name.len() as u8], name.as_bytes(), &[port, 0]].concat();
        [one(names[0], ports[0]), one(names[1], ports[1])].concat()
    };
    let ordered = wire(["7", "@arkecosystem/core-api"], [1, 2]);
    let at = place(&ordered, &chain.bytes());
    let mut bytes = chain.bytes();
    bytes[at..at + ordered.len()].copy_from_slice(&wire(["@arkecosystem/core-api", "7"], [2, 1]));
    assert!(matches!(from_bytes(&bytes, Dialect::Strict), Err(TransactionError::Bytes(BytesError::Ports { .. }))));
    assert!(from_bytes(&bytes, Dialect::Reference).is_ok_and(|read| read.bytes() == chain.bytes()));
}

#[test]
fn recipients_are_of_the_network() {
    let foreign = Transaction::transfer(keys().public().address(30), Arktoshi::coins(1)).network(23).sign(&keys());
    let refused = from_bytes(&foreign.bytes(), Dialect::Strict);
    let wrong = BytesError::RecipientNetwork { allowed: 23, found: 30 };
    assert_eq!(refused, Err(TransactionError::Bytes(wrong)));
    // A lock may be for another network's address, if it looks like one.
    let lock = |recipient| {
        let lock = Transaction::htlc_lock(recipient, Arktoshi::coins(1), [1; 32], Expiration::BlockHeight(9));
        lock.network(23)
            .sign(&keys())
            .check(&Rules::of("testnet").at(100_000, Dialect::Strict))
            .map_err(|error| error.reference_text())
    };
    let short = Address::from_bytes([0; 21]);
    assert!(short.to_string().len() < 34);
    assert_eq!(lock(short), Err("data.recipientId should NOT be shorter than 34 characters".to_owned()));
    assert_eq!(lock(address()), Ok(()));
}

#[test]
fn what_is_cut_off_is_named_with_its_place() {
    let cut = |signed: &SignedTransaction, bytes: usize| match from_bytes(&signed.bytes()[..bytes], Dialect::Strict) {
        Err(TransactionError::Bytes(BytesError::Truncated { field, at, needed, available })) => {
            (field, at, needed, available)
        }
        other => panic!("{other:?}"),
    };
    let once = transfer().sign_ecdsa(&keys());
    let twice = once.clone().second_sign(&members(1)[0]);
    let (first, all) = (once.bytes().len(), twice.bytes().len());
    assert_eq!(cut(&twice, all - 1), ("secondSignature", first, all - first, all - first - 1));

    let payments = vec![Payment { amount: Arktoshi::coins(1), recipient: address() }; 3];
    let paid = Transaction::multi_payment(payments).sign(&keys());
    let at = place(address().as_bytes(), &paid.bytes()[..paid.bytes().len() / 2]) - 8;
    let (field, place, needed, _) = cut(&paid, at + 60);
    assert_eq!((field, place, needed), ("asset.payments", at, 3 * 29));
}

#[test]
fn the_first_block_alone_may_follow_nothing() {
    let rules = Rules::of("testnet");
    for (height, previous) in [(1, None), (1, Some(BlockId::Numeric(7))), (2, Some(BlockId::Numeric(0)))] {
        let block = Block::forge(draft(height, previous, Vec::new()), &keys(), &rules.milestones);
        let read = Block::from_bytes(&block.to_bytes(&rules.milestones), &rules.blocks()).expect("it has its form");
        assert_eq!(read.header.previous, previous, "bytes of height {height}");
        let read = Block::from_json(&block.to_json(&rules.milestones), &rules.blocks()).expect("it has its form");
        assert_eq!(read.header.previous, previous, "JSON of height {height}");
    }
}

#[test]
fn a_block_says_what_kind_of_transactions_do_not_hold() {
    let rules = Rules::of("testnet");
    let block = |transaction: SignedTransaction| {
        let mut value = transaction.into_transaction();
        value.fee = Arktoshi::coins(3);
        let draft = draft(10, Some(BlockId::Numeric(1)), vec![SignedTransaction::new(value)]);
        let block = Block::forge(draft, &keys(), &rules.milestones);
        let errors = block.check_content(&rules.blocks());
        errors.iter().find_map(|error| match error {
            BlockError::TransactionsNotVerified { contains_multi_signatures } => Some(*contains_multi_signatures),
            _ => None,
        })
    };
    assert_eq!(block(transfer().sign(&keys())), Some(false));
    let member = &members(1)[0];
    let registered = Transaction::multi_signature(1, vec![*member.public()]).sender(*member.public());
    assert_eq!(block(registered.multi_sign(0, member).sign(member).finish()), Some(true));
}

#[test]
fn transactions_are_equal_by_what_they_say() {
    let one = transfer().sign(&keys());
    assert_eq!(one, SignedTransaction::new(one.transaction().clone()));
    assert_ne!(one, transfer().fee(Arktoshi::coins(7)).sign(&keys()));
    assert_eq!((one.kind().is_htlc(), one.nonce()), (false, one.transaction().nonce()));
    assert!(one.nonce().is_some());
    assert!(Transaction::htlc_refund(one.id()).sign(&keys()).kind().is_htlc());
    assert!(matches!(
        Transaction::htlc_claim(TransactionId([1; 32]), [2; 32]).sign(&keys()).asset(),
        Asset::HtlcClaim { .. }
    ));
}

#[test]
fn heights_and_nonces_count_up() {
    assert_eq!((Height(7).next(), Nonce(7).next()), (Height(8), Nonce(8)));
}

#[test]
fn a_signed_message_holds_for_its_words_and_key() {
    let signed = SignedMessage::sign("hello", &keys());
    assert!(signed.verify(Real));
    assert!(!SignedMessage { message: "hullo".to_owned(), ..signed.clone() }.verify(Real));
    assert!(!SignedMessage { public_key: *members(1)[0].public(), ..signed.clone() }.verify(Real));
    assert!(!SignedMessage { signature: "x".to_owned(), ..signed }.verify(Real));
}

/// Source: protocol.md 5.3.
#[test]
fn the_networks_are_those_of_the_contract() {
    let (old, new) = ((70_617_039, 70_615_956), (46_090_600, 46_089_520));
    for (network, name, prefix, bip32, numbers, token, symbol, explorer, nethash) in [
        (Network::testnet(), "testnet", "TEST", old, (23, 186, 1, 0), "TARK", "T", "http://texplorer", "d9acd04b"),
        (Network::unitnet(), "unitnet", "UNIT", old, (23, 186, 1, 0), "UARK", "U", "http://uexplorer", "a63b5a38"),
        (Network::devnet(), "devnet", "DARK", new, (30, 170, 1, 1), "DARK", "D", "https://dexplorer", "2a44f340"),
        (Network::mainnet(), "mainnet", "ARK", new, (23, 170, 111, 0), "ARK", "", "https://explorer", "6e84d08b"),
    ] {
        assert_eq!(network.name, name);
        assert_eq!(network.message_prefix, format!("{prefix} message:\n"));
        assert_eq!((network.bip32_public, network.bip32_private), bip32, "{name}");
        assert_eq!((network.pub_key_hash, network.wif, network.slip44, network.aip20), numbers, "{name}");
        assert_eq!((network.token.as_str(), network.symbol), (token, format!("{symbol}\u{466}")), "{name}");
        assert_eq!(network.explorer, format!("{explorer}.ark.io"));
        assert_eq!(network.nethash[..8], *nethash, "{name}");
    }
}

#[test]
fn a_stored_block_may_hold_what_no_new_one_may() {
    let rules = Rules::of("testnet");
    let old = transfer().version_one(Timestamp(70)).sign(&keys());
    let draft = draft(10, Some(BlockId::Numeric(1)), vec![old]);
    let bytes = Block::forge(draft, &keys(), &rules.milestones).to_bytes(&rules.milestones);
    assert!(Block::from_bytes(&bytes, &rules.blocks()).is_err());
    assert!(Block::from_bytes(&bytes, &rules.blocks().with_dialect(Dialect::Stored)).is_ok());
}
