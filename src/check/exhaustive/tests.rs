use super::*;
use crate::{protocol::BlockId, sim::Tips};
use stateright::{Checker, Model, Property};
use std::{
    hash::{Hash, Hasher},
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

/// A network of four on a mesh, all links 50 ms long. With both of the faults one more lost answer makes a node roll back too far.
fn scenario(faults: &[&str]) -> Scenario {
    let head = "version = 1\nrounds = 3\ncrypto = \"modelled\"\n[network]\ndelegates = 4\n\
                [rules]\nbase = \"corrected\"\n";
    let text = faults.iter().fold(head.to_owned(), |text, fault| format!("{text}[[fault]]\n{fault}\n"));
    Scenario::parse(&text, Path::new("few.toml")).expect("it is valid")
}

const STATUS: &str =
    "kind = 'drop'\nmessages = ['status']\nsenders = [0]\nreceivers = [1]\nonly = 3\nuntil = { seconds = 64 }";
const BLOCK: &str =
    "kind = 'drop'\nmessages = ['block']\nsenders = [1]\nreceivers = [2]\nonly = 2\nuntil = { seconds = 64 }";

fn bounds(deviations: u32, slots: u32, mishaps: &[Mishap]) -> Bounds {
    let kinds = vec![MessageKind::Block, MessageKind::Status, MessageKind::Blocks, MessageKind::CommonBlocks];
    Bounds { deviations, slots, kinds, mishaps: mishaps.to_vec(), by: Duration::from_secs(8), merge: true }
}

const ALL: [Mishap; 3] = [Mishap::Lost, Mishap::Late, Mishap::Doubled];

fn search(scenario: &Scenario, bounds: Bounds) -> Exhaustive<'_> {
    let seeds = SeedTree::new(1);
    Exhaustive::new(scenario, &scenario.testnet(seeds), seeds, bounds)
}

fn explored(search: &Exhaustive<'_>) -> Exploration {
    search.run(None, &AtomicBool::new(false), |_| {}, |_| {})
}

/// By invariant and cause, the schedules that show it.
fn found(explored: &Exploration) -> Vec<(Signature, u64)> {
    explored.found.iter().map(|(signature, shown)| (signature.clone(), shown.schedules)).collect()
}

/// The blocks that the nodes stand on.
fn ids(tips: &Tips) -> Vec<BlockId> {
    tips.all().map(|tip| tip.id()).collect()
}

/// The states after `slots` slots of all schedules, each played by itself from its last deviation on.
fn all_states(search: &Exhaustive<'_>, slots: u32) -> Vec<State> {
    let (_, mut layer) = search.begin();
    for slot in 1..=slots {
        let mut next = Vec::new();
        for state in layer {
            let mut run = search.next(&state, slot, &[]);
            let sent = run.stage.script().expect("it was given one").sent().to_vec();
            next.push(run.into());
            if search.left(&state.schedules, slot) > 0 {
                let each = sent.into_iter().flat_map(|sent| ALL.map(|mishap| Deviation { sent, mishap }));
                next.extend(each.map(|one| State::from(search.next(&state, slot, &[one]))));
            }
        }
        layer = next;
    }
    layer
}

/// The mark of a state at the beginning of a slot, that it has come to.
fn mark(state: &State) -> Mark {
    let run = Run {
        stage: InlineStage::at(&state.moment),
        watchers: state.watchers.apart(),
        schedule: Vec::new(),
        schedules: Vec::new(),
    };
    run.mark()
}

#[test]
fn with_one_deviation_there_is_a_schedule_for_each_message_and_mishap() {
    let scenario = scenario(&[]);
    let one = explored(&search(&scenario, bounds(1, 3, &ALL)));
    assert!(one.messages > 10, "{} messages", one.messages);
    assert_eq!(one.schedules, [1, 3 * one.messages]);
}

/// Second copies come a slot later, so what is doubled in the only slot changes nothing in it.
#[test]
fn with_three_deviations_there_is_a_schedule_for_each_choice_of_messages() {
    let scenario = scenario(&[]);
    let three = explored(&search(&scenario, bounds(3, 1, &[Mishap::Doubled])));
    let n = three.messages;
    assert!(n >= 5, "{n} messages");
    assert_eq!(three.schedules, [1, n, n * (n - 1) / 2, n * (n - 1) * (n - 2) / 6]);
}

