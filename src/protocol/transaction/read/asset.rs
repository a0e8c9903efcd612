//! The asset of each type out of JSON.

use super::{
    Reader,
    members::{Members, amount, describe, whole},
};
use crate::protocol::{
    Address, Arktoshi, PublicKey,
    transaction::{
        Asset, BytesError, Expiration, Kind, Payment, Rule, SchemaError, TransactionError, TransactionId, Vote, schema,
    },
};
use indexmap::IndexMap;
use serde_json::Value;

type Read<T> = Result<T, SchemaError>;

pub(super) fn read(reader: &mut Reader<'_>, version: u8, moved: Arktoshi) -> Read<Asset> {
    let root = reader.members;
    let below = |key: &str| root.object("", "asset")?.object("asset", key);
    Ok(match reader.kind {
        Kind::Transfer => {
            let recipient = recipient(reader, "recipientId", root.require("", "recipientId")?, version == 2)?;
            let expiration = root.number("expiration", u64::from(u32::MAX))?.unwrap_or(0) as u32;
            Asset::Transfer { amount: moved, expiration, recipient }
        }
        Kind::SecondSignature => Asset::SecondSignature {
            public_key: PublicKey::from_bytes(below("signature")?.required_hex("asset.signature", "publicKey")?),
        },
        Kind::DelegateRegistration => {
            let username = below("delegate")?.required_text("asset.delegate", "username")?;
            schema::username("asset.delegate.username", username)?;
            Asset::DelegateRegistration { username: username.to_owned() }
        }
        Kind::Vote => {
            // Not on the wire, since it is the sender's own; but if it is there, it must look like an address.
            root.get("recipientId").map_or(Ok(()), |found| address_looks("recipientId", found).map(|_| ()))?;
            Asset::Vote(vote(root.object("", "asset")?.list("asset", "votes")?, reader.lax())?)
        }
        Kind::MultiSignature if version == 1 => legacy_multi_signature(below("multiSignatureLegacy")?)?,
        Kind::MultiSignature => multi_signature(below("multiSignature")?)?,
        Kind::Ipfs => ipfs(reader)?,
        Kind::MultiPayment => multi_payment(reader)?,
        Kind::DelegateResignation => Asset::DelegateResignation,
        Kind::HtlcLock => {
            let recipient = recipient(reader, "recipientId", root.require("", "recipientId")?, false)?;
            htlc_lock(below("lock")?, moved, recipient)?
        }
        Kind::HtlcClaim => {
            let claim = below("claim")?;
            Asset::HtlcClaim {
                lock: TransactionId(claim.required_hex("asset.claim", "lockTransactionId")?),
                unlock_secret: claim.required_hex("asset.claim", "unlockSecret")?,
            }
        }
        Kind::HtlcRefund => Asset::HtlcRefund {
            lock: TransactionId(below("refund")?.required_hex("asset.refund", "lockTransactionId")?),
        },
        Kind::BusinessRegistration => business_registration(below("businessRegistration")?, reader.lax())?,
        Kind::BusinessResignation => Asset::BusinessResignation,
        Kind::BusinessUpdate => business_update(below("businessUpdate")?, reader.lax())?,
        Kind::BridgechainRegistration => bridgechain_registration(reader, below("bridgechainRegistration")?)?,
        Kind::BridgechainResignation => {
            let path = "asset.bridgechainResignation";
            let bridgechain = below("bridgechainResignation")?.required_hex(path, "bridgechainId")?;
            Asset::BridgechainResignation { bridgechain }
        }
        Kind::BridgechainUpdate => bridgechain_update(reader, below("bridgechainUpdate")?)?,
    })
}

/// An address by its looks; checksum and network show only when the bytes are made.
fn recipient(reader: &mut Reader<'_>, path: &str, found: &Value, own_network: bool) -> Read<Address> {
    let text = address_looks(path, found)?;
    let allowed = reader.context.network;
    Ok(match text.parse::<Address>() {
        Ok(address) if own_network && address.network_byte() != allowed => {
            reader.defer(BytesError::RecipientNetwork { allowed, found: address.network_byte() }.into());
            address
        }
        Ok(address) => address,
        Err(error) => {
            reader.defer(TransactionError::Address(error));
            Address::from_bytes([allowed; 21])
        }
    })
}

