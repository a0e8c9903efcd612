//! Reproduces what the reference produced and refused.

use super::support::{Rules, array, bytes, entries, text, vectors};
use dposlab::protocol::{
    Block, BlockDraft, KeyPair, PublicKey, RoundNumber, SignedTransaction, Slots, Timestamp,
    crypto::{CryptoMode::Real, ecdsa, schnorr},
    keys::{SignedMessage, multisignature_key},
    shuffle::forging_order,
    transaction::{Dialect, IndexedSignature, Transaction, UnsignedTransaction},
};
use serde_json::{Value, json};

#[test]
fn identities() {
    for file in vectors("identities.json") {
        for entry in file["identities"].as_array().unwrap() {
            let keys = KeyPair::from_passphrase(text(entry, "passphrase"), Real);
            assert_eq!(hex::encode(keys.private().as_bytes()), text(entry, "privateKey"));
            assert_eq!(keys.public().to_string(), text(entry, "publicKey"));
            for (name, address) in entry["addresses"].as_object().unwrap() {
                let network = Rules::of(name).network;
                assert_eq!(*address, keys.public().address(network.pub_key_hash).to_string());
                let wif = entry["wif"][name].as_str().unwrap();
                assert_eq!(wif, keys.to_wif(network.wif));
                assert_eq!(KeyPair::from_wif(wif, network.wif, Real), Ok(keys.clone()));
            }
            let message: SignedMessage = serde_json::from_value(entry["message"].clone()).unwrap();
            assert!(message.verify(Real));
            assert_eq!(SignedMessage::sign(&message.message, &keys), message);
        }
        for entry in file["multiSignature"].as_array().unwrap() {
            let keys: Vec<PublicKey> = serde_json::from_value(entry["asset"]["publicKeys"].clone()).unwrap();
            let wallet = multisignature_key(entry["asset"]["min"].as_u64().unwrap() as u8, &keys).unwrap();
            assert_eq!(wallet.to_string(), text(entry, "publicKey"));
            for (name, address) in entry["address"].as_object().unwrap() {
                assert_eq!(*address, wallet.address(Rules::of(name).network.pub_key_hash).to_string());
            }
        }
    }
}

#[test]
fn signatures() {
    for entry in entries("signatures.json") {
        let keys = KeyPair::from_private(array(&entry, "privateKey"), Real).unwrap();
        let hash = array(&entry, "hash");
        assert_eq!(keys.public().to_string(), text(&entry, "publicKey"));
        assert_eq!(ecdsa::sign(&hash, &keys), bytes(&entry, "ecdsa"));
        assert_eq!(schnorr::sign(&hash, &keys).to_vec(), bytes(&entry, "schnorr"));
        assert!(ecdsa::verify(&hash, &bytes(&entry, "ecdsa"), keys.public(), Real));
        assert!(schnorr::verify(&hash, &bytes(&entry, "schnorr"), keys.public(), Real));
        let broken = &entry["invalid"];
        let holds = ecdsa::verify(&hash, &bytes(broken, "ecdsa"), keys.public(), Real);
        assert_eq!(json!(holds), broken["ecdsaVerifies"]);
        let holds = schnorr::verify(&hash, &bytes(broken, "schnorr"), keys.public(), Real);
        assert_eq!(json!(holds), broken["schnorrVerifies"]);
    }
}

#[test]
fn transactions() {
    for entry in entries("transactions.json") {
        let label = text(&entry, "label");
        let rules = Rules::of(text(&entry, "network"));
        let context = rules.at(entry["height"].as_u64().unwrap(), Dialect::Strict);
        let wire = bytes(&entry, "serialized");
        let from_bytes =
            SignedTransaction::from_bytes(&wire, &context).unwrap_or_else(|error| panic!("{label}: {error}"));
        let from_json =
            SignedTransaction::from_json(&entry["json"], &context).unwrap_or_else(|error| panic!("{label}: {error}"));
        assert_eq!(from_bytes, from_json, "{label}");
        assert_eq!(hex::encode(from_json.bytes()), text(&entry, "serialized"), "{label}");
        assert_eq!(from_bytes.id().to_string(), text(&entry, "id"), "{label}");
        assert_eq!(
            hex::encode(from_bytes.transaction().hash_for_signature()),
            text(&entry, "hashForSignature"),
            "{label}"
        );
        assert_eq!(json!(from_bytes.verified(Real)), entry["verified"], "{label}");
        assert_eq!(json!(from_json.verified(Real)), entry["verified"], "{label}");
        let again = SignedTransaction::from_json(&from_bytes.to_json(), &context).unwrap();
        assert_eq!(again, from_bytes, "{label}");
        check_members(&from_bytes.to_json(), &entry["json"], label);
        assert_eq!(sign_again(&from_bytes, &entry), from_bytes, "{label}");
    }
}

