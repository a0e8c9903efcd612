//! Strategies for networks, for faults in them, and for whole simulations.
//!
//! Each part is drawn by itself and shrinks by itself: towards few nodes, a quick network without a flaw, no fault, a short fault.
//! Faults name the first nodes only, so that those of a small network fit a greater one.

use crate::{
    check::{Simulation, simulation::Builder},
    scenario::section::NetworkSection,
    sim::{
        Fault, FaultKind, Latency, NetworkModel, Trigger,
        fault::{
            ClockSkew, Crash, DelayMessages, DropMessages, DuplicateMessages, MessageKind, Messages, NodeRef, Nodes,
            Offline, Partition, Restart, Slow, SomeNodes,
        },
        network::{Clocks, Reordering},
        strategy::{
            DoubleForge, FalseClaim, ForgeInvalid, ForgeOutOfTurn, InvalidBlock, LateForging, LieAboutTip,
            RefuseTransactions, Withhold,
        },
    },
};
use proptest::{option, prelude::*, sample};
use std::ops::RangeInclusive;

/// Faults and behaviours of a drawn simulation, at most, each.
const FAULTS: usize = 3;

/// A simulation: a drawn network, up to three faults, up to two delegates that behave against the protocol, and a drawn seed. The range
/// gives the number of delegates, `rounds` the rounds. All faults end before the last two rounds. Signatures are modelled, for speed.
///
/// # Panics
/// Fewer than 2 delegates, or fewer than 3 rounds.
pub fn simulations(delegates: RangeInclusive<u32>, rounds: u32) -> impl Strategy<Value = Builder> {
    assert!(*delegates.start() >= 2 && rounds >= 3, "a network has 2 delegates and a drawn simulation 3 rounds");
    let least = *delegates.start();
    let over = (rounds - 2) * least * NetworkSection::default().block_time_s;
    let wrong = (faults(least, over, FAULTS), behaviours(least, over, 2));
    (networks(delegates), wrong, any::<u64>()).prop_map(move |(network, (faults, behaviours), seed)| {
        let builder = Simulation::builder().network(network).rounds(rounds).seed(seed);
        builder.crypto(crate::protocol::crypto::CryptoMode::Modelled).faults(faults).faults(behaviours)
    })
}

/// A network with this number of delegates and up to two relays: half of them fast and without a flaw, the others with the latency, loss,
/// duplicated and overtaken messages and wrong clocks of real networks.
pub fn networks(delegates: RangeInclusive<u32>) -> impl Strategy<Value = NetworkSection> {
    let plain = Just(NetworkModel::default());
    let model = prop_oneof![1 => plain, 1 => models()];
    (delegates, 0..=2u32, model).prop_map(|(delegates, relays, model)| NetworkSection {
        delegates,
        relays,
        model,
        ..NetworkSection::default()
    })
}

/// The effects of a network on messages and clocks.
pub fn models() -> impl Strategy<Value = NetworkModel> {
    let latency = (1..=50u32, 0..=400u32).prop_map(|(least, more)| Latency::uniform(least, least + more));
    let loss = prop_oneof![3 => Just(0.0), 1 => 0.0..0.1];
    let duplication = prop_oneof![3 => Just(0.0), 1 => 0.0..0.005];
    let reordering = (0.0..0.2, 1..=500u32).prop_map(|(chance, by_ms)| Reordering { chance, by_ms });
    let clocks = (0..=500u32, 0..=200u32).prop_map(|(offset_ms, drift_ppm)| Clocks { offset_ms, drift_ppm }.into());
    let bandwidth = option::weighted(0.2, 20_000..=1_000_000u64);
    (latency, loss, duplication, option::weighted(0.3, reordering), option::weighted(0.3, clocks), bandwidth).prop_map(
        |(latency, loss, duplication, reordering, clocks, bandwidth)| NetworkModel {
            latency,
            loss,
            duplication,
            reordering,
            clocks,
            bandwidth,
            ..NetworkModel::default()
        },
    )
}

/// Up to `most` faults among the first `nodes` nodes, which forge. All are over within `over` seconds.
///
/// # Panics
/// No node, or at most 8 seconds.
pub fn faults(nodes: u32, over: u32, most: usize) -> impl Strategy<Value = Vec<Fault>> {
    prop::collection::vec(timed(misfortune(nodes), over), 0..=most)
}

/// Up to `most` behaviours against the protocol, of the first `nodes` nodes, whose delegates forge. All are over within `over` seconds.
///
/// # Panics
/// No node, or at most 8 seconds.
pub fn behaviours(nodes: u32, over: u32, most: usize) -> impl Strategy<Value = Vec<Fault>> {
    prop::collection::vec(timed(behaviour(nodes), over), 0..=most)
}

