//! Shapes of values, for the published description of the API: JSON Schema made from the tables that answers are
//! written by.

use super::dialect::Dialect;
use serde_json::{Map, Value, json};

/// Schemas by name, to which other schemas refer.
pub(crate) type NamedSchemas = Map<String, Value>;

/// A thing that has a schema: a table of members, or a function.
pub(crate) trait SchemaSource {
    /// The schema. Adds to `named` the named resources to which the schema refers.
    fn schema(&self, dialect: Dialect, named: &mut NamedSchemas) -> Value;
}

impl SchemaSource for fn(Dialect, &mut NamedSchemas) -> Value {
    fn schema(&self, dialect: Dialect, named: &mut NamedSchemas) -> Value {
        self(dialect, named)
    }
}

impl SchemaSource for Shape {
    fn schema(&self, dialect: Dialect, named: &mut NamedSchemas) -> Value {
        Self::schema(*self, dialect, named)
    }
}

/// The shape of a value.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
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
    /// An object with these members, in this order. The flag is true if the member is always present.
    Members(&'static [(&'static str, Shape, bool)]),
    /// A resource with a name.
    Resource(&'static str, &'static (dyn SchemaSource + Sync)),
    /// A resource without a name.
    Table(&'static (dyn SchemaSource + Sync)),
    /// A schema of its own.
    Own(fn() -> Value),
    Either(&'static [Shape]),
    /// One in the published specification, another in the reference's dialect.
    Told(&'static Shape, &'static Shape),
}

/// A whole number as a text.
pub(crate) const AMOUNT: Shape = Shape::Pattern("^-?[0-9]+$");
/// Bytes in hex.
pub(crate) const HEX: Shape = Shape::Pattern("^([0-9a-f]{2})*$");
/// The id of a transaction, or the hash of something.
pub(crate) const HASH: Shape = Shape::Pattern("^[0-9a-f]{64}$");
/// A number in the published specification, where the reference's dialect has an amount as a text.
pub(crate) const NUMBER_OR_AMOUNT: Shape = Shape::Told(&Shape::Integer, &AMOUNT);
pub(crate) const TEXT_OR_NULL: Shape = Shape::Either(&[Shape::Text, Shape::Null]);
pub(crate) const KEY: Shape = Shape::Pattern("^0[0-9a-f]{65}$");
pub(crate) const ADDRESS: Shape = Shape::Pattern("^[1-9A-HJ-NP-Za-km-z]{34}$");
pub(crate) const BLOCK_ID: Shape = Shape::Pattern("^([0-9]{1,20}|[0-9a-f]{64})$");

impl Shape {
    /// The shape in a dialect.
    pub const fn told(self, dialect: Dialect) -> Self {
        match (self, dialect) {
            (Self::Told(documented, _), Dialect::Documented) => *documented,
            (Self::Told(_, core), Dialect::Core26) => *core,
            (other, _) => other,
        }
    }

    /// True if it is a text in JSON.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Pattern(_))
    }

    /// True if it may be null.
    pub fn is_nullable(self) -> bool {
        matches!(self, Self::Either(shapes) if shapes.iter().any(|shape| matches!(shape, Self::Null)))
    }

    /// Returns the shape as JSON Schema. Resources are added to `named` and referred to.
    pub fn schema(self, dialect: Dialect, named: &mut NamedSchemas) -> Value {
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
                object(members.iter().map(|(name, shape, always)| (*name, shape.schema(dialect, named), *always)))
            }
            Self::Resource(name, described) => {
                if !named.contains_key(name) {
                    // The name comes first, so that the recursion ends for a resource that contains itself.
                    named.insert(name.to_owned(), Value::Null);
                    let schema = described.schema(dialect, named);
                    named.insert(name.to_owned(), schema);
                }
                json!({"$ref": format!("#/components/schemas/{name}")})
            }
            Self::Table(described) => described.schema(dialect, named),
            Self::Own(make) => make(),
            Self::Told(..) => self.told(dialect).schema(dialect, named),
            Self::Either(shapes) => {
                let shapes: Vec<Value> = shapes.iter().map(|shape| shape.schema(dialect, named)).collect();
                json!({ "anyOf": shapes })
            }
        }
    }
}

/// The schema of an object with exactly these members. Each has a schema, and a flag that is true if the member is
/// always present.
pub(crate) fn object(members: impl IntoIterator<Item = (&'static str, Value, bool)>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, schema, always) in members {
        properties.insert(name.to_owned(), schema);
        required.extend(always.then_some(name));
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
