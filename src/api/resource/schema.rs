//! What the members of each type of transactions may be, in the reference's dialect of JSON Schema.
//! Source: api.md 4.6.

use crate::protocol::transaction::Kind;
use serde_json::{Map, Value, json};

/// The members of a type, each with its fragment.
pub fn of(kind: Kind) -> Map<String, Value> {
    let mut members = common(kind);
    let mut put = |name: &str, fragment: Value| members.insert(name.to_owned(), fragment);
    if kind.has_vendor_field() {
        put("vendorField", json!({"anyOf": [{"type": "null"}, {"type": "string", "format": "vendorField"}]}));
    }
    if matches!(kind, Kind::Transfer | Kind::Vote | Kind::HtlcLock) {
        put("recipientId", reference("address"));
    }
    if kind == Kind::Transfer {
        put("expiration", from_zero());
    }
    if let Some((name, fragment)) = asset(kind) {
        put("asset", json!({"type": "object", "required": [name], "properties": {name: fragment}}));
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
    let text = |least: u32, most: u32| json!({"type": "string", "minLength": least, "maxLength": most});
    let uri = || json!({"type": "string", "format": "uri"});
    let of_business = || {
        json!({
            "name": reference("genericName"), "website": reference("uri"), "vat": text(8, 15),
            "repository": reference("uri"),
        })
    };
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
            let members =
                json!({"secretHash": reference("transactionId"), "expiration": object(&["type", "value"], members)});
            ("lock", object(&["secretHash", "expiration"], members))
        }
        Kind::HtlcClaim => {
            let secret = json!({"type": "string", "minLength": 64, "maxLength": 64});
            let members = json!({"lockTransactionId": reference("transactionId"), "unlockSecret": secret});
            ("claim", object(&["lockTransactionId", "unlockSecret"], members))
        }
        Kind::HtlcRefund => {
            let members = json!({"lockTransactionId": reference("transactionId")});
            ("refund", object(&["lockTransactionId"], members))
        }
        Kind::BusinessRegistration => ("businessRegistration", object(&["name", "website"], of_business())),
        Kind::BusinessUpdate => {
            let mut any = object(&[], of_business());
            any["minProperties"] = json!(1);
            ("businessUpdate", any)
        }
        Kind::BridgechainRegistration => {
            let mut members = of_bridgechain(&uri);
            members["name"] = reference("genericName");
            members["genesisHash"] = reference("transactionId");
            let required = ["name", "seedNodes", "genesisHash", "bridgechainRepository", "ports"];
            ("bridgechainRegistration", object(&required, members))
        }
        Kind::BridgechainResignation => {
            let members = json!({"bridgechainId": reference("transactionId")});
            ("bridgechainResignation", object(&["bridgechainId"], members))
        }
        Kind::BridgechainUpdate => {
            let mut members = of_bridgechain(&uri);
            members["bridgechainId"] = reference("transactionId");
            ("bridgechainUpdate", object(&["bridgechainId"], members))
        }
        Kind::Transfer | Kind::DelegateResignation | Kind::BusinessResignation => return None,
    };
    Some(fragment)
}

fn of_bridgechain(uri: &impl Fn() -> Value) -> Value {
    let mut seeds = list(1, 10, &reference("peer"));
    seeds["uniqueItems"] = json!(true);
    json!({
        "seedNodes": seeds,
        "bridgechainRepository": uri(),
        "bridgechainAssetRepository": uri(),
        "ports": {
            "type": "object", "minProperties": 1, "maxProperties": 10, "required": ["@arkecosystem/core-api"],
            "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 65_535},
        },
    })
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
}
