//! An existing chain, block by block, each with full verification. The format is one JSON object a line, lowest block
//! first: the header's members, and `transactions` as wire bytes in hex.

use super::{BlockRejected, BlockTree, Link};
use crate::protocol::{Block, Height, SignedTransaction};
use serde_json::Value;
use std::sync::Arc;

/// Why a line of a chain was not taken, and which.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ImportError {
    /// From 1.
    pub line: usize,
    pub reason: ImportReason,
}

/// Why a line of a chain was not taken.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum ImportReason {
    #[error("not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("key 'height': found {found}, allowed is {expected}")]
    Height { found: Value, expected: Height },
    #[error("block at height {height}: transaction {index}: {why}")]
    Transaction { height: Height, index: usize, why: String },
    #[error("block at height {height}: {why}")]
    Malformed { height: Height, why: String },
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
    for (index, line) in lines.enumerate().filter(|(_, line)| !line.as_ref().trim().is_empty()) {
        tip = import_line(tree, &tip, line.as_ref()).map_err(|reason| ImportError { line: index + 1, reason })?;
    }
    Ok(tip)
}

fn import_line(tree: &BlockTree, tip: &Arc<Link>, line: &str) -> Result<Arc<Link>, ImportReason> {
    let mut json: Value = serde_json::from_str(line)?;
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
    let wires = json["transactions"].as_array().cloned().unwrap_or_default();
    let mut transactions = Vec::with_capacity(wires.len());
    for (index, wire) in wires.iter().enumerate() {
        let wrong = |why: String| ImportReason::Transaction { height, index, why };
        let bytes = hex::decode(wire.as_str().unwrap_or("?")).map_err(|why| wrong(format!("found {wire}: {why}")))?;
        let transaction = SignedTransaction::from_bytes(&bytes, &context.transactions_of(height))
            .map_err(|why| wrong(why.to_string()))?;
        transactions.push(transaction.to_json());
    }
    json["transactions"] = transactions.into();
    let block =
        Block::from_json(&json, &context).map_err(|why| ImportReason::Malformed { height, why: why.to_string() })?;
    Ok(tree.extend(tip, &Arc::new(block))?)
}