#[test]
fn schedules_that_are_put_together_are_those_that_are_played_apart() {
    let scenario = scenario(&[STATUS, BLOCK]);
    let together = search(&scenario, bounds(1, 8, &ALL));
    let apart = search(&scenario, Bounds { merge: false, ..together.bounds.clone() });
    let (together, apart) = (explored(&together), explored(&apart));
    assert_eq!((&together.schedules, together.slots), (&apart.schedules, apart.slots));
    assert_eq!(found(&together), found(&apart));
    assert!(!together.found.is_empty(), "or nothing was compared");
    assert!(together.played < apart.played, "{} of {} slots", together.played, apart.played);
    assert_eq!(apart.ends, apart.total(), "each was played");
    assert!(together.ends < together.total() / 2, "{} of {} were played", together.ends, together.total());
    let shown =
        |explored: &Exploration| explored.found.values().map(|shown| shown.schedule.clone()).collect::<Vec<_>>();
    assert_eq!(shown(&together), shown(&apart), "the first schedule is the same one");
    let two = search(&self::scenario(&[]), bounds(2, 2, &ALL)).bounds;
    let scenario = self::scenario(&[]);
    let (together, apart) = (search(&scenario, two.clone()), search(&scenario, Bounds { merge: false, ..two }));
    let (together, apart) = (explored(&together), explored(&apart));
    assert_eq!((&together.schedules, together.slots), (&apart.schedules, apart.slots));
}

/// Tests that a mark omits only values without effect. Compares states at the end of each of `slots` slots, and then for `ahead` slots
/// more.
fn go_on_alike(scenario: &Scenario, slots: u32, ahead: u32, least: usize) {
    let search = search(scenario, bounds(1, slots, &ALL));
    let (mut compared, mut apart) = (0, 0);
    for depth in 1..=slots + 2 {
        let mut by_mark: IndexMap<Mark, Vec<State>> = IndexMap::new();
        for state in all_states(&search, depth) {
            by_mark.entry(mark(&state)).or_default().push(state);
        }
        apart += by_mark.len();
        for mut states in by_mark.into_values().filter(|states| states.len() > 1) {
            for slot in depth + 1..=depth + ahead {
                states = states.iter().map(|state| search.next(state, slot, &[]).into()).collect();
                let (tips, first) = (ids(states[0].moment.tips()), mark(&states[0]));
                for state in &states {
                    assert_eq!(ids(state.moment.tips()), tips, "slot {slot}: {:?}", state.schedule);
                    assert_eq!(mark(state), first, "slot {slot}: {:?}", state.schedule);
                }
            }
            compared += states.len() - 1;
        }
    }
    assert!(compared >= least && apart > 5, "{compared} states were like another, {apart} were distinct");
}

#[test]
fn states_of_one_mark_go_on_alike() {
    go_on_alike(&scenario(&[]), 2, 12, 10);
}

/// The network and the faults that stand for many: pools, rollbacks, a crash, and blocks that are passed on again and again, also at the
/// ends of slots.
fn much(latency: &str, faults: &str) -> Scenario {
    let text = format!(
        "version = 1\nrounds = 6\ncrypto = \"modelled\"\n[network]\ndelegates = 5\ngossip = \"reference\"\n\
         latency = {latency}\n[rules]\nbase = \"reference\"\n\
         [[workload]]\nkind = \"generate\"\nper_second = 0.5\n{faults}"
    );
    Scenario::parse(&text, Path::new("much.toml")).expect("it is valid")
}

#[test]
fn states_of_one_mark_go_on_alike_where_much_goes_on() {
    let faults = "[[fault]]\nkind = \"partition\"\ngroups = [[0, 1], [2, 3, 4]]\nfrom = { seconds = 4 }\nuntil = { seconds = 60 }\n\
                  [[fault]]\nkind = \"crash\"\nnodes = [3]\nfrom = { seconds = 20 }\nuntil = { seconds = 40 }\n";
    go_on_alike(&much("{ min_ms = 20, max_ms = 100 }", faults), 3, 12, 5);
}

