//! A small network that runs, its API on a real socket, and a client that speaks HTTP by hand.

use crate::support::{Answered, host_with};
use dposlab::{
    actors::{NodeId, SimTime},
    api::{
        ApiContext, Chaos, Dialect, EventFeed, LabAccess, LabBoard, LabToken, Reply, Server, Settings, View,
        views::{NetworkObservers, Views},
    },
    protocol::{Arktoshi, Nonce, Slot, Timestamp, Transaction, crypto::CryptoMode::Real},
    report::session::{Session, SessionWriter},
    scenario::{
        FaultDesk, Scenario,
        run::on_current_thread,
        testnet::{Testnet, rules_for},
    },
    sim::{
        Fault, FaultKind, LiveHandle, NodePlan, Observer, Past, Plan, SeedTree, TraceDigest, Trigger,
        fault::{NodeRef, NodeSpan, Nodes, Offline, Rounds, Span},
        live::Journal,
    },
};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
};
use tokio::sync::oneshot;

const DELEGATES: u32 = 5;

/// A running network with its API.
pub struct Network {
    pub testnet: Testnet,
    pub address: SocketAddr,
    pub plan: Plan,
    pub desk: FaultDesk,
    pub handle: LiveHandle,
    /// The context that the API answers from, for those who ask it without a socket.
    pub context: ApiContext,
    stop_api: Option<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Network {
    /// A network in which nothing happens until it is told to.
    pub fn start(seed: u64) -> Self {
        Self::with(seed, Settings::default())
    }

    /// The same, with other settings of its API.
    pub fn with(seed: u64, settings: Settings) -> Self {
        Self::of(seed, settings, &[])
    }

    /// The same, with these faults.
    fn of(seed: u64, settings: Settings, faults: &[Fault]) -> Self {
        Self::recorded(seed, settings, faults, false, None)
    }

    /// The same, on either stage, and recorded in a file.
    pub fn recorded(seed: u64, settings: Settings, faults: &[Fault], inline: bool, file: Option<&Path>) -> Self {
        Self::made(seed, settings, faults, inline, file, Vec::new())
    }

    /// The same, watched.
    pub fn watched(seed: u64, observers: Vec<Box<dyn Observer>>) -> Self {
        Self::made(seed, Settings::default(), &[], false, None, observers)
    }

    fn made(
        seed: u64,
        settings: Settings,
        faults: &[Fault],
        inline: bool,
        file: Option<&Path>,
        mut observers: Vec<Box<dyn Observer>>,
    ) -> Self {
        let seeds = SeedTree::new(seed);
        let testnet = Testnet::generate(seeds, DELEGATES, Real);
        let tree = testnet.tree(rules_for(DELEGATES as usize)).expect("as many delegates as it wants");
        let forgers = testnet.delegates.iter().map(|delegate| Some(delegate.keys.clone()));
        let nodes = forgers.map(|forger| NodePlan { forger }).collect();
        let start = SimTime::from_seconds(tree.slots().start(Slot(1)));
        let tip = tree.genesis().clone();
        let mut plan = Plan::new(tree, tip, nodes, seeds, start);
        plan.faults = faults.to_vec();
        let view = View::new(NodeId(0), plan.tree.clone(), plan.tip.clone(), plan.start);
        let view = view.with_neighbours((0..DELEGATES).map(NodeId)).with_latencies(&plan.network());
        let board = LabBoard::new(&plan).of_run(seed, "ractor");
        let feed = EventFeed::new(plan.tree.slots(), &plan.tip);
        let second = View::new(NodeId(1), plan.tree.clone(), plan.tip.clone(), plan.start);
        let second = second.with_neighbours((0..DELEGATES).map(NodeId));
        observers.extend([
            Box::new(view.clone()) as Box<dyn Observer>,
            Box::new(second.clone()),
            Box::new(board.observer()),
            Box::new(feed.observer()),
        ]);
        let chaos = Chaos::new(seed, NodeId(0), Arc::new(vec![view.clone(), second.clone()].into()));
        let past = Past::new(NetworkObservers { views: vec![view.clone(), second], board: board.clone() });
        let journal = file.map(|file| {
            let digest = TraceDigest::default();
            observers.push(Box::new(digest.clone()));
            let text = format!("version = 1\nrounds = 1\n[network]\ndelegates = {DELEGATES}\n");
            let scenario = Scenario::parse(&text, Path::new("live.toml")).expect("it is one");
            let session = Session::new(seed, &scenario, 1, plan.tree.config());
            let writer = SessionWriter::create(file, &session, &[], digest).expect("a file of our own");
            Box::new(writer) as Box<dyn Journal>
        });
        let desk = FaultDesk::new(&plan, testnet.clone());
        let (handle, simulation) = host_with(plan.clone(), observers, inline, journal, Some(past.clone()));
        let context = ApiContext {
            settings,
            desk: Some(desk.clone()),
            board,
            feed,
            chaos,
            views: Some(Views::new(past)),
            ..ApiContext::new(view, handle.clone())
        };
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), context.clone()).expect("a free port");
        let address = server.local_address();
        let (stop_api, stopped) = oneshot::channel::<()>();
        let api = thread::spawn(move || {
            let shutdown = async { stopped.await.unwrap_or(()) };
            on_current_thread(server.serve(shutdown)).expect("a socket");
        });
        let (stop_api, threads) = (Some(stop_api), vec![simulation, api]);
        Self { testnet, address, plan, desk, handle, context, stop_api, threads }
    }

    pub fn get(&self, target: &str) -> Answered {
        self.send(&format!("GET {target} HTTP/1.1\r\nhost: test\r\n\r\n"))
    }

    pub fn post(&self, target: &str, body: &Value) -> Answered {
        let body = body.to_string();
        let length = body.len();
        let head = format!("POST {target} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n");
        self.send(&format!("{head}content-length: {length}\r\n\r\n{body}"))
    }

    pub fn delete(&self, target: &str) -> Answered {
        self.send(&format!("DELETE {target} HTTP/1.1\r\nhost: test\r\n\r\n"))
    }

    pub fn advance(&self, slots: u32) -> Value {
        let answered = self.post("/lab/advance", &json!({ "slots": slots }));
        assert_eq!(answered.status, 200, "{}", answered.body);
        answered.body["data"].clone()
    }

    /// Sends a whole request on a connection of its own and reads the whole answer.
    pub fn send(&self, request: &str) -> Answered {
        let answer = self.send_raw(&request.replacen("host: test", &self.host(), 1));
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head[9..12].parse().expect("HTTP/1.1 and a status");
        let body_json = serde_json::from_str(body).unwrap_or(Value::Null);
        let mut reply = Reply::json(body.as_bytes().to_vec());
        reply.location = Some(head.to_ascii_lowercase());
        Answered { status, body: body_json, reply }
    }

    /// The headers of a request that is the only one on its connection.
    fn host(&self) -> String {
        format!("host: {}\r\nconnection: close", self.address)
    }

    pub fn send_raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        // A server that refuses a body early closes before all of it is sent.
        let _refused_early = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _reset_after_answer = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.handle.stop();
        let _ended_already = self.stop_api.take().map(|stop| stop.send(()));
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

