//! No wait without a waker: whatever an actor waits for, something that is to come ends it (`check::wakers`).
//! Source: consensus.md 2.1, 3.5, 6.

use crate::support::{Onlooker, root};
use dposlab::{
    actors::{ActorId, Event, NodeId, Role, SimTime},
    check::swarm::{Frame, draw},
    protocol::Height,
    scenario::{Scenario, StageKind},
    sim::{Observer, Outlook, SeedTree, stage::inline::InlineStage},
};
use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

/// The phases of a run that nothing to come ended.
fn stuck(scenario: &Scenario, seed: u64, stage: StageKind) -> Vec<String> {
    let onlooker = Onlooker::default();
    let seeds = SeedTree::new(seed);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    scenario.play(&plan, stage, vec![Box::new(onlooker.clone())], |_: Height| {}).expect("no actor dies");
    onlooker.stuck()
}

/// `tests/runs/scenarios.rs` looks at the other scenarios.
#[test]
fn nobody_waits_for_nothing_in_the_scenarios_of_findings() {
    let folder = fs::read_dir(root().join("scenarios/findings")).expect("findings are shipped");
    let mut files: Vec<_> = folder.map(|entry| entry.expect("the folder can be listed").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let scenario = Scenario::load(&file).expect("shipped scenarios are valid");
        assert_eq!(stuck(&scenario, 1, StageKind::Inline), [] as [&str; 0], "{}", file.display());
    }
}

/// A search looks at the ends of slots only. Timers, alarms and answers of shorter lives come and go between these.
#[test]
fn nobody_waits_for_nothing_at_any_time_of_a_slot() {
    for base in ["reference", "corrected"] {
        let rules = toml::Table::from_iter([("base".to_owned(), base.into())]);
        for seed in 1..=25 {
            let drawn = draw(&Frame { rules: rules.clone(), rounds: Some(2), ..Frame::default() }, seed);
            let (seeds, onlooker) = (SeedTree::new(1), Onlooker::default());
            drawn.crypto.during(|| {
                let plan = drawn.plan(&drawn.testnet(seeds), seeds);
                let mut stage = InlineStage::new(&plan, vec![Box::new(onlooker.clone())]);
                for step in 1..=6_000 {
                    stage.run_until(plan.start + Duration::from_millis(170 * step));
                }
            });
            assert_eq!(onlooker.stuck(), [] as [&str; 0], "seed {seed}, {base}");
        }
    }
}

/// A node left its chain and kept asking nobody: it waited for peers that it had asked already.
#[test]
fn a_node_that_left_its_chain_goes_on_though_all_its_peers_are_on_others() {
    let text = "version = 1\nrounds = 30\ncrypto = \"modelled\"\n[network]\ndelegates = 50\ngossip = \"reference\"\n\
                [[fault]]\nkind = \"partition\"\nshare = { share = 0.5 }\nfrom = { seconds = 200 }\nuntil = { after = 1600 }\n\
                [[assert]]\nalways = \"invariant no wait without a waker\"\n";
    let scenario = Scenario::parse(text, Path::new("halves.toml")).expect("it is valid");
    assert_eq!(stuck(&scenario, 12, StageKind::Inline), [] as [&str; 0]);
}

/// What an onlooker sees of each actor, in words.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Observer for Seen {
    fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {}

    fn look(&mut self, outlook: &Outlook<'_>) {
        let mut seen = self.0.lock().expect("nobody panics");
        for node in outlook.up() {
            let (now, mut waits) = (outlook.local(node), Vec::new());
            outlook.peer(node).expect("each node has a peer").waits(now, &mut waits);
            outlook.delegate(node).expect("each node has a delegate").waits(now, &mut waits);
            let to_come = [Role::Peer, Role::Delegate].map(|role| {
                let mut all: Vec<String> =
                    outlook.to_come(ActorId { node, role }).map(|to_come| format!("{to_come:?}")).collect();
                all.sort();
                all
            });
            seen.push(format!("{} {node} {now}: {waits:?}, {to_come:?}", outlook.now()));
        }
    }

    fn looks(&self) -> bool {
        true
    }
}

#[test]
fn both_stages_show_the_same_at_the_end_of_each_slot() {
    let text = "version = 1\nrounds = 3\ncrypto = \"modelled\"\n[network]\ndelegates = 5\nloss = 0.1\n\
                [[fault]]\nkind = \"crash\"\nnodes = [1]\nfrom = { seconds = 30 }\nuntil = { after = 40 }\n\
                [[fault]]\nkind = \"slow\"\nnodes = [2]\nstep_ms = 700\nfrom = { seconds = 10 }\nuntil = { after = 60 }\n";
    let scenario = Scenario::parse(text, Path::new("looked-at.toml")).expect("it is valid");
    let [inline, ractor] = [StageKind::Inline, StageKind::Ractor].map(|stage| {
        let (seen, seeds) = (Seen::default(), SeedTree::new(1));
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        scenario.play(&plan, stage, vec![Box::new(seen.clone())], |_: Height| {}).expect("no actor dies");
        let seen = seen.0.lock().expect("nobody panics").clone();
        seen
    });
    assert!(inline.len() > 70 && inline.iter().any(|line| line.contains("at: None")), "{}", inline.join("\n"));
    assert_eq!(inline, ractor);
}
