//! The votes of a wallet: how many it may have, and the weight of each.
//!
//! ```text
//!   wallet.vote ──► first vote              a network of one vote has no other
//!   wallet.later_votes ──► second, third …  in the order in which the wallet cast them
//! ```
//!
//! A transaction casts one vote or takes one back. The weight of a vote follows the wallet's coin, balance and open locks, wherever that
//! changes: [`State::reweigh`](super::State) adds the difference to every delegate that the wallet backs.

use super::{Balance, Wallet};
use crate::protocol::{Address, PublicKey, Vote};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The largest number of votes that a rule can give a wallet.
pub(super) const MOST_VOTES: u64 = 1_000;

/// The votes that a wallet may have at a time, and the weight of each. The reference has one vote, of all coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VoteRule {
    /// The number of votes that a wallet may have, from 1 to 1,000.
    pub most: u32,
    /// The part of a wallet's coin that each of its votes weighs.
    pub weight: VoteShare,
}

/// The part of a wallet's coin that each of its votes weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VoteShare {
    /// Each vote weighs all of the coin. A delegate has one vote of a wallet.
    Full,
    /// Each vote weighs the coin divided by the number of votes that a wallet may have, rounded down to an arktoshi. A delegate can have
    /// several votes of a wallet.
    Unit,
}

impl Default for VoteRule {
    /// One vote, of all coin.
    fn default() -> Self {
        Self { most: 1, weight: VoteShare::Full }
    }
}

impl VoteRule {
    /// The weight of one vote of a wallet with this much coin.
    pub fn weight_of(self, coin: Balance) -> Balance {
        match self.weight {
            VoteShare::Full => coin,
            VoteShare::Unit => Balance(coin.0.div_euclid(self.most.into())),
        }
    }

    /// Changes the votes of a wallet as a transaction of this network says. Taking back a vote takes the newest one for its delegate.
    pub(super) fn cast(self, vote: Vote, network: u8, wallet: &mut Wallet) {
        match vote {
            Vote::For(delegate) if self.most > 1 && wallet.vote.is_some() => {
                let vote = LaterVote { delegate, address: delegate.address(network) };
                Arc::make_mut(wallet.later_votes.get_or_insert_default()).push(vote);
            }
            Vote::For(key) => (wallet.vote, wallet.vote_address) = (Some(key), Some(key.address(network))),
            Vote::Against(key) if wallet.later_votes.is_some() => wallet.take_back(&key),
            Vote::Against(_) => (wallet.vote, wallet.vote_address) = (None, None),
        }
    }
}

/// A vote of a wallet that has an older one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LaterVote {
    pub delegate: PublicKey,
    /// The address of that delegate, which costs a hash to compute.
    pub address: Address,
}

/// The delegates that a wallet votes for, by address. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct VotedDelegates {
    first: Option<Address>,
    later: Option<Arc<Vec<LaterVote>>>,
}

impl VotedDelegates {
    /// The delegate of each vote. A delegate with several votes comes as often.
    pub fn delegates(&self) -> impl Iterator<Item = Address> {
        let later = self.later.iter().flat_map(|votes| votes.iter());
        self.first.into_iter().chain(later.map(|vote| vote.address))
    }
}

impl Wallet {
    /// The delegate of each vote, in the order in which the wallet cast them. A delegate with several votes comes as often.
    pub fn votes(&self) -> impl Iterator<Item = PublicKey> {
        let later = self.later_votes.iter().flat_map(|votes| votes.iter());
        self.vote.into_iter().chain(later.map(|vote| vote.delegate))
    }

    pub(super) fn voted_delegates(&self) -> VotedDelegates {
        VotedDelegates { first: self.vote_address, later: self.later_votes.clone() }
    }

    /// Takes back the newest vote for a delegate.
    fn take_back(&mut self, key: &PublicKey) {
        let mut later = self.later_votes.take().map(Arc::unwrap_or_clone).unwrap_or_default();
        if let Some(place) = later.iter().rposition(|vote| vote.delegate == *key) {
            later.remove(place);
        } else if self.vote == Some(*key) && !later.is_empty() {
            let oldest = later.remove(0);
            (self.vote, self.vote_address) = (Some(oldest.delegate), Some(oldest.address));
        }
        self.later_votes = (!later.is_empty()).then(|| Arc::new(later));
    }
}