/// The head of an answer, in lower case.
pub fn head(answered: &Answered) -> &str {
    answered.reply.location.as_deref().expect("kept there by send")
}

#[test]
fn a_transfer_goes_from_the_pool_into_a_block() {
    let network = Network::start(3);
    // One block a slot, on top of genesis.
    assert_eq!(network.advance(10)["height"], 11);
    let (sender, recipient) = (&network.testnet.accounts[0], &network.testnet.accounts[1]);
    let recipient = recipient.keys.public().address(23);
    let transfer = Transaction::transfer(recipient, Arktoshi::coins(1)).nonce(Nonce(1)).fee(Arktoshi::coins(1));
    let transfer = transfer.sign(&sender.keys);
    let id = transfer.id().to_string();
    let mut forged = transfer.to_json();
    forged["id"] = json!("0".repeat(64));
    let mut broken = transfer.to_json();
    broken["signature"] = json!("12".repeat(64));
    let answered = network.post("/api/transactions", &json!({ "transactions": [forged, broken, transfer.to_json()] }));
    assert_eq!(answered.status, 200, "{}", answered.body);
    assert_eq!(answered.body["data"]["accept"], json!([id]), "{}", answered.body);
    assert_eq!(answered.body["data"]["broadcast"], json!([id]));
    let invalid = answered.body["data"]["invalid"].as_array().expect("a list");
    assert_eq!(invalid.len(), 1);
    let why = &answered.body["errors"][invalid[0].as_str().expect("an id")][0];
    assert_eq!(why["type"], "ERR_BAD_DATA");

    let pending = network.get(&format!("/api/transactions/unconfirmed/{id}"));
    assert_eq!((pending.status, &pending.body["data"]["confirmations"]), (200, &json!(0)));
    assert_eq!(network.get("/api/transactions/unconfirmed").body["meta"]["totalCount"], 1);
    assert_eq!(network.get(&format!("/api/transactions/{id}")).status, 404);
    let again = network.post("/api/transactions", &json!({ "transactions": [transfer.to_json()] }));
    assert_eq!(again.body["errors"][&id][0]["type"], "ERR_DUPLICATE");

    network.advance(2);
    let confirmed = network.get(&format!("/api/transactions/{id}")).body["data"].clone();
    assert_eq!(confirmed["amount"], "100000000");
    assert!(confirmed["confirmations"].as_u64() >= Some(1), "{confirmed}");
    assert_eq!(network.get("/api/transactions/unconfirmed").body["meta"]["totalCount"], 0);
    let block = confirmed["blockId"].as_str().expect("an id").to_owned();
    let of_block = network.get(&format!("/api/blocks/{block}/transactions")).body;
    assert_eq!(of_block["data"][0]["id"], id);
    let wallet = network.get(&format!("/api/wallets/{recipient}/transactions/received?limit=1")).body;
    assert_eq!((&wallet["data"][0]["id"], &wallet["meta"]["totalCount"]), (&json!(id), &json!(2)));
    let sent = network.get(&format!("/api/wallets/{}/transactions/sent", sender.keys.public())).body;
    assert_eq!(sent["meta"]["totalCount"], 1);
}