fn address_looks<'a>(path: &str, found: &'a Value) -> Read<&'a str> {
    let base58 = |byte: u8| byte.is_ascii_alphanumeric() && !matches!(byte, b'0' | b'O' | b'I' | b'l');
    let looks_right = |text: &&str| text.len() == 34 && text.bytes().all(base58);
    let meaning = || "34 characters of base58 (digits and letters without 0, O, I, l)".to_owned();
    let wrong = || SchemaError::new(path, describe(found), Rule::Format { name: "address", meaning: meaning() });
    found.as_str().filter(looks_right).ok_or_else(wrong)
}

fn vote(votes: &[Value], lax: bool) -> Read<Vote> {
    let [vote] = votes else {
        return Err(SchemaError::new("asset.votes", format!("{} items", votes.len()), Rule::Items { min: 1, max: 1 }));
    };
    let wrong = || SchemaError::new("asset.votes[0]", describe(vote), Rule::Pattern(schema::VOTE));
    let text = vote.as_str().ok_or_else(wrong)?;
    let key = |digits: &str| digits.parse().map_err(|_| wrong());
    match text.split_at_checked(1) {
        Some(("+", digits)) => Ok(Vote::For(key(digits)?)),
        Some(("|", digits)) if lax => Ok(Vote::Against(key(digits)?)),
        Some(("-", digits)) => Ok(Vote::Against(key(digits)?)),
        _ => Err(wrong()),
    }
}

fn multi_signature(asset: Members<'_>) -> Read<Asset> {
    let path = "asset.multiSignature";
    let public_keys = public_keys(&format!("{path}.publicKeys"), asset.list(path, "publicKeys")?, "")?;
    let min = asset.required_number(path, "min", u64::MAX)?;
    schema::multi_signature_min(min, &public_keys)?;
    Ok(Asset::MultiSignature { min: min as u8, public_keys })
}

fn legacy_multi_signature(asset: Members<'_>) -> Read<Asset> {
    let path = "asset.multiSignatureLegacy";
    let keysgroup = public_keys(&format!("{path}.keysgroup"), asset.list(path, "keysgroup")?, "+")?;
    let min = asset.required_number(path, "min", 255)? as u8;
    let lifetime = asset.required_number(path, "lifetime", 72)? as u8;
    Ok(Asset::MultiSignatureLegacy { min, lifetime, keysgroup })
}

fn public_keys(path: &str, list: &[Value], prefix: &str) -> Read<Vec<PublicKey>> {
    if !(1..=16).contains(&list.len()) {
        return Err(SchemaError::new(path, format!("{} items", list.len()), Rule::Items { min: 1, max: 16 }));
    }
    let key = |(index, found): (usize, &Value)| {
        let wrong = || SchemaError::new(format!("{path}[{index}]"), describe(found), Rule::Hex { digits: 66 });
        found.as_str().and_then(|text| text.strip_prefix(prefix)?.parse().ok()).ok_or_else(wrong)
    };
    list.iter().enumerate().map(key).collect()
}

fn ipfs(reader: &Reader<'_>) -> Read<Asset> {
    let text = reader.members.object("", "asset")?.required_text("asset", "ipfs")?;
    schema::multihash_text(text)?;
    let multihash = bs58::decode(text).into_vec().expect("the alphabet was checked");
    Ok(Asset::Ipfs { multihash })
}

