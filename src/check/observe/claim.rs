//! Blocks as they are shown: JSON of files or an API, whole or in part.
//!
//! 1. A block with `transactions` as a list is whole. One without takes those that are shown apart, by the id of their block, or,
//!    in the raw shape, in the order in which they come (`ledger::import::served`).
//! 2. Where its transactions are not all there, the header alone is judged.
//! 3. A block with no more than `id`, `height`, `previousBlock`, `timestamp` and `generatorPublicKey` has its place judged.

use super::{ChainRule, RuleViolation};
use crate::{
    ledger::import::{
        served::{choose, in_order, raw_block, raw_transaction},
        values_of,
    },
    protocol::{
        Block, BlockHeader, BlockId, Height, NetworkConfig, SignedTransaction,
        block::{BlockContext, BlockDecodeError},
        crypto::sha256,
        transaction::Dialect,
    },
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    sync::Arc,
};

/// A block as it is shown.
#[derive(Clone, Debug)]
pub struct BlockClaim {
    /// The file and line, or the request, that shows it.
    pub origin: String,
    /// As shown.
    pub id: BlockId,
    pub header: BlockHeader,
    pub extent: Extent,
    /// The generator's username, where it is shown.
    pub username: Option<String>,
    /// The violations found in its members.
    pub violations: Vec<RuleViolation>,
}

/// How much of a block is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Extent {
    /// All of it. The block has the id that its header gives.
    Whole(Arc<Block>),
    /// All of it, but for the order of its transactions.
    Unordered(Arc<Block>),
    /// Its header, and why not more.
    Header(String),
    /// Id, height, previous block, timestamp and generator. The other members of the header are placeholders.
    Place,
}

/// A value in the place of a block that cannot be read as one.
#[derive(Clone, Debug)]
pub(super) struct UnreadableBlock {
    pub origin: String,
    pub id: Option<String>,
    pub height: Option<Height>,
    pub violation: RuleViolation,
}

/// The reason why something shows no blocks.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum ClaimError {
    #[error("{origin}: not JSON: {source}")]
    NotJson { origin: String, source: serde_json::Error },
    #[error("{origin}: found {found}, allowed is a block, a transaction, or a page of them as /api/blocks and /api/transactions serve it")]
    Unknown { origin: String, found: String },
}

/// Members of a header without which only the place of a block is shown.
const CONTENT: [&str; 8] = [
    "version",
    "numberOfTransactions",
    "totalAmount",
    "totalFee",
    "reward",
    "payloadLength",
    "payloadHash",
    "blockSignature",
];

/// All blocks and transactions that are shown.
pub struct Claims {
    config: Arc<NetworkConfig>,
    claims: Vec<BlockClaim>,
    unreadable: Vec<UnreadableBlock>,
    /// Blocks without their transactions.
    bare: Vec<(String, Value)>,
    /// The raw members, as text, of the transactions that name no block, by id.
    transactions: BTreeMap<String, Box<str>>,
    /// The transactions that name their block, by the block's id, in the order of arrival.
    of_blocks: BTreeMap<String, Vec<Apart>>,
    /// The ids of the transactions that name no block, in the order of arrival.
    loose: Vec<String>,
    /// The hashes of all blocks so far. A block that is shown again is ignored.
    seen: BTreeSet<[u8; 32]>,
}

/// A transaction that names its block. Another block may show one with the same id, and other members.
struct Apart {
    id: String,
    /// Its index in the block, where it is shown.
    sequence: Option<u64>,
    /// Its raw members as text.
    text: Box<str>,
}

impl Claims {
    /// Creates an empty collection for a network.
    pub fn new(config: Arc<NetworkConfig>) -> Self {
        let (transactions, of_blocks, seen) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let (claims, unreadable, bare, loose) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { config, claims, unreadable, bare, transactions, of_blocks, loose, seen }
    }