/// What clients handed in is told with the answer of the node: accepted, or refused with the reason.
#[test]
fn the_lab_tells_what_was_handed_in_and_what_became_of_it() {
    let network = Network::start(6);
    network.advance(5);
    let sender = &network.testnet.accounts[0].keys;
    let recipient = network.testnet.accounts[1].keys.public().address(23);
    let transfer = |nonce| Transaction::transfer(recipient, Arktoshi::coins(1)).nonce(Nonce(nonce)).sign(sender);
    let told = || network.get("/lab/submissions").body["data"].clone();
    assert_eq!(told(), json!([]));
    let (taken, early) = (transfer(1), transfer(7));
    let answered = network.post("/api/transactions", &json!({ "transactions": [taken.to_json(), early.to_json()] }));
    let (ids, why) = ([taken.id().to_string(), early.id().to_string()], answered.body["errors"].clone());
    network.advance(1);
    assert_eq!(network.post("/api/transactions", &json!({ "transactions": [] })).status, 422);
    let told = told();
    let shown = |index: usize, name: &str| told[index][name].clone();
    assert_eq!(told.as_array().map(Vec::len), Some(3), "{told}");
    for (index, wanted) in [
        json!({"at": 48_000_000, "node": 0, "height": 6, "id": ids[0], "accepted": true, "type": null, "message": null}),
        json!({
            "at": 48_000_000, "node": 0, "height": 6, "id": ids[1], "accepted": false,
            "type": why[&ids[1]][0]["type"], "message": why[&ids[1]][0]["message"],
        }),
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(told[index], *wanted);
    }
    assert!(why[&ids[1]][0]["message"].is_string(), "{why}");
    assert_eq!((shown(2, "id"), shown(2, "accepted"), shown(2, "height")), (Value::Null, json!(false), json!(7)));
    assert_eq!(shown(2, "message"), "should NOT have fewer than 1 items");
}

