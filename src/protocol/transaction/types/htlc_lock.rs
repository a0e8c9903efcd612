//! Hashed-timelock lock: coin that its recipient can claim in time with a secret. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, Rule, SchemaError, Transaction, TransactionBuilder, TransactionContext,
        decode::WireReader,
        read::{JsonReader, Members, describe, whole},
        schema::{self, SchemaResult},
    },
    Asset, Expiration, TENTH, TransactionType, own,
    schema_parts::{self, from_zero},
};
use crate::protocol::{Address, Arktoshi};
use serde_json::{Value, json};

pub(crate) struct Type;

impl Transaction {
    /// Locks coin of the sender for a recipient. Until `expiration`, anybody with the secret can claim it for the recipient;
    /// `secret_hash` is the SHA256 of the secret's 32 bytes.
    pub fn htlc_lock(
        recipient: Address,
        amount: Arktoshi,
        secret_hash: [u8; 32],
        expiration: Expiration,
    ) -> TransactionBuilder {
        TransactionBuilder::new(Asset::HtlcLock { amount, secret_hash, expiration, recipient })
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        TENTH
    }

    fn addon_bytes(&self) -> u64 {
        100
    }

    fn has_vendor_field(&self) -> bool {
        true
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::HtlcLock { amount, secret_hash, expiration, recipient });
        out.extend(amount.value().to_le_bytes());
        out.extend(secret_hash);
        let (kind, value) = expiration.numbers();
        out.push(kind);
        out.extend(value.to_le_bytes());
        out.extend(recipient.as_bytes());
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(Asset::HtlcLock {
            amount: wire.amount("amount")?,
            secret_hash: wire.array("asset.lock.secretHash")?,
            expiration: expiration_of(wire)?,
            recipient: wire.address()?,
        })
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::HtlcLock { secret_hash, expiration, .. });
        let (kind, value) = expiration.numbers();
        let expiration = json!({ "type": kind, "value": value });
        Some(json!({ "lock": { "secretHash": hex::encode(secret_hash), "expiration": expiration } }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, amount: Arktoshi) -> Result<Asset, SchemaError> {
        let found = json.members.require("", "recipientId")?;
        let recipient = json.recipient("recipientId", found, false)?;
        let lock = json.asset("lock")?;
        let secret_hash = lock.required_hex("asset.lock", "secretHash")?;
        let expiration = expiration(lock.object("asset.lock", "expiration")?)?;
        Ok(Asset::HtlcLock { amount, secret_hash, expiration, recipient })
    }

    fn check(&self, asset: &Asset, context: &TransactionContext<'_>) -> SchemaResult {
        own!(asset is Asset::HtlcLock { recipient, .. });
        schema::recipient(*recipient, context)
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["lock"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let members = json!({"type": {"enum": [1, 2]}, "value": from_zero()});
        let expiration = schema_parts::object(&["type", "value"], members);
        let members = json!({"secretHash": schema_parts::hash(), "expiration": expiration});
        let lock = schema_parts::object(&["secretHash", "expiration"], members);
        vec![schema_parts::recipient(), schema_parts::vendor_field(), schema_parts::asset("lock", lock)]
    }
}

fn expiration_of(wire: &mut WireReader<'_>) -> Result<Expiration, BytesError> {
    let at = wire.at();
    let kind = wire.byte("asset.lock.expiration.type")?;
    let value = wire.u32("asset.lock.expiration.value")?;
    let allowed = "1 (epoch time) or 2 (block height)";
    Expiration::from_numbers(kind, value).ok_or(BytesError::Byte { at, found: kind, allowed })
}

fn expiration(members: Members<'_>) -> Result<Expiration, SchemaError> {
    let path = "asset.lock.expiration";
    let kind = members.require(path, "type")?;
    let wrong =
        || SchemaError::new(format!("{path}.type"), describe(kind), Rule::OneOf("1 (epoch time) or 2 (height)"));
    let number = whole(kind).and_then(|number| u8::try_from(number).ok()).ok_or_else(wrong)?;
    Expiration::from_numbers(number, 0).ok_or_else(wrong)?;
    let value = members.required_number(path, "value", u64::from(u32::MAX))? as u32;
    Expiration::from_numbers(number, value).ok_or_else(wrong)
}
