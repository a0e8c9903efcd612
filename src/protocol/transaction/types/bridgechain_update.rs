//! Update of some members of a bridgechain. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, SchemaError, Transaction, TransactionBuilder, TransactionContext,
        decode::WireReader,
        encode,
        read::{JsonReader, optional_uri, texts},
        schema::{self, SchemaResult},
    },
    Asset, TransactionType,
    bridgechain_registration::{check_members, ports, ports_to_json, published_members, read_ports, seed_nodes},
    own,
    schema_parts::{self, reference},
};
use crate::protocol::Arktoshi;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

const PATH: &str = "asset.bridgechainUpdate";
const MEMBERS: &str = "seedNodes, ports, bridgechainRepository, bridgechainAssetRepository";

pub(crate) struct Type;

/// The members that change. Source: protocol.md 3.4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgechainUpdate {
    pub bridgechain: [u8; 32],
    pub seed_nodes: Option<Vec<String>>,
    pub ports: Option<IndexMap<String, u16>>,
    pub repository: Option<String>,
    pub asset_repository: Option<String>,
}

impl From<BridgechainUpdate> for Asset {
    fn from(update: BridgechainUpdate) -> Self {
        Self::BridgechainUpdate(Box::new(update))
    }
}

impl Transaction {
    /// Updates a bridgechain. At least one of the four members beside the id must be present.
    pub fn bridgechain_update(
        bridgechain: [u8; 32],
        seed_nodes: Option<Vec<String>>,
        ports: Option<IndexMap<String, u16>>,
        repository: Option<String>,
        asset_repository: Option<String>,
    ) -> TransactionBuilder {
        TransactionBuilder::new(
            BridgechainUpdate { bridgechain, seed_nodes, ports, repository, asset_repository }.into(),
        )
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(50)
    }

    fn addon_bytes(&self) -> u64 {
        500
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::BridgechainUpdate(update));
        let BridgechainUpdate { bridgechain, seed_nodes, ports, repository, asset_repository } = &**update;
        out.extend(bridgechain);
        encode::list(out, seed_nodes.as_deref().unwrap_or_default());
        match ports {
            Some(ports) => encode::ports(out, ports),
            None => out.push(0),
        }
        encode::texts(out, [repository.as_ref(), asset_repository.as_ref()]);
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(BridgechainUpdate {
            bridgechain: wire.array("asset.bridgechainUpdate.bridgechainId")?,
            seed_nodes: Some(wire.texts("seedNodes")?).filter(|nodes| !nodes.is_empty()),
            ports: Some(read_ports(wire)?).filter(|ports| !ports.is_empty()),
            repository: wire.optional_text("asset.bridgechainUpdate.bridgechainRepository")?,
            asset_repository: wire.optional_text("asset.bridgechainUpdate.bridgechainAssetRepository")?,
        }
        .into())
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::BridgechainUpdate(update));
        let BridgechainUpdate { bridgechain, seed_nodes, ports, repository, asset_repository } = &**update;
        let mut out = Map::new();
        out.insert("bridgechainId".to_owned(), hex::encode(bridgechain).into());
        if let Some(nodes) = seed_nodes {
            out.insert("seedNodes".to_owned(), json!(nodes));
        }
        if let Some(ports) = ports {
            out.insert("ports".to_owned(), ports_to_json(ports));
        }
        let members = [("bridgechainRepository", repository), ("bridgechainAssetRepository", asset_repository)];
        out.extend(texts(members.map(|(key, text)| (key, text.as_ref()))));
        Some(json!({ "bridgechainUpdate": out }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let asset = json.asset("bridgechainUpdate")?;
        let bridgechain = asset.required_hex(PATH, "bridgechainId")?;
        let seed_nodes = seed_nodes(asset, PATH)?;
        let ports = ports(json, asset, PATH)?;
        let repository = optional_uri(asset, PATH, "bridgechainRepository", json.lax())?;
        let asset_repository = optional_uri(asset, PATH, "bridgechainAssetRepository", json.lax())?;
        let any = seed_nodes.is_some() || ports.is_some() || repository.is_some() || asset_repository.is_some();
        schema::at_least_one(PATH, any, MEMBERS)?;
        Ok(BridgechainUpdate { bridgechain, seed_nodes, ports, repository, asset_repository }.into())
    }

    fn check(&self, asset: &Asset, _: &TransactionContext<'_>) -> SchemaResult {
        own!(asset is Asset::BridgechainUpdate(update));
        let BridgechainUpdate { seed_nodes, ports, repository, asset_repository, .. } = &**update;
        let any = seed_nodes.is_some() || ports.is_some() || repository.is_some() || asset_repository.is_some();
        schema::at_least_one(PATH, any, MEMBERS)?;
        let (repository, asset_repository) = (repository.as_ref(), asset_repository.as_ref());
        check_members(PATH, seed_nodes.as_ref(), repository, asset_repository, ports.as_ref())
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["bridgechainUpdate"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let mut members = published_members();
        let one_of = schema_parts::one_of(&members);
        members["bridgechainId"] = reference("transactionId");
        let mut update = schema_parts::object(&["bridgechainId"], members);
        update["anyOf"] = one_of;
        vec![schema_parts::asset("bridgechainUpdate", update)]
    }
}