#[test]
fn what_is_refused_is_named_as_it_was_sent() {
    let network = Network::start(5);
    network.advance(5);
    let sender = &network.testnet.accounts[0].keys;
    let recipient = network.testnet.accounts[1].keys.public();
    let transfer = |byte| {
        let transfer = Transaction::transfer(recipient.address(byte), Arktoshi::coins(1));
        transfer.nonce(Nonce(1)).fee(Arktoshi::coins(1)).sign(sender).to_json()
    };
    let refused = |item: Value| {
        let answered = network.post("/api/transactions", &json!({ "transactions": [item] }));
        let id = item["id"].as_str().expect("an id").to_owned();
        assert_eq!(answered.body["data"]["invalid"], json!([id]), "{}", answered.body);
        answered.body["errors"][&id][0].clone()
    };
    let mut broken = transfer(23);
    broken["signature"] = json!("12".repeat(64));
    assert_eq!(refused(broken)["type"], "ERR_BAD_DATA", "its own id is that of another transaction");
    let foreign = recipient.address(30).to_string();
    let mut elsewhere = transfer(23);
    elsewhere["recipientId"] = json!(foreign);
    let message = format!("Recipient {foreign} is not on the same network: 23");
    assert_eq!(refused(elsewhere), json!({ "type": "ERR_INVALID_RECIPIENT", "message": message }));
    let mut early = transfer(23);
    early["timestamp"] = json!(999_999_999);
    assert_eq!(refused(early)["type"], "ERR_FROM_FUTURE", "though version 2 has no timestamp");
    let version_one = |timestamp| {
        let transfer = Transaction::transfer(recipient.address(23), Arktoshi::coins(1));
        transfer.version_one(Timestamp(timestamp)).fee(Arktoshi::coins(1)).sign(sender).to_json()
    };
    assert_eq!(refused(version_one(305_000_000))["type"], "ERR_FROM_FUTURE", "what an SDK signs that knows no height");
    assert_eq!(refused(version_one(30)), json!({ "type": "ERR_UNKNOWN", "message": "Version 1 not supported." }));
    let mut shapeless = transfer(23);
    shapeless.as_object_mut().expect("an object").remove("type");
    let answered = network.post("/api/transactions", &json!({ "transactions": [shapeless] }));
    let message = "data should have required property '.type',should match some schema in anyOf";
    assert_eq!((answered.status, &answered.body["message"]), (422, &json!(message)));
}

#[test]
fn no_errors_are_null() {
    let network = Network::start(4);
    network.advance(5);
    let sender = &network.testnet.accounts[0].keys;
    let vote = dposlab::protocol::transaction::Vote::For(*network.testnet.delegates[0].keys.public());
    let vote = Transaction::vote(vote).nonce(Nonce(1)).fee(Arktoshi::coins(1)).sign(sender);
    let answered = network.post("/api/transactions", &json!({ "transactions": [vote.to_json()] }));
    let id = vote.id().to_string();
    let wanted = json!({"data": {"accept": [id], "broadcast": [id], "excess": [], "invalid": []}, "errors": null});
    assert_eq!(answered.body, wanted);
}

#[test]
fn the_run_is_steered_on_loopback_with_clear_words() {
    let network = Network::start(5);
    let advanced = network.advance(3);
    assert_eq!(advanced, json!({"slots": 3, "height": 4, "now": 32}));
    let status = network.get("/api/node/status").body["data"].clone();
    assert_eq!((&status["now"], &status["synced"]), (&json!(4), &json!(true)));
    assert_eq!(network.get("/lab/pace").body["data"]["pace"], "manual");
    for wrong in [json!({"slots": 0}), json!({"slots": 1_000_001}), json!([]), json!({})] {
        let refused = network.post("/lab/advance", &wrong);
        assert_eq!(refused.status, 422);
        assert!(refused.body["message"].as_str().expect("a text").contains("from 1 to 1000000"), "{}", refused.body);
    }
    assert_eq!(network.post("/lab/pace", &json!({"pace": "fast"})).status, 422);
    assert_eq!(network.post("/lab/pace", &json!({"pace": 0.5})).body["data"]["pace"], 0.5);
    assert_eq!(network.post("/lab/pace", &json!({"pace": "manual"})).body["data"]["pace"], "manual");
}

