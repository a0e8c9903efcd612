//! Blocks as JSON, both ways. Source: protocol.md 4.2.

use super::{Block, BlockContext, BlockDecodeError, BlockHeader, BlockId, bytes::full_previous};
use crate::protocol::{Arktoshi, Height, Milestones, PublicKey, SignedTransaction, Timestamp, keys};
use serde_json::{Map, Value, json};
use std::{str::FromStr, sync::Arc};

impl Block {
    /// Header and transactions, each with the block's id and its place.
    pub fn to_json(&self, milestones: &Milestones) -> Value {
        let mut json = self.header_json(milestones);
        let transactions = (0..self.transactions.len()).map(|index| self.transaction_json(index));
        json["transactions"] = transactions.collect();
        json
    }

    /// The header alone. Genesis shows the number 0 where its predecessor would be.
    pub fn header_json(&self, milestones: &Milestones) -> Value {
        let header = &self.header;
        let nothing =
            if full_previous(milestones, header.height) { BlockId::Full([0; 32]) } else { BlockId::Numeric(0) };
        let previous = header.previous.unwrap_or(nothing);
        json!({
            "version": header.version,
            "timestamp": header.timestamp,
            "height": header.height,
            "previousBlockHex": previous.to_hex(),
            "previousBlock": previous,
            "numberOfTransactions": header.number_of_transactions,
            "totalAmount": header.total_amount,
            "totalFee": header.total_fee,
            "reward": header.reward,
            "payloadLength": header.payload_length,
            "payloadHash": hex::encode(header.payload_hash),
            "generatorPublicKey": header.generator,
            "blockSignature": hex::encode(&header.signature),
            "idHex": self.id_hex(),
            "id": self.id,
        })
    }

    /// The raw form of a transaction with `blockId` and `sequence`.
    ///
    /// # Panics
    /// If the block has no such transaction.
    pub fn transaction_json(&self, index: usize) -> Value {
        let mut json = self.transactions[index].to_json();
        json["blockId"] = json!(self.id);
        json["sequence"] = json!(index);
        json
    }

    /// The block that a JSON object describes; transactions may be objects or wire bytes in hex. A wrong id is replaced,
    /// except at height 1, where the given id is kept.
    pub fn from_json(json: &Value, context: &BlockContext<'_>) -> Result<Self, BlockDecodeError> {
        let (given, header) = Self::header_from_json(json)?;
        let (said, found) = (header.number_of_transactions as usize, listed(json).len());
        if found != said {
            let (height, found) = (header.height.to_string(), format!("{found} transactions"));
            return Err(wrong(&height, ".transactions", &found, &format!("numberOfTransactions, which is {said}")));
        }
        let transactions = Self::transactions_from_json(json, header.height, context)?;
        let mut block = Self::assemble(header, transactions, context);
        if block.header.height == Height::GENESIS {
            block.id = given;
        }
        Ok(block)
    }

    /// The id that a JSON object of a block states, and its header.
    ///
    /// # Errors
    /// The member that is missing or wrong.
    pub fn header_from_json(json: &Value) -> Result<(BlockId, BlockHeader), BlockDecodeError> {
        let height = json.get("height").map_or("undefined".to_owned(), |height| height.to_string());
        let object = json.as_object();
        let reader = Reader { height: &height, object: object.ok_or_else(|| wrong(&height, "", json, "an object"))? };
        let given: BlockId = reader.id("id")?.ok_or_else(|| reader.wrong("id", "a block id"))?;
        Ok((given, reader.header()?))
    }

