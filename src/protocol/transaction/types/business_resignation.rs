//! Resignation of a business. Source: protocol.md 3.4.

use super::{
    super::{BytesError, SchemaError, Transaction, TransactionBuilder, decode::WireReader, read::JsonReader},
    Asset, Pending, TransactionType,
};
use crate::protocol::Arktoshi;

pub(crate) struct Type;

impl Transaction {
    /// Resigns the business of the sender.
    pub fn business_resignation() -> TransactionBuilder {
        TransactionBuilder::new(Asset::BusinessResignation)
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(50)
    }

    fn addon_bytes(&self) -> u64 {
        100
    }

    fn pending(&self) -> Pending {
        Pending::OneOfBusiness("resignation")
    }

    fn read(&self, _: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(Asset::BusinessResignation)
    }

    fn read_json(&self, _: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        Ok(Asset::BusinessResignation)
    }
}
