//! The cost of a testnet in a folder that lasts: memory of a chain of empty blocks with 51 delegates, whose deep blocks
//! settle; the speed of forging beside that of the same run without a folder; how long it takes to start again, from a
//! checkpoint and by playing all slots, with the index and without it; and how soon an old block is read.
//!
//! With `transactions` blocks are full, and the wallets are as many as one likes: `-- transactions 10000000 1000000`. With `compared`
//! the time of so many transactions stands beside that of the same run without a folder: `-- compared 1200000 100000`, of which the
//! first fifth settles.
//!
//! `cargo bench --bench store` plays 200,000 blocks (minutes: each of 51 nodes takes each block); `-- 10000000` plays so many.
//! Signatures are modelled, for what is measured is not cryptography. The folder lies in the system's folder for temporary
//! files.

#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use dposlab::{
    actors::{NodeId, SimTime},
    ledger::Link,
    protocol::{Address, Arktoshi, Height, KeyPair, Nonce, SignedTransaction, Transaction},
    report::session::{
        Session,
        folder::{
            Folder, FolderWriter, OpenFolder, ResumedTestnet, Sync,
            checkpoint::{Beside, Checkpoints, EVERY},
        },
    },
    scenario::{FaultDesk, Scenario, Testnet, run::among_actors},
    sim::{
        Intervention, Observer, Outcome, Plan, SeedTree, Stage, TraceDigest,
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

/// That of the program, whose memory is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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

/// The network of `up`, whose signatures are modelled.
const SCENARIO: &str = "
version = 1
rounds = 1
crypto = \"modelled\"

[network]
gossip = \"once\"

[rules.node]
transactions_in_order = true
";

fn scenario() -> Scenario {
    Scenario::parse(SCENARIO, Path::new("bench")).expect("it is one")
}

fn plan(scenario: &Scenario) -> (Plan, FaultDesk) {
    let seeds = SeedTree::new(7);
    let testnet = scenario.testnet(seeds);
    let plan = scenario.plan(&testnet, seeds);
    let desk = FaultDesk::new(&plan, testnet);
    (plan, desk)
}

/// A testnet.
struct Run {
    plan: Plan,
    stage: Stage,
    kept: Option<Kept>,
}

/// The folder that keeps a testnet.
struct Kept {
    writer: FolderWriter,
    checkpoints: Checkpoints,
    /// The height of the base that it began with.
    base: Height,
}

fn beside(digest: &TraceDigest) -> Beside {
    Beside { digest: digest.clone(), numbers: Box::new(Vec::new), go_on: Box::new(|_| Ok(())) }
}

impl Run {
    fn without_folder() -> Self {
        let (plan, _) = plan(&scenario());
        let stage = Stage::inline(&plan, vec![Box::new(TraceDigest::default())]);
        Self { plan, stage, kept: None }
    }

    fn open(folder: &Path, by_checkpoint: bool) -> Self {
        let scenario = scenario();
        let (plan, desk) = plan(&scenario);
        let session = Session::new(7, &scenario, 1, plan.tree.config());
        let digest = TraceDigest::default();
        let (beside_it, watching) = (beside(&digest), vec![Box::new(digest.clone()) as Box<dyn Observer>]);
        let by = by_checkpoint.then_some(&beside_it);
        let opened = among_actors(Folder::new(folder).open_with(&session, &plan, &desk, watching, by)).unwrap();
        let OpenFolder { log, settling, inputs, resumed, .. } = opened;
        let writer = FolderWriter::new(log, settling, inputs, Sync::Within(Duration::from_secs(1)), &plan, 1);
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(writer.clone()), Box::new(digest.clone())];
        let (mut stage, writer, base) = match resumed {
            Some(ResumedTestnet { moment, snapshots, known, base, .. }) => {
                (Stage::at(&moment, snapshots, observers), writer.after(known), base)
            }
            None => (Stage::inline(&plan, observers), writer, Height(0)),
        };
        stage.log_in(writer.input_log().expect("a folder has one"));
        let tell = |why: &str| panic!("{why}");
        let checkpoints = Checkpoints::new(folder, &plan, writer.clone(), beside(&digest), EVERY, tell).unwrap();
        Self { plan, stage, kept: Some(Kept { writer, checkpoints, base }) }
    }

    fn play(&mut self, height: Height) {
        while self.tip().height() < height {
            self.some();
        }
        self.is_written();
    }

    fn is_written(&self) {
        if let Some(kept) = &self.kept {
            kept.writer.outcome().expect("it was written");
        }
    }

    fn some(&mut self) {
        for _ in 0..EVENTS_AT_ONCE {
            among_actors(self.stage.step(SimTime::from_micros(u64::MAX))).expect("nobody dies");
        }
        let Some(kept) = &mut self.kept else { return };
        let world = self.stage.world();
        kept.writer.stands(world.now(), world.delivered(), world.tips().winning(), false);
        if let Some(lowest) = kept.writer.settle(world.tips()) {
            self.stage.forget_moments(lowest);
            self.stage.let_go_of_inputs(usize::MAX);
        }
        if kept.checkpoints.is_due(self.stage.world().tips().winning().height()) {
            self.keep();
        }
    }

    /// Ends as a clean stop does, with a checkpoint.
    fn stop(mut self) {
        self.keep();
        self.kill();
    }

    /// Ends without another checkpoint.
    fn kill(mut self) {
        self.kept.iter_mut().for_each(|kept| kept.checkpoints.end());
    }

    fn keep(&mut self) {
        let now = self.stage.world().now();
        self.stage.rest_until(now);
        let moment = among_actors(self.stage.moment()).expect("nobody dies");
        let snapshots = self.stage.snapshots();
        self.kept.iter_mut().for_each(|kept| kept.checkpoints.keep(moment.clone(), snapshots));
    }

    fn tip(&self) -> Arc<Link> {
        self.stage.world().tips().winning().clone()
    }
}

