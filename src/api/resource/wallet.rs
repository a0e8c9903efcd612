//! Wallets. Source: api.md 3, 4.1, 4.3.

use super::attributes::{ATTRIBUTES, MULTI_SIGNATURE, write_multi_signature};
use crate::{
    api::table::{
        dialect::Spoken,
        field::{Cell, Field},
        frame::Frame,
        parameter::{
            ADDRESS, ADDRESSES, FROM_ZERO, PUBLIC_KEY, Parameter, RANGE, USERNAME, WALLET_ID, both, documented,
        },
        row::{self, Member, write_members},
        rule::{Bound, Rule},
        shape::{self, Shape},
    },
    ledger::Wallet,
};
use std::sync::Arc;

/// The fields that `orderBy` takes.
#[rustfmt::skip]
pub const ORDERS: &[&str] = &[
    "address", "balance", "resigned", "lockedBalance", "nonce", "publicKey", "secondPublicKey", "username", "vote",
    "voteBalance",
];

/// The parameters that lists of wallets take.
pub const FILTERS: &[Parameter] = &[
    both("orderBy", Rule::Order(ORDERS)),
    both("address", ADDRESS),
    both("publicKey", PUBLIC_KEY),
    documented("senderPublicKey", PUBLIC_KEY),
    both("secondPublicKey", PUBLIC_KEY),
    both("vote", PUBLIC_KEY),
    both("username", USERNAME),
    both("balance", Rule::Quantity(Bound::Any)),
    both("voteBalance", FROM_ZERO),
    both("producedBlocks", FROM_ZERO),
];

/// The parameters that the search takes in its query beside paging.
pub const ORDERED: &[Parameter] = &[both("orderBy", Rule::Order(ORDERS))];

/// The parameters that the search takes in its body.
pub const SEARCH: &[Parameter] = &[
    documented("orderBy", Rule::Order(ORDERS)),
    both("address", ADDRESS),
    both("addresses", ADDRESSES),
    both("publicKey", PUBLIC_KEY),
    both("secondPublicKey", PUBLIC_KEY),
    both("vote", PUBLIC_KEY),
    both("username", USERNAME),
    both("producedBlocks", FROM_ZERO),
    both("balance", Rule::Range(Bound::Any)),
    both("voteBalance", RANGE),
    documented("votebalance", RANGE),
    both("lockedBalance", RANGE),
];

/// The parameters that the list of a delegate's voters takes.
pub const VOTERS: &[Parameter] = &[
    both("orderBy", Rule::Order(ORDERS)),
    both("address", ADDRESS),
    both("publicKey", PUBLIC_KEY),
    both("secondPublicKey", PUBLIC_KEY),
    both("vote", PUBLIC_KEY),
    both("username", USERNAME),
    both("balance", FROM_ZERO),
    both("voteBalance", FROM_ZERO),
    both("producedBlocks", FROM_ZERO),
];

/// A wallet as a path has it.
pub const PATH_ID: &[Parameter] = &[both("id", WALLET_ID)];

/// A wallet.
pub type WalletRow = Arc<Wallet>;

/// The fields by which wallets are filtered and ordered.
pub const FIELDS: &[Field<WalletRow>] = &[
    Field::new("address", |wallet, _| Cell::shown(wallet.address)),
    Field::new("addresses", |wallet, _| Cell::shown(wallet.address)),
    Field::hex("publicKey", |wallet, _| Cell::shown_some(wallet.public_key)),
    Field::hex("senderPublicKey", |wallet, _| Cell::shown_some(wallet.public_key)),
    Field::hex("secondPublicKey", |wallet, _| Cell::shown_some(wallet.second_public_key)),
    Field::hex("vote", |wallet, _| Cell::shown_some(wallet.vote)),
    Field::new("username", |wallet, _| Cell::text(wallet.username())),
    Field::new("balance", |wallet, _| Cell::number(wallet.balance.0)),
    Field::new("lockedBalance", |wallet, _| Cell::number(wallet.locked_balance().0)),
    Field::new("nonce", |wallet, _| Cell::number(wallet.nonce.0)),
    Field::new("voteBalance", vote_balance),
    Field::new("votebalance", vote_balance),
    Field::new("producedBlocks", |wallet, _| {
        wallet.delegate.as_ref().map_or(Cell::Missing, |delegate| Cell::number(delegate.produced_blocks))
    }),
    Field::new("resigned", |wallet, _| if is_resigned(wallet) { Cell::Flag(true) } else { Cell::Missing }),
];

fn vote_balance<'r>(wallet: &'r WalletRow, _: &Frame<'r>) -> Cell<'r> {
    Cell::number(wallet.delegate.as_ref().map_or(0, |delegate| delegate.vote_balance.0))
}

