//! When a chain is given up.

use super::Scenario;
use crate::{actors::SimTime, protocol::Height, sim::Plan};
use std::time::Duration;

/// Rounds' worth of slots without a block after which nothing more is expected.
const IDLE_ROUNDS: u32 = 4;

/// Sees when a chain has stalled: it has not grown for four rounds' worth of slots, and of the faults that begin or end at
/// a time none is still to do so. Times beyond those that the scenario's rounds take do not count: they say "never".
#[derive(Clone, Debug)]
pub struct Stall {
    best: Height,
    idle: u32,
    allowed: u32,
    /// The last of those times.
    settled: SimTime,
}

impl Stall {
    /// Before the first slot of a run.
    pub fn new(scenario: &Scenario, plan: &Plan) -> Self {
        let (slots, seats) = (plan.tree.slots(), scenario.network.delegates);
        let turns = u64::from(scenario.rounds) * u64::from(seats);
        let nominal = plan.start + Duration::from_secs(turns * u64::from(slots.blocktime()));
        let changes = plan.faults.iter().flat_map(|fault| {
            let begun = fault.from.instant(plan, None);
            [begun, fault.until.as_ref().and_then(|until| until.instant(plan, begun))]
        });
        let settled = changes.flatten().filter(|at| *at <= nominal).max().unwrap_or(plan.start);
        Self { best: Height(0), idle: 0, allowed: IDLE_ROUNDS * seats, settled }
    }

    /// At the end of a slot, with the chain at a height: whether it has stalled.
    pub fn has_stalled(&mut self, end: SimTime, height: Height) -> bool {
        self.idle = if height > self.best || end < self.settled { 0 } else { self.idle + 1 };
        self.best = height;
        self.idle >= self.allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SeedTree;
    use std::path::Path;

    /// Slots until the chain of a network of five, which never grows, is given up.
    fn slots_of(fault: &str) -> u32 {
        let text = format!("version = 1\nrounds = 10\n[network]\ndelegates = 5\n{fault}");
        let scenario = Scenario::parse(&text, Path::new("stall")).expect("a scenario");
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let mut stall = Stall::new(&scenario, &plan);
        let end = |slot: u32| plan.start + Duration::from_secs(u64::from(8 * slot));
        // What a node begins with is a block, and has been forged.
        assert!(!stall.has_stalled(end(0), Height(1)));
        (1..).find(|slot| stall.has_stalled(end(*slot), Height(1))).expect("it ends")
    }

    #[test]
    fn a_chain_is_given_up_after_four_rounds_when_nothing_more_is_to_happen() {
        let offline = |when: &str| {
            slots_of(&format!("[[fault]]\nkind = \"offline\"\ndelegates = {{ from = 0, to = 4 }}\n{when}"))
        };
        assert_eq!(slots_of(""), 20);
        assert_eq!(offline("from = { height = 2 }"), 20);
        assert_eq!(offline("from = { seconds = 80 }"), 29);
        assert_eq!(offline("until = { seconds = 240 }"), 49);
        assert_eq!(offline("from = { seconds = 80 }\nuntil = { after = 160 }"), 49);
        // Ten rounds of five take 400 seconds.
        assert_eq!(offline("until = { seconds = 401 }"), 20);
    }
}
