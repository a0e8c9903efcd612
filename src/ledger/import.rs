//! An existing chain, block by block, each with full verification.
//!
//! A chain is JSON, one value a line or several: blocks, transactions, and pages of them as the API serves them
//! (`{"meta":…,"data":[…]}`). A block has its transactions in it, as wire bytes in hex or as objects, and then the lowest
//! comes first; or it comes without, in either shape of the API, and its transactions stand anywhere in the file
//! (`import/served.rs`).

mod served;

use super::{BlockRejected, BlockTree, Link};
use crate::protocol::{Block, Height, SignedTransaction, transaction::TransactionContext};
use serde_json::Value;
use served::Served;
use std::sync::Arc;

/// The error of a line of a chain that was not taken.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ImportError {
    /// From 1.
    pub line: usize,
    pub reason: ImportReason,
}

/// The reason why a line of a chain was not taken.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum ImportReason {
    #[error("not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("found {found}, allowed is a block, a transaction, or a page of them as /api/blocks and /api/transactions serve it")]
    Unknown { found: String },
    #[error("key 'height': found {found}, allowed is {expected}")]
    Height { found: Value, expected: Height },
    #[error("block at height {height}: transaction {index}: {why}")]
    Transaction { height: Height, index: usize, why: String },
    #[error("block at height {height}: {why}")]
    Malformed { height: Height, why: String },
    #[error("block at height {height}: of its {wanted} transactions, {found} are in the file in an order that gives its \
             payloadHash; serve them by /api/transactions?transform=false, without orderBy")]
    Transactions { height: Height, wanted: usize, found: usize },
    #[error("transaction {id}: its members are those of {made}; one that expires is whole with transform=false only")]
    OtherTransaction { id: String, made: String },
    #[error("block at height 1: its id is {found}, the network's genesis block is {expected}")]
    OtherGenesis { found: Value, expected: String },
    #[error(transparent)]
    Rejected(#[from] BlockRejected),
}

/// Puts the blocks of a chain on top of the genesis block, and answers the last one.
///
/// # Errors
/// The first line that is not a block that follows the one before: nothing after it is looked at.
pub fn import<L: AsRef<str>>(tree: &BlockTree, lines: impl Iterator<Item = L>) -> Result<Arc<Link>, ImportError> {
    let mut tip = tree.genesis().clone();
    let mut served = Served::default();
    for (index, text) in lines.enumerate() {
        let line = index + 1;
        for value in serde_json::Deserializer::from_str(text.as_ref()).into_iter() {
            let value = value.map_err(|why| ImportError { line, reason: why.into() })?;
            take(tree, &mut tip, &mut served, line, value).map_err(|reason| ImportError { line, reason })?;
        }
    }
    served.put_on(tree, tip)
}

/// A block that has its transactions in it goes on top at once, the rest is kept for later.
fn take(
    tree: &BlockTree,
    tip: &mut Arc<Link>,
    served: &mut Served,
    line: usize,
    value: Value,
) -> Result<(), ImportReason> {
    match value {
        Value::Object(mut page) if page.contains_key("data") => take(tree, tip, served, line, page["data"].take()),
        Value::Array(items) => items.into_iter().try_for_each(|item| take(tree, tip, served, line, item)),
        block if block["transactions"].is_array() => {
            *tip = put_block(tree, tip, block)?;
            Ok(())
        }
        other => served.keep(line, other),
    }
}

fn put_block(tree: &BlockTree, tip: &Arc<Link>, mut json: Value) -> Result<Arc<Link>, ImportReason> {
    let genesis = tree.genesis();
    if json["height"] == Height::GENESIS.0 && tip.height() == Height::GENESIS {
        let expected = genesis.id().to_string();
        return match json["id"] == expected {
            true => Ok(genesis.clone()),
            false => Err(ImportReason::OtherGenesis { found: json["id"].clone(), expected }),
        };
    }
    let height = tip.height().next();
    if json["height"] != height.0 {
        return Err(ImportReason::Height { found: json["height"].clone(), expected: height });
    }
    let context = tree.config().block_context();
    let given = json["transactions"].take();
    let mut transactions = Vec::new();
    for (index, given) in given.as_array().into_iter().flatten().enumerate() {
        let transaction = read_transaction(given, &context.transactions_of(height))
            .map_err(|why| ImportReason::Transaction { height, index, why })?;
        transactions.push(transaction.to_json());
    }
    json["transactions"] = transactions.into();
    let block =
        Block::from_json(&json, &context).map_err(|why| ImportReason::Malformed { height, why: why.to_string() })?;
    Ok(tree.extend(tip, &Arc::new(block))?)
}

/// A transaction as wire bytes in hex, or as an object.
fn read_transaction(given: &Value, context: &TransactionContext<'_>) -> Result<SignedTransaction, String> {
    let read = match given {
        Value::Object(_) => SignedTransaction::from_json(given, context),
        wire => {
            let bytes = hex::decode(wire.as_str().unwrap_or("?")).map_err(|why| format!("found {wire}: {why}"))?;
            SignedTransaction::from_bytes(&bytes, context)
        }
    };
    read.map_err(|why| why.to_string())
}
