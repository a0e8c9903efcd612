//! Reading a table as a table and nothing else.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::{fmt, marker::PhantomData};

/// Reads a struct from a table. By itself serde reads one from a list of its members, too, so that `[0.5]` would pass for
/// `{ share = 0.5 }` where either is allowed.
///
/// # Errors
/// The value is no table, or the struct does not accept the table.
pub(crate) fn only<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    struct Table<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Table<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table")
        }

        fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(members))
        }
    }

    from.deserialize_map(Table(PhantomData))
}

#[cfg(test)]
mod tests {
    use crate::sim::fault::{Nodes, Rounds};
    use serde_json::{Value, json};

    #[test]
    fn a_list_of_members_is_no_table() {
        let nodes = |value: Value| serde_json::from_value::<Nodes>(value);
        assert!(matches!(nodes(json!({"share": 0.5})), Ok(Nodes::Share(_))));
        assert!(matches!(nodes(json!({"from": 1, "to": "genesis_3"})), Ok(Nodes::Span(_))));
        assert!(matches!(nodes(json!([1, "genesis_3"])), Ok(Nodes::List(_))));
        for wrong in [json!([0.5]), json!([0.5, "nodes"]), json!([[1, 2]]), json!({"share": 0.5, "more": 1})] {
            let why = nodes(wrong.clone()).expect_err(&wrong.to_string()).to_string();
            assert!(why.contains("expected a list of nodes"), "{why}");
        }
        assert!(serde_json::from_value::<Rounds>(json!([1.5, 2])).is_err());
    }
}
