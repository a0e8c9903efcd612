//! Going back: after a revert the same inputs give the same events, whatever goes on in the network, on both stages, and
//! whether the moment was kept or has to be played again.

use crate::{by_name, support::scenarios};
use dposlab::{
    actors::{Event, NodeId, SimTime, message::Transactions},
    check::swarm::{Frame, draw},
    protocol::{Arktoshi, Nonce, Transaction, slots::Slots},
    scenario::{Scenario, StageKind, Testnet, run::among_actors},
    sim::{
        Intervention, NetworkEvent, Observer, Outcome, Plan, SeedTree, Stage,
        intervention::{ReorgError, ReorgRequest, ReturnedTransactions},
        line::Line,
        snapshots::{MOMENTS_MAX, SnapshotId, SnapshotInfo},
    },
};
use proptest::{prelude::*, sample::Index, test_runner::Config};
use std::{
    path::Path,
    sync::{Arc, Mutex},
};

/// All that is told, as the lines of a trace. Clones share it.
#[derive(Clone)]
struct Told(Arc<Mutex<Vec<String>>>, Slots);

impl Told {
    fn of(plan: &Plan) -> Self {
        Self(Arc::default(), plan.tree.slots())
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn push(&self, line: &Line<'_>) {
        self.0.lock().unwrap().push(serde_json::to_string(line).unwrap());
    }
}

impl Observer for Told {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.push(&Line::of_event(now, node, event, &self.1));
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        self.push(&Line::of_network(now, event, &self.1));
    }
}

async fn stage(plan: &Plan, kind: StageKind, told: &Told) -> Stage {
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(told.clone())];
    match kind {
        StageKind::Inline => Stage::inline(plan, observers),
        StageKind::Ractor => Stage::ractor(plan, observers).await.expect("names of its own"),
    }
}

async fn play(stage: &mut Stage, slots: u32) {
    let now = stage.world().now();
    let end = now + std::time::Duration::from_secs(8 * u64::from(slots));
    while stage.step(end).await.unwrap() {}
    stage.rest_until(end);
}

async fn take(stage: &mut Stage) -> SnapshotInfo {
    match stage.intervene(Intervention::TakeSnapshot { name: None }).await.unwrap() {
        Outcome::Snapshot(Some(info)) => info,
        other => panic!("there is room for it: {other:?}"),
    }
}

async fn revert(stage: &mut Stage, to: SnapshotId) -> Option<SnapshotInfo> {
    match stage.intervene(Intervention::Revert { to }).await.unwrap() {
        Outcome::Snapshot(info) => info,
        other => panic!("{other:?}"),
    }
}

/// Plays some slots, takes a snapshot, goes on, and goes back twice. Answers what was told after the snapshot, each time.
fn thrice(plan: &Plan, kind: StageKind, before: u32, after: u32, room: usize) -> [Vec<String>; 3] {
    among_actors(async {
        let told = Told::of(plan);
        let mut stage = stage(plan, kind, &told).await;
        stage.keep_moments(room);
        play(&mut stage, before).await;
        let info = take(&mut stage).await;
        // The moment of another one leaves no room for that of the first.
        play(&mut stage, 1).await;
        take(&mut stage).await;
        assert!(revert(&mut stage, info.id).await.is_some());
        told.take();
        let mut ways = Vec::new();
        for _ in 0..3 {
            play(&mut stage, after).await;
            ways.push(told.take());
            assert_eq!(revert(&mut stage, info.id).await, Some(info.clone()));
            assert_eq!((stage.world().now(), stage.world().delivered()), (info.at, info.delivered));
            told.take();
        }
        stage.stop().await;
        ways.try_into().expect("three")
    })
}

