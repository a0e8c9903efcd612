//! Planted faults that keep a network split, or would: the certificate of the thresholds is missing with each of them.

use super::{
    certificate::network::{NetworkProof, held},
    liveness::liveness,
    search::{Networks, RUN_SEED, Search},
    swarm::Frame,
};
use crate::{
    planted::{Planted, plant},
    protocol::crypto::CryptoMode,
    sim::{SeedTree, stage::inline::InlineStage},
};
use std::time::Duration;

/// Plays the run of a seed without a fault, until all nodes had their time to come to one chain, and then tries to prove why
/// they have not, with one in force or none.
fn proof(seed: u64, fault: Option<Planted>) -> Result<NetworkProof, String> {
    let rules = toml::Table::from_iter([("base".to_owned(), "corrected".into())]);
    let frame = Frame { rules, crypto: Some(CryptoMode::Modelled), ..Frame::default() };
    let scenario = Search { frame, runs: 1, seed, part: None, jobs: 1, guided: false }.scenario(seed);
    let _sound = plant(None);
    let plan = scenario.plan(&Networks::default().of(&scenario), SeedTree::new(RUN_SEED));
    let asked = liveness(&scenario).expect("the network is whole in the end");
    let round = plan.tree.applied(&plan.tip).state.round().position.delegates * plan.tree.slots().blocktime();
    let mut stage = InlineStage::new(&plan, Vec::new());
    let time = Duration::from_secs_f64(asked.from_seconds) + Duration::from_secs((asked.within_rounds * round).into());
    stage.run_until(plan.start + time);
    let keys: Vec<_> = plan.nodes.iter().map(|node| node.forger.as_ref().map(|keys| *keys.public())).collect();
    let _planted = plant(fault);
    held(&stage, &keys)
}

/// Runs of the search in which several chains grow.
const SPLITS: [u64; 12] = [88, 102, 203, 327, 434, 576, 752, 871, 1060, 1244, 1475, 1515];

#[test]
fn a_split_that_the_thresholds_hold_has_a_certificate() {
    for seed in SPLITS {
        let shown = proof(seed, None);
        assert!(
            matches!(&shown, Ok(NetworkProof::Held(words)) if words.contains("peers are on other chains")),
            "{seed}: {shown:?}"
        );
    }
}

/// A fault that begins where the proof does need not come to bear within the quarter of an hour of each of these runs.
#[track_caller]
fn is_missing(fault: Planted, what: &str) {
    let proofs: Vec<_> = SPLITS.into_iter().map(|seed| proof(seed, Some(fault))).collect();
    let missing = |proof: &Result<NetworkProof, String>| proof.as_ref().is_err_and(|why| why.contains(what));
    assert!(proofs.iter().any(missing), "{}: {proofs:?}", fault.name());
}

#[test]
fn a_forger_that_sleeps_on_is_not_held() {
    is_missing(Planted::SuspendedForgerSleepsOn, "does not end");
}

#[test]
fn a_node_that_forges_without_a_quorum_is_not_held() {
    is_missing(Planted::QuorumIgnored, "forges without a quorum");
}
