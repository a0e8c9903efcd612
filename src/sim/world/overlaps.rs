//! Faults that overlap on one node: at each instant the node is as the faults in force say, nothing of them is left when they are
//! over, and a later fault does what it does alone.
//!
//! The world is driven without a network: faults begin and end, and actors hear what the world tells them of it. So every pair
//! of kinds can be tried in every way.

use super::{NetworkEvent, Observer, World, faults::State};
use crate::{
    actors::{Event, HostedActor, NodeId, SimTime, Stimulus},
    ledger::{BlockTree, Rules},
    protocol::{KeyPair, NetworkConfig, Timestamp, crypto::CryptoMode},
    sim::{
        Fault, FaultKind, NodePlan, Plan, SeedTree, Trigger,
        fault::{Lasting, NodeRef, Nodes},
        strategy::SpareForger,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    path::Path,
    sync::{Arc, LazyLock, Mutex},
};

/// The node that everything happens to. The others are there for partitions and the like.
const NODE: NodeId = NodeId(1);
const NODES: usize = 5;
/// Seconds at which one fault begins and ends, and the other: inside, left, right, with equal ends, and at equal instants.
const WAYS: [[u32; 4]; 7] = [
    [10, 40, 20, 30],
    [10, 30, 20, 40],
    [20, 40, 10, 30],
    [20, 30, 10, 40],
    [10, 40, 20, 40],
    [10, 40, 10, 30],
    [10, 40, 10, 40],
];

static TREE: LazyLock<Arc<BlockTree>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings/network");
    let config = NetworkConfig::load(&folder, CryptoMode::Real).expect("it is there");
    Arc::new(BlockTree::new(Arc::new(config), Arc::new(Rules::reference())).expect("its genesis block holds"))
});

/// One of each kind at the node, and a second one of those that differ by more than numbers.
static KINDS: LazyLock<Vec<FaultKind>> = LazyLock::new(|| {
    let sender = KeyPair::from_passphrase("a sender", CryptoMode::Real).public().address(23);
    let more = ["kind = 'crash'\nnodes = [1]", "kind = 'restart'\nnodes = [1]\nkeep_pool = false"];
    let more = more.into_iter().chain(["kind = 'forge-out-of-turn'\ndelegates = [1]\nevery = 2"]);
    let all = FaultKind::examples().into_iter().chain(more);
    let kinds = all.map(|text| {
        let text = text.replace("account_2", &sender.to_string());
        let mut kind: FaultKind = toml::from_str(&text).expect("it is an example");
        let is_spare = kind.strategy::<SpareForger>().is_some();
        if !matches!(kind, FaultKind::Partition(_) | FaultKind::Eclipse(_)) {
            // A spare forger forges with the key of another delegate.
            let at_node = kind.nodes_mut().into_iter().filter(|(key, _)| !is_spare || *key == "nodes");
            at_node.for_each(|(_, nodes)| *nodes = Nodes::List(vec![NodeRef::Number(NODE.0)]));
        }
        kind
    });
    // Actions of clients happen at no node.
    kinds.filter(|kind| kind.by_clients().is_none()).collect()
});

/// The events, without the number of the fault.
#[derive(Clone, Default)]
struct EventTexts(Arc<Mutex<Vec<String>>>);

impl EventTexts {
    fn take(&self) -> Vec<String> {
        mem::take(&mut self.0.lock().expect("no thread panics while holding it"))
    }

    fn tell(&self, what: String) {
        self.0.lock().expect("no thread panics while holding it").push(what);
    }
}

impl Observer for EventTexts {
    fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {}

    fn observe_network(&mut self, _: SimTime, event: &NetworkEvent<'_>) {
        self.tell(match event {
            NetworkEvent::FaultBegan { kind, .. } => format!("{kind} began"),
            NetworkEvent::FaultEnded { kind, .. } => format!("{kind} ended"),
            other => format!("{other:?}"),
        });
    }
}

/// A world whose actors hear of faults and of nothing else.
struct Stand {
    world: World,
    actors: Vec<HostedActor>,
    told: EventTexts,
    kinds: Vec<FaultKind>,
}

