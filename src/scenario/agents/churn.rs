use super::{Choice, Policy, Sight};
use crate::{protocol::PublicKey, sim::fault::BoundedValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Voters that change their minds without a reason: at a round end each chooses anew with a probability, evenly among all delegates, its
/// present one included. At the first round end all choose. With several votes a voter draws as many different delegates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Churn {
    /// The probability that a voter chooses anew at a round end.
    pub chance: f64,
}

impl Policy for Churn {
    const NAME: &'static str = "churn";
    const EXAMPLE: &'static str = "chance = 0.01";

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        vec![("chance", BoundedValue::Part(self.chance))]
    }

    fn votes(&self, sight: &Sight<'_>) -> Vec<Choice> {
        let choosing = sight.drawn(if sight.is_first() { 1.0 } else { self.chance });
        let all: Vec<PublicKey> = sight.candidates().iter().map(|candidate| candidate.key).collect();
        let choose = |voter| Choice { voter, delegates: sight.chosen(voter, &all, sight.most_votes()) };
        choosing.into_iter().map(choose).collect()
    }
}
