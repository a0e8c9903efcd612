//! A real node's chain, applied block by block, ends in that node's wallets, delegates, locks and rounds.
//! Source of the facts: the recordings beside the project; without them there is nothing to compare.

use crate::support::root;
use dposlab::{
    ledger::{BlockTree, Link, Rules, State, Wallet, import::import},
    protocol::{Address, Height, NetworkConfig},
};
use serde_json::Value;
use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

fn recordings() -> Option<PathBuf> {
    let folder = root().join("../shared/recordings");
    folder.exists().then_some(folder)
}

fn tree() -> Option<BlockTree> {
    let config = NetworkConfig::load(&recordings()?.join("network")).expect("the preset is complete");
    // The recorded node ran in its test environment: locks may be short, and no peer is needed.
    let rules = Rules { minimum_lock_expiration: false, minimum_network_reach: None, ..Rules::reference() };
    Some(BlockTree::new(Arc::new(config), Arc::new(rules)).expect("51 delegates"))
}

fn lines(file: &str) -> String {
    fs::read_to_string(recordings().expect("asked for only where they are").join(file)).expect("text")
}

/// What the recorded node answered to requests like this, body by path.
fn answers(prefix: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for line in lines("api.jsonl").lines() {
        let exchange: Value = serde_json::from_str(line).expect("JSON");
        let path = exchange["request"]["path"].as_str().expect("a path").to_owned();
        if exchange["request"]["method"] == "GET" && exchange["response"]["status"] == 200 && path.starts_with(prefix) {
            found.insert(path, exchange["response"]["body"].clone());
        }
    }
    assert!(!found.is_empty(), "no recording of {prefix}");
    found
}

fn loaded() -> Option<(BlockTree, Arc<Link>)> {
    let tree = tree()?;
    let tip = import(&tree, lines("chain/blocks.jsonl").lines()).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(tip.height(), Height(111));
    Some((tree, tip))
}

/// The wallet recorded; `None` for one that the recorded node made while it was asked for an address that nobody has.
fn wallet_of<'a>(state: &'a State, recorded: &Value) -> Option<&'a Wallet> {
    let address = recorded["address"].as_str().expect("text");
    let wallet = address.parse::<Address>().ok().and_then(|address| state.wallet(&address));
    let made_by_asking = recorded["balance"] == "0" && recorded["nonce"] == "0" && recorded.get("publicKey").is_none();
    assert!(wallet.is_some() || made_by_asking, "no wallet {address}");
    wallet.map(|wallet| &**wallet)
}