fn at(second: u32) -> SimTime {
    SimTime::from_seconds(Timestamp(1_000 + second))
}

impl Stand {
    fn new(kinds: &[&FaultKind]) -> Self {
        let forger =
            |node| NodePlan { forger: Some(KeyPair::from_passphrase(&format!("forger {node}"), CryptoMode::Real)) };
        let (tip, nodes) = (TREE.genesis().clone(), (0..NODES).map(forger).collect());
        let mut plan = Plan::new(TREE.clone(), tip, nodes, SeedTree::new(1), at(0));
        let never = || Trigger::Slot(u32::MAX / 16);
        let fault = |kind: &&FaultKind| Fault { kind: (*kind).clone(), from: never(), until: None };
        plan.faults = kinds.iter().map(fault).collect();
        let told = EventTexts::default();
        // Without actors nothing starts, so the queue holds what faults put there.
        let world = World::new(&plan, &mut [], vec![Box::new(told.clone())]);
        let actors = plan.actors().into_iter().map(|(_, actor)| actor).collect();
        Self { world, actors, told, kinds: kinds.iter().map(|kind| (*kind).clone()).collect() }
    }

    /// A fault begins or ends, and whom that concerns hears of it.
    fn turn(&mut self, second: u32, fault: usize, begins: bool) {
        self.world.now = at(second);
        if begins {
            self.world.begin_fault(fault)
        } else {
            self.world.end_fault(fault)
        }
        if begins && self.kinds[fault].facts().lasting != Lasting::Spell {
            self.world.end_fault(fault);
        }
        while let Some(delivery) = self.world.next(at(second)) {
            let (index, to, now) = (delivery.index, delivery.to, delivery.now);
            let stimulus = delivery.what.stimulus();
            if !matches!(stimulus, Stimulus::Input(_)) {
                self.told.tell(format!("{to:?} {stimulus:?}"));
                // Its effects are not carried out.
                self.actors[index].take(now, stimulus, &mut Vec::new());
            }
        }
    }

    /// All that faults have changed, at this second.
    fn shown(&self, second: u32) -> String {
        let nodes = (0..NODES as u32).map(NodeId).map(|node| {
            let departures = (0..3).map(|role| self.actors[node.0 as usize * 3 + role].departures());
            let clock = [second, second + 50].map(|second| self.world.nodes.clock(node).local(at(second)));
            let ahead = [0, 50]
                .iter()
                .zip(clock)
                .map(|(more, local)| local.micros() as i64 - at(second + more).micros() as i64);
            let (ahead, departures) = (ahead.collect::<Vec<_>>(), departures.collect::<Vec<_>>());
            let cut = (0..NODES as u32).map(NodeId).filter(|other| self.is_cut(node, *other)).collect::<Vec<_>>();
            let state = self.world.nodes.shown(node);
            format!("{node}: {state}, ahead {ahead:?}, cut from {cut:?}, {departures:?}\n")
        });
        let nodes = nodes.collect::<String>();
        format!("{nodes}messages {}\n{:?}", self.world.network.interference.is_idle(), self.world.faults.leftovers())
    }

    fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.world.network.interference.separates(from, to)
    }
}

/// The faults in force, and whether a crash keeps the node down.
#[derive(Default)]
struct Model {
    on: BTreeMap<usize, (u32, FaultKind)>,
    crashed: bool,
    /// A crash that is over would have taken the pool.
    pool_gone: bool,
    pools_lost: usize,
}

