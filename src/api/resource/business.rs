//! Businesses and their bridgechains. Source: api.md 3, 4.1, 4.8.

use super::{
    attributes::write_bridgechain,
    wallet::{self, WalletRow},
};
use crate::{
    api::table::{
        field::{Cell, Field},
        frame::Frame,
        json::Object,
        parameter::{ADDRESS, PUBLIC_KEY, Parameter, TRANSACTION_ID, WALLET_ID, both, documented},
        row::{self, Member, write_members},
        rule::{Check, Rule},
        shape::{self, Shape},
    },
    ledger::{
        Wallet,
        wallet::{Bridgechain, Business},
    },
};
use std::{borrow::Cow, sync::Arc};

const ORDERS: &[&str] = &["address", "isResigned", "name", "publicKey", "repository", "vat", "website"];
const CHAIN_ORDERS: &[&str] = &["address", "bridgechainRepository", "genesisHash", "isResigned", "name", "publicKey"];

const IS_RESIGNED: Parameter = both("isResigned", Rule::Boolean);
const KEY: Parameter = both("publicKey", PUBLIC_KEY);
const NAME: Parameter = both("name", Rule::Text(&[Check::GenericName, Check::AtMost(40)]));
const UP_TO_80: Rule = Rule::Text(&[Check::AtMost(80)]);

/// The parameters that the list of businesses takes.
pub const FILTERS: &[Parameter] = &[both("orderBy", Rule::Order(ORDERS)), KEY, IS_RESIGNED];

/// The parameters that the search for businesses takes in its query.
pub const ORDERED: &[Parameter] = &[both("orderBy", Rule::Order(ORDERS))];

/// The parameters that the search for businesses takes in its body.
pub const SEARCH: &[Parameter] = &[
    documented("orderBy", Rule::Order(ORDERS)),
    both("address", ADDRESS),
    KEY,
    NAME,
    both("website", UP_TO_80),
    both("vat", Rule::Text(&[Check::AlphaNumeric, Check::AtMost(15)])),
    both("repository", UP_TO_80),
    IS_RESIGNED,
    both("transform", Rule::Boolean),
];

/// The parameters that the list of bridgechains takes.
pub const CHAIN_FILTERS: &[Parameter] = &[both("orderBy", Rule::Order(CHAIN_ORDERS)), KEY, IS_RESIGNED];

/// The parameters that the list of a business's bridgechains takes.
pub const CHAINS_OF_BUSINESS: &[Parameter] = &[both("orderBy", Rule::Order(CHAIN_ORDERS)), IS_RESIGNED];

/// The parameters that the search for bridgechains takes in its query.
pub const CHAINS_ORDERED: &[Parameter] = &[both("orderBy", Rule::Order(CHAIN_ORDERS))];

/// The parameters that the search for bridgechains takes in its body.
pub const CHAIN_SEARCH: &[Parameter] = &[
    documented("orderBy", Rule::Order(CHAIN_ORDERS)),
    both("address", ADDRESS),
    KEY,
    both("bridgechainRepository", UP_TO_80),
    both("genesisHash", TRANSACTION_ID),
    NAME,
    both("seedNodes", Rule::Several(&Rule::Ip, 1, 10)),
    IS_RESIGNED,
];

/// A business's bridgechain as a path has it.
pub const PATH_CHAIN: &[Parameter] = &[both("businessId", WALLET_ID), both("bridgechainId", TRANSACTION_ID)];

/// A business with its wallet.
#[derive(Clone, Debug)]
pub struct BusinessRow {
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
pub struct BridgechainRow {
    owner: BusinessRow,
    index: usize,
}

impl BridgechainRow {
    fn chain(&self) -> &Bridgechain {
        &self.owner.business.bridgechains[self.index]
    }

