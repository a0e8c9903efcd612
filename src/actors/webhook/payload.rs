//! The payloads: blocks, transactions, wallets and peers as the reference shows them to webhooks. Source: api.md 6.4.

use crate::{
    actors::SimTime,
    ledger::{
        BlockTree, DelegateAttributes, Link, Wallet,
        wallet::{Bridgechain, Business, Htlc, Lock},
    },
    protocol::{Asset, Block, Milestones, SignedTransaction, slots::Slots},
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Another node, as the observed one knows it.
#[derive(Clone, Debug)]
pub struct PeerState {
    /// Its simulated public address.
    pub ip: String,
    /// The port of its peer-to-peer interface.
    pub port: u16,
    pub version: String,
    /// The round-trip time, in milliseconds.
    pub latency_ms: u32,
    /// The last block it was seen on.
    pub tip: Option<Arc<Link>>,
}

/// `BlockHeader` with `transactions` before its ids, as a block that has just come in.
pub(super) fn received(block: &Block, milestones: &Milestones) -> Value {
    let mut shown = Map::new();
    if let Value::Object(header) = block.header_json(milestones) {
        for (name, value) in header {
            if name == "idHex" {
                let transactions = block.transactions.iter().map(|transaction| of_transaction(transaction));
                shown.insert("transactions".to_owned(), transactions.collect());
            }
            shown.insert(name, value);
        }
    }
    Value::Object(shown)
}

/// `TxData`: the raw form, always with `typeGroup`.
pub(super) fn of_transaction(transaction: &SignedTransaction) -> Value {
    let Value::Object(raw) = transaction.to_json() else { unreachable!("a transaction is an object") };
    let mut shown = Map::new();
    for (name, value) in raw {
        if name == "type" && !shown.contains_key("typeGroup") {
            shown.insert("typeGroup".to_owned(), transaction.kind().numbers().0.into());
        }
        shown.insert(name, value);
    }
    Value::Object(shown)
}

/// `TxData` of a block's transaction, with the block's id and its index in the block.
pub(super) fn placed(block: &Block, index: usize) -> Value {
    let mut shown = of_transaction(&block.transactions[index]);
    shown["blockId"] = json!(block.id);
    shown["sequence"] = json!(index);
    shown
}

/// A transaction beside its bytes, as the pool's events show it.
pub(super) fn pooled(transaction: &SignedTransaction) -> Value {
    json!({
        "data": of_transaction(transaction),
        "serialized": { "type": "Buffer", "data": transaction.bytes() },
        "isVerified": true,
    })
}

/// `WalletState`.
pub(super) fn of_wallet(wallet: &Wallet, tree: &BlockTree) -> Value {
    let mut attributes = Map::new();
    let mut put = |name: &str, value: Option<Value>| attributes.extend(value.map(|value| (name.to_owned(), value)));
    put("delegate", wallet.delegate.as_ref().map(|delegate| of_delegate(delegate, tree)));
    put("vote", wallet.vote.map(|key| json!(key)));
    put("votes", wallet.votes().nth(1).map(|_| json!(wallet.votes().collect::<Vec<_>>())));
    put("secondPublicKey", wallet.second_public_key.map(|key| json!(key)));
    put(
        "multiSignature",
        wallet
            .multi_signature
            .as_ref()
            .map(|multi_signature| json!({ "publicKeys": multi_signature.public_keys, "min": multi_signature.min })),
    );
    put(
        "ipfs",
        wallet.ipfs.as_ref().map(|multihashes| {
            let hashes = multihashes.iter().map(|multihash| (Asset::ipfs_text(multihash), true.into()));
            json!({ "hashes": hashes.collect::<Map<_, _>>() })
        }),
    );
    put("htlc", wallet.htlc.as_ref().map(|htlc| of_htlc(htlc)));
    put("business", wallet.business.as_ref().map(|business| of_business(business)));
    let mut shown = json!({
        "address": wallet.address,
        "balance": wallet.balance,
        "nonce": wallet.nonce.to_string(),
        "attributes": attributes,
    });
    if let Some(key) = wallet.public_key {
        shown["publicKey"] = json!(key);
    }
    shown
}

fn of_delegate(delegate: &DelegateAttributes, tree: &BlockTree) -> Value {
    let mut shown = json!({
        "username": &*delegate.username,
        "voteBalance": delegate.vote_balance,
        "forgedFees": delegate.forged_fees,
        "forgedRewards": delegate.forged_rewards,
        "producedBlocks": delegate.produced_blocks,
    });
    if let Some(rank) = delegate.rank {
        shown["rank"] = json!(rank);
    }
    if delegate.round > 0 {
        shown["round"] = json!(delegate.round);
    }
    if delegate.resigned {
        shown["resigned"] = json!(true);
    }
    if let Some(last) = &delegate.last_block {
        shown["lastBlock"] = last.0.header_json(&tree.config().milestones);
    }
    shown
}

fn of_htlc(htlc: &Htlc) -> Value {
    let locks = htlc.locks.iter().map(|(id, lock)| (id.to_string(), of_lock(lock)));
    json!({ "locks": locks.collect::<Map<_, _>>(), "lockedBalance": htlc.locked_balance })
}

fn of_lock(lock: &Lock) -> Value {
    let (kind, value) = lock.expiration.numbers();
    let mut shown = json!({
        "amount": lock.amount,
        "recipientId": lock.recipient,
        "timestamp": lock.timestamp,
        "secretHash": hex::encode(lock.secret_hash),
        "expiration": { "type": kind, "value": value },
    });
    if let Some(text) = &lock.vendor_field {
        shown["vendorField"] = json!(text);
    }
    shown
}

fn of_business(business: &Business) -> Value {
    let mut asset = json!({ "name": business.name, "website": business.website });
    for (name, text) in [("vat", &business.vat), ("repository", &business.repository)] {
        if let Some(text) = text {
            asset[name] = json!(text);
        }
    }
    let mut shown = json!({ "businessAsset": asset });
    if business.resigned {
        shown["resigned"] = json!(true);
    }
    if !business.bridgechains.is_empty() {
        let chains = business.bridgechains.values();
        let chains = chains.map(|chain| (hex::encode(chain.genesis_hash), of_bridgechain(chain)));
        shown["bridgechains"] = Value::Object(chains.collect());
    }
    shown
}

fn of_bridgechain(chain: &Bridgechain) -> Value {
    let mut asset = json!({
        "name": chain.name,
        "seedNodes": chain.seed_nodes,
        "genesisHash": hex::encode(chain.genesis_hash),
        "bridgechainRepository": chain.repository,
        "ports": chain.ports,
    });
    if let Some(text) = &chain.asset_repository {
        asset["bridgechainAssetRepository"] = json!(text);
    }
    let mut shown = json!({ "bridgechainAsset": asset });
    if chain.resigned {
        shown["resigned"] = json!(true);
    }
    shown
}

/// A peer with the state that it reported last.
pub(super) fn of_peer(peer: &PeerState, now: SimTime, slots: &Slots, milestones: &Milestones) -> Value {
    let mut state = json!({
        "height": peer.tip.as_ref().map_or(0, |tip| tip.height().0),
        "forgingAllowed": slots.forging_allowed(now.seconds()),
        "currentSlot": slots.slot(now.seconds()),
    });
    if let Some(tip) = &peer.tip {
        state["header"] = tip.block().header_json(milestones);
    }
    json!({
        "ip": peer.ip,
        "ports": { "@arkecosystem/core-p2p": peer.port },
        "port": peer.port,
        "state": state,
        "plugins": {},
        "latency": peer.latency_ms,
        "version": peer.version,
    })
}
