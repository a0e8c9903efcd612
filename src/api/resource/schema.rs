//! Schemas of the members of each type of transactions, in the reference's dialect of JSON Schema.
//! Source: api.md 4.6.

use crate::protocol::transaction::Kind;
use serde_json::{Map, Value, json};

/// The members of a type, each with its fragment.
pub fn of(kind: Kind) -> Map<String, Value> {
    let mut members = common(kind);
    let mut put = |name: &str, fragment: Value| members.insert(name.to_owned(), fragment);
    let vendor_field = || json!({"anyOf": [{"type": "null"}, {"type": "string", "format": "vendorField"}]});
    if kind == Kind::HtlcLock {
        put("recipientId", reference("address"));
        put("vendorField", vendor_field());
    } else if kind.has_vendor_field() {
        put("vendorField", vendor_field());
    }
    if matches!(kind, Kind::Transfer | Kind::Vote) {
        put("recipientId", reference("address"));
    }
    if kind == Kind::Transfer {
        put("expiration", from_zero());
    }
    if let Some((name, fragment)) = asset(kind) {
        let mut asset = json!({"type": "object", "required": [name], "properties": {name: fragment}});
        if matches!(kind, Kind::BusinessUpdate | Kind::BridgechainRegistration) {
            asset["additionalProperties"] = json!(false);
        }
        put("asset", asset);
    }
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

/// The one member of the asset, for types that have one.
fn asset(kind: Kind) -> Option<(&'static str, Value)> {
    let of_business = || {
        json!({
            "name": reference("genericName"), "website": reference("uri"),
            "vat": {"type": "string", "minLength": 8, "maxLength": 15, "$ref": "alphanumeric"},
            "repository": reference("uri"),
        })
    };
    let hash = || json!({"allOf": [{"minLength": 64, "maxLength": 64}, {"$ref": "hex"}]});
    let fragment = match kind {
        Kind::SecondSignature => ("signature", object(&["publicKey"], json!({"publicKey": reference("publicKey")}))),
        Kind::DelegateRegistration => {
            ("delegate", object(&["username"], json!({"username": reference("delegateUsername")})))
        }
        Kind::Vote => ("votes", list(1, 1, &reference("walletVote"))),
        Kind::MultiSignature => {
            let mut keys = list(1, 16, &reference("publicKey"));
            keys["uniqueItems"] = json!(true);
            let least = json!({"type": "integer", "minimum": 1, "maximum": {"$data": "1/publicKeys/length"}});
            ("multiSignature", object(&["min", "publicKeys"], json!({"min": least, "publicKeys": keys})))
        }
        Kind::Ipfs => ("ipfs", json!({"allOf": [{"minLength": 2, "maxLength": 90}, {"$ref": "base58"}]})),
        Kind::MultiPayment => {
            let amount = json!({"bignumber": {"minimum": 1}});
            let payment = json!({"amount": amount, "recipientId": reference("address")});
            let payments = object(&["amount", "recipientId"], payment);
            let shape = json!({
                "type": "array", "minItems": 2, "additionalItems": false, "uniqueItems": false, "items": payments,
            });
            ("payments", shape)
        }
        Kind::HtlcLock => {
            let members = json!({"type": {"enum": [1, 2]}, "value": from_zero()});
            let members = json!({"secretHash": hash(), "expiration": object(&["type", "value"], members)});
            ("lock", object(&["secretHash", "expiration"], members))
        }
        Kind::HtlcClaim => {
            let members = json!({"lockTransactionId": reference("transactionId"), "unlockSecret": hash()});
            ("claim", object(&["lockTransactionId", "unlockSecret"], members))
        }
        Kind::HtlcRefund => {
            let members = json!({"lockTransactionId": reference("transactionId")});
            ("refund", object(&["lockTransactionId"], members))
        }
        Kind::BusinessRegistration => ("businessRegistration", object(&["name", "website"], of_business())),
        Kind::BusinessUpdate => {
            let members = of_business();
            ("businessUpdate", json!({"type": "object", "anyOf": one_of(&members), "properties": members}))
        }
        Kind::BridgechainRegistration => {
            let mut members = of_bridgechain();
            members["name"] = reference("genericName");
            members["genesisHash"] = reference("transactionId");
            let required = ["name", "seedNodes", "genesisHash", "bridgechainRepository", "ports"];
            let mut registration = object(&required, members);
            registration["additionalProperties"] = json!(false);
            ("bridgechainRegistration", registration)
        }
        Kind::BridgechainResignation => {
            let members = json!({"bridgechainId": reference("transactionId")});
            ("bridgechainResignation", object(&["bridgechainId"], members))
        }
        Kind::BridgechainUpdate => {
            let mut members = of_bridgechain();
            let one_of = one_of(&members);
            members["bridgechainId"] = reference("transactionId");
            let mut update = object(&["bridgechainId"], members);
            update["anyOf"] = one_of;
            ("bridgechainUpdate", update)
        }
        Kind::Transfer | Kind::DelegateResignation | Kind::BusinessResignation => return None,
    };
    Some(fragment)
}

/// What a registration and an update of a bridgechain share, in the order in which the reference lists what an update
/// must have one of.
fn of_bridgechain() -> Value {
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

/// That one of these members must be there.
fn one_of(members: &Value) -> Value {
    members.as_object().into_iter().flatten().map(|(name, _)| json!({"required": [name]})).collect()
}

fn object(required: &[&str], members: Value) -> Value {
    json!({"type": "object", "required": required, "properties": members})
}

fn list(least: u32, most: u32, item: &Value) -> Value {
    json!({"type": "array", "minItems": least, "maxItems": most, "additionalItems": false, "items": item})
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
