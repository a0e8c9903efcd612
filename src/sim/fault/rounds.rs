//! The rounds that a fault names.

use super::table;
use crate::protocol::RoundNumber;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// One round, a list of rounds, or a span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a round number, a list of round numbers, or { from = …, to = … }")]
pub enum Rounds {
    /// A single round, numbered from 1.
    One(u32),
    /// Several rounds, in any order.
    List(Vec<u32>),
    /// All rounds of a span.
    #[serde(deserialize_with = "table::only")]
    Span(Span),
}

/// From one round to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The first round of the span.
    pub from: u32,
    /// The last round of the span.
    pub to: u32,
}

impl Rounds {
    /// The last round named, if any is.
    pub fn last(&self) -> Option<RoundNumber> {
        self.spans().iter().map(|span| *span.end()).max()
    }

    /// The spans of rounds named.
    pub fn spans(&self) -> Vec<RangeInclusive<RoundNumber>> {
        let span = |from, to| RoundNumber(from)..=RoundNumber(to);
        match self {
            Self::One(round) => vec![span(*round, *round)],
            Self::List(rounds) => rounds.iter().map(|round| span(*round, *round)).collect(),
            Self::Span(Span { from, to }) => vec![span(*from, *to)],
        }
    }
}