#[test]
fn states_of_one_mark_go_on_alike_where_blocks_come_at_the_ends_of_slots() {
    go_on_alike(&much("{ min_ms = 500, max_ms = 5800 }", ""), 3, 8, 5);
}

/// A fault of the scenario is waited for, and a message that comes late.
#[test]
fn a_search_is_not_over_before_what_goes_wrong_is() {
    let slots = |faults: &[&str], by: u64, mishaps: &[Mishap]| {
        let scenario = scenario(faults);
        let bounds = Bounds { by: Duration::from_secs(by), ..bounds(1, 1, mishaps) };
        explored(&search(&scenario, bounds)).states.len() as u64
    };
    let short = slots(&[], 8, &[Mishap::Lost]);
    assert!(short < 20, "{short} slots");
    assert!(slots(&[], 600, &[Mishap::Lost]) == short, "nothing comes late");
    assert!(slots(&[], 600, &[Mishap::Late]) > 600 / 8);
    let crash = "kind = 'crash'\nnodes = [1]\nfrom = { seconds = 300 }\nuntil = { seconds = 400 }";
    assert!(slots(&[crash], 8, &[Mishap::Lost]) > 400 / 8);
    let for_ever = scenario(&["kind = 'crash'\nnodes = [1]"]);
    assert!(Exhaustive::check(&for_ever).expect_err("it is never over").contains("a fault that never ends"));
}

#[test]
fn the_scenario_of_a_schedule_plays_it() {
    let scenario = scenario(&[]);
    let search = search(&scenario, bounds(1, 3, &ALL));
    let states = all_states(&search, 6);
    let mut tips = Vec::new();
    for state in &states {
        let file = search.scenario_of(&state.schedule);
        let plan = file.plan(&file.testnet(SeedTree::new(1)), SeedTree::new(1));
        let mut stage = InlineStage::new(&plan, Vec::new());
        stage.run_until(state.moment.now());
        assert_eq!(ids(stage.world().tips()), ids(state.moment.tips()), "{:?}", state.schedule);
        tips.push(ids(state.moment.tips()));
    }
    tips.sort();
    tips.dedup();
    assert!(tips.len() > 5, "{} ends of {} schedules", tips.len(), states.len());
}

#[test]
fn a_search_goes_on_from_what_was_kept_and_takes_as_many_threads_as_there_are() {
    let scenario = scenario(&[STATUS, BLOCK]);
    let search = search(&scenario, bounds(1, 6, &[Mishap::Lost]));
    let mut all = Vec::new();
    let whole = search.run(None, &AtomicBool::new(false), |kept| all.push(kept), |_| {});
    assert!(!whole.found.is_empty() && all.len() == 6);
    for kept in [&all[1], &all[4], &all[all.len() - 1]] {
        let text = serde_json::to_string(kept).expect("it has a JSON");
        let kept = serde_json::from_str(&text).expect("its own text");
        let rest = search.run(Some(kept), &AtomicBool::new(false), |_| {}, |_| {});
        assert_eq!((&rest.schedules, rest.slots, &rest.found), (&whole.schedules, whole.slots, &whole.found));
        assert!(rest.played >= whole.played, "which states were played before is not kept");
    }
    let threads = |count| rayon::ThreadPoolBuilder::new().num_threads(count).build().expect("there are threads");
    assert_eq!(threads(1).install(|| explored(&search)), threads(3).install(|| explored(&search)));
    let stopped = search.run(None, &AtomicBool::new(true), |_| {}, |_| {});
    assert!(stopped.interrupted && stopped.depth == 0);
}

#[test]
fn clocks_have_to_be_right() {
    let skewed = scenario(&["kind = 'clock-skew'\nnodes = [1]\noffset_ms = 500"]);
    let why = Exhaustive::check(&skewed).expect_err("a clock is wrong");
    assert!(why.starts_with("key 'fault[0].kind': found \"clock-skew\", allowed is "), "{why}");
    assert_eq!(Exhaustive::check(&scenario(&[STATUS])), Ok(()));
}

