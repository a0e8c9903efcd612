//! The end of a run before its last round.

use super::{Ended, Scenario, StallRule};
use crate::{actors::SimTime, protocol::Height, sim::Plan};
use std::time::Duration;

/// Ends a run by the scenario's stall rule or its time limit. The run is then censored.
///
/// A chain has stalled if it has not grown for the time of the rule, and if no fault will begin or end at a later time. Times after
/// the nominal end of the scenario's rounds do not count: they mean "never".
#[derive(Clone, Debug)]
pub struct Stall {
    best: Height,
    /// The last instant at which the chain grew, or at which a fault was still ahead.
    since: SimTime,
    allowed: Option<Duration>,
    /// The last time, up to the nominal end, at which a fault begins or ends. It is the start of the run if there is none.
    settled: SimTime,
    limit: Option<SimTime>,
}

/// The default time limit is this multiple of the nominal time of the rounds, plus a day.
const NOMINAL_TIMES: u64 = 4;
const DAY: Duration = Duration::from_secs(86_400);

impl Stall {
    /// The state before the first slot of a run.
    pub fn new(scenario: &Scenario, plan: &Plan) -> Self {
        let blocktime = u64::from(plan.tree.slots().blocktime());
        // Under a lottery most slots may have no owner.
        let slots_per_owned_slot = u64::from(plan.tree.rules().ledger.shuffle.slots_per_owned_slot());
        let of_slots = |slots: u64| Duration::from_secs(slots * slots_per_owned_slot * blocktime);
        let nominal_slots = u64::from(scenario.nominal_slots());
        let nominal = plan.start + of_slots(nominal_slots);
        let changes = plan.faults.iter().flat_map(|fault| {
            let begun = fault.from.instant(plan, None);
            [begun, fault.until.as_ref().and_then(|until| until.instant(plan, begun))]
        });
        let settled = changes.flatten().filter(|at| *at <= nominal).max().unwrap_or(plan.start);
        let rule = scenario.stall_rule();
        let allowed = match rule {
            StallRule::Off => None,
            StallRule::Rounds(rounds) => Some(of_slots(u64::from(rounds) * u64::from(scenario.round_slots()))),
            StallRule::Seconds(seconds) => Some(Duration::from_secs(seconds.into())),
        };
        let given = scenario.time_limit_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        let by_default = (rule == StallRule::Off).then(|| of_slots(NOMINAL_TIMES * nominal_slots) + DAY);
        let limit = given.or(by_default).map(|limit| plan.start + limit);
        Self { best: Height(0), since: plan.start, allowed, settled, limit }
    }

