//! Transactions, blocks and keys for another program: one JSON object a line in, one a line out.
//!
//! ```text
//! $ cargo run --example transaction_tool
//! {"op":"keys","network":"testnet","passphrase":"spec sender"}
//! {"address":"AMnzwMZ4…","publicKey":"03642c92…","privateKey":"793466ea…","wif":"UautVuMm…"}
//! ```
//!
//! `op` is one of `keys`, `multisignature`, `message`, `check-message`, `sign`, `decode`, `read`, `forge` and
//! `decode-block`; what each takes is beside its function. A failure answers `{"error": …}`, and where the reference has a
//! message for it, that one as `reference`.

use dposlab::protocol::{
    Block, BlockContext, BlockDraft, Height, KeyPair, Milestones, Network, PublicKey, SignedTransaction, Transaction,
    TransactionContext, TransactionId,
    keys::{SignedMessage, multisignature_key},
    transaction::{Dialect, TransactionError, UnsignedTransaction},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    error::Error,
    io::{BufRead, Write},
};

type Answer = Result<Value, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines() {
        let answer = serde_json::from_str(&line?).map_err(Into::into).and_then(|request| Tool::new(&request)?.answer());
        let refused = |error: Box<dyn Error>| {
            let reference = error.downcast_ref().map(TransactionError::reference_text);
            json!({ "error": error.to_string(), "reference": reference })
        };
        writeln!(output, "{}", answer.unwrap_or_else(refused))?;
        output.flush()?;
    }
    Ok(())
}

/// One request and the network it is about.
struct Tool<'a> {
    request: &'a Value,
    network: Network,
    milestones: Milestones,
    genesis_ids: BTreeSet<TransactionId>,
}

impl<'a> Tool<'a> {
    fn new(request: &'a Value) -> Result<Self, Box<dyn Error>> {
        let (network, milestones) = match request["network"].as_str() {
            Some("mainnet") => (Network::mainnet(), Milestones::mainnet()),
            Some("devnet") => (Network::devnet(), Milestones::devnet()),
            Some("unitnet") => (Network::unitnet(), Milestones::unitnet()),
            Some("testnet") | None => (Network::testnet(), Milestones::testnet()),
            Some(other) => return Err(format!("no network {other}").into()),
        };
        Ok(Self { request, network, milestones, genesis_ids: BTreeSet::new() })
    }

    fn answer(&self) -> Answer {
        match self.text("op")? {
            "keys" => self.keys(),
            "multisignature" => self.multisignature(),
            "message" => Ok(json!(SignedMessage::sign(self.text("message")?, &self.signer("passphrase")?))),
            "check-message" => {
                let message: SignedMessage = serde_json::from_value(self.request["message"].clone())?;
                Ok(json!({ "verified": message.verify() }))
            }
            "sign" => self.sign(),
            "decode" => {
                self.describe(SignedTransaction::from_bytes(&hex::decode(self.text("bytes")?)?, &self.context())?)
            }
            "read" => self.describe(SignedTransaction::from_json(&self.request["transaction"], &self.context())?),
            "forge" => self.forge(),
            "decode-block" => self.decode_block(),
            other => Err(format!("no op {other}").into()),
        }
    }

    /// `passphrase`
    fn keys(&self) -> Answer {
        let keys = self.signer("passphrase")?;
        Ok(json!({
            "address": keys.public().address(self.network.pub_key_hash),
            "publicKey": keys.public(),
            "privateKey": hex::encode(keys.private().as_bytes()),
            "wif": keys.to_wif(self.network.wif),
        }))
    }

    /// `min`, `publicKeys`
    fn multisignature(&self) -> Answer {
        let keys: Vec<PublicKey> = serde_json::from_value(self.request["publicKeys"].clone())?;
        let key = multisignature_key(self.request["min"].as_u64().unwrap_or(0) as u8, &keys)?;
        Ok(json!({ "publicKey": key, "address": key.address(self.network.pub_key_hash) }))
    }