fn hold(plan: &Plan, kind: StageKind, slots: [u32; 2], room: usize, name: &str) {
    let [first, second, third] = thrice(plan, kind, slots[0], slots[1], room);
    assert!(first.len() > slots[1] as usize, "{name}: or nothing was compared");
    for (index, (line, again)) in first.iter().zip(&second).enumerate() {
        assert_eq!(line, again, "{name} on {kind:?}, event {index} of {}", first.len());
    }
    assert!(first == second && second == third, "{name} on {kind:?}: one way is longer, or the third differs");
}

#[test]
#[ignore = "long: CI runs it"]
fn what_follows_a_revert_is_what_followed_the_snapshot() {
    for (number, file) in scenarios().into_iter().enumerate() {
        let scenario = Scenario::load(&file).expect("shipped scenarios are valid");
        if scenario.network.nodes() > 150 {
            continue;
        }
        let seeds = SeedTree::new(7);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let slots = [20 + 4 * number as u32, 20];
        hold(&plan, StageKind::Inline, slots, usize::MAX, &file.display().to_string());
        if number % 12 == 0 {
            hold(&plan, StageKind::Ractor, slots, usize::MAX, &file.display().to_string());
        }
    }
}

#[test]
fn it_is_the_same_where_the_moment_has_to_be_played_again() {
    for seed in 0..40 {
        let scenario = match seed % 2 {
            0 => draw(&Frame { delegates: Some(7), rounds: Some(9), ..Frame::default() }, seed),
            _ => Scenario { rounds: 9, ..by_name::drawn(seed) },
        };
        let seeds = SeedTree::new(seed);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let kind = if seed % 6 == 0 { StageKind::Ractor } else { StageKind::Inline };
        let (kept, again) = (thrice(&plan, kind, 15, 10, usize::MAX), thrice(&plan, kind, 15, 10, 0));
        for (way, (kept, again)) in kept.iter().zip(&again).enumerate() {
            let differs = kept.iter().zip(again).position(|(kept, again)| kept != again);
            let differs = differs.map(|line| (&kept[line], &again[line]));
            assert_eq!(differs, None, "seed {seed} on {kind:?}, way {way}: a moment played again is another one");
            assert_eq!(kept.len(), again.len(), "seed {seed} on {kind:?}, way {way}");
        }
    }
}

/// The bytes that are said to be kept are those of the moments that are kept, also of one that was made again.
#[test]
fn the_bytes_of_moments_are_added_up_rightly() {
    let scenario = Scenario::parse(
        "version = 1\ndescription = \"d\"\nrounds = 9\ncrypto = \"modelled\"\n[network]\ndelegates = 5\n",
        Path::new("a test"),
    );
    let (scenario, seeds) = (scenario.expect("it is one"), SeedTree::new(1));
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    among_actors(async {
        let mut stage = Stage::inline(&plan, Vec::new());
        for number in 1..=6 {
            stage.play_to(SimTime::from_micros(number * 20_000_000), u64::MAX).await.expect("nobody dies");
            stage.intervene(Intervention::TakeSnapshot { name: None }).await.expect("nobody dies");
        }
        let of_moments = |stage: &Stage| {
            let moments = (1..=6).filter_map(|id| stage.snapshots().moment(SnapshotId(id)));
            moments.fold((0, 0), |(count, bytes), moment| (count + 1, bytes + moment.bytes()))
        };
        let (count, bytes) = of_moments(&stage);
        assert_eq!((count, stage.snapshots().bytes()), (6, bytes));
        stage.keep_moments(bytes / 2);
        let kept = of_moments(&stage).0;
        assert!((1..6).contains(&kept), "{kept} of 6 moments are kept");
        for to in [1, 2, 3, 4, 5, 6, 1, 4] {
            stage.intervene(Intervention::Revert { to: SnapshotId(to) }).await.expect("nobody dies");
            let (_, there) = of_moments(&stage);
            assert_eq!(stage.snapshots().bytes(), there, "after going back to {to}");
            assert!(there <= bytes / 2, "{there} bytes, allowed are {}", bytes / 2);
        }
    });
}