fn multi_payment(reader: &mut Reader<'_>) -> Read<Asset> {
    let list = reader.members.object("", "asset")?.list("asset", "payments")?;
    schema::payments(list.len(), reader.context.milestone.multi_payment_limit)?;
    let lax = reader.lax();
    let payments = list.iter().enumerate().map(|(index, found)| {
        let path = format!("asset.payments[{index}]");
        let payment = found.as_object().ok_or_else(|| SchemaError::new(&path, describe(found), Rule::Object))?;
        let member = |key: &str| {
            payment.get(key).ok_or_else(|| SchemaError::new(format!("{path}.{key}"), "missing", Rule::Required))
        };
        let amount = payment_amount(&format!("{path}.amount"), member("amount")?, lax)?;
        let recipient = recipient(reader, &format!("{path}.recipientId"), member("recipientId")?, true)?;
        Ok(Payment { amount, recipient })
    });
    Ok(Asset::MultiPayment { payments: payments.collect::<Read<_>>()? })
}

fn payment_amount(path: &str, found: &Value, lax: bool) -> Read<Arktoshi> {
    let rule = Rule::Amount { min: 1, max: Arktoshi::MAX.value() };
    match amount(path, found, lax) {
        Ok(amount) if amount.value() >= 1 => Ok(amount),
        _ => Err(SchemaError::new(path, describe(found), rule)),
    }
}

fn htlc_lock(lock: Members<'_>, amount: Arktoshi, recipient: Address) -> Read<Asset> {
    let secret_hash = lock.required_hex("asset.lock", "secretHash")?;
    let path = "asset.lock.expiration";
    let expiration = lock.object("asset.lock", "expiration")?;
    let kind = expiration.require(path, "type")?;
    let wrong =
        || SchemaError::new(format!("{path}.type"), describe(kind), Rule::OneOf("1 (epoch time) or 2 (height)"));
    let number = whole(kind).and_then(|number| u8::try_from(number).ok()).ok_or_else(wrong)?;
    Expiration::from_numbers(number, 0).ok_or_else(wrong)?;
    let value = expiration.required_number(path, "value", u64::from(u32::MAX))? as u32;
    let expiration = Expiration::from_numbers(number, value).ok_or_else(wrong)?;
    Ok(Asset::HtlcLock { amount, secret_hash, expiration, recipient })
}

fn business_registration(asset: Members<'_>, lax: bool) -> Read<Asset> {
    let path = "asset.businessRegistration";
    asset.require(path, "name")?;
    asset.require(path, "website")?;
    let (name, website, vat, repository) = business(path, asset, lax)?;
    let wrong = || SchemaError::new(format!("{path}.website"), "null", Rule::Text);
    let (name, website) = (name.expect("required above"), website.ok_or_else(wrong)?);
    Ok(Asset::BusinessRegistration { name, website, vat, repository })
}

fn business_update(asset: Members<'_>, lax: bool) -> Read<Asset> {
    let (name, website, vat, repository) = business("asset.businessUpdate", asset, lax)?;
    if name.is_none() && website.is_none() && vat.is_none() && repository.is_none() {
        let rule = Rule::AnyOf("name, website, vat, repository");
        return Err(SchemaError::new("asset.businessUpdate", "none", rule));
    }
    Ok(Asset::BusinessUpdate { name, website, vat, repository })
}

type Texts = (Option<String>, Option<String>, Option<String>, Option<String>);

fn business(path: &str, asset: Members<'_>, lax: bool) -> Read<Texts> {
    Ok((
        checked(asset, path, "name", schema::name)?,
        optional_uri(asset, path, "website", lax)?,
        checked(asset, path, "vat", schema::vat)?,
        optional_uri(asset, path, "repository", lax)?,
    ))
}

fn bridgechain_registration(reader: &mut Reader<'_>, asset: Members<'_>) -> Read<Asset> {
    let path = "asset.bridgechainRegistration";
    for key in ["name", "seedNodes", "genesisHash", "bridgechainRepository", "ports"] {
        asset.require(path, key)?;
    }
    Ok(Asset::BridgechainRegistration {
        name: checked(asset, path, "name", schema::name)?.expect("required above"),
        seed_nodes: seed_nodes(asset, path)?.expect("required above"),
        genesis_hash: asset.required_hex(path, "genesisHash")?,
        repository: checked(asset, path, "bridgechainRepository", schema::uri)?.expect("required above"),
        asset_repository: optional_uri(asset, path, "bridgechainAssetRepository", reader.lax())?,
        ports: ports(reader, asset, path)?.expect("required above"),
    })
}

