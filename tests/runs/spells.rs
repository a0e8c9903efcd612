//! Faults one after the other and over one another: what is in force at an instant follows from the schedule alone, and when
//! all are over nothing of them is left.

use dposlab::{
    actors::{Event, Message, NodeId, SimTime},
    protocol::BlockId,
    scenario::{Scenario, StageKind},
    sim::{NetworkEvent, Observer, SeedTree, network::kind_of},
};
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex},
};

const NODES: u32 = 7;
/// Seconds in which things go wrong, from the first slot on.
const TROUBLE: u32 = 200;
/// The first slot begins so many seconds after genesis.
const FIRST_SLOT: u64 = 8;

fn scenario(rounds: u32, text: &str) -> Scenario {
    let head = format!(
        "version = 1\nrounds = {rounds}\ncrypto = \"modelled\"\n[rules]\nnode.retry_dropped_peers = true\n[network]\ndelegates = {NODES}\n\
         latency = {{ distribution = \"constant\", ms = 50 }}\n"
    );
    Scenario::parse(&format!("{head}{text}"), Path::new("spells")).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// From one second to another, both after the first slot began.
#[derive(Clone, Debug)]
struct Spell {
    from: u32,
    until: u32,
}

impl Spell {
    /// Returns whether it is in force; at its first and last instant both answers are right.
    fn holds(&self, micros: u64) -> Option<bool> {
        let [from, until] = [self.from, self.until].map(|second| (u64::from(second) + FIRST_SLOT) * 1_000_000);
        match micros {
            at if at == from || at == until => None,
            at => Some((from..until).contains(&at)),
        }
    }
}

fn spell() -> impl Strategy<Value = Spell> {
    (10..TROUBLE - 90, 2..90u32).prop_map(|(from, length)| Spell { from, until: from + length })
}

/// The events with their times in microseconds.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    /// Each thing that a node did.
    acts: Vec<(u64, NodeId)>,
    /// The time at which each node last took a block, and its height.
    last: BTreeMap<NodeId, (u64, u32)>,
    /// Nodes that went down (true) and came back.
    turns: Vec<(u64, NodeId, bool)>,
    /// Messages from node to node, and whether they were lost.
    sent: Vec<(u64, NodeId, NodeId, bool)>,
    /// By instant, sender, receiver and kind, when copies arrive; those that are lost never do.
    arrivals: BTreeMap<(u64, u32, u32, String), Vec<Option<u64>>>,
    end: u64,
}

impl Observer for Log {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut told = self.0.lock().expect("nobody panics with it");
        told.acts.push((now.micros(), node));
        told.end = now.micros();
        if let Event::BlockApplied(link) = event {
            told.last.insert(node, (now.micros(), link.height().0));
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut told = self.0.lock().expect("nobody panics with it");
        let now = now.micros();
        match event {
            NetworkEvent::NodeDown { node, .. } => told.turns.push((now, *node, true)),
            NetworkEvent::NodeUp { node } => told.turns.push((now, *node, false)),
            NetworkEvent::Sent { from, to, message, arrives } => {
                told.sent.push((now, from.node, to.node, false));
                told.arrives(now, from.node, to.node, message, Some(arrives.micros()));
            }
            NetworkEvent::Lost { from, to, message } => {
                told.sent.push((now, from.node, to.node, true));
                told.arrives(now, from.node, to.node, message, None);
            }
            _ => {}
        }
    }

    fn wants_messages(&self) -> bool {
        true
    }
}

impl Told {
    fn arrives(&mut self, now: u64, from: NodeId, to: NodeId, message: &Message, at: Option<u64>) {
        if let Some(kind) = kind_of(message).filter(|_| from != to) {
            let kind = serde_json::to_value(kind).expect("a name").as_str().expect("a text").to_owned();
            self.arrivals.entry((now, from.0, to.0, kind)).or_default().push(at);
        }
    }
}

