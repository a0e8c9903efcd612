//! Update of some members of a business. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, SchemaError, Transaction, TransactionBuilder, TransactionContext,
        decode::WireReader,
        encode,
        read::{JsonReader, texts},
        schema::{self, SchemaResult},
    },
    Asset, Pending, TransactionType,
    business_registration::{check_members, members, published_members},
    own, schema_parts,
};
use crate::protocol::Arktoshi;
use serde_json::{Value, json};

const PATH: &str = "asset.businessUpdate";
const MEMBERS: &str = "name, website, vat, repository";

pub(crate) struct Type;

impl Transaction {
    /// Updates a business. At least one of the four members must be present.
    pub fn business_update(
        name: Option<String>,
        website: Option<String>,
        vat: Option<String>,
        repository: Option<String>,
    ) -> TransactionBuilder {
        TransactionBuilder::new(Asset::BusinessUpdate { name, website, vat, repository })
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(50)
    }

    fn addon_bytes(&self) -> u64 {
        500
    }

    fn pending(&self) -> Pending {
        Pending::OneOfBusiness("update")
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::BusinessUpdate { name, website, vat, repository });
        encode::texts(out, [name.as_ref(), website.as_ref(), vat.as_ref(), repository.as_ref()]);
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(Asset::BusinessUpdate {
            name: wire.optional_text("asset.businessUpdate.name")?,
            website: wire.optional_text("asset.businessUpdate.website")?,
            vat: wire.optional_text("asset.businessUpdate.vat")?,
            repository: wire.optional_text("asset.businessUpdate.repository")?,
        })
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::BusinessUpdate { name, website, vat, repository });
        let members = [("name", name), ("website", website), ("vat", vat), ("repository", repository)];
        Some(json!({ "businessUpdate": texts(members.into_iter().map(|(key, text)| (key, text.as_ref()))) }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let (name, website, vat, repository) = members(PATH, json.asset("businessUpdate")?, json.lax())?;
        let any = name.is_some() || website.is_some() || vat.is_some() || repository.is_some();
        schema::at_least_one(PATH, any, MEMBERS)?;
        Ok(Asset::BusinessUpdate { name, website, vat, repository })
    }

    fn check(&self, asset: &Asset, _: &TransactionContext<'_>) -> SchemaResult {
        own!(asset is Asset::BusinessUpdate { name, website, vat, repository });
        let members = [name.as_ref(), website.as_ref(), vat.as_ref(), repository.as_ref()];
        schema::at_least_one(PATH, members.iter().any(|member| member.is_some()), MEMBERS)?;
        check_members(PATH, members)
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["businessUpdate"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let members = published_members();
        let one_of = schema_parts::one_of(&members);
        let update = json!({"type": "object", "anyOf": one_of, "properties": members});
        vec![schema_parts::closed_asset("businessUpdate", update)]
    }
}
