//! The API's reading of blocks that have settled, beside those in memory: a testnet of five delegates in a folder, with two
//! transactions a block, and the same requests of both parts of its chain.
//!
//! `cargo bench --bench lists` plays 20,000 blocks; `-- 200000` as many as it says, `-- pages` none. Then it compares pages of 100
//! rows of two more testnets: one with a transaction a block, and one whose oldest and newest blocks are as full as they may be,
//! each page of the list of a wallet with rows of nearly 100 blocks. Times are medians of requests that were not asked before, in
//! process, without HTTP. Prints figures and asserts none but that answers are found.
#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

use dposlab::{
    actors::{NodeId, SimTime},
    api::{ApiContext, Older, Request, Shelf, View, answer},
    protocol::Height,
    report::session::{
        Session,
        folder::{Folder, FolderWriter, OpenFolder, Sync},
    },
    scenario::{FaultDesk, Scenario, run::among_actors},
    sim::{
        LiveHandle, Observer, SeedTree, Stage,
        live::{Journal, Settler},
    },
};
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::runtime::{Builder, Runtime};
use warp::http::{Method, StatusCode};

/// Events between two looks at what may settle, as a live run has them.
const EVENTS_AT_ONCE: usize = 512;
/// Requests of each kind.
const REQUESTS: usize = 500;

/// A page's rows.
const ROWS: u64 = 100;
/// Blocks of the testnets whose pages are compared.
const PAGED_BLOCKS: u32 = 6_000;
/// Pages of each kind at most.
const PAGES: usize = 60;
/// A testnet of five delegates with these workloads, which have some lines in common.
fn scenario(rounds: u32, rules: &str, workloads: &[&str]) -> Scenario {
    let same = "[[workload]]\nkind = \"generate\"\namount = { median = 3, sigma = 1 }";
    let workloads: String = workloads.iter().map(|lines| format!("{same}\n{lines}\n")).collect();
    let head = format!("version = 1\nrounds = {rounds}\ncrypto = \"modelled\"\n[network]\ndelegates = 5");
    Scenario::parse(&format!("{head}\n{rules}\n{workloads}"), Path::new("bench")).expect("it is one")
}

fn few_transactions() -> Scenario {
    scenario(1, "", &["per_second = 0.25\nwallets = 50\nfunding = 5000"])
}

const SHALLOW: &str = "[rules.node]\nrollback_max = 100";
const MIX: &str = "mix = { transfer = 10, vote = 2, htlc-lock = 1 }";

/// One transaction a block.
fn one_each() -> Scenario {
    scenario(1, SHALLOW, &[&format!("per_second = 0.125\nwallets = 10\nfunding = 50000\n{MIX}")])
}

/// Up to 150 transactions a block at both ends of the chain.
fn full() -> Scenario {
    let busy = |when: &str| format!("per_second = 25\nwallets = 600\nfunding = 5000\n{MIX}\n{when}");
    scenario(1_300, SHALLOW, &[&busy("until = { height = 450 }"), &busy("from = { height = 5500 }")])
}

/// A testnet in a folder, and its API.
struct Kept {
    stage: Stage,
    writer: FolderWriter,
    shelf: Arc<Shelf>,
    view: View,
    runtime: Runtime,
}

