//! Planted faults that keep a network split, or would: the certificate of the thresholds is missing with each of them.

use super::{
    certificate::network::{Shown, held},
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
fn proof(seed: u64, fault: Option<Planted>) -> Result<Shown, String> {
    let rules = toml::Table::from_iter([("base".to_owned(), "corrected".into())]);
    let frame = Frame { rules, crypto: Some(CryptoMode::Modelled), ..Frame::default() };
    let scenario = Search { frame, runs: 1, seed, jobs: 1 }.scenario(0);
    let _sound = plant(None);
    scenario.crypto.during(|| {
        let plan = scenario.plan(&Networks::default().of(&scenario), SeedTree::new(RUN_SEED));
        let asked = liveness(&scenario).expect("the network is whole in the end");
        let round = plan.tree.applied(&plan.tip).state.round().position.delegates * plan.tree.slots().blocktime();
        let mut stage = InlineStage::new(&plan, Vec::new());
        let time =
            Duration::from_secs_f64(asked.from_seconds) + Duration::from_secs((asked.within_rounds * round).into());
        stage.run_until(plan.start + time);
        let keys: Vec<_> = plan.nodes.iter().map(|node| node.forger.as_ref().map(|keys| *keys.public())).collect();
        let _planted = plant(fault);
        held(&stage, &keys)
    })
}

/// A run of the search in which several chains grow.
const SPLIT: u64 = 203;

#[test]
fn a_split_that_the_thresholds_hold_has_a_certificate() {
    let shown = proof(SPLIT, None);
    assert!(matches!(&shown, Ok(Shown::Held(words)) if words.contains("peers are on other chains")), "{shown:?}");
}

#[track_caller]
fn is_missing(fault: Planted, what: &str) {
    let why = proof(SPLIT, Some(fault)).expect_err(what);
    assert!(why.contains(what), "{}: {why}", fault.name());
}

#[test]
fn a_node_that_waits_for_what_never_comes_is_not_held() {
    is_missing(Planted::WakeUpLostWhileBusy, "does not end");
    is_missing(Planted::HealthCheckLostInRunningDiscovery, "does not end");
    is_missing(Planted::SuspendedForgerSleepsOn, "does not end");
}

#[test]
fn a_node_that_forges_without_a_quorum_is_not_held() {
    is_missing(Planted::QuorumIgnored, "forges without a quorum");
    is_missing(Planted::ForkAtOwnHeightIsQuorum, "forges without a quorum");
}
