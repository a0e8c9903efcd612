//! Creating, reading, changing and deleting webhooks, in both dialects, and who may.

use super::Node;
use crate::support::{ask, of_json};
use dposlab::{
    actors::webhook::WEBHOOKS_MAX,
    api::{ApiContext, Dialect, Request, Settings, WebhookSettings, webhooks::DataDir},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    fs,
    net::SocketAddr,
    sync::{LazyLock, Mutex},
};
use warp::http::{HeaderValue, Method};

fn node(dialect: Dialect) -> Node {
    Node::new(dialect, WebhookSettings::default())
}

fn valid() -> Value {
    json!({"event": "block.applied", "target": "http://127.0.0.1:9/x", "enabled": false, "conditions": []})
}

#[test]
fn the_token_is_shown_once_and_an_update_keeps_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = || Some(DataDir::open(folder.path()).expect("a folder of its own"));
    let settings = |data| WebhookSettings { data, ..WebhookSettings::default() };
    let node = Node::new(Dialect::Documented, settings(data()));
    let created = node.create("block.applied", "http://127.0.0.1:9/x", json!([]));
    let (id, token) = (created["id"].as_str().expect("a text"), created["token"].as_str().expect("a text"));
    let is_uuid = id.len() == 36 && &id[14..15] == "4" && "89ab".contains(&id[19..20]);
    assert!(is_uuid && token.len() == 64, "{created}");
    let file = folder.path().join(format!("webhooks-node-0/{id}.json"));
    let kept = fs::read_to_string(&file).expect("it is kept at once");
    assert!(kept.contains(&token[..32]) && !kept.contains(&token[32..]), "half of it: {kept}");

    let path = format!("/api/webhooks/{id}");
    let updated = node.ask(Method::PUT, &path, &json!({"enabled": "false", "event": "round.created"}));
    assert_eq!((updated.status, updated.reply.body.len()), (204, 0));
    let shown = node.ask(Method::GET, &path, &Value::Null).body["data"].clone();
    let wanted = json!({
        "id": id, "event": "round.created", "target": "http://127.0.0.1:9/x", "enabled": false, "conditions": [],
    });
    assert_eq!(shown, wanted);
    assert!(fs::read_to_string(&file).expect("it is kept").contains(&token[..32]));
    drop(node);

    // The thread lets go of the folder soon after.
    let data = loop {
        match DataDir::open(folder.path()) {
            Ok(data) => break data,
            Err(_) => std::thread::yield_now(),
        }
    };
    let node = Node::new(Dialect::Documented, settings(Some(data)));
    let shown = node.ask(Method::GET, &path, &Value::Null).body["data"].clone();
    assert_eq!(shown, wanted, "it is there again after a restart");
    assert_eq!(node.ask(Method::DELETE, &path, &Value::Null).status, 204);
    assert_eq!(node.ask(Method::DELETE, &path, &Value::Null).status, 404);
    assert!(!file.exists(), "{}", file.display());
}

#[test]
fn what_cannot_be_kept_has_not_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = Some(DataDir::open(folder.path()).expect("a folder of its own"));
    let node = Node::new(Dialect::Documented, WebhookSettings { data, ..WebhookSettings::default() });
    // Nothing can be written into a folder that is gone, whoever runs this.
    fs::remove_dir_all(folder.path().join("webhooks-node-0")).expect("it is there");
    let answered = node.ask(Method::POST, "/api/webhooks", &valid());
    assert_eq!((answered.status, &answered.body["message"]), (500, &json!("An internal server error occurred")));
    assert_eq!(node.ask(Method::GET, "/api/webhooks", &Value::Null).body["data"], json!([]));
}

