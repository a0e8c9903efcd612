use super::{Choice, Policy, Sight};
use crate::{protocol::PublicKey, sim::fault::BoundedValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Voters that go where most is paid. A voter expects of a delegate its offer for a round in which it forges: a share of the reward,
/// times the part of its turns in which it forged so far, times the voter's part of the weight, the own coins included. It moves if the best
/// delegate pays more than its present one by more than `gain`. With several votes it votes for the best ones, and each of them replaces
/// the one of its own that pays least on the same terms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BestPayer {
    /// The probability that a voter compares offers at a round end.
    #[serde(default = "tenth")]
    pub chance: f64,
    /// The part by which a better offer has to be above the present one, from 0 to 1.
    #[serde(default = "tenth")]
    pub gain: f64,
}

fn tenth() -> f64 {
    0.1
}

impl Policy for BestPayer {
    const NAME: &'static str = "best-payer";
    const EXAMPLE: &'static str = "chance = 0.1\ngain = 0.1";

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        vec![("chance", BoundedValue::Part(self.chance)), ("gain", BoundedValue::Part(self.gain))]
    }

    fn votes(&self, sight: &Sight<'_>) -> Vec<Choice> {
        let most = sight.most_votes();
        let better = |voter: &u32| {
            let (own, balance) = (sight.votes(*voter), sight.vote_weight(*voter));
            let pays =
                |key: &PublicKey| sight.candidate(key).map_or(0.0, |one| one.pays(balance, true, sight.reward()));
            let others = sight.candidates().iter().filter(|one| !own.contains(&one.key));
            let mut others: Vec<(f64, PublicKey)> =
                others.map(|one| (one.pays(balance, false, sight.reward()), one.key)).collect();
            // The best one first, among equals the one of the greatest weight.
            others.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut chosen: Vec<(f64, PublicKey)> = own.iter().map(|key| (pays(key), *key)).collect();
            for (better, key) in others {
                if chosen.len() < most && better > 0.0 {
                    chosen.push((better, key));
                    continue;
                }
                match chosen.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0)) {
                    Some(least) if better > least.0 * (1.0 + self.gain) => *least = (better, key),
                    _ => break,
                }
            }
            let delegates: Vec<PublicKey> = chosen.into_iter().map(|(_, key)| key).collect();
            (delegates != own).then_some(Choice { voter: *voter, delegates })
        };
        sight.drawn(self.chance).iter().filter_map(better).collect()
    }
}
