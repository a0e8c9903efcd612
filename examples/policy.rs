//! A policy of one's own for agents, in one file: voters that leave a delegate which forged no block of the last round. This program is
//! dposlab with it: `cargo run --example policy -- schema` knows the kind `demanding`.
use dposlab::agents::{self, BoundedValue, Choice, Policy, Sight};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Voters that leave a delegate which forged no block of the last round, for the most reliable active one. Voters without a vote
/// take that one, too.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Demanding {
    /// The probability that a voter notices.
    chance: f64,
}

impl Policy for Demanding {
    const NAME: &'static str = "demanding";
    const EXAMPLE: &'static str = "chance = 0.5";

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        vec![("chance", BoundedValue::Part(self.chance))]
    }

    fn votes(&self, sight: &Sight<'_>) -> Vec<Choice> {
        let present = sight.candidates().iter().filter(|one| one.is_active && !sight.missed().contains(&one.key));
        let best = present.max_by(|a, b| a.reliability().total_cmp(&b.reliability())).map(|one| one.key);
        let leaves = |voter: &u32| sight.vote(*voter).is_none_or(|own| sight.missed().contains(&own));
        let leaving = sight.drawn(self.chance).into_iter().filter(leaves);
        leaving.map(|voter| Choice::one(voter, best)).collect()
    }
}

fn main() -> std::process::ExitCode {
    agents::register::<Demanding>();
    dposlab::cli::main()
}