fn play(scenario: &Scenario) -> Told {
    let (seeds, log) = (SeedTree::new(7), Log::default());
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    scenario.play(&plan, StageKind::Inline, vec![Box::new(log.clone())], |_| {}).expect("no actor dies");
    std::mem::take(&mut log.0.lock().expect("nobody panics with it"))
}

fn fault(kind: &str, rest: &str, spell: &Spell) -> String {
    let Spell { from, until } = spell;
    format!("[[fault]]\nkind = \"{kind}\"\n{rest}\nfrom = {{ seconds = {from} }}\nuntil = {{ seconds = {until} }}\n")
}

/// Once all is over, every node stands on the newest block and goes on taking blocks.
fn all_go_on(told: &Told) -> Result<(), TestCaseError> {
    prop_assert_eq!(told.last.len() as u32, NODES);
    let highest = told.last.values().map(|(_, height)| *height).max();
    for (node, (at, height)) in &told.last {
        prop_assert_eq!(Some(*height), highest, "{} took its last block at {} of {} µs", node, at, told.end);
    }
    Ok(())
}

/// A node that is slow, stands still, or has crashed.
#[derive(Clone, Debug)]
enum Trouble {
    Crash { keep_pool: bool },
    Pause,
    Slow { step_ms: u32 },
}

fn trouble() -> impl Strategy<Value = (u32, Trouble, Spell)> {
    let kind = prop_oneof![
        2 => any::<bool>().prop_map(|keep_pool| Trouble::Crash { keep_pool }),
        2 => Just(Trouble::Pause),
        2 => (50..1_500u32).prop_map(|step_ms| Trouble::Slow { step_ms }),
    ];
    // Few nodes, so that their spells meet.
    (0..3u32, kind, spell())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// A node does nothing while it is down, which it is from its first cause to the end of its last; afterwards it hears
    /// everything again, also when it is slow once more.
    #[test]
    fn a_node_is_down_as_long_as_its_spells_say(drawn in prop::collection::vec(trouble(), 1..10)) {
        let mut text = String::new();
        let mut downs: Vec<(NodeId, Spell)> = Vec::new();
        let mut crashes: Vec<(u32, Spell)> = Vec::new();
        for (node, kind, spell) in drawn {
            let nodes = format!("nodes = [{node}]\n");
            match kind {
                // A node that is down cannot crash, so the crashes of one node keep apart.
                Trouble::Crash { keep_pool } => {
                    let meets = |other: &Spell| spell.from <= other.until && other.from <= spell.until;
                    if crashes.iter().any(|(other, at)| *other == node && meets(at)) {
                        continue;
                    }
                    crashes.push((node, spell.clone()));
                    text += &fault("crash", &format!("{nodes}keep_pool = {keep_pool}"), &spell);
                    downs.push((NodeId(node), spell));
                }
                Trouble::Pause => {
                    text += &fault("pause", &nodes, &spell);
                    downs.push((NodeId(node), spell));
                }
                Trouble::Slow { step_ms } => text += &fault("slow", &format!("{nodes}step_ms = {step_ms}"), &spell),
            }
        }
        // In the end each has events that wait.
        text += &fault("slow", "nodes = [0, 1, 2]\nstep_ms = 40", &Spell { from: TROUBLE + 100, until: TROUBLE + 160 });
        // A node without peers looks for some after ten minutes.
        let told = play(&scenario(20, &text));
        let is_down = |node: NodeId, at: u64| {
            let of_node = downs.iter().filter(|(other, _)| *other == node);
            let held: Vec<_> = of_node.map(|(_, spell)| spell.holds(at)).collect();
            if held.contains(&Some(true)) { Some(true) } else if held.contains(&None) { None } else { Some(false) }
        };
        for (at, node) in &told.acts {
            prop_assert_ne!(is_down(*node, *at), Some(true), "{} acts at {} µs", node, at);
        }
        let mut live = BTreeSet::from_iter((0..NODES).map(NodeId));
        for (at, node, down) in &told.turns {
            prop_assert!(if *down { live.remove(node) } else { live.insert(*node) }, "{} is told twice at {}", node, at);
            prop_assert_eq!(is_down(*node, at + 1), Some(*down), "{} turns at {} µs", node, at);
        }
        let ends = downs.iter().filter(|(node, spell)| {
            let end = (u64::from(spell.until) + FIRST_SLOT) * 1_000_000;
            is_down(*node, end + 1) == Some(false)
        });
        let ends: BTreeSet<(NodeId, u32)> = ends.map(|(node, spell)| (*node, spell.until)).collect();
        prop_assert_eq!(told.turns.iter().filter(|(.., down)| !down).count(), ends.len());
        all_go_on(&told)?;
    }
}

