//! Businesses and their bridgechains. Source: api.md 3, 4.1, 4.8.

use super::wallet;
use crate::{
    api::table::{
        Check, Frame, Member, Parameter, Rule, Shape, both,
        field::Cell,
        parameter::{ADDRESS, PUBLIC_KEY, TRANSACTION_ID, WALLET_ID},
        row::{self, write_members},
        shape,
    },
    ledger::{
        Wallet,
        wallet::{Bridgechain, Business},
    },
};
use std::{borrow::Cow, sync::Arc};

const NAME: Rule = Rule::Text(&[Check::GenericName, Check::AtMost(40)]);
const UP_TO_80: Rule = Rule::Text(&[Check::AtMost(80)]);

/// The order of a list of businesses.
#[rustfmt::skip]
pub(crate) const ORDERED: &[Parameter] = &row::ordered(MEMBERS, &[
    "address", "isResigned", "name", "publicKey", "repository", "vat", "website",
]);

/// The parameters that the list of businesses takes.
pub(crate) const FILTERS: &[Parameter] = &row::filters(MEMBERS, ["publicKey", "isResigned"]);

/// The parameters that the search for businesses takes in its body.
#[rustfmt::skip]
pub(crate) const SEARCH: &[Parameter] = &row::searched(MEMBERS, [
    "address", "publicKey", "name", "website", "vat", "repository", "isResigned",
]);

/// The order of a list of bridgechains.
#[rustfmt::skip]
pub(crate) const CHAINS_ORDERED: &[Parameter] = &row::ordered(CHAIN_MEMBERS, &[
    "address", "bridgechainRepository", "genesisHash", "isResigned", "name", "publicKey",
]);

/// The parameters that the list of bridgechains takes.
pub(crate) const CHAIN_FILTERS: &[Parameter] = &row::filters(CHAIN_MEMBERS, ["publicKey", "isResigned"]);

/// The parameters that the list of a business's bridgechains takes.
pub(crate) const CHAINS_OF_BUSINESS: &[Parameter] = &row::filters(CHAIN_MEMBERS, ["isResigned"]);

/// The parameters that the search for bridgechains takes in its body.
#[rustfmt::skip]
pub(crate) const CHAIN_SEARCH: &[Parameter] = &row::searched(CHAIN_MEMBERS, [
    "address", "publicKey", "bridgechainRepository", "genesisHash", "name", "seedNodes", "isResigned",
]);

/// A business's bridgechain as a path has it.
pub(crate) const PATH_CHAIN: &[Parameter] = &[both("businessId", WALLET_ID), both("bridgechainId", TRANSACTION_ID)];

/// A business with its wallet.
#[derive(Clone, Debug)]
pub(crate) struct BusinessRow {
    pub wallet: Arc<Wallet>,
    business: Arc<Business>,
}

impl BusinessRow {
    /// The business of a wallet, if it has one.
    pub fn of(wallet: &Arc<Wallet>) -> Option<Self> {
        let business = wallet.business.clone()?;
        Some(Self { wallet: wallet.clone(), business })
    }

    /// Its bridgechains, in the order of registration.
    pub fn chains(&self) -> impl Iterator<Item = BridgechainRow> {
        (0..self.business.bridgechains.len()).map(|index| BridgechainRow { owner: self.clone(), index })
    }
}

/// A bridgechain with its business.
#[derive(Clone, Debug)]
pub(crate) struct BridgechainRow {
    owner: BusinessRow,
    index: usize,
}

impl BridgechainRow {
    /// The bridgechain.
    pub fn chain(&self) -> &Bridgechain {
        &self.owner.business.bridgechains[self.index]
    }

    /// The genesis hash in hex.
    pub fn genesis_hash(&self) -> String {
        hex::encode(self.chain().genesis_hash)
    }
}

type Row = Member<BusinessRow>;
type ChainRow = Member<BridgechainRow>;

/// The members of a business.
pub(crate) const MEMBERS: &[Row] = &[
    Row::new("address", shape::ADDRESS, |row, _| row.wallet.address.into()).asked(ADDRESS),
    Row::some("publicKey", shape::KEY, |row, _| row.wallet.public_key.into()).asked(PUBLIC_KEY),
    Row::new("name", Shape::Text, |row, _| (&*row.business.name).into()).asked_in_part(NAME),
    Row::new("website", Shape::Text, |row, _| (&*row.business.website).into()).asked_in_part(UP_TO_80),
    Row::some("vat", Shape::Text, |row, _| row.business.vat.as_deref().into())
        .asked(Rule::Text(&[Check::AlphaNumeric, Check::AtMost(15)])),
    Row::some("repository", Shape::Text, |row, _| row.business.repository.as_deref().into()).asked_in_part(UP_TO_80),
    Row::new("isResigned", Shape::Boolean, |row, _| row.business.resigned.into()).asked(Rule::Boolean),
];

/// The members of a bridgechain.
pub(crate) const CHAIN_MEMBERS: &[ChainRow] = &[
    ChainRow::some("publicKey", shape::KEY, |row, _| row.owner.wallet.public_key.into()).asked(PUBLIC_KEY),
    ChainRow::new("address", shape::ADDRESS, |row, _| row.owner.wallet.address.into()).asked(ADDRESS),
    ChainRow::new("name", Shape::Text, |row, _| (&*row.chain().name).into()).asked_in_part(NAME),
    ChainRow::new("seedNodes", Shape::List(&Shape::Text), |row, _| {
        Cell::Texts(row.chain().seed_nodes.iter().map(|node| Cow::Borrowed(&**node)).collect())
    })
    .asked(Rule::Several(&Rule::Ip, 1, 10)),
    ChainRow::new("genesisHash", shape::HASH, |row, _| (&row.chain().genesis_hash).into()).asked(TRANSACTION_ID),
    ChainRow::new("bridgechainRepository", Shape::Text, |row, _| (&*row.chain().repository).into())
        .asked_in_part(UP_TO_80),
    ChainRow::by("ports", Shape::Map(&Shape::Integer), |row, _, slot| slot.put(&row.chain().ports)),
    ChainRow::some("bridgechainAssetRepository", Shape::Text, |row, _| row.chain().asset_repository.as_deref().into()),
    ChainRow::new("isResigned", Shape::Boolean, |row, _| row.chain().resigned.into()).asked(Rule::Boolean),
];

/// The shape of a business.
pub(crate) const SHAPE: Shape = Shape::Either(&[Shape::Resource("Business", &MEMBERS), wallet::SHAPE]);

/// The shape of a bridgechain.
pub(crate) const CHAIN_SHAPE: Shape = Shape::Resource("Bridgechain", &CHAIN_MEMBERS);

/// Writes a business in the shape asked for: its own, or its wallet.
pub(crate) fn write(out: &mut Vec<u8>, row: &BusinessRow, frame: &Frame<'_>, transform: bool) {
    if transform {
        write_members(out, MEMBERS, row, frame);
    } else {
        write_members(out, wallet::MEMBERS, &row.wallet, frame);
    }
}
