//! A real node's chain, applied block by block, ends in that node's wallets, delegates, locks and rounds.
//! Source of the facts: the recordings in `tests/data/recordings`.

use crate::support::{recording, recordings};
use dposlab::{
    ledger::{BlockTree, Link, Rules, State, Wallet, import::import},
    protocol::{
        Address, Block, BlockDraft, Height, KeyPair, NetworkConfig, SignedTransaction, crypto::CryptoMode::Real,
    },
};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};

fn tree() -> BlockTree {
    let config = NetworkConfig::load(&recordings().join("network"), Real).expect("the preset is complete");
    // The recorded node ran in its test environment: locks may be short, and no peer is needed.
    let mut rules = Rules { minimum_network_reach: None, ..Rules::reference() };
    rules.ledger.minimum_lock_expiration = false;
    BlockTree::new(Arc::new(config), Arc::new(rules)).expect("51 delegates")
}

/// The recorded node's answers to requests like this, body by path.
fn answers(prefix: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for line in recording("api.jsonl").lines() {
        let exchange: Value = serde_json::from_str(line).expect("JSON");
        let path = exchange["request"]["path"].as_str().expect("a path").to_owned();
        if exchange["request"]["method"] == "GET" && exchange["response"]["status"] == 200 && path.starts_with(prefix) {
            found.insert(path, exchange["response"]["body"].clone());
        }
    }
    assert!(!found.is_empty(), "no recording of {prefix}");
    found
}

fn loaded() -> (BlockTree, Arc<Link>) {
    let tree = tree();
    let tip = import(&tree, recording("chain/blocks.jsonl").lines()).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(tip.height(), Height(111));
    (tree, tip)
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
    let (tree, tip) = loaded();
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
    let (tree, tip) = loaded();
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
    let (tree, tip) = loaded();
    let recorded: Vec<Value> =
        recording("chain/rounds.jsonl").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
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

/// The same block with one transaction's bytes altered and all sums made anew, signed by its own forger: nothing but the
/// transaction is wrong with it.
fn reforged(tree: &BlockTree, block: &Block, index: usize, forgers: &[KeyPair]) -> Option<Block> {
    let mut bytes = block.transactions[index].bytes();
    *bytes.last_mut().expect("no transaction is empty") ^= 1;
    let context = tree.config().block_context();
    let altered = SignedTransaction::from_bytes(&bytes, &context.transactions_of(block.header.height)).ok()?;
    let mut transactions = block.transactions.clone();
    transactions[index] = Arc::new(altered);
    let header = &block.header;
    let draft = BlockDraft {
        timestamp: header.timestamp,
        height: header.height,
        previous: header.previous,
        reward: header.reward,
        version: header.version,
        transactions,
    };
    let forger = forgers.iter().find(|keys| *keys.public() == header.generator).expect("all 51 are known");
    Some(Block::forge(draft, forger, &tree.config().milestones))
}

#[test]
fn an_altered_transaction_is_refused_and_named() {
    let (tree, tip) = loaded();
    let secrets: Value = serde_json::from_str(&recording("network/delegates.json")).expect("JSON");
    let secrets = secrets["secrets"].as_array().expect("a list").iter();
    let forgers: Vec<KeyPair> =
        secrets.map(|secret| KeyPair::from_passphrase(secret.as_str().expect("text"), Real)).collect();
    let mut altered = 0;
    for height in 2..=tip.height().0 {
        let link = tip.ancestor(Height(height)).expect("it is on the chain");
        let parent = link.parent().expect("it is not genesis");
        for index in 0..link.block().transactions.len() {
            let Some(block) = reforged(&tree, link.block(), index, &forgers) else { continue };
            let id = block.transactions[index].id().to_string();
            let refused = tree.extend(&parent, &Arc::new(block)).expect_err("a signature does not hold").to_string();
            assert!(refused.contains(&format!("at height {height}")), "{refused}");
            let by_signature = refused.contains("not verified") || refused.contains("could not be verified");
            assert!(by_signature, "transaction {id}: {refused}");
            altered += 1;
        }
    }
    assert!(altered >= 17, "only {altered} altered");
}

#[test]
fn a_line_that_is_no_block_is_named() {
    let tree = tree();
    let text = recording("chain/blocks.jsonl");
    let refused = |lines: Vec<String>| {
        import(&tree, lines.iter().map(String::as_str)).expect_err("it must be refused").to_string()
    };
    let first: Vec<String> = text.lines().take(40).map(str::to_owned).collect();
    let without =
        |gone: usize| first.iter().enumerate().filter(move |(at, _)| *at != gone).map(|(_, line)| line.clone());
    assert_eq!(refused(without(5).collect()), "line 6: key 'height': found 7, allowed is 6");
    let mut cut = first.clone();
    cut[7].truncate(50);
    assert!(refused(cut).starts_with("line 8: not JSON"));
    let mut other = first;
    other[3] = other[3].replace("\"reward\":\"0\"", "\"reward\":\"1\"");
    let error = refused(other);
    assert!(error.starts_with("line 4:") && error.contains("height 4"), "{error}");
}
