//! Attributes of wallets, beside their balance. Source: api.md 4.1.

use super::block;
use crate::{
    api::table::{
        frame::Frame,
        json::{MemberWriter, Object},
        row::Member,
        shape::{self, Shape},
    },
    ledger::{
        DelegateAttributes, Wallet,
        wallet::{Bridgechain, Business, Lock},
    },
    protocol::Asset,
};
use std::sync::Arc;

/// `{"publicKeys":[…],"min":n}`.
pub const MULTI_SIGNATURE: Shape =
    Shape::Members(&[("publicKeys", Shape::List(&shape::KEY), true), ("min", Shape::Integer, true)]);

const LOCK: Shape = Shape::Members(&[
    ("amount", shape::AMOUNT, true),
    ("recipientId", shape::ADDRESS, true),
    ("timestamp", Shape::Integer, true),
    ("vendorField", Shape::Text, false),
    ("secretHash", shape::HASH, true),
    ("expiration", Shape::Members(&[("type", Shape::Integer, true), ("value", Shape::Integer, true)]), true),
]);

const BUSINESS: Shape = Shape::Members(&[
    ("businessAsset", BUSINESS_ASSET, true),
    ("resigned", Shape::Boolean, false),
    ("bridgechains", Shape::Map(&BRIDGECHAIN), false),
]);

const BUSINESS_ASSET: Shape = Shape::Members(&[
    ("name", Shape::Text, true),
    ("website", Shape::Text, true),
    ("vat", Shape::Text, false),
    ("repository", Shape::Text, false),
]);

/// A bridgechain as its business's attributes have it.
pub const BRIDGECHAIN: Shape =
    Shape::Members(&[("bridgechainAsset", BRIDGECHAIN_ASSET, true), ("resigned", Shape::Boolean, false)]);

const BRIDGECHAIN_ASSET: Shape = Shape::Members(&[
    ("name", Shape::Text, true),
    ("seedNodes", Shape::List(&Shape::Text), true),
    ("genesisHash", shape::HASH, true),
    ("bridgechainRepository", Shape::Text, true),
    ("bridgechainAssetRepository", Shape::Text, false),
    ("ports", Shape::Map(&Shape::Integer), true),
]);

const DELEGATE: Shape = Shape::Members(&[
    ("username", Shape::Text, true),
    ("voteBalance", shape::AMOUNT, true),
    ("forgedFees", shape::AMOUNT, true),
    ("forgedRewards", shape::AMOUNT, true),
    ("producedBlocks", Shape::Integer, true),
    ("rank", Shape::Integer, false),
    ("round", Shape::Integer, false),
    ("resigned", Shape::Boolean, false),
    ("lastBlock", block::HEADER_SHAPE, false),
]);

/// The members of `attributes`.
pub const ATTRIBUTES: &[Member<Arc<Wallet>>] = &[
    Member::some("delegate", DELEGATE, |wallet, frame, slot| {
        if let Some(delegate) = &wallet.delegate {
            slot.object(|object| write_delegate(object, delegate, frame));
        }
    }),
    Member::some("vote", shape::KEY, |wallet, _, slot| slot.text_some(wallet.vote)),
    Member::some("secondPublicKey", shape::KEY, |wallet, _, slot| slot.text_some(wallet.second_public_key)),
    Member::some("multiSignature", MULTI_SIGNATURE, |wallet, _, slot| write_multi_signature(slot, wallet)),
    Member::some("ipfs", Shape::Members(&[("hashes", Shape::Map(&Shape::Boolean), true)]), |wallet, _, slot| {
        let Some(multihashes) = &wallet.ipfs else { return };
        slot.object(|ipfs| {
            ipfs.slot("hashes").object(|hashes| {
                for multihash in multihashes.iter() {
                    hashes.slot(&Asset::ipfs_text(multihash)).put(&true);
                }
            });
        });
    }),
    Member::some(
        "htlc",
        Shape::Members(&[("locks", Shape::Map(&LOCK), true), ("lockedBalance", shape::AMOUNT, true)]),
        |wallet, _, slot| {
            let Some(htlc) = &wallet.htlc else { return };
            slot.object(|object| {
                object.slot("locks").object(|locks| {
                    for (id, lock) in &htlc.locks {
                        locks.slot(&id.to_string()).object(|object| write_lock(object, lock));
                    }
                });
                object.slot("lockedBalance").put(&htlc.locked_balance);
            });
        },
    ),
    Member::some("business", BUSINESS, |wallet, _, slot| {
        if let Some(business) = &wallet.business {
            slot.object(|object| write_business(object, business));
        }
    }),
];

