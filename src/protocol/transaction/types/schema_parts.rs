//! Parts of the published schemas, in the reference's dialect of JSON Schema. Source: api.md 4.6.

use serde_json::{Value, json};

/// The `asset` member, with a single member of this name.
pub(crate) fn asset(name: &'static str, fragment: Value) -> (&'static str, Value) {
    ("asset", json!({"type": "object", "required": [name], "properties": {name: fragment}}))
}

/// The `asset` member, with a single member of this name and no other allowed.
pub(crate) fn closed_asset(name: &'static str, fragment: Value) -> (&'static str, Value) {
    let (member, mut asset) = asset(name, fragment);
    asset["additionalProperties"] = json!(false);
    (member, asset)
}

pub(crate) fn vendor_field() -> (&'static str, Value) {
    ("vendorField", json!({"anyOf": [{"type": "null"}, {"type": "string", "format": "vendorField"}]}))
}

pub(crate) fn recipient() -> (&'static str, Value) {
    ("recipientId", reference("address"))
}

/// An object of these members, with those in `required` mandatory.
pub(crate) fn object(required: &[&str], members: Value) -> Value {
    json!({"type": "object", "required": required, "properties": members})
}

pub(crate) fn list(least: u32, most: u32, item: &Value) -> Value {
    json!({"type": "array", "minItems": least, "maxItems": most, "additionalItems": false, "items": item})
}

pub(crate) fn reference(name: &str) -> Value {
    json!({"$ref": name})
}

pub(crate) fn from_zero() -> Value {
    json!({"type": "integer", "minimum": 0})
}

/// 32 bytes in hex.
pub(crate) fn hash() -> Value {
    json!({"allOf": [{"minLength": 64, "maxLength": 64}, {"$ref": "hex"}]})
}

/// The rule that at least one of these members is present.
pub(crate) fn one_of(members: &Value) -> Value {
    members.as_object().into_iter().flatten().map(|(name, _)| json!({"required": [name]})).collect()
}
