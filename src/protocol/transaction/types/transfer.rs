//! Payment to one recipient. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, SchemaError, Transaction, TransactionBuilder, TransactionContext,
        decode::WireReader,
        read::JsonReader,
        schema::{self, SchemaResult},
    },
    Asset, TENTH, TransactionType, own, schema_parts,
};
use crate::protocol::{Address, Arktoshi};
use serde_json::Value;

pub(crate) struct Type;

impl Transaction {
    /// Pays one recipient. The transfer never expires, unless the builder's `expiration` sets a height.
    pub fn transfer(recipient: Address, amount: Arktoshi) -> TransactionBuilder {
        TransactionBuilder::new(Asset::Transfer { amount, expiration: 0, recipient })
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
        own!(asset is Asset::Transfer { amount, expiration, recipient });
        out.extend(amount.value().to_le_bytes());
        out.extend(expiration.to_le_bytes());
        out.extend(recipient.as_bytes());
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        let (amount, expiration) = (wire.amount("amount")?, wire.u32("expiration")?);
        Ok(Asset::Transfer { amount, expiration, recipient: wire.recipient()? })
    }

    fn read_json(&self, json: &mut JsonReader<'_>, version: u8, amount: Arktoshi) -> Result<Asset, SchemaError> {
        let found = json.members.require("", "recipientId")?;
        let recipient = json.recipient("recipientId", found, version == 2)?;
        let expiration = json.members.number("expiration", u64::from(u32::MAX))?.unwrap_or(0) as u32;
        Ok(Asset::Transfer { amount, expiration, recipient })
    }

    fn check(&self, asset: &Asset, context: &TransactionContext<'_>) -> SchemaResult {
        own!(asset is Asset::Transfer { recipient, .. });
        schema::recipient(*recipient, context)
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        vec![schema_parts::vendor_field(), schema_parts::recipient(), ("expiration", schema_parts::from_zero())]
    }
}