    /// Reads a text of consecutive JSON values. `name` is its file.
    ///
    /// # Errors
    /// The text is not JSON, or has a value that is neither block nor transaction. The error names the line.
    pub fn read(&mut self, name: &str, text: &str) -> Result<(), ClaimError> {
        for (line, value) in values_of(text) {
            let origin = format!("{name}:{line}");
            match value {
                Ok(value) => self.take(origin, value)?,
                Err(source) => return Err(ClaimError::NotJson { origin, source }),
            }
        }
        Ok(())
    }

    /// Takes a block or a transaction as JSON.
    ///
    /// # Errors
    /// It is neither.
    pub fn take(&mut self, origin: String, value: Value) -> Result<(), ClaimError> {
        let is_block = value.get("previous").or(value.get("previousBlock")).is_some();
        if is_block && value["transactions"].is_array() {
            let read = self.whole(&origin, &value);
            self.put(origin, &value, read);
        } else if is_block {
            // It takes its transactions once.
            if self.is_new(&value.to_string()) {
                self.bare.push((origin, value));
            }
        } else if let Some(id) =
            value["id"].as_str().filter(|_| value["senderPublicKey"].is_string()).map(str::to_owned)
        {
            self.take_transaction(id, value);
        } else {
            let text = value.to_string();
            let found = text.chars().take(60).collect::<String>() + if text.chars().count() > 60 { "…" } else { "" };
            return Err(ClaimError::Unknown { origin, found });
        }
        Ok(())
    }

    /// Takes a block of this process.
    pub fn take_block(&mut self, origin: String, block: Arc<Block>) {
        let (id, header) = (block.id, block.header.clone());
        let extent = Extent::Whole(block);
        self.add(BlockClaim { origin, id, header, extent, username: None, violations: Vec::new() });
    }

    fn take_transaction(&mut self, id: String, value: Value) {
        match value["blockId"].as_str().map(str::to_owned) {
            Some(block) => {
                let sequence = value["sequence"].as_u64();
                let is_raw = value.get("sender").is_none();
                let text = if is_raw { value } else { raw_transaction(value) }.to_string().into();
                self.of_blocks.entry(block).or_default().push(Apart { id, sequence, text });
            }
            None => {
                let is_of_genesis = id.parse().is_ok_and(|id| self.config.genesis_ids().contains(&id));
                if !is_of_genesis && !self.transactions.contains_key(&id) {
                    self.loose.push(id.clone());
                    self.transactions.insert(id, value.to_string().into());
                }
            }
        }
    }

    /// Returns true if this text did not come before.
    fn is_new(&mut self, text: &str) -> bool {
        self.seen.insert(sha256(text.as_bytes()))
    }

    /// Returns all blocks, by height, and the values that cannot be read as blocks.
    pub(super) fn into_list(mut self) -> (Vec<BlockClaim>, Vec<UnreadableBlock>) {
        let mut bare = mem::take(&mut self.bare);
        bare.sort_by_key(|(_, block)| block["height"].as_u64());
        let of_blocks: BTreeSet<&String> = self.of_blocks.values().flatten().map(|one| &one.id).collect();
        let mut loose: VecDeque<String> = self.loose.iter().filter(|id| !of_blocks.contains(id)).cloned().collect();
        for (origin, shown) in bare {
            let username = shown["generator"]["username"].clone();
            let mut block = raw_block(shown);
            block["generator"] = json!({ "username": username });
            let read = self.bare(&origin, &block, &mut loose);
            self.put(origin, &block, read);
        }
        self.claims.sort_by_key(|claim| claim.header.height);
        (self.claims, self.unreadable)
    }

    fn put(&mut self, origin: String, value: &Value, read: Result<BlockClaim, RuleViolation>) {
        match read {
            Ok(claim) => self.add(claim),
            Err(_) if !self.is_new(&format!("unreadable {value}")) => {}
            Err(violation) => {
                let height = value["height"].as_u64().and_then(|height| u32::try_from(height).ok()).map(Height);
                let id = value["id"].as_str().map(str::to_owned);
                self.unreadable.push(UnreadableBlock { origin, id, height, violation });
            }
        }
    }