/// Nodes that cannot reach the others.
#[derive(Clone, Debug)]
enum Cut {
    /// These are cut off from the others, and not from one another.
    Group(BTreeSet<u32>),
    /// Each of these is cut off from everybody.
    Singles(BTreeSet<u32>),
}

impl Cut {
    fn separates(&self, one: u32, other: u32) -> bool {
        match self {
            Self::Group(group) => group.contains(&one) != group.contains(&other),
            Self::Singles(nodes) => nodes.contains(&one) || nodes.contains(&other),
        }
    }
}

fn cut() -> impl Strategy<Value = (Cut, Spell)> {
    let some = || prop::collection::btree_set(0..NODES, 1..4);
    (prop_oneof![2 => some().prop_map(Cut::Group), 1 => some().prop_map(Cut::Singles)], spell())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// A message between two nodes is lost exactly while a cut stands between them; a heal ends all cuts that stand.
    #[test]
    fn messages_are_lost_while_a_cut_stands(
        cuts in prop::collection::vec(cut(), 1..6), heals in prop::collection::vec(12..TROUBLE, 0..4),
    ) {
        let mut text = String::new();
        for (cut, spell) in &cuts {
            let list = |nodes: &BTreeSet<u32>| format!("{:?}", nodes.iter().collect::<Vec<_>>());
            text += &match cut {
                Cut::Group(group) => fault("partition", &format!("groups = [{}]", list(group)), spell),
                Cut::Singles(nodes) => fault("isolate", &format!("nodes = {}", list(nodes)), spell),
            };
        }
        for at in &heals {
            text += &format!("[[fault]]\nkind = \"heal\"\nfrom = {{ seconds = {at} }}\n");
        }
        // A node without peers looks for some after ten minutes.
        let told = play(&scenario(20, &text));
        let standing: Vec<(&Cut, Spell)> = cuts
            .iter()
            .map(|(cut, spell)| {
                let healed = heals.iter().copied().filter(|at| (spell.from..spell.until).contains(at)).min();
                (cut, Spell { from: spell.from, until: healed.unwrap_or(spell.until) })
            })
            .collect();
        // Of one instant, what comes first is the queue's affair.
        let ends: BTreeSet<u32> = standing.iter().flat_map(|(_, spell)| [spell.from, spell.until]).collect();
        let is_edge = |at: u64| {
            let second = (at / 1_000_000).saturating_sub(FIRST_SLOT) as u32;
            at.is_multiple_of(1_000_000) && ends.contains(&second)
        };
        let mut lost_ones = 0;
        for (at, from, to, lost) in told.sent.iter().filter(|(at, from, to, _)| from != to && !is_edge(*at)) {
            let stands = |(cut, spell): &(&Cut, Spell)| cut.separates(from.0, to.0) && spell.holds(*at) == Some(true);
            prop_assert_eq!(*lost, standing.iter().any(stands), "{} to {} at {} µs", from, to, at);
            lost_ones += usize::from(*lost);
        }
        let longest = standing.iter().map(|(_, spell)| spell.until - spell.from).max();
        // Each side has forged a block or two of its own (consensus.md 2.2): how long that lasts is chance (3.5).
        prop_assert!(lost_ones > 0 || longest < Some(9), "or nothing was seen");
    }
}

