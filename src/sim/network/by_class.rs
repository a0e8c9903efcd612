//! A value of all nodes, or one for the nodes of each class.

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        Error, MapAccess, SeqAccess, Unexpected, Visitor,
        value::{I64Deserializer, MapAccessDeserializer, SeqAccessDeserializer, U64Deserializer},
    },
};
use std::{fmt, marker::PhantomData};

/// A value of all nodes, or one for the nodes of each class. Without `network.classes`, regions are classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
pub enum ByClass<T> {
    /// One value for all nodes.
    All(T),
    /// A value for the nodes of each class, in the order of the classes.
    Each(Vec<T>),
}

/// A value that may differ by class.
pub trait PerClass: for<'de> Deserialize<'de> {
    /// The forms that a file may have, after "expected".
    const FORMS: &'static str;
}

impl<T> ByClass<T> {
    /// The values in the order of the classes, or the only one.
    pub fn named(&self) -> &[T] {
        match self {
            Self::All(value) => std::slice::from_ref(value),
            Self::Each(values) => values,
        }
    }

    /// Returns true if each class has a value of its own.
    pub fn is_list(&self) -> bool {
        matches!(self, Self::Each(_))
    }

    /// The value of a node in a class.
    pub(in crate::sim) fn of(&self, class: Option<&u16>) -> &T {
        match (self, class) {
            (Self::All(value), _) => value,
            (Self::Each(values), class) => &values[usize::from(*class.expect("values of classes need classes"))],
        }
    }
}

impl<T> From<T> for ByClass<T> {
    fn from(value: T) -> Self {
        Self::All(value)
    }
}

/// The derived reader of an untagged enumeration does not name the value or the key that it refuses.
impl<'de, T: PerClass> Deserialize<'de> for ByClass<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ByClassVisitor(PhantomData))
    }
}

struct ByClassVisitor<T>(PhantomData<T>);

impl<'de, T: PerClass> Visitor<'de> for ByClassVisitor<T> {
    type Value = ByClass<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::FORMS)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        let value = T::deserialize(U64Deserializer::<E>::new(number));
        value.map(ByClass::All).map_err(|_| E::invalid_type(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        let value = T::deserialize(I64Deserializer::<E>::new(number));
        value.map(ByClass::All).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(ByClass::All)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(ByClass::Each)
    }
}
