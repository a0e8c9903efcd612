//! The API under load on loopback: requests a second of each kind, as a ratio to a bare route of the same framework in
//! the same process that answers 23 bytes; then searches over many transactions.
//!
//! The chain has 10,000 blocks and 10,000 wallets. Eight connections are kept alive, each with one request at a time;
//! the client shares the machine with the server, as it does for the bare route. A second argument to `--` narrows the
//! runs to paths that contain it; `deep` asks for the searches over a million transactions.
//!
//! Prints figures and asserts none: machines are shared.
#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

use dposlab::{
    actors::{NodeId, SimTime},
    api::{ApiContext, Request, Server, View, answer},
    ledger::{BlockTree, Link},
    protocol::{
        Address, Arktoshi, Block, BlockDraft, KeyPair, Nonce, PublicKey, SignedTransaction, Slot, Transaction,
        crypto::CryptoMode::Real,
    },
    scenario::{Testnet, run::on_current_thread, testnet::rules_for},
    sim::{Live, LiveHandle, NodePlan, Observer, Pace, Plan, SeedTree, Stage},
};
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::{Builder, Runtime},
};
use warp::{Filter, http::Method};

const BLOCKS: u32 = 10_000;
const WALLETS: u32 = 10_000;
const CONNECTIONS: usize = 8;
/// The time for which each kind of request is asked for at once, and the number of times.
const TIME: Duration = Duration::from_millis(200);
const SLICES: usize = 6;
/// Transactions in the chain that is searched.
const DEEP: u32 = 1_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.iter().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    if arguments.iter().any(|argument| argument == "deep") {
        searches(DEEP);
        return;
    }
    let only = arguments.first().map_or("", String::as_str);
    requests(only);
    if "submit".contains(only) {
        submissions();
    }
}

/// A chain forged by hand, with the keys that forge and send on it.
struct Forge {
    tree: Arc<BlockTree>,
    tip: Arc<Link>,
    forgers: BTreeMap<PublicKey, KeyPair>,
    slot: u32,
    senders: Vec<(KeyPair, u64)>,
}

impl Forge {
    fn new(delegates: u32) -> Self {
        let testnet = Testnet::generate(SeedTree::new(1), delegates, Real);
        let tree = testnet.tree(rules_for(1)).expect("as many delegates as it wants");
        let forgers = testnet.delegates.iter().map(|delegate| (*delegate.keys.public(), delegate.keys.clone()));
        let senders = testnet.accounts.iter().map(|account| (account.keys.clone(), 0)).collect();
        Self { tip: tree.genesis().clone(), tree, forgers: forgers.collect(), slot: 0, senders }
    }

    /// A transfer by one of the accounts in turn to the wallet of a number.
    fn transfer(&mut self, number: u32, text: Option<&str>) -> Arc<SignedTransaction> {
        let index = number as usize % self.senders.len();
        let (keys, nonce) = &mut self.senders[index];
        *nonce += 1;
        let mut transfer = Transaction::transfer(recipient(number % WALLETS), amount(1 + u64::from(number % 1_000)))
            .nonce(Nonce(*nonce))
            .fee(amount(10_000_000));
        if let Some(text) = text {
            transfer = transfer.vendor_field(text);
        }
        Arc::new(transfer.sign(keys))
    }

    fn block(&mut self, transactions: Vec<Arc<SignedTransaction>>) {
        self.slot += 1;
        let (slots, milestones) = (self.tree.slots(), &self.tree.config().milestones);
        let owner = self
            .tree
            .applied(&self.tip)
            .state
            .round()
            .owner(Slot(self.slot))
            .expect("each slot has an owner")
            .public_key;
        let milestone = milestones.at(self.tip.height().next());
        let draft = BlockDraft {
            version: milestone.block.version,
            timestamp: slots.start(Slot(self.slot)),
            height: self.tip.height().next(),
            previous: Some(self.tip.id()),
            reward: milestone.reward,
            transactions,
        };
        let block = Block::forge(draft, &self.forgers[&owner], milestones);
        self.tip = self.tree.extend(&self.tip, &Arc::new(block)).expect("a block that holds");
    }

    fn context(&self) -> ApiContext {
        let now = SimTime::from_seconds(self.tree.slots().start(Slot(self.slot)));
        ApiContext::new(View::new(NodeId(0), self.tree.clone(), self.tip.clone(), now), LiveHandle::ended())
    }
}