impl Kept {
    fn open(folder: &Path, scenario: &Scenario) -> Self {
        let seeds = SeedTree::new(7);
        let testnet = scenario.testnet(seeds);
        let plan = scenario.plan(&testnet, seeds);
        let desk = FaultDesk::new(&plan, testnet);
        let session = Session::new(7, scenario, 1, plan.tree.config());
        let opened = among_actors(Folder::new(folder).open(&session, &plan, &desk, Vec::new())).unwrap();
        let OpenFolder { log, settling, inputs, .. } = opened;
        let writer = FolderWriter::new(log, settling, inputs, Sync::Within(Duration::from_secs(1)), &plan, 1);
        let byte = plan.tree.config().network.pub_key_hash;
        let (shelf, _) = Shelf::open(&folder.join("index/lists"), plan.tree.settled().as_deref(), byte).unwrap();
        let shelf = Arc::new(shelf);
        let older = Some(shelf.clone() as Arc<dyn Older>);
        let view = View::with_older(NodeId(0), plan.tree.clone(), plan.tip.clone(), plan.start, older);
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(writer.clone()), Box::new(view.clone())];
        let runtime = Builder::new_current_thread().build().unwrap();
        Self { stage: Stage::inline(&plan, observers), writer, shelf, view, runtime }
    }

    fn play(&mut self, height: Height) {
        while self.view.head().height() < height {
            for _ in 0..EVENTS_AT_ONCE {
                among_actors(self.stage.step(SimTime::from_micros(u64::MAX))).expect("nobody dies");
            }
            let world = self.stage.world();
            self.writer.stands(world.now(), world.delivered(), world.tips().winning(), false);
            if let Some(lowest) = self.writer.settle(world.tips()) {
                self.stage.forget_moments(lowest);
            }
        }
        self.writer.outcome().expect("it was written");
    }

    /// The median time of requests [µs].
    fn ask(&self, targets: &[String]) -> f64 {
        let context = ApiContext::new(self.view.clone(), LiveHandle::ended());
        let mut times: Vec<f64> = targets
            .iter()
            .map(|target| {
                let request = Request::new(Method::GET, target);
                let begun = Instant::now();
                let reply = self.runtime.block_on(answer(&context, &request, async { Ok(Vec::new()) }));
                let time = begun.elapsed().as_secs_f64() * 1e6;
                assert_eq!(reply.status, StatusCode::OK, "{target}");
                time
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    /// The number of rows of a list.
    fn rows(&self, path: &str) -> u64 {
        self.rows_of(&format!("{path}?limit=1"))
    }

    fn rows_of(&self, target: &str) -> u64 {
        let context = ApiContext::new(self.view.clone(), LiveHandle::ended());
        let request = Request::new(Method::GET, target);
        let reply = self.runtime.block_on(answer(&context, &request, async { Ok(Vec::new()) }));
        let body: serde_json::Value = serde_json::from_slice(&reply.body).expect("it is JSON");
        body["meta"]["totalCount"].as_u64().unwrap_or(0)
    }

    /// Pages of lists, the oldest whole ones or the newest.
    fn compare_pages(&self, what: &str, paths: &[String]) {
        let each = PAGES.div_ceil(paths.len()) as u64;
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for path in paths {
            let whole = self.rows(path) / ROWS;
            let pages = each.min(whole / 2);
            let target = |page: u64| format!("{path}?limit={ROWS}&page={page}");
            old.extend((0..pages).map(|page| target(whole - page)));
            new.extend((0..pages).map(|page| target(1 + page)));
        }
        self.compare(what, &old, &new);
    }

    fn compare(&self, what: &str, old: &[String], new: &[String]) {
        if old.is_empty() || new.is_empty() {
            return println!("{what}: too few");
        }
        let _warm = (self.ask(&old[..1]), self.ask(&new[..1]));
        let (old, new) = (self.ask(old), self.ask(new));
        println!("{what}: {old:.1} µs settled, {new:.1} µs in memory, {:.2} times", old / new);
    }

    /// Ids of blocks and transactions at heights of a range.
    fn ids(&self, from: u32, to: u32, random: &mut ChaCha8Rng) -> (Vec<String>, Vec<String>) {
        let head = self.view.head();
        let (mut blocks, mut transactions) = (Vec::new(), Vec::new());
        while blocks.len() < REQUESTS || transactions.len() < REQUESTS {
            let entry = head.block_at(Height(random.random_range(from..=to))).expect("it is on the chain");
            blocks.push(entry.link().id().to_string());
            transactions.extend(entry.link().block().transactions.first().map(|one| one.id().to_string()));
        }
        (blocks, transactions)
    }
}

/// Memory of the process, in bytes.
fn memory() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}

/// Bytes that a folder takes on the disk: the store's journal is longer than what is in it.
fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { bytes_of(&path) } else { fs::metadata(path).unwrap().blocks() * 512 }).sum()
}

