//! The refund of an unclaimed lock to its owner. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, SchemaError, Transaction, TransactionBuilder, TransactionId, decode::WireReader, read::JsonReader,
    },
    Asset, TransactionType, own,
    schema_parts::{self, reference},
};
use crate::protocol::Arktoshi;
use serde_json::{Value, json};

pub(crate) struct Type;

impl Transaction {
    /// Returns the coin of an expired lock to its owner. Any sender may do so. `lock` is the id of the transaction that made the lock.
    pub fn htlc_refund(lock: TransactionId) -> TransactionBuilder {
        TransactionBuilder::new(Asset::HtlcRefund { lock })
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::ZERO
    }

    fn addon_bytes(&self) -> u64 {
        0
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::HtlcRefund { lock });
        out.extend(lock.0);
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(Asset::HtlcRefund { lock: TransactionId(wire.array("asset.refund.lockTransactionId")?) })
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::HtlcRefund { lock });
        Some(json!({ "refund": { "lockTransactionId": lock } }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let lock = json.asset("refund")?.required_hex("asset.refund", "lockTransactionId")?;
        Ok(Asset::HtlcRefund { lock: TransactionId(lock) })
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["refund"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let members = json!({"lockTransactionId": reference("transactionId")});
        vec![schema_parts::asset("refund", schema_parts::object(&["lockTransactionId"], members))]
    }
}
