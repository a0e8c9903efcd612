//! Blocks and transactions as the API serves them: apart, in any order, in either shape. Source: api.md 4.1.
//!
//! 1. Each transaction is stored by its id, and each block by its height.
//! 2. A transaction in the API's own shape names its block. One in the raw shape does not: the blocks take these in the order
//!    of the file, or in the reverse order, because lists begin with the newest.
//! 3. A block's payloadHash is that of the ids of its transactions, in their order. It shows whether they are the right ones.
//!
//! Everything stays in memory, as text, until the file has been read.

use super::{BATCH_LINES, ImportError, ImportReason, line::read_block, put_block};
use crate::{
    ledger::{BlockTree, Link},
    protocol::{Height, SignedTransaction, TransactionId, crypto::sha256},
};
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

/// The content of a file so far.
#[derive(Default)]
pub(crate) struct ServedContent {
    /// The raw members of each block as text, by height and with the line. Text takes a third of the memory of values.
    blocks: BTreeMap<u32, (usize, Box<str>)>,
    /// The raw members of each transaction as text, by id.
    transactions: BTreeMap<String, Box<str>>,
    /// The ids of transactions by the id of their block, in the order of the file.
    of_blocks: BTreeMap<String, Vec<String>>,
    /// The ids of transactions that name no block, in the order of the file.
    loose: Vec<String>,
}

impl ServedContent {
    /// Keeps a block or a transaction.
    pub fn keep(&mut self, line: usize, value: Value) -> Result<(), ImportReason> {
        let found = || {
            let text = value.to_string();
            text.chars().take(60).collect::<String>() + if text.chars().count() > 60 { "…" } else { "" }
        };
        let height = value["height"].as_u64().and_then(|height| u32::try_from(height).ok());
        match (height, value["id"].as_str()) {
            (Some(height), _) if value.get("previous").or(value.get("previousBlock")).is_some() => {
                self.blocks.entry(height).or_insert_with(|| (line, text(&raw_block(value))));
                Ok(())
            }
            (None, Some(id)) if value["senderPublicKey"].is_string() => {
                let id = id.to_owned();
                self.keep_transaction(id, value);
                Ok(())
            }
            _ => Err(ImportReason::Unknown { found: found() }),
        }
    }

    fn keep_transaction(&mut self, id: String, value: Value) {
        match value["blockId"].as_str() {
            Some(block) => {
                let own = self.of_blocks.entry(block.to_owned()).or_default();
                if !own.contains(&id) {
                    own.push(id.clone());
                }
                // The raw shape has more members.
                self.transactions.entry(id).or_insert_with(|| text(&raw_transaction(value)));
            }
            None => {
                self.transactions.insert(id.clone(), text(&value));
                self.loose.push(id);
            }
        }
    }

    /// Puts all blocks on top of `tip`, each with its transactions. Reports the height every few hundred blocks.
    ///
    /// # Errors
    /// As [`super::import`].
    pub fn put_on(
        mut self,
        tree: &BlockTree,
        mut tip: Arc<Link>,
        mut tell: impl FnMut(Height),
    ) -> Result<Arc<Link>, ImportError> {
        let mut loose = self.loose_in_order(tree);
        let mut blocks = std::mem::take(&mut self.blocks).into_values();
        loop {
            let chosen: Vec<BlockWithIds> =
                blocks.by_ref().take(BATCH_LINES).map(|(line, block)| self.choose(line, &block, &mut loose)).collect();
            if chosen.is_empty() {
                return Ok(tip);
            }
            let read = |chosen: BlockWithIds| {
                let BlockWithIds { line, mut block, ids } = chosen;
                let transactions = ids.and_then(|ids| ids.iter().map(|id| self.read(tree, &block, id)).collect());
                let block = transactions.map(|transactions| {
                    block["transactions"] = transactions;
                    read_block(block, tree.config())
                });
                (line, block)
            };
            let read: Vec<_> = chosen.into_par_iter().map(read).collect();
            for (line, block) in read {
                let put = block.and_then(|block| put_block(tree, &tip, block));
                tip = put.map_err(|reason| ImportError { line, reason })?;
            }
            tell(tip.height());
        }
    }

    /// A block and the ids of its transactions.
    fn choose(&self, line: usize, block: &str, loose: &mut VecDeque<String>) -> BlockWithIds {
        let block: Value = serde_json::from_str(block).expect("it was written from a value");
        let height = height_of(&block);
        if height == Height::GENESIS {
            return BlockWithIds { line, block, ids: Ok(Vec::new()) };
        }
        let told = block["id"].as_str().and_then(|id| self.of_blocks.get(id));
        let ids = choose(&block, told.map(Vec::as_slice).unwrap_or_default(), loose);
        let ids = ids.map_err(|(wanted, found)| ImportReason::Transactions { height, wanted, found });
        BlockWithIds { line, block, ids }
    }