/// The fate of some messages: those of these kinds, all without any, from these nodes to those.
#[derive(Clone, Debug)]
struct Rule {
    action: Action,
    kinds: BTreeSet<&'static str>,
    senders: Option<BTreeSet<u32>>,
    receivers: Option<BTreeSet<u32>>,
    spell: Spell,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Drop,
    Delay { by_ms: u32 },
    Duplicate { copies: u32, within_ms: u32 },
}

const KINDS: [&str; 7] = ["block", "transactions", "status", "blocks", "common-blocks", "peers", "hang-up"];

fn rule() -> impl Strategy<Value = Rule> {
    let action = prop_oneof![
        Just(Action::Drop),
        (1..900u32).prop_map(|by_ms| Action::Delay { by_ms }),
        (1..4u32, 0..900u32).prop_map(|(copies, within_ms)| Action::Duplicate { copies, within_ms }),
    ];
    let kinds = prop::collection::btree_set(prop::sample::select(KINDS.to_vec()), 0..3);
    let some = || prop::option::of(prop::collection::btree_set(0..NODES, 1..5));
    (action, kinds, some(), some(), spell()).prop_map(|(action, kinds, senders, receivers, spell)| Rule {
        action,
        kinds,
        senders,
        receivers,
        spell,
    })
}

impl Rule {
    fn text(&self) -> String {
        let (kind, mut rest) = match self.action {
            Action::Drop => ("drop", String::new()),
            Action::Delay { by_ms } => ("delay", format!("by_ms = {by_ms}\n")),
            Action::Duplicate { copies, within_ms } => {
                ("duplicate", format!("copies = {copies}\nwithin_ms = {within_ms}\n"))
            }
        };
        if !self.kinds.is_empty() {
            rest += &format!("messages = {:?}\n", self.kinds.iter().collect::<Vec<_>>());
        }
        for (name, nodes) in [("senders", &self.senders), ("receivers", &self.receivers)] {
            rest += &nodes.iter().map(|nodes| format!("{name} = {:?}\n", Vec::from_iter(nodes))).collect::<String>();
        }
        fault(kind, &rest, &self.spell)
    }