    /// `transaction` without signatures, `passphrase` unless only participants sign, perhaps `secondPassphrase`,
    /// `participants` (pairs of index and passphrase) and `ecdsa`
    fn sign(&self) -> Answer {
        let mut unsigned = self.request["transaction"].clone();
        unsigned["id"] = Value::Null;
        let old = unsigned["version"] == 1;
        let placeholder = if old { "3006020101020101".to_owned() } else { "00".repeat(64) };
        unsigned["signature"] = placeholder.into();
        let participants = self.request["participants"].as_array().cloned().unwrap_or_default();
        if unsigned["type"] == 4 && unsigned["typeGroup"] == 1 && !old {
            // A registration is not read without signatures; these are thrown away.
            let signatures = (0..participants.len()).map(|index| format!("{index:02x}{}", "00".repeat(64)));
            unsigned["signatures"] = signatures.collect();
        }
        let read = SignedTransaction::from_json(&unsigned, &self.context())?.into_transaction();
        let (signature, second_signature, signatures) = (None, None, Vec::new());
        let mut signing = UnsignedTransaction::from(Transaction { signature, second_signature, signatures, ..read });
        for pair in &participants {
            let keys = KeyPair::from_passphrase(pair[1].as_str().ok_or("a participant without passphrase")?);
            signing = signing.multi_sign(pair[0].as_u64().ok_or("a participant without index")? as u8, &keys);
        }
        if self.request.get("passphrase").is_some() {
            let keys = self.signer("passphrase")?;
            signing = if self.request["ecdsa"] == true { signing.sign_ecdsa(&keys) } else { signing.sign(&keys) };
        }
        if self.request.get("secondPassphrase").is_some() {
            signing = signing.second_sign(&self.signer("secondPassphrase")?);
        }
        self.describe(SignedTransaction::from_bytes(&signing.finish().bytes(), &self.context())?)
    }

    /// `timestamp`, `height`, `previousBlock`, `transactions` (bytes in hex), `passphrase`
    fn forge(&self) -> Answer {
        let number = |key: &str| self.request[key].as_u64().ok_or(format!("`{key}` is not a number"));
        let height = Height(number("height")? as u32);
        let context = self.blocks().transactions_of(height);
        let texts: Vec<String> = serde_json::from_value(self.request["transactions"].clone())?;
        let mut transactions = Vec::new();
        for text in texts {
            transactions.push(SignedTransaction::from_bytes(&hex::decode(text)?, &context)?.into());
        }
        let milestone = self.milestones.at(height);
        let draft = BlockDraft {
            timestamp: (number("timestamp")? as u32).into(),
            height,
            previous: Some(self.text("previousBlock")?.parse()?),
            reward: milestone.reward,
            version: milestone.block.version,
            transactions,
        };
        Ok(self.describe_block(&Block::forge(draft, &self.signer("passphrase")?, &self.milestones)))
    }

    /// `bytes`
    fn decode_block(&self) -> Answer {
        Ok(self.describe_block(&Block::from_bytes(&hex::decode(self.text("bytes")?)?, &self.blocks())?))
    }

    fn describe(&self, transaction: SignedTransaction) -> Answer {
        Ok(json!({
            "json": transaction.to_json(),
            "bytes": hex::encode(transaction.bytes()),
            "id": transaction.id(),
            "verified": transaction.verified(),
        }))
    }

    fn describe_block(&self, block: &Block) -> Value {
        let errors = block.check_content(&self.blocks()).iter().map(|error| error.to_string());
        json!({
            "json": block.to_json(&self.milestones),
            "bytes": hex::encode(block.to_bytes(&self.milestones)),
            "id": block.id,
            "errors": errors.collect::<Vec<_>>(),
        })
    }

    /// At `height`, that of the last block.
    fn context(&self) -> TransactionContext<'_> {
        let height = Height(self.request["height"].as_u64().unwrap_or(2) as u32);
        let lax = self.request["dialect"] == "reference";
        let dialect = if lax { Dialect::Reference } else { Dialect::Strict };
        TransactionContext::new(self.network.pub_key_hash, self.milestones.at(height), &self.genesis_ids)
            .with_dialect(dialect)
    }

    fn blocks(&self) -> BlockContext<'_> {
        BlockContext::new(self.network.pub_key_hash, &self.milestones, &self.genesis_ids)
    }

    fn signer(&self, key: &str) -> Result<KeyPair, Box<dyn Error>> {
        Ok(KeyPair::from_passphrase(self.text(key)?))
    }

    fn text(&self, key: &str) -> Result<&'a str, Box<dyn Error>> {
        self.request[key].as_str().ok_or_else(|| format!("`{key}` is not a text").into())
    }
}
