//! Views of the past: what they answer is what the API answered then, byte for byte, and the live network does not notice.

use crate::{
    live::Network,
    support::{Answered, ask, get, host_with, of_json},
};
use dposlab::{
    actors::NodeId,
    api::{
        ApiContext, ApiError, LabBoard, Settings, View,
        chains::Chains,
        views::{NetworkObservers, VIEWS_MAX},
    },
    protocol::{Arktoshi, KeyPair, Nonce, Transaction, crypto::CryptoMode::Real},
    scenario::run::on_current_thread,
    sim::{Observer, Past, SeedTree, past::RunPoint},
};
use rand::Rng;
use serde_json::{Value, json};
use std::sync::Arc;
use warp::http::Method;

/// The routes that are compared, below `/views/{id}` and at the root.
const SEEN: [&str; 13] = [
    "/api/wallets",
    "/api/wallets?page=2&limit=3",
    "/api/blocks",
    "/api/delegates",
    "/api/node/status",
    "/api/node/syncing",
    "/api/blockchain",
    "/api/peers",
    "/api/transactions/unconfirmed",
    "/lab",
    "/lab/round",
    "/lab/tree?from=1",
    "/lab/faults",
];

/// An instant at which the live API was asked.
struct Then {
    place: RunPoint,
    seen: Vec<Vec<u8>>,
    /// Of the second served node.
    second: Vec<u8>,
}

fn place(network: &Network) -> RunPoint {
    let look = network.handle.look(|stage| {
        let world = stage.world();
        RunPoint { at: world.now(), delivered: world.delivered(), inputs: stage.snapshots().count_inputs() }
    });
    on_current_thread(look).expect("it goes on")
}

fn bytes(answered: &Answered) -> Vec<u8> {
    assert_eq!(answered.status, 200, "{}", answered.body);
    answered.reply.body.to_vec()
}

fn seen(network: &Network, below: &str) -> Vec<Vec<u8>> {
    SEEN.iter().map(|path| bytes(&network.get(&format!("{below}{path}")))).collect()
}

fn then(network: &Network) -> Then {
    let view = network.context.chaos.view(1).expect("it is served");
    let second = ApiContext { view, ..network.context.clone() };
    Then { place: place(network), seen: seen(network, ""), second: bytes(&get(&second, "/api/node/status")) }
}

fn open(network: &Network, wish: &Value) -> Value {
    let answered = network.post("/lab/views", wish);
    assert_eq!(answered.status, 201, "{wish}: {}", answered.body);
    answered.body["data"].clone()
}

fn wish(RunPoint { at, delivered, inputs }: RunPoint) -> Value {
    json!({"at": at.micros(), "delivered": delivered, "inputs": inputs})
}

fn assert_same(network: &Network, view: &Value, wanted: &[Vec<u8>]) {
    for (index, body) in seen(network, &format!("/views/{}", view["id"])).iter().enumerate() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(body), text(&wanted[index]), "{} in {view}", SEEN[index]);
    }
}

fn submit(network: &Network, nonce: u64) {
    let recipient = KeyPair::from_passphrase(&format!("somebody {nonce}"), Real).public().address(23);
    let transfer = Transaction::transfer(recipient, Arktoshi::coins(5)).network(23).nonce(Nonce(nonce));
    let transfer = transfer.sign(&network.testnet.accounts[0].keys);
    let answered = network.post("/api/transactions", &json!({ "transactions": [transfer.to_json()] }));
    assert_eq!(answered.status, 200, "{}", answered.body);
}