fn timed(kind: impl Strategy<Value = FaultKind>, over: u32) -> impl Strategy<Value = Fault> {
    (kind, 0..over - 8, 8..=over).prop_map(move |(kind, from, lasts)| {
        let until = (!kind.facts().is_over_at_once()).then_some(Trigger::Seconds(f64::from((from + lasts).min(over))));
        Fault { from: Trigger::Seconds(from.into()), until, ..Fault::new(kind) }
    })
}

/// One to half of the first `nodes` nodes.
fn some(nodes: u32) -> impl Strategy<Value = Nodes> + Clone {
    let numbers: Vec<u32> = (0..nodes).collect();
    let most = numbers.len().div_ceil(2);
    sample::subsequence(numbers, 1..=most)
        .prop_map(|numbers| Nodes::List(numbers.into_iter().map(NodeRef::Number).collect()))
}

/// Something that goes wrong between nodes, or with nodes.
fn misfortune(nodes: u32) -> impl Strategy<Value = FaultKind> {
    let which = || {
        let kinds = sample::subsequence(vec![MessageKind::Block, MessageKind::Transactions], 0..=2);
        (kinds, 0.05..=1.0).prop_map(|(messages, chance)| Messages {
            messages,
            chance: Some(chance),
            ..Messages::default()
        })
    };
    let pushed = (sample::subsequence(vec![MessageKind::Block, MessageKind::Transactions], 1..=2), 1..=3u32);
    prop_oneof![
        (some(nodes), any::<bool>()).prop_map(|(group, one_way)| {
            FaultKind::Partition(Partition { groups: vec![group], share: None, one_way })
        }),
        some(nodes).prop_map(|nodes| FaultKind::Isolate(SomeNodes { nodes })),
        some(nodes).prop_map(|nodes| FaultKind::Pause(SomeNodes { nodes })),
        (some(nodes), any::<bool>()).prop_map(|(nodes, keep_pool)| FaultKind::Crash(Crash { nodes, keep_pool })),
        (some(nodes), any::<bool>()).prop_map(|(nodes, keep_pool)| FaultKind::Restart(Restart { nodes, keep_pool })),
        some(nodes).prop_map(|delegates| FaultKind::Offline(Offline { delegates, rounds: None })),
        which().prop_map(|which| FaultKind::Drop(DropMessages { which })),
        (which(), 50..=8_000u32)
            .prop_map(|(which, by_ms)| { FaultKind::Delay(DelayMessages { by_ms, jitter_ms: 0, which }) }),
        pushed.prop_map(|(messages, copies)| {
            let which = Messages { messages, ..Messages::default() };
            FaultKind::Duplicate(DuplicateMessages { copies, within_ms: 0, which })
        }),
        (some(nodes), 1..=400u32).prop_map(|(nodes, step_ms)| FaultKind::Slow(Slow { nodes, step_ms })),
        (some(nodes), -9_000..=9_000i64)
            .prop_map(|(nodes, offset_ms)| { FaultKind::ClockSkew(ClockSkew { nodes, offset_ms, drift_ppm: 0 }) }),
    ]
}

/// The behaviours of delegates and their nodes against the protocol.
fn behaviour(nodes: u32) -> impl Strategy<Value = FaultKind> {
    let false_claims = sample::select(vec![FalseClaim::Height, FalseClaim::Id, FalseClaim::Slot]);
    prop_oneof![
        (some(nodes), 100..=6_000u32).prop_map(|(delegates, by_ms)| LateForging { delegates, by_ms }.into()),
        (some(nodes), option::of(500..=20_000u32)).prop_map(|(delegates, release_ms)| Withhold {
            delegates,
            release_ms
        }
        .into()),
        some(nodes).prop_map(|delegates| DoubleForge { delegates }.into()),
        (some(nodes), 1..=5u32).prop_map(|(delegates, every)| ForgeOutOfTurn { delegates, every }.into()),
        (some(nodes), sample::select(InvalidBlock::ALL.to_vec())).prop_map(|(delegates, error)| ForgeInvalid {
            delegates,
            error
        }
        .into()),
        (some(nodes), false_claims, 1..=60i32, any::<bool>()).prop_map(|(nodes, claim, by, signed)| LieAboutTip {
            nodes,
            claim,
            by,
            signed
        }
        .into()),
        some(nodes).prop_map(|nodes| RefuseTransactions { nodes }.into()),
    ]
}
