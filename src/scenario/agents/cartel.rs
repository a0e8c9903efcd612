use super::{Choice, Policy, Sight, sight::are_same};
use crate::{ledger::rules::VoteShare, protocol::PublicKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Delegates that hold together, and voters that share their votes among them: each goes to the member that has the least weight, and
/// leaves the strongest member for the weakest where that brings the two closer. With several votes each voter votes for all members, or
/// for as many as it has votes: the voters take the members in turn. Units go round until all are given. With `share` the members pay
/// their voters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cartel {}

impl Policy for Cartel {
    const NAME: &'static str = "cartel";
    const EXAMPLE: &'static str = "";

    fn votes_within(&self) -> bool {
        true
    }

    fn votes(&self, sight: &Sight<'_>) -> Vec<Choice> {
        if sight.most_votes() > 1 {
            return in_turn(sight);
        }
        let ahead = sight.weights_ahead();
        let mut members: BTreeMap<PublicKey, i128> =
            sight.own().iter().filter_map(|key| Some((*key, *ahead.get(key)?))).collect();
        let mut choices = Vec::new();
        for voter in 0..sight.voters() {
            let (own, balance) = (sight.vote(voter), i128::from(sight.balance(voter)));
            let Some((weakest, least)) =
                members.iter().map(|(key, weight)| (*key, *weight)).min_by_key(|(_, weight)| *weight)
            else {
                break;
            };
            if let Some(own) = own
                && let Some(weight) = members.get_mut(&own)
            {
                // A vote under way arrives first.
                if *weight - balance < least + balance || balance == 0 || sight.vote_on_chain(voter) != Some(own) {
                    continue;
                }
                *weight -= balance;
            }
            if let Some(weight) = members.get_mut(&weakest) {
                *weight += balance;
            }
            choices.push(Choice::one(voter, Some(weakest)));
        }
        choices
    }
}

/// The choices of voters with several votes. The first voter takes the first members, and each voter goes on behind the one before.
fn in_turn(sight: &Sight<'_>) -> Vec<Choice> {
    let members: Vec<PublicKey> = sight.own().iter().filter(|key| sight.candidate(key).is_some()).copied().collect();
    if members.is_empty() {
        return Vec::new();
    }
    let count = match sight.vote_rule().weight {
        VoteShare::Full => sight.most_votes().min(members.len()),
        VoteShare::Unit => sight.most_votes(),
    };
    let choice = |voter: u32| {
        let first = voter as usize * count;
        let delegates = (first..first + count).map(|place| members[place % members.len()]).collect();
        Choice { voter, delegates }
    };
    let is_new = |choice: &Choice| !are_same(&sight.votes(choice.voter), &choice.delegates);
    (0..sight.voters()).map(choice).filter(is_new).collect()
}
