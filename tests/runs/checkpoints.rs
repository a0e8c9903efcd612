//! A run that is written down and read again, in a network made anew, is the same run: to the last event, random number and
//! byte.

use crate::support::scenarios;
use dposlab::{
    actors::{Event, NodeId, SimTime},
    check::swarm::{Frame, draw},
    ledger::{Link, saved::Saver},
    protocol::{Block, BlockId, Height},
    scenario::{Scenario, run::among_actors},
    sim::{Digest, Observer, Plan, SeedTree, Stage, TraceDigest, snapshots::Snapshots, world::Moment},
};
use rand::Rng;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

/// Inputs delivered to actors after which a large run has been played long enough.
const DELIVERED_MAX: u64 = 60_000;
/// How often a run is written down and read again.
const TIMES: usize = 4;

/// The blocks that nodes took, each once, in the order in which they were first taken.
#[derive(Clone, Default)]
struct Blocks(Arc<Mutex<(BTreeSet<BlockId>, Vec<Arc<Link>>)>>);

impl Observer for Blocks {
    fn observe(&mut self, _: SimTime, _: NodeId, event: &Event) {
        if let Event::BlockApplied(link) = event {
            let mut all = self.0.lock().expect("no one panics while holding it");
            if all.0.insert(link.id()) {
                all.1.push(link.clone());
            }
        }
    }
}

impl Blocks {
    /// Puts them into the tree of another plan, as a log does.
    fn put_into(&self, plan: &Plan) {
        let (tree, config) = (&plan.tree, plan.tree.config());
        for link in &self.0.lock().expect("no one panics while holding it").1 {
            let bytes = link.block().to_bytes(&config.milestones);
            let block = Block::from_bytes(&bytes, &config.block_context()).expect("it was on a chain");
            let parent = block.header.previous.and_then(|id| tree.link(&id)).expect("it came before");
            tree.extend_again(&parent, &Arc::new(block)).expect("it was applied before");
        }
    }
}

/// Where a run came, and all that it told.
type End = (Digest, u64, u64, SimTime);

struct Run {
    stage: Stage,
    digest: TraceDigest,
    blocks: Blocks,
    last: Height,
}

impl Run {
    fn new(scenario: &Scenario, plan: &Plan) -> Self {
        let (digest, blocks) = (TraceDigest::default(), Blocks::default());
        let stage = Stage::inline(plan, vec![Box::new(digest.clone()), Box::new(blocks.clone())]);
        Self { stage, digest, blocks, last: scenario.last_height() }
    }

    /// Plays until so many inputs were delivered, or to the end.
    async fn play(&mut self, delivered: u64) {
        let world = |run: &Self| (run.stage.world().delivered(), run.stage.world().best().height());
        while world(self).0 < delivered && world(self).1 <= self.last {
            if !self.stage.step(SimTime::from_micros(u64::MAX)).await.expect("no actor dies") {
                break;
            }
        }
        let now = self.stage.world().now();
        self.stage.rest_until(now);
    }

    fn end(&self) -> End {
        let world = self.stage.world();
        (self.digest.digest(), self.digest.events(), world.delivered(), world.now())
    }

    /// Goes on with what another process would read.
    fn read_again(&mut self, plan: &Plan, name: &str) {
        let moment = self.stage.inline_moment().expect("it is in this thread");
        self.blocks.put_into(plan);
        let (bytes, _) = moment.to_bytes();
        let again = Moment::from_bytes(bytes.clone(), plan, &[]).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(again.to_bytes().0 == bytes, "{name}: what is read is not what was written");
        let mut out = Saver::new(&plan.tree);
        self.digest.save(&mut out);
        self.digest = TraceDigest::default();
        let (bytes, _) = out.finish();
        self.digest.go_on(&mut plan.loader(bytes)).expect("a digest was written");
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(self.digest.clone()), Box::new(self.blocks.clone())];
        self.stage = Stage::at(&again, Snapshots::new(plan), observers);
    }
}

/// Plays a scenario at once, and with breaks.
fn holds(scenario: &Scenario, seed: u64, name: &str) {
    let seeds = SeedTree::new(seed);
    let plan = || scenario.plan(&scenario.testnet(seeds), seeds);
    scenario.crypto.during(|| {
        among_actors(async {
            let mut whole = Run::new(scenario, &plan());
            whole.play(DELIVERED_MAX).await;
            let end = whole.end();
            let mut random = seeds.stream("checkpoints");
            let mut instants: Vec<u64> = (0..TIMES).map(|_| random.random_range(0..end.2)).collect();
            instants.sort_unstable();
            let mut broken = Run::new(scenario, &plan());
            for at in instants {
                broken.play(at).await;
                broken.read_again(&plan(), name);
            }
            broken.play(DELIVERED_MAX).await;
            assert_eq!(broken.end(), end, "{name}: the run differs after it was read again");
        });
    });
}

#[test]
fn every_shipped_scenario_goes_on_as_the_same_run() {
    for file in scenarios() {
        let scenario = Scenario::load(&file).expect("shipped scenarios are valid");
        holds(&scenario, 7, &file.display().to_string());
    }
}

#[test]
fn drawn_scenarios_go_on_as_the_same_run() {
    for seed in 0..100 {
        let drawn = draw(&Frame { delegates: Some(7), rounds: Some(3), ..Frame::default() }, seed);
        let scenario = Scenario { rounds: drawn.rounds.min(12), ..drawn };
        holds(&scenario, 1, &format!("drawn from {seed}"));
    }
}