/// The time that something takes without a folder and in one: both end with the same block.
fn beside_each_other(mut play: impl FnMut(&mut Run) -> String) -> (Duration, Duration) {
    let mut timed = |run: &mut Run| {
        let begun = Instant::now();
        let last = play(run);
        (begun.elapsed(), last)
    };
    let (without, one) = timed(&mut Run::without_folder());
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Run::open(folder.path(), true);
    let (with, other) = timed(&mut kept);
    kept.kill();
    assert_eq!(one, other, "it is the same chain");
    (without, with)
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
        let (without, with) = beside_each_other(|run| {
            run.play(height);
            at(&run.tip(), height)
        });
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

fn reading(kept: &Run, heights: std::ops::RangeInclusive<u32>, what: &str) -> f64 {
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

/// Seconds of a start, after which the chain goes through this block.
fn start(folder: &Path, by_checkpoint: bool, tip: &str, height: Height) -> f64 {
    let begun = Instant::now();
    let run = Run::open(folder, by_checkpoint);
    let took = begun.elapsed().as_secs_f64();
    let base = run.kept.as_ref().map_or(Height(0), |kept| kept.base);
    assert_eq!(base > Height(0), by_checkpoint && run.plan.tree.cut() > Height(0), "a checkpoint has a base");
    assert_eq!(at(&run.tip(), height), tip, "it is where it was");
    run.kill();
    took
}

fn lasting(blocks: u32) {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Run::open(folder.path(), true);
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
    kept.kill();
    let start = |by_checkpoint| start(folder.path(), by_checkpoint, &tip, Height(blocks));
    println!("start from the last checkpoint, as after a kill: {:.2} s", start(true));
    Run::open(folder.path(), true).stop();
    println!("start after a clean stop: {:.2} s", start(true));
    if blocks > PLAYED_MAX {
        return;
    }
    println!("start, all slots played again: {:.1} s", start(false));
    fs::remove_dir_all(folder.path().join("index")).unwrap();
    println!("the same without an index, which is made again: {:.1} s", start(false));
}

/// Transfers by the funded accounts in turn: one to each wallet, then to random ones.
struct Payers {
    payers: Vec<(KeyPair, Nonce)>,
    paid: u32,
    wallets: u32,
    random: ChaCha8Rng,
}

impl Payers {
    fn new(testnet: &Testnet, wallets: u32) -> Self {
        let payers = testnet.accounts.iter().map(|account| (account.keys.clone(), Nonce(0))).collect();
        Self { payers, paid: 0, wallets, random: ChaCha8Rng::seed_from_u64(1) }
    }

    fn transfer(&mut self) -> Arc<SignedTransaction> {
        self.paid += 1;
        let number = if self.paid <= self.wallets { self.paid } else { self.random.random_range(1..=self.wallets) };
        let to = ChaCha8Rng::seed_from_u64(number.into()).random::<[u8; 20]>();
        let to = Address::from_bytes([&[23], &to[..]].concat().try_into().expect("21 bytes"));
        let payer = self.paid as usize % self.payers.len();
        let (keys, nonce) = &mut self.payers[payer];
        *nonce = nonce.next();
        let coin = |amount| Arktoshi::new(amount).expect("it is little");
        Arc::new(Transaction::transfer(to, coin(1)).fee(coin(10_000_000)).nonce(*nonce).sign(keys))
    }
}

/// Transactions of one request, and those that may be pending.
const REQUEST: usize = 40;
const PENDING_MAX: u64 = 800;

impl Run {
    /// Has so many transactions handed in at a node, and plays on until they are on its chain.
    fn pay(&mut self, count: u64, payers: &mut Payers) {
        let (mut sent, begun) = (0, self.on_chain());
        while self.on_chain() - begun < count {
            while sent < count && sent - (self.on_chain() - begun) < PENDING_MAX {
                let transactions: Vec<_> = (0..REQUEST).map(|_| payers.transfer()).collect();
                let what = Intervention::Submit { node: NodeId(0), transactions: transactions.into() };
                let world = self.stage.world();
                let place = self.kept.as_mut().and_then(|kept| {
                    kept.writer.comes_in(world.now(), world.delivered(), world.tips(), &what);
                    kept.writer.last_place()
                });
                let outcome = among_actors(self.stage.intervene_at(what, place)).expect("nobody dies");
                let is_taken = matches!(&outcome, Outcome::Submitted(taken) if taken.accept.len() == REQUEST);
                assert!(is_taken, "all are in order: {outcome:?}");
                sent += REQUEST as u64;
            }
            self.some();
        }
        self.is_written();
    }

    fn on_chain(&self) -> u64 {
        self.plan.tree.applied(&self.tip()).state.transactions()
    }
}

/// Time that transactions take in a folder, beside the same without one.
fn forging_full_blocks(count: u64, wallets: u32) {
    let (without, with) = beside_each_other(|run| {
        run.play(Height(2));
        run.pay(count, &mut Payers::new(&scenario().testnet(SeedTree::new(7)), wallets));
        let tip = run.tip();
        at(&tip, Height(tip.height().0 - 1))
    });
    println!(
        "forging {count} transactions in a folder: {:.0} a second, time ratio {:.3} to a run without",
        count as f64 / with.as_secs_f64(),
        with.as_secs_f64() / without.as_secs_f64()
    );
}

/// So many transactions to so many wallets.
fn paying(count: u64, wallets: u32) {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Run::open(folder.path(), true);
    // Of the second version from there on.
    kept.play(Height(2));
    let mut payers = Payers::new(&scenario().testnet(SeedTree::new(7)), wallets);
    let mut most = 0;
    for tenth in 1..=10 {
        let begun = Instant::now();
        kept.pay(count / 10, &mut payers);
        most = most.max(memory());
        println!(
            "{} transactions, {} blocks, {} wallets: {} MiB, {:.0} transactions a second",
            count / 10 * tenth,
            kept.tip().height(),
            kept.plan.tree.applied(&kept.tip()).state.wallets().len(),
            memory() >> 20,
            (count / 10) as f64 / begun.elapsed().as_secs_f64()
        );
    }
    println!("most memory at the end of a tenth: {} MiB", most >> 20);
    let on_disk = |part: &str| bytes_of(&folder.path().join(part)) as f64 / count as f64;
    println!("on disk: {:.0} bytes a transaction in the log, {:.0} in the index", on_disk("log"), on_disk("index"));
    let height = kept.tip().height();
    let tip = at(&kept.tip(), height);
    kept.kill();
    let killed = start(folder.path(), true, &tip, height);
    println!("start from the last checkpoint, as after a kill: {killed:.2} s, {} MiB", memory() >> 20);
    Run::open(folder.path(), true).stop();
    println!("start after a clean stop: {:.2} s", start(folder.path(), true, &tip, height));
}

fn main() {
    let numbers: Vec<u32> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let is = |word: &str| std::env::args().any(|argument| argument == word);
    let count = numbers.first().copied();
    let wallets = |count: u32| numbers.get(1).copied().unwrap_or(count / 10);
    if is("compared") {
        let count = count.unwrap_or(1_200_000);
        forging_full_blocks(count.into(), wallets(count));
    } else if is("transactions") {
        let count = count.unwrap_or(100_000);
        paying(count.into(), wallets(count));
    } else {
        let blocks = count.unwrap_or(200_000);
        assert!(blocks >= 20_000, "give 20,000 blocks or more: the newest 6,000 do not settle");
        forging((blocks / 20).clamp(10_000, 20_000));
        lasting(blocks);
    }
}