    /// The genesis hash in hex.
    pub fn genesis_hash(&self) -> String {
        hex::encode(self.chain().genesis_hash)
    }
}

/// The fields by which businesses are filtered and ordered.
pub const FIELDS: &[Field<BusinessRow>] = &[
    Field::new("address", |row, _| Cell::shown(row.wallet.address)),
    Field::hex("publicKey", |row, _| Cell::shown_some(row.wallet.public_key)),
    Field::containing("name", |row, _| Cell::text(Some(&*row.business.name))),
    Field::containing("website", |row, _| Cell::text(Some(&*row.business.website))),
    Field::new("vat", |row, _| Cell::text(row.business.vat.as_deref())),
    Field::containing("repository", |row, _| Cell::text(row.business.repository.as_deref())),
    Field::new("isResigned", |row, _| Cell::Flag(row.business.resigned)),
];

const MEMBERS: &[Member<BusinessRow>] = &[
    Member::new("address", shape::ADDRESS, |row, _, slot| slot.text(row.wallet.address)),
    Member::some("publicKey", shape::KEY, |row, _, slot| slot.text_some(row.wallet.public_key)),
    Member::new("name", Shape::Text, |row, _, slot| slot.put(&row.business.name)),
    Member::new("website", Shape::Text, |row, _, slot| slot.put(&row.business.website)),
    Member::some("vat", Shape::Text, |row, _, slot| slot.put_some(row.business.vat.as_ref())),
    Member::some("repository", Shape::Text, |row, _, slot| slot.put_some(row.business.repository.as_ref())),
    Member::new("isResigned", Shape::Boolean, |row, _, slot| slot.put(&row.business.resigned)),
];

/// The fields by which bridgechains are filtered and ordered.
pub const CHAIN_FIELDS: &[Field<BridgechainRow>] = &[
    Field::hex("publicKey", |row, _| Cell::shown_some(row.owner.wallet.public_key)),
    Field::new("address", |row, _| Cell::shown(row.owner.wallet.address)),
    Field::containing("name", |row, _| Cell::text(Some(&*row.chain().name))),
    Field::new("seedNodes", |row, _| {
        Cell::Texts(row.chain().seed_nodes.iter().map(|node| Cow::Borrowed(&**node)).collect())
    }),
    Field::hex("genesisHash", |row, _| Cell::shown(row.genesis_hash())),
    Field::containing("bridgechainRepository", |row, _| Cell::text(Some(&*row.chain().repository))),
    Field::new("isResigned", |row, _| Cell::Flag(row.chain().resigned)),
];

const CHAIN_MEMBERS: &[Member<BridgechainRow>] = &[
    Member::some("publicKey", shape::KEY, |row, _, slot| slot.text_some(row.owner.wallet.public_key)),
    Member::new("address", shape::ADDRESS, |row, _, slot| slot.text(row.owner.wallet.address)),
    Member::new("name", Shape::Text, |row, _, slot| slot.put(&row.chain().name)),
    Member::new("seedNodes", Shape::List(&Shape::Text), |row, _, slot| slot.put(&row.chain().seed_nodes)),
    Member::new("genesisHash", shape::HASH, |row, _, slot| slot.text(row.genesis_hash())),
    Member::new("bridgechainRepository", Shape::Text, |row, _, slot| slot.put(&row.chain().repository)),
    Member::new("ports", Shape::Map(&Shape::Integer), |row, _, slot| slot.put(&row.chain().ports)),
    Member::some("bridgechainAssetRepository", Shape::Text, |row, _, slot| {
        slot.put_some(row.chain().asset_repository.as_ref())
    }),
    Member::new("isResigned", Shape::Boolean, |row, _, slot| slot.put(&row.chain().resigned)),
];

/// The shape of a business.
pub const SHAPE: Shape = Shape::Either(&[
    Shape::Resource("Business", |dialect, named| row::of_table(MEMBERS, dialect, named)),
    wallet::SHAPE,
]);

/// The shape of a bridgechain.
pub const CHAIN_SHAPE: Shape =
    Shape::Resource("Bridgechain", |dialect, named| row::of_table(CHAIN_MEMBERS, dialect, named));

/// Writes a business in the shape asked for: its own, or its wallet.
pub fn write(out: &mut Vec<u8>, row: &BusinessRow, frame: &Frame<'_>, transform: bool) {
    if transform {
        write_members(out, MEMBERS, row, frame);
    } else {
        let wallet: &WalletRow = &row.wallet;
        wallet::write(out, wallet, frame);
    }
}

/// Writes a bridgechain as lists have it.
pub fn write_chain(out: &mut Vec<u8>, row: &BridgechainRow, frame: &Frame<'_>) {
    write_members(out, CHAIN_MEMBERS, row, frame);
}

/// Writes a bridgechain as its business's attributes have it.
pub fn write_chain_alone(out: &mut Vec<u8>, row: &BridgechainRow) {
    let mut object = Object::open(out);
    write_bridgechain(&mut object, row.chain());
    object.close();
}
