//! The genesis block: building one with real signatures, and reading a given one. Source: protocol.md 4.4, 6.

use super::{
    Address, Arktoshi, Block, BlockId, Height, KeyPair, Milestones, Nonce, SignedTransaction, Timestamp, Transaction,
    TransactionId,
    block::{BlockContext, BlockDecodeError, BlockDraft},
    coercion,
    crypto::{CryptoMode, ecdsa},
    network::{Exceptions, Network, NetworkConfig, NetworkError},
    transaction::{Dialect, TransactionBuilder, Version, Vote},
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, collections::BTreeSet, sync::Arc};

pub use super::network::Genesis;

/// The distribution of coin at height 1.
#[derive(Clone, Debug)]
pub struct GenesisPlan {
    /// Its `nethash` is ignored: it follows from the block, see [`NetworkConfig::from_plan`].
    pub network: Network,
    pub milestones: Milestones,
    /// The account that owns all coin at first, distributes it and signs the block. Its balance is then below 0 by the total. Its keys
    /// determine the network's treatment of signatures.
    pub premine: KeyPair,
    /// User names and keys of the first delegates, each registered and voting for itself.
    pub delegates: Vec<(String, KeyPair)>,
    /// The total amount of coin.
    pub total: Arktoshi,
    /// Accounts to be funded before the rest is divided among the delegates.
    pub accounts: Vec<(Address, Arktoshi)>,
}

/// The error of a plan that gives no genesis block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenesisError {
    #[error("genesis: the accounts get {accounts} arktoshi, allowed is at most the total of {total}")]
    Overspent { accounts: u128, total: Arktoshi },
    #[error("genesis: no account gets the remaining {rest} arktoshi, needed is at least one delegate")]
    NoDelegates { rest: Arktoshi },
}

/// Builds the genesis block of a plan. It is deterministic: the same plan gives the same block.
pub fn build(plan: GenesisPlan) -> Result<Genesis, GenesisError> {
    let mut signer = Signer { plan: &plan, nonces: BTreeMap::new(), signed: Vec::new() };
    for (recipient, amount) in transfers(&plan)? {
        signer.sign(Transaction::transfer(recipient, amount), &plan.premine);
    }
    for (username, keys) in &plan.delegates {
        signer.sign(Transaction::delegate_registration(username), keys);
    }
    for (_, keys) in &plan.delegates {
        signer.sign(Transaction::vote(Vote::For(*keys.public())), keys);
    }
    let transactions = signer.signed;
    let first = plan.milestones.at(Height::GENESIS);
    let draft = BlockDraft {
        timestamp: Timestamp(0),
        height: Height::GENESIS,
        previous: None,
        reward: first.reward,
        version: first.block.version,
        transactions,
    };
    let block = Block::forge(draft, &plan.premine, &plan.milestones);
    Ok(Genesis::new(file_form(&block), block))
}

/// The recipients and their amounts, ascending by amount as in the official files. Equal amounts are in the order of the plan.
fn transfers(plan: &GenesisPlan) -> Result<Vec<(Address, Arktoshi)>, GenesisError> {
    let accounts: u128 = plan.accounts.iter().map(|(_, amount)| u128::from(amount.value())).sum();
    let total = u128::from(plan.total.value());
    let overspent = GenesisError::Overspent { accounts, total: plan.total };
    let rest = total.checked_sub(accounts).ok_or(overspent)? as u64;
    let mut transfers = plan.accounts.clone();
    match plan.delegates.len() as u64 {
        _ if rest == 0 => {}
        0 => return Err(GenesisError::NoDelegates { rest: amount(rest) }),
        count => {
            let (share, remainder) = (rest / count, rest % count);
            transfers.extend(plan.delegates.iter().zip(1..).map(|((_, keys), place)| {
                let last = if place == count { remainder } else { 0 };
                (keys.public().address(plan.network.pub_key_hash), amount(share + last))
            }));
        }
    }
    transfers.sort_by_key(|(_, amount)| *amount);
    Ok(transfers)
}

fn amount(value: u64) -> Arktoshi {
    Arktoshi::new(value).expect("a part of the total, which is an amount")
}

struct Signer<'a> {
    plan: &'a GenesisPlan,
    /// The last nonce of each sender.
    nonces: BTreeMap<[u8; 33], u64>,
    signed: Vec<Arc<SignedTransaction>>,
}

impl Signer<'_> {
    fn sign(&mut self, builder: TransactionBuilder, keys: &KeyPair) {
        let builder = builder.network(self.plan.network.pub_key_hash).fee(Arktoshi::ZERO);
        let builder = match self.plan.milestones.at(Height::GENESIS).aip11 {
            false => builder.version_one(Timestamp(0)),
            true => {
                let nonce = self.nonces.entry(*keys.public().as_bytes()).or_default();
                *nonce += 1;
                builder.nonce(Nonce(*nonce))
            }
        };
        self.signed.push(Arc::new(builder.sign(keys)));
    }
}

