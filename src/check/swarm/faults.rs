//! Random faults, and their times.

use super::{Draw, near_boundary, some_of};
use crate::{
    scenario::section::NetworkSection,
    sim::{
        Fault, FaultKind, Trigger,
        fault::{
            Boundary, ClockSkew, Crash, DelayMessages, DropMessages, DuplicateMessages, Eclipse, LowFeeFlood,
            MessageKind, Messages, NodeRef, Nodes, Offline, Partition, Restart, Slow, SomeDelegates, SomeNodes,
            SpamPool, VoteSwing,
        },
        strategy::{
            self, Censor, DoubleForge, FalseClaim, ForgeInvalid, ForgeOutOfTurn, InvalidBlock, Kind, LateForging,
            LieAboutTip, RefuseTransactions, SpareForger, Withhold,
        },
    },
};
use rand::{Rng, seq::IndexedRandom};

/// Errors that only a block with them can reveal. They are drawn twice as often as others.
const SEEN_ALONE: [InvalidBlock; 5] = [
    InvalidBlock::Reward,
    InvalidBlock::Signature,
    InvalidBlock::TransactionSignature,
    InvalidBlock::ExpiredTransaction,
    InvalidBlock::PayloadHash,
];

/// The kinds of messages that may come more than once: those that a peer gets unasked. A repeated question breaks the limits
/// on its sender. The nodes then refuse each other for a minute at a time, deliver hundreds of millions of messages and show nothing.
const PUSHED: [MessageKind; 2] = [MessageKind::Block, MessageKind::Transactions];

/// Up to five faults, all over within `rounds` rounds' worth of slots. In one network of four they begin with one of the last two
/// blocks of a round or of the first two of the next. A network of one node gets none that needs two.
pub(super) fn faults(draw: &mut Draw, network: &NetworkSection, rounds: u32) -> Vec<Fault> {
    let slots = rounds * network.delegates;
    let boundaries = if draw.random_ratio(1, 4) { near_boundary(network, slots * 2 / 3) } else { Vec::new() };
    let count = *[0, 1, 1, 2, 2, 3, 5].choose(draw).unwrap_or(&1);
    let drawn = (0..count).map(|_| {
        let kind = kind(draw, network, rounds);
        match boundaries.choose(draw) {
            Some(height) => at_boundary(draw, kind, *height, network),
            None => at_any_time(draw, kind, slots, network.block_time_s),
        }
    });
    drawn.filter(|fault| network.nodes() > 1 || !needs_two_nodes(&fault.kind)).collect()
}

/// Returns true if a fault comes between two nodes, or needs a second one.
fn needs_two_nodes(kind: &FaultKind) -> bool {
    let is_between = matches!(kind, FaultKind::Partition(_) | FaultKind::Isolate(_) | FaultKind::Eclipse(_));
    is_between || kind.strategy::<SpareForger>().is_some()
}

/// Makes a fault that begins and ends at any time within `slots` slots.
fn at_any_time(draw: &mut Draw, kind: FaultKind, slots: u32, slot_s: u32) -> Fault {
    let over = slots.saturating_mul(slot_s);
    let last_begin = (u64::from(over) * 2 / 3).max(1) as u32;
    let from = f64::from(draw.random_range(1..=last_begin));
    let until = (from + f64::from(draw.random_range(slot_s..=over))).min(f64::from(over));
    fault(kind, Trigger::Seconds(from), until)
}

/// Makes a fault that begins when a chain reaches `height`, either at the expected time or with the block itself, and lasts up to
/// two rounds.
fn at_boundary(draw: &mut Draw, kind: FaultKind, height: u32, network: &NetworkSection) -> Fault {
    let slot_s = network.block_time_s;
    // The expected time of the height, if no slot is missed.
    let seconds = (height - 1).saturating_mul(slot_s);
    let until = f64::from(seconds) + f64::from(slot_s) * f64::from(draw.random_range(2..=2 * network.delegates));
    let at_time = kind.facts().is_over_at_once() || draw.random_ratio(1, 4);
    match at_time {
        true => fault(kind, Trigger::Seconds(f64::from(seconds) + f64::from(draw.random_range(0..slot_s))), until),
        false => fault(kind, Trigger::HeightAtAny(height), until),
    }
}

