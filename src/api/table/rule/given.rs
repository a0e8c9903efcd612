//! The values of parameters that passed their rules.

use serde_json::Value;

/// A parameter that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    Integer(i64),
    /// Inclusive on both ends.
    Range {
        from: Option<i64>,
        to: Option<i64>,
    },
    Boolean(bool),
    Text(String),
    Order {
        field: &'static str,
        descending: bool,
    },
    Texts(Vec<String>),
    Value(Value),
}
