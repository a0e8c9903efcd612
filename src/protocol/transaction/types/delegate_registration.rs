//! Registration of a wallet as a delegate with a username. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, SchemaError, Transaction, TransactionBuilder, TransactionContext,
        decode::WireReader,
        encode,
        read::JsonReader,
        schema::{self, SchemaResult},
    },
    Asset, Pending, TransactionType, own,
    schema_parts::{self, reference},
};
use crate::protocol::Arktoshi;
use serde_json::{Value, json};

pub(crate) struct Type;

impl Transaction {
    /// Registers the sender as a delegate with this username.
    pub fn delegate_registration(username: impl Into<String>) -> TransactionBuilder {
        TransactionBuilder::new(Asset::DelegateRegistration { username: username.into() })
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(25)
    }

    fn addon_bytes(&self) -> u64 {
        400_000
    }

    fn pending(&self) -> Pending {
        Pending::One
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::DelegateRegistration { username });
        encode::text(out, Some(username));
    }

    fn write_signed_in_version_one(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::DelegateRegistration { username });
        out.extend(username.as_bytes());
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(Asset::DelegateRegistration { username: wire.text("asset.delegate.username")? })
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::DelegateRegistration { username });
        Some(json!({ "delegate": { "username": username } }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let username = json.asset("delegate")?.required_text("asset.delegate", "username")?;
        schema::username("asset.delegate.username", username)?;
        Ok(Asset::DelegateRegistration { username: username.to_owned() })
    }

    fn check(&self, asset: &Asset, _: &TransactionContext<'_>) -> SchemaResult {
        own!(asset is Asset::DelegateRegistration { username });
        schema::username("asset.delegate.username", username)
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["delegate"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let username = json!({"username": reference("delegateUsername")});
        vec![schema_parts::asset("delegate", schema_parts::object(&["username"], username))]
    }
}