fn fault(kind: FaultKind, from: Trigger, until: f64) -> Fault {
    let ends = !kind.facts().is_over_at_once();
    Fault { kind, from, until: ends.then_some(Trigger::Seconds(until)) }
}

/// Some of `of` nodes, by number: one, a few, or about half.
fn some(draw: &mut Draw, of: u32) -> Vec<NodeRef> {
    let count = match draw.random_range(0..6) {
        0..=2 => 1,
        3 => 2,
        4 => of / 3,
        _ => of / 2,
    };
    let picked = rand::seq::index::sample(draw, of as usize, count.clamp(1, of) as usize);
    let mut picked: Vec<u32> = picked.into_iter().map(|index| index as u32).collect();
    picked.sort_unstable();
    picked.into_iter().map(NodeRef::Number).collect()
}

/// Draws the kind of a fault, for a run with faults in `rounds` rounds.
pub(super) fn kind(draw: &mut Draw, network: &NetworkSection, rounds: u32) -> FaultKind {
    let (nodes, delegates) = (network.nodes(), network.delegates + network.standby);
    let all = some(draw, nodes);
    let nodes_of = |list: &[NodeRef]| Nodes::List(list.to_vec());
    let some_nodes = SomeNodes { nodes: nodes_of(&all) };
    let forgers = Nodes::List(some(draw, delegates));
    let chance = *[0.05, 0.2, 0.5, 1.0].choose(draw).unwrap_or(&0.5);
    let which = Messages { chance: Some(chance), ..Messages::default() };
    let foreign: Vec<Kind> = strategy::kinds().into_iter().filter(|kind| kind.is_foreign).collect();
    match draw.random_range(0..37 + foreign.len() as u32) {
        0..=3 => {
            // Half of the partitions split the nodes evenly, which is the hardest to heal.
            let half = draw.random_bool(0.5);
            let cut = if half { nodes / 2 } else { draw.random_range(1..=(nodes - 1).max(1)) };
            let group = Nodes::List((0..cut).map(NodeRef::Number).collect());
            FaultKind::Partition(Partition { groups: vec![group], share: None, one_way: draw.random_ratio(1, 6) })
        }
        4 => FaultKind::Isolate(some_nodes),
        5 => {
            let (victims, attackers) = all.split_at(all.len().div_ceil(2).min(all.len() - usize::from(all.len() > 1)));
            let attackers = if attackers.is_empty() { victims } else { attackers };
            FaultKind::Eclipse(Eclipse { victims: nodes_of(victims), attackers: nodes_of(attackers) })
        }
        6 => FaultKind::Drop(DropMessages { which: of_some_kinds(draw, which) }),
        7 => {
            let by_ms = *[50, 900, 4_000, 12_000].choose(draw).unwrap_or(&900);
            let jitter_ms = draw.random_range(0..=2_000);
            FaultKind::Delay(DelayMessages { by_ms, jitter_ms, which: of_some_kinds(draw, which) })
        }
        8 => FaultKind::Duplicate(DuplicateMessages {
            copies: draw.random_range(1..=3),
            within_ms: draw.random_range(0..=3_000),
            which: Messages { messages: some_of(draw, &PUSHED, PUSHED.len()), ..which },
        }),
        9 => FaultKind::Crash(Crash { nodes: some_nodes.nodes, keep_pool: draw.random_bool(0.5) }),
        10 => FaultKind::Restart(Restart { nodes: some_nodes.nodes, keep_pool: draw.random_bool(0.5) }),
        11 => FaultKind::Pause(some_nodes),
        12 => FaultKind::Slow(Slow { nodes: some_nodes.nodes, step_ms: draw.random_range(1..=400) }),
        13 => {
            let offset_ms = *[-20_000, -3_000, 3_000, 9_000].choose(draw).unwrap_or(&3_000);
            let drift_ppm = *[0, 0, 50, -300, 5_000, -40_000].choose(draw).unwrap_or(&0);
            FaultKind::ClockSkew(ClockSkew { nodes: some_nodes.nodes, offset_ms, drift_ppm })
        }
        14 => FaultKind::Offline(Offline { delegates: forgers, rounds: None }),
        15 => LateForging { delegates: forgers, by_ms: draw.random_range(100..=6_000) }.into(),
        16 => {
            let release_ms = draw.random_bool(0.7).then(|| draw.random_range(500..=20_000));
            Withhold { delegates: forgers, release_ms }.into()
        }
        17 => DoubleForge { delegates: forgers }.into(),
        18 => spare(&forgers, delegates, nodes).into(),
        19 => ForgeOutOfTurn { delegates: forgers, every: draw.random_range(1..=5) }.into(),
        20..=22 => {
            let claim = *[FalseClaim::Height, FalseClaim::Height, FalseClaim::Id, FalseClaim::Slot]
                .choose(draw)
                .unwrap_or(&FalseClaim::Height);
            let by = *[-20, -1, 1, 1, 2, 7, 60, 100_000].choose(draw).unwrap_or(&1);
            LieAboutTip { nodes: some_nodes.nodes, claim, by, signed: draw.random_bool(0.4) }.into()
        }
        23 => {
            let sender = format!("account_{}", draw.random_range(1..=10));
            Censor { delegates: forgers, sender }.into()
        }
        24 => RefuseTransactions { nodes: some_nodes.nodes }.into(),
        25 => FaultKind::SpamPool(SpamPool { nodes: Some(some_nodes.nodes), per_second: 0.5 }),
        26 => {
            let per_second = *[0.1, 0.5, 2.0].choose(draw).unwrap_or(&0.5);
            FaultKind::LowFeeFlood(LowFeeFlood { nodes: Some(some_nodes.nodes), per_second, fee: None })
        }
        27 => FaultKind::VoteSwing(VoteSwing {
            voters: draw.random_range(1..=10),
            delegate: format!("genesis_{}", draw.random_range(1..=delegates)),
            round: draw.random_range(2..=rounds.max(2)),
            block: if draw.random_bool(0.5) { Boundary::First } else { Boundary::Last },
        }),
        28 => FaultKind::MassResignation(SomeDelegates { delegates: forgers }),
        29..=36 => {
            let all: Vec<_> = InvalidBlock::ALL.into_iter().chain(SEEN_ALONE).collect();
            let error = *all.choose(draw).unwrap_or(&InvalidBlock::Reward);
            ForgeInvalid { delegates: forgers, error }.into()
        }
        registered => {
            let mut planned = foreign[registered as usize - 37].drawable();
            for (key, named) in planned.nodes_mut() {
                *named = if key == "delegates" { &forgers } else { &some_nodes.nodes }.clone();
            }
            planned.vary(&mut |count| draw.random_range(0..count.max(1)));
            FaultKind::Strategy(planned)
        }
    }
}

/// A spare node of the first of some delegates: a relay by preference, as an operator's spare node is.
fn spare(forgers: &Nodes, delegates: u32, nodes: u32) -> SpareForger {
    let one = |number| Nodes::List(vec![NodeRef::Number(number)]);
    let delegate = match forgers {
        Nodes::List(list) => list.iter().find_map(|node| match node {
            NodeRef::Number(number) => Some(*number),
            NodeRef::Delegate(_) => None,
        }),
        Nodes::Span(_) | Nodes::Share(_) => None,
    };
    let delegate = delegate.unwrap_or(0);
    let node = if nodes > delegates { delegates } else { (delegate + 1) % nodes };
    SpareForger { delegates: one(delegate), nodes: one(node) }
}

/// All kinds of messages, or a few.
fn of_some_kinds(draw: &mut Draw, which: Messages) -> Messages {
    match draw.random_bool(0.5) {
        true => which,
        false => Messages { messages: some_of(draw, &MessageKind::ALL, 3), ..which },
    }
}