/// The schedules with one deviation as an independent model checker sees them: a state is a slot, a mark, and whether deviations are
/// possible.
struct ScheduleModel(&'static Exhaustive<'static>);

#[derive(Clone)]
struct ModelState {
    slot: u32,
    mark: Mark,
    /// Deviations that are possible in the next slot.
    left: usize,
    state: Arc<Mutex<State>>,
}

impl ModelState {
    fn new(slot: u32, left: usize, state: State) -> Self {
        Self { slot, mark: mark(&state), left, state: Arc::new(state.into()) }
    }

    fn key(&self) -> (u32, Mark, usize) {
        (self.slot, self.mark, self.left)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while holding it")
    }
}

impl Hash for ModelState {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.key().hash(hasher);
    }
}

impl PartialEq for ModelState {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl std::fmt::Debug for ModelState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.key().fmt(f)
    }
}

impl Model for ScheduleModel {
    type State = ModelState;
    type Action = Option<Deviation>;

    fn init_states(&self) -> Vec<ModelState> {
        vec![ModelState::new(0, 1, self.0.state(0, &[], vec![1, 0]))]
    }

    fn actions(&self, seen: &ModelState, actions: &mut Vec<Self::Action>) {
        actions.push(None);
        if seen.left > 0 {
            let mut run = self.0.next(&seen.state(), seen.slot + 1, &[]);
            let sent = run.stage.script().expect("it was given one").sent().to_vec();
            let each = sent.into_iter().flat_map(|sent| ALL.map(|mishap| Some(Deviation { sent, mishap })));
            actions.extend(each);
        }
    }

    fn next_state(&self, seen: &ModelState, action: Self::Action) -> Option<ModelState> {
        let said: Vec<Deviation> = action.into_iter().collect();
        let run = self.0.next(&seen.state(), seen.slot + 1, &said);
        let left = if seen.slot + 1 < self.0.bounds.slots { seen.left - said.len() } else { 0 };
        Some(ModelState::new(seen.slot + 1, left, run.into()))
    }

    fn within_boundary(&self, seen: &ModelState) -> bool {
        seen.state().watchers.seen().alive().is_some_and(|alive| !alive.is_decided())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("nothing is found", |_, seen: &ModelState| {
            seen.state().watchers.seen().findings().is_empty()
        })]
    }
}

#[test]
fn another_model_checker_counts_the_same_states_and_finds_the_same() {
    for (faults, slots) in [([].as_slice(), 3), ([STATUS, BLOCK].as_slice(), 8)] {
        let scenario: &Scenario = Box::leak(scenario(faults).into());
        let search: &Exhaustive<'_> = Box::leak(search(scenario, bounds(1, slots, &ALL)).into());
        let explored = explored(search);
        let checker = ScheduleModel(search).checker().spawn_bfs().join();
        // It does not tell of states beyond the boundary, and a broken property does not end it where another is unbroken.
        let findings = checker.discoveries();
        assert_eq!(findings.is_empty(), explored.found.is_empty(), "{findings:?}");
        if findings.is_empty() {
            assert_eq!(checker.unique_state_count() as u64, explored.states.iter().sum::<u64>());
        }
    }
}

#[test]
fn a_search_is_another_one_after_a_change_to_a_file_of_its_scenario() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let chain = folder.path().join("chain.jsonl");
    std::fs::write(&chain, "").expect("it can be written");
    let text = format!(
        "version = 1\nrounds = 1\ncrypto = \"modelled\"\n[network]\ndelegates = 3\n[[workload]]\nkind = \"chain\"\nfile = '{}'\n",
        chain.display()
    );
    let scenario = Scenario::parse(&text, Path::new("file.toml")).expect("it is valid");
    let guard = || Guard::of(&search(&scenario, bounds(1, 1, &ALL)));
    let before = guard();
    assert_eq!(before, guard());
    std::fs::write(&chain, "\n").expect("it can be written");
    assert_ne!(before, guard());
}
