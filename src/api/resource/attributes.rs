//! Attributes of wallets, beside their balance. Source: api.md 4.1.

use super::block::{self, RawBlock};
use crate::{
    api::table::{Member, Shape, shape},
    ledger::{
        DelegateAttributes, Wallet,
        wallet::{Bridgechain, Business, Htlc, Lock},
    },
    protocol::Asset,
};
use std::sync::Arc;

/// `{"publicKeys":[…],"min":n}`.
const MULTI_SIGNATURE_SHAPE: Shape =
    Shape::Members(&[("publicKeys", Shape::List(&shape::KEY), true), ("min", Shape::Integer, true)]);

const LOCK: &[Member<Lock>] = &[
    Member::new("amount", shape::AMOUNT, |lock, _| lock.amount.into()),
    Member::new("recipientId", shape::ADDRESS, |lock, _| lock.recipient.into()),
    Member::new("timestamp", Shape::Integer, |lock, _| lock.timestamp.into()),
    Member::some("vendorField", Shape::Text, |lock, _| lock.vendor_field.as_deref().into()),
    Member::new("secretHash", shape::HASH, |lock, _| (&lock.secret_hash).into()),
    Member::nested(
        "expiration",
        &[
            Member::new("type", Shape::Integer, |lock, _| lock.expiration.numbers().0.into()),
            Member::new("value", Shape::Integer, |lock, _| lock.expiration.numbers().1.into()),
        ],
    ),
];

const HTLC: &[Member<Htlc>] = &[
    Member::by("locks", Shape::Map(&Shape::Table(&LOCK)), |htlc, frame, slot| {
        slot.object(|locks| {
            for (id, lock) in &htlc.locks {
                locks.member(&id.to_string()).members(LOCK, lock, frame);
            }
        });
    }),
    Member::new("lockedBalance", shape::AMOUNT, |htlc, _| htlc.locked_balance.into()),
];

const BUSINESS: &[Member<Business>] = &[
    Member::nested(
        "businessAsset",
        &[
            Member::new("name", Shape::Text, |business, _| (&*business.name).into()),
            Member::new("website", Shape::Text, |business, _| (&*business.website).into()),
            Member::some("vat", Shape::Text, |business, _| business.vat.as_deref().into()),
            Member::some("repository", Shape::Text, |business, _| business.repository.as_deref().into()),
        ],
    ),
    Member::some("resigned", Shape::Boolean, |business, _| business.resigned.then_some(true).into()),
    Member::<Business>::by("bridgechains", Shape::Map(&BRIDGECHAIN_SHAPE), |business, frame, slot| {
        if !business.bridgechains.is_empty() {
            slot.object(|bridgechains| {
                for bridgechain in business.bridgechains.values() {
                    let name = hex::encode(bridgechain.genesis_hash);
                    bridgechains.member(&name).members(BRIDGECHAIN, bridgechain, frame);
                }
            });
        }
    })
    .optional(),
];

/// The shape of a bridgechain as its business's attributes have it.
pub const BRIDGECHAIN_SHAPE: Shape = Shape::Table(&BRIDGECHAIN);

/// The members of a bridgechain as its business's attributes have them.
pub const BRIDGECHAIN: &[Member<Bridgechain>] = &[
    Member::nested(
        "bridgechainAsset",
        &[
            Member::new("name", Shape::Text, |chain, _| (&*chain.name).into()),
            Member::by("seedNodes", Shape::List(&Shape::Text), |chain, _, slot| slot.put(&chain.seed_nodes)),
            Member::new("genesisHash", shape::HASH, |chain, _| (&chain.genesis_hash).into()),
            Member::new("bridgechainRepository", Shape::Text, |chain, _| (&*chain.repository).into()),
            Member::some("bridgechainAssetRepository", Shape::Text, |chain, _| {
                chain.asset_repository.as_deref().into()
            }),
            Member::by("ports", Shape::Map(&Shape::Integer), |chain, _, slot| slot.put(&chain.ports)),
        ],
    ),
    Member::some("resigned", Shape::Boolean, |chain, _| chain.resigned.then_some(true).into()),
];

const DELEGATE: &[Member<DelegateAttributes>] = &[
    Member::new("username", Shape::Text, |delegate, _| (&*delegate.username).into()),
    Member::new("voteBalance", shape::AMOUNT, |delegate, _| delegate.vote_balance.into()),
    Member::new("forgedFees", shape::AMOUNT, |delegate, _| delegate.forged_fees.into()),
    Member::new("forgedRewards", shape::AMOUNT, |delegate, _| delegate.forged_rewards.into()),
    Member::new("producedBlocks", Shape::Integer, |delegate, _| delegate.produced_blocks.into()),
    Member::some("rank", Shape::Integer, |delegate, _| delegate.rank.into()),
    Member::some("round", Shape::Integer, |delegate, _| (delegate.round > 0).then_some(delegate.round).into()),
    Member::some("resigned", Shape::Boolean, |delegate, _| delegate.resigned.then_some(true).into()),
    Member::<DelegateAttributes>::by("lastBlock", block::HEADER_SHAPE, |delegate, frame, slot| {
        if let Some(last) = &delegate.last_block {
            slot.members(block::HEADER, &RawBlock::Whole(last.0.clone()), frame);
        }
    })
    .optional(),
];

type Row = Member<Arc<Wallet>>;

/// The members of `attributes`.
pub const ATTRIBUTES: &[Row] = &[
    Row::by("delegate", Shape::Table(&DELEGATE), |wallet, frame, slot| {
        if let Some(delegate) = &wallet.delegate {
            slot.members(DELEGATE, &**delegate, frame);
        }
    })
    .optional(),
    Row::some("vote", shape::KEY, |wallet, _| wallet.vote.into()),
    Row::some("secondPublicKey", shape::KEY, |wallet, _| wallet.second_public_key.into()),
    MULTI_SIGNATURE,
    Row::by("ipfs", Shape::Members(&[("hashes", Shape::Map(&Shape::Boolean), true)]), |wallet, _, slot| {
        let Some(multihashes) = &wallet.ipfs else { return };
        slot.object(|ipfs| {
            ipfs.member("hashes").object(|hashes| {
                for multihash in multihashes.iter() {
                    hashes.member(&Asset::ipfs_text(multihash)).put(&true);
                }
            });
        });
    })
    .optional(),
    Row::by("htlc", Shape::Table(&HTLC), |wallet, frame, slot| {
        if let Some(htlc) = &wallet.htlc {
            slot.members(HTLC, &**htlc, frame);
        }
    })
    .optional(),
    Row::by("business", Shape::Table(&BUSINESS), |wallet, frame, slot| {
        if let Some(business) = &wallet.business {
            slot.members(BUSINESS, &**business, frame);
        }
    })
    .optional(),
];

/// `{"publicKeys":[…],"min":n}`, or nothing.
pub const MULTI_SIGNATURE: Row = Row::by("multiSignature", MULTI_SIGNATURE_SHAPE, |wallet, _, slot| {
    let Some(multi_signature) = &wallet.multi_signature else { return };
    slot.object(|object| {
        object.member("publicKeys").put(&multi_signature.public_keys);
        object.member("min").put(&multi_signature.min);
    });
})
.optional();