    /// Returns the end of the run, if it is to be ended at the end of a slot, with the chain at this height.
    pub fn look(&mut self, end: SimTime, height: Height) -> Option<Ended> {
        if height > self.best || end < self.settled {
            self.since = end;
        }
        self.best = height;
        if self.allowed.is_some_and(|allowed| end.since(self.since) >= allowed) {
            return Some(Ended::Stalled);
        }
        self.limit.is_some_and(|limit| end >= limit).then_some(Ended::Time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SeedTree;
    use std::path::Path;

    /// Slots until the run of a network of five whose chain never grows is ended, and how.
    fn ended(text: &str) -> (u32, Ended) {
        let text = format!("version = 1\nrounds = 10\n{text}");
        let scenario = Scenario::parse(&text, Path::new("stall")).expect("a scenario");
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let mut stall = Stall::new(&scenario, &plan);
        let end = |slot: u32| plan.start + Duration::from_secs(u64::from(8 * slot));
        // The block that a node begins with counts as forged.
        assert_eq!(stall.look(end(0), Height(1)), None);
        (1..).find_map(|slot| Some((slot, stall.look(end(slot), Height(1))?))).expect("it ends")
    }

    fn five(rest: &str) -> (u32, Ended) {
        ended(&format!("[network]\ndelegates = 5\n{rest}"))
    }

    #[test]
    fn a_chain_is_given_up_after_four_rounds_when_nothing_more_is_to_happen() {
        let offline =
            |when: &str| five(&format!("[[fault]]\nkind = \"offline\"\ndelegates = {{ from = 0, to = 4 }}\n{when}"));
        assert_eq!(five(""), (20, Ended::Stalled));
        assert_eq!(offline("from = { height = 2 }"), (20, Ended::Stalled));
        assert_eq!(offline("from = { seconds = 80 }"), (29, Ended::Stalled));
        assert_eq!(offline("until = { seconds = 240 }"), (49, Ended::Stalled));
        assert_eq!(offline("from = { seconds = 80 }\nuntil = { after = 160 }"), (49, Ended::Stalled));
        // Ten rounds of five take 400 seconds.
        assert_eq!(offline("until = { seconds = 401 }"), (20, Ended::Stalled));
    }

    #[test]
    fn the_rule_is_what_the_scenario_says_and_off_where_convergence_is_asked_for() {
        let rule = |rule: &str| ended(&format!("{rule}\n[network]\ndelegates = 5\n"));
        assert_eq!(rule("stall = { rounds = 2 }"), (10, Ended::Stalled));
        assert_eq!(rule("stall = { seconds = 81 }"), (11, Ended::Stalled));
        // Four times 400 seconds and a day, in slots of eight seconds.
        let default_limit = (200 + 10_800, Ended::Time);
        assert_eq!(rule("stall = \"off\""), default_limit);
        assert_eq!(rule("stall = \"off\"\ntime_limit_seconds = 79"), (10, Ended::Time));
        assert_eq!(rule("time_limit_seconds = 79"), (10, Ended::Time));
        assert_eq!(rule("time_limit_seconds = 1000"), (20, Ended::Stalled));
        let converged = "[[assert]]\nfinally = \"converged\"\n";
        assert_eq!(five(converged), default_limit);
        assert_eq!(five("[[assert]]\nalways = \"agreement > 0\"\n"), (20, Ended::Stalled));
        let both = format!("stall = {{ rounds = 3 }}\n[network]\ndelegates = 5\n{converged}");
        assert_eq!(ended(&both), (15, Ended::Stalled));
    }

    #[test]
    fn the_nominal_time_counts_the_delegates_of_milestones() {
        let network = "[network]\ndelegates = 4\nstandby = 36\nmilestones = [{ height = 5, delegates = 40 }]\n";
        // One round of 4 slots and 9 of 40: four times 364 slots, and a day.
        let converged = "[[assert]]\nfinally = \"converged\"\n";
        assert_eq!(ended(&format!("{network}{converged}")), (1_456 + 10_800, Ended::Time));
        // A round of the stall rule has the slots of the first round. Slot 350 is within the nominal time.
        let offline = "[[fault]]\nkind = \"offline\"\ndelegates = [0]\nuntil = { seconds = 2800 }\n";
        assert_eq!(ended(&format!("{network}{offline}")), (349 + 16, Ended::Stalled));
    }

    #[test]
    fn what_ends_a_run_is_checked() {
        let error = |line: &str| {
            let text = format!("version = 1\nrounds = 10\n{line}\n");
            Scenario::parse(&text, Path::new("s.toml")).expect_err("it is no scenario").to_string()
        };
        let zero = error("stall = { rounds = 0 }");
        assert_eq!(zero, "s.toml:3: key 'stall.rounds': found 0, allowed is 1 to 100000");
        let zero = error("stall = { seconds = 0 }");
        assert_eq!(zero, "s.toml:3: key 'stall.seconds': found 0, allowed is 1 to 3200000000");
        let word = error("stall = \"of\"");
        assert!(word.starts_with("s.toml:3: key 'stall': unknown variant `of`, expected"), "{word}");
        let none = error("time_limit_seconds = 0");
        assert_eq!(none, "s.toml:3: key 'time_limit_seconds': found 0, allowed is 1 to 3200000000");
    }
}
