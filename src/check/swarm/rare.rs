//! Conditions that the other draws never reach. They occur in few runs, and are drawn from a stream of their own, so the other runs are
//! the same as without them.

use super::{Draw, set};
use crate::{
    scenario::{Action, Deed, Scenario},
    sim::SeedTree,
};
use rand::{Rng, seq::IndexedRandom};

/// One run in this number gets one to three of them.
const RARE_OF: u32 = 8;

/// Adds one to three of them to the scenario of a seed, or none. Their actions are at heights up to `last`. The rules change only if they
/// are drawn.
pub(super) fn add(seed: u64, scenario: &mut Scenario, last: u32, are_rules_drawn: bool) {
    let mut draw = SeedTree::new(seed).stream("swarm/rare");
    if !draw.random_ratio(1, RARE_OF) {
        return;
    }
    for _ in 0..draw.random_range(1..=3) {
        let mut rare =
            Rare { start: draw.random_range(3..=last.max(4)), nodes: scenario.network.nodes(), draw: &mut draw };
        let actions = match rare.draw.random_range(0..3) {
            0 => rare.second_registration(&scenario.actions),
            1 => rare.many_of_one_sender(),
            _ => rare.expiring_one_with_later_ones(),
        };
        scenario.actions.extend(actions);
    }
    if are_rules_drawn {
        // A low limit for each sender in a pool, and fees below which no node relays a transfer.
        let share = *[1, 2, 3, 5, 8_i64].choose(&mut draw).unwrap_or(&3);
        set(&mut scenario.rules, "pool.max_transactions_per_sender", share);
        if draw.random_bool(0.7) {
            let fees = [("min_fee_pool", 1_000_i64), ("min_fee_broadcast", 60_000)];
            let fees = fees.into_iter().map(|(name, rate)| (name.to_owned(), rate.into()));
            set(&mut scenario.rules, "pool.dynamic_fees", fees.collect::<toml::Table>());
        }
    }
}

struct Rare<'a> {
    draw: &'a mut Draw,
    start: u32,
    nodes: u32,
}

impl Rare<'_> {
    fn account(&mut self) -> String {
        format!("account_{}", self.draw.random_range(1..=10))
    }

    fn at(&mut self, height: u32, node: u32, by: &str, does: Deed) -> Action {
        Action { height, node, by: by.to_owned(), does, ..Action::default() }
    }

    /// Registers a registered multisignature wallet again: the wallet of the first registration in `others`, or else one of its own.
    fn second_registration(&mut self, others: &[Action]) -> Vec<Action> {
        let first =
            others.iter().filter(|one| one.does == Deed::Share && one.wrong.is_none()).min_by_key(|one| one.height);
        let (mut actions, mut height) = (Vec::new(), self.start);
        let name = match first.and_then(|first| Some((first.height, first.name.clone()?))) {
            Some((at, name)) => {
                height = at;
                name
            }
            None => {
                let (node, by) = (self.draw.random_range(0..self.nodes), self.account());
                actions.push(Action { name: Some("rare".to_owned()), ..self.at(height, node, &by, Deed::Share) });
                "rare".to_owned()
            }
        };
        for _ in 0..self.draw.random_range(1..=3) {
            height += self.draw.random_range(0..=12);
            let (node, by) = (self.draw.random_range(0..self.nodes), self.account());
            actions.push(Action { name: Some(name.clone()), ..self.at(height, node, &by, Deed::Share) });
        }
        actions
    }

    /// One account submits many transactions at one node, a few at each height.
    fn many_of_one_sender(&mut self) -> Vec<Action> {
        let (node, by, to) = (self.draw.random_range(0..self.nodes), self.account(), self.account());
        let count = self.draw.random_range(4..=16);
        let each = *[1, 1, 2, 3].choose(self.draw).unwrap_or(&1);
        let transfers = (0..count).map(|index| Action {
            to: Some(to.clone()),
            ..self.at(self.start + index / each, node, &by, Deed::Transfer)
        });
        transfers.collect()
    }

    /// A transfer that expires in some blocks, later ones of its sender at the same node, and one more after it has expired.
    fn expiring_one_with_later_ones(&mut self) -> Vec<Action> {
        let (node, by, to) = (self.draw.random_range(0..self.nodes), self.account(), self.account());
        let blocks = self.draw.random_range(1..=4);
        let later = self.draw.random_range(1..=3);
        let mut actions: Vec<_> = (0..=later)
            .map(|_| Action { to: Some(to.clone()), ..self.at(self.start, node, &by, Deed::Transfer) })
            .collect();
        actions[0].blocks = blocks;
        let again = self.start + blocks + self.draw.random_range(1..=6);
        actions.push(Action { to: Some(to), ..self.at(again, node, &by, Deed::Transfer) });
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::swarm::{Frame, draw};

    #[test]
    fn each_condition_comes_in_some_of_many_runs() {
        let (mut twice, mut shares, mut expiring) = (0, 0, 0);
        for seed in 0..400 {
            let scenario = draw(&Frame::default(), seed);
            let actions = &scenario.actions;
            let registers = |one: &&Action| one.does == Deed::Share && one.wrong.is_none();
            let is_again =
                |one: &Action| actions.iter().filter(registers).filter(|other| other.name == one.name).count() > 1;
            twice += u32::from(actions.iter().filter(registers).any(is_again));
            let rules = scenario.rules.get("pool").and_then(|pool| pool.get("max_transactions_per_sender"));
            shares += u32::from(rules.is_some());
            let is_later =
                |one: &Action, other: &Action| (&one.by, one.node, one.height) == (&other.by, other.node, other.height);
            let has_later = |one: &&Action| actions.iter().filter(|other| is_later(one, other)).count() > 1;
            let expires = |one: &&Action| one.does == Deed::Transfer && one.blocks > 0;
            expiring += u32::from(actions.iter().filter(expires).any(|one| has_later(&one)));
            assert!(shares <= seed as u32 / 4 + 8, "they are rare");
        }
        assert!(twice >= 10 && shares >= 20 && expiring >= 10, "{twice} {shares} {expiring}");
    }
}
