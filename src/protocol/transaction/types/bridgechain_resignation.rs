//! Resignation of a bridgechain. Source: protocol.md 3.4.

use super::{
    super::{BytesError, SchemaError, Transaction, TransactionBuilder, decode::WireReader, read::JsonReader},
    Asset, TransactionType, own,
    schema_parts::{self, reference},
};
use crate::protocol::Arktoshi;
use serde_json::{Value, json};

pub(crate) struct Type;

impl Transaction {
    /// Resigns a bridgechain of the sender's business. `bridgechain` is the genesis hash of its registration.
    pub fn bridgechain_resignation(bridgechain: [u8; 32]) -> TransactionBuilder {
        TransactionBuilder::new(Asset::BridgechainResignation { bridgechain })
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(50)
    }

    fn addon_bytes(&self) -> u64 {
        100
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::BridgechainResignation { bridgechain });
        out.extend(bridgechain);
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(Asset::BridgechainResignation { bridgechain: wire.array("asset.bridgechainResignation.bridgechainId")? })
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::BridgechainResignation { bridgechain });
        Some(json!({ "bridgechainResignation": { "bridgechainId": hex::encode(bridgechain) } }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let asset = json.asset("bridgechainResignation")?;
        let bridgechain = asset.required_hex("asset.bridgechainResignation", "bridgechainId")?;
        Ok(Asset::BridgechainResignation { bridgechain })
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["bridgechainResignation"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let members = json!({"bridgechainId": reference("transactionId")});
        vec![schema_parts::asset("bridgechainResignation", schema_parts::object(&["bridgechainId"], members))]
    }
}