#[test]
fn a_network_that_stands_still_is_not_synced() {
    for dialect in [Dialect::Documented, Dialect::Core26] {
        let settings = Settings { dialect, ..Settings::default() };
        let delegates = Nodes::Span(NodeSpan { from: NodeRef::Number(0), to: NodeRef::Number(DELEGATES - 1) });
        let rounds = Some(Rounds::Span(Span { from: 1, to: 1_000 }));
        let kind = FaultKind::Offline(Offline { delegates, rounds });
        let network = Network::of(5, settings, &[Fault { kind, from: Trigger::default(), until: None }]);
        let synced = || {
            let status = network.get("/api/node/status").body["data"].clone();
            let syncing = network.get("/api/node/syncing").body["data"]["syncing"].clone();
            assert_eq!(syncing, json!(status["synced"] == false));
            (status["now"].clone(), status["synced"].clone(), status["timestamp"].clone())
        };
        network.advance(1);
        assert_eq!(synced(), (json!(1), json!(true), json!(16)), "the genesis block is 16 seconds old");
        network.advance(1);
        assert_eq!(synced(), (json!(1), json!(false), json!(24)), "three slots without a block");
        network.advance(20);
        assert_eq!(synced(), (json!(1), json!(false), json!(184)), "the clock goes on where nothing happens");
    }
}

#[test]
fn setting_the_pace_ends_an_advance_and_those_behind_it() {
    let network = Network::start(5);
    thread::scope(|scope| {
        let advance = || network.post("/lab/advance", &json!({"slots": 1_000_000})).body["data"].clone();
        let advances = [scope.spawn(advance), scope.spawn(advance)];
        while network.get("/api/node/status").body["data"]["now"].as_u64() < Some(50) {}
        assert_eq!(network.post("/lab/pace", &json!({"pace": "manual"})).body["data"]["pace"], "manual");
        let mut played: Vec<u64> = Vec::new();
        for advance in advances {
            let ended = advance.join().expect("it is answered");
            assert_eq!((&ended["asked"], &ended["stopped"]), (&json!(1_000_000), &json!("the pace was set to manual")));
            played.push(ended["slots"].as_u64().expect("a number"));
        }
        played.sort_unstable();
        // The slot that forged block 50 may not be over, and only whole slots count.
        assert!(played[0] == 0 && (48..1_000_000).contains(&played[1]), "{played:?}");
        let height = network.get("/api/node/status").body["data"]["now"].clone();
        assert_eq!(network.get("/api/node/status").body["data"]["now"], height, "the clock stands");
    });
    assert_eq!(network.advance(2)["slots"], 2, "and goes on when told to");
}

#[test]
fn going_back_to_a_snapshot_ends_an_advance() {
    let network = Network::start(5);
    network.advance(3);
    assert_eq!(network.post("/lab/snapshots", &json!({})).status, 201);
    thread::scope(|scope| {
        let advance = scope.spawn(|| network.post("/lab/advance", &json!({"slots": 1_000_000})).body["data"].clone());
        while network.get("/api/node/status").body["data"]["now"].as_u64() < Some(50) {}
        let back = network.post("/lab/snapshots/1/revert", &json!({}));
        assert_eq!(back.status, 200, "{}", back.body);
        let ended = advance.join().expect("it is answered");
        assert_eq!((&ended["asked"], &ended["stopped"]), (&json!(1_000_000), &json!("went back to a snapshot")));
        // The slot that forged block 50 may not be over, and only whole slots count.
        assert!((45..1_000_000).contains(&ended["slots"].as_u64().expect("a number")), "{ended}");
    });
    assert_eq!(network.advance(1)["height"], 5, "it goes on from the snapshot");
}

