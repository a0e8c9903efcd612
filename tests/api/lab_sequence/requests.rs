//! The requests that are drawn: to every route of the lab, good ones and bad ones.

use crate::lab_faults::of_every_kind;
use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

/// Something that is asked. What it names, such as a snapshot, is chosen among those there are when its turn comes.
#[derive(Clone, Debug)]
pub enum Step {
    Advance(u32),
    /// An advance to one of the goals of [`until`].
    Until(usize, u32),
    Pace {
        on_demand: bool,
    },
    /// Another pace, and back at once.
    Hurry(&'static str),
    Snapshot {
        named: bool,
    },
    ShowSnapshot(Index),
    SnapshotFile(Index),
    Revert(Index),
    DeleteSnapshot(Index),
    /// A fault of [`of_every_kind`], which begins at once or by one of the triggers of [`trigger`].
    Fault(usize, usize),
    BadFault(usize),
    EndFault(Index),
    EndAllFaults,
    Crash(u32),
    Restart(u32, bool),
    Reorganise {
        depth: u32,
        transactions: usize,
        node: Option<u32>,
    },
    Faucet(usize),
    Accounts(u32),
    Transfer {
        account: usize,
        ahead: u64,
        broken: bool,
    },
    Chaos(usize),
    DeleteChaos(u64),
    ClearChaos,
    Read(usize),
    Hostile {
        route: usize,
        body: usize,
    },
    NoSuch(usize),
    /// Two at the same time.
    Together(Box<Self>, Box<Self>),
}

/// All of them; what makes the network go on comes more often.
pub fn step() -> BoxedStrategy<Step> {
    let one = one().boxed();
    let two = (one.clone(), one.clone()).prop_map(|(first, second)| Step::Together(first.into(), second.into()));
    prop_oneof![30 => one, 1 => two].boxed()
}

fn one() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    let steering = prop_oneof![
        10 => (1..6_u32).prop_map(Step::Advance),
        3 => (0..UNTIL, 0..7_u32).prop_map(|(goal, number)| Step::Until(goal, number)),
        2 => any::<bool>().prop_map(|on_demand| Step::Pace { on_demand }),
        1 => prop::sample::select(vec!["max", "2.5", "1000000"]).prop_map(Step::Hurry),
    ];
    let snapshots = prop_oneof![
        4 => any::<bool>().prop_map(|named| Step::Snapshot { named }),
        1 => index().prop_map(Step::ShowSnapshot),
        1 => index().prop_map(Step::SnapshotFile),
        4 => index().prop_map(Step::Revert),
        1 => index().prop_map(Step::DeleteSnapshot),
    ];
    let faults = prop_oneof![
        6 => (0..of_every_kind().len(), 0..8_usize).prop_map(|(kind, from)| Step::Fault(kind, from)),
        1 => (0..bad_faults().len()).prop_map(Step::BadFault),
        3 => index().prop_map(Step::EndFault),
        2 => Just(Step::EndAllFaults),
        2 => (0..6_u32).prop_map(Step::Crash),
        2 => (0..6_u32, any::<bool>()).prop_map(|(node, keep)| Step::Restart(node, keep)),
    ];
    let node = prop::option::weighted(0.4, 0..6_u32);
    let rest = prop_oneof![
        5 => (0..12_u32, 0..4_usize, node)
            .prop_map(|(depth, transactions, node)| Step::Reorganise { depth, transactions, node }),
        2 => (0..FAUCET).prop_map(Step::Faucet),
        1 => (0..4_u32).prop_map(Step::Accounts),
        5 => (0..3_usize, 0..3_u64, prop::bool::weighted(0.1))
            .prop_map(|(account, ahead, broken)| Step::Transfer { account, ahead, broken }),
        1 => (0..chaos().len()).prop_map(Step::Chaos),
        1 => (0..30_u64).prop_map(Step::DeleteChaos),
        1 => Just(Step::ClearChaos),
        2 => (0..READ.len()).prop_map(Step::Read),
        5 => (0..HOSTILE.len(), 0..bodies().len()).prop_map(|(route, body)| Step::Hostile { route, body }),
        1 => (0..NO_SUCH.len()).prop_map(Step::NoSuch),
    ];
    prop_oneof![4 => steering, 3 => snapshots, 3 => faults, 5 => rest]
}