fn amount(value: u64) -> Arktoshi {
    Arktoshi::new(value).expect("far below all there is")
}

/// A wallet of its own for each number.
fn recipient(number: u32) -> Address {
    let mut bytes = [23; 21];
    bytes[1..5].copy_from_slice(&number.to_be_bytes());
    Address::from_bytes(bytes)
}

fn requests(only: &str) {
    let mut forge = Forge::new(51);
    for number in 0..BLOCKS - 1 {
        // Version-2 transactions are allowed on top of block 2.
        let transactions = if number > 0 { vec![forge.transfer(number, None)] } else { Vec::new() };
        forge.block(transactions);
    }
    let last = forge.tip.block().transactions[0].id();
    let delegate = forge.tip.block().header.generator;
    let context = forge.context();
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), context).expect("a free port");
    let (address, bare) = (server.local_address(), bare_route());
    thread::spawn(move || runtime().block_on(server.serve(std::future::pending())));
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let wallet = recipient(77);
    println!("a second of the bare route and of this one; ratio of these, and of the processor time of one request,");
    println!("the client's part included; 99th percentile in milliseconds; bytes of a body");
    for target in [
        "/api/node/status",
        "/api/blocks/last",
        &format!("/api/wallets/{wallet}"),
        &format!("/api/transactions/{last}"),
        &format!("/api/delegates/{delegate}"),
        "/api/blocks?limit=100",
        "/api/wallets?limit=100",
        "/api/delegates?limit=100",
        "/api/transactions?limit=100",
        "/api/blocks?page=@",
        "/api/transactions?page=@",
        "/api/wallets?page=@",
        "/api/blocks/@@",
    ] {
        if !target.contains(only) {
            continue;
        }
        // In slices by turns, so that what else the machine does meets both.
        let (mut measured, mut base) = (Measured::default(), Measured::default());
        for _ in 0..SLICES {
            client.block_on(load(bare, "/bare", &mut base));
            client.block_on(load(address, target, &mut measured));
        }
        let (rate, processor) = (measured.rate() / base.rate(), base.processor_us() / measured.processor_us());
        println!(
            "{target:<58} {:>8.0} {:>8.0} {rate:>6.2} {processor:>6.2} {:>8.2} {:>7}",
            base.rate(),
            measured.rate(),
            measured.p99_ms(),
            measured.bytes
        );
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// A route that does nothing but answer 23 bytes.
fn bare_route() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("a bound socket");
    thread::spawn(move || {
        runtime().block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a runtime with IO");
            let service = warp::service(warp::path("bare").map(|| r#"{"data":"Hello World!"}"#));
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let service = TowerToHyperService::new(service);
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
    });
    address
}

#[derive(Default)]
struct Measured {
    times: Vec<Duration>,
    took: Duration,
    processor: Duration,
    bytes: usize,
}

impl Measured {
    fn rate(&self) -> f64 {
        self.times.len() as f64 / self.took.as_secs_f64()
    }

    /// Of one request, by this process.
    fn processor_us(&self) -> f64 {
        self.processor.as_secs_f64() * 1e6 / self.times.len() as f64
    }

    fn p99_ms(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() * 99 / 100).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
    }
}

/// Processor time of this process, all threads together.
fn processor() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux lists threads");
    let nanoseconds = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Asks for a target over and over; `@` in it stands for a page, `@@` for a height, another one each time.
async fn load(address: SocketAddr, target: &str, measured: &mut Measured) {
    let (begin, processor_before) = (Instant::now(), processor());
    let clients = (0..CONNECTIONS).map(|client| tokio::spawn(ask(address, target.to_owned(), client, begin + TIME)));
    for client in clients.collect::<Vec<_>>() {
        let (own, length) = client.await.expect("no panic");
        measured.times.extend(own);
        measured.bytes = length;
    }
    measured.took += begin.elapsed();
    measured.processor += processor() - processor_before;
}

async fn ask(address: SocketAddr, target: String, client: usize, end: Instant) -> (Vec<Duration>, usize) {
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    let (mut times, mut buffer, mut number) = (Vec::new(), vec![0; 256 << 10], client);
    let mut length = 0;
    while Instant::now() < end {
        number += CONNECTIONS;
        let target = target
            .replace("@@", &(1 + number % BLOCKS as usize).to_string())
            .replace('@', &(1 + number % 95).to_string());
        let begin = Instant::now();
        stream.write_all(format!("GET {target} HTTP/1.1\r\nhost: bench\r\n\r\n").as_bytes()).await.expect("connected");
        length = read(&mut stream, &mut buffer).await;
        times.push(begin.elapsed());
    }
    (times, length)
}

/// Reads one answer and gives the length of its body.
async fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> usize {
    let mut filled = 0;
    loop {
        filled += stream.read(&mut buffer[filled..]).await.expect("connected");
        assert!(filled > 0, "the server closed");
        let Some(end) = memchr::memmem::find(&buffer[..filled], b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&buffer[..end]).expect("a head");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let length: usize = length.parse().expect("a number");
        while filled < end + 4 + length {
            filled += stream.read(&mut buffer[filled..]).await.expect("connected");
        }
        return length;
    }
}

/// Batches that each connection posts, and transactions in each.
const BATCHES: usize = 20;
const BATCH: usize = 40;

/// Transfers posted to a network of 51 delegates, and requests to it while it forges a hundred times as fast as time.
fn submissions() {
    let seeds = SeedTree::new(2);
    let testnet = Testnet::generate(seeds, 51, Real);
    let mut rules = rules_for(51);
    rules.pool.max_transactions_per_sender = BATCHES * BATCH;
    let tree = testnet.tree(rules).expect("as many delegates as it wants");
    let forgers = testnet.delegates.iter().map(|delegate| Some(delegate.keys.clone()));
    let nodes = forgers.map(|forger| NodePlan { forger }).collect();
    let start = SimTime::from_seconds(tree.slots().start(Slot(1)));
    let tip = tree.genesis().clone();
    let plan = Plan::new(tree.clone(), tip, nodes, seeds, start);
    let view = View::new(NodeId(0), plan.tree.clone(), plan.tip.clone(), plan.start);
    let view = view.with_neighbours((0..51).map(NodeId));
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(view.clone())];
    let (sender, handles) = std::sync::mpsc::channel();
    thread::spawn(move || {
        on_current_thread(async {
            let stage = Stage::ractor(&plan, observers).await.expect("names of its own");
            let (live, handle) = Live::new(stage, plan.tree.slots(), Pace::Manual);
            sender.send(handle).expect("somebody waits for it");
            live.run().await.expect("no actor dies");
        });
    });
    let handle = handles.recv().expect("the network starts");
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), ApiContext::new(view, handle.clone()));
    let server = server.expect("a free port");
    let address = server.local_address();
    thread::spawn(move || runtime().block_on(server.serve(std::future::pending())));
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime");
    client.block_on(handle.advance(3)).expect("it runs");
    let batches = |connection: usize| -> Vec<(String, Vec<SignedTransaction>)> {
        let keys = &testnet.accounts[connection].keys;
        let transfer = |number: usize| {
            let transfer = Transaction::transfer(recipient(number as u32), amount(1)).fee(amount(10_000_000));
            transfer.nonce(Nonce(1 + number as u64)).sign(keys)
        };
        let batch = |first: usize| {
            let transactions: Vec<_> = (first..first + BATCH).map(transfer).collect();
            let json: Vec<_> = transactions.iter().map(SignedTransaction::to_json).collect();
            (serde_json::json!({ "transactions": json }).to_string(), transactions)
        };
        (0..BATCHES).map(|number| batch(number * BATCH)).collect()
    };
    let all: Vec<_> = (0..CONNECTIONS).map(batches).collect();
    // The rate that verification alone allows: the same transactions as they are made, on as many threads as there are cores.
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let fresh: Vec<&SignedTransaction> = all.iter().flatten().flat_map(|(_, transactions)| transactions).collect();
    let begin = Instant::now();
    thread::scope(|scope| {
        for part in fresh.chunks(fresh.len().div_ceil(cores)) {
            scope.spawn(|| part.iter().for_each(|transaction| assert!(transaction.verified(Real), "signed above")));
        }
    });
    let alone = fresh.len() as f64 / begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let accepted: usize = client.block_on(async {
        let posts = all.iter().map(|batches| {
            let bodies: Vec<String> = batches.iter().map(|(body, _)| body.clone()).collect();
            tokio::spawn(post(address, bodies))
        });
        let mut accepted = 0;
        for post in posts.collect::<Vec<_>>() {
            accepted += post.await.expect("no panic");
        }
        accepted
    });
    let rate = accepted as f64 / begin.elapsed().as_secs_f64();
    println!("posted in batches of {BATCH}: {accepted} of {} accepted, {rate:.0} a second", fresh.len());
    println!("verification alone on {cores} cores: {alone:.0} a second; ratio {:.2}", rate / alone);
    client.block_on(handle.set_pace(Pace::Speed(100.0))).expect("it runs");
    for target in ["/api/node/status", "/api/blocks?limit=100", "/api/transactions?limit=100", "/api/wallets?limit=100"]
    {
        let mut measured = Measured::default();
        (0..2 * SLICES).for_each(|_| client.block_on(load(address, target, &mut measured)));
        println!("forging at 100x: {target:<40} {:>8.0} a second, p99 {:.2} ms", measured.rate(), measured.p99_ms());
    }
    handle.stop();
}

