//! Wallets. Source: api.md 3, 4.1, 4.3.

use super::attributes::{ATTRIBUTES, MULTI_SIGNATURE};
use crate::{
    api::table::{
        Bound, Frame, Member, Parameter, Shape, both,
        field::Cell,
        parameter::{ADDRESS, ADDRESSES, FROM_ZERO, PUBLIC_KEY, USERNAME, WALLET_ID},
        row, shape,
    },
    ledger::Wallet,
};
use std::sync::Arc;

/// The order of a list.
#[rustfmt::skip]
pub(crate) const ORDERED: &[Parameter] = &row::ordered(MEMBERS, &[
    "address", "balance", "resigned", "lockedBalance", "nonce", "publicKey", "secondPublicKey", "username", "vote",
    "voteBalance",
]);

/// The parameters that lists of wallets take.
#[rustfmt::skip]
pub(crate) const FILTERS: &[Parameter] = &row::filters(MEMBERS, [
    "address", "publicKey", "senderPublicKey", "secondPublicKey", "vote", "username", "balance", "voteBalance",
    "producedBlocks",
]);

/// The parameters that the search takes in its body.
#[rustfmt::skip]
pub(crate) const SEARCH: &[Parameter] = &row::searched(MEMBERS, [
    "address", "addresses", "publicKey", "secondPublicKey", "vote", "username", "producedBlocks", "balance",
    "voteBalance", "votebalance", "lockedBalance",
]);

/// The parameters that the list of a delegate's voters takes.
#[rustfmt::skip]
pub(crate) const VOTERS: &[Parameter] = &row::filters(VOTER, [
    "address", "publicKey", "secondPublicKey", "vote", "username", "balance", "voteBalance", "producedBlocks",
]);

/// A wallet as a path has it.
pub(crate) const PATH_ID: &[Parameter] = &[both("id", WALLET_ID)];

/// A wallet.
pub(crate) type WalletRow = Arc<Wallet>;

type Row = Member<WalletRow>;

/// The members of a wallet.
pub(crate) const MEMBERS: &[Row] = &[
    Row::new("address", shape::ADDRESS, |wallet, _| wallet.address.into()).asked(ADDRESS),
    Row::hidden("addresses", |wallet, _| wallet.address.into()).asked(ADDRESSES),
    Row::some("publicKey", shape::KEY, |wallet, _| wallet.public_key.into()).asked(PUBLIC_KEY),
    Row::hidden("senderPublicKey", |wallet, _| wallet.public_key.into()).asked(PUBLIC_KEY).if_documented(),
    Row::new("nonce", shape::AMOUNT, |wallet, _| wallet.nonce.into()),
    BALANCE,
    Row::nested("attributes", ATTRIBUTES),
    Row::some("lockedBalance", shape::AMOUNT, |wallet, _| wallet.locked_balance().into())
        .written(|wallet, _, slot| slot.put_some(wallet.htlc.as_ref().map(|htlc| htlc.locked_balance)))
        .ranged(),
    Row::hidden("voteBalance", vote_balance).ranged(),
    Row::hidden("votebalance", vote_balance).ranged().if_documented(),
    Row::hidden("producedBlocks", |wallet, _| wallet.delegate.as_ref().map(|delegate| delegate.produced_blocks).into())
        .asked(FROM_ZERO),
    Row::new("isDelegate", Shape::Boolean, |wallet, _| wallet.delegate.is_some().into()),
    Row::new("isResigned", Shape::Boolean, |wallet, _| is_resigned(wallet).into()),
    Row::hidden("resigned", |wallet, _| is_resigned(wallet).then_some(true).into()),
    Row::some("vote", shape::KEY, |wallet, _| wallet.vote.into()).asked(PUBLIC_KEY),
    MULTI_SIGNATURE,
    NAME,
    SECOND_KEY,
];

const BALANCE: Row = Row::new("balance", shape::AMOUNT, |wallet, _| wallet.balance.into()).within(Bound::Any);
const NAME: Row = Row::some("username", Shape::Text, |wallet, _| wallet.username().into()).asked(USERNAME);
const SECOND_KEY: Row =
    Row::some("secondPublicKey", shape::KEY, |wallet, _| wallet.second_public_key.into()).asked(PUBLIC_KEY);

/// The members of a wallet in search results and lists of voters, where three of them have another shape. Source:
/// api.md 4.10 row 3.
pub(crate) const FOUND: &[Row] = &row::with::<_, { MEMBERS.len() }, _>(
    MEMBERS,
    [
        BALANCE.shaped(shape::NUMBER_OR_AMOUNT),
        NAME.shaped(Shape::Told(&shape::TEXT_OR_NULL, &Shape::Text)),
        SECOND_KEY.shaped(Shape::Told(&Shape::Either(&[shape::KEY, Shape::Null]), &shape::KEY)),
    ],
);

/// The members of a voter, whose list accepts no balance below zero as a filter.
const VOTER: &[Row] = &row::with::<_, { MEMBERS.len() }, _>(MEMBERS, [BALANCE.ranged()]);

fn vote_balance<'r>(wallet: &'r WalletRow, _: &Frame<'r>) -> Cell<'r> {
    wallet.delegate.as_ref().map_or(0, |delegate| delegate.vote_balance.0).into()
}

/// The shape of a wallet.
pub(crate) const SHAPE: Shape = Shape::Resource("Wallet", &MEMBERS);

/// The shape of a wallet that a search found.
pub(crate) const FOUND_SHAPE: Shape = Shape::Resource("WalletFound", &FOUND);

fn is_resigned(wallet: &Wallet) -> bool {
    wallet.delegate.as_ref().is_some_and(|delegate| delegate.resigned)
}