impl Model {
    fn turn(&mut self, second: u32, fault: usize, kind: &FaultKind, begins: bool) {
        let lasts = kind.facts().lasting == Lasting::Spell;
        match begins {
            true if lasts => drop(self.on.insert(fault, (second, kind.clone()))),
            true => {}
            false if self.on.remove(&fault).is_none() => return,
            false => {}
        }
        match (kind, begins) {
            (FaultKind::Crash(_), true) => self.crashed = true,
            (FaultKind::Crash(crash), false) => {
                let is_kept_down = self.on.values().any(|(_, kind)| matches!(kind, FaultKind::Crash(_)));
                self.pool_gone |= !crash.keep_pool;
                if !is_kept_down {
                    self.come_back();
                }
            }
            (FaultKind::Restart(restart), true) => {
                self.crashed = true;
                self.pool_gone |= !restart.keep_pool;
                self.come_back();
            }
            (FaultKind::Heal(_), true) => self.on.retain(|_, (_, kind)| {
                !matches!(kind, FaultKind::Partition(_) | FaultKind::Isolate(_) | FaultKind::Eclipse(_))
            }),
            _ => {}
        }
    }

    /// One crash that would have taken the pool is enough; what ends while the node runs takes nothing.
    fn come_back(&mut self) {
        self.pools_lost += usize::from(self.crashed && self.pool_gone);
        (self.crashed, self.pool_gone) = (false, false);
    }

    fn check(&self, stand: &Stand, second: u32, why: &str) {
        let kinds = || self.on.values().map(|(_, kind)| kind);
        let nodes = &stand.world.nodes;
        let pauses = kinds().filter(|kind| matches!(kind, FaultKind::Pause(_))).count();
        assert_eq!((nodes.is_up(NODE), nodes.is_live(NODE)), (!self.crashed, !self.crashed && pauses == 0), "{why}");
        let step: u32 = kinds().map(|kind| if let FaultKind::Slow(slow) = kind { slow.step_ms } else { 0 }).sum();
        assert_eq!(nodes.step(NODE).as_millis(), u128::from(step), "{why}");
        let ahead: i64 = self
            .on
            .values()
            .map(|(since, kind)| match kind {
                FaultKind::ClockSkew(skew) => {
                    skew.offset_ms * 1_000 + i64::from(skew.drift_ppm) * i64::from(second - since)
                }
                _ => 0,
            })
            .sum();
        let local = nodes.clock(NODE).local(at(second)).micros() as i64;
        assert_eq!(local - at(second).micros() as i64, ahead, "{why}: the clock");
        if !self.crashed {
            let departs = |kind: &&FaultKind| matches!(kind, FaultKind::Offline(_) | FaultKind::Strategy(_));
            let first = NODE.0 as usize * 3;
            let found: usize = stand.actors[first..first + 3].iter().map(|actor| actor.departures().len()).sum();
            assert_eq!(found, kinds().filter(departs).count(), "{why}: departures");
        }
    }
}

/// The effect of each kind alone: the events while it is in force and after, and the state while it is in force.
type Alone = (Vec<String>, String, Vec<String>);

fn alone(stand: &mut Stand, second: u32, fault: usize) -> Alone {
    stand.told.take();
    stand.turn(second, fault, true);
    let (began, shown) = (stand.told.take(), stand.shown(second));
    if stand.kinds[fault].facts().lasting == Lasting::Spell {
        stand.turn(second + 7, fault, false);
    }
    (began, shown, stand.told.take())
}