    fn concerns(&self, at: u64, from: u32, to: u32, kind: &str) -> Option<bool> {
        let of = |nodes: &Option<BTreeSet<u32>>, node| nodes.as_ref().is_none_or(|nodes| nodes.contains(&node));
        let named = self.kinds.is_empty() || self.kinds.contains(kind);
        let concerned = named && of(&self.senders, from) && of(&self.receivers, to);
        if concerned { self.spell.holds(at) } else { Some(false) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each message is lost, late or doubled as the rules in force say that concern it, and comes after 50 ms otherwise.
    #[test]
    fn messages_are_treated_as_the_rules_say(rules in prop::collection::vec(rule(), 1..6)) {
        let told = play(&scenario(4, &rules.iter().map(Rule::text).collect::<String>()));
        let mut treated = 0;
        for ((at, from, to, kind), arrivals) in &told.arrivals {
            let concerned: Option<Vec<bool>> = rules.iter().map(|rule| rule.concerns(*at, *from, *to, kind)).collect();
            // Of one instant, what comes first is the queue's affair.
            let Some(concerned) = concerned else { continue };
            let (mut due, mut copies, mut within, mut lost) = (at + 50_000, 1, 0, false);
            for rule in rules.iter().zip(&concerned).filter(|(_, concerned)| **concerned).map(|(rule, _)| rule) {
                treated += 1;
                match rule.action {
                    Action::Drop => lost = true,
                    Action::Delay { by_ms } => due += u64::from(by_ms) * 1_000,
                    Action::Duplicate { copies: more, within_ms } => {
                        copies += more as usize;
                        within = within.max(u64::from(within_ms) * 1_000);
                    }
                }
            }
            let what = format!("{kind} from {from} to {to} at {at}: {arrivals:?}");
            if lost {
                prop_assert!(arrivals.iter().all(Option::is_none), "{what}");
                continue;
            }
            let first = arrivals.iter().copied().min().flatten();
            prop_assert_eq!((first, arrivals.len() % copies), (Some(due), 0), "{}, {} copies", what, copies);
            let last = arrivals.iter().copied().max().flatten();
            prop_assert_eq!(last, Some(due + within), "{}", what);
        }
        // In nine seconds somebody asks somebody.
        let is_met = |rule: &Rule| {
            let all = rule.kinds.is_empty() && rule.senders.is_none() && rule.receivers.is_none();
            all && rule.spell.until - rule.spell.from > 9
        };
        prop_assert!(treated > 0 || !rules.iter().any(is_met), "or nothing was seen");
    }
}

/// Blocks that a node forges, by slot, and those that some node took.
#[derive(Clone, Default)]
struct Forged(Arc<Mutex<Blocks>>);

type Blocks = (BTreeMap<BlockId, u32>, BTreeSet<BlockId>, Vec<u32>);

impl Observer for Forged {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        let (forged, taken, slots) = &mut *self.0.lock().expect("nobody panics with it");
        match event {
            Event::BlockForged(block) if node == NodeId(4) => {
                let slot = block.header.timestamp.0 / 8;
                forged.insert(block.id, slot);
                slots.push(slot);
            }
            Event::BlockApplied(link) => drop(taken.insert(link.id())),
            _ => {}
        }
    }
}

/// Faults by which one delegate forges out of turn, over one another and one soon after the other: it forges once in each slot that
/// one in force names, and in no other but its own.
#[test]
fn who_forges_out_of_turn_does_so_once_in_a_slot() {
    let spells = [(2, 20, 100), (3, 60, 140), (5, 150, 197), (5, 198, 260), (4, 280, 340), (4, 280, 300)];
    let faults = spells.map(|(every, from, until)| {
        fault("forge-out-of-turn", &format!("delegates = [4]\nevery = {every}"), &Spell { from, until })
    });
    // Off, it hears none of its wake-ups, and goes on when it is back.
    let off = Spell { from: 70, until: 111 };
    let faults = [faults.concat(), fault("offline", "delegates = [4]", &off)].concat();
    let scenario = scenario(8, &faults);
    let (seeds, log) = (SeedTree::new(7), Forged::default());
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    scenario.play(&plan, StageKind::Inline, vec![Box::new(log.clone())], |_| {}).expect("no actor dies");
    let (forged, taken, slots) = &*log.0.lock().expect("nobody panics with it");
    let once: BTreeSet<u32> = slots.iter().copied().collect();
    assert_eq!(once.len(), slots.len(), "twice in one of {slots:?}");
    let strange: BTreeSet<u32> = forged.iter().filter(|(id, _)| !taken.contains(id)).map(|(_, slot)| *slot).collect();
    let own: BTreeSet<u32> = forged.iter().filter(|(id, _)| taken.contains(id)).map(|(_, slot)| *slot).collect();
    let named = |slot: &u32| {
        // It forges two seconds after the slot has begun, and not in the one that runs when the fault begins.
        let is_in = |from: u32, until: u32| *slot > (from + 8) / 8 && slot * 8 + 2 < until + 8;
        let is_off = (off.from + 8..off.until + 8).contains(&(slot * 8 + 2));
        !is_off && spells.iter().any(|(every, from, until)| slot.is_multiple_of(*every) && is_in(*from, *until))
    };
    let wanted: BTreeSet<u32> = (1..60).filter(named).filter(|slot| !own.contains(slot)).collect();
    assert_eq!(strange, wanted);
    assert!(strange.len() > 6 && strange.contains(&15), "{strange:?}");
}
