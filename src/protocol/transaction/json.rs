//! A transaction as JSON, in the raw form of the reference. Source: protocol.md 3.5 "Canonical output".

use super::{Asset, SignedTransaction, Version};
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

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

impl Asset {
    /// The `asset` member; nothing for types that have none.
    pub fn to_json(&self) -> Option<Value> {
        Some(match self {
            Self::Transfer { .. } | Self::DelegateResignation | Self::BusinessResignation => return None,
            Self::SecondSignature { public_key } => json!({ "signature": { "publicKey": public_key } }),
            Self::DelegateRegistration { username } => json!({ "delegate": { "username": username } }),
            Self::Vote(vote) => json!({ "votes": [vote.to_string()] }),
            Self::MultiSignature { min, public_keys } => {
                json!({ "multiSignature": { "publicKeys": public_keys, "min": min } })
            }
            Self::MultiSignatureLegacy { min, lifetime, keysgroup } => {
                let keys: Vec<String> = keysgroup.iter().map(|key| format!("+{key}")).collect();
                json!({ "multiSignatureLegacy": { "min": min, "lifetime": lifetime, "keysgroup": keys } })
            }
            Self::Ipfs { multihash } => json!({ "ipfs": Self::ipfs_text(multihash) }),
            Self::MultiPayment { payments } => {
                let payment =
                    |payment: &super::Payment| json!({ "amount": payment.amount, "recipientId": payment.recipient });
                json!({ "payments": payments.iter().map(payment).collect::<Vec<_>>() })
            }
            Self::HtlcLock { secret_hash, expiration, .. } => {
                let (kind, value) = expiration.numbers();
                let expiration = json!({ "type": kind, "value": value });
                json!({ "lock": { "secretHash": hex::encode(secret_hash), "expiration": expiration } })
            }
            Self::HtlcClaim { lock, unlock_secret } => {
                json!({ "claim": { "lockTransactionId": lock, "unlockSecret": hex::encode(unlock_secret) } })
            }
            Self::HtlcRefund { lock } => json!({ "refund": { "lockTransactionId": lock } }),
            magistrate => magistrate.magistrate_json(),
        })
    }

    fn magistrate_json(&self) -> Value {
        match self {
            Self::BusinessRegistration { name, website, vat, repository } => {
                let members = [("name", Some(name)), ("website", Some(website))];
                let optional = [("vat", vat.as_ref()), ("repository", repository.as_ref())];
                json!({ "businessRegistration": texts(members.into_iter().chain(optional)) })
            }
            Self::BusinessUpdate { name, website, vat, repository } => {
                let members = [("name", name), ("website", website), ("vat", vat), ("repository", repository)];
                json!({ "businessUpdate": texts(members.into_iter().map(|(key, text)| (key, text.as_ref()))) })
            }
            Self::BridgechainRegistration { name, seed_nodes, genesis_hash, repository, asset_repository, ports } => {
                let mut out = texts([("name", Some(name))]);
                out.insert("seedNodes".to_owned(), json!(seed_nodes));
                out.insert("genesisHash".to_owned(), hex::encode(genesis_hash).into());
                out.insert("bridgechainRepository".to_owned(), repository.as_str().into());
                out.insert("ports".to_owned(), port_json(ports));
                out.extend(texts([("bridgechainAssetRepository", asset_repository.as_ref())]));
                json!({ "bridgechainRegistration": out })
            }
            Self::BridgechainResignation { bridgechain } => {
                json!({ "bridgechainResignation": { "bridgechainId": hex::encode(bridgechain) } })
            }
            Self::BridgechainUpdate { bridgechain, seed_nodes, ports, repository, asset_repository } => {
                let mut out = Map::new();
                out.insert("bridgechainId".to_owned(), hex::encode(bridgechain).into());
                if let Some(nodes) = seed_nodes {
                    out.insert("seedNodes".to_owned(), json!(nodes));
                }
                if let Some(ports) = ports {
                    out.insert("ports".to_owned(), port_json(ports));
                }
                let members = [("bridgechainRepository", repository), ("bridgechainAssetRepository", asset_repository)];
                out.extend(texts(members.map(|(key, text)| (key, text.as_ref()))));
                json!({ "bridgechainUpdate": out })
            }
            _ => unreachable!("the core types are written before"),
        }
    }
}

fn texts<'a>(members: impl IntoIterator<Item = (&'a str, Option<&'a String>)>) -> Map<String, Value> {
    let present = members.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.as_str().into())));
    present.collect()
}

fn port_json(ports: &IndexMap<String, u16>) -> Value {
    ports.iter().map(|(name, port)| (name.clone(), Value::from(*port))).collect::<Map<_, _>>().into()
}