#[test]
fn lists_are_paged_or_whole() {
    let documented = node(Dialect::Documented);
    let ids: Vec<Value> =
        (0..5).map(|_| documented.create("x", "http://127.0.0.1:9/", json!([]))["id"].clone()).collect();
    let page = documented.ask(Method::GET, "/api/webhooks?page=2&limit=2", &Value::Null).body;
    assert_eq!(page["meta"]["totalCount"], 5);
    assert_eq!(page["meta"]["next"], "/webhooks?page=3&limit=2");
    let shown: Vec<&Value> = page["data"].as_array().expect("a list").iter().map(|row| &row["id"]).collect();
    assert_eq!(shown, [&ids[2], &ids[3]]);
    assert!(page["data"][0].get("token").is_none());
    assert_eq!(documented.ask(Method::GET, "/api/webhooks?page=0", &Value::Null).status, 422);
    let core = node(Dialect::Core26);
    core.create("x", "http://127.0.0.1:9/", json!([]));
    let list = core.ask(Method::GET, "/api/webhooks?page=0&limit=0", &Value::Null).body;
    assert_eq!((list.get("meta"), list["data"].as_array().map(Vec::len)), (None, Some(1)));
}

#[test]
fn a_webhook_may_be_for_several_events_and_keeps_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = || WebhookSettings { data: DataDir::open(folder.path()).ok(), ..WebhookSettings::default() };
    let node = Node::new(Dialect::Documented, settings());
    let id = node.create("a", "http://127.0.0.1:9/", json!([]))["id"].clone();
    let path = format!("/api/webhooks/{}", id.as_str().expect("a text"));
    let event = |node: &Node| node.ask(Method::GET, &path, &Value::Null).body["data"]["event"].clone();
    for names in [json!(["a", "b"]), json!(["c"]), json!("d"), json!(["x", "y", "z"])] {
        assert_eq!(node.ask(Method::PUT, &path, &json!({"event": names})).status, 204);
        assert_eq!(event(&node), names, "as it was asked for");
    }
    let counted = node.ask(Method::GET, "/lab/webhooks", &Value::Null).body["data"]["webhooks"][0]["event"].clone();
    assert_eq!(counted, json!(["x", "y", "z"]));
    for (wrong, why) in [
        (json!([]), "child \"event\" fails because [\"event\" must contain at least 1 items]"),
        (json!(["a", "a"]), "child \"event\" fails because [\"event\" position 1 contains a duplicate value]"),
        (json!({}), "child \"event\" fails because [\"event\" must be a string]"),
    ] {
        let refused = node.ask(Method::PUT, &path, &json!({"event": wrong}));
        assert_eq!((refused.status, &refused.body["message"]), (422, &json!(why)));
    }
    assert_eq!(event(&node), json!(["x", "y", "z"]), "what is refused changes nothing");
    drop(node);
    let settings = loop {
        match DataDir::open(folder.path()) {
            Ok(data) => break WebhookSettings { data: Some(data), ..WebhookSettings::default() },
            Err(_) => std::thread::yield_now(),
        }
    };
    let again = Node::new(Dialect::Documented, settings);
    assert_eq!(event(&again), json!(["x", "y", "z"]), "they are there again after a restart");

    // The reference has one.
    let core = self::node(Dialect::Core26);
    let mut body = valid();
    body["event"] = json!(["a", "b"]);
    let refused = core.ask(Method::POST, "/api/webhooks", &body);
    let why = "child \"event\" fails because [\"event\" must be a string]";
    assert_eq!((refused.status, &refused.body["message"]), (422, &json!(why)));
}

#[test]
fn an_update_merges_or_replaces() {
    for (dialect, status) in [(Dialect::Documented, 204), (Dialect::Core26, 422)] {
        let node = node(dialect);
        let id = node.create("x", "http://127.0.0.1:9/", json!([]))["id"].clone();
        let path = format!("/api/webhooks/{}", id.as_str().expect("a text"));
        assert_eq!(node.ask(Method::PUT, &path, &json!({"enabled": false})).status, status);
        assert_eq!(node.ask(Method::PUT, &path, &json!({"enabled": "no"})).status, 422);
        assert_eq!(node.ask(Method::PUT, &path, &valid()).status, 204);
        let mut changed = valid();
        changed["target"] = json!("nowhere");
        let message = node.ask(Method::PUT, &path, &changed).body["message"].clone();
        assert_eq!(message, "child \"target\" fails because [\"target\" must be a valid uri]");
        assert_eq!(node.ask(Method::PUT, "/api/webhooks/123", &valid()).status, 404);
    }
}