/// One thing that somebody does to a run.
#[derive(Clone, Debug)]
enum Deed {
    Play(u32),
    Submit(usize),
    Take,
    Revert(Index),
    Delete(Index),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        3 => (1..12_u32).prop_map(Deed::Play),
        3 => (0..3_usize).prop_map(Deed::Submit),
        2 => Just(Deed::Take),
        2 => any::<Index>().prop_map(Deed::Revert),
        1 => any::<Index>().prop_map(Deed::Delete),
    ];
    prop::collection::vec(deed, 5..60)
}

/// A run as it can be seen from outside: its clock, the tip of every node, and the pools by the next blocks.
fn sight(stage: &Stage, nodes: u32) -> (SimTime, u64, Vec<String>) {
    let world = stage.world();
    let tips = (0..nodes).map(|node| world.tips().of(NodeId(node)).id().to_string()).collect();
    (world.now(), world.delivered(), tips)
}

/// A transfer of an account with the nonce that follows those of the chain and of what was handed in since.
fn transfer(testnet: &Testnet, stage: &Stage, plan: &Plan, account: usize, pending: u64) -> Transactions {
    let applied = plan.tree.applied(stage.world().best());
    let account = &testnet.accounts[account];
    let nonce = applied.state.wallet(&account.address).map_or(0, |wallet| wallet.nonce.0);
    let transfer = Transaction::transfer(account.address, Arktoshi::coins(1)).network(23);
    [Arc::new(transfer.nonce(Nonce(nonce + 1 + pending)).sign(&account.keys))].into_iter().collect()
}

proptest! {
    #![proptest_config(Config { cases: 40, ..Config::default() })]

    /// Any snapshot, any number of times, in any order: the run is where it was when the snapshot was taken.
    #[test]
    fn every_snapshot_can_be_gone_back_to_in_any_order(deeds in deeds(), keep in any::<bool>()) {
        let text = "version = 1\nrounds = 9\n[network]\ndelegates = 4\n";
        let scenario = Scenario::parse(text, Path::new("four.toml")).expect("it is valid");
        let seeds = SeedTree::new(3);
        let testnet = scenario.testnet(seeds);
        let plan = scenario.plan(&testnet, seeds);
        among_actors(async {
            let mut stage = stage(&plan, StageKind::Inline, &Told::of(&plan)).await;
            stage.keep_moments(if keep { usize::MAX } else { 0 });
            let (mut taken, mut pending) = (Vec::new(), 0);
            for deed in deeds {
                match deed {
                    Deed::Play(slots) => play(&mut stage, slots).await,
                    Deed::Submit(account) => {
                        let transactions = transfer(&testnet, &stage, &plan, account, pending % 3);
                        pending += 1;
                        stage.intervene(Intervention::Submit { node: NodeId(0), transactions }).await.unwrap();
                    }
                    Deed::Take => {
                        let info = take(&mut stage).await;
                        let pool = next_blocks(&mut stage).await;
                        taken.push((info.id, sight(&stage, 4), pool));
                    }
                    Deed::Revert(_) | Deed::Delete(_) if taken.is_empty() => {}
                    Deed::Revert(which) => {
                        let (id, seen, pool) = which.get(&taken);
                        prop_assert!(revert(&mut stage, *id).await.is_some());
                        prop_assert_eq!(&sight(&stage, 4), seen);
                        prop_assert_eq!(&next_blocks(&mut stage).await, pool);
                    }
                    Deed::Delete(which) => {
                        let (id, ..) = taken.remove(which.index(taken.len()));
                        stage.intervene(Intervention::DeleteSnapshot { id }).await.unwrap();
                        prop_assert!(revert(&mut stage, id).await.is_none());
                    }
                }
                let listed: Vec<SnapshotId> = stage.snapshots().list().map(|info| info.id).collect();
                let all: Vec<SnapshotId> = taken.iter().map(|(id, ..)| *id).collect();
                prop_assert_eq!(listed, all);
                let kept = stage.snapshots().count_kept();
                prop_assert!(kept <= 2 * taken.len(), "{} kept for {}", kept, taken.len());
            }
            Ok(())
        })?;
    }
}

