//! The values of parameters that passed their rules.

use serde_json::Value;

/// A parameter that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParameterValue {
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

impl ParameterValue {
    /// The ends of a range. A single number is a range with two equal ends.
    pub fn ends(&self) -> Option<(Option<i64>, Option<i64>)> {
        match self {
            Self::Integer(number) => Some((Some(*number), Some(*number))),
            Self::Range { from, to } => Some((*from, *to)),
            _ => None,
        }
    }
}
