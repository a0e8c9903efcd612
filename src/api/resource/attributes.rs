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
            ipfs.member("hashes").object(|hashes| {
                for multihash in multihashes.iter() {
                    hashes.member(&Asset::ipfs_text(multihash)).put(&true);
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
                object.member("locks").object(|locks| {
                    for (id, lock) in &htlc.locks {
                        locks.member(&id.to_string()).object(|object| write_lock(object, lock));
                    }
                });
                object.member("lockedBalance").put(&htlc.locked_balance);
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
        object.member("publicKeys").put(&multi_signature.public_keys);
        object.member("min").put(&multi_signature.min);
    });
}

fn write_delegate(object: &mut Object<'_>, delegate: &DelegateAttributes, frame: &Frame<'_>) {
    object.member("username").put(&delegate.username);
    object.member("voteBalance").put(&delegate.vote_balance);
    object.member("forgedFees").put(&delegate.forged_fees);
    object.member("forgedRewards").put(&delegate.forged_rewards);
    object.member("producedBlocks").put(&delegate.produced_blocks);
    object.member("rank").put_some(delegate.rank);
    object.member("round").put_some((delegate.round > 0).then_some(delegate.round));
    object.member("resigned").put_some(delegate.resigned.then_some(true));
    if let Some(last) = &delegate.last_block {
        object.member("lastBlock").members(block::HEADER, &last.0, frame);
    }
}

fn write_lock(object: &mut Object<'_>, lock: &Lock) {
    object.member("amount").put(&lock.amount);
    object.member("recipientId").text(lock.recipient);
    object.member("timestamp").put(&lock.timestamp);
    object.member("vendorField").put_some(lock.vendor_field.as_ref());
    object.member("secretHash").text(hex::encode(lock.secret_hash));
    let (kind, value) = lock.expiration.numbers();
    object.member("expiration").object(|expiration| {
        expiration.member("type").put(&kind);
        expiration.member("value").put(&value);
    });
}

fn write_business(object: &mut Object<'_>, business: &Business) {
    object.member("businessAsset").object(|asset| {
        asset.member("name").put(&business.name);
        asset.member("website").put(&business.website);
        asset.member("vat").put_some(business.vat.as_ref());
        asset.member("repository").put_some(business.repository.as_ref());
    });
    object.member("resigned").put_some(business.resigned.then_some(true));
    if business.bridgechains.is_empty() {
        return;
    }
    object.member("bridgechains").object(|bridgechains| {
        for bridgechain in business.bridgechains.values() {
            let name = hex::encode(bridgechain.genesis_hash);
            bridgechains.member(&name).object(|object| write_bridgechain(object, bridgechain));
        }
    });
}

/// The members of a bridgechain.
pub fn write_bridgechain(object: &mut Object<'_>, bridgechain: &Bridgechain) {
    object.member("bridgechainAsset").object(|asset| {
        asset.member("name").put(&bridgechain.name);
        asset.member("seedNodes").put(&bridgechain.seed_nodes);
        asset.member("genesisHash").text(hex::encode(bridgechain.genesis_hash));
        asset.member("bridgechainRepository").put(&bridgechain.repository);
        asset.member("bridgechainAssetRepository").put_some(bridgechain.asset_repository.as_ref());
        asset.member("ports").put(&bridgechain.ports);
    });
    object.member("resigned").put_some(bridgechain.resigned.then_some(true));
}
