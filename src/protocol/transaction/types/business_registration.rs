//! Registration of a wallet as a business. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, Rule, SchemaError, Transaction, TransactionBuilder, TransactionContext,
        decode::WireReader,
        encode,
        read::{JsonReader, Members, checked, optional_uri, texts},
        schema::{self, SchemaResult},
    },
    Asset, Pending, TransactionType, own,
    schema_parts::{self, reference},
};
use crate::protocol::Arktoshi;
use serde_json::{Value, json};

pub(crate) struct Type;

impl Transaction {
    /// Registers the sender as a business. Its name and website are required, the other two members are not.
    pub fn business_registration(
        name: impl Into<String>,
        website: impl Into<String>,
        vat: Option<String>,
        repository: Option<String>,
    ) -> TransactionBuilder {
        let (name, website) = (name.into(), website.into());
        TransactionBuilder::new(Asset::BusinessRegistration { name, website, vat, repository })
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(50)
    }

    fn addon_bytes(&self) -> u64 {
        4_000_000
    }

    fn pending(&self) -> Pending {
        Pending::OneOfBusiness("registration")
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::BusinessRegistration { name, website, vat, repository });
        encode::texts(out, [Some(name), Some(website), vat.as_ref(), repository.as_ref()]);
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(Asset::BusinessRegistration {
            name: wire.text("asset.businessRegistration.name")?,
            website: wire.text("asset.businessRegistration.website")?,
            vat: wire.optional_text("asset.businessRegistration.vat")?,
            repository: wire.optional_text("asset.businessRegistration.repository")?,
        })
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::BusinessRegistration { name, website, vat, repository });
        let members = [("name", Some(name)), ("website", Some(website))];
        let optional = [("vat", vat.as_ref()), ("repository", repository.as_ref())];
        Some(json!({ "businessRegistration": texts(members.into_iter().chain(optional)) }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let (path, asset) = ("asset.businessRegistration", json.asset("businessRegistration")?);
        asset.require(path, "name")?;
        asset.require(path, "website")?;
        let (name, website, vat, repository) = members(path, asset, json.lax())?;
        let wrong = || SchemaError::new(format!("{path}.website"), "null", Rule::Text);
        let (name, website) = (name.expect("required above"), website.ok_or_else(wrong)?);
        Ok(Asset::BusinessRegistration { name, website, vat, repository })
    }

    fn check(&self, asset: &Asset, _: &TransactionContext<'_>) -> SchemaResult {
        own!(asset is Asset::BusinessRegistration { name, website, vat, repository });
        check_members("asset.businessRegistration", [Some(name), Some(website), vat.as_ref(), repository.as_ref()])
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["businessRegistration"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let registration = schema_parts::object(&["name", "website"], published_members());
        vec![schema_parts::asset("businessRegistration", registration)]
    }
}

type Texts = (Option<String>, Option<String>, Option<String>, Option<String>);

/// Reads name, website, vat and repository from JSON.
pub(super) fn members(path: &str, asset: Members<'_>, lax: bool) -> Result<Texts, SchemaError> {
    Ok((
        checked(asset, path, "name", schema::name)?,
        optional_uri(asset, path, "website", lax)?,
        checked(asset, path, "vat", schema::vat)?,
        optional_uri(asset, path, "repository", lax)?,
    ))
}

/// The rules for name, website, vat and repository.
pub(super) fn check_members(path: &str, [name, website, vat, repository]: [Option<&String>; 4]) -> SchemaResult {
    name.map_or(Ok(()), |name| schema::name(&format!("{path}.name"), name))?;
    website.map_or(Ok(()), |website| schema::uri(&format!("{path}.website"), website))?;
    vat.map_or(Ok(()), |vat| schema::vat(&format!("{path}.vat"), vat))?;
    repository.map_or(Ok(()), |repository| schema::uri(&format!("{path}.repository"), repository))
}

/// Name, website, vat and repository as published.
pub(super) fn published_members() -> Value {
    json!({
        "name": reference("genericName"), "website": reference("uri"),
        "vat": {"type": "string", "minLength": 8, "maxLength": 15, "$ref": "alphanumeric"},
        "repository": reference("uri"),
    })
}