/// Plays a session with transfers, partitions, crashes and reorganisations, and asks the live API now and then.
fn played(network: &Network, seed: u64) -> Vec<Then> {
    let mut random = SeedTree::new(seed).stream("session");
    let (mut asked, mut nonce) = (Vec::new(), 0);
    network.advance(3);
    for turn in 0..24 {
        match turn % 8 {
            1 => {
                let groups = json!([[0, 1], [2, 3, 4]]);
                network.post("/lab/faults", &json!({"kind": "partition", "groups": groups, "until": {"after": 70}}));
            }
            3 => _ = network.post("/lab/reorg", &json!({"depth": 2})),
            5 => _ = network.post(&format!("/lab/nodes/{}/crash", random.random_range(0..5)), &json!({})),
            6 => (0..5).for_each(|node| _ = network.post(&format!("/lab/nodes/{node}/restart"), &json!({}))),
            _ => {
                nonce += 1;
                submit(network, nonce);
            }
        }
        asked.push(then(network));
        let until = match random.random_range(0..3) {
            0 => json!({"slots": random.random_range(1..30)}),
            1 => json!({"until": {"time": place(network).at.seconds().0 + random.random_range(1..100)}, "limit": 100}),
            _ => {
                json!({"until": {"event": {"kind": "block-applied", "count": random.random_range(1..9)}}, "limit": 50})
            }
        };
        let advanced = network.post("/lab/advance", &until);
        assert_eq!(advanced.status, 200, "{}", advanced.body);
        asked.push(then(network));
    }
    asked
}

#[test]
fn a_view_answers_what_the_api_answered_then_and_the_network_does_not_notice() {
    for (seed, inline) in [(3, false), (4, true)] {
        let network = Network::recorded(seed, Settings::default(), &[], inline, None);
        let asked = played(&network, seed);
        let (now, last) = (place(&network), seen(&network, ""));
        let tree = network.get("/lab/tree?from=1").body;
        let lost = tree["data"]["blocks"].as_array().expect("a list").iter().filter(|block| block["winning"] == false);
        assert!(lost.count() > 5, "chains were left: {tree}");
        let mut random = SeedTree::new(seed).stream("instants");
        for _ in 0..20 {
            let then = &asked[random.random_range(0..asked.len())];
            let view = open(&network, &wish(then.place));
            assert_eq!(
                (&view["at"], &view["delivered"]),
                (&json!(then.place.at.micros()), &json!(then.place.delivered))
            );
            assert_same(&network, &view, &then.seen);
            // A node that is served, and one that is not.
            let second = open(&network, &json!({"view": view["id"], "node": 1}));
            let status = network.get(&format!("/views/{}/api/node/status", second["id"]));
            assert_eq!(bytes(&status), then.second);
            let third = open(&network, &json!({"view": view["id"], "node": 3}));
            let height =
                &network.get(&format!("/views/{}/api/blockchain", third["id"])).body["data"]["block"]["height"];
            let lab: Value = serde_json::from_slice(&then.seen[9]).expect("JSON");
            assert_eq!(*height, lab["data"]["nodes"][3]["height"], "{lab}");
            let pool = network.get(&format!("/views/{}/api/transactions/unconfirmed", third["id"])).body;
            assert!(pool["meta"]["totalCount"].is_u64(), "{pool}");
            for view in [view, second, third] {
                assert_eq!(network.delete(&format!("/lab/views/{}", view["id"])).status, 204);
            }
        }
        // By the clock alone: what was shown when it showed this last.
        for pair in asked.windows(2).filter(|pair| pair[0].place.at < pair[1].place.at) {
            let at = pair[0].place.at;
            if at.micros() % 1_000_000 == 0 {
                assert_same(&network, &open(&network, &json!({"at": at.micros()})), &pair[0].seen);
            }
        }
        assert_same(&network, &open(&network, &json!({})), &last);
        assert_eq!((place(&network), seen(&network, "")), (now, last));
    }
}

