//! Registration of a second key, which signs in addition to the first from then on. Source: protocol.md 3.4.

use super::{
    super::{BytesError, SchemaError, Transaction, TransactionBuilder, decode::WireReader, read::JsonReader},
    Asset, Pending, TransactionType, own,
    schema_parts::{self, reference},
};
use crate::protocol::{Arktoshi, PublicKey};
use serde_json::{Value, json};

pub(crate) struct Type;

impl Transaction {
    /// Registers a second key of the sender. From then on, its transactions need a second signature by this key.
    pub fn second_signature(public_key: PublicKey) -> TransactionBuilder {
        TransactionBuilder::new(Asset::SecondSignature { public_key })
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(5)
    }

    fn addon_bytes(&self) -> u64 {
        250
    }

    fn pending(&self) -> Pending {
        Pending::One
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::SecondSignature { public_key });
        out.extend(public_key.as_bytes());
    }

    fn write_signed_in_version_one(&self, asset: &Asset, out: &mut Vec<u8>) {
        self.write(asset, out);
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(Asset::SecondSignature { public_key: wire.key("asset.signature.publicKey")? })
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::SecondSignature { public_key });
        Some(json!({ "signature": { "publicKey": public_key } }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let public_key = json.asset("signature")?.required_hex("asset.signature", "publicKey")?;
        Ok(Asset::SecondSignature { public_key: PublicKey::from_bytes(public_key) })
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["signature"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let key = json!({"publicKey": reference("publicKey")});
        vec![schema_parts::asset("signature", schema_parts::object(&["publicKey"], key))]
    }
}