#[test]
fn browsers_get_a_page_that_leads_everywhere() {
    for dialect in [Dialect::Documented, Dialect::Core26] {
        let network = Network::with(6, Settings { dialect, ..Settings::default() });
        network.advance(3);
        let accepting =
            |accept: &str| network.send(&format!("GET / HTTP/1.1\r\nhost: test\r\naccept: {accept}\r\n\r\n"));
        let live = accepting("text/html,application/xhtml+xml,*/*;q=0.8");
        let live = String::from_utf8(live.reply.body.to_vec()).expect("a text");
        assert!(
            live.contains("page/main.js") && live.contains("href=\"about\""),
            "a browser gets the live page: {live}"
        );
        let shown = network.send("GET /about HTTP/1.1\r\nhost: test\r\n\r\n");
        assert!(head(&shown).contains("content-type: text/html"), "{}", head(&shown));
        let page = String::from_utf8(shown.reply.body.to_vec()).expect("a text");
        assert!(page.contains("height 4") && page.contains(&dialect.to_string()), "{page}");
        assert!(!page.contains('{') || !page.contains("{height}"), "all marks are filled in");
        let links: Vec<&str> = page.split("href=\"/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(links.len() > 12, "{links:?}");
        for link in links {
            let status = network.get(&format!("/{link}")).status;
            // Nobody keeps a log or webhooks here.
            let is_kept = link.contains("webhooks") || link.contains("debug");
            assert!(status == 200 || is_kept && status == 404, "/{link}: {status}");
        }
        assert!(!page.contains("http://") && !page.contains("https://"), "it loads nothing from elsewhere");
        let greeted = accepting("application/json, text/plain, */*");
        assert_eq!(greeted.body, json!({"data": "Hello World!"}), "a program gets the greeting");
        let is_page = head(&accepting("*/*")).contains("text/html");
        assert_eq!(is_page, dialect == Dialect::Documented, "what curl gets");
    }
}

/// The page without scripts names the lab only to a client that the lab answers.
#[test]
fn where_everything_is_leaves_out_a_lab_that_is_closed() {
    let token = LabToken::new("0123456789abcdef").expect("long enough");
    for (lab, header, is_open) in [
        (LabAccess::Loopback, "", true),
        (LabAccess::Loopback, "x-forwarded-for: 198.51.100.7\r\n", false),
        (LabAccess::Off, "", false),
        (LabAccess::Token(token.clone()), "", false),
        (LabAccess::Token(token), "authorization: Bearer 0123456789abcdef\r\n", true),
    ] {
        let network = Network::with(47, Settings { lab, ..Settings::default() });
        let shown = network.send(&format!("GET /about HTTP/1.1\r\nhost: test\r\n{header}\r\n"));
        let page = String::from_utf8(shown.reply.body.to_vec()).expect("a text");
        for named in ["/lab", "/metrics", "The clock is yours"] {
            assert_eq!(page.contains(named), is_open, "{named}, {header:?}: {page}");
        }
        assert!(page.contains("/api/webhooks") && page.contains("</html>") && !page.contains("<!--"), "{page}");
    }
}

#[test]
fn http_is_spoken_as_the_contract_has_it() {
    let network = Network::start(6);
    let hello = network.get("/");
    assert_eq!(hello.body, json!({"data": "Hello World!"}));
    assert!(head(&hello).contains("content-type: application/json; charset=utf-8"), "{}", head(&hello));
    assert!(head(&hello).contains("cache-control: no-cache"));

    let moved = network.get("/api/blocks///?page=1");
    assert_eq!(moved.status, 301);
    let wanted = format!("location: http://{}/api/blocks?page=1", network.address);
    assert!(head(&moved).contains(&wanted), "{}", head(&moved));
    assert_eq!(network.get("/api/nowhere/").status, 404);
    assert_eq!(network.get("/api/v2/blocks?limit=1").body["meta"]["self"], "/blocks?limit=1&transform=true&page=1");

    let looked = network.send_raw("HEAD /api/blocks HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    assert!(looked.starts_with("HTTP/1.1 200") && looked.ends_with("\r\n\r\n"), "{looked}");
    let part = network.send("GET / HTTP/1.1\r\nhost: test\r\nrange: bytes=1-6\r\n\r\n");
    assert_eq!((part.status, &part.reply.body[..]), (206, &b"\"data\""[..]));

    let origin = "origin: http://example.com\r\n";
    let foreign = network.send(&format!("GET /api/nowhere HTTP/1.1\r\nhost: test\r\n{origin}\r\n"));
    assert_eq!(foreign.status, 404);
    assert!(head(&foreign).contains("access-control-allow-origin: http://example.com"), "{}", head(&foreign));
    let asked = "access-control-request-method: POST\r\naccess-control-request-headers: x-a\r\n";
    let preflight = network.send(&format!("OPTIONS /api/blocks HTTP/1.1\r\nhost: test\r\n{origin}{asked}\r\n"));
    assert_eq!(preflight.status, 200);
    for header in ["access-control-allow-methods: post", "access-control-allow-headers: x-a", "max-age: 600"] {
        assert!(head(&preflight).contains(header), "{}", head(&preflight));
    }
    for wrong in ["DELETE /api/blocks", "PUT /api/transactions", "POST /api/node/status", "TRACE /", "OPTIONS /"] {
        let answered = network.send(&format!("{wrong} HTTP/1.1\r\nhost: test\r\n\r\n"));
        assert_eq!(answered.body, json!({"statusCode": 404, "error": "Not Found", "message": "Not Found"}), "{wrong}");
    }
}

#[test]
fn bodies_have_a_limit_and_a_type() {
    let network = Network::start(7);
    let message = |request: String| network.send(&request).body["message"].clone();
    let head = "POST /api/transactions HTTP/1.1\r\nhost: test\r\n";
    let too_long = "Payload content length greater than maximum allowed: 1048576";
    assert_eq!(message(format!("{head}content-length: 1048577\r\n\r\n")), too_long);
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(0x10_0000));
    let chunks = format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}1\r\n \r\n0\r\n\r\n");
    assert_eq!(message(chunks), too_long);
    assert_eq!(message(format!("{head}content-length: 1\r\n\r\n{{")), "Invalid request payload JSON format");
    let xml = format!("{head}content-type: application/xml\r\ncontent-length: 4\r\n\r\n<a/>");
    assert_eq!(message(xml), "Unsupported Media Type");
    assert_eq!(message(format!("{head}content-length: 0\r\n\r\n")), "should be object");
}

