//! Transactions, blocks and keys for another program: one JSON object a line in, one a line out.
//!
//! ```text
//! $ cargo run --example transaction_tool
//! {"op":"keys","network":"testnet","passphrase":"spec sender"}
//! {"address":"AMnzwMZ4…","publicKey":"03642c92…","privateKey":"793466ea…","wif":"UautVuMm…"}
//! ```
//!
//! `op` is one of `keys`, `multisignature`, `message`, `check-message`, `sign`, `decode`, `read`, `forge`, `decode-block` and
//! `network`; what each takes is beside its function. A failure answers `{"error": …}`, and where the reference has a
//! message for it, that one as `reference`.

use dposlab::protocol::{
    Block, BlockContext, BlockDraft, BlockId, Height, KeyPair, Kind, Milestones, Network, NetworkConfig, PublicKey,
    SignedTransaction, Transaction, TransactionContext, TransactionId,
    crypto::CryptoMode::Real,
    keys::{SignedMessage, multisignature_key},
    network::NetworkError,
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
                Ok(json!({ "verified": message.verify(Real) }))
            }
            "sign" => self.sign(),
            "decode" => {
                self.describe(SignedTransaction::from_bytes(&hex::decode(self.text("bytes")?)?, &self.context())?)
            }
            "read" => self.describe(SignedTransaction::from_json(&self.request["transaction"], &self.context())?),
            "forge" => self.forge(),
            "decode-block" => self.decode_block(),
            "network" => self.loaded(),
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
            let keys = KeyPair::from_passphrase(pair[1].as_str().ok_or("a participant without passphrase")?, Real);
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

    /// `files` of a network by their names, and what to ask of it: `heights`, `times` [Unix ms], `counts` to hold against
    /// limits, numbers of `types`, a `passphrase`, `made` (for each height bytes of a transaction and of a block), `blocks`
    /// (pairs of an id and ids of transactions), `transactions`, ids in `outlook` and in `order`.
    fn loaded(&self) -> Answer {
        let list = |key: &str| self.request[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let counts: Vec<u64> = serde_json::from_value(self.request["counts"].clone())?;
        let within = |limit: usize| counts.iter().filter(|count| **count <= limit as u64).collect::<Vec<_>>();
        let file = |name: &str| {
            let found = self.request["files"].get(name.trim_end_matches(".json")).cloned();
            let missing = || NetworkError::Read { file: name.into(), source: std::io::ErrorKind::NotFound.into() };
            found.ok_or_else(missing)
        };
        let config = NetworkConfig::of(file, Real)?;
        let slots = config.slots();
        let keys = self.signer("passphrase")?;
        let genesis = &config.genesis.block;
        let at = |time: &Value| {
            let unix_ms = time.as_i64()?;
            let timestamp = slots.timestamp(unix_ms);
            let seconds = (unix_ms - slots.epoch_ms()).div_euclid(1000);
            let slot = slots.slot(timestamp);
            (seconds == i64::from(timestamp.0))
                .then(|| json!([timestamp, slot, slots.start(slot), slots.forging_allowed(timestamp)]))
        };
        let milestone = |height: &Value| {
            let height = Height(height.as_u64().unwrap_or(1) as u32);
            let milestone = config.milestones.at(height);
            let fee = |number: &Value| {
                Kind::ALL
                    .into_iter()
                    .find(|kind| json!(kind.numbers()) == json!([1, number]))
                    .map(|kind| milestone.fee(kind))
            };
            json!({
                "reward": milestone.reward,
                "version": milestone.block.version,
                "isNew": config.milestones.is_milestone(height),
                "transactions": within(milestone.block.max_transactions),
                "payload": within(milestone.block.max_payload),
                "vendorField": milestone.vendor_field_length.map(within).unwrap_or_default(),
                "payments": within(milestone.multi_payment_limit).iter().filter(|count| ***count >= 2).collect::<Vec<_>>(),
                "full": milestone.block.id_full_sha256,
                "late": milestone.block.accept_expired_transaction_timestamps,
                "expired": milestone.ignore_expired_transactions,
                "aip11": milestone.aip11,
                "htlc": milestone.htlc_enabled,
                "fees": list("types").iter().map(fee).collect::<Vec<_>>(),
            })
        };
        let mut made = Vec::new();
        for (height, pair) in list("heights").iter().zip(list("made")) {
            let height = Height(height.as_u64().unwrap_or(1) as u32);
            let bytes = |part: usize| hex::decode(pair[part].as_str().unwrap_or_default());
            let transfer = SignedTransaction::from_bytes(&bytes(0)?, &config.transaction_context(height))?;
            if !transfer.verified(Real) {
                return Err("a transfer does not verify".into());
            }
            let block = Block::from_bytes(&bytes(1)?, &config.block_context())?;
            if let Some(error) = block.check_content(&config.block_context()).first() {
                return Err(format!("a block does not verify: {error}").into());
            }
            made.push(json!({
                "transfer": { "bytes": hex::encode(transfer.bytes()), "id": transfer.id() },
                "block": { "bytes": hex::encode(block.to_bytes(&config.milestones)), "id": block.id },
            }));
        }
        let exceptions = &config.exceptions;
        let block = |text: &Value| text.as_str().and_then(|text| text.parse::<BlockId>().ok()).ok_or("no block id");
        let transaction = |text: &Value| text.as_str().and_then(|text| text.parse::<TransactionId>().ok());
        let mut covered = Vec::new();
        for pair in list("blocks") {
            let ids = pair[1].as_array().into_iter().flatten().filter_map(transaction);
            covered.push(exceptions.covers_block(block(&pair[0])?, ids));
        }
        let outlook = |text: &Value| Some(exceptions.outlook_table.get(&block(text).ok()?));
        let fix = |text: &Value| Some(exceptions.transaction_id_fix_table.get(&transaction(text)?));
        let order = |text: &Value| Some(exceptions.wrong_transaction_order.get(&block(text).ok()?));
        let is_listed = |text: &Value| transaction(text).is_some_and(|id| exceptions.transactions.contains(&id));
        Ok(json!({
            "address": keys.public().address(config.network.pub_key_hash),
            "wif": keys.to_wif(config.network.wif),
            "genesis": {
                "id": genesis.id,
                "transactions": genesis.transactions.iter().map(|transaction| transaction.id()).collect::<Vec<_>>(),
                "amount": genesis.header.total_amount,
            },
            "unix": slots.epoch_ms(),
            "slots": list("times").iter().map(at).collect::<Vec<_>>(),
            "milestones": list("heights").iter().map(milestone).collect::<Vec<_>>(),
            "made": made,
            "exceptions": {
                "blocks": covered,
                "transactions": list("transactions").iter().map(is_listed).collect::<Vec<_>>(),
                "outlook": list("outlook").iter().map(outlook).collect::<Vec<_>>(),
                "fix": list("transactions").iter().map(fix).collect::<Vec<_>>(),
                "order": list("order").iter().map(order).collect::<Vec<_>>(),
            },
        }))
    }

    fn describe(&self, transaction: SignedTransaction) -> Answer {
        Ok(json!({
            "json": transaction.to_json(),
            "bytes": hex::encode(transaction.bytes()),
            "id": transaction.id(),
            "verified": transaction.verified(Real),
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
        BlockContext::new(self.network.pub_key_hash, &self.milestones, &self.genesis_ids, Real)
    }

    fn signer(&self, key: &str) -> Result<KeyPair, Box<dyn Error>> {
        Ok(KeyPair::from_passphrase(self.text(key)?, Real))
    }

    fn text(&self, key: &str) -> Result<&'a str, Box<dyn Error>> {
        self.request[key].as_str().ok_or_else(|| format!("`{key}` is not a text").into())
    }
}