/// `{"publicKeys":[…],"min":n}`, or nothing.
pub fn write_multi_signature(slot: MemberWriter<'_, '_>, wallet: &Arc<Wallet>) {
    let Some(multi_signature) = &wallet.multi_signature else { return };
    slot.object(|object| {
        object.slot("publicKeys").put(&multi_signature.public_keys);
        object.slot("min").put(&multi_signature.min);
    });
}

fn write_delegate(object: &mut Object<'_>, delegate: &DelegateAttributes, frame: &Frame<'_>) {
    object.slot("username").put(&delegate.username);
    object.slot("voteBalance").put(&delegate.vote_balance);
    object.slot("forgedFees").put(&delegate.forged_fees);
    object.slot("forgedRewards").put(&delegate.forged_rewards);
    object.slot("producedBlocks").put(&delegate.produced_blocks);
    object.slot("rank").put_some(delegate.rank);
    object.slot("round").put_some((delegate.round > 0).then_some(delegate.round));
    object.slot("resigned").put_some(delegate.resigned.then_some(true));
    if let Some(last) = &delegate.last_block {
        object.slot("lastBlock").members(block::HEADER, &last.0, frame);
    }
}

fn write_lock(object: &mut Object<'_>, lock: &Lock) {
    object.slot("amount").put(&lock.amount);
    object.slot("recipientId").text(lock.recipient);
    object.slot("timestamp").put(&lock.timestamp);
    object.slot("vendorField").put_some(lock.vendor_field.as_ref());
    object.slot("secretHash").text(hex::encode(lock.secret_hash));
    let (kind, value) = lock.expiration.numbers();
    object.slot("expiration").object(|expiration| {
        expiration.slot("type").put(&kind);
        expiration.slot("value").put(&value);
    });
}

fn write_business(object: &mut Object<'_>, business: &Business) {
    object.slot("businessAsset").object(|asset| {
        asset.slot("name").put(&business.name);
        asset.slot("website").put(&business.website);
        asset.slot("vat").put_some(business.vat.as_ref());
        asset.slot("repository").put_some(business.repository.as_ref());
    });
    object.slot("resigned").put_some(business.resigned.then_some(true));
    if business.bridgechains.is_empty() {
        return;
    }
    object.slot("bridgechains").object(|bridgechains| {
        for bridgechain in business.bridgechains.values() {
            let name = hex::encode(bridgechain.genesis_hash);
            bridgechains.slot(&name).object(|object| write_bridgechain(object, bridgechain));
        }
    });
}

/// The members of a bridgechain.
pub fn write_bridgechain(object: &mut Object<'_>, bridgechain: &Bridgechain) {
    object.slot("bridgechainAsset").object(|asset| {
        asset.slot("name").put(&bridgechain.name);
        asset.slot("seedNodes").put(&bridgechain.seed_nodes);
        asset.slot("genesisHash").text(hex::encode(bridgechain.genesis_hash));
        asset.slot("bridgechainRepository").put(&bridgechain.repository);
        asset.slot("bridgechainAssetRepository").put_some(bridgechain.asset_repository.as_ref());
        asset.slot("ports").put(&bridgechain.ports);
    });
    object.slot("resigned").put_some(bridgechain.resigned.then_some(true));
}