/// The block in the form and order of members of the official `genesisBlock.json`.
fn file_form(block: &Block) -> Value {
    let header = &block.header;
    let transactions: Vec<Value> = block.transactions.iter().map(|transaction| transaction_form(transaction)).collect();
    json!({
        "version": header.version,
        "totalAmount": header.total_amount,
        "totalFee": header.total_fee,
        "reward": header.reward,
        "payloadHash": hex::encode(header.payload_hash),
        "timestamp": header.timestamp,
        "numberOfTransactions": header.number_of_transactions,
        "payloadLength": header.payload_length,
        "previousBlock": null,
        "generatorPublicKey": header.generator,
        "transactions": transactions,
        "height": header.height,
        "id": block.id,
        "blockSignature": hex::encode(&header.signature),
    })
}

fn transaction_form(transaction: &SignedTransaction) -> Value {
    let (_, number) = transaction.kind().numbers();
    let asset = transaction.asset();
    let votes = matches!(asset, super::Asset::Vote(_)).then(|| transaction.sender_address());
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| drop(out.insert(key.to_owned(), value));
    if let Version::Two(nonce) = transaction.transaction().version {
        put("version", json!(2));
        put("network", json!(transaction.transaction().network));
        put("nonce", json!(nonce.to_string()));
    }
    put("type", json!(number));
    put("amount", json!(transaction.amount()));
    put("fee", json!(transaction.fee()));
    put("recipientId", json!(asset.recipient().or(votes)));
    if let Version::One(timestamp) = transaction.transaction().version {
        put("timestamp", json!(timestamp));
    }
    put("asset", asset.to_json().unwrap_or_else(|| json!({})));
    put("senderPublicKey", json!(transaction.sender()));
    put("signature", json!(transaction.transaction().signature.as_ref().map(hex::encode)));
    put("id", json!(transaction.id()));
    if out["recipientId"].is_null() && out["type"] != 2 {
        out.shift_remove("recipientId");
    }
    Value::Object(out)
}

/// The block after the conversions that the reference makes before it checks the block: amounts, and values that mean no previous
/// block. Source: protocol.md 5.5.
fn converted(json: &Value) -> Value {
    let mut json = json.clone();
    let Some(block) = json.as_object_mut() else { return json };
    let amounts = |object: &mut Map<String, Value>, keys: &[&str]| {
        for key in keys {
            if let Some(found) = object.get_mut(*key)
                && let Some(amount) = coercion::integer(found)
            {
                *found = amount.to_string().into();
            }
        }
    };
    amounts(block, &["totalAmount", "totalFee", "reward"]);
    if let Some(previous) = block.get_mut("previousBlock")
        && (!coercion::is_true(Some(previous)) || coercion::number(Some(previous)) == 0.0)
    {
        *previous = Value::Null;
    }
    let listed = block.get_mut("transactions").and_then(Value::as_array_mut);
    let count = listed.map(|listed| {
        listed.iter_mut().filter_map(Value::as_object_mut).for_each(|one| amounts(one, &["amount", "fee"]));
        listed.len()
    });
    if let Some(count) = count {
        block.entry("numberOfTransactions").or_insert(count.into());
    }
    json
}

impl Genesis {
    /// A block with its JSON as a file has it.
    pub fn new(json: Value, block: Block) -> Self {
        let ids = block.transactions.iter().map(|transaction| transaction.id()).collect();
        Self { block, json, ids }
    }

    /// The ids of its transactions: the only ones that may carry no fee.
    pub fn ids(&self) -> &BTreeSet<TransactionId> {
        &self.ids
    }

