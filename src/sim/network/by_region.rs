//! A value of all nodes, or one for the nodes of each region.

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        Error, MapAccess, SeqAccess, Unexpected, Visitor,
        value::{I64Deserializer, MapAccessDeserializer, SeqAccessDeserializer, U64Deserializer},
    },
};
use std::{fmt, marker::PhantomData};

/// A value of all nodes, or one for the nodes of each region, in the order of the rows of `regions.latency_ms`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
pub enum ByRegion<T> {
    All(T),
    Regions(Vec<T>),
}

/// A value that may differ by region.
pub trait Regional: for<'de> Deserialize<'de> {
    /// The forms that a file may have, after "expected".
    const FORMS: &'static str;
}

impl<T> ByRegion<T> {
    /// The values in the order of the regions, or the only one.
    pub fn named(&self) -> &[T] {
        match self {
            Self::All(value) => std::slice::from_ref(value),
            Self::Regions(values) => values,
        }
    }

    /// The value of a node in a region.
    pub(in crate::sim) fn of(&self, region: Option<&u16>) -> &T {
        match (self, region) {
            (Self::All(value), _) => value,
            (Self::Regions(values), region) => &values[usize::from(*region.expect("values of regions need regions"))],
        }
    }
}

impl<T> From<T> for ByRegion<T> {
    fn from(value: T) -> Self {
        Self::All(value)
    }
}

/// The derived reader of an untagged enumeration does not name the value or the key that it refuses.
impl<'de, T: Regional> Deserialize<'de> for ByRegion<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ByRegionVisitor(PhantomData))
    }
}

struct ByRegionVisitor<T>(PhantomData<T>);

impl<'de, T: Regional> Visitor<'de> for ByRegionVisitor<T> {
    type Value = ByRegion<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::FORMS)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        let value = T::deserialize(U64Deserializer::<E>::new(number));
        value.map(ByRegion::All).map_err(|_| E::invalid_type(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        let value = T::deserialize(I64Deserializer::<E>::new(number));
        value.map(ByRegion::All).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(ByRegion::All)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(ByRegion::Regions)
    }
}
