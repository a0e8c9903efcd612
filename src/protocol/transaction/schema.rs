//! The rules a transaction's members obey, and their application to a value. Source: protocol.md 3.7.
//!
//! The rules are functions over single members; `read` applies them to JSON in the reference's order of evaluation,
//! [`check`] to a value decoded from bytes. An error names the member, the value found and the values allowed.

mod apply;
mod error;
mod text;

pub(super) use apply::{
    amount, at_least_one, check, common_fee, indexed_signatures, multi_signature_min, order_as_javascript, payments,
    recipient, wrong_network,
};
pub use error::{Rule, SchemaError};
pub(super) use error::{SchemaResult, VOTE};
pub(super) use text::{
    CORE_API, base58, is_port_name, items, multihash_text, name, port_count, ports, seed_nodes, uri, username, vat,
    vendor_field,
};