    /// Adds a block, unless the same block was shown before.
    fn add(&mut self, claim: BlockClaim) {
        let mut text = format!("{} {:?} {:?} ", claim.id, claim.header, claim.violations);
        match &claim.extent {
            Extent::Whole(block) | Extent::Unordered(block) => {
                text.extend(block.transactions.iter().map(|one| hex::encode(one.bytes())))
            }
            other => text += &format!("{other:?}"),
        }
        if self.is_new(&text) {
            self.claims.push(claim);
        }
    }

    /// A block with its transactions in it.
    fn whole(&self, origin: &str, value: &Value) -> Result<BlockClaim, RuleViolation> {
        let mut claim = claim_of(origin, value)?;
        if claim.header.height == Height::GENESIS {
            self.check_genesis_payload(value, &mut claim);
            claim.extent = Extent::Header("the network says what the genesis block holds".to_owned());
            return Ok(claim);
        }
        match claim.extent {
            Extent::Place => {
                Err(RuleViolation::new(ChainRule::Form, "it has transactions and lacks what a header says of them"))
            }
            _ => Ok(self.filled(claim, value)),
        }
    }

    fn filled(&self, mut claim: BlockClaim, value: &Value) -> BlockClaim {
        let context = self.config.block_context();
        match Block::transactions_from_json(value, claim.header.height, &context) {
            Ok(transactions) => {
                let items = value["transactions"].as_array().into_iter().flatten();
                for (index, (item, made)) in items.zip(&transactions).enumerate() {
                    let said = item.get("id").filter(|said| **said != made.id().to_string());
                    claim.violations.extend(said.map(|said| {
                        let what = format!(
                            "transaction {index}: found {said}, its members are those of {}; one that expires is whole with \
                             transform=false only",
                            made.id()
                        );
                        RuleViolation::new(ChainRule::TransactionId, what)
                    }));
                }
                claim.extent = Extent::Whole(Arc::new(Block::assemble(claim.header.clone(), transactions, &context)));
            }
            Err(why) => {
                let what = match why {
                    BlockDecodeError::Transaction { index, source } => format!("transaction {index}: {source}"),
                    other => other.to_string(),
                };
                claim.violations.push(RuleViolation::new(ChainRule::Form, what));
                claim.extent = Extent::Header("a transaction cannot be read".to_owned());
            }
        }
        claim
    }

    /// A block with its transactions apart.
    fn bare(&self, origin: &str, value: &Value, loose: &mut VecDeque<String>) -> Result<BlockClaim, RuleViolation> {
        let mut claim = claim_of(origin, value)?;
        if claim.extent == Extent::Place {
            return Ok(claim);
        }
        if claim.header.height == Height::GENESIS {
            claim.extent = Extent::Header("the network says what the genesis block holds".to_owned());
            return Ok(claim);
        }
        let wanted = claim.header.number_of_transactions as usize;
        let own = value["id"].as_str().and_then(|id| self.of_blocks.get(id)).map(Vec::as_slice).unwrap_or_default();
        let (mut texts, mut ids) = (BTreeSet::new(), BTreeSet::new());
        let once: Vec<&Apart> = own.iter().filter(|one| texts.insert((one.sequence, &one.text))).collect();
        let distinct: Vec<&Apart> = once.iter().copied().filter(|one| ids.insert(&one.id)).collect();
        let shown = distinct.len();
        // Pages overlap, and a block that breaks the rules may hold a transaction twice.
        let all = [own.iter().collect(), once, distinct.clone()].into_iter().filter(|some| some.len() == wanted);
        let (texts, is_ordered) = if let Some(texts) = all.filter(|_| wanted > 0).find_map(|some| ordered(value, some))
        {
            (texts, true)
        } else if let Ok(ids) = choose(value, &[], loose) {
            (ids.iter().map(|id| &*self.transactions[id]).collect(), true)
        } else if shown == wanted {
            (distinct.iter().map(|one| &*one.text).collect(), false)
        } else {
            claim.extent = Extent::Header(format!("{shown} of its {wanted} transactions are shown"));
            return Ok(claim);
        };
        let read = |text: &&str| -> Value { serde_json::from_str(text).expect("it was written from a value") };
        let transactions: Vec<Value> = texts.iter().map(read).collect();
        let mut claim = self.filled(claim, &json!({ "transactions": transactions }));
        if let (false, Extent::Whole(block)) = (is_ordered, &claim.extent) {
            claim.extent = Extent::Unordered(block.clone());
        }
        Ok(claim)
    }

