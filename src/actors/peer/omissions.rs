//! The parts of a peer that a state ahead leaves out: only those that can no longer affect a decision.

use super::{
    endpoint::Endpoint,
    gossip::Passing,
    limits::Limits,
    neighbours::{Call, Neighbour, VerificationResult},
};
use crate::{
    actors::{NodeId, SimTime},
    ledger::{
        BlockTree, Rules,
        codec::{Save, Saver},
    },
    protocol::{Height, NetworkConfig, crypto::CryptoMode},
};
use std::{
    path::Path,
    sync::{Arc, LazyLock},
    time::Duration,
};

static TREE: LazyLock<Arc<BlockTree>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings/network");
    let config = NetworkConfig::load(&folder, CryptoMode::Real).expect("it is there");
    Arc::new(BlockTree::new(Arc::new(config), Arc::new(Rules::reference())).expect("its genesis block holds"))
});

/// The beginning of a slot, from 0 on.
fn slot(number: u64) -> SimTime {
    SimTime::from_micros(8_000_000 * number)
}

/// Returns true if two values decide the same from an instant on.
fn alike<T: Save>(one: &T, other: &T, now: SimTime) -> bool {
    let bytes = |value: &T| {
        let mut out = Saver::of_what_is_ahead(&TREE, now.micros());
        value.save(&mut out);
        out.finish().0
    };
    bytes(one) == bytes(other)
}

/// A block of slot 0 that is passed on at its end leaves a wake-up in slot 1, which asks how often it came.
#[test]
fn how_often_a_block_came_counts_until_nobody_waits_to_pass_it_on() {
    let at = SimTime::from_micros(7_900_000);
    let block = TREE.genesis().block().clone();
    let came = |seen| Passing { block: block.clone(), seen, first: at, last: at };
    assert!(!alike(&came(1), &came(2), slot(1)));
    assert!(alike(&came(1), &came(2), slot(2)));
}

#[test]
fn calls_count_as_long_as_windows_run() {
    let call = |seconds: u32| Call::new(SimTime::from_micros(u64::from(seconds) * 1_000_000), Endpoint::Blocks);
    let verified = VerificationResult { my_height: Height(1), his_height: Height(1), highest_common: Height(1) };
    let of = |calls| Neighbour { node: NodeId(1), height: Height(1), verified, answered: 0, calls };
    assert!(
        !alike(&of([Call::NONE, call(5)]), &of([Call::NONE, call(6)]), slot(1)),
        "the last one is three seconds old"
    );
    assert!(
        !alike(&of([call(1), call(6)]), &of([call(2), call(6)]), slot(1)),
        "the one before it is looked at with it"
    );
    assert!(alike(&of([Call::NONE, call(5)]), &of([call(2), call(6)]), slot(2)));
    let node = |node| Neighbour { node: NodeId(node), ..of([Call::NONE; 2]) };
    assert!(!alike(&node(1), &node(2), slot(2)));
}

#[test]
fn windows_count_for_twice_their_length_and_blocked_nodes_always() {
    let none = Limits::default();
    for node in [1, 5_000] {
        let mut called = Limits::default();
        assert!(called.add_if_allowed(slot(1), NodeId(node), Endpoint::Blocks));
        assert!(!alike(&called, &none, slot(1) + Duration::from_secs(7)), "node {node}");
        assert!(alike(&called, &none, slot(3)), "node {node}");
    }
    let mut blocks = Limits::default();
    blocks.block(NodeId(2), slot(1) + Duration::from_secs(60));
    assert!(!alike(&blocks, &none, slot(30)), "who looks them up again finds it is over");
}
