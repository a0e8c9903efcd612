//! Old blocks and transactions that break the rules and are part of the chain nevertheless. Source: protocol.md 5.4.

use crate::protocol::{BlockId, PublicKey, TransactionId, coercion};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    str::FromStr,
};

/// `exceptions.json`; empty on testnet and unitnet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exceptions {
    pub json: Value,
    /// Blocks whose faults are ignored.
    pub blocks: BTreeSet<BlockId>,
    /// Transactions whose faults are ignored and that count as verified.
    pub transactions: BTreeSet<TransactionId>,
    /// A block of a numeric id in `blocks` is an exception only with exactly these transactions, in any order.
    pub blocks_transactions: BTreeMap<BlockId, Vec<TransactionId>>,
    /// Maps the computed id of a block to the id it has.
    pub outlook_table: BTreeMap<BlockId, BlockId>,
    /// Maps the computed id of a transaction to the id it has.
    pub transaction_id_fix_table: BTreeMap<TransactionId, TransactionId>,
    /// The right order of a block's transactions, where the stored one is wrong.
    pub wrong_transaction_order: BTreeMap<BlockId, Vec<TransactionId>>,
    /// The tolerated balances below 0 of each sender, by the nonce at which they occur.
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

    /// Returns true if a block's faults are ignored. A numeric id alone does not identify a block safely, hence the transactions.
    pub fn covers_block(&self, id: BlockId, transactions: impl IntoIterator<Item = TransactionId>) -> bool {
        self.blocks.contains(&id)
            && match (id, self.blocks_transactions.get(&id)) {
                (BlockId::Full(_), _) => true,
                (BlockId::Numeric(_), Some(listed)) => {
                    let (mut listed, mut found) = (listed.clone(), transactions.into_iter().collect::<Vec<_>>());
                    listed.sort();
                    found.sort();
                    listed == found
                }
                (BlockId::Numeric(_), None) => false,
            }
    }

    /// Reads the file as the reference does: an entry that no block and no transaction can match changes nothing, so it may be
    /// anything. Refuses an entry that makes the reference fail when it reads the entry. Source: protocol.md 5.5.
    pub(super) fn from_json(json: &Value) -> Result<Self, Wrong> {
        if json.is_null() {
            return Err(wrong("", json, "an object"));
        }
        // Both lists are one set to the reference.
        let listed = [list(json, "blocks")?, list(json, "transactions")?].concat();
        Ok(Self {
            json: json.clone(),
            blocks: listed.iter().filter_map(exact).collect(),
            transactions: listed.iter().filter_map(exact).collect(),
            blocks_transactions: entries(json, "blocksTransactions")
                .filter_map(|(id, value)| Some((exact(&Value::String(id.clone()))?, ids(value)?)))
                .collect(),
            outlook_table: table(json, "outlookTable", "a block id: a decimal number or 64 hex digits", exact)?,
            transaction_id_fix_table: table(json, "transactionIdFixTable", "a transaction id: 64 hex digits", exact)?,
            wrong_transaction_order: table(json, "wrongTransactionOrder", "an array of transaction ids", ids)?,
            negative_balances: entries(json, "negativeBalances")
                .filter_map(|(key, value)| Some((exact(&Value::String(key.clone()))?, balances(value))))
                .collect(),
        })
    }
}

fn list(json: &Value, key: &str) -> Result<Vec<Value>, Wrong> {
    match json.get(key).filter(|found| coercion::is_true(Some(found))) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => Ok(list.clone()),
        // The reference iterates over the letters of a text.
        Some(Value::String(text)) => Ok(text.chars().map(|letter| Value::String(letter.to_string())).collect()),
        Some(found) => Err(wrong(key, found, "an array")),
    }
}

/// The members of an object; anything else has none of a name that counts.
fn entries<'a>(json: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    json.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// A map from ids to replacements. An entry is in force if its value is truthy.
fn table<K: FromStr + Display + Ord, V>(
    json: &Value,
    key: &str,
    allowed: &'static str,
    read: fn(&Value) -> Option<V>,
) -> Result<BTreeMap<K, V>, Wrong> {
    let mut table = BTreeMap::new();
    for (id, value) in entries(json, key).filter(|(_, value)| coercion::is_true(Some(value))) {
        if let Some(known) = exact(&Value::String(id.clone())) {
            table.insert(known, read(value).ok_or_else(|| wrong(&format!("{key}.{id}"), value, allowed))?);
        }
    }
    Ok(table)
}

/// The value of a text, if the text is written as the reference writes it, because the reference compares texts.
fn exact<T: FromStr + Display>(found: &Value) -> Option<T> {
    let text = found.as_str()?;
    text.parse::<T>().ok().filter(|value| value.to_string() == text)
}

fn ids(found: &Value) -> Option<Vec<TransactionId>> {
    found.as_array()?.iter().map(exact).collect()
}

fn balances(found: &Value) -> BTreeMap<u64, i64> {
    let members = found.as_object().into_iter().flatten();
    members
        .filter_map(|(nonce, value)| {
            let balance = value.as_i64().map_or_else(|| exact(value), Some)?;
            Some((exact(&Value::String(nonce.clone()))?, balance))
        })
        .collect()
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
    fn what_can_match_nothing_changes_nothing() {
        let id = "ab".repeat(32);
        let exceptions = Exceptions::from_json(&json!({
            "blocks": ["007", id.to_uppercase(), 5, null],
            "transactions": false,
            "blocksTransactions": { "12": 3, "x": [] },
            "outlookTable": { "5": "", "006": "6", "7": null },
            "transactionIdFixTable": [],
            "wrongTransactionOrder": 1,
            "negativeBalances": { "unknown": 1, "02": { "1": "-5" } },
        }))
        .unwrap();
        assert_eq!(Exceptions { json: Value::Null, ..exceptions }, *Exceptions::none());
        assert!(Exceptions::from_json(&json!([])).is_ok());
    }

    #[test]
    fn a_list_names_blocks_and_transactions_alike_and_order_does_not_matter() {
        let [one, two] = ["11", "22"].map(|byte| byte.repeat(32));
        let exceptions = Exceptions::from_json(&json!({
            "blocks": ["5", "6", one],
            "blocksTransactions": { "5": [two, one] },
        }))
        .unwrap();
        let ids = [0x11, 0x22].map(|byte| TransactionId([byte; 32]));
        assert!(exceptions.transactions.contains(&ids[0]));
        assert!(exceptions.covers_block(BlockId::Numeric(5), ids));
        assert!(!exceptions.covers_block(BlockId::Numeric(6), []), "it has no transactions listed, not even none");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = Exceptions::from_json(&json!({ "outlookTable": { "12": 13 } })).unwrap_err();
        assert_eq!((error.key.as_str(), error.found.as_str()), ("outlookTable.12", "13"));
        assert_eq!(Exceptions::from_json(&json!({ "blocks": 1 })).unwrap_err().allowed, "an array");
        assert_eq!(Exceptions::from_json(&json!(null)).unwrap_err().allowed, "an object");
    }
}
