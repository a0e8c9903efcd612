//! Each rule against lists that are written out: who votes when, and who sits when.

use super::{super::finality::sample_chains::key, Election, ElectionRule};
use crate::{
    ledger::{Balance, round::Member},
    protocol::{Address, Height, Timestamp},
};

/// Delegates by their numbers, heaviest first.
fn ranking(numbers: &[usize]) -> Vec<Member> {
    let member = |number: &usize| Member {
        public_key: key(*number),
        address: Address::from_bytes([0; 21]),
        vote_balance: Balance::ZERO,
    };
    numbers.iter().map(member).collect()
}

fn numbers(members: &[Member]) -> Vec<usize> {
    let number = |member: &Member| (0..20).find(|number| key(*number) == member.public_key).expect("it is one of them");
    members.iter().map(number).collect()
}

/// A chain that is nothing but its elections.
struct Chain {
    election: Election,
    members: Vec<Member>,
}

impl Chain {
    fn new(rule: ElectionRule, genesis: &[usize], seats: usize) -> Self {
        let mut chain = Self { election: rule.begin(), members: Vec::new() };
        chain.ends(genesis, seats, 0, 1);
        chain
    }

    /// Ends a round. Returns the members of the next one.
    fn ends(&mut self, ranked: &[usize], seats: usize, seconds: u32, last_final: u32) -> Vec<usize> {
        self.members =
            self.election.elect(&ranking(ranked), &self.members, seats, Timestamp(seconds), Height(last_final));
        numbers(&self.members)
    }

    fn block(&mut self, height: u32, seconds: u32, last_final: u32, ranked: &[usize]) {
        self.election.follow(Height(height), Timestamp(seconds), Height(last_final), &self.members, || ranking(ranked));
    }
}

#[test]
fn the_reference_takes_the_newest_ranking() {
    let mut chain = Chain::new(ElectionRule::AtOnce, &[1, 2, 3, 4], 3);
    assert_eq!(numbers(&chain.members), [1, 2, 3]);
    assert_eq!(chain.ends(&[4, 2, 1, 3], 3, 8, 1), [4, 2, 1]);
    assert_eq!(chain.ends(&[1, 2, 3, 4], 4, 16, 1), [1, 2, 3, 4]);
}

/// Snapshot of round r for round r + 3: the SDK takes it at the end of round r and files it under r + 1 + 2.
#[test]
fn lisk_takes_the_ranking_of_three_rounds_before_the_round() {
    let mut chain = Chain::new(ElectionRule::TwoRoundsBefore, &[1, 2, 3, 4], 2);
    let ends: [&[usize]; 6] =
        [&[3, 4, 1, 2], &[4, 1, 2, 3], &[2, 3, 4, 1], &[1, 3, 2, 4], &[1, 4, 2, 3], &[1, 2, 3, 4]];
    let sat: Vec<Vec<usize>> = ends.iter().map(|ranked| chain.ends(ranked, 2, 0, 1)).collect();
    // Rounds 2 to 7: the ends of rounds 0, 0, 1, 2, 3 and 4.
    assert_eq!(sat, [[1, 2], [1, 2], [3, 4], [4, 1], [2, 3], [1, 3]]);
}

#[test]
fn a_milestone_with_more_seats_leaves_the_old_members_and_adds_the_newest() {
    for rule in [ElectionRule::TwoRoundsBefore, ElectionRule::WhenFinal, ElectionRule::EverySixHours] {
        let mut chain = Chain::new(rule, &[1, 2], 2);
        assert_eq!(chain.ends(&[3, 2, 1, 4], 3, 8, 1), [1, 2, 3], "{rule:?}");
        let mut chain = Chain::new(rule, &[1, 2, 3], 3);
        assert_eq!(chain.ends(&[3, 2, 1, 4], 2, 8, 1), [1, 2], "{rule:?}");
    }
}

/// Block 5 proposes, block 9 makes it pending, and the round that ends with 9 final has the new members.
#[test]
fn eos_waits_until_the_proposal_and_what_made_it_pending_are_final() {
    let mut chain = Chain::new(ElectionRule::WhenFinal, &[1, 2, 3, 4], 3);
    chain.block(4, 60, 1, &[4, 3, 2, 1]);
    assert_eq!(chain.ends(&[4, 3, 2, 1], 3, 60, 4), [1, 2, 3], "60 seconds are no more than a minute");
    chain.block(5, 61, 1, &[4, 3, 2, 1]);
    chain.block(6, 130, 4, &[1, 4, 2, 3]);
    chain.block(8, 140, 4, &[4, 3, 2, 1]);
    assert_eq!(chain.ends(&[4, 3, 2, 1], 3, 140, 100), [1, 2, 3], "it is not pending yet");
    chain.block(9, 148, 5, &[4, 3, 2, 1]);
    assert_eq!(chain.ends(&[4, 3, 2, 1], 3, 148, 8), [1, 2, 3]);
    let before = chain.election.clone();
    assert_eq!(chain.ends(&[1, 2, 3, 4], 3, 200, 9), [4, 3, 2]);
    assert_eq!(chain.ends(&[1, 2, 3, 4], 3, 300, 200), [4, 3, 2], "no delegate has proposed others");
    // A chain that was left did not change this one.
    let mut again = Chain { election: before, members: ranking(&[1, 2, 3]) };
    assert_eq!(again.ends(&[1, 2, 3, 4], 3, 200, 8), [1, 2, 3]);
    assert_eq!(again.ends(&[1, 2, 3, 4], 3, 208, 9), [4, 3, 2]);
}

#[test]
fn eos_proposes_no_members_that_are_next_already() {
    let mut chain = Chain::new(ElectionRule::WhenFinal, &[1, 2, 3, 4], 3);
    // The same members in another order.
    chain.block(5, 61, 1, &[3, 1, 2, 4]);
    chain.block(6, 69, 6, &[3, 1, 2, 4]);
    // 61 seconds later.
    chain.block(7, 122, 6, &[4, 1, 2, 3]);
    chain.block(8, 130, 7, &[4, 1, 2, 3]);
    // Pending since block 8. By now the ranking has other delegates first, and they are proposed.
    chain.block(9, 190, 7, &[1, 2, 3, 4]);
    assert_eq!(chain.ends(&[1, 2, 3, 4], 3, 198, 8), [4, 1, 2]);
    chain.block(10, 199, 9, &[1, 2, 3, 4]);
    assert_eq!(chain.ends(&[1, 2, 3, 4], 3, 206, 10), [1, 2, 3]);
}

#[test]
fn tron_changes_its_members_where_six_hours_begin() {
    let mut chain = Chain::new(ElectionRule::EverySixHours, &[1, 2, 3, 4], 2);
    let at = [(21_599, [1, 2]), (21_600, [3, 4]), (21_700, [3, 4]), (43_199, [3, 4]), (50_000, [3, 4])];
    for (seconds, expected) in at {
        assert_eq!(chain.ends(&[3, 4, 1, 2], 2, seconds, 1), expected, "after {seconds} s");
    }
    assert_eq!(chain.ends(&[1, 2, 3, 4], 2, 64_799, 1), [3, 4]);
    assert_eq!(chain.ends(&[1, 2, 3, 4], 2, 64_801, 1), [1, 2]);
}
