//! Resignation of a delegate, which is final. Source: protocol.md 3.4.

use super::{
    super::{BytesError, SchemaError, Transaction, TransactionBuilder, decode::WireReader, read::JsonReader},
    Asset, Pending, TransactionType,
};
use crate::protocol::Arktoshi;

pub(crate) struct Type;

impl Transaction {
    /// Resigns the sender as a delegate, for good. It forges on until the rule of election replaces it, by default at the end of the
    /// round.
    pub fn delegate_resignation() -> TransactionBuilder {
        TransactionBuilder::new(Asset::DelegateResignation)
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(25)
    }

    fn addon_bytes(&self) -> u64 {
        100
    }

    fn pending(&self) -> Pending {
        Pending::One
    }

    fn read(&self, _: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        Ok(Asset::DelegateResignation)
    }

    fn read_json(&self, _: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        Ok(Asset::DelegateResignation)
    }
}