#[test]
fn faults_that_overlap_leave_nothing_behind_for_a_later_one() {
    let untouched = Stand::new(&[]).shown(0);
    let each: Vec<Alone> = KINDS.iter().map(|kind| alone(&mut Stand::new(&[kind]), 100, 0)).collect();
    let (mut seen, kinds) = (BTreeSet::new(), &*KINDS);
    for ((one, other), way) in pairs(kinds.len()).flat_map(|pair| WAYS.into_iter().map(move |way| (pair, way))) {
        let [from, until, other_from, other_until] = way;
        let mut all = vec![&kinds[one], &kinds[other]];
        all.extend(kinds);
        let (mut stand, mut model) = (Stand::new(&all), Model::default());
        let mut turns = [(from, 0, true), (until, 0, false), (other_from, 1, true), (other_until, 1, false)];
        turns.sort_by_key(|(second, ..)| *second);
        let name = format!("{} {from}-{until}, {} {other_from}-{other_until}", all[0].name(), all[1].name());
        for (second, fault, begins) in turns {
            stand.turn(second, fault, begins);
            model.turn(second, fault, all[fault], begins);
            // At one instant all that begins or ends there has its turn first.
            model.check(&stand, second, &format!("{name} at {second}"));
        }
        let pools_lost = stand.told.take().iter().filter(|told| told.starts_with("PoolLost")).count();
        assert_eq!(pools_lost, model.pools_lost, "{name}");
        assert_eq!(stand.shown(0), untouched, "{name}");
        for (third, wanted) in each.iter().enumerate() {
            // Later and later, each for itself.
            let second = 100 + 10 * third as u32;
            let (began, shown, ended) = alone(&mut stand, second, third + 2);
            let name = format!("{name}, then {}", kinds[third].name());
            assert_eq!((&began, &shown, &ended), (&wanted.0, &wanted.1, &wanted.2), "{name}");
            assert_eq!(stand.shown(0), untouched, "{name}");
            seen.insert(kinds[third].name());
        }
    }
    assert!(seen.len() > 17, "every kind that the world carries out: {seen:?}");
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |one| (0..count).map(move |other| (one, other)))
}

/// A node keeps its chain through whatever faults it has, and a kept pool is the one that it had.
#[test]
fn a_crash_begins_the_actors_again_that_it_took_and_no_others() {
    for (text, taken) in [
        ("kind = 'crash'\nnodes = [1]\nkeep_pool = true", 2),
        ("kind = 'crash'\nnodes = [1]\nkeep_pool = false", 3),
        ("kind = 'restart'\nnodes = [1]\nkeep_pool = true", 2),
        ("kind = 'restart'\nnodes = [1]\nkeep_pool = false", 3),
    ] {
        let kind: FaultKind = toml::from_str(text).expect("it is a kind");
        let mut stand = Stand::new(&[&kind]);
        let tip = stand.world.tips().of(NODE).id();
        let (began, _, ended) = alone(&mut stand, 10, 0);
        let begun = began.iter().chain(&ended).filter(|told| told.ends_with("Begin"));
        assert_eq!(begun.count(), taken, "{text}");
        assert_eq!(stand.world.tips().of(NODE).id(), tip, "{text}");
        assert!(matches!(stand.world.faults.states(), [State::Over]), "{text}");
    }
}

/// A pool that is kept learns what begins and ends while its node is down.
#[test]
fn a_kept_pool_censors_exactly_while_its_fault_is_in_force() {
    let crash: FaultKind = toml::from_str("kind = 'crash'\nnodes = [1]").expect("it is a kind");
    let censor = KINDS.iter().find(|kind| kind.name() == "censor").expect("it is one");
    let mut stand = Stand::new(&[&crash, censor, &crash]);
    let pool = |stand: &Stand| stand.actors[NODE.0 as usize * 3 + 1].departures();
    stand.turn(10, 0, true);
    stand.turn(20, 1, true);
    stand.turn(30, 0, false);
    assert_eq!(pool(&stand), ["censor"], "it began while the node was down");
    stand.turn(40, 2, true);
    stand.turn(50, 1, false);
    stand.turn(60, 2, false);
    assert!(pool(&stand).is_empty(), "it ended while the node was down: {:?}", pool(&stand));
}

/// Two behaviours of one fault at one actor draw apart, and so do those of two equal faults and of two nodes.
#[test]
fn each_behaviour_has_a_name_of_its_own() {
    let spare: FaultKind =
        toml::from_str("kind = 'spare-forger'\ndelegates = [2, 3]\nnodes = [0, 1]").expect("it is a kind");
    let mut stand = Stand::new(&[&spare, &spare]);
    stand.turn(10, 0, true);
    stand.turn(10, 1, true);
    let behaviours = &stand.world.faults.behaviours;
    // The behaviours of a fault at two nodes differ by the node that draws.
    let names: BTreeSet<_> = behaviours.iter().map(|(_, to, layer)| (to.node, layer.name)).collect();
    assert_eq!((behaviours.len(), names.len()), (8, 8));
}
