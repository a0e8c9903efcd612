//! The view of agents at the end of a round.

use super::{
    plan::AgentGroup,
    source::{VoteChange, VotesUnderWay},
};
use crate::{
    actors::Choices,
    ledger::{
        State, Wallet,
        rules::{VoteRule, VoteShare},
    },
    protocol::{Arktoshi, PublicKey},
};
use rand::{Rng, seq::IndexedRandom};
use rand_xoshiro::SplitMix64;
use std::{collections::BTreeMap, sync::Arc};

/// The separate streams of a group's draws: of a voter in a round, of a voter for the whole run, and of the voters in a round.
const EACH_ROUND: u64 = 1;
const LASTING: u64 = 2;
const DRAWN: u64 = 3;

/// The payment that a delegate promises its voters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offer {
    /// A part of its rewards and fees since the last payment, from 0 to 1. Its voters share it by balance.
    Share(f64),
    /// An amount for each voter at each payment.
    Each(Arktoshi),
}

/// A change of a voter's votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The number of the voter in its group.
    pub voter: u32,
    /// The delegates that the voter votes for from now on, or none to vote for no delegate. If votes are units, a delegate gets a vote for
    /// each time that it is listed. The voter leaves out delegates that the rule of votes does not allow: those beyond its last vote, and
    /// repeated ones if each vote has full weight.
    pub delegates: Vec<PublicKey>,
}

impl Choice {
    /// One vote; `None` to vote for no delegate.
    pub fn one(voter: u32, delegate: Option<PublicKey>) -> Self {
        Self { voter, delegates: delegate.into_iter().collect() }
    }

    /// The delegates that the rule allows.
    pub(super) fn allowed(&self, rule: VoteRule) -> Vec<PublicKey> {
        let mut allowed = Vec::new();
        for key in &self.delegates {
            if rule.weight == VoteShare::Unit || !allowed.contains(key) {
                allowed.push(*key);
            }
        }
        allowed.truncate(rule.most as usize);
        allowed
    }
}

/// A registered delegate that has not resigned, as voters see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The public key, which a vote names.
    pub key: PublicKey,
    /// The username from the registration.
    pub username: Arc<str>,
    /// Its vote weight now \[arktoshi\].
    pub weight: u64,
    /// The balance that it can pay from \[arktoshi\].
    pub balance: u64,
    /// True if it forges in the round that begins.
    pub is_active: bool,
    /// Blocks on the chain that it has forged.
    pub produced: u32,
    /// Blocks that it has missed, as the chain counts them.
    pub missed: u32,
    /// `Share(0.0)` for a delegate without agents.
    pub offer: Offer,
    /// Rounds between two payments.
    pub pay_rounds: u32,
    /// The sum that it has sent to others by transfers and multipayments since the run began \[arktoshi\]. It is counted for delegates
    /// of agents, and 0 for the others.
    pub paid: u64,
}

impl Candidate {
    /// The part of its turns in which it has forged, from 0 to 1; 1 before its first turn.
    pub fn reliability(&self) -> f64 {
        match self.produced + self.missed {
            0 => 1.0,
            turns => f64::from(self.produced) / f64::from(turns),
        }
    }

    /// The payment that a voter with this balance can expect in a round, if the delegate is active \[arktoshi\]. `reward` is that of a
    /// block. `is_own` is true if the delegate's weight already includes the voter's balance.
    pub fn pays(&self, balance: u64, is_own: bool, reward: Arktoshi) -> f64 {
        match self.offer {
            Offer::Share(share) => {
                let weight = self.weight + if is_own { 0 } else { balance };
                let part = if weight == 0 { 0.0 } else { balance as f64 / weight as f64 };
                share * reward.value() as f64 * self.reliability() * part
            }
            Offer::Each(amount) => amount.value() as f64 / f64::from(self.pay_rounds),
        }
    }
}

/// The view of a group of agents after the end of a round: the highest chain of the network, 300 ms into a slot.
pub struct Sight<'a> {
    pub(super) round: u32,
    pub(super) is_first: bool,
    pub(super) state: &'a State,
    pub(super) missed: &'a [PublicKey],
    pub(super) reward: Arktoshi,
    pub(super) candidates: &'a [Candidate],
    pub(super) group: u32,
    pub(super) members: &'a AgentGroup,
    pub(super) rule: VoteRule,
    pub(super) under_way: &'a VotesUnderWay,
    pub(super) choices: Choices,
}