    /// Reads the object of a `genesisBlock.json`. The given id is kept and its payload hash is not verified, since
    /// the official ones are made by another rule; its signature is. Transactions keep whatever signatures they have.
    pub fn from_json(
        json: &Value,
        network: &Network,
        milestones: &Milestones,
        exceptions: &Exceptions,
        crypto: CryptoMode,
    ) -> Result<Self, NetworkError> {
        let listed = json.get("transactions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let genesis_ids = listed.iter().filter_map(|item| item.get("id")?.as_str()?.parse().ok()).collect();
        let context = BlockContext {
            network: network.pub_key_hash,
            milestones,
            genesis_ids: &genesis_ids,
            exceptions,
            dialect: Dialect::Stored,
            crypto,
        };
        let block = Block::from_json(&converted(json), &context)?;
        if block.header.height != Height::GENESIS {
            let (path, height) = (".height".to_owned(), block.header.height.to_string());
            let (found, allowed) = (height.clone(), "1".to_owned());
            return Err(BlockDecodeError::Schema { height, path, found, allowed }.into());
        }
        if let Some(previous) = block.header.previous {
            let (height, path) = ("1".to_owned(), ".previousBlock".to_owned());
            let (found, allowed) = (format!("{:?}", previous.to_string()), "null".to_owned());
            return Err(BlockDecodeError::Schema { height, path, found, allowed }.into());
        }
        let is_full = milestones.at(Height::GENESIS).block.id_full_sha256;
        if matches!(block.id, BlockId::Full(_)) != is_full {
            let (height, path, found) = ("1".to_owned(), ".id".to_owned(), format!("{:?}", block.id.to_string()));
            let form = if is_full { "64 hex digits" } else { "a decimal number of up to 20 digits" };
            let allowed = format!("{form}, as block.idFullSha256 of milestones.json says");
            return Err(BlockDecodeError::Schema { height, path, found, allowed }.into());
        }
        let hash = block.header.hash_for_signature(milestones);
        if !ecdsa::verify(&hash, &block.header.signature, &block.header.generator, crypto) {
            return Err(NetworkError::GenesisSignature);
        }
        Ok(Self::new(json.clone(), block))
    }
}

impl NetworkConfig {
    /// A new network: the block of the plan, and the plan's network named after that block's payload.
    pub fn from_plan(plan: GenesisPlan) -> Result<Self, GenesisError> {
        let (mut network, milestones) = (plan.network.clone(), plan.milestones.clone());
        let crypto = plan.premine.crypto();
        let genesis = build(plan)?;
        network.nethash = hex::encode(genesis.block.header.payload_hash);
        let milestones = milestones.of_network(&network.name);
        let exceptions = Exceptions { json: json!({}), ..Exceptions::default() };
        Ok(Self { network, milestones, exceptions, genesis, crypto })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: CryptoMode = CryptoMode::Real;

    fn plan(milestones: Milestones, delegates: u64) -> GenesisPlan {
        let keys = |number| KeyPair::from_passphrase(&format!("genesis delegate {number}"), REAL);
        GenesisPlan {
            network: Network::testnet(),
            milestones,
            premine: KeyPair::from_passphrase("premine", REAL),
            delegates: (1..=delegates).map(|number| (format!("genesis_{number}"), keys(number))).collect(),
            total: Arktoshi::coins(125_000_000),
            accounts: vec![(KeyPair::from_passphrase("rich", REAL).public().address(23), Arktoshi::coins(7))],
        }
    }

    #[test]
    fn a_built_genesis_verifies_and_survives_its_file_in_both_versions() {
        for milestones in [Milestones::testnet(), Milestones::unitnet()] {
            let config = NetworkConfig::from_plan(plan(milestones.clone(), 4)).unwrap();
            let (genesis, context) = (&config.genesis, config.block_context());
            assert_eq!(**genesis.block.check_content(&context), []);
            assert_eq!(genesis.block.header.total_amount, Arktoshi::coins(125_000_000));
            assert_eq!(genesis.block.transactions.len(), 13);
            assert!(genesis.json["previousBlock"].is_null());
            let read =
                Genesis::from_json(&genesis.json, &config.network, &milestones, &config.exceptions, REAL).unwrap();
            assert_eq!(read.block, genesis.block);
        }
    }

    /// As files of other networks have them, and the reference takes them.
    #[test]
    fn amounts_of_other_forms_are_converted_and_what_makes_no_first_block_is_named() {
        let config = NetworkConfig::from_plan(plan(Milestones::testnet(), 1)).unwrap();
        let read = |change: &dyn Fn(&mut Value)| {
            let mut json = config.genesis.json.clone();
            change(&mut json);
            Genesis::from_json(&json, &config.network, &config.milestones, &config.exceptions, REAL)
                .map(|read| read.block)
        };
        let taken = read(&|json| {
            json["totalFee"] = json!("");
            json["reward"] = json!(false);
            json["previousBlock"] = json!(0);
            json["transactions"][0]["fee"] = json!([0]);
            json["transactions"][0]["amount"] =
                json!(format!(" {} ", json["transactions"][0]["amount"].as_str().unwrap()));
            json.as_object_mut().unwrap().remove("numberOfTransactions");
        });
        assert_eq!(taken.unwrap(), config.genesis.block);
        let error = read(&|json| json["id"] = json!("11".repeat(32))).unwrap_err().to_string();
        assert!(error.contains("at .id") && error.contains("allowed is a decimal number"), "{error}");
        let error = read(&|json| json["previousBlock"] = json!("5")).unwrap_err().to_string();
        assert!(error.contains("at .previousBlock") && error.contains("allowed is null"), "{error}");
    }

    #[test]
    fn the_last_delegate_gets_the_remainder() {
        let genesis = build(plan(Milestones::testnet(), 3)).unwrap();
        let amounts: Vec<u64> = genesis.block.transactions[..4].iter().map(|one| one.amount().value()).collect();
        let share = (12_500_000_000_000_000 - 700_000_000) / 3;
        assert_eq!(amounts, [700_000_000, share, share, share + (12_500_000_000_000_000u64 - 700_000_000) % 3]);
    }

    #[test]
    fn an_impossible_plan_is_refused() {
        let mut poor = plan(Milestones::testnet(), 1);
        poor.total = Arktoshi::coins(6);
        assert!(matches!(build(poor), Err(GenesisError::Overspent { .. })));
        assert!(matches!(build(plan(Milestones::testnet(), 0)), Err(GenesisError::NoDelegates { .. })));
    }
}
