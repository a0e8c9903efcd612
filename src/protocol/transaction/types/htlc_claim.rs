//! Claim of a lock's coin with its secret. Source: protocol.md 3.4.

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
    /// Pays the coin of an open lock to its recipient. Any sender may do so. `lock` is the id of the transaction that made the lock, and
    /// the SHA256 of `unlock_secret` has to be the lock's hash.
    pub fn htlc_claim(lock: TransactionId, unlock_secret: [u8; 32]) -> TransactionBuilder {
        TransactionBuilder::new(Asset::HtlcClaim { lock, unlock_secret })
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
        own!(asset is Asset::HtlcClaim { lock, unlock_secret });
        out.extend(lock.0);
        out.extend(unlock_secret);
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(Asset::HtlcClaim {
            lock: TransactionId(wire.array("asset.claim.lockTransactionId")?),
            unlock_secret: wire.array("asset.claim.unlockSecret")?,
        })
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::HtlcClaim { lock, unlock_secret });
        Some(json!({ "claim": { "lockTransactionId": lock, "unlockSecret": hex::encode(unlock_secret) } }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let claim = json.asset("claim")?;
        Ok(Asset::HtlcClaim {
            lock: TransactionId(claim.required_hex("asset.claim", "lockTransactionId")?),
            unlock_secret: claim.required_hex("asset.claim", "unlockSecret")?,
        })
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["claim"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let members = json!({"lockTransactionId": reference("transactionId"), "unlockSecret": schema_parts::hash()});
        vec![schema_parts::asset("claim", schema_parts::object(&["lockTransactionId", "unlockSecret"], members))]
    }
}
