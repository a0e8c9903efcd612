//! A transaction as JSON, in the raw form of the reference. Source: protocol.md 3.5 "Canonical output".

use super::{Asset, SignedTransaction, Version};
use serde_json::{Map, Value};

impl SignedTransaction {
    /// The raw form: numbers of 64 bits as texts, `network` always, `typeGroup` unless it is 1, no `timestamp` in
    /// version 2 and no `nonce` in version 1.
    pub fn to_json(&self) -> Value {
        let transaction = self.transaction();
        let (group, number) = self.kind().numbers();
        let mut out = Map::new();
        let mut put = |key: &str, value: Value| drop(out.insert(key.to_owned(), value));
        put("version", transaction.version.number().into());
        put("network", transaction.network.into());
        if group != 1 {
            put("typeGroup", group.into());
        }
        put("type", number.into());
        match transaction.version {
            Version::One(timestamp) => put("timestamp", timestamp.0.into()),
            Version::Two(nonce) => put("nonce", nonce.to_string().into()),
        }
        put("senderPublicKey", transaction.sender.to_string().into());
        put("fee", transaction.fee.to_string().into());
        put("amount", self.amount().to_string().into());
        if let Some(text) = &transaction.vendor_field {
            put("vendorField", text.as_str().into());
        }
        if let Asset::Transfer { expiration, .. } = self.asset() {
            put("expiration", (*expiration).into());
        }
        if let Some(recipient) = self.asset().recipient() {
            put("recipientId", recipient.to_string().into());
        }
        if let Some(asset) = self.asset().to_json() {
            put("asset", asset);
        }
        if let Some(signature) = &transaction.signature {
            put("signature", hex::encode(signature).into());
        }
        if let Some(signature) = &transaction.second_signature {
            put("secondSignature", hex::encode(signature).into());
        }
        if !transaction.signatures.is_empty() {
            let signatures = transaction.signatures.iter().map(|signature| hex::encode(signature.to_bytes()));
            put("signatures", signatures.collect());
        }
        if let (Asset::Vote(_), Version::One(_)) = (self.asset(), transaction.version) {
            // Not on the wire, but in what is signed: the reference adds it after it has read the rest.
            put("recipientId", self.sender_address().to_string().into());
        }
        put("id", self.id().to_string().into());
        Value::Object(out)
    }
}
