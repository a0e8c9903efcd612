//! Registration of a bridgechain by a business. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, Rule, SchemaError, Transaction, TransactionBuilder, TransactionContext,
        decode::WireReader,
        encode,
        read::{JsonReader, Members, checked, describe, optional_uri, texts, whole},
        schema::{self, SchemaResult},
    },
    Asset, TransactionType, own,
    schema_parts::{self, reference},
};
use crate::protocol::Arktoshi;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

const PATH: &str = "asset.bridgechainRegistration";

pub(crate) struct Type;

/// The bridgechain to register. Source: protocol.md 3.4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgechainRegistration {
    pub name: String,
    pub seed_nodes: Vec<String>,
    /// Also the id of the bridgechain from here on.
    pub genesis_hash: [u8; 32],
    pub repository: String,
    pub asset_repository: Option<String>,
    /// The ports by name, in the order in which they are signed.
    pub ports: IndexMap<String, u16>,
}

impl From<BridgechainRegistration> for Asset {
    fn from(registration: BridgechainRegistration) -> Self {
        Self::BridgechainRegistration(Box::new(registration))
    }
}

impl Transaction {
    /// Registers a bridgechain of the sender's business. `genesis_hash` becomes its id. `ports` are signed in their order.
    pub fn bridgechain_registration(
        name: impl Into<String>,
        seed_nodes: Vec<String>,
        genesis_hash: [u8; 32],
        repository: impl Into<String>,
        asset_repository: Option<String>,
        ports: IndexMap<String, u16>,
    ) -> TransactionBuilder {
        let (name, repository) = (name.into(), repository.into());
        let registration =
            BridgechainRegistration { name, seed_nodes, genesis_hash, repository, asset_repository, ports };
        TransactionBuilder::new(registration.into())
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(50)
    }

    fn addon_bytes(&self) -> u64 {
        4_000_000
    }