fn compare(blocks: u32) {
    let folder = tempfile::tempdir().unwrap();
    let scenario = few_transactions();
    let mut kept = Kept::open(folder.path(), &scenario);
    let early = Height(blocks / 2);
    kept.play(early);
    let before = (memory(), kept.view.head().chain().transactions());
    kept.play(Height(blocks));
    let after = (memory(), kept.view.head().chain().transactions());
    kept.shelf.flush().unwrap();
    let (top, height) = (kept.shelf.top().0, kept.view.head().height().0);
    let transactions = after.1;
    println!("lists: {blocks} blocks with {transactions} transactions; {top} blocks have settled");
    println!(
        "memory: {} MiB, {} KiB more for the last {} blocks and their {} transactions",
        after.0 >> 20,
        after.0.saturating_sub(before.0) >> 10,
        blocks - early.0,
        transactions - before.1
    );
    println!(
        "on disk: {:.0} bytes a block, its transactions among them",
        bytes_of(&folder.path().join("index/lists")) as f64 / f64::from(top)
    );
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (old_blocks, old_transactions) = kept.ids(10, top, &mut random);
    let (new_blocks, new_transactions) = kept.ids(top + 1, height, &mut random);
    let mut compare = |what: &str, path: &str, old: &[String], new: &[String]| {
        let mut targets = |some: &[String]| -> Vec<String> {
            let mut some: Vec<String> = some.iter().take(REQUESTS).map(|one| format!("{path}{one}")).collect();
            some.shuffle(&mut random);
            some
        };
        let (old, new) = (kept.ask(&targets(old)), kept.ask(&targets(new)));
        println!("{what}: {old:.1} µs settled, {new:.1} µs in memory, {:.2} times", old / new);
    };
    compare("a block by id", "/api/blocks/", &old_blocks, &new_blocks);
    compare("a transaction by id", "/api/transactions/", &old_transactions, &new_transactions);
    let heights = |from: u32, to: u32| -> Vec<String> {
        let step = ((to - from) / REQUESTS as u32).max(1);
        (from..=to).step_by(step as usize).map(|height| height.to_string()).collect()
    };
    compare("a block by height", "/api/blocks/", &heights(11, top), &heights(top + 1, height));
    let last = u64::from(height - top) / 100;
    let pages = |from: u64, count: u64| -> Vec<String> { (from..from + count).map(|page| page.to_string()).collect() };
    let deep = u64::from(height) / 100 - 30;
    compare("a page of 100 blocks", "/api/blocks?limit=100&page=", &pages(deep, 20), &pages(1, last.min(20)));
    let rows = transactions - 2_500;
    let deep = rows / 100;
    compare("a page of 100 transactions", "/api/transactions?limit=100&page=", &pages(deep, 20), &pages(1, 20));
    let wallet = kept.view.head().block_at(Height(height)).and_then(|_| {
        let chain = kept.view.head();
        (1..=height).rev().find_map(|height| {
            let entry = chain.block_at(Height(height))?;
            entry.link().block().transactions.first().map(|one| one.sender_address().to_string())
        })
    });
    let wallet = wallet.expect("somebody has sent something");
    let path = format!("/api/wallets/{wallet}/transactions?limit=20&page=");
    compare("20 of a wallet's transactions", &path, &pages(20, 10), &pages(1, 10));
    let one = |target: &str| println!("{target}: {:.0} µs", kept.ask(&[target.to_owned()]));
    one("/api/transactions?orderBy=amount:asc");
    one("/api/transactions?amount=12345");
    one("/api/blocks?orderBy=totalFee:desc");
}

