//! A hash that a sender registers, once on the chain. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, SchemaError, Transaction, TransactionBuilder, TransactionContext,
        decode::WireReader,
        read::JsonReader,
        schema::{self, SchemaResult},
    },
    Asset, TransactionType, own, schema_parts,
};
use crate::protocol::Arktoshi;
use serde_json::{Value, json};

pub(crate) struct Type;

impl Transaction {
    /// From the multihash's bytes; see [`bs58`] for its text.
    pub fn ipfs(multihash: Vec<u8>) -> TransactionBuilder {
        TransactionBuilder::new(Asset::Ipfs { multihash })
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(5)
    }

    fn addon_bytes(&self) -> u64 {
        250
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::Ipfs { multihash });
        out.extend(multihash);
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        let start = wire.at();
        let [_, length] = wire.array("asset.ipfs")?;
        wire.take("asset.ipfs", usize::from(length))?;
        Ok(Asset::Ipfs { multihash: wire.since(start).to_vec() })
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::Ipfs { multihash });
        Some(json!({ "ipfs": Asset::ipfs_text(multihash) }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let text = json.members.object("", "asset")?.required_text("asset", "ipfs")?;
        schema::multihash_text(text)?;
        let multihash = bs58::decode(text).into_vec().expect("the alphabet was checked");
        Ok(Asset::Ipfs { multihash })
    }

    fn check(&self, asset: &Asset, _: &TransactionContext<'_>) -> SchemaResult {
        own!(asset is Asset::Ipfs { multihash });
        schema::multihash_text(&Asset::ipfs_text(multihash))
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["ipfs"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let text = json!({"allOf": [{"minLength": 2, "maxLength": 90}, {"$ref": "base58"}]});
        vec![schema_parts::asset("ipfs", text)]
    }
}
