//! Webhooks against a model of them: whatever is created, changed, deleted and restarted, each hears what it asked for, in
//! order, and nothing else. Source: api.md 6.

use super::{
    Node, patient,
    receiver::{Manner, Receiver},
};
use dposlab::{
    actors::Event,
    api::{Dialect, WebhookSettings, webhooks::DataDir},
    protocol::TransactionId,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use warp::http::Method;

/// The events that happen here. The first has a payload with a member, the second has a text.
const EVENTS: [&str; 2] = ["forger.failed", "transaction.pool.removed"];

#[derive(Clone, Debug)]
enum Deed {
    Create { event: usize, is_kind: bool, enabled: Option<bool>, conditions: Vec<Asked> },
    Update { which: usize, event: Option<usize>, enabled: Option<bool>, conditions: Option<Vec<Asked>> },
    Delete(usize),
    Happens { event: usize, number: i64 },
    Restart,
}

/// A condition on the member `error`: its name, and the number it compares with, as a number or as a text.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    name: &'static str,
    value: i64,
    /// With `between` and `not-between`, the upper end.
    upper: i64,
    as_text: bool,
}

impl Asked {
    fn json(&self) -> Value {
        let shown = |number: i64| if self.as_text { json!(number.to_string()) } else { json!(number) };
        let value = match self.name {
            "between" | "not-between" => json!({"min": shown(self.value), "max": shown(self.upper)}),
            _ => shown(self.value),
        };
        json!({"key": "error", "condition": self.name, "value": value})
    }

    /// Returns true if a payload whose member is the text of this number fulfils it; `None` has no such member.
    fn holds(&self, found: Option<i64>) -> bool {
        let (Self { value, upper, as_text, .. }, compares) =
            (self, |holds: fn(i64, i64) -> bool| found.is_some_and(|found| holds(found, self.value)));
        let is_between = found.is_some_and(|found| *value < found && found < *upper);
        match self.name {
            "eq" => found == Some(*value) && *as_text,
            "ne" => found != Some(*value) || !as_text,
            "gt" => compares(|a, b| a > b),
            "gte" => compares(|a, b| a >= b),
            "lt" => compares(|a, b| a < b),
            "lte" => compares(|a, b| a <= b),
            "between" => is_between,
            "not-between" => !is_between,
            "contains" => found.is_some_and(|found| found.to_string().contains(&value.to_string())),
            other => unreachable!("{other} is not drawn"),
        }
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let names = ["eq", "ne", "gt", "gte", "lt", "lte", "between", "not-between", "contains"];
    (prop::sample::select(names.to_vec()), -4..5i64, -4..5i64, any::<bool>())
        .prop_map(|(name, value, upper, as_text)| Asked { name, value, upper, as_text })
}

fn deed() -> impl Strategy<Value = Deed> {
    let enabled = || prop_oneof![Just(None), Just(Some(true)), Just(Some(false))];
    // Most begin without being heard, so that now and then nobody is.
    let at_first = prop_oneof![1 => Just(None), 1 => Just(Some(true)), 4 => Just(Some(false))];
    let conditions = || prop_oneof![Just(Vec::new()), prop::collection::vec(asked(), 1..3)];
    prop_oneof![
        2 => (0..2usize, any::<bool>(), at_first, conditions()).prop_map(|(event, is_kind, enabled, conditions)| {
            Deed::Create { event, is_kind, enabled, conditions }
        }),
        3 => (any::<usize>(), prop::option::of(0..2usize), enabled(), prop::option::of(conditions())).prop_map(
            |(which, event, enabled, conditions)| Deed::Update { which, event, enabled, conditions }
        ),
        1 => any::<usize>().prop_map(Deed::Delete),
        8 => (0..2usize, -5..6i64).prop_map(|(event, number)| Deed::Happens { event, number }),
        1 => Just(Deed::Restart),
    ]
}

/// A webhook as it should be, and the events it should have heard since it was last looked at.
#[derive(Debug)]
struct Hook {
    id: Value,
    event: usize,
    is_kind: bool,
    path: String,
    enabled: bool,
    conditions: Vec<Asked>,
    due: Vec<Value>,
    /// Deliveries since the start of the process.
    told: usize,
}

struct Play {
    folder: tempfile::TempDir,
    node: Option<Node>,
    /// One that takes what it gets, and one that refuses it.
    kind: Receiver,
    unkind: Receiver,
    hooks: Vec<Hook>,
    created: usize,
}

fn start(folder: &Path) -> Node {
    // The thread of the process before lets go of the folder soon after.
    let data = loop {
        match DataDir::open(folder) {
            Ok(data) => break data,
            Err(_) => std::thread::yield_now(),
        }
    };
    Node::new(Dialect::Documented, WebhookSettings { data: Some(data), ..patient() })
}

impl Play {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let node = Some(start(folder.path()));
        let (kind, unkind) = (Receiver::kind(), Receiver::new(Manner::status(500)));
        Self { folder, node, kind, unkind, hooks: Vec::new(), created: 0 }
    }

    fn node(&mut self) -> &mut Node {
        self.node.as_mut().expect("it is there but for a restart")
    }

