//! Assertions held against the schedule of a run: the number of nodes down at the end of each slot is known before it is played.

use dposlab::{
    check,
    protocol::Height,
    scenario::{Scenario, StageKind, StallRule},
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
    condition: Condition,
    /// Seconds after which it counts, with `always` and `eventually`.
    after: u32,
    /// Rounds in which it must come true, with `eventually`.
    within: Option<u32>,
}

/// A condition of the number of nodes that are down.
#[derive(Clone, Debug)]
enum Condition {
    Down(&'static str, u32),
    Joined(&'static str, Vec<Self>),
    Not(Box<Self>),
}

impl Condition {
    fn text(&self) -> String {
        match self {
            Self::Down(sign, value) => format!("down {sign} {value}"),
            Self::Joined(joint, parts) => {
                let parts: Vec<String> = parts.iter().map(|part| format!("({})", part.text())).collect();
                parts.join(joint)
            }
            Self::Not(part) => format!("not ({})", part.text()),
        }
    }

    fn holds(&self, down: u32) -> bool {
        match self {
            Self::Down("<", value) => down < *value,
            Self::Down("<=", value) => down <= *value,
            Self::Down("==", value) => down == *value,
            Self::Down(">=", value) => down >= *value,
            Self::Down(_, value) => down > *value,
            Self::Joined(" and ", parts) => parts.iter().all(|part| part.holds(down)),
            Self::Joined(_, parts) => parts.iter().any(|part| part.holds(down)),
            Self::Not(part) => !part.holds(down),
        }
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let sign = prop::sample::select(vec!["<", "<=", "==", ">=", ">"]);
    let one = (sign, 0..4u32).prop_map(|(sign, value)| Condition::Down(sign, value));
    one.prop_recursive(3, 8, 3, |part| {
        let joint = prop::sample::select(vec![" and ", " or "]);
        let joined = (joint, prop::collection::vec(part.clone(), 2..4));
        prop_oneof![
            joined.prop_map(|(joint, parts)| Condition::Joined(joint, parts)),
            part.prop_map(|part| Condition::Not(Box::new(part))),
        ]
    })
}

fn claim() -> impl Strategy<Value = Claim> {
    let kind = prop::sample::select(vec!["always", "sometimes", "eventually", "finally"]);
    (kind, condition(), 0..QUIET, prop::option::of(1..4u32)).prop_map(|(kind, condition, after, within)| Claim {
        kind,
        condition,
        after,
        within: within.filter(|_| kind == "eventually"),
    })
}

impl Claim {
    fn counts_later(&self) -> bool {
        matches!(self.kind, "always" | "eventually")
    }

    fn text(&self) -> String {
        let Self { kind, condition, after, within } = self;
        let mut text = format!("[[assert]]\n{kind} = \"{}\"\n", condition.text());
        if self.counts_later() {
            text += &format!("after = {{ seconds = {after} }}\n");
        }
        text + &within.map(|rounds| format!("within_rounds = {rounds}\n")).unwrap_or_default()
    }

    /// Returns true if it holds where so many nodes are down at the end of slot 1, 2, ...
    fn holds(&self, down: &[u32]) -> bool {
        let one = |found: &u32| self.condition.holds(*found);
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

/// While no node is live, no share of live nodes is defined: such a part leaves open what the others do not decide.
#[test]
fn an_undefined_part_leaves_open_what_others_do_not_decide() {
    let claims = [
        ("always", "not agreement < 0", true),
        ("always", "agreement >= 0 or down == 4", true),
        ("always", "agreement >= 0 and down < 4", false),
        ("always", "agreement < 0 or down < 4", true),
        ("always", "agreement >= 0 or down < 4", true),
        ("sometimes", "agreement < 2 and down == 4", false),
        ("sometimes", "not agreement >= 0", false),
        ("sometimes", "agreement < 0 or down == 4", true),
        ("sometimes", "not (agreement >= 0 and down < 4)", true),
    ];
    let mut text =
        "version = 1\nrounds = 3\n[network]\ndelegates = 4\n[[fault]]\nkind = \"pause\"\nnodes = [0, 1, 2, 3]\n\
                    from = { seconds = 20.5 }\nuntil = { seconds = 40.5 }\n"
            .to_owned();
    for (kind, condition, _) in claims {
        text += &format!("[[assert]]\n{kind} = '{condition}'\n");
    }
    let scenario = Scenario::parse(&text, Path::new("claims")).expect("it can be read");
    let seeds = SeedTree::new(7);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let judge = check::judge(&scenario, &plan).expect("no invariant is asked for");
    let outcome = scenario.play_inline(&plan, vec![Box::new(judge.clone())], |_| true);
    for (verdict, (kind, condition, wanted)) in judge.verdicts(outcome.end, outcome.ended).iter().zip(claims) {
        assert_eq!(verdict.holds(), wanted, "{kind} {condition}: {verdict}");
    }
}

#[test]
fn a_joined_condition_tells_what_decided_it_and_waits_for_one_chain() {
    let judged = |condition: &str| {
        let text = format!("version = 1\nrounds = 2\n[network]\ndelegates = 4\n[[assert]]\nfinally = '{condition}'\n");
        let scenario = Scenario::parse(&text, Path::new("claims")).expect("it can be read");
        let seeds = SeedTree::new(7);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let judge = check::judge(&scenario, &plan).expect("no invariant is asked for");
        let outcome = scenario.play_inline(&plan, vec![Box::new(judge.clone())], |_| true);
        judge.verdicts(outcome.end, outcome.ended)[0].found.clone()
    };
    let found = judged("height >= 2 and missed > 9 and converged and down > 3");
    assert!(found.starts_with("missed is 0, down is 0 in slot"), "{found}");
    let found = judged("height < 2 or missed > 9");
    assert!(found.starts_with("height is 8, missed is 0 in slot"), "{found}");
    let found = judged("height < 2 or missed < 9 or down < 9");
    assert!(found.starts_with("missed is 0, down is 0 in slot"), "{found}");
    let of = |condition: &str| {
        let text = format!("version = 1\nrounds = 2\n[[assert]]\neventually = '{condition}'\n");
        Scenario::parse(&text, Path::new("claims")).expect("it can be read").stall_rule()
    };
    assert_eq!(of("converged and height > 3"), StallRule::Off);
    assert_eq!(of("height > 3"), StallRule::Rounds(4));
}