/// Compares pages of all kinds of lists of a testnet whose oldest blocks have settled.
fn compare_all_pages(name: &str, scenario: &Scenario) {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Kept::open(folder.path(), scenario);
    kept.play(Height(PAGED_BLOCKS));
    kept.shelf.flush().unwrap();
    let head = kept.view.head();
    let (top, height) = (kept.shelf.top().0, head.height().0);
    println!("{name}: {height} blocks with {} transactions; {top} blocks have settled", head.chain().transactions());
    let mut random = ChaCha8Rng::seed_from_u64(1);
    // Whoever sent something in a part of the chain.
    let mut senders = |heights: Range<u32>| -> Vec<String> {
        let entries = heights.map(Height).filter_map(|height| head.block_at(height));
        let mut senders = BTreeSet::new();
        for entry in entries {
            senders.extend(entry.link().block().transactions.iter().map(|one| one.sender_address().to_string()));
        }
        let mut senders: Vec<String> = senders.into_iter().collect();
        senders.shuffle(&mut random);
        senders.truncate(PAGES);
        senders
    };
    let (old_senders, new_senders) = (senders(400..440), senders(height - 40..height));
    for list in ["transactions", "transactions/sent", "transactions/received"] {
        let of = |wallets: &[String]| -> Vec<(String, u64)> {
            let paths = wallets.iter().map(|wallet| format!("/api/wallets/{wallet}/{list}"));
            paths
                .map(|path| (kept.rows(&path) / ROWS, path))
                .filter(|(whole, _)| *whole > 0)
                .map(|(w, p)| (p, w))
                .collect()
        };
        let target = |path: &str, page: u64| format!("{path}?limit={ROWS}&page={page}");
        let old: Vec<String> = of(&old_senders).iter().map(|(path, whole)| target(path, *whole)).collect();
        let new: Vec<String> = of(&new_senders).iter().map(|(path, _)| target(path, 1)).collect();
        kept.compare(&format!("a wallet's {list}"), &old, &new);
    }
    kept.compare_pages("votes", &["/api/votes".to_owned()]);
    kept.compare_pages("blocks", &["/api/blocks".to_owned()]);
    kept.compare_pages("transactions", &["/api/transactions".to_owned()]);
    let of_delegates: Vec<String> =
        head.state().delegates().map(|delegate| format!("/api/delegates/{}/blocks", delegate.address)).collect();
    kept.compare_pages("a delegate's blocks", &of_delegates);
    let of_type = |from: u64, step: u64| -> Vec<String> {
        (0..20).map(|page| format!("/api/transactions?type=8&limit=100&page={}", from + page * step)).collect()
    };
    let locks = kept.rows_of("/api/transactions?type=8&limit=1") / ROWS;
    if locks > 8 {
        let count = (locks / 4).min(20) as usize;
        let (old, new) = (of_type(locks - count as u64, 1), of_type(1, 1));
        kept.compare("transactions of a type", &old[..count], &new[..count]);
    }
    // As many transactions in each.
    let mut counts = BTreeMap::<usize, [Vec<Height>; 2]>::new();
    for height in (10..=height).map(Height) {
        let entry = head.block_at(height).expect("it is on the chain");
        let count = entry.link().block().transactions.len();
        if count > 0 {
            counts.entry(count).or_default()[usize::from(height.0 > top)].push(height);
        }
    }
    let usual = counts.iter().max_by_key(|(_, [old, new])| old.len().min(new.len())).expect("there are some");
    let (count, [old, new]) = usual;
    println!("{name}: blocks of {count} transactions, {} settled, {} in memory", old.len(), new.len());
    let ids = |heights: &[Height], of_transactions: bool, rest: &str| -> Vec<String> {
        let mut heights = heights.to_vec();
        heights.shuffle(&mut ChaCha8Rng::seed_from_u64(2));
        let entries = heights.into_iter().take(REQUESTS).filter_map(|height| head.block_at(height));
        entries
            .map(|entry| match of_transactions {
                true => format!("/api/transactions/{}", entry.link().block().transactions[count / 2].id()),
                false => format!("/api/blocks/{}{rest}", entry.link().id()),
            })
            .collect()
    };
    kept.compare("a block by id", &ids(old, false, ""), &ids(new, false, ""));
    kept.compare("a transaction by id", &ids(old, true, ""), &ids(new, true, ""));
    let rest = "/transactions?limit=100";
    kept.compare("a block's transactions", &ids(old, false, rest), &ids(new, false, rest));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    for (name, scenario) in [("one transaction a block", one_each()), ("full blocks", full())] {
        compare_all_pages(name, &scenario);
    }
    if arguments.iter().any(|argument| argument == "pages") {
        return;
    }
    let blocks = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(20_000);
    assert!(blocks >= 20_000, "give 20,000 blocks or more: the newest 6,000 do not settle");
    compare(blocks);
}
