//! Registration of a multisignature wallet, and its old form in version 1. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, Rule, SchemaError, Transaction, TransactionBuilder, TransactionContext,
        decode::WireReader,
        encode,
        read::{JsonReader, Members, text_of},
        schema::{self, SchemaResult},
    },
    Asset, Pending, TransactionType, own,
    schema_parts::{self, reference},
};
use crate::protocol::{Arktoshi, PublicKey};
use serde_json::{Value, json};

pub(crate) struct Type;

impl Transaction {
    /// Registers a wallet that any `min` of these keys can spend from; a key's position is the index of its signatures. The registration
    /// needs one signature for each key, of which by default only `min` have to be valid, and the sender's.
    pub fn multi_signature(min: u8, public_keys: Vec<PublicKey>) -> TransactionBuilder {
        TransactionBuilder::new(Asset::MultiSignature { min, public_keys })
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(5)
    }

    fn addon_bytes(&self) -> u64 {
        500
    }

    fn pending(&self) -> Pending {
        Pending::One
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        if let Asset::MultiSignatureLegacy { min, lifetime, keysgroup } = asset {
            out.extend([*min, encode::count(keysgroup.len()), *lifetime]);
            out.extend(keysgroup.iter().flat_map(|key| key.as_bytes()));
            return;
        }
        own!(asset is Asset::MultiSignature { min, public_keys });
        out.extend([*min, encode::count(public_keys.len())]);
        out.extend(public_keys.iter().flat_map(|key| key.as_bytes()));
    }

    fn write_signed_in_version_one(&self, asset: &Asset, out: &mut Vec<u8>) {
        if let Asset::MultiSignatureLegacy { min, lifetime, keysgroup } = asset {
            out.extend([*min, *lifetime]);
            keysgroup.iter().for_each(|key| out.extend(format!("+{key}").as_bytes()));
        }
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        if wire.is_version_one() {
            let min = wire.byte("asset.multiSignatureLegacy.min")?;
            let count = wire.byte("asset.multiSignatureLegacy.keysgroup")?;
            let lifetime = wire.byte("asset.multiSignatureLegacy.lifetime")?;
            return Ok(Asset::MultiSignatureLegacy { min, lifetime, keysgroup: keys(wire, count)? });
        }
        let min = wire.byte("asset.multiSignature.min")?;
        let count = wire.byte("asset.multiSignature.publicKeys")?;
        Ok(Asset::MultiSignature { min, public_keys: keys(wire, count)? })
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        if let Asset::MultiSignatureLegacy { min, lifetime, keysgroup } = asset {
            let keys: Vec<String> = keysgroup.iter().map(|key| format!("+{key}")).collect();
            return Some(json!({ "multiSignatureLegacy": { "min": min, "lifetime": lifetime, "keysgroup": keys } }));
        }
        own!(asset is Asset::MultiSignature { min, public_keys });
        Some(json!({ "multiSignature": { "publicKeys": public_keys, "min": min } }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, version: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        if version == 1 { legacy(json.asset("multiSignatureLegacy")?) } else { current(json.asset("multiSignature")?) }
    }

    fn check(&self, asset: &Asset, _: &TransactionContext<'_>) -> SchemaResult {
        match asset {
            Asset::MultiSignature { min, public_keys } => schema::multi_signature_min(u64::from(*min), public_keys),
            _ => Ok(()),
        }
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["multiSignature", "multiSignatureLegacy"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let mut keys = schema_parts::list(1, 16, &reference("publicKey"));
        keys["uniqueItems"] = json!(true);
        let least = json!({"type": "integer", "minimum": 1, "maximum": {"$data": "1/publicKeys/length"}});
        let members = json!({"min": least, "publicKeys": keys});
        vec![schema_parts::asset("multiSignature", schema_parts::object(&["min", "publicKeys"], members))]
    }
}

fn keys(wire: &mut WireReader<'_>, count: u8) -> Result<Vec<PublicKey>, BytesError> {
    wire.require("asset.multiSignature.publicKeys", 33 * usize::from(count))?;
    (0..count).map(|_| wire.key("asset.multiSignature.publicKeys")).collect()
}

fn current(asset: Members<'_>) -> Result<Asset, SchemaError> {
    let path = "asset.multiSignature";
    let public_keys = public_keys(&format!("{path}.publicKeys"), asset.list(path, "publicKeys")?, "")?;
    let min = asset.required_number(path, "min", u64::MAX)?;
    schema::multi_signature_min(min, &public_keys)?;
    Ok(Asset::MultiSignature { min: min as u8, public_keys })
}

fn legacy(asset: Members<'_>) -> Result<Asset, SchemaError> {
    let path = "asset.multiSignatureLegacy";
    let keysgroup = public_keys(&format!("{path}.keysgroup"), asset.list(path, "keysgroup")?, "+")?;
    let min = asset.required_number(path, "min", 255)? as u8;
    let lifetime = asset.required_number(path, "lifetime", 72)? as u8;
    Ok(Asset::MultiSignatureLegacy { min, lifetime, keysgroup })
}

fn public_keys(path: &str, list: &[Value], prefix: &str) -> Result<Vec<PublicKey>, SchemaError> {
    schema::items(path, list.len(), 1, 16)?;
    let key = |(index, found): (usize, &Value)| {
        let path = format!("{path}[{index}]");
        let text = text_of(&path, found)?;
        let wrong = || SchemaError::of_text(path, text, Rule::Hex { digits: 66 });
        text.strip_prefix(prefix).and_then(|key| key.parse().ok()).ok_or_else(wrong)
    };
    list.iter().enumerate().map(key).collect()
}