#[test]
fn steps_forwards_and_back_come_to_the_same_answers() {
    let network = Network::start(5);
    let asked = played(&network, 5);
    for (start, step) in [(7, "event"), (20, "event"), (11, "block"), (16, "slot"), (9, "round")] {
        let mut view = open(&network, &wish(asked[start].place));
        view = open(&network, &json!({"view": view["id"], "step": step}));
        let mut there = vec![(view.clone(), seen(&network, &format!("/views/{}", view["id"])))];
        for _ in 0..4 {
            let next = open(&network, &json!({"view": view["id"], "step": step}));
            let key = |view: &Value| (view["at"].as_u64(), view["delivered"].as_u64());
            assert!(key(&next) > key(&view), "{step}: {next} after {view}");
            match step {
                "slot" => assert_eq!(next["slot"].as_u64(), view["slot"].as_u64().map(|slot| slot + 1)),
                "block" => assert_ne!(next["tip"], view["tip"]),
                "round" => assert_eq!(next["round"].as_u64(), view["round"].as_u64().map(|round| round + 1)),
                _ => {}
            }
            there.push((next.clone(), seen(&network, &format!("/views/{}", next["id"]))));
            view = next;
        }
        there.pop();
        for (wanted, answers) in there.into_iter().rev() {
            view = open(&network, &json!({"view": view["id"], "step": step, "back": true}));
            let place = |view: &Value| ["at", "delivered", "inputs"].map(|name| view[name].clone());
            assert_eq!(place(&view), place(&wanted), "{step} back");
            assert_same(&network, &view, &answers);
        }
    }
    // There is nothing before the beginning, and nothing after the present.
    let first = open(&network, &json!({"at": network.plan.start.micros()}));
    for step in ["event", "slot", "block", "round"] {
        let before = open(&network, &json!({"view": first["id"], "step": step, "back": true}));
        assert_eq!((&before["at"], &before["delivered"]), (&first["at"], &first["delivered"]), "{step}");
        let last = open(&network, &json!({"step": step}));
        assert_eq!(last["at"], json!(place(&network).at.micros()), "{step}");
    }
}

#[test]
fn the_past_of_a_network_that_went_back_is_that_of_its_chain() {
    let network = Network::start(6);
    network.advance(10);
    let early = then(&network);
    network.advance(10);
    assert_eq!(network.post("/lab/snapshots", &json!({})).status, 201);
    let kept = then(&network);
    submit(&network, 1);
    network.advance(20);
    let (gone, left) = (then(&network), open(&network, &json!({})));
    assert_eq!(network.post("/lab/snapshots", &json!({})).status, 201);
    assert_eq!(network.post("/lab/snapshots/1/revert", &json!({})).status, 200);
    // The view shows still what was, but no step leads from it into another past.
    assert_eq!(seen(&network, &format!("/views/{}", left["id"]))[2], gone.seen[2]);
    let answered = network.post("/lab/views", &json!({"view": left["id"], "step": "slot", "back": true}));
    assert!(answered.status == 409 && answered.body["message"].as_str().is_some_and(|why| why.contains("gone back")));
    let answered = network.post("/lab/views", &json!({"at": gone.place.at.micros()}));
    assert_eq!(answered.status, 422, "it is the future now: {}", answered.body);
    network.advance(20);
    let other = then(&network);
    assert_ne!(other.seen[2], gone.seen[2], "without the transfer there are other blocks");
    // Snapshots are of the network and not of its past.
    let same = |then: &Then| {
        let view = open(&network, &wish(then.place));
        let answers = seen(&network, &format!("/views/{}", view["id"]));
        for index in (0..SEEN.len()).filter(|index| SEEN[*index] != "/lab") {
            assert_eq!(answers[index], then.seen[index], "{} in {view}", SEEN[index]);
        }
    };
    [&early, &kept, &other].into_iter().for_each(same);
    // Over to the other branch: what was there is the past again.
    assert_eq!(network.post("/lab/snapshots/2/revert", &json!({})).status, 200);
    [&early, &kept, &gone].into_iter().for_each(same);
}