    /// The raw members of a block's transaction, checked to give its id.
    fn read(&self, tree: &BlockTree, block: &Value, id: &String) -> Result<Value, ImportReason> {
        let height = height_of(block);
        let json = serde_json::from_str(&self.transactions[id]).expect("it was written from a value");
        let context = tree.config().block_context();
        match SignedTransaction::from_json(&json, &context.transactions_of(height)) {
            Ok(read) if read.id().to_string() == *id => Ok(json),
            Ok(other) => Err(ImportReason::OtherTransaction { id: id.clone(), made: other.id().to_string() }),
            Err(why) => Err(ImportReason::Malformed { height, why: format!("transaction {id}: {why}") }),
        }
    }

    /// The ids of transactions that name no block, each once, without those of genesis.
    fn loose_in_order(&self, tree: &BlockTree) -> VecDeque<String> {
        let genesis = tree.genesis().block().transactions.iter().map(|transaction| transaction.id().to_string());
        let mut seen: BTreeSet<String> = genesis.chain(self.of_blocks.values().flatten().cloned()).collect();
        self.loose.iter().filter(|id| seen.insert((*id).clone())).cloned().collect()
    }
}

/// A block with the ids of its transactions, in their order.
struct BlockWithIds {
    line: usize,
    block: Value,
    ids: Result<Vec<String>, ImportReason>,
}

fn text(value: &Value) -> Box<str> {
    value.to_string().into()
}

fn height_of(block: &Value) -> Height {
    Height(block["height"].as_u64().unwrap_or_default() as u32)
}

/// The ids of a block's transactions in their order: those that name the block, or the next ones without a block, from
/// either end of `loose`. Fails with the number of transactions of the block and the number found.
pub(crate) fn choose(
    block: &Value,
    told: &[String],
    loose: &mut VecDeque<String>,
) -> Result<Vec<String>, (usize, usize)> {
    let wanted = block["numberOfTransactions"].as_u64().unwrap_or_default() as usize;
    if wanted == 0 {
        return Ok(Vec::new());
    }
    if told.len() == wanted {
        return in_order(block, told.to_vec()).ok_or((wanted, told.len()));
    }
    if loose.len() < wanted {
        return Err((wanted, told.len().max(loose.len())));
    }
    if let Some(first) = in_order(block, loose.iter().take(wanted).cloned().collect()) {
        loose.drain(..wanted);
        return Ok(first);
    }
    let from = loose.len() - wanted;
    let last = in_order(block, loose.iter().skip(from).cloned().collect()).ok_or((wanted, told.len()))?;
    loose.truncate(from);
    Ok(last)
}

/// The ids of a block's transactions in the order that matches its payloadHash: the given one or its reverse. `None` if neither does.
pub(crate) fn in_order(block: &Value, mut ids: Vec<String>) -> Option<Vec<String>> {
    let fits = |ids: &[String]| {
        let ids: Option<Vec<TransactionId>> = ids.iter().map(|id| id.parse().ok()).collect();
        let bytes: Vec<u8> = ids.unwrap_or_default().iter().flat_map(|id| id.0).collect();
        block["payloadHash"] == hex::encode(sha256(&bytes))
    };
    if fits(&ids) {
        return Some(ids);
    }
    ids.reverse();
    fits(&ids).then_some(ids)
}

/// A block's raw members, converted from the shape of the API if it has that.
pub(crate) fn raw_block(block: Value) -> Value {
    if block.get("previousBlock").is_some() {
        return block;
    }
    json!({
        "id": block["id"], "version": block["version"], "height": block["height"], "previousBlock": block["previous"],
        "timestamp": block["timestamp"]["epoch"], "numberOfTransactions": block["transactions"],
        "totalAmount": block["forged"]["amount"], "totalFee": block["forged"]["fee"], "reward": block["forged"]["reward"],
        "payloadLength": block["payload"]["length"], "payloadHash": block["payload"]["hash"],
        "generatorPublicKey": block["generator"]["publicKey"], "blockSignature": block["signature"],
    })
}

/// A transaction's raw members, converted from the shape of the API.
pub(crate) fn raw_transaction(shown: Value) -> Value {
    const SAME: [&str; 12] = [
        "id",
        "version",
        "type",
        "typeGroup",
        "amount",
        "fee",
        "senderPublicKey",
        "signature",
        "signatures",
        "vendorField",
        "asset",
        "nonce",
    ];
    let mut raw: Map<String, Value> =
        SAME.into_iter().filter_map(|name| shown.get(name).map(|value| (name.to_owned(), value.clone()))).collect();
    let mut put = |name: &str, value: &Value| drop(raw.insert(name.to_owned(), value.clone()));
    if let Some(second) = shown.get("signSignature") {
        put("secondSignature", second);
    }
    if shown["version"] == 1 {
        put("timestamp", &shown["timestamp"]["epoch"]);
    }
    // For other types the API shows the sender in its place.
    let has_recipient = shown["typeGroup"] == 1 && (shown["type"] == 0 || shown["type"] == 8);
    if has_recipient || shown["version"] == 1 && shown["type"] == 3 {
        put("recipientId", &shown["recipient"]);
    }
    Value::Object(raw)
}
