use super::{Candidate, Choice, Offer, Policy, Sight, sight::are_same};
use crate::{
    protocol::{Arktoshi, PublicKey},
    sim::fault::BoundedValue,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Delegates that pay a fixed price for each vote, and voters that sell theirs. Each voter has an asking price, drawn evenly from 0 to
/// `asks_most`. It sells to the delegate of the highest price that a balance still covers, if that is no less than it asks; evenly to one of several. It
/// takes its vote back where no buyer pays enough any more. With several votes it sells each to another delegate, those of the highest
/// prices, and keeps its present one among equals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VoteBuying {
    /// Arktoshi that the delegates of the group pay each of their voters at each payment.
    pub price: u64,
    /// The greatest asking price of the voters of the group, in arktoshi.
    pub asks_most: u64,
    /// The round from which on nothing is paid any more; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_round: Option<u32>,
}

impl Policy for VoteBuying {
    const NAME: &'static str = "vote-buying";
    const EXAMPLE: &'static str = "price = 1_000_000\nasks_most = 2_000_000";

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        let until = self.until_round.map(|round| ("until_round", BoundedValue::LaterRound(round)));
        [("price", BoundedValue::Amount(self.price)), ("asks_most", BoundedValue::Amount(self.asks_most))]
            .into_iter()
            .chain(until)
            .collect()
    }

    fn votes_within(&self) -> bool {
        true
    }

    fn offer(&self, sight: &Sight<'_>) -> Offer {
        let goes_on = self.until_round.is_none_or(|until| sight.round() < until);
        Offer::Each(Arktoshi::new(if goes_on { self.price } else { 0 }).unwrap_or(Arktoshi::MAX))
    }

    fn votes(&self, sight: &Sight<'_>) -> Vec<Choice> {
        let price = |one: &Candidate| if let Offer::Each(price) = one.offer { price.value() } else { 0 };
        let able = sight.candidates().iter().filter(|one| price(one) > 0 && one.balance >= price(one));
        let mut able: Vec<(u64, PublicKey)> = able.map(|one| (price(one), one.key)).collect();
        able.sort_by_key(|(price, _)| Reverse(*price));
        let decide = |voter| {
            let (own, asks) = (sight.votes(voter), sight.lasting(voter) * self.asks_most as f64);
            let buyers = &able[..able.partition_point(|(price, _)| *price as f64 >= asks)];
            // The price of the last vote that it sells: there can be more buyers at this price than votes.
            let last = buyers.get(sight.most_votes() - 1).or(buyers.last()).map_or(0, |(price, _)| *price);
            let (at_last, above): (Vec<_>, Vec<_>) = buyers.iter().partition(|(price, _)| *price <= last);
            let mut wanted: Vec<PublicKey> = above.iter().map(|(_, key)| *key).collect();
            let (kept, free): (Vec<PublicKey>, Vec<PublicKey>) = at_last
                .iter()
                .filter(|(price, _)| *price == last)
                .map(|(_, key)| *key)
                .partition(|key| own.contains(key));
            wanted.extend(kept);
            wanted.truncate(sight.most_votes());
            if wanted.len() < sight.most_votes() && !free.is_empty() {
                wanted.extend(sight.chosen(voter, &free, sight.most_votes() - wanted.len()));
            }
            (!are_same(&wanted, &own)).then_some(Choice { voter, delegates: wanted })
        };
        (0..sight.voters()).filter_map(decide).collect()
    }
}