#[test]
fn what_is_no_instant_of_the_past_is_refused_by_name() {
    let network = Network::start(3);
    network.advance(5);
    let future = place(&network).at.micros() + 1;
    for at in [json!(-1), json!(future), json!(u64::MAX), json!(1e300), json!(1.5), json!("x"), json!(null), json!([])]
    {
        let answered = network.post("/lab/views", &json!({"at": at}));
        let why = answered.body["message"].as_str().expect("a message");
        assert!(answered.status == 422 && why.contains("at"), "{at}: {}", answered.body);
    }
    let past = place(&network);
    for (wrong, named) in [
        (json!({"at": 0}), "'at'"),
        (json!({"at": future}), "which is now"),
        (json!({"at": past.at.micros(), "delivered": past.delivered + 1}), "'delivered'"),
        (json!({"at": past.at.micros() - 1, "delivered": 0}), "never stood"),
        (json!({"delivered": 3}), "'delivered'"),
        (json!({"inputs": 3}), "'inputs'"),
        (json!({"back": true}), "'back'"),
        (json!({"step": "year"}), "step"),
        (json!({"node": 5}), "'node': found 5, allowed is 0 to 4"),
        (json!({"at": past.at.micros(), "view": 1}), "one of them"),
        (json!({"when": 1}), "\"when\" is not allowed"),
    ] {
        let answered = network.post("/lab/views", &wrong);
        let why = answered.body["message"].as_str().expect("a message");
        assert!(answered.status == 422 && why.contains(named), "{wrong}: {}", answered.body);
    }
    assert_eq!(network.post("/lab/views", &json!({"view": 9})).status, 404);
    for path in ["/lab/views/9", "/views/9/api/blocks", "/views/x/lab", "/views/99999999999999999999/lab", "/views/"] {
        assert_eq!(network.get(path).status, 404, "{path}");
    }
    assert_eq!(network.delete("/lab/views/9").status, 404);
    assert_eq!(place(&network), past);
}

#[test]
fn a_view_is_read_only_and_only_so_many_are_open() {
    let network = Network::start(3);
    network.advance(5);
    let view = open(&network, &json!({}));
    let below = format!("/views/{}", view["id"]);
    for (path, body) in [
        ("/lab/advance", json!({"slots": 1})),
        ("/lab/pace", json!({"pace": "max"})),
        ("/lab/faults", json!({"kind": "heal"})),
        ("/lab/snapshots", json!({})),
        ("/lab/views", json!({})),
        ("/api/transactions", json!({"transactions": []})),
    ] {
        let refused = network.post(&format!("{below}{path}"), &body);
        let why = refused.body["message"].as_str().expect("a message");
        assert!(refused.status == 409 && why.contains("read only"), "{path}: {}", refused.body);
    }
    assert_eq!(network.get(&format!("{below}/lab/events")).status, 409);
    assert_eq!(network.delete(&format!("{below}/lab/faults/0")).status, 409);
    assert_eq!(network.get(&format!("{below}/api/webhooks")).status, 404);
    let found = network.post(&format!("{below}/api/wallets/search"), &json!({}));
    assert_eq!((found.status, &found.body), (200, &network.post("/api/wallets/search", &json!({})).body));
    assert_eq!(seen(&network, &below), seen(&network, ""));
    // The one that was not asked for longest gives way.
    let second = open(&network, &json!({}))["id"].clone();
    network.get(&format!("{below}/lab"));
    for _ in 2..=VIEWS_MAX {
        open(&network, &json!({}));
    }
    assert_eq!(network.get(&format!("/lab/views/{second}")).status, 404);
    assert_eq!(network.get(&format!("/lab{below}")).body["data"], view);
    let listed = network.get("/lab/views").body["data"].clone();
    assert_eq!(listed["views"].as_array().map(Vec::len), Some(VIEWS_MAX));
    assert_eq!((&listed["first"], &listed["last"]), (&json!(network.plan.start.micros()), &view["at"]));
}

