//! Attributes of wallets, beside their balance. Source: api.md 4.1.

use super::block::{self, BlockRow};
use crate::{
    api::table::{Member, Shape, shape},
    ledger::{
        DelegateAttributes, Wallet,
        wallet::{Bridgechain, Business, Htlc, Lock, MultiSignature},
    },
    protocol::Asset,
};
use std::sync::Arc;

const SIGNERS: &[Member<MultiSignature>] = &[
    Member::by("publicKeys", Shape::List(&shape::KEY), |signers, _, slot| slot.put(&signers.public_keys)),
    Member::new("min", Shape::Integer, |signers, _| signers.min.into()),
];

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
    Member::some_by("bridgechains", Shape::Map(&BRIDGECHAIN_SHAPE), |business, frame, slot| {
        if !business.bridgechains.is_empty() {
            slot.object(|bridgechains| {
                for bridgechain in business.bridgechains.values() {
                    let name = hex::encode(bridgechain.genesis_hash);
                    bridgechains.member(&name).members(BRIDGECHAIN, bridgechain, frame);
                }
            });
        }
    }),
];

/// The shape of a bridgechain as its business's attributes have it.
pub(crate) const BRIDGECHAIN_SHAPE: Shape = Shape::Table(&BRIDGECHAIN);

/// The members of a bridgechain as its business's attributes have them.
pub(crate) const BRIDGECHAIN: &[Member<Bridgechain>] = &[
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
    Member::some_by("lastBlock", block::HEADER_SHAPE, |delegate, frame, slot| {
        let last = delegate.last_block.as_ref().map(|last| BlockRow::Whole(last.0.clone()));
        slot.some_members(block::HEADER, last.as_ref(), frame);
    }),
];

type Row = Member<Arc<Wallet>>;

/// The members of `attributes`.
pub(crate) const ATTRIBUTES: &[Row] = &[
    Row::some_by("delegate", Shape::Table(&DELEGATE), |wallet, frame, slot| {
        slot.some_members(DELEGATE, wallet.delegate.as_deref(), frame);
    }),
    Row::some("vote", shape::KEY, |wallet, _| wallet.vote.into()),
    VOTES,
    Row::some("secondPublicKey", shape::KEY, |wallet, _| wallet.second_public_key.into()),
    MULTI_SIGNATURE,
    Row::some_by("ipfs", Shape::Members(&[("hashes", Shape::Map(&Shape::Boolean), true)]), |wallet, _, slot| {
        let Some(multihashes) = &wallet.ipfs else { return };
        slot.object(|ipfs| {
            ipfs.member("hashes").object(|hashes| {
                for multihash in multihashes.iter() {
                    hashes.member(&Asset::ipfs_text(multihash)).put(&true);
                }
            });
        });
    }),
    Row::some_by("htlc", Shape::Table(&HTLC), |wallet, frame, slot| {
        slot.some_members(HTLC, wallet.htlc.as_deref(), frame);
    }),
    Row::some_by("business", Shape::Table(&BUSINESS), |wallet, frame, slot| {
        slot.some_members(BUSINESS, wallet.business.as_deref(), frame);
    }),
];

/// The delegates that a wallet with several votes votes for. A wallet with one vote or none has no such member.
const VOTES: Row = Row::some_by("votes", Shape::List(&shape::KEY), |wallet, _, slot| {
    if wallet.votes().nth(1).is_some() {
        slot.put(&wallet.votes().collect::<Vec<_>>());
    }
});

/// `{"publicKeys":[…],"min":n}`, or nothing.
pub(crate) const MULTI_SIGNATURE: Row =
    Row::some_by("multiSignature", Shape::Table(&SIGNERS), |wallet, frame, slot| {
        slot.some_members(SIGNERS, wallet.multi_signature.as_deref(), frame);
    });