/// Goals of an advance.
pub const UNTIL: usize = 8;

/// The goal of an advance by its number, with whether it is one.
pub fn until(goal: usize, number: u32, height: u32, now: u64) -> (Value, bool) {
    let limit = number + 1;
    match goal {
        0 => (json!({"until": {"height": height.saturating_sub(1) + number.max(1)}, "limit": limit}), true),
        1 => (json!({"until": {"time": now + 5 * u64::from(number)}, "limit": limit}), true),
        2 => (json!({"until": {"round": height / 5 + number.max(1)}, "limit": limit}), true),
        3 => (json!({"until": {"transaction": "ab".repeat(32)}, "limit": limit}), true),
        4 => (
            json!({"until": {"event": {"kind": "block-forged", "node": "genesis_2", "count": limit}}, "limit": 9}),
            true,
        ),
        5 => (json!({"until": {"event": {"kind": "rolled-back"}}, "limit": limit}), true),
        6 => (json!({"until": {"event": {"kind": "block-applied", "node": 5}}, "limit": limit}), false),
        _ => (json!({"until": {"height": 0, "time": 1}, "limit": limit}), false),
    }
}

/// Sets when a fault begins and ends, by a number.
pub fn trigger(fault: &mut Value, number: usize, height: u32, now: u64) {
    let is_over_at_once = fault["kind"] == "heal" || fault["kind"] == "restart" || fault.get("rounds").is_some();
    match number {
        0 => fault["from"] = json!({"height": height + 2}),
        1 => fault["from"] = json!({"seconds": now % 100}),
        2 => fault["from"] = json!({"event": {"kind": "rolled-back"}}),
        3 if !is_over_at_once => fault["until"] = json!({"after": 40}),
        4 if !is_over_at_once => fault["until"] = json!({"height": height + 3}),
        _ => {}
    }
    if fault.get("rounds").is_some() {
        fault.as_object_mut().expect("it is one").remove("from");
    }
}

/// Bodies that are no faults.
pub fn bad_faults() -> Vec<Value> {
    vec![
        json!({"kind": "crash", "nodes": ["genesis_9"]}),
        json!({"kind": "crash", "node": [1]}),
        json!({"kind": "isolate", "nodes": {"share": 2}}),
        json!({"kind": "partition"}),
        json!({"kind": "delay", "by_ms": 1e300}),
        json!({"kind": "heal", "until": {"after": 3}}),
        json!({"kind": "pause", "nodes": [0], "from": {"after": 3}}),
        json!({"kind": "pause", "nodes": [0], "from": {"event": {"kind": "block-forged", "node": 77}}}),
        json!({"kind": "censor", "delegates": [0], "sender": "account_11"}),
        json!({"kind": "offline", "delegates": [0], "rounds": {"from": 5, "to": 1}}),
        json!({"kind": "spam-pool", "per_second": -1}),
        json!([{"kind": "heal"}]),
    ]
}

/// Bodies for the faucet.
pub const FAUCET: usize = 5;

/// A request to the faucet, and whether it may be granted.
pub fn faucet(number: usize, recipient: &str) -> (Value, bool) {
    let one = json!({"recipient": recipient, "amount": "123456789"});
    match number {
        0 => (one, true),
        1 => (json!([one, one, one]), true),
        2 => (json!({"recipient": recipient, "amount": 1}), true),
        3 => (json!({"recipient": recipient, "amount": "9000000000000000000"}), false),
        _ => (json!([one, {"recipient": "A", "amount": 1}]), false),
    }
}