#[test]
fn wallets_end_as_recorded() {
    let Some((tree, tip)) = loaded() else { return };
    let state = &tree.applied(&tip).state;
    let mut compared = 0;
    for (path, body) in answers("/api/wallets?") {
        for recorded in body["data"].as_array().expect("a list") {
            let Some(wallet) = wallet_of(state, recorded) else { continue };
            let text = |value: Option<String>| value.map_or(Value::Null, Value::String);
            let name = format!("{} of {path}", wallet.address);
            assert_eq!(recorded["balance"], wallet.balance.to_string(), "{name}");
            assert_eq!(recorded["nonce"], wallet.nonce.to_string(), "{name}");
            assert_eq!(recorded["vote"], text(wallet.vote.map(|key| key.to_string())), "{name}");
            assert_eq!(recorded["username"], text(wallet.username().map(str::to_owned)), "{name}");
            // The recorded node also knows the keys of senders whose first transaction is still in its pool.
            if wallet.public_key.is_some() || recorded["nonce"] != "0" {
                assert_eq!(recorded["publicKey"], text(wallet.public_key.map(|key| key.to_string())), "{name}");
            }
            let attributes = &recorded["attributes"];
            let second = wallet.second_public_key.map(|key| key.to_string());
            assert_eq!(attributes["secondPublicKey"], text(second), "{name}");
            let locked = wallet.htlc.as_ref().map(|htlc| htlc.locked_balance.to_string());
            if let Some(recorded) = attributes["htlc"]["lockedBalance"].as_str() {
                assert_eq!(Some(recorded), locked.as_deref(), "{name}");
            }
            let owners = wallet.multi_signature.as_ref();
            assert_eq!(attributes["multiSignature"].is_object(), owners.is_some(), "{name}");
            let hashes = attributes["ipfs"]["hashes"].as_object().map_or(0, |hashes| hashes.len());
            assert_eq!(hashes, wallet.ipfs.as_ref().map_or(0, |ipfs| ipfs.len()), "{name}");
            let business = wallet.business.as_ref();
            let asset = &attributes["business"]["businessAsset"];
            assert_eq!(asset["name"], text(business.map(|business| business.name.clone())), "{name}");
            assert_eq!(asset["vat"], text(business.and_then(|business| business.vat.clone())), "{name}");
            let chains = attributes["business"]["bridgechains"].as_object().map_or(0, |chains| chains.len());
            assert_eq!(chains, business.map_or(0, |business| business.bridgechains.len()), "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 60, "only {compared} wallets compared");
}

#[test]
fn delegates_end_as_recorded() {
    let Some((tree, tip)) = loaded() else { return };
    let state = &tree.applied(&tip).state;
    let mut compared = 0;
    for (path, body) in answers("/api/delegates?") {
        for recorded in body["data"].as_array().expect("a list") {
            let delegate =
                wallet_of(state, recorded).and_then(|wallet| wallet.delegate.as_deref()).expect("a delegate");
            let name = format!("{} of {path}", delegate.username);
            assert_eq!(recorded["votes"], delegate.vote_balance.to_string(), "{name}");
            assert_eq!(recorded["blocks"]["produced"], delegate.produced_blocks, "{name}");
            assert_eq!(recorded["forged"]["fees"], delegate.forged_fees.to_string(), "{name}");
            assert_eq!(recorded["forged"]["rewards"], delegate.forged_rewards.to_string(), "{name}");
            assert_eq!(recorded["isResigned"], delegate.resigned, "{name}");
            let rank = delegate.rank.map_or(Value::Null, Value::from);
            assert_eq!(recorded["rank"], rank, "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 51, "only {compared} delegates compared");
}

#[test]
fn rounds_are_as_recorded() {
    let Some((tree, tip)) = loaded() else { return };
    let recorded: Vec<Value> =
        lines("chain/rounds.jsonl").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut compared = 0;
    for round in 1..=3u32 {
        let first = Height((round - 1) * 51);
        let last_before = tip.ancestor(first.max(Height::GENESIS)).expect("it is on the chain");
        let applied = tree.applied(&last_before);
        let members = &applied.state.round().members;
        let rows: Vec<&Value> = recorded.iter().filter(|row| row["round"].as_u64() == Some(round.into())).collect();
        assert_eq!(rows.len(), members.len(), "round {round}");
        for (row, member) in rows.iter().zip(members) {
            assert_eq!(row["publicKey"], member.public_key.to_string(), "round {round}");
            let balance = row.get("balance").or_else(|| row.get("votes")).expect("a weight");
            assert_eq!(balance.as_str().expect("text"), member.vote_balance.to_string(), "round {round}");
            compared += 1;
        }
    }
    assert_eq!(compared, 153);
}

#[test]
fn an_altered_transaction_is_refused_and_named() {
    if recordings().is_none() {
        return;
    }
    let text = lines("chain/blocks.jsonl");
    let blocks: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut altered = 0;
    for (at, block) in blocks.iter().enumerate().skip(1) {
        for (index, wire) in block["transactions"].as_array().expect("a list").iter().enumerate() {
            let mut bytes = hex::decode(wire.as_str().expect("hex")).expect("hex");
            // One bit of the signature's last byte, or of what stands before it.
            let place = bytes.len() - 1;
            bytes[place] ^= 1;
            let mut other = blocks[..=at].to_vec();
            other[at]["transactions"][index] = hex::encode(bytes).into();
            let other: Vec<String> = other.iter().map(Value::to_string).collect();
            let refused = import(&tree().expect("it is there"), other.iter().map(String::as_str));
            let error = refused.expect_err("an altered transaction").to_string();
            let height = (at + 1).to_string();
            assert!(
                error.contains(&format!("line {height}:")) && error.contains(&format!("height {height}")),
                "{error}"
            );
            altered += 1;
        }
    }
    assert!(altered >= 17, "only {altered} altered");
}
