//! Standstills that the checker certifies, watched for longer: a certificate that is false would be seen here.

use crate::support::root;
use dposlab::{
    actors::{Event, NodeId, SimTime},
    check::{
        Finding,
        conduct::{CONVERGED, PROGRESS},
        search::{Networks, RUN_SEED, Search},
        swarm::Frame,
    },
    scenario::Scenario,
    sim::{Observer, SeedTree, stage::inline::InlineStage},
};
use rayon::prelude::*;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::Duration,
};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The instant of the last block that a network forged.
#[derive(Clone, Default)]
struct LastBlock(Arc<Mutex<Option<SimTime>>>);

impl Observer for LastBlock {
    fn observe(&mut self, now: SimTime, _: NodeId, event: &Event) {
        if let Event::BlockForged(_) = event {
            *self.0.lock().expect("no one panics while holding it") = Some(now);
        }
    }
}

/// The course of a run in the time after a finding.
#[derive(Debug)]
struct Look {
    forged_since: bool,
    /// All live nodes stood on one block at the end of a slot.
    converged: bool,
}

/// Plays a run from its beginning to a time after a finding.
fn look(scenario: &Scenario, networks: &Networks, finding: &Finding, longer: Duration) -> Look {
    let plan = scenario.plan(&networks.of(scenario), SeedTree::new(RUN_SEED));
    let last = LastBlock::default();
    let mut stage = InlineStage::new(&plan, vec![Box::new(last.clone())]);
    let forged = || last.0.lock().expect("no one panics while holding it").unwrap_or(plan.start);
    stage.run_until(finding.at);
    let before = forged();
    stage.run_until(finding.at + longer);
    Look { forged_since: forged() > before, converged: stage.world().tips().is_converged() }
}

/// Watches each standstill that the checker certifies in the runs of a frame for longer, by the reference's rules. Returns its finding.
fn certified(frame: Frame, runs: u64, longer: Duration) -> Vec<(u64, Finding, Look)> {
    let search = Search { frame, runs, seed: 1, part: None, jobs: 1, guided: false };
    let (networks, stop) = (Networks::default(), AtomicBool::new(false));
    let looks = (1..=runs).into_par_iter().flat_map_iter(|seed| {
        let found = search.play(seed, &networks, &stop).findings;
        let standstills = found.into_iter().filter(|finding| {
            finding.certificate.is_shown() && [CONVERGED.name, PROGRESS.name].contains(&finding.invariant)
        });
        let scenario = search.scenario(seed);
        let looks = standstills.map(|finding| {
            let look = look(&scenario, &networks, &finding, longer);
            (seed, finding, look)
        });
        looks.collect::<Vec<_>>()
    });
    looks.collect()
}

/// Compares certificates with the course of the runs after them. Returns, for each invariant and cause, the number of certificates and
/// of runs that came to one chain. A halt is for good. Nodes at the border of two chains that grow draw again and again, so such a split
/// may end.
fn are_true(looks: &[(u64, Finding, Look)]) -> BTreeMap<String, (usize, usize)> {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (seed, finding, look) in looks {
        let Finding { cause, invariant, what, .. } = finding;
        let (certified, converged) = counts.entry(format!("{invariant}: {cause}")).or_default();
        (*certified, *converged) = (*certified + 1, *converged + usize::from(look.converged));
        if *invariant == PROGRESS.name || cause == "no chain grows" {
            assert!(!look.forged_since, "seed {seed}: a block after the certificate: {what}");
        } else if cause == "one chain comes late" {
            assert!(look.converged, "seed {seed}: several chains after the certificate of {cause}: {what}");
        }
    }
    println!("{counts:#?}");
    let splits = counts.iter().filter(|(name, _)| !name.ends_with("comes late")).map(|(_, count)| count);
    let (certified, converged) = splits.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    assert!(10 * converged <= certified, "{converged} of {certified} splits ended: {counts:?}");
    counts
}

fn reference() -> Frame {
    Frame { rules: toml::Table::from_iter([("base".to_owned(), "reference".into())]), ..Frame::default() }
}

/// Networks around one that halts with ten nodes on two chains: neither has the quorum to forge, nor the reason to leave.
fn around_a_halt() -> Frame {
    let file = root().join("scenarios/findings/the-chain-grows-once-all-faults-are-over.toml");
    Frame { base: Some(Scenario::load(&file).expect("it is shipped")), ..reference() }
}

#[test]
fn certified_standstills_are_seen_for_a_quarter_of_a_day() {
    let split = are_true(&certified(reference(), 300, DAY / 4));
    assert!(
        split.values().map(|(certified, _)| certified).sum::<usize>() >= 5,
        "or next to nothing is shown: {split:?}"
    );
    let halted = are_true(&certified(around_a_halt(), 60, DAY / 4));
    let halts: usize =
        halted.iter().filter(|(name, _)| name.starts_with(PROGRESS.name)).map(|(_, (certified, _))| certified).sum();
    assert!(halts >= 3, "or next to nothing is shown: {halted:?}");
}

#[test]
#[ignore = "long: CI runs it"]
fn certified_standstills_are_seen_for_a_day() {
    are_true(&certified(reference(), 1_000, DAY));
    are_true(&certified(around_a_halt(), 250, DAY));
}