    /// Checks that the transactions of the genesis block are the network's.
    fn check_genesis_payload(&self, value: &Value, claim: &mut BlockClaim) {
        let own = &self.config.genesis.block.transactions;
        if value["transactions"] == self.config.genesis.json["transactions"] {
            return;
        }
        let listed = value["transactions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let context = BlockContext { dialect: Dialect::Stored, ..self.config.block_context() };
        let made = Block::transactions_from_json(value, Height::GENESIS, &context).unwrap_or_default();
        let is_same = |((item, made), own): ((&Value, &Arc<SignedTransaction>), &Arc<SignedTransaction>)| {
            made.bytes() == own.bytes() && (item.is_string() || item["id"] == own.id().to_string())
        };
        if made.len() != own.len() || !listed.iter().zip(&made).zip(own).all(is_same) {
            let what = format!("its transactions are not the {} of the network's genesis block", own.len());
            claim.violations.push(RuleViolation::new(ChainRule::Genesis, what));
        }
    }
}

/// Returns the members of a block's transactions in order: the order that is shown, or the order that the block has hashed. `None`
/// if neither is known.
fn ordered<'a>(block: &Value, mut some: Vec<&'a Apart>) -> Option<Vec<&'a str>> {
    let sequences: BTreeSet<u64> = some.iter().filter_map(|one| one.sequence).collect();
    some.sort_by_key(|one| one.sequence);
    let ids: Vec<String> = some.iter().map(|one| one.id.clone()).collect();
    let found = in_order(block, ids.clone());
    if found.as_ref().is_some_and(|found| *found != ids) {
        some.reverse();
    }
    let is_known = found.is_some() || some.len() == 1 || sequences.len() == some.len();
    is_known.then(|| some.iter().map(|one| &*one.text).collect())
}

/// Id and header of a block.
fn claim_of(origin: &str, value: &Value) -> Result<BlockClaim, RuleViolation> {
    let wrong = |why: BlockDecodeError| RuleViolation::new(ChainRule::Form, why.to_string());
    let has_content = CONTENT.iter().any(|key| value.get(key).is_some_and(|value| !value.is_null()));
    let (id, header) = match has_content {
        true => Block::header_from_json(value).map_err(wrong)?,
        false => {
            let mut filled = value.clone();
            for key in CONTENT {
                filled[key] = match key {
                    "payloadHash" => Value::from("0".repeat(64)),
                    "blockSignature" => Value::from(""),
                    _ => Value::from(0),
                };
            }
            Block::header_from_json(&filled).map_err(wrong)?
        }
    };
    let mut violations = Vec::new();
    let before = header.previous.unwrap_or(BlockId::Numeric(0));
    for (key, same, hex) in [("idHex", "id", id.to_hex()), ("previousBlockHex", "previousBlock", before.to_hex())] {
        if let Some(found) = value.get(key).filter(|found| **found != hex) {
            violations
                .push(RuleViolation::new(ChainRule::Form, format!("{key}: found {found}, {same} is {hex} in hex")));
        }
    }
    let extent = if has_content { Extent::Header(String::new()) } else { Extent::Place };
    let username = value["generator"]["username"].as_str().map(str::to_owned);
    Ok(BlockClaim { origin: origin.to_owned(), id, header, extent, username, violations })
}