fn bridgechain_update(reader: &mut Reader<'_>, asset: Members<'_>) -> Read<Asset> {
    let path = "asset.bridgechainUpdate";
    let bridgechain = asset.required_hex(path, "bridgechainId")?;
    let seed_nodes = seed_nodes(asset, path)?;
    let ports = ports(reader, asset, path)?;
    let repository = optional_uri(asset, path, "bridgechainRepository", reader.lax())?;
    let asset_repository = optional_uri(asset, path, "bridgechainAssetRepository", reader.lax())?;
    if seed_nodes.is_none() && ports.is_none() && repository.is_none() && asset_repository.is_none() {
        let rule = Rule::AnyOf("seedNodes, ports, bridgechainRepository, bridgechainAssetRepository");
        return Err(SchemaError::new(path, "none", rule));
    }
    Ok(Asset::BridgechainUpdate { bridgechain, seed_nodes, ports, repository, asset_repository })
}

/// An optional text that obeys a rule.
fn checked(asset: Members<'_>, path: &str, key: &str, rule: fn(&str, &str) -> Read<()>) -> Read<Option<String>> {
    let Some(text) = asset.text(path, key)? else { return Ok(None) };
    rule(&format!("{path}.{key}"), text)?;
    Ok(Some(text.to_owned()))
}

/// The reference's rule for these forgets to ask for a text, so null is as good as nothing there.
fn optional_uri(asset: Members<'_>, path: &str, key: &str, lax: bool) -> Read<Option<String>> {
    match asset.get(key) {
        Some(Value::Null) => Ok(None),
        Some(found) if lax && (whole(found) == Some(0) || found.as_array().is_some_and(Vec::is_empty)) => Ok(None),
        _ => checked(asset, path, key, schema::uri),
    }
}

fn seed_nodes(asset: Members<'_>, path: &str) -> Read<Option<Vec<String>>> {
    if asset.get("seedNodes").is_none() {
        return Ok(None);
    }
    let path = format!("{path}.seedNodes");
    let list = asset.list(path.trim_end_matches(".seedNodes"), "seedNodes")?;
    let text = |(index, item): (usize, &Value)| {
        let wrong = || SchemaError::new(format!("{path}[{index}]"), describe(item), Rule::Text);
        item.as_str().map(str::to_owned).ok_or_else(wrong)
    };
    let nodes = list.iter().enumerate().map(text).collect::<Read<Vec<_>>>()?;
    schema::seed_nodes(&path, &nodes)?;
    Ok(Some(nodes))
}

/// Names that cannot be a port's are dropped as unknown members are; the signature then fails.
fn ports(reader: &mut Reader<'_>, asset: Members<'_>, path: &str) -> Read<Option<IndexMap<String, u16>>> {
    if asset.get("ports").is_none() {
        return Ok(None);
    }
    let object = asset.object(path, "ports")?;
    let path = format!("{path}.ports");
    schema::port_count(&path, object.entries().count(), object.get(schema::CORE_API).is_some())?;
    let mut ports = IndexMap::new();
    for (name, found) in object.entries().filter(|(name, _)| schema::is_port_name(name)) {
        let rule = Rule::Number { min: 0, max: u64::from(u16::MAX) };
        let wrong = || SchemaError::new(format!("{path}['{name}']"), describe(found), rule);
        let port = whole(found).and_then(|port| u16::try_from(port).ok()).ok_or_else(wrong)?;
        if name.is_ascii() {
            ports.insert(name.clone(), port);
        } else {
            reader.defer(BytesError::Text { field: "ports", allowed: "ASCII" }.into());
        }
    }
    schema::order_as_javascript(&mut ports);
    Ok(Some(ports))
}
