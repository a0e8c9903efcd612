//! The recorded testnet: its directory loads, its chain decodes, verifies and comes out again.

use super::support::data;
use dposlab::protocol::{
    Block, NetworkConfig, SignedTransaction, Slot, crypto::CryptoMode::Real, transaction::Dialect,
};
use serde_json::{Value, json};

#[test]
fn the_recorded_network_loads_and_its_chain_holds() {
    let root = data().join("recordings");
    let config = NetworkConfig::load(&root.join("network"), Real).unwrap();
    assert_eq!(config.network, dposlab::protocol::Network::testnet());
    assert_eq!(config.milestones, dposlab::protocol::Milestones::testnet());
    let genesis = &config.genesis.block;
    assert_eq!(genesis.id.to_string(), "17184958558311101492");
    assert_eq!(genesis.header.total_amount.value(), 12_500_000_000_000_000);
    assert_eq!(config.genesis_ids().len(), 153);
    let given: Vec<Value> = config.genesis.json["transactions"].as_array().unwrap().clone();
    for (transaction, given) in genesis.transactions.iter().zip(&given) {
        assert_eq!(json!(transaction.id()), given["id"]);
        assert!(!transaction.verified(Real), "the official signatures do not hold");
    }
    assert_eq!(
        genesis.check_content(&config.block_context()).iter().map(|error| error.to_string()).next_back().unwrap(),
        "Invalid payload hash"
    );

    let context = config.block_context().with_dialect(Dialect::Stored);
    let mut previous = genesis.id;
    for line in std::fs::read_to_string(root.join("chain/blocks.jsonl")).unwrap().lines() {
        let mut json: Value = serde_json::from_str(line).unwrap();
        let block = Block::from_json(&json, &context).unwrap_or_else(|error| panic!("{error}: {json}"));
        assert_eq!(json!(block.id), json["id"]);
        let again = Block::from_bytes(&block.to_bytes(&config.milestones), &context).unwrap();
        assert_eq!(again.header, block.header);
        let backwards: Vec<u32> = (0..block.transactions.len() as u32).rev().collect();
        let excerpt = Block::excerpt_from_bytes(&block.to_bytes(&config.milestones), &backwards, &context);
        assert_eq!(excerpt, Ok(again.excerpt(&backwards)));
        if block.height().0 == 1 {
            continue;
        }
        assert_eq!(again, block);
        assert_eq!(block.header.previous, Some(previous));
        previous = block.id;
        for (transaction, hex) in block.transactions.iter().zip(json["transactions"].as_array().unwrap()) {
            assert_eq!(json!(hex::encode(transaction.bytes())), *hex);
            let bound = config.transaction_context(dposlab::protocol::Height(block.height().0 - 1));
            assert_eq!(SignedTransaction::from_bytes(&transaction.bytes(), &bound).as_ref(), Ok(&**transaction));
        }
        let multi = block.unverified(Real).all(|transaction| !transaction.transaction().signatures.is_empty());
        assert!(multi, "only multisignature wallets' transactions need another look");
        if block.unverified(Real).next().is_none() {
            assert_eq!(block.verify(&context, &config.slots(), Slot(u32::MAX)), Ok(()));
        }
        json["transactions"] = json!([]);
        let header = block.header_json(&config.milestones);
        for (key, value) in json.as_object().unwrap() {
            assert!(key == "transactions" || header[key] == *value, "{key}: {} {value}", header[key]);
        }
    }
}

#[test]
fn the_recorded_pool_comes_out_as_it_went_in() {
    let root = data().join("recordings");
    let config = NetworkConfig::load(&root.join("network"), Real).unwrap();
    let pool: Vec<Value> = serde_json::from_slice(&std::fs::read(root.join("chain/pool.json")).unwrap()).unwrap();
    for json in pool {
        let transaction = SignedTransaction::from_json(&json, &config.transaction_context(110.into())).unwrap();
        let ours = transaction.to_json();
        assert_eq!(ours, json);
        assert_eq!(ours.to_string(), json.to_string(), "the order of members");
    }
}
