//! Shared by the modules: asking the API, and the chain that a real node was recorded on.

use dposlab::{
    actors::{Event, NodeId, SimTime},
    api::{ApiContext, Dialect, Reply, Request, Settings, View, answer, views::NetworkObservers},
    ledger::{BlockTree, Link, Rules},
    protocol::{Block, NetworkConfig, SignedTransaction, crypto::CryptoMode::Real},
    scenario::{run::on_current_thread, testnet::Testnet},
    sim::{Live, LiveHandle, Observer, Pace, Past, Plan, SeedTree, Stage, live::Journal},
};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::{
    env, fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};
use warp::http::{HeaderValue, Method, header};

/// An answer.
pub struct Answered {
    pub status: u16,
    pub body: Value,
    pub reply: Reply,
}

/// Asks without a body.
pub fn get(context: &ApiContext, target: &str) -> Answered {
    ask(context, &Request::new(Method::GET, target), Vec::new())
}

/// A request with a body of JSON.
pub fn of_json(method: Method, target: &str) -> Request {
    let mut request = Request::new(method, target);
    request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request
}

/// Asks anything.
pub fn ask(context: &ApiContext, request: &Request, body: Vec<u8>) -> Answered {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without IO");
    let reply = runtime.block_on(answer(context, request, async { Ok(body) }));
    let body = serde_json::from_slice(&reply.body).unwrap_or(Value::Null);
    Answered { status: reply.status.as_u16(), body, reply }
}

/// A generated network of five delegates that stands on its genesis block. Nothing is behind it.
pub fn at_genesis(dialect: Dialect) -> (Testnet, ApiContext) {
    let testnet = Testnet::generate(SeedTree::new(1), 5, Real);
    let tree = testnet.tree(Rules::reference()).expect("as many delegates as it wants");
    let view = View::new(NodeId(0), tree.clone(), tree.genesis().clone(), SimTime::default());
    let context = ApiContext {
        settings: Settings { dialect, ..Settings::default() },
        ..ApiContext::new(view, LiveHandle::ended())
    };
    (testnet, context)
}

/// The folder of recordings: `tests/data/recordings`, or `recordings` in the folder that `DPOSLAB_TEST_DATA` names.
pub fn recordings() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    env::var_os("DPOSLAB_TEST_DATA").map_or_else(own, PathBuf::from).join("recordings")
}

/// The exchanges of a recorded file, one object a line. The file may be compressed, with `.gz` behind its name.
pub fn exchanges(file: &Path) -> Vec<Value> {
    let compressed = PathBuf::from(format!("{}.gz", file.display()));
    let text = if file.exists() { fs::read_to_string(file) } else { inflated(&compressed) };
    let text = text.unwrap_or_else(|why| panic!("{}, with .gz or without: {why}", file.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect()
}

fn inflated(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(file)?).read_to_string(&mut text)?;
    Ok(text)
}

/// The recorded network at a height: the chain's end there, and what an API that has seen it so far shows.
pub fn recorded_view(folder: &Path, height: usize) -> (Arc<Link>, View) {
    let config = NetworkConfig::load(&folder.join("network"), Real).expect("a preset");
    // The settings of the recorded node.
    let mut rules = Rules { minimum_network_reach: None, ..Rules::reference() };
    rules.ledger.minimum_lock_expiration = false;
    let tree = Arc::new(BlockTree::new(Arc::new(config), Arc::new(rules)).expect("a genesis block"));
    let mut view = View::new(NodeId(0), tree.clone(), tree.genesis().clone(), SimTime::default());
    let mut tip = tree.genesis().clone();
    for json in exchanges(&folder.join("chain/blocks.jsonl")).iter().take(height).skip(1) {
        let block = Arc::new(Block::from_json(json, &tree.config().block_context()).expect("a block"));
        tip = tree.extend(&tip, &block).expect("a block of the recorded chain");
        let now = SimTime::from_seconds(block.header.timestamp);
        view.observe(now, NodeId(0), &Event::BlockApplied(tip.clone()));
    }
    (tip, view)
}

/// The recorded network at a height, with the recorded pool if it is the last one.
pub fn recorded_chain(folder: &Path, height: usize, dialect: Dialect) -> ApiContext {
    let (tip, mut view) = recorded_view(folder, height);
    let tree = view.tree().clone();
    let pool = fs::read_to_string(folder.join("chain/pool.json")).expect("the pool was recorded");
    let pool: Vec<Value> = serde_json::from_str(&pool).expect("a list");
    if tip.height().0 == 111 {
        let context = tree.config().transaction_context(tip.height());
        let pending = pool.iter().map(|json| Arc::new(SignedTransaction::from_json(json, &context).expect("valid")));
        view.observe(view.now(), NodeId(0), &Event::PoolAdded(pending.collect()));
    }
    ApiContext { settings: Settings { dialect, ..Settings::default() }, ..ApiContext::new(view, LiveHandle::ended()) }
}

/// Hosts a plan in which nothing happens until it is told to, on a thread of its own.
pub fn host(plan: Plan, observers: Vec<Box<dyn Observer>>) -> (LiveHandle, JoinHandle<()>) {
    host_on(plan, observers, false, None)
}

/// The same, on either stage, and written down.
pub fn host_on(
    plan: Plan,
    observers: Vec<Box<dyn Observer>>,
    inline: bool,
    journal: Option<Box<dyn Journal>>,
) -> (LiveHandle, JoinHandle<()>) {
    host_with(plan, observers, inline, journal, None)
}

/// The same, whose past is kept.
pub fn host_with(
    plan: Plan,
    observers: Vec<Box<dyn Observer>>,
    inline: bool,
    journal: Option<Box<dyn Journal>>,
    past: Option<Past<NetworkObservers>>,
) -> (LiveHandle, JoinHandle<()>) {
    let (sender, handles) = mpsc::channel();
    let simulation = thread::spawn(move || {
        on_current_thread(async {
            let stage = match inline {
                true => Stage::inline(&plan, observers),
                false => Stage::ractor(&plan, observers).await.expect("names of its own"),
            };
            let (live, handle) = Live::new(stage, plan.tree.slots(), Pace::Manual);
            let live = live.journalled(journal);
            let live = match past {
                Some(past) => live.remembered(past),
                None => live,
            };
            sender.send(handle).expect("the test waits for it");
            live.run().await.expect("no actor dies");
        });
    });
    (handles.recv().expect("the network starts"), simulation)
}