/// Posts bodies one after the other; how many transactions were accepted.
async fn post(address: SocketAddr, bodies: Vec<String>) -> usize {
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    let (mut buffer, mut accepted) = (vec![0; 256 << 10], 0);
    for body in bodies {
        let head = "POST /api/transactions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n";
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.expect("connected");
        let length = read(&mut stream, &mut buffer).await;
        let begin = memchr::memmem::find(&buffer, b"\r\n\r\n").expect("read to the end") + 4;
        let answer: serde_json::Value = serde_json::from_slice(&buffer[begin..begin + length]).expect("JSON");
        accepted += answer["data"]["accept"].as_array().map_or(0, Vec::len);
    }
    accepted
}

fn searches(transactions: u32) {
    let begin = Instant::now();
    let mut forge = Forge::new(51);
    forge.block(Vec::new());
    let mut number = 0;
    while number < transactions {
        let batch = (0..150).map(|_| {
            number += 1;
            let text = format!("note {number}");
            forge.transfer(number, Some(&text))
        });
        let batch = batch.collect();
        forge.block(batch);
    }
    println!(
        "{} transactions on {} blocks, made in {:.0?}",
        forge.tip.transactions(),
        forge.tip.height(),
        begin.elapsed()
    );
    let begin = Instant::now();
    let context = forge.context();
    println!("indexed in {:.1?}", begin.elapsed());
    println!("processor time of one answer, none of which was given before:");
    let sender = forge.senders[0].0.public().to_string();
    let (one, other) = (recipient(5), recipient(77));
    for target in [
        "/api/transactions?page=9000".to_owned(),
        "/api/transactions?page=9000&orderBy=timestamp:asc".to_owned(),
        "/api/transactions?orderBy=amount:desc".to_owned(),
        "/api/transactions?amount=77&page=5".to_owned(),
        "/api/transactions?amount.from=10&amount.to=500&page=2000".to_owned(),
        "/api/transactions?type=0&page=8000".to_owned(),
        "/api/transactions?type=3".to_owned(),
        "/api/transactions?vendorField=note%20777777".to_owned(),
        "/api/transactions?vendorField=77".to_owned(),
        format!("/api/transactions?senderPublicKey={sender}&page=500"),
        format!("/api/transactions?senderPublicKey={sender}&amount=5"),
        format!("/api/transactions?recipientId={one}"),
        format!("/api/wallets/{other}/transactions"),
        format!("/api/wallets/{sender}/transactions/sent?orderBy=amount:asc&page=100"),
        "/api/transactions?timestamp.from=40000&timestamp.to=41000".to_owned(),
        "/api/blocks?page=60".to_owned(),
        "/api/blocks?numberOfTransactions.from=151".to_owned(),
        "/api/node/fees?days=3".to_owned(),
    ] {
        let request = Request::new(Method::GET, &target);
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let mut times = Vec::new();
        let mut bytes = 0;
        for again in 0..5 {
            // Not the answer that was given before.
            let query = match target.contains("fees") {
                true => format!("{}{again}", request.query.trim_end_matches(char::is_numeric)).replace("=0", "=7"),
                false => format!("{}&limit={}", request.query, 100 - again),
            };
            let request = Request { query, ..request.clone() };
            let begin = processor();
            let reply = runtime.block_on(answer(&context, &request, async { Ok(Vec::new()) }));
            times.push(processor() - begin);
            bytes = reply.body.len();
            assert!(reply.status == 200, "{target}");
        }
        times.sort();
        let target: String = target.chars().take(90).collect();
        println!("{target:<90} median {:>8.2?} worst {:>8.2?} {bytes:>7} bytes", times[2], times[4]);
    }
}