    /// The transactions in a JSON object of a block of this height, whatever its `numberOfTransactions`.
    ///
    /// # Errors
    /// The first item that is no transaction.
    pub fn transactions_from_json(
        json: &Value,
        height: Height,
        context: &BlockContext<'_>,
    ) -> Result<Vec<Arc<SignedTransaction>>, BlockDecodeError> {
        let within = context.transactions_of(height);
        let read = |(index, item): (usize, &Value)| {
            let transaction = match item.as_str() {
                None => SignedTransaction::from_json(item, &within),
                Some(text) => {
                    let allowed = "a transaction, as object or as its bytes in hex";
                    let bytes = keys::decode_hex(text);
                    let path = || format!(".transactions[{index}]");
                    let bytes = bytes.ok_or_else(|| wrong(&height.to_string(), &path(), item, allowed))?;
                    SignedTransaction::from_bytes(&bytes, &within)
                }
            };
            transaction.map(Arc::new).map_err(|source| BlockDecodeError::Transaction { index, source })
        };
        listed(json).iter().enumerate().map(read).collect()
    }
}

fn listed(json: &Value) -> &[Value] {
    json.get("transactions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

struct Reader<'a> {
    /// As found, for messages.
    height: &'a str,
    object: &'a Map<String, Value>,
}

impl Reader<'_> {
    fn header(&self) -> Result<BlockHeader, BlockDecodeError> {
        let whole = u32::MAX.into();
        Ok(BlockHeader {
            version: self.number("version", 0, whole)? as u32,
            timestamp: Timestamp(self.number("timestamp", 0, whole)? as u32),
            height: Height(self.number("height", 1, whole)? as u32),
            previous: self.id("previousBlock")?.filter(|id| !self.is_first() || *id != BlockId::Numeric(0)),
            number_of_transactions: self.number("numberOfTransactions", 0, whole)? as u32,
            total_amount: self.amount("totalAmount")?,
            total_fee: self.amount("totalFee")?,
            reward: self.amount("reward")?,
            payload_length: self.number("payloadLength", 0, whole)? as u32,
            payload_hash: self.read("payloadHash", "64 hex digits", |text| keys::hex_array("", text).ok())?,
            generator: self.read("generatorPublicKey", "66 hex digits", |text| PublicKey::from_str(text).ok())?,
            forged_before: Height(0),
            signature: self.read("blockSignature", "hex digits", keys::decode_hex)?,
        })
    }

    fn is_first(&self) -> bool {
        self.height == "1"
    }

    fn number(&self, key: &str, min: u64, max: u64) -> Result<u64, BlockDecodeError> {
        let found = self.object.get(key).and_then(Value::as_u64).filter(|number| (min..=max).contains(number));
        found.ok_or_else(|| self.wrong(key, &format!("a whole number from {min} to {max}")))
    }

    /// A number or a decimal text.
    fn amount(&self, key: &str) -> Result<Arktoshi, BlockDecodeError> {
        let found = self.object.get(key);
        let digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
        let text = || found.and_then(Value::as_str).filter(digits)?.parse().ok();
        let number = found.and_then(Value::as_u64).or_else(text).and_then(Arktoshi::new);
        number.ok_or_else(|| self.wrong(key, "a whole number, as number or decimal text, up to 9223372036854775807"))
    }

    /// `None` for null and "". Verification judges a missing id later.
    fn id(&self, key: &str) -> Result<Option<BlockId>, BlockDecodeError> {
        match self.object.get(key) {
            Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            _ => self
                .read(key, "a decimal number of up to 20 digits or 64 hex digits", |text| text.parse().ok())
                .map(Some),
        }
    }

    fn read<T>(&self, key: &str, allowed: &str, get: impl FnOnce(&str) -> Option<T>) -> Result<T, BlockDecodeError> {
        self.object.get(key).and_then(Value::as_str).and_then(get).ok_or_else(|| self.wrong(key, allowed))
    }

    fn wrong(&self, key: &str, allowed: &str) -> BlockDecodeError {
        let path = format!(".{key}");
        match self.object.get(key) {
            Some(found) => wrong(self.height, &path, found, allowed),
            None => wrong(self.height, &path, "nothing", allowed),
        }
    }
}

fn wrong(height: &str, path: &str, found: impl std::fmt::Display, allowed: &str) -> BlockDecodeError {
    let found = keys::shorten(&found.to_string());
    BlockDecodeError::Schema { height: height.to_owned(), path: path.to_owned(), found, allowed: allowed.to_owned() }
}
