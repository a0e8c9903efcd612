//! What a testnet in a folder costs when it lasts: memory of a chain of empty blocks with 51 delegates, whose deep blocks
//! settle; the speed of forging beside that of the same run without a folder; how long it takes to start again, from a
//! checkpoint and by playing all slots, with the index and without it; and how soon an old block is read.
//!
//! `cargo bench --bench store` plays 200,000 blocks (minutes: each of 51 nodes takes each block); `-- 10000000` plays so many.
//! Signatures are modelled, for what is measured is not cryptography. The folder lies in the system's folder for temporary
//! files.

#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use dposlab::{
    actors::SimTime,
    ledger::Link,
    protocol::Height,
    report::session::{
        Session,
        folder::{
            Folder, FolderWriter, Opened, Resumed, Sync,
            checkpoint::{Beside, Checkpoints, EVERY},
        },
    },
    scenario::{FaultDesk, Scenario, run::among_actors},
    sim::{
        Observer, Plan, SeedTree, Stage, TraceDigest,
        live::{Journal, Keeper, Settler},
    },
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// Events between two looks at what may settle, as a live run has them.
const EVENTS_AT_ONCE: usize = 512;
/// Pairs of runs whose speed is compared.
const PAIRS: usize = 3;
/// Blocks of a testnet that is played again.
const PLAYED_MAX: u32 = 1_000_000;
/// Blocks that are read.
const READS: usize = 2_000;

/// Memory of the process, in bytes.
fn memory() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}

fn scenario() -> Scenario {
    Scenario::parse("version = 1\nrounds = 1\ncrypto = \"modelled\"\n", Path::new("bench")).expect("it is one")
}

fn plan(scenario: &Scenario) -> (Plan, FaultDesk) {
    let seeds = SeedTree::new(7);
    let testnet = scenario.testnet(seeds);
    let plan = scenario.plan(&testnet, seeds);
    let desk = FaultDesk::new(&plan, testnet);
    (plan, desk)
}

/// A testnet in a folder.
struct Kept {
    plan: Plan,
    stage: Stage,
    writer: FolderWriter,
    checkpoints: Checkpoints,
    /// The height of the base that it began with.
    base: Height,
}

fn beside(digest: &TraceDigest) -> Beside {
    Beside { digest: digest.clone(), numbers: Box::new(Vec::new), go_on: Box::new(|_| Ok(())) }
}

impl Kept {
    fn open(folder: &Path, by_checkpoint: bool) -> Self {
        let scenario = scenario();
        let (plan, desk) = plan(&scenario);
        let session = Session::new(7, &scenario, 1, plan.tree.config());
        let digest = TraceDigest::default();
        let (beside_it, watching) = (beside(&digest), vec![Box::new(digest.clone()) as Box<dyn Observer>]);
        let by = by_checkpoint.then_some(&beside_it);
        let opened = among_actors(Folder::new(folder).open_with(&session, &plan, &desk, watching, by)).unwrap();
        let Opened { log, settling, resumed, .. } = opened;
        let writer = FolderWriter::new(log, settling, Sync::Within(Duration::from_secs(1)), &plan, 1);
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(writer.clone()), Box::new(digest.clone())];
        let (stage, writer, base) = match resumed {
            Some(Resumed { moment, snapshots, known, base, .. }) => {
                (Stage::at(&moment, snapshots, observers), writer.after(known), base)
            }
            None => (Stage::inline(&plan, observers), writer, Height(0)),
        };
        let tell = |why: &str| panic!("{why}");
        let checkpoints = Checkpoints::new(folder, &plan, writer.clone(), beside(&digest), EVERY, tell).unwrap();
        Self { plan, stage, writer, checkpoints, base }
    }

    fn play(&mut self, height: Height) {
        while self.tip().height() < height {
            some(&mut self.stage);
            let world = self.stage.world();
            self.writer.stands(world.now(), world.delivered(), world.tips().winning(), false);
            if let Some(lowest) = self.writer.settle(world.tips()) {
                self.stage.forget_moments(lowest);
            }
            if self.checkpoints.is_due(self.tip().height()) {
                self.keep();
            }
        }
        self.writer.outcome().expect("it was written");
    }

    /// Ends with a checkpoint.
    fn stop(mut self) {
        self.keep();
        self.checkpoints.end();
    }

    fn keep(&mut self) {
        let now = self.stage.world().now();
        self.stage.rest_until(now);
        let moment = among_actors(self.stage.moment()).expect("nobody dies");
        self.checkpoints.keep(moment, self.stage.snapshots());
    }

    fn tip(&self) -> Arc<Link> {
        self.stage.world().tips().winning().clone()
    }
}

fn some(stage: &mut Stage) {
    for _ in 0..EVENTS_AT_ONCE {
        among_actors(stage.step(SimTime::from_micros(u64::MAX))).expect("nobody dies");
    }
}