    fn play(&mut self, deed: &Deed) {
        match deed {
            Deed::Create { event, is_kind, enabled, conditions } => {
                self.create(*event, *is_kind, *enabled, conditions);
            }
            Deed::Update { which, event, enabled, conditions } if !self.hooks.is_empty() => {
                self.update(which % self.hooks.len(), *event, *enabled, conditions.as_ref());
            }
            Deed::Delete(which) if !self.hooks.is_empty() => {
                // Waiting events are lost with it, so the test waits for them.
                self.settle();
                let hook = self.hooks.remove(which % self.hooks.len());
                let path = format!("/api/webhooks/{}", hook.id.as_str().expect("a text"));
                assert_eq!(self.node().ask(Method::DELETE, &path, &Value::Null).status, 204);
            }
            Deed::Update { .. } | Deed::Delete(_) => {}
            Deed::Happens { event, number } => self.happens(*event, *number),
            Deed::Restart => {
                self.settle();
                drop(self.node.take());
                self.node = Some(start(self.folder.path()));
                self.hooks.iter_mut().for_each(|hook| hook.told = 0);
            }
        }
        self.check_list();
    }

    fn create(&mut self, event: usize, is_kind: bool, enabled: Option<bool>, conditions: &[Asked]) {
        let path = format!("/{}", self.created);
        self.created += 1;
        let target = if is_kind { self.kind.url(&path) } else { self.unkind.url(&path) };
        let mut body = json!({"event": EVENTS[event], "target": target, "conditions": listed(conditions)});
        if let Some(enabled) = enabled {
            body["enabled"] = json!(enabled);
        }
        let answered = self.node().ask(Method::POST, "/api/webhooks", &body);
        assert_eq!(answered.status, 201, "{}", answered.body);
        let (id, enabled) = (answered.body["data"]["id"].clone(), enabled.unwrap_or(true));
        let (conditions, due) = (conditions.to_vec(), Vec::new());
        self.hooks.push(Hook { id, event, is_kind, path, enabled, conditions, due, told: 0 });
    }

    fn update(&mut self, which: usize, event: Option<usize>, enabled: Option<bool>, conditions: Option<&Vec<Asked>>) {
        let mut body = json!({});
        let hook = &mut self.hooks[which];
        if let Some(event) = event {
            body["event"] = json!(EVENTS[event]);
            hook.event = event;
        }
        if let Some(enabled) = enabled {
            body["enabled"] = json!(enabled);
            hook.enabled = enabled;
        }
        if let Some(conditions) = conditions {
            body["conditions"] = listed(conditions);
            hook.conditions.clone_from(conditions);
        }
        let path = format!("/api/webhooks/{}", hook.id.as_str().expect("a text"));
        let answered = self.node().ask(Method::PUT, &path, &body);
        assert_eq!(answered.status, 204, "{body}: {}", answered.body);
    }

    fn happens(&mut self, event: usize, number: i64) {
        let (observed, data, member) = match event {
            0 => {
                let error = number.to_string();
                (Event::ForgerFailed { error: error.clone() }, json!({ "error": error }), Some(number))
            }
            _ => {
                let id = [number.rem_euclid(256) as u8; 32];
                (Event::PoolRemoved(TransactionId(id)), json!(hex::encode(id)), None)
            }
        };
        for hook in self.hooks.iter_mut().filter(|hook| hook.enabled && hook.event == event) {
            if hook.conditions.is_empty() || hook.conditions.iter().any(|asked| asked.holds(member)) {
                hook.due.push(json!({"event": EVENTS[event], "data": data}));
                hook.told += 1;
            }
        }
        self.node().happens(1, &observed);
    }

    /// Waits for all that is due, and sees that each webhook has had its own and in order.
    fn settle(&mut self) {
        let due = |is_kind: bool| {
            let of = self.hooks.iter().filter(move |hook| hook.is_kind == is_kind);
            of.map(|hook| hook.due.len()).sum::<usize>()
        };
        let mut posts: Vec<_> = (0..due(true)).map(|_| self.kind.next()).collect();
        posts.extend((0..due(false)).map(|_| self.unkind.next()));
        let node = self.node.as_ref().expect("it is there but for a restart");
        for hook in &mut self.hooks {
            let heard: Vec<Value> = posts
                .iter()
                .filter(|post| post.path == hook.path)
                .map(|post| json!({"event": post.body["event"], "data": post.body["data"]}))
                .collect();
            assert_eq!(heard, std::mem::take(&mut hook.due), "{hook:?}");
            let counts = loop {
                let counts = node.counts(&hook.id);
                if counts["queued"] == 0 {
                    break counts;
                }
                std::thread::yield_now();
            };
            let (taken, refused) = if hook.is_kind { (hook.told, 0) } else { (0, hook.told) };
            let wanted = [json!(taken), json!(refused), json!(0)];
            assert_eq!([&counts["delivered"], &counts["failed"], &counts["dropped"]], wanted.each_ref(), "{hook:?}");
        }
        let more: Vec<_> = self.kind.all().into_iter().chain(self.unkind.all()).collect();
        assert!(more.is_empty(), "nobody asked for {more:?}");
    }

    /// The list shows each as it should be, the oldest first.
    fn check_list(&mut self) {
        let wanted: Vec<Value> = self
            .hooks
            .iter()
            .map(|hook| {
                let target = if hook.is_kind { self.kind.url(&hook.path) } else { self.unkind.url(&hook.path) };
                json!({
                    "id": hook.id, "event": EVENTS[hook.event], "target": target, "enabled": hook.enabled,
                    "conditions": listed(&hook.conditions),
                })
            })
            .collect();
        let shown = self.node().ask(Method::GET, "/api/webhooks?limit=100", &Value::Null).body["data"].clone();
        assert_eq!(shown, json!(wanted));
    }
}

fn listed(conditions: &[Asked]) -> Value {
    conditions.iter().map(Asked::json).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn each_hears_what_it_asked_for_and_nothing_else(deeds in prop::collection::vec(deed(), 1..40)) {
        let mut play = Play::new();
        deeds.iter().for_each(|deed| play.play(deed));
        play.settle();
    }
}