/// The transactions in the next three blocks of a run, and their ids: played in a copy, so that the run stays where it is.
async fn next_blocks(stage: &mut Stage) -> Vec<String> {
    let mut copy = stage.copy().await.unwrap();
    let until = copy.world().now() + std::time::Duration::from_secs(24);
    copy.run_until(until);
    let (mut at, mut blocks) = (Some(copy.world().best().clone()), Vec::new());
    while let Some(link) = at.filter(|link| link.height() > stage.world().best().height()) {
        blocks.push(format!("{} {}", link.id(), link.block().transactions.len()));
        at = link.parent();
    }
    blocks
}

/// A thousand snapshots keep less than their limit, and each can be gone back to.
#[test]
fn a_thousand_snapshots_of_a_large_network_keep_to_their_limit() {
    let text = "version = 1\nrounds = 9\ncrypto = \"modelled\"\n[network]\ndelegates = 51\n";
    let scenario = Scenario::parse(text, Path::new("many.toml")).expect("it is valid");
    let seeds = SeedTree::new(1);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    among_actors(async {
        let mut stage = stage(&plan, StageKind::Inline, &Told::of(&plan)).await;
        let mut all = Vec::new();
        for _ in 0..1_000 {
            play(&mut stage, 1).await;
            all.push((take(&mut stage).await.id, sight(&stage, 51)));
        }
        let kept = stage.snapshots().bytes();
        assert!(kept <= MOMENTS_MAX && kept > MOMENTS_MAX / 2, "{kept} bytes of moments are kept");
        for (id, seen) in all.iter().step_by(97) {
            assert!(revert(&mut stage, *id).await.is_some());
            assert_eq!(&sight(&stage, 51), seen);
        }
    });
}

/// Whatever was deleted is gone, and what came in before it is known all the same.
#[test]
fn deleted_snapshots_leave_nothing_behind() {
    let text = "version = 1\nrounds = 9\ncrypto = \"modelled\"\n[network]\ndelegates = 3\n";
    let scenario = Scenario::parse(text, Path::new("three.toml")).expect("it is valid");
    let seeds = SeedTree::new(1);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    among_actors(async {
        let mut stage = stage(&plan, StageKind::Inline, &Told::of(&plan)).await;
        stage.keep_moments(0);
        let first = take(&mut stage).await.id;
        let mut others = Vec::new();
        for _ in 0..3_000 {
            stage.intervene(Intervention::EndFault { id: 0 }).await.unwrap();
            others.push(take(&mut stage).await.id);
        }
        // The oldest first, the newest first, and from the middle.
        let (old, rest) = others.split_at(1_000);
        let (middle, new) = rest.split_at(1_000);
        for id in old.iter().chain(new.iter().rev()).chain(&middle[500..]).chain(&middle[..500]) {
            stage.intervene(Intervention::DeleteSnapshot { id: *id }).await.unwrap();
        }
        assert_eq!((stage.snapshots().count_kept(), stage.snapshots().count_inputs()), (1, 3_000));
        assert!(revert(&mut stage, first).await.is_some());
        assert_eq!((stage.snapshots().count_kept(), stage.snapshots().count_inputs()), (1, 0));
    });
}

#[test]
fn a_snapshot_that_was_never_taken_is_none() {
    let scenario = Scenario::parse("version = 1\nrounds = 1\n[network]\ndelegates = 3\n", Path::new("three.toml"));
    let (scenario, seeds) = (scenario.expect("it is valid"), SeedTree::new(1));
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    among_actors(async {
        let mut stage = stage(&plan, StageKind::Inline, &Told::of(&plan)).await;
        play(&mut stage, 2).await;
        let before = sight(&stage, 3);
        for id in [0, 1, u64::MAX] {
            assert_eq!(revert(&mut stage, SnapshotId(id)).await, None);
        }
        assert_eq!(sight(&stage, 3), before);
    });
}