#[test]
fn a_port_in_use_is_named() {
    let network = Network::start(8);
    let Err(error) = Server::listen(network.address) else { panic!("the port is in use") };
    let wanted = format!("cannot listen on {}: the port is in use", network.address);
    assert!(error.to_string().starts_with(&wanted), "{error}");
}

#[test]
fn the_other_nodes_are_peers() {
    let network = Network::start(8);
    network.advance(3);
    let peers = network.get("/api/peers").body;
    assert_eq!(peers["meta"]["self"], "/peers?page=1&limit=100");
    let rows = peers["data"].as_array().expect("a list");
    assert_eq!(rows.len() as u32, DELEGATES - 1);
    let latencies: Vec<u64> = rows.iter().map(|row| row["latency"].as_u64().expect("a number")).collect();
    assert!(latencies.is_sorted() && latencies.iter().all(|latency| (40..=200).contains(latency)), "{latencies:?}");
    let height = network.get("/api/blockchain").body["data"]["block"]["height"].clone();
    let row = json!({
        "ip": "198.18.0.2", "port": 4000, "version": "2.6.57", "height": height, "status": 200, "os": "linux",
        "ports": {"@arkecosystem/core-p2p": 4000, "@arkecosystem/core-api": -1},
    });
    let mut shown = network.get("/api/peers/198.18.0.2").body["data"].clone();
    let latency = shown.as_object_mut().expect("an object").remove("latency");
    assert_eq!((latency.is_some(), shown), (true, row));
    for (target, count) in
        [("version=%5E2.6.0", 4), ("version=2.5.*", 0), ("ip=198.18.0.3", 1), ("os=linux&port=4000", 4)]
    {
        let found = network.get(&format!("/api/peers?{target}")).body;
        assert_eq!(found["meta"]["totalCount"], count, "{target}");
    }
    assert_eq!(network.get("/api/peers?version=newest").body["message"], "Invalid version range provided");
    assert_eq!(network.get("/api/peers/127.0.0.1").status, 404);
}