/// Every member we write is the reference's; it may have more, which a round trip through the wire loses.
fn check_members(ours: &Value, theirs: &Value, label: &str) {
    for (key, value) in ours.as_object().unwrap() {
        if key != "network" || theirs.get("network").is_some() {
            assert_eq!(value, &theirs[key], "{label}: {key}");
        }
    }
    for key in theirs.as_object().unwrap().keys() {
        let lost = matches!(
            (key.as_str(), theirs["type"].as_u64()),
            ("recipientId", Some(3)) | ("typeGroup", _) | ("expiration", _) | ("asset", Some(1))
        );
        assert!(lost || ours.get(key).is_some(), "{label}: {key} is missing");
    }
}

/// The same transaction signed anew with the entry's passphrases.
fn sign_again(signed: &SignedTransaction, entry: &Value) -> SignedTransaction {
    let ecdsa = signed.transaction().signature.as_ref().is_some_and(|signature| signature.len() != 64);
    let old = signed.transaction().clone();
    let (signature, second_signature, signatures) = (None, None, Vec::new());
    let (had_first, had) = (old.signature.is_some(), old.signatures.clone());
    let mut unsigned = UnsignedTransaction::from(Transaction { signature, second_signature, signatures, ..old });
    let participants: Vec<KeyPair> = entry["passphrases"]
        .as_array()
        .map(|list| list.iter().map(|text| KeyPair::from_passphrase(text.as_str().unwrap(), Real)).collect())
        .unwrap_or_default();
    for IndexedSignature { index, .. } in had {
        unsigned = unsigned.multi_sign(index, &participants[usize::from(index)]);
    }
    if had_first {
        let keys = match entry["passphrase"].as_str() {
            Some(passphrase) => KeyPair::from_passphrase(passphrase, Real),
            None => participants[0].clone(),
        };
        unsigned = if ecdsa { unsigned.sign_ecdsa(&keys) } else { unsigned.sign(&keys) };
    }
    if let Some(passphrase) = entry["secondPassphrase"].as_str() {
        unsigned = unsigned.second_sign(&KeyPair::from_passphrase(passphrase, Real));
    }
    let again = unsigned.finish();
    if let Some(passphrase) = entry["secondPassphrase"].as_str() {
        assert!(again.verify_second(KeyPair::from_passphrase(passphrase, Real).public(), Real));
    }
    if let Some(asset) = entry.get("multiSignature") {
        let keys: Vec<PublicKey> = serde_json::from_value(asset["publicKeys"].clone()).unwrap();
        assert_eq!(again.verify_multi(asset["min"].as_u64().unwrap() as u8, &keys, Real), Ok(true));
    }
    again
}