#[test]
fn only_this_machine_and_no_page_of_another_one() {
    let node = node(Dialect::Documented);
    let id = node.create("x", "http://127.0.0.1:9/", json!([]))["id"].clone();
    let one = format!("/api/webhooks/{}", id.as_str().expect("a text"));
    let status = |context: &ApiContext, method: &Method, path: &str, ip: &str, origin: Option<&str>| {
        let remote = Some(SocketAddr::new(ip.parse().expect("an address"), 1));
        let mut request = Request { remote, ..of_json(method.clone(), path) };
        let origin = origin.map(|origin| HeaderValue::from_str(origin).expect("a header"));
        request.headers.extend(origin.map(|origin| (warp::http::header::ORIGIN, origin)));
        ask(context, &request, valid().to_string().into_bytes()).status
    };
    let all =
        [(Method::GET, "/api/webhooks"), (Method::POST, "/api/webhooks"), (Method::GET, &one), (Method::PUT, &one)];
    for (method, path) in &all {
        for ip in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(status(&node.context, method, path, ip, None) < 400, "{method} {path} {ip}");
        }
        assert_eq!(status(&node.context, method, path, "192.0.2.1", None), 403, "{method} {path}");
        assert_eq!(status(&node.context, method, &format!("{path}/"), "192.0.2.1", None), 404, "{method} {path}/");
        for own in ["http://localhost:4003", "http://127.0.0.1:4003", "http://[::1]:4003"] {
            assert!(status(&node.context, method, path, "127.0.0.1", Some(own)) < 400, "{method} {path} {own}");
        }
        for foreign in [
            "http://example.com:4003",
            "http://localhost.example.com:4003",
            "http://127.0.0.1.example.com:4003",
            "http://localhost:3000",
            "https://127.0.0.1:4003",
            "null",
        ] {
            assert_eq!(status(&node.context, method, path, "127.0.0.1", Some(foreign)), 403, "{method} {foreign}");
        }
    }
    let open = Settings { webhook_whitelist: "*".parse().expect("a pattern"), ..Settings::default() };
    let context = ApiContext { settings: open, ..node.context.clone() };
    for (method, path) in &all {
        assert!(status(&context, method, path, "192.0.2.1", Some("http://example.com")) < 400, "{method} {path}");
    }
    assert_eq!(status(&context, &Method::GET, "/lab/webhooks", "192.0.2.1", None), 403);
}

#[test]
fn strange_bodies_are_refused_and_leave_nothing() {
    let node = node(Dialect::Documented);
    let post = |body: Vec<u8>| ask(&node.context, &Request::new(Method::POST, "/api/webhooks"), body);
    let with = |name: &str, value: Value| {
        let mut body = valid();
        body[name] = value;
        body.to_string().into_bytes()
    };
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let condition = |condition: Value| with("conditions", json!([condition]));
    for wrong in [
        b"{".to_vec(),
        vec![0xff; 100],
        b"null".to_vec(),
        b"[]".to_vec(),
        b"\"{}\"".to_vec(),
        deep.into_bytes(),
        with("event", json!(5)),
        with("event", json!("")),
        with("event", Value::Null),
        with("target", json!(["http://127.0.0.1"])),
        with("target", json!("http://127.0.0.1:9/ ")),
        with("target", json!("http://127.0.0.1:9/\r\nx: y")),
        with("enabled", json!(1)),
        with("conditions", json!("x")),
        with("conditions", json!([null])),
        with("id", json!("mine")),
        with("token", json!("mine")),
        with("event", json!("x".repeat(70_000))),
        condition(json!({"key": "a", "condition": "eq", "value": "x".repeat(70_000)})),
        condition(json!({"key": "a", "condition": "EQ"})),
        condition(json!({"key": "", "condition": "eq"})),
    ] {
        let shown = String::from_utf8_lossy(&wrong[..wrong.len().min(80)]).into_owned();
        let answered = post(wrong);
        assert_eq!(answered.status, 422, "{shown}: {}", answered.body);
    }
    assert_eq!(node.ask(Method::GET, "/api/webhooks", &Value::Null).body["data"], json!([]));
}