/// The counts of clients' transactions go back as well, also where the moment is played again from the beginning.
#[test]
fn counts_of_clients_go_back() {
    let text =
        "version = 1\nrounds = 90\n[network]\ndelegates = 4\n[[workload]]\nkind = \"generate\"\nper_second = 1\n";
    let scenario = Scenario::parse(text, Path::new("busy.toml")).expect("it is valid");
    let seeds = SeedTree::new(5);
    for room in [usize::MAX, 0] {
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let counts = || plan.sources[0].tally.counts();
        among_actors(async {
            let mut stage = stage(&plan, StageKind::Inline, &Told::of(&plan)).await;
            stage.keep_moments(room);
            play(&mut stage, 20).await;
            let (info, was) = (take(&mut stage).await, counts());
            play(&mut stage, 10).await;
            let (later, then) = (take(&mut stage).await, counts());
            assert!(was.accepted > 0 && then.accepted > was.accepted, "or nothing is compared: {was:?} {then:?}");
            for (id, counted) in [(info.id, &was), (later.id, &then), (info.id, &was)] {
                revert(&mut stage, id).await.expect("it was taken");
                assert_eq!(&counts(), counted, "{room} bytes kept");
            }
            play(&mut stage, 10).await;
            assert_eq!(counts(), then);
        });
    }
}

/// Where a rule says which blocks are final, a requested reorganisation leaves none of them, whichever node it begins at.
#[test]
fn no_reorganisation_leaves_a_final_block() {
    let text = "version = 1\nrounds = 30\ncrypto = 'modelled'\n[network]\ndelegates = 7\n[rules]\nbase = 'lisk'\n\
                [[fault]]\nkind = 'partition'\ngroups = [[0, 1]]\nfrom = { seconds = 240 }\nuntil = { seconds = 320 }\n";
    let (scenario, seeds) = (Scenario::parse(text, Path::new("a test")).expect("it is one"), SeedTree::new(1));
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    among_actors(async {
        let mut stage = Stage::inline(&plan, Vec::new());
        let final_of = |stage: &Stage, node: u32| {
            plan.tree.applied(stage.world().tips().of(NodeId(node))).state.finality().height()
        };
        let mut bound = 0;
        for (seconds, observed) in [(200, 0), (300, 3), (300, 0), (420, 0)] {
            stage.play_to(plan.start + std::time::Duration::from_secs(seconds), u64::MAX).await.expect("nobody dies");
            let asked = |depth| {
                let asked = ReorgRequest { node: NodeId(observed), depth, transactions: ReturnedTransactions::All };
                Intervention::Reorganise(asked.into())
            };
            let finals: Vec<_> = (0..7).map(|node| final_of(&stage, node)).collect();
            let Outcome::Reorganised(refused) = stage.intervene(asked(1_000)).await.expect("nobody dies") else {
                panic!()
            };
            let Err(why) = *refused else { panic!("it left final blocks: {finals:?}") };
            let ReorgError::Depth { deepest, last_final, .. } = why else { panic!("{why}") };
            assert!(last_final >= finals[observed as usize], "{last_final}, and final were {finals:?}");
            let words = format!("above the final block at height {last_final}");
            assert_eq!(why.to_string().contains(&words), last_final > plan.tip.height(), "{why}");
            bound += usize::from(last_final > plan.tip.height());
            let Outcome::Reorganised(done) = stage.intervene(asked(deepest)).await.expect("nobody dies") else {
                panic!()
            };
            assert_eq!(done.map(|done| done.common.height()).ok(), Some(last_final));
            for node in 0..7 {
                let (now, was) = (stage.world().tips().of(NodeId(node)), finals[node as usize]);
                assert!(now.height() >= was, "{node} went below its final block at {was}");
            }
        }
        assert!(bound >= 2, "{bound} of four were bound by a final block");
    });
}
