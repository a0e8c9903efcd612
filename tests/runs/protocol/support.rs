//! The place of the vectors, and the four networks.

use dposlab::protocol::{
    BlockContext, Height, Milestones, Network, TransactionContext, TransactionId, crypto::CryptoMode::Real,
    transaction::Dialect,
};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

/// A network's figures with no genesis transactions.
pub struct Rules {
    pub network: Network,
    pub milestones: Milestones,
    genesis_ids: BTreeSet<TransactionId>,
}

impl Rules {
    pub fn of(name: &str) -> Self {
        let (network, milestones) = match name {
            "mainnet" => (Network::mainnet(), Milestones::mainnet()),
            "devnet" => (Network::devnet(), Milestones::devnet()),
            "testnet" => (Network::testnet(), Milestones::testnet()),
            "unitnet" => (Network::unitnet(), Milestones::unitnet()),
            other => panic!("no network {other}"),
        };
        Self { network, milestones, genesis_ids: BTreeSet::new() }
    }

    pub fn at(&self, last_block: u64, dialect: Dialect) -> TransactionContext<'_> {
        let milestone = self.milestones.at(Height(last_block as u32));
        TransactionContext::new(self.network.pub_key_hash, milestone, &self.genesis_ids).with_dialect(dialect)
    }

    pub fn blocks(&self) -> BlockContext<'_> {
        BlockContext::new(self.network.pub_key_hash, &self.milestones, &self.genesis_ids, Real)
    }
}

/// The folder with `vectors` and `recordings`: `tests/data`, or the one that `DPOSLAB_TEST_DATA` names.
pub fn data() -> PathBuf {
    let own = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    env::var_os("DPOSLAB_TEST_DATA").map_or_else(own, PathBuf::from)
}

/// Two files of one name: the vectors, and the smaller ones that `tests/clients/protocol/vectors.js` writes.
pub fn vectors(name: &str) -> [Value; 2] {
    let written = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/protocol");
    [data().join("vectors"), written].map(|folder| parse(&folder.join(name)))
}

/// All entries of all files of a name whose top is an array.
pub fn entries(name: &str) -> Vec<Value> {
    vectors(name).into_iter().flat_map(|file| file.as_array().expect("an array at the top").clone()).collect()
}

fn parse(file: &Path) -> Value {
    let text = fs::read(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    serde_json::from_slice(&text).expect("vectors are JSON")
}

pub fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry[key].as_str().unwrap_or_else(|| panic!("`{key}` is a text in {entry}"))
}

pub fn bytes(entry: &Value, key: &str) -> Vec<u8> {
    hex::decode(text(entry, key)).unwrap_or_else(|_| panic!("`{key}` is hex in {entry}"))
}

pub fn array<const N: usize>(entry: &Value, key: &str) -> [u8; N] {
    bytes(entry, key).try_into().unwrap_or_else(|_| panic!("`{key}` has {N} bytes in {entry}"))
}