/// So many blocks without a folder.
fn plain(height: Height) -> (Duration, String) {
    let (plan, _) = plan(&scenario());
    let mut stage = Stage::inline(&plan, vec![Box::new(TraceDigest::default())]);
    let begun = Instant::now();
    while stage.world().tips().winning().height() < height {
        some(&mut stage);
    }
    (begun.elapsed(), at(stage.world().tips().winning(), height))
}

/// The same in a folder.
fn kept(height: Height) -> (Duration, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Kept::open(folder.path(), true);
    let begun = Instant::now();
    kept.play(height);
    let took = begun.elapsed();
    kept.checkpoints.end();
    (took, at(&kept.tip(), height))
}

fn at(tip: &Arc<Link>, height: Height) -> String {
    tip.ancestor(height).expect("the tip is as high").id().to_string()
}

fn median(mut some: Vec<f64>) -> f64 {
    some.sort_by(f64::total_cmp);
    some[some.len() / 2]
}

fn forging(blocks: u32) {
    let height = Height(blocks);
    let mut ratios = Vec::new();
    let mut each = Vec::new();
    for _ in 0..PAIRS {
        let ((without, one), (with, other)) = (plain(height), kept(height));
        assert_eq!(one, other, "it is the same chain");
        ratios.push(with.as_secs_f64() / without.as_secs_f64());
        each.push(f64::from(blocks) / with.as_secs_f64());
    }
    println!(
        "forging in a folder: {:.0} blocks a second, time ratio {:.3} to a run without",
        median(each),
        median(ratios)
    );
}

/// Bytes that a folder takes on the disk: room that a file keeps and nothing was written to is not counted.
fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let bytes =
        |path: PathBuf| if path.is_dir() { bytes_of(&path) } else { fs::metadata(path).unwrap().blocks() * 512 };
    entries.map(bytes).sum()
}

fn reading(kept: &Kept, heights: std::ops::RangeInclusive<u32>, what: &str) -> f64 {
    let (tip, mut random) = (kept.tip(), ChaCha8Rng::seed_from_u64(1));
    let mut times = Vec::new();
    for _ in 0..READS {
        let height = Height(random.random_range(heights.clone()));
        let begun = Instant::now();
        let link = tip.ancestor(height).expect("it is below the tip");
        times.push(begun.elapsed().as_nanos() as f64 / 1_000.0);
        assert_eq!(link.height(), height);
    }
    let middle = median(times);
    println!("{what}: {middle:.1} µs");
    middle
}

fn lasting(blocks: u32) {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Kept::open(folder.path(), true);
    let early = Height((blocks / 4).max(10_000));
    kept.play(early);
    let before = memory();
    kept.play(Height(blocks));
    let after = memory();
    let tip = at(&kept.tip(), Height(blocks));
    let more = after.saturating_sub(before);
    println!("store: {blocks} blocks, the last is {tip}; {} have settled", kept.plan.tree.cut());
    println!(
        "memory: {} MiB, of them {} MiB since block {early}, {:.1} bytes a block",
        after >> 20,
        more >> 20,
        more as f64 / f64::from(blocks - early.0)
    );
    let on_disk = |part: &str| bytes_of(&folder.path().join(part)) as f64 / f64::from(blocks);
    println!("on disk: {:.0} bytes a block in the log, {:.0} in the index", on_disk("log"), on_disk("index"));
    let cut = kept.plan.tree.cut();
    reading(&kept, 2..=cut.0, "a settled block is read in");
    assert!(kept.plan.tree.settled().is_some_and(|settled| settled.top() == cut));
    kept.checkpoints.end();
    drop(kept);
    let start = |by_checkpoint| {
        let begun = Instant::now();
        let kept = Kept::open(folder.path(), by_checkpoint);
        assert_eq!(kept.base.0 > 0, by_checkpoint, "a checkpoint has a base");
        assert_eq!(at(&kept.tip(), Height(blocks)), tip, "it is where it was");
        begun.elapsed().as_secs_f64()
    };
    println!("start from the last checkpoint, as after a kill: {:.2} s", start(true));
    Kept::open(folder.path(), true).stop();
    println!("start after a clean stop: {:.2} s", start(true));
    if blocks > PLAYED_MAX {
        return;
    }
    println!("start, all slots played again: {:.1} s", start(false));
    fs::remove_dir_all(folder.path().join("index")).unwrap();
    println!("the same without an index, which is made again: {:.1} s", start(false));
}

fn main() {
    let blocks = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(200_000);
    assert!(blocks >= 20_000, "give 20,000 blocks or more: the newest 6,000 do not settle");
    scenario().crypto.during(|| {
        forging((blocks / 20).clamp(10_000, 20_000));
        lasting(blocks);
    });
}