/// Rules of chaos, and whether they are some.
pub fn chaos() -> Vec<(Value, bool)> {
    vec![
        (json!({"route": "/api/blocks", "status": 529, "share": 0.5}), true),
        (json!({"route": "/api/*", "method": "GET", "cut": true, "share": 0.3, "count": 3}), true),
        (json!({"route": "/api/transactions", "refuse": true, "share": 0.3}), true),
        (json!({"stale": 3, "share": 0.5, "seed": 7}), true),
        (json!({"node": 1, "share": 0.5}), true),
        (json!({"delay_ms": 1, "count": 5}), true),
        (json!({"lost": true, "event": "block.applied"}), true),
        (json!({"status": 450}), false),
        (json!({"node": 9}), false),
        (json!({"cut": true, "lost": true}), false),
        (json!({"cut": true, "share": 2}), false),
        (json!({"cut": true, "route": "/lab"}), false),
        (json!({}), false),
    ]
}

/// The routes that are read.
pub const READ: [&str; 16] = [
    "/lab",
    "/lab/pace",
    "/lab/faults",
    "/lab/snapshots",
    "/lab/chaos",
    "/lab/events?limit=3",
    "/metrics",
    "/api/blocks?limit=100",
    "/api/blocks/1",
    "/api/transactions?limit=100",
    "/api/transactions/unconfirmed?limit=100",
    "/api/wallets?limit=100&page=2",
    "/api/delegates",
    "/api/node/syncing",
    "/api/peers",
    "/api/rounds/1/delegates",
];

/// Routes for which no body of [`bodies`] is a good one.
pub const HOSTILE: [&str; 12] = [
    "/lab/advance",
    "/lab/pace",
    "/lab/snapshots",
    "/lab/snapshots/1/revert",
    "/lab/faults",
    "/lab/nodes/0/crash",
    "/lab/nodes/1/restart",
    "/lab/reorg",
    "/lab/faucet",
    "/lab/accounts",
    "/lab/chaos",
    "/api/transactions",
];

/// Bodies that no route takes.
pub fn bodies() -> Vec<Vec<u8>> {
    let deep = |open: &str, close: &str, depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    let texts = [
        "5".to_owned(),
        "true".to_owned(),
        "[]".to_owned(),
        "[null]".to_owned(),
        "\"text\"".to_owned(),
        "{\"unknown\":1}".to_owned(),
        "{\"slots\":1,\"slots2\":2}".to_owned(),
        "{\"depth\":-1,\"unknown\":{}}".to_owned(),
        "{\"slots\":1e400}".to_owned(),
        "{\"slots\":99999999999999999999,\"depth\":4294967296,\"count\":1e99,\"amount\":-0.0}".to_owned(),
        "{\"kind\":7,\"name\":[],\"pace\":{},\"keep_pool\":\"no\",\"transactions\":7,\"status\":\"x\"}".to_owned(),
        "{\"recipient\":null,\"amount\":\"1e3\"}".to_owned(),
        "{\"slots\":".to_owned(),
        "\u{0}".to_owned(),
        "NaN".to_owned(),
        deep("[", "]", 100),
        deep("[", "]", 100_000),
        format!("{{\"unknown\":{}}}", deep("{\"a\":", "}", 100)),
        deep("{\"kind\":", "}", 5_000),
        format!("{{\"{}\":1}}", "x".repeat(100_000)),
    ];
    texts.into_iter().map(String::into_bytes).chain([vec![0xff, 0xfe, b'{'], vec![b'"', 0xc3, b'"']]).collect()
}

/// Requests that lead to nothing: the method, and the target.
pub const NO_SUCH: [(&str, &str); 16] = [
    ("DELETE", "/lab/faults/99999999999999999999"),
    ("DELETE", "/lab/faults/-1"),
    ("DELETE", "/lab/faults/20000"),
    ("DELETE", "/lab/snapshots/-1"),
    ("DELETE", "/lab/snapshots/0"),
    ("POST", "/lab/snapshots/18446744073709551615/revert"),
    ("POST", "/lab/snapshots/0/revert"),
    ("GET", "/lab/snapshots/1e3/file"),
    ("GET", "/lab/snapshots/999999/file"),
    ("POST", "/lab/nodes/4294967296/crash"),
    ("POST", "/lab/nodes/a/restart"),
    ("DELETE", "/lab/chaos/0"),
    ("GET", "/lab/chaos/99999"),
    ("PUT", "/lab/pace"),
    ("GET", "/lab/nothing"),
    ("GET", "/lab/events?kind=nothing"),
];