#[test]
fn invalid_transactions() {
    let mut wrong = Vec::new();
    for entry in entries("invalid-transactions.json") {
        let rules = Rules::of(text(&entry, "network"));
        for dialect in [Dialect::Strict, Dialect::Reference] {
            let context = rules.at(entry["height"].as_u64().unwrap(), dialect);
            let found = SignedTransaction::from_json(&entry["json"], &context);
            let (verdict, said) = match &found {
                Ok(transaction) => {
                    let matches = json!(transaction.id().to_string()) == entry["json"]["id"];
                    let id = transaction.id().to_string();
                    let verified = transaction.verified(Real);
                    (json!({ "accepted": true, "verified": verified, "idMatches": matches, "id": id }), String::new())
                }
                Err(error) => {
                    let said = json!({ "accepted": false, "error": error.reference_name() });
                    (said, format!("{error} | {}", error.reference_text()))
                }
            };
            let mut expected = entry["result"].clone();
            let message = expected.as_object_mut().unwrap().shift_remove("message");
            if matches!(expected["error"].as_str(), Some("TypeError" | "SyntaxError" | "RangeError")) {
                // Where the reference stumbles instead of refusing, ours may say why.
                expected["error"] = verdict["error"].clone();
            }
            if verdict != expected {
                wrong.push(format!("{}: {verdict} {said}, expected {}", text(&entry, "label"), entry["result"]));
            } else if std::env::var_os("SHOW_MESSAGES").is_some() && dialect == Dialect::Strict {
                println!("{}\n   {said}\n   {message:?}", text(&entry, "label"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn malformed_bytes() {
    let (rules, mut wrong) = (Rules::of("testnet"), Vec::new());
    for entry in entries("malformed-bytes.json") {
        let wire = bytes(&entry, "serialized");
        let expected = &entry["result"];
        let strict = SignedTransaction::from_bytes(&wire, &rules.at(100_000, Dialect::Strict));
        let lax = SignedTransaction::from_bytes(&wire, &rules.at(100_000, Dialect::Reference));
        let say = |found: &Result<SignedTransaction, _>| format!("{:?}", found.as_ref().map(|one| one.verified(Real)));
        // As the reference: what verifies there verifies; what it refuses is refused.
        let verifies = expected["verified"] == true;
        let refused = expected["accepted"] == false;
        if verifies != lax.as_ref().is_ok_and(|one| one.verified(Real)) || (refused && lax.is_ok()) {
            wrong.push(format!("{} {}: {} expected {expected}", entry["label"], entry["mutation"], say(&lax)));
        }
        if !verifies && strict.is_ok_and(|one| one.verified(Real)) {
            wrong.push(format!("{} {}: strictly accepted", entry["label"], entry["mutation"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn blocks() {
    for entry in entries("blocks.json") {
        let (label, rules) = (text(&entry, "label"), Rules::of(text(&entry, "network")));
        let (context, milestones) = (rules.blocks(), &rules.milestones);
        let block = Block::from_bytes(&bytes(&entry, "serialized"), &context).unwrap();
        assert_eq!(Block::from_json(&entry["json"], &context).as_ref(), Ok(&block), "{label}");
        assert_eq!(block.to_json(milestones), entry["json"], "{label}");
        assert_eq!(hex::encode(block.to_bytes(milestones)), text(&entry, "serialized"), "{label}");
        assert_eq!(hex::encode(block.header.to_bytes(milestones, true)), text(&entry, "headerSerialized"), "{label}");
        assert_eq!((block.id.to_string(), block.id_hex()), (text(&entry, "id").into(), text(&entry, "idHex").into()));
        let errors: Vec<String> = block.check_content(&context).iter().map(|error| error.to_string()).collect();
        assert_eq!(json!(errors), entry["verification"]["errors"], "{label}");
        let header = &block.header;
        let draft = BlockDraft {
            timestamp: header.timestamp,
            height: header.height,
            previous: header.previous,
            reward: header.reward,
            version: header.version,
            transactions: block.transactions.clone(),
        };
        let keys = KeyPair::from_private(array(&entry, "privateKey"), Real).unwrap();
        assert_eq!(Block::forge(draft, &keys, milestones), block, "{label}");
    }
}

#[test]
fn shuffles() {
    for entry in entries("shuffles.json") {
        let round = RoundNumber(entry["round"].as_u64().unwrap() as u32);
        assert_eq!(json!(forging_order(round, entry["delegates"].as_u64().unwrap() as usize)), entry["order"]);
    }
}

#[test]
fn slots() {
    for entry in entries("slots.json") {
        let milestones = Rules::of(text(&entry, "network")).milestones;
        let slots = Slots::new(milestones.all()[0].blocktime, milestones.epoch_ms());
        let timestamp = Timestamp(entry["epochSeconds"].as_u64().unwrap() as u32);
        let slot = slots.slot(timestamp);
        assert_eq!(json!(slot), entry["slot"]);
        assert_eq!(json!(slots.start(slot)), entry["slotTime"]);
        assert_eq!(json!(slots.forging_allowed(timestamp)), entry["forgingAllowed"]);
    }
}