impl Sight<'_> {
    /// The round that begins.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Returns true at the first round end of the run.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// The state of the highest chain at the instant of the decision: after the round's last block, and after blocks that have followed it.
    pub fn state(&self) -> &State {
        self.state
    }

    /// The active delegates of the ended round that forged no block of it.
    pub fn missed(&self) -> &[PublicKey] {
        self.missed
    }

    /// The reward of a block.
    pub fn reward(&self) -> Arktoshi {
        self.reward
    }

    /// All delegates that have not resigned, by vote weight descending, equal ones by their keys.
    pub fn candidates(&self) -> &[Candidate] {
        self.candidates
    }

    /// The delegate of this key.
    pub fn candidate(&self, key: &PublicKey) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.key == *key)
    }

    /// The delegates of the group.
    pub fn own(&self) -> &[PublicKey] {
        &self.members.delegates
    }

    /// The `share` of the group in the file.
    pub fn share(&self) -> f64 {
        self.members.agents.share
    }

    /// The number of voters of the group. Their numbers are below it.
    pub fn voters(&self) -> u32 {
        self.members.voters.len() as u32
    }

    /// The voter's balance \[arktoshi\].
    pub fn balance(&self, voter: u32) -> u64 {
        self.wallet(voter).map_or(0, |wallet| wallet.balance.or_zero())
    }

    /// The votes that a wallet may have, and the weight of each.
    pub fn vote_rule(&self) -> VoteRule {
        self.rule
    }

    /// The number of votes that a wallet may have.
    pub fn most_votes(&self) -> usize {
        self.rule.most as usize
    }

    /// The part of the voter's balance that each of its votes weighs \[arktoshi\].
    pub fn vote_weight(&self, voter: u32) -> u64 {
        self.wallet(voter).map_or(0, |wallet| self.rule.weight_of(wallet.balance).or_zero())
    }

    /// The delegate that the voter votes for on the chain; the first one, if there are several.
    pub fn vote_on_chain(&self, voter: u32) -> Option<PublicKey> {
        self.wallet(voter).and_then(|wallet| wallet.vote)
    }

    /// The delegate that the voter votes for, once its transactions under way are on the chain; the first one, if there are several.
    pub fn vote(&self, voter: u32) -> Option<PublicKey> {
        match self.under_way.of_voter(self.group, voter) {
            Some(VoteChange { wanted, .. }) => wanted.first().copied(),
            None => self.vote_on_chain(voter),
        }
    }

    /// The delegate of each vote of the voter, once its transactions under way are on the chain.
    pub fn votes(&self, voter: u32) -> Vec<PublicKey> {
        match self.under_way.of_voter(self.group, voter) {
            Some(VoteChange { wanted, .. }) => wanted.clone(),
            None => self.votes_on_chain(voter),
        }
    }

    fn votes_on_chain(&self, voter: u32) -> Vec<PublicKey> {
        self.wallet(voter).into_iter().flat_map(|wallet| wallet.votes()).collect()
    }

    /// Draws up to `count` different ones of these delegates for a voter, evenly, with its numbers of this round.
    pub fn chosen(&self, voter: u32, among: &[PublicKey], count: usize) -> Vec<PublicKey> {
        let (mut left, mut random) = (among.to_vec(), self.random(voter));
        let draw = |_| {
            let drawn = left.choose(&mut random).copied()?;
            left.retain(|key| *key != drawn);
            Some(drawn)
        };
        (0..count).map_while(draw).collect()
    }

    /// Draws voters, each with this probability. Returns their numbers, ascending. Each round draws anew, once.
    pub fn drawn(&self, chance: f64) -> Vec<u32> {
        let (mut random, count) = (self.choices.at(&[DRAWN, self.round.into()]), self.voters());
        if chance >= 1.0 {
            return (0..count).collect();
        }
        if chance <= 0.0 {
            return Vec::new();
        }
        // The gaps between drawn voters are geometric, so the work grows with the number of drawn voters only.
        let (mut drawn, mut next) = (Vec::new(), 0_u64);
        loop {
            let gap = (1.0 - random.random::<f64>()).ln() / (-chance).ln_1p();
            next = next.saturating_add(gap as u64);
            if next >= count.into() {
                return drawn;
            }
            drawn.push(next as u32);
            next += 1;
        }
    }

    /// The random numbers of a voter in this round.
    pub fn random(&self, voter: u32) -> SplitMix64 {
        self.choices.at(&[EACH_ROUND, self.round.into(), voter.into()])
    }

    /// A number from 0 to 1, without 1, that a voter keeps for the whole run.
    pub fn lasting(&self, voter: u32) -> f64 {
        self.members.lasting.at(&[LASTING, voter.into()]).random()
    }

    /// The vote weights of delegates once all transactions under way of the group's voters are on the chain \[arktoshi\].
    pub fn weights_ahead(&self) -> BTreeMap<PublicKey, i128> {
        let mut weights: BTreeMap<PublicKey, i128> =
            self.candidates.iter().map(|candidate| (candidate.key, candidate.weight.into())).collect();
        for (voter, vote) in self.under_way.of_group(self.group) {
            let balance = i128::from(self.vote_weight(voter));
            let taken_back = self.votes_on_chain(voter).into_iter().map(|key| (key, -balance));
            for (key, change) in taken_back.chain(vote.wanted.iter().map(|key| (*key, balance))) {
                if let Some(weight) = weights.get_mut(&key) {
                    *weight += change;
                }
            }
        }
        weights
    }

    fn wallet(&self, voter: u32) -> Option<&Arc<Wallet>> {
        self.state.wallet(&self.members.voters.get(voter as usize)?.address)
    }
}

/// Returns true if both lists name the same delegates equally often, in any order.
pub(super) fn are_same(one: &[PublicKey], other: &[PublicKey]) -> bool {
    let (mut one, mut other) = (one.to_vec(), other.to_vec());
    one.sort_unstable();
    other.sort_unstable();
    one == other
}
