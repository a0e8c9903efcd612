//! Applying the rules to a typed transaction, and rules over several members.

use super::{Rule, SchemaError, SchemaResult, text};
use crate::protocol::transaction::{Asset, Kind, Transaction, TransactionContext, TransactionId};
use crate::protocol::{Address, Arktoshi, PublicKey};
use indexmap::IndexMap;

/// Checks every rule that a decoded value can still break, in the reference's order of evaluation.
pub(crate) fn check(transaction: &Transaction, id: TransactionId, context: &TransactionContext<'_>) -> SchemaResult {
    let kind = transaction.kind();
    let genesis = || context.genesis_ids.contains(&id);
    if transaction.network != context.network {
        return Err(wrong_network(transaction.network, context.network));
    }
    amount(kind, transaction.asset.amount(), genesis)?;
    common_fee(kind, transaction.fee, genesis)?;
    if kind == Kind::SecondSignature && transaction.second_signature.is_some() {
        return Err(SchemaError::new("secondSignature", "a signature", Rule::Absent));
    }
    signatures(transaction)?;
    match &transaction.vendor_field {
        Some(field) if kind.has_vendor_field() => text::vendor_field(field, context.milestone.vendor_field_length)?,
        Some(field) => return Err(SchemaError::new("vendorField", format!("{field:?}"), Rule::Absent)),
        None => {}
    }
    kind.module().check(&transaction.asset, context)?;
    match (&transaction.signature, transaction.signatures.is_empty()) {
        (None, true) => Err(SchemaError::new("signature", "missing", Rule::Required)),
        _ => Ok(()),
    }
}

pub(crate) fn wrong_network(found: u8, allowed: u8) -> SchemaError {
    SchemaError::new("network", found, Rule::Network(allowed))
}

/// Transfers and locks move something, other types nothing.
pub(crate) fn amount(kind: Kind, found: Arktoshi, genesis: impl FnOnce() -> bool) -> SchemaResult {
    let (min, max) = match kind {
        Kind::Transfer | Kind::HtlcLock => (1, Arktoshi::MAX.value()),
        _ => (0, 0),
    };
    let zero_allowed = kind == Kind::Transfer && found == Arktoshi::ZERO && genesis();
    if (min..=max).contains(&found.value()) || zero_allowed {
        return Ok(());
    }
    Err(SchemaError::new("amount", format!("\"{found}\""), Rule::Amount { min, max }))
}

/// Core types have a fee, claims and refunds have none, and types of group 2 have any that a pool accepts.
pub(crate) fn common_fee(kind: Kind, found: Arktoshi, genesis: impl FnOnce() -> bool) -> SchemaResult {
    let (min, max) = match (kind, kind.numbers().0) {
        (Kind::HtlcClaim | Kind::HtlcRefund, _) => (0, 0),
        (_, 1) => (1, Arktoshi::MAX.value()),
        _ => (0, Arktoshi::MAX.value()),
    };
    if (min..=max).contains(&found.value()) || (found == Arktoshi::ZERO && genesis()) {
        return Ok(());
    }
    Err(SchemaError::new("fee", format!("\"{found}\""), Rule::Amount { min, max }))
}

fn signatures(transaction: &Transaction) -> SchemaResult {
    let found = transaction.signatures.len();
    match &transaction.asset {
        Asset::MultiSignature { .. } if found == 0 => Err(SchemaError::new("signatures", "missing", Rule::Required)),
        Asset::MultiSignature { min, public_keys } => {
            text::items("signatures", found, usize::from(*min), public_keys.len())
        }
        _ if found == 0 => Ok(()),
        _ => text::items("signatures", found, 1, 16),
    }
}

/// Checks for repetition among `signatures` in JSON. It compares whole texts, not only the indexes.
pub(crate) fn indexed_signatures(texts: &[&str]) -> SchemaResult {
    unique("signatures", texts)
}

fn unique<T: PartialEq>(path: &str, items: &[T]) -> SchemaResult {
    match text::last_pair(items) {
        Some((one, other)) => {
            Err(SchemaError::new(path, format!("a list of {}", items.len()), Rule::Unique(one, other)))
        }
        None => Ok(()),
    }
}

/// A minimum from 1 to the number of keys, which are different and at most 16.
pub(crate) fn multi_signature_min(min: u64, keys: &[PublicKey]) -> SchemaResult {
    text::items("asset.multiSignature.publicKeys", keys.len(), 1, 16)?;
    unique("asset.multiSignature.publicKeys", keys)?;
    let max = keys.len() as u64;
    if (1..=max).contains(&min) {
        return Ok(());
    }
    Err(SchemaError::new("asset.multiSignature.min", min, Rule::Number { min: 1, max }))
}

/// Two payments at least, and the milestone's limit at most.
pub(crate) fn payments(found: usize, limit: usize) -> SchemaResult {
    if found < 2 {
        return text::items("asset.payments", found, 2, limit);
    }
    if found <= limit {
        return Ok(());
    }
    Err(SchemaError::new("asset.payments", format!("{found} payments"), Rule::PaymentLimit(limit)))
}

/// Checks the length of a recipient's address: those of some other networks are shorter or longer in base58 than the schema allows.
pub(crate) fn recipient(recipient: Address, context: &TransactionContext<'_>) -> SchemaResult {
    if recipient.network_byte() == context.network {
        return Ok(());
    }
    text::base58("recipientId", &recipient.to_string(), 34, 34)
}

/// Fails if none of these members is present.
pub(crate) fn at_least_one(path: &str, any: bool, members: &'static str) -> SchemaResult {
    if any { Ok(()) } else { Err(SchemaError::new(path, "none", Rule::AnyOf(members))) }
}

/// Sorts ports in the order in which JavaScript keeps an object's members: whole numbers ascending, then the rest as written.
pub(crate) fn order_as_javascript(ports: &mut IndexMap<String, u16>) {
    let number = |name: &String| name.parse::<u32>().ok().filter(|n| *n != u32::MAX && n.to_string() == *name);
    ports.sort_by(|one, _, other, _| match (number(one), number(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_named_by_numbers_come_first() {
        let mut ports: IndexMap<String, u16> =
            ["b", "10", "a", "2", "01"].map(|name| (name.to_owned(), 1)).into_iter().collect();
        order_as_javascript(&mut ports);
        assert_eq!(ports.keys().collect::<Vec<_>>(), ["2", "10", "b", "a", "01"]);
    }

    #[test]
    fn only_genesis_transactions_are_free() {
        assert!(common_fee(Kind::Transfer, Arktoshi::ZERO, || false).is_err());
        assert!(common_fee(Kind::Transfer, Arktoshi::ZERO, || true).is_ok());
        assert!(common_fee(Kind::HtlcClaim, Arktoshi::ZERO, || false).is_ok());
        assert!(common_fee(Kind::BusinessUpdate, Arktoshi::ZERO, || false).is_ok());
    }
}
