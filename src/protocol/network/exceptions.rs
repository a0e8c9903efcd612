//! Old blocks and transactions that break the rules and stand nevertheless. Source: protocol.md 5.4.

use crate::protocol::{BlockId, PublicKey, TransactionId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// `exceptions.json`; empty on testnet and unitnet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exceptions {
    pub json: Value,
    /// Blocks whose faults are ignored.
    pub blocks: BTreeSet<BlockId>,
    /// Transactions whose faults are ignored and that count as verified.
    pub transactions: BTreeSet<TransactionId>,
    /// A block of a numeric id in `blocks` is an exception only with exactly these transactions.
    pub blocks_transactions: BTreeMap<BlockId, Vec<TransactionId>>,
    /// From the id a block computes to, to the one it has.
    pub outlook_table: BTreeMap<BlockId, BlockId>,
    /// From the id a transaction computes to, to the one it has.
    pub transaction_id_fix_table: BTreeMap<TransactionId, TransactionId>,
    /// The right order of a block's transactions, where the stored one is wrong.
    pub wrong_transaction_order: BTreeMap<BlockId, Vec<TransactionId>>,
    /// Balances below 0 that are tolerated, by the nonce at which.
    pub negative_balances: BTreeMap<PublicKey, BTreeMap<u64, i64>>,
}

/// A member of `exceptions.json` that is not what it should be: its path, what was found, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub key: String,
    pub found: String,
    pub allowed: &'static str,
}

impl Exceptions {
    /// No exceptions, as a `'static` value to lend.
    pub fn none() -> &'static Self {
        static NONE: Exceptions = Exceptions {
            json: Value::Null,
            blocks: BTreeSet::new(),
            transactions: BTreeSet::new(),
            blocks_transactions: BTreeMap::new(),
            outlook_table: BTreeMap::new(),
            transaction_id_fix_table: BTreeMap::new(),
            wrong_transaction_order: BTreeMap::new(),
            negative_balances: BTreeMap::new(),
        };
        &NONE
    }

    /// Returns true if a block's faults are ignored. A numeric id alone is too weak a name, hence the transactions.
    pub fn covers_block(&self, id: BlockId, transactions: impl IntoIterator<Item = TransactionId>) -> bool {
        self.blocks.contains(&id)
            && match (id, self.blocks_transactions.get(&id)) {
                (BlockId::Full(_), _) => true,
                (BlockId::Numeric(_), Some(listed)) => transactions.into_iter().eq(listed.iter().copied()),
                (BlockId::Numeric(_), None) => transactions.into_iter().next().is_none(),
            }
    }

    pub(super) fn from_json(json: &Value) -> Result<Self, Wrong> {
        if !json.is_object() {
            return Err(wrong("", json, "an object"));
        }
        Ok(Self {
            json: json.clone(),
            blocks: set(json, "blocks", block_id)?,
            transactions: set(json, "transactions", transaction_id)?,
            blocks_transactions: map(json, "blocksTransactions", block_id, transaction_ids)?,
            outlook_table: map(json, "outlookTable", block_id, block_id)?,
            transaction_id_fix_table: map(json, "transactionIdFixTable", transaction_id, transaction_id)?,
            wrong_transaction_order: map(json, "wrongTransactionOrder", block_id, transaction_ids)?,
            negative_balances: map(json, "negativeBalances", public_key, balances)?,
        })
    }
}

type Read<T> = fn(&str, &Value) -> Result<T, Wrong>;

fn set<T: Ord>(json: &Value, key: &str, read: Read<T>) -> Result<BTreeSet<T>, Wrong> {
    match json.get(key) {
        None => Ok(BTreeSet::new()),
        Some(list) => items(key, list, read)?.into_iter().map(Ok).collect(),
    }
}

fn map<K: Ord, V>(json: &Value, key: &str, read_key: Read<K>, read: Read<V>) -> Result<BTreeMap<K, V>, Wrong> {
    let Some(found) = json.get(key) else { return Ok(BTreeMap::new()) };
    let members = found.as_object().ok_or_else(|| wrong(key, found, "an object"))?;
    let entry = |(name, value): (&String, &Value)| {
        let path = format!("{key}.{name}");
        Ok((read_key(&path, &Value::String(name.clone()))?, read(&path, value)?))
    };
    members.iter().map(entry).collect()
}

fn items<T>(key: &str, found: &Value, read: Read<T>) -> Result<Vec<T>, Wrong> {
    let list = found.as_array().ok_or_else(|| wrong(key, found, "an array"))?;
    list.iter().enumerate().map(|(index, item)| read(&format!("{key}[{index}]"), item)).collect()
}

fn block_id(key: &str, found: &Value) -> Result<BlockId, Wrong> {
    parsed(key, found, "a block id: a decimal number or 64 hex digits")
}

fn transaction_id(key: &str, found: &Value) -> Result<TransactionId, Wrong> {
    parsed(key, found, "a transaction id: 64 hex digits")
}

fn transaction_ids(key: &str, found: &Value) -> Result<Vec<TransactionId>, Wrong> {
    items(key, found, transaction_id)
}

fn public_key(key: &str, found: &Value) -> Result<PublicKey, Wrong> {
    parsed(key, found, "a public key: 66 hex digits")
}

fn balances(key: &str, found: &Value) -> Result<BTreeMap<u64, i64>, Wrong> {
    let allowed = "an object from nonces to balances, whole numbers as strings";
    let members = found.as_object().ok_or_else(|| wrong(key, found, allowed))?;
    let entry = |(nonce, value): (&String, &Value)| {
        let balance = value.as_i64().or_else(|| value.as_str()?.parse().ok());
        nonce.parse().ok().zip(balance).ok_or_else(|| wrong(&format!("{key}.{nonce}"), value, allowed))
    };
    members.iter().map(entry).collect()
}

fn parsed<T: std::str::FromStr>(key: &str, found: &Value, allowed: &'static str) -> Result<T, Wrong> {
    found.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| wrong(key, found, allowed))
}

fn wrong(key: &str, found: &Value, allowed: &'static str) -> Wrong {
    Wrong { key: key.to_owned(), found: found.to_string().chars().take(80).collect(), allowed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_is_read_and_a_numeric_block_needs_its_transactions() {
        let id = "11".repeat(32);
        let exceptions = Exceptions::from_json(&json!({
            "blocks": ["15895730198424359628", id],
            "transactions": [id],
            "blocksTransactions": { "15895730198424359628": [id] },
            "outlookTable": { "5": "6" },
            "transactionIdFixTable": { id.clone(): "22".repeat(32) },
            "wrongTransactionOrder": { "7": [id] },
            "negativeBalances": { "02".repeat(33): { "1": "-5" } },
        }))
        .unwrap();
        let transaction = TransactionId([0x11; 32]);
        let block = BlockId::Numeric(15_895_730_198_424_359_628);
        assert!(exceptions.covers_block(block, [transaction]));
        assert!(!exceptions.covers_block(block, []));
        assert!(exceptions.covers_block(BlockId::Full([0x11; 32]), []));
        assert_eq!(exceptions.negative_balances[&PublicKey::from_bytes([2; 33])][&1], -5);
        assert_eq!(exceptions.outlook_table[&BlockId::Numeric(5)], BlockId::Numeric(6));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = Exceptions::from_json(&json!({ "transactions": ["12"] })).unwrap_err();
        assert_eq!((error.key.as_str(), error.found.as_str()), ("transactions[0]", "\"12\""));
        assert_eq!(Exceptions::from_json(&json!([])).unwrap_err().allowed, "an object");
    }
}