/// The full shape.
const MEMBERS: &[Member<WalletRow>] = &[
    Member::new("address", shape::ADDRESS, |wallet, _, slot| slot.text(wallet.address)),
    Member::some("publicKey", shape::KEY, |wallet, _, slot| slot.text_some(wallet.public_key)),
    Member::new("nonce", shape::AMOUNT, |wallet, _, slot| slot.text(wallet.nonce)),
    Member::new("balance", shape::AMOUNT, |wallet, _, slot| slot.put(&wallet.balance)),
    Member::new(
        "attributes",
        Shape::Table(|dialect, named| row::of_table(ATTRIBUTES, dialect, named)),
        |wallet, frame, slot| slot.members(ATTRIBUTES, wallet, frame),
    ),
    Member::some("lockedBalance", shape::AMOUNT, |wallet, _, slot| {
        slot.put_some(wallet.htlc.as_ref().map(|htlc| htlc.locked_balance))
    }),
    Member::new("isDelegate", Shape::Boolean, |wallet, _, slot| slot.put(&wallet.delegate.is_some())),
    Member::new("isResigned", Shape::Boolean, |wallet, _, slot| slot.put(&is_resigned(wallet))),
    Member::some("vote", shape::KEY, |wallet, _, slot| slot.text_some(wallet.vote)),
    Member::some("multiSignature", MULTI_SIGNATURE, |wallet, _, slot| write_multi_signature(slot, wallet)),
    Member::some("username", Shape::Text, |wallet, _, slot| slot.put_some(wallet.username())),
    Member::some("secondPublicKey", shape::KEY, |wallet, _, slot| slot.text_some(wallet.second_public_key)),
];

/// The shape of search results and voters. Source: api.md 4.10 row 3.
const FOUND: &[Member<WalletRow>] = &[
    Member::new("address", shape::ADDRESS, |wallet, _, slot| slot.text(wallet.address)),
    Member::some("publicKey", shape::KEY, |wallet, _, slot| slot.text_some(wallet.public_key)),
    Member::new("nonce", shape::AMOUNT, |wallet, _, slot| slot.text(wallet.nonce)),
    Member::only("balance", Spoken::DOCUMENTED, Shape::Integer, |wallet, _, slot| slot.number(wallet.balance)),
    Member::only("balance", Spoken::CORE26, shape::AMOUNT, |wallet, _, slot| slot.put(&wallet.balance)),
    Member::new(
        "attributes",
        Shape::Table(|dialect, named| row::of_table(ATTRIBUTES, dialect, named)),
        |wallet, frame, slot| slot.members(ATTRIBUTES, wallet, frame),
    ),
    Member::some("lockedBalance", shape::AMOUNT, |wallet, _, slot| {
        slot.put_some(wallet.htlc.as_ref().map(|htlc| htlc.locked_balance))
    }),
    Member::new("isDelegate", Shape::Boolean, |wallet, _, slot| slot.put(&wallet.delegate.is_some())),
    Member::new("isResigned", Shape::Boolean, |wallet, _, slot| slot.put(&is_resigned(wallet))),
    Member::some("vote", shape::KEY, |wallet, _, slot| slot.text_some(wallet.vote)),
    Member::some("multiSignature", MULTI_SIGNATURE, |wallet, _, slot| write_multi_signature(slot, wallet)),
    Member::only("username", Spoken::DOCUMENTED, Shape::Either(&[Shape::Text, Shape::Null]), |wallet, _, slot| {
        slot.put(&wallet.username())
    }),
    Member::only_some("username", Spoken::CORE26, Shape::Text, |wallet, _, slot| slot.put_some(wallet.username())),
    Member::only(
        "secondPublicKey",
        Spoken::DOCUMENTED,
        Shape::Either(&[shape::KEY, Shape::Null]),
        |wallet, _, slot| slot.put(&wallet.second_public_key),
    ),
    Member::only_some("secondPublicKey", Spoken::CORE26, shape::KEY, |wallet, _, slot| {
        slot.text_some(wallet.second_public_key)
    }),
];

/// The shape of a wallet.
pub const SHAPE: Shape = Shape::Resource("Wallet", |dialect, named| row::of_table(MEMBERS, dialect, named));

/// The shape of a wallet that a search found.
pub const FOUND_SHAPE: Shape = Shape::Resource("WalletFound", |dialect, named| row::of_table(FOUND, dialect, named));

/// Writes a wallet in full.
pub fn write(out: &mut Vec<u8>, wallet: &WalletRow, frame: &Frame<'_>) {
    write_members(out, MEMBERS, wallet, frame);
}

/// Writes a wallet as a search finds it.
pub fn write_found(out: &mut Vec<u8>, wallet: &WalletRow, frame: &Frame<'_>) {
    write_members(out, FOUND, wallet, frame);
}

fn is_resigned(wallet: &Wallet) -> bool {
    wallet.delegate.as_ref().is_some_and(|delegate| delegate.resigned)
}
