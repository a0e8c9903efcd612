//! Assertions held against the schedule of a run: the number of nodes down at the end of each slot is known before it is played.

use dposlab::{
    check,
    protocol::Height,
    scenario::{Scenario, StageKind},
    sim::{Observer, SeedTree},
};
use proptest::prelude::*;
use std::path::Path;

const DELEGATES: u32 = 9;
const ROUNDS: u32 = 8;
/// From then on nothing goes wrong any more, in seconds after the first slot began.
const QUIET: u32 = 260;

/// A node stands still from half a second after one second to half a second after another.
type Pause = (u32, u32, u32);

#[derive(Clone, Debug)]
struct Claim {
    kind: &'static str,
    sign: &'static str,
    value: u32,
    /// Seconds after which it counts, with `always` and `eventually`.
    after: u32,
    /// Rounds in which it must come true, with `eventually`.
    within: Option<u32>,
}

fn claim() -> impl Strategy<Value = Claim> {
    let kind = prop::sample::select(vec!["always", "sometimes", "eventually", "finally"]);
    let sign = prop::sample::select(vec!["<", "<=", "==", ">=", ">"]);
    (kind, sign, 0..4u32, 0..QUIET, prop::option::of(1..4u32)).prop_map(|(kind, sign, value, after, within)| Claim {
        kind,
        sign,
        value,
        after,
        within: within.filter(|_| kind == "eventually"),
    })
}

impl Claim {
    fn counts_later(&self) -> bool {
        matches!(self.kind, "always" | "eventually")
    }

    fn text(&self) -> String {
        let Self { kind, sign, value, after, within } = self;
        let mut text = format!("[[assert]]\n{kind} = \"down {sign} {value}\"\n");
        if self.counts_later() {
            text += &format!("after = {{ seconds = {after} }}\n");
        }
        text + &within.map(|rounds| format!("within_rounds = {rounds}\n")).unwrap_or_default()
    }

    /// Returns true if it holds where so many nodes are down at the end of slot 1, 2, ...
    fn holds(&self, down: &[u32]) -> bool {
        let one = |found: &u32| match self.sign {
            "<" => *found < self.value,
            "<=" => *found <= self.value,
            "==" => *found == self.value,
            ">=" => *found >= self.value,
            _ => *found > self.value,
        };
        // It counts from the first slot on that begins then or later.
        let first = if self.counts_later() { self.after.div_ceil(8) as usize } else { 0 };
        let last = self.within.map_or(down.len(), |rounds| first + (rounds * DELEGATES) as usize + 1);
        let of = &down[first..last.min(down.len())];
        match self.kind {
            "always" => of.iter().all(one),
            "finally" => down.last().is_some_and(one),
            _ => of.iter().any(one),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn claims_hold_where_the_schedule_says_so(
        pauses in prop::collection::vec((0..3u32, 1..QUIET - 60, 1..60u32), 0..6),
        claims in prop::collection::vec(claim(), 1..24),
    ) {
        let pauses: Vec<Pause> = pauses.into_iter().map(|(node, from, length)| (node, from, from + length)).collect();
        let mut text = format!(
            "version = 1\nrounds = {ROUNDS}\ncrypto = \"modelled\"\n[network]\ndelegates = {DELEGATES}\n\
             latency = {{ distribution = \"constant\", ms = 50 }}\n"
        );
        for (node, from, until) in &pauses {
            text += &format!("[[fault]]\nkind = \"pause\"\nnodes = [{node}]\nfrom = {{ seconds = {from}.5 }}\n");
            text += &format!("until = {{ seconds = {until}.5 }}\n");
        }
        text += &claims.iter().map(Claim::text).collect::<String>();
        let scenario = Scenario::parse(&text, Path::new("claims")).unwrap_or_else(|why| panic!("{why}\n{text}"));
        let seeds = SeedTree::new(7);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let judge = check::judge(&scenario, &plan).expect("no invariant is asked for");
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(judge.clone())];
        let outcome = scenario.play(&plan, StageKind::Inline, observers, |_: Height| {}).expect("no actor dies");
        let slots = outcome.end.seconds().0 / 8;
        prop_assert!(8 * slots > QUIET + 8 * 3 * DELEGATES, "it goes on for long enough: {} slots", slots);
        let down: Vec<u32> = (1..=slots)
            .map(|slot| {
                let is_down = |node: u32| pauses.iter().any(|(of, from, until)| {
                    *of == node && (*from..*until).contains(&(8 * slot - 1))
                });
                (0..DELEGATES).filter(|node| is_down(*node)).count() as u32
            })
            .collect();
        let verdicts = judge.verdicts(outcome.end, outcome.ended);
        prop_assert_eq!(verdicts.len(), claims.len());
        for (claim, verdict) in claims.iter().zip(&verdicts) {
            prop_assert_eq!(verdict.holds(), claim.holds(&down), "{:?}: {}\n{:?}", claim, verdict, down);
        }
    }
}
