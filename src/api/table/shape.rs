//! Shapes of values, for the published description of the API: JSON Schema made from the tables that answers are
//! written by.

use super::dialect::Dialect;
use serde_json::{Map, Value, json};

/// Named schemas that others refer to.
pub type Named = Map<String, Value>;

/// The shape of a value.
#[derive(Clone, Copy)]
pub enum Shape {
    Text,
    /// A text that matches a pattern of ECMA 262.
    Pattern(&'static str),
    Integer,
    Number,
    Boolean,
    Null,
    /// Anything.
    Any,
    List(&'static Shape),
    /// An object with any members of one shape.
    Map(&'static Shape),
    /// An object with these members, in this order; whether each is always there.
    Members(&'static [(&'static str, Shape, bool)]),
    /// A resource with a name and tables of its own.
    Resource(&'static str, fn(Dialect, &mut Named) -> Value),
    /// The same without a name.
    Table(fn(Dialect, &mut Named) -> Value),
    Either(&'static [Shape]),
}

/// A whole number as a text.
pub const AMOUNT: Shape = Shape::Pattern("^-?[0-9]+$");
/// Bytes in hex.
pub const HEX: Shape = Shape::Pattern("^([0-9a-f]{2})*$");
/// The id of a transaction, or the hash of something.
pub const HASH: Shape = Shape::Pattern("^[0-9a-f]{64}$");
pub const KEY: Shape = Shape::Pattern("^0[0-9a-f]{65}$");
pub const ADDRESS: Shape = Shape::Pattern("^[1-9A-HJ-NP-Za-km-z]{34}$");
pub const BLOCK_ID: Shape = Shape::Pattern("^([0-9]{1,20}|[0-9a-f]{64})$");

impl Shape {
    /// Returns the shape as JSON Schema. Resources are added to `named` and referred to.
    pub fn schema(self, dialect: Dialect, named: &mut Named) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Pattern(pattern) => json!({"type": "string", "pattern": pattern}),
            Self::Integer => json!({"type": "integer"}),
            Self::Number => json!({"type": "number"}),
            Self::Boolean => json!({"type": "boolean"}),
            Self::Null => json!({"type": "null"}),
            Self::Any => json!({}),
            Self::List(item) => json!({"type": "array", "items": item.schema(dialect, named)}),
            Self::Map(member) => json!({"type": "object", "additionalProperties": member.schema(dialect, named)}),
            Self::Members(members) => {
                let members = members.iter().map(|(name, shape, always)| (*name, *shape, *always));
                object(members, dialect, named)
            }
            Self::Resource(name, make) => {
                if !named.contains_key(name) {
                    // Its place first, so that a resource within itself ends.
                    named.insert(name.to_owned(), Value::Null);
                    let schema = make(dialect, named);
                    named.insert(name.to_owned(), schema);
                }
                json!({"$ref": format!("#/components/schemas/{name}")})
            }
            Self::Table(make) => make(dialect, named),
            Self::Either(shapes) => {
                let shapes: Vec<Value> = shapes.iter().map(|shape| shape.schema(dialect, named)).collect();
                json!({ "anyOf": shapes })
            }
        }
    }
}

/// An object with these members and no others.
pub fn object(
    members: impl Iterator<Item = (&'static str, Shape, bool)>,
    dialect: Dialect,
    named: &mut Named,
) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, shape, always) in members {
        properties.insert(name.to_owned(), shape.schema(dialect, named));
        required.extend(always.then_some(name));
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
