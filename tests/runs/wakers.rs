//! No wait without a waker: whatever an actor waits for, something that is to come ends it (`check::wakers`).
//! Source: consensus.md 2.1, 3.5, 6.

use crate::support::{Onlooker, root};
use dposlab::{
    actors::{ActorId, Event, NodeId, Role, SimTime, Wake},
    check::{
        swarm::{Frame, draw, set},
        wakers,
    },
    ledger::rules::Gossip,
    protocol::Height,
    scenario::{Scenario, StageKind},
    sim::{Observer, Outlook, SeedTree, stage::inline::InlineStage, world::Sort},
};
use std::{
    collections::BTreeMap,
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

/// Plays a drawn scenario in steps of so many milliseconds, not slot by slot: timers, alarms and answers of short lives come and go
/// within a slot.
fn step_through(drawn: &Scenario, step: u64, steps: u64, observer: impl Observer + 'static) {
    let seeds = SeedTree::new(1);
    let plan = drawn.plan(&drawn.testnet(seeds), seeds);
    let mut stage = InlineStage::new(&plan, vec![Box::new(observer)]);
    for number in 1..=steps {
        stage.run_until(plan.start + Duration::from_millis(step * number));
    }
}

fn rules(base: &str) -> toml::Table {
    toml::Table::from_iter([("base".to_owned(), base.into())])
}

#[test]
fn nobody_waits_for_nothing_at_any_time_of_a_slot() {
    for base in ["reference", "corrected"] {
        for seed in 1..=16 {
            let onlooker = Onlooker::default();
            let drawn = draw(&Frame { rules: rules(base), delegates: Some(6), ..Frame::default() }, seed);
            step_through(&drawn, 170, 6_000, onlooker.clone());
            assert_eq!(onlooker.stuck(), [] as [&str; 0], "seed {seed}, {base}");
        }
    }
}

/// At each look takes away one event after the other, and counts by kind of wake-up: how often, and how often that was noticed.
#[derive(Clone, Default)]
struct Taker(Arc<Mutex<BTreeMap<&'static str, (u32, u32)>>>);

impl Observer for Taker {
    fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {}

    fn look(&mut self, outlook: &Outlook<'_>) {
        let mut counts = self.0.lock().expect("nobody panics");
        for (lost, rest) in (0..).map_while(|place| outlook.without(place)) {
            if let Sort::Wake(wake) = lost {
                let (taken, noticed) = counts.entry(kind(wake)).or_default();
                *taken += 1;
                *noticed += u32::from(!wakers::stuck(&rest).is_empty());
            }
        }
    }

    fn looks(&self) -> bool {
        true
    }
}

fn kind(wake: Wake) -> &'static str {
    match wake {
        Wake::Forge { .. } => "forge",
        Wake::Gossip(_) => "gossip",
        Wake::PingOver { .. } => "ping over",
        Wake::PingAgain { .. } => "ping again",
        Wake::WakeUp => "wake up",
        Wake::Unanswered => "unanswered",
        Wake::Throttled => "throttled",
        Wake::Discover => "discover",
        Wake::DiscoveryOver { .. } => "discovery over",
        Wake::Bundle => "bundle",
        Wake::Behaviour { .. } => "behaviour",
    }
}

/// Of each kind of wake-up, one that somebody needs is missed when it is gone; of those that are always needed, each.
#[test]
fn each_kind_of_wake_up_is_missed_when_it_is_gone() {
    let taker = Taker::default();
    for seed in 1..=12 {
        let base = ["reference", "corrected"][seed % 2];
        let mut drawn = draw(&Frame { rules: rules(base), delegates: Some(5), ..Frame::default() }, seed as u64);
        set(&mut drawn.rules, "node.transactions_in_order", seed % 3 == 0);
        set(&mut drawn.rules, "node.rate_limits", true);
        drawn.network.gossip = Some(Gossip::Reference);
        step_through(&drawn, 310, 2_000, taker.clone());
    }
    let mut counts = taker.0.lock().expect("nobody panics");
    // Those of behaviours are waited for by no honest actor.
    counts.remove("behaviour");
    let unnoticed: Vec<_> = counts.iter().filter(|(_, (_, noticed))| *noticed == 0).collect();
    assert!(counts.len() == 10 && unnoticed.is_empty(), "{counts:?}");
    for needed in ["discover", "throttled", "bundle"] {
        let (taken, noticed) = counts[needed];
        assert_eq!(taken, noticed, "{needed}");
    }
}

/// A node left its chain and asked its peers where they stand. All of them were on other chains, so it had nobody to download from,
/// and waited for nothing from then on.
#[test]
fn a_node_that_left_its_chain_goes_on_though_all_its_peers_are_on_others() {
    let text = "version = 1\nrounds = 6\ncrypto = \"modelled\"\n[network]\ndelegates = 50\ngossip = \"reference\"\n\
                [[fault]]\nkind = \"partition\"\nshare = { share = 0.5 }\nfrom = { seconds = 400 }\nuntil = { after = 1600 }\n";
    let scenario = Scenario::parse(text, Path::new("halves.toml")).expect("it is valid");
    for seed in [12, 85] {
        assert_eq!(stuck(&scenario, seed, StageKind::Inline), [] as [&str; 0], "seed {seed}");
    }
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

/// Pings take 1.8 s, so that a second of the slot finds one of them at work.
#[test]
fn a_delegate_switched_off_within_its_slot_plans_anew_when_it_is_back() {
    for second in 16..24 {
        let text = format!(
            "version = 1\nrounds = 4\n[network]\ndelegates = 8\nlatency = {{ distribution = \"constant\", ms = 900 }}\n\
             [[fault]]\nkind = \"offline\"\ndelegates = [0, 1, 2, 3]\nfrom = {{ seconds = {second} }}\nuntil = {{ seconds = 110 }}\n"
        );
        let scenario = Scenario::parse(&text, Path::new("switched-off")).unwrap_or_else(|why| panic!("{why}\n{text}"));
        assert_eq!(stuck(&scenario, 1, StageKind::Inline), [] as [&str; 0], "off from second {second}");
    }
}

#[test]
fn both_stages_show_the_same_at_the_end_of_each_slot() {
    let text = "version = 1\nrounds = 12\ncrypto = \"modelled\"\n[network]\ndelegates = 5\nloss = 0.1\n\
                [[fault]]\nkind = \"crash\"\nnodes = [1]\nfrom = { seconds = 30 }\nuntil = { after = 40 }\n\
                [[fault]]\nkind = \"slow\"\nnodes = [2]\nstep_ms = 2500\nfrom = { seconds = 10 }\nuntil = { after = 60 }\n";
    let scenario = Scenario::parse(text, Path::new("looked-at.toml")).expect("it is valid");
    let [inline, ractor] = [StageKind::Inline, StageKind::Ractor].map(|stage| {
        let (seen, seeds) = (Seen::default(), SeedTree::new(1));
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        scenario.play(&plan, stage, vec![Box::new(seen.clone())], |_: Height| {}).expect("no actor dies");
        std::mem::take(&mut *seen.0.lock().expect("nobody panics"))
    });
    assert!(inline.len() > 30 && inline.iter().any(|line| line.contains("at: None")), "{}", inline.join("\n"));
    assert_eq!(inline, ractor);
}