    /// A registration and an update write their common members in different orders.
    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::BridgechainRegistration(registration));
        let BridgechainRegistration { name, seed_nodes, genesis_hash, repository, asset_repository, ports } =
            &**registration;
        encode::text(out, Some(name));
        encode::list(out, seed_nodes);
        out.extend(genesis_hash);
        encode::texts(out, [Some(repository), asset_repository.as_ref()]);
        encode::ports(out, ports);
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(BridgechainRegistration {
            name: wire.text("asset.bridgechainRegistration.name")?,
            seed_nodes: wire.texts("seedNodes")?,
            genesis_hash: wire.array("asset.bridgechainRegistration.genesisHash")?,
            repository: wire.text("asset.bridgechainRegistration.bridgechainRepository")?,
            asset_repository: wire.optional_text("asset.bridgechainRegistration.bridgechainAssetRepository")?,
            ports: read_ports(wire)?,
        }
        .into())
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::BridgechainRegistration(registration));
        let BridgechainRegistration { name, seed_nodes, genesis_hash, repository, asset_repository, ports } =
            &**registration;
        let mut out = texts([("name", Some(name))]);
        out.insert("seedNodes".to_owned(), json!(seed_nodes));
        out.insert("genesisHash".to_owned(), hex::encode(genesis_hash).into());
        out.insert("bridgechainRepository".to_owned(), repository.as_str().into());
        out.insert("ports".to_owned(), ports_to_json(ports));
        out.extend(texts([("bridgechainAssetRepository", asset_repository.as_ref())]));
        Some(json!({ "bridgechainRegistration": out }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let asset = json.asset("bridgechainRegistration")?;
        for key in ["name", "seedNodes", "genesisHash", "bridgechainRepository", "ports"] {
            asset.require(PATH, key)?;
        }
        Ok(BridgechainRegistration {
            name: checked(asset, PATH, "name", schema::name)?.expect("required above"),
            seed_nodes: seed_nodes(asset, PATH)?.expect("required above"),
            genesis_hash: asset.required_hex(PATH, "genesisHash")?,
            repository: checked(asset, PATH, "bridgechainRepository", schema::uri)?.expect("required above"),
            asset_repository: optional_uri(asset, PATH, "bridgechainAssetRepository", json.lax())?,
            ports: ports(json, asset, PATH)?.expect("required above"),
        }
        .into())
    }

    fn check(&self, asset: &Asset, _: &TransactionContext<'_>) -> SchemaResult {
        own!(asset is Asset::BridgechainRegistration(registration));
        let BridgechainRegistration { name, seed_nodes, repository, asset_repository, ports, .. } = &**registration;
        schema::name(&format!("{PATH}.name"), name)?;
        check_members(PATH, Some(seed_nodes), Some(repository), asset_repository.as_ref(), Some(ports))
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["bridgechainRegistration"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let mut members = published_members();
        members["name"] = reference("genericName");
        members["genesisHash"] = reference("transactionId");
        let required = ["name", "seedNodes", "genesisHash", "bridgechainRepository", "ports"];
        let mut registration = schema_parts::object(&required, members);
        registration["additionalProperties"] = json!(false);
        vec![schema_parts::closed_asset("bridgechainRegistration", registration)]
    }
}

/// The rules for the members that a registration and an update share.
pub(super) fn check_members(
    path: &str,
    seed_nodes: Option<&Vec<String>>,
    repository: Option<&String>,
    asset_repository: Option<&String>,
    ports: Option<&IndexMap<String, u16>>,
) -> SchemaResult {
    seed_nodes.map_or(Ok(()), |nodes| schema::seed_nodes(&format!("{path}.seedNodes"), nodes))?;
    repository.map_or(Ok(()), |uri| schema::uri(&format!("{path}.bridgechainRepository"), uri))?;
    asset_repository.map_or(Ok(()), |uri| schema::uri(&format!("{path}.bridgechainAssetRepository"), uri))?;
    ports.map_or(Ok(()), |ports| schema::ports(&format!("{path}.ports"), ports))
}

/// Reads ports. Their names must be distinct and in the order of JavaScript's objects, or encoding would not reproduce the bytes.
pub(super) fn read_ports(wire: &mut WireReader<'_>) -> Result<IndexMap<String, u16>, BytesError> {
    let mut ports = IndexMap::new();
    for _ in 0..wire.byte("ports")? {
        let name = wire.text("ports")?;
        let port = u16::from_le_bytes(wire.array("ports")?);
        if ports.insert(name.clone(), port).is_some() && !wire.is_lax() {
            return Err(BytesError::Ports { name });
        }
    }
    let read: Vec<String> = ports.keys().cloned().collect();
    schema::order_as_javascript(&mut ports);
    match read.into_iter().zip(ports.keys()).find(|(read, ordered)| read != *ordered) {
        Some((name, _)) if !wire.is_lax() => Err(BytesError::Ports { name }),
        _ => Ok(ports),
    }
}

pub(super) fn ports_to_json(ports: &IndexMap<String, u16>) -> Value {
    ports.iter().map(|(name, port)| (name.clone(), Value::from(*port))).collect::<Map<_, _>>().into()
}

pub(super) fn seed_nodes(asset: Members<'_>, path: &str) -> Result<Option<Vec<String>>, SchemaError> {
    if asset.get("seedNodes").is_none() {
        return Ok(None);
    }
    let list = asset.list(path, "seedNodes")?;
    let path = format!("{path}.seedNodes");
    let text = |(index, item): (usize, &Value)| {
        let wrong = || SchemaError::new(format!("{path}[{index}]"), describe(item), Rule::Text);
        item.as_str().map(str::to_owned).ok_or_else(wrong)
    };
    let nodes = list.iter().enumerate().map(text).collect::<Result<Vec<_>, _>>()?;
    schema::seed_nodes(&path, &nodes)?;
    Ok(Some(nodes))
}

/// Reads ports from JSON. Invalid names are dropped like unknown members; the signature then fails.
pub(super) fn ports(
    json: &mut JsonReader<'_>,
    asset: Members<'_>,
    path: &str,
) -> Result<Option<IndexMap<String, u16>>, SchemaError> {
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
            json.defer(BytesError::Text { field: "ports", allowed: "ASCII" }.into());
        }
    }
    schema::order_as_javascript(&mut ports);
    Ok(Some(ports))
}

/// The published members that a registration and an update share. Their order is that of the reference's list of members of which an
/// update must have one.
pub(super) fn published_members() -> Value {
    json!({
        "seedNodes": {
            "type": "array", "minItems": 1, "maxItems": 10, "uniqueItems": true,
            "items": {"type": "string", "format": "peer"},
        },
        "ports": {
            "type": "object", "maxProperties": 10, "minProperties": 1, "required": ["@arkecosystem/core-api"],
            "additionalProperties": false,
            "patternProperties": {"^.{1,214}$": {"type": "integer", "minimum": 0, "maximum": 65_535}},
        },
        "bridgechainRepository": reference("uri"),
        "bridgechainAssetRepository": reference("uri"),
    })
}
