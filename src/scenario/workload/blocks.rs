//! Given transactions: a list, or those of a recorded chain.

use super::{Chain, List, SourceContext, generate::one, goes_on};
use crate::{
    actors::{SimTime, message::Transactions},
    files::{self, CHAIN_LIMIT},
    ledger::{
        Link,
        codec::{LoadError, Loader, Save, Saver},
    },
    protocol::{Height, SignedTransaction, Timestamp, transaction::TransactionError},
    sim::source::{Poll, Source},
};
use serde_json::Value;
use std::{collections::VecDeque, path::Path, sync::Arc, time::Duration};

/// Transactions of a list, in its order, evenly spaced.
#[derive(Clone)]
pub(crate) struct ListSource {
    network: SourceContext,
    plan: List,
    next: usize,
}

/// The transactions of a chain, each at the time of its block.
#[derive(Clone)]
pub(crate) struct ChainSource {
    network: SourceContext,
    blocks: VecDeque<RecordedBlock>,
    handed_in: usize,
}

/// One block of a file.
#[derive(Clone)]
pub(crate) struct RecordedBlock {
    /// Its line in the file.
    line: usize,
    timestamp: Timestamp,
    transactions: Vec<Vec<u8>>,
}

/// Reads the blocks of a file that contain transactions, without the genesis block.
///
/// # Errors
/// The file cannot be read, or a line is no block.
pub(crate) fn read(file: &Path) -> Result<VecDeque<RecordedBlock>, String> {
    let text = files::read_text(file, CHAIN_LIMIT).map_err(|why| why.to_string())?;
    let mut blocks = VecDeque::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |why: &dyn std::fmt::Display| format!("line {}: {why}", index + 1);
        let json: Value = serde_json::from_str(line).map_err(|why| wrong(&why))?;
        let timestamp = json["timestamp"].as_u64().and_then(|seconds| u32::try_from(seconds).ok());
        let timestamp = Timestamp(timestamp.ok_or_else(|| wrong(&"it has no timestamp"))?);
        let wires = json["transactions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let decode = |wire: &Value| hex::decode(wire.as_str().unwrap_or("?")).map_err(|why| wrong(&why));
        let transactions = wires.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
        if json["height"] != 1 && !transactions.is_empty() {
            blocks.push_back(RecordedBlock { line: index + 1, timestamp, transactions });
        }
    }
    Ok(blocks)
}

/// Checks that a file contains blocks whose transactions decode.
///
/// # Errors
/// As [`read`], or a transaction does not decode.
pub(crate) fn check(file: &Path, decode: impl Fn(&[u8]) -> Result<(), TransactionError>) -> Result<(), String> {
    for RecordedBlock { line, transactions, .. } in read(file)? {
        for (index, bytes) in transactions.iter().enumerate() {
            decode(bytes).map_err(|why| format!("line {line}: transactions[{index}]: {why}"))?;
        }
    }
    Ok(())
}

impl ListSource {
    pub fn new(network: SourceContext, plan: List) -> Self {
        Self { network, plan, next: 0 }
    }
}

impl Source for ListSource {
    fn poll(&mut self, now: SimTime, tip: &Arc<Link>) -> Poll {
        let bytes = self.plan.transactions.get(self.next).and_then(|text| hex::decode(text).ok()).unwrap_or_default();
        let node = self.network.nodes[self.next % self.network.nodes.len()];
        self.next += 1;
        let made = decoded(&self.network, &bytes, tip);
        let again = now + Duration::from_secs_f64(1.0 / self.plan.per_second);
        Poll {
            undecoded: u64::from(made.is_none()),
            submissions: made.into_iter().map(|made| (node, made)).collect(),
            again: (self.next < self.plan.transactions.len()).then_some(again),
        }
    }

    goes_on!(next; plan);
}

impl ChainSource {
    pub fn new(network: SourceContext, plan: Chain) -> Self {
        // The file was read when the scenario was checked. If it has been removed since, the run goes on without it.
        let blocks = read(plan.place()).unwrap_or_default();
        Self { network, blocks, handed_in: 0 }
    }
}

impl Source for ChainSource {
    fn poll(&mut self, now: SimTime, tip: &Arc<Link>) -> Poll {
        let mut poll = Poll::default();
        while self.blocks.front().is_some_and(|block| SimTime::from_seconds(block.timestamp) <= now)
            && let Some(block) = self.blocks.pop_front()
        {
            for bytes in block.transactions {
                let node = self.network.nodes[self.handed_in % self.network.nodes.len()];
                self.handed_in += 1;
                match decoded(&self.network, &bytes, tip) {
                    Some(made) => poll.submissions.push((node, made)),
                    None => poll.undecoded += 1,
                }
            }
        }
        let again = self.blocks.front().map(|block| SimTime::from_seconds(block.timestamp));
        Poll { again, ..poll }
    }

    fn save(&self, out: &mut Saver) {
        let Self { network, blocks, handed_in } = self;
        network.nodes.save(out);
        blocks.len().save(out);
        handed_in.save(out);
    }

    fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        let (nodes, left, handed_in) = Save::load(from)?;
        let gone = self.blocks.len().checked_sub(left).ok_or_else(|| from.wrong("number of blocks left", left))?;
        self.blocks.drain(..gone);
        (self.network.nodes, self.handed_in) = (nodes, handed_in);
        Ok(())
    }
}

/// Decodes a transaction. `None` if the bytes are no transaction on this network after the block `tip`.
fn decoded(network: &SourceContext, bytes: &[u8], tip: &Arc<Link>) -> Option<Transactions> {
    let context = network.tree.config().block_context();
    let height = Height(tip.height().0 + 1);
    SignedTransaction::from_bytes(bytes, &context.transactions_of(height)).ok().map(one)
}