#[test]
fn there_are_not_more_than_may_be() {
    let node = node(Dialect::Documented);
    for _ in 0..WEBHOOKS_MAX {
        node.create("x", "http://127.0.0.1:9/", json!([]));
    }
    let refused = node.ask(Method::POST, "/api/webhooks", &valid());
    assert_eq!(refused.status, 422);
    assert!(refused.body["message"].as_str().expect("a text").contains("1024 webhooks"), "{}", refused.body);
    let last = node.ask(Method::GET, "/api/webhooks?limit=1&page=1024", &Value::Null).body["data"][0]["id"].clone();
    let path = format!("/api/webhooks/{}", last.as_str().expect("a text"));
    assert_eq!(node.ask(Method::DELETE, &path, &Value::Null).status, 204);
    assert_eq!(node.ask(Method::POST, "/api/webhooks", &valid()).status, 201);
}

/// Values that come close to what is asked for, so that chance gets past the first check.
fn any_member() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "(http|ftp|x):(//)?[a-z0-9.:@\\[\\]%]{0,12}(/[a-z?#%]{0,5})?".prop_map(Value::from),
        Just(json!([])),
        Just(json!([{"key": "a", "condition": "eq", "value": 1}])),
        Just(json!("[]")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("(key|condition|value|[a-z]{0,3})", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_body_is_answered(members in prop::collection::vec(
        ("(event|target|enabled|conditions|id|[a-z]{0,4})", any_member()), 0..6,
    ), noise in prop::collection::vec(any::<u8>(), 0..60), is_core: bool) {
        static NODES: LazyLock<[Mutex<Node>; 2]> =
            LazyLock::new(|| [Dialect::Documented, Dialect::Core26].map(|dialect| Mutex::new(node(dialect))));
        // A panic in another case says all there is to say.
        let node = NODES[usize::from(is_core)].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let body = Value::Object(members.into_iter().collect());
        let created = node.ask(Method::POST, "/api/webhooks", &body);
        prop_assert!(matches!(created.status, 201 | 422), "{body}: {}", created.body);
        prop_assert!(created.status == 201 || created.body["message"].is_string());
        let raw = ask(&node.context, &Request::new(Method::POST, "/api/webhooks"), noise);
        prop_assert!(matches!(raw.status, 422 | 201), "{}", raw.body);
        if let Some(id) = created.body["data"]["id"].as_str() {
            let path = format!("/api/webhooks/{id}");
            let updated = node.ask(Method::PUT, &path, &body).status;
            prop_assert!(updated == 204 || (is_core && updated == 422), "{body}: {updated}");
            prop_assert_eq!(node.ask(Method::GET, &path, &Value::Null).status, 200);
            prop_assert_eq!(node.ask(Method::DELETE, &path, &Value::Null).status, 204);
        }
    }
}

#[test]
fn all_webhooks_of_a_node_have_so_many_patterns() {
    let node = node(Dialect::Documented);
    let pattern = json!({"key": "id", "condition": "regexp", "value": "^1"});
    let with = |count: usize| json!({"event": "x", "target": "http://127.0.0.1:9/", "enabled": true, "conditions": vec![&pattern; count]});
    let ids: Vec<String> = (0..4)
        .map(|_| {
            let answered = node.ask(Method::POST, "/api/webhooks", &with(64));
            assert_eq!(answered.status, 201, "{}", answered.body);
            answered.body["data"]["id"].as_str().expect("a text").to_owned()
        })
        .collect();
    let refused = node.ask(Method::POST, "/api/webhooks", &with(1));
    let message = "the webhooks of this node would have 257 conditions 'regexp'; it takes 256 at most";
    assert_eq!((refused.status, &refused.body["message"]), (422, &json!(message)));
    let one = format!("/api/webhooks/{}", ids[0]);
    assert_eq!(node.ask(Method::PUT, &one, &with(64)).status, 204, "in place of its own");
    assert_eq!(node.ask(Method::PUT, &one, &with(10)).status, 204);
    assert_eq!(node.ask(Method::POST, "/api/webhooks", &with(54)).status, 201);
    assert_eq!(node.ask(Method::PUT, &one, &with(11)).status, 422);
}