#[test]
fn a_chain_goes_on_from_a_view() {
    let network = Network::start(8);
    let asked = played(&network, 8);
    let quiet = then(&network);
    network.advance(40);
    let make = Arc::new(|_: &_, _: &_| Err(ApiError::Unprocessable("none but from views".to_owned())));
    let context = ApiContext { chains: Some(Chains::new(make)), ..network.context.clone() };
    let post = |path: &str, body: Value| {
        let answered = ask(&context, &of_json(Method::POST, path), body.to_string().into_bytes());
        assert!(matches!(answered.status, 200 | 201), "{path}: {}", answered.body);
        answered.body["data"].clone()
    };
    let view = post("/lab/views", wish(quiet.place));
    let chain = post(&format!("/lab/views/{}/chain", view["id"]), json!({}));
    assert_eq!((&chain["height"], &chain["delegates"]), (&view["height"], &json!(5)), "{chain}");
    // With nothing from outside it goes where the network went.
    let below = format!("/chains/{}", chain["id"]);
    post(&format!("{below}/lab/advance"), json!({"slots": 40}));
    for path in ["/api/blocks", "/api/wallets", "/api/transactions/unconfirmed", "/lab/round"] {
        assert_eq!(get(&context, &format!("{below}{path}")).body, network.get(path).body, "{path}");
    }
    // Its snapshots work, those from before it were never its own, and the view stays where it is.
    let kept = post(&format!("{below}/lab/snapshots"), json!({}));
    post(&format!("{below}/lab/faults"), json!({"kind": "partition", "groups": [[0, 1]]}));
    post(&format!("{below}/lab/advance"), json!({"slots": 9}));
    post(&format!("{below}/lab/snapshots/1/revert"), json!({}));
    assert_eq!(get(&context, &format!("{below}/lab/snapshots")).body["data"], json!([kept]));
    assert_eq!(get(&context, &format!("/views/{}/api/blocks", view["id"])).reply.body.to_vec(), quiet.seen[2]);
    assert_eq!(get(&context, &format!("{below}/lab/recording")).status, 409);
    assert!(asked.len() > 20);
}

#[test]
fn what_is_kept_of_the_past_is_bounded_and_leads_everywhere() {
    const ROOM: usize = 150_000;
    let network = Network::start(9);
    let plan = network.plan.clone();
    let view = View::new(NodeId(0), plan.tree.clone(), plan.tip.clone(), plan.start);
    let board = LabBoard::new(&plan);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(view.clone()), Box::new(board.observer())];
    let past = Past::with_room(NetworkObservers { views: vec![view.clone()], board }, ROOM);
    let slots = plan.tree.slots();
    let (live, thread) = host_with(plan, observers, true, None, Some(past.clone()));
    let (mut most, mut all) = ((0, 0), Vec::new());
    for turn in 0..60 {
        on_current_thread(live.advance(100)).expect("it goes on");
        let (moments, bytes) = past.size();
        most = (most.0.max(moments), most.1.max(bytes));
        assert!(bytes <= ROOM || moments <= 2, "{moments} moments of {bytes} bytes after {turn} turns");
        all.push(view.head().tip().id());
    }
    let look = past.clone();
    let history =
        on_current_thread(live.look(move |stage| look.history(stage))).expect("it goes on").expect("it is in memory");
    let inputs = history.present.delivered;
    assert!(inputs / 9_000 > 2 * most.0 as u64, "{inputs} inputs, {most:?}: more were kept once than are kept");
    for (turn, tip) in all.iter().enumerate().step_by(7) {
        let slot = slots.slot(history.plan.start.seconds()).0 + 100 * (turn as u32 + 1);
        let at = dposlab::actors::SimTime::from_seconds(slots.start(dposlab::protocol::Slot(slot)));
        let walk = on_current_thread(history.at(at)).expect("it is in the past");
        assert_eq!(walk.into_parts().1.views[0].head().tip().id(), *tip, "after {turn} turns");
    }
    drop(history);
    live.stop();
    thread.join().expect("it ends in order");
}