#[cfg(test)]
impl Wallet {
    /// The votes behind the first one, to be changed behind the chain's back.
    pub(crate) fn tamper_with_later_votes(&mut self, change: impl FnOnce(&mut Vec<PublicKey>)) -> Option<()> {
        let later = self.later_votes.take()?;
        let address = later[0].address;
        let mut keys: Vec<PublicKey> = later.iter().map(|vote| vote.delegate).collect();
        change(&mut keys);
        let later: Vec<LaterVote> = keys.into_iter().map(|delegate| LaterVote { delegate, address }).collect();
        self.later_votes = (!later.is_empty()).then(|| Arc::new(later));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: u8 = 23;

    fn key(number: u8) -> PublicKey {
        PublicKey::from_bytes([number; 33])
    }

    fn wallet() -> Wallet {
        Wallet::cold(Address::from_bytes([NETWORK; 21]), 0)
    }

    fn rule(most: u32, weight: VoteShare) -> VoteRule {
        VoteRule { most, weight }
    }

    /// The wallet's votes by the numbers of their keys. Each has the address of its key.
    fn numbers(wallet: &Wallet) -> Vec<u8> {
        let addresses: Vec<Address> = wallet.votes().map(|key| key.address(NETWORK)).collect();
        assert_eq!(wallet.voted_delegates().delegates().collect::<Vec<_>>(), addresses);
        wallet.votes().map(|key| key.as_bytes()[0]).collect()
    }

    #[test]
    fn votes_are_kept_in_the_order_in_which_they_were_cast_and_the_newest_of_a_delegate_is_taken_back() {
        let (rule, mut wallet) = (rule(5, VoteShare::Unit), wallet());
        let mut votes = |number: i8| {
            let delegate = key(number.unsigned_abs());
            rule.cast(if number > 0 { Vote::For(delegate) } else { Vote::Against(delegate) }, NETWORK, &mut wallet);
            numbers(&wallet)
        };
        assert_eq!((votes(2), votes(3), votes(2)), (vec![2], vec![2, 3], vec![2, 3, 2]));
        assert_eq!(votes(-2), [2, 3]);
        assert_eq!(votes(-2), [3]);
        assert_eq!((votes(4), votes(5)), (vec![3, 4], vec![3, 4, 5]));
        assert_eq!(votes(-9), [3, 4, 5], "a vote that it does not have changes nothing");
        assert_eq!((votes(-3), votes(-4), votes(-5)), (vec![4, 5], vec![5], vec![]));
        assert_eq!(wallet, self::wallet(), "a wallet without votes is as one that has never voted");
    }

    /// As in the reference: an exception of a network may vote twice, and then the second vote counts.
    #[test]
    fn a_wallet_of_one_vote_never_has_another_one() {
        for weight in [VoteShare::Full, VoteShare::Unit] {
            let (rule, mut wallet) = (rule(1, weight), wallet());
            rule.cast(Vote::For(key(2)), NETWORK, &mut wallet);
            rule.cast(Vote::For(key(3)), NETWORK, &mut wallet);
            assert_eq!(numbers(&wallet), [3]);
            rule.cast(Vote::Against(key(2)), NETWORK, &mut wallet);
            assert_eq!(numbers(&wallet), [0; 0]);
            assert_eq!(rule.weight_of(Balance(7)), Balance(7));
        }
    }

    #[test]
    fn a_unit_is_rounded_down() {
        for (coin, unit) in [(0, 0), (3, 0), (4, 1), (7, 1), (8, 2), (-1, -1), (-4, -1), (-5, -2)] {
            assert_eq!(rule(4, VoteShare::Unit).weight_of(Balance(coin)), Balance(unit), "{coin}");
            assert_eq!(rule(4, VoteShare::Full).weight_of(Balance(coin)), Balance(coin));
        }
    }
}
