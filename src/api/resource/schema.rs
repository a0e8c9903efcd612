//! Schemas of the members of each type of transactions, in the reference's dialect of JSON Schema.
//! Source: api.md 4.6.

use crate::protocol::transaction::Kind;
use serde_json::{Map, Value, json};

/// The members of a type, each with its schema: first the members of all types, then those that the type's module in
/// `protocol::transaction` adds.
pub(crate) fn of(kind: Kind) -> Map<String, Value> {
    let mut members = common(kind);
    members.extend(kind.published_members().into_iter().map(|(name, fragment)| (name.to_owned(), fragment)));
    members
}

fn common(kind: Kind) -> Map<String, Value> {
    let (group, number) = kind.numbers();
    let type_group = if group == 2 { json!({"const": 2, "type": "integer", "minimum": 0}) } else { from_zero() };
    let amount = if matches!(kind, Kind::Transfer | Kind::HtlcLock) { at_least_one() } else { nothing() };
    let fee = match (group, number) {
        (1, 9 | 10) => nothing(),
        (1, _) => at_least_one(),
        _ => json!({"bignumber": {"minimum": 0, "bypassGenesis": true}}),
    };
    let second_signature = match kind {
        Kind::SecondSignature => json!({"$ref": "alphanumeric", "type": "null"}),
        _ => reference("alphanumeric"),
    };
    let fragments = [
        ("id", json!({"anyOf": [{"$ref": "transactionId"}, {"type": "null"}]})),
        ("version", json!({"enum": [1, 2]})),
        ("network", reference("networkByte")),
        ("timestamp", from_zero()),
        ("nonce", json!({"bignumber": {"minimum": 0}})),
        ("typeGroup", type_group),
        ("amount", amount),
        ("fee", fee),
        ("senderPublicKey", reference("publicKey")),
        ("signature", reference("alphanumeric")),
        ("secondSignature", second_signature),
        ("signSignature", reference("alphanumeric")),
        ("signatures", signatures(kind)),
        ("type", json!({"transactionType": number})),
    ];
    fragments.into_iter().map(|(name, fragment)| (name.to_owned(), fragment)).collect()
}

fn signatures(kind: Kind) -> Value {
    let one = [json!({"minLength": 130, "maxLength": 130}), reference("alphanumeric")];
    let (least, most, items) = match kind {
        Kind::MultiSignature => (
            json!({"$data": "1/asset/multiSignature/min"}),
            json!({"$data": "1/asset/multiSignature/publicKeys/length"}),
            [&one[..], &one[..]].concat(),
        ),
        _ => (json!(1), json!(16), one.to_vec()),
    };
    json!({
        "type": "array", "minItems": least, "maxItems": most, "additionalItems": false, "uniqueItems": true,
        "items": {"allOf": items},
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": name})
}

fn from_zero() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn at_least_one() -> Value {
    json!({"bignumber": {"minimum": 1, "bypassGenesis": true}})
}

fn nothing() -> Value {
    json!({"bignumber": {"minimum": 0, "bypassGenesis": true, "maximum": 0}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_has_the_published_members() {
        let schema = of(Kind::Transfer);
        assert_eq!(schema.len(), 17);
        assert_eq!(schema["type"], json!({"transactionType": 0}));
        assert_eq!(schema["amount"], json!({"bignumber": {"minimum": 1, "bypassGenesis": true}}));
        assert_eq!(schema["signatures"]["items"]["allOf"][0], json!({"minLength": 130, "maxLength": 130}));
        assert!(of(Kind::BusinessResignation).get("asset").is_none());
        assert_eq!(of(Kind::HtlcClaim)["fee"]["bignumber"]["maximum"], 0);
    }

    /// `tests/clients/protocol` holds all of them against the reference's own.
    #[test]
    fn updates_name_what_they_must_have_one_of() {
        let update = &of(Kind::BridgechainUpdate)["asset"]["properties"]["bridgechainUpdate"];
        assert_eq!(update["anyOf"][0], json!({"required": ["seedNodes"]}));
        assert_eq!(update["anyOf"].as_array().map(Vec::len), Some(4), "the id of the bridgechain is none of them");
        let ports = &update["properties"]["ports"]["patternProperties"];
        assert_eq!(ports["^.{1,214}$"]["maximum"], 65_535);
    }
}
