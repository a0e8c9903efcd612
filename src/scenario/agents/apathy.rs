use super::{Choice, Policy, Sight};
use crate::sim::fault::BoundedValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Voters that vote once, for an active delegate drawn evenly, and never look again. With several votes they draw as many different ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Apathy {
    /// The probability that a voter votes at all.
    #[serde(default = "one")]
    pub turnout: f64,
}

fn one() -> f64 {
    1.0
}

impl Policy for Apathy {
    const NAME: &'static str = "apathy";
    const EXAMPLE: &'static str = "turnout = 0.5";

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        vec![("turnout", BoundedValue::Part(self.turnout))]
    }

    fn votes(&self, sight: &Sight<'_>) -> Vec<Choice> {
        if !sight.is_first() {
            return Vec::new();
        }
        let active: Vec<_> = sight.candidates().iter().filter(|one| one.is_active).map(|one| one.key).collect();
        let voting = (0..sight.voters()).filter(|voter| sight.lasting(*voter) < self.turnout);
        let choose = |voter| Choice { voter, delegates: sight.chosen(voter, &active, sight.most_votes()) };
        voting.map(choose).collect()
    }
}
