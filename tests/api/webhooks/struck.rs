//! Posts that go wrong on purpose.

use super::{
    Node, patient,
    receiver::{Post, Receiver},
};
use crate::support::at_genesis;
use dposlab::{
    actors::{Event, NodeId},
    api::{ApiContext, Chaos, Dialect, WebhookSettings},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use warp::http::Method;

fn removed(byte: u8) -> Event {
    Event::PoolRemoved(dposlab::protocol::TransactionId([byte; 32]))
}

#[test]
fn posts_are_lost_doubled_swapped_and_late() {
    let chaos = Chaos::new(7, NodeId(0), Arc::default());
    let context = ApiContext { chaos: chaos.clone(), ..at_genesis(Dialect::Documented).1 };
    let mut node = Node::of(context, WebhookSettings { chaos: Some(chaos), ..patient() });
    let receiver = Receiver::kind();
    let event = "transaction.pool.removed";
    let hook = node.create(event, &receiver.url("/"), json!([]));
    let rule = |node: &Node, rule: Value| {
        let made = node.ask(Method::POST, "/lab/chaos", &rule);
        assert_eq!(made.status, 201, "{}", made.body);
    };
    rule(&node, json!({"event": "block.applied", "lost": true}));
    rule(&node, json!({"event": event, "late_ms": 5, "count": 2}));
    for what in ["lost", "twice", "reorder"] {
        rule(&node, json!({"event": event, what: true, "count": 1}));
    }
    (0..6).for_each(|byte| node.happens(1, &removed(byte)));
    let next = |receiver: &Receiver| {
        let data = receiver.next().body["data"].as_str().map(hex::decode).expect("an id").expect("hex");
        data[0]
    };
    let came: Vec<u8> = (0..6).map(|_| next(&receiver)).collect();
    assert_eq!(came, [1, 1, 3, 2, 4, 5], "the first is lost, the second comes twice, the third after the fourth");
    let rules = node.ask(Method::GET, "/lab/chaos", &Value::Null).body["data"].clone();
    let did: Vec<(&Value, &Value)> =
        rules.as_array().expect("a list").iter().map(|rule| (&rule["matched"], &rule["applied"])).collect();
    let six = json!(6);
    assert_eq!(
        did,
        [(&json!(0), &json!(0)), (&six, &json!(2)), (&six, &json!(1)), (&six, &json!(1)), (&six, &json!(1))]
    );
    // One that waits for the next leaves at the end, if none comes.
    rule(&node, json!({"reorder": true, "count": 1}));
    node.happens(1, &removed(9));
    let counts = node.counts(&hook["id"]);
    assert!(counts["failed"] == 0 && counts["dropped"] == 0, "what is lost is counted nowhere else: {counts}");
    node.finish();
    assert_eq!(next(&receiver), 9);
}

// A model of what must arrive.

const EVENTS: [&str; 2] = ["transaction.pool.removed", "forger.failed"];
const DEEDS: [&str; 4] = ["lost", "twice", "reorder", "late_ms"];

/// One thing after the other.
#[derive(Clone, Debug)]
enum Step {
    /// An event of this kind happens.
    Happens(usize),
    /// A rule for events of one kind, or of all.
    AddsRule {
        deed: usize,
        event: Option<usize>,
        count: Option<u64>,
    },
    DeletesRule(usize),
    ClearsRules,
    CreatesHook {
        event: usize,
    },
    DeletesHook(usize),
    Switches {
        hook: usize,
        enabled: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let event = || 0..EVENTS.len();
    let rule = (0..DEEDS.len(), prop::option::of(event()), prop::option::of(1..4_u64));
    prop_oneof![
        12 => event().prop_map(Step::Happens),
        4 => rule.prop_map(|(deed, event, count)| Step::AddsRule { deed, event, count }),
        1 => (0..4_usize).prop_map(Step::DeletesRule),
        1 => Just(Step::ClearsRules),
        1 => event().prop_map(|event| Step::CreatesHook { event }),
        1 => (0..4_usize).prop_map(Step::DeletesHook),
        1 => (0..4_usize, any::<bool>()).prop_map(|(hook, enabled)| Step::Switches { hook, enabled }),
    ]
}

/// A rule, by the text of docs/lab.md.
struct Rule {
    id: u64,
    deed: usize,
    event: Option<usize>,
    count: Option<u64>,
    matched: u64,
    applied: u64,
}

/// A webhook, and the events that it must have got, in order.
struct Hook {
    id: Value,
    path: String,
    event: usize,
    enabled: bool,
    deleted: bool,
    gets: Vec<u8>,
    /// The one that leaves after the next.
    kept_back: Option<u8>,
}

#[derive(Default)]
struct Model {
    rules: Vec<Rule>,
    hooks: Vec<Hook>,
}

impl Model {
    fn happens(&mut self, kind: usize, number: u8) {
        for hook in self.hooks.iter_mut().filter(|hook| !hook.deleted && hook.enabled && hook.event == kind) {
            // Delays add up, and of all else the oldest rule's is what happens.
            let mut fate = None;
            for rule in self.rules.iter_mut().filter(|rule| rule.event.is_none_or(|event| event == kind)) {
                rule.matched += 1;
                let strikes = rule.count.is_none_or(|count| rule.applied < count);
                let is_late = DEEDS[rule.deed] == "late_ms";
                if strikes && (is_late || fate.is_none()) {
                    rule.applied += 1;
                    fate = if is_late { fate } else { Some(DEEDS[rule.deed]) };
                }
            }
            hook.posted(fate, number);
        }
    }
}

impl Hook {
    fn posted(&mut self, fate: Option<&str>, number: u8) {
        match fate {
            // It is no next one: nothing is sent.
            Some("lost") => return,
            Some("reorder") if self.kept_back.is_none() => return self.kept_back = Some(number),
            Some("twice") => self.gets.extend([number, number]),
            _ => self.gets.push(number),
        }
        self.gets.extend(self.kept_back.take());
    }
}

fn event(kind: usize, number: u8) -> Event {
    match kind {
        0 => removed(number),
        _ => Event::ForgerFailed { error: hex::encode([number; 32]) },
    }
}

/// The number of the event that a post is about.
fn number_of(post: &Post) -> u8 {
    let data = &post.body["data"];
    let text = data.as_str().or_else(|| data["error"].as_str()).expect("an id or an error");
    hex::decode(text).expect("hex")[0]
}

fn path_of(id: &Value) -> String {
    format!("/api/webhooks/{}", id.as_str().expect("a text"))
}

struct Course {
    node: Option<Node>,
    receiver: Receiver,
    model: Model,
    /// Posts that came, by path.
    came: BTreeMap<String, Vec<Post>>,
    happened: u8,
}

impl Course {
    fn new() -> Self {
        let chaos = Chaos::new(7, NodeId(0), Arc::default());
        let context = ApiContext { chaos: chaos.clone(), ..at_genesis(Dialect::Documented).1 };
        let node = Node::of(context, WebhookSettings { chaos: Some(chaos), ..patient() });
        let (receiver, model) = (Receiver::kind(), Model::default());
        Self { node: Some(node), receiver, model, came: BTreeMap::new(), happened: 0 }
    }

    fn node(&mut self) -> &mut Node {
        self.node.as_mut().expect("it has not ended")
    }

    fn create(&mut self, event: usize) {
        let path = format!("/{}", self.model.hooks.len());
        let target = self.receiver.url(&path);
        let id = self.node().create(EVENTS[event], &target, json!([]))["id"].clone();
        let (gets, kept_back) = (Vec::new(), None);
        self.model.hooks.push(Hook { id, path, event, enabled: true, deleted: false, gets, kept_back });
    }

    /// The dispatcher answers after it has heard of all that happened.
    fn settle(&mut self) {
        self.node().ask(Method::GET, "/lab/webhooks", &Value::Null);
    }

    fn ask(&mut self, method: Method, path: &str, body: &Value, status: u16) -> Value {
        let answered = self.node().ask(method, path, body);
        assert_eq!(answered.status, status, "{path}: {}", answered.body);
        answered.body
    }

    fn take(&mut self, step: &Step) {
        self.settle();
        match step {
            Step::Happens(kind) => {
                self.model.happens(*kind, self.happened);
                let event = event(*kind, self.happened);
                self.node().happens(1, &event);
                self.happened += 1;
            }
            Step::AddsRule { deed, event, count } => {
                let what = if DEEDS[*deed] == "late_ms" { json!(1) } else { json!(true) };
                let mut rule = json!({ DEEDS[*deed]: what });
                event.iter().for_each(|event| rule["event"] = json!(EVENTS[*event]));
                count.iter().for_each(|count| rule["count"] = json!(count));
                let id = self.ask(Method::POST, "/lab/chaos", &rule, 201)["data"]["id"].as_u64().expect("a number");
                let (deed, event, count) = (*deed, *event, *count);
                self.model.rules.push(Rule { id, deed, event, count, matched: 0, applied: 0 });
            }
            Step::DeletesRule(which) if *which < self.model.rules.len() => {
                let rule = self.model.rules.remove(*which);
                self.ask(Method::DELETE, &format!("/lab/chaos/{}", rule.id), &Value::Null, 200);
            }
            Step::ClearsRules => {
                self.ask(Method::DELETE, "/lab/chaos", &Value::Null, 200);
                self.model.rules.clear();
            }
            Step::CreatesHook { event } => self.create(*event),
            Step::DeletesHook(which) if self.model.hooks.get(*which).is_some_and(|hook| !hook.deleted) => {
                let id = self.model.hooks[*which].id.clone();
                // What still waits would go with it.
                while self.node().counts(&id)["queued"] != 0 {
                    std::thread::yield_now();
                }
                self.ask(Method::DELETE, &path_of(&id), &Value::Null, 204);
                self.model.hooks[*which].deleted = true;
            }
            Step::Switches { hook, enabled } if self.model.hooks.get(*hook).is_some_and(|hook| !hook.deleted) => {
                let id = self.model.hooks[*hook].id.clone();
                self.ask(Method::PUT, &path_of(&id), &json!({ "enabled": enabled }), 204);
                self.model.hooks[*hook].enabled = *enabled;
            }
            Step::DeletesRule(_) | Step::DeletesHook(_) | Step::Switches { .. } => {}
        }
    }

    fn hear(&mut self, posts: impl IntoIterator<Item = Post>) {
        posts.into_iter().for_each(|post| self.came.entry(post.path.clone()).or_default().push(post));
    }

    /// Every webhook has got what it must, in that order, and nothing else; what was kept back leaves at the end.
    fn end(mut self) {
        self.settle();
        let rules = self.ask(Method::GET, "/lab/chaos", &Value::Null, 200)["data"].clone();
        let did = |rule: &Value| (rule["id"].as_u64(), rule["matched"].as_u64(), rule["applied"].as_u64());
        let did: Vec<_> = rules.as_array().expect("a list").iter().map(did).collect();
        let modelled = self.model.rules.iter().map(|rule| (Some(rule.id), Some(rule.matched), Some(rule.applied)));
        assert_eq!(did, modelled.collect::<Vec<_>>());
        for _ in 0..self.model.hooks.iter().map(|hook| hook.gets.len()).sum() {
            let post = self.receiver.next();
            self.hear([post]);
        }
        let mut left = 0;
        for hook in self.model.hooks.iter_mut().filter(|hook| !hook.deleted) {
            left += usize::from(hook.kept_back.is_some());
            hook.gets.extend(hook.kept_back.take());
        }
        self.node.take().into_iter().for_each(Node::finish);
        for _ in 0..left {
            let post = self.receiver.next();
            self.hear([post]);
        }
        let more = self.receiver.all();
        self.hear(more);
        let Self { model, mut came, .. } = self;
        for hook in &model.hooks {
            let posts = came.remove(&hook.path).unwrap_or_default();
            assert_eq!(
                posts.iter().map(number_of).collect::<Vec<_>>(),
                hook.gets,
                "{} {}",
                hook.path,
                EVENTS[hook.event]
            );
            // Two posts of one event are one post made twice, and no other has its id.
            let mut ids: BTreeMap<&str, u8> = BTreeMap::new();
            for post in &posts {
                let id = post.header("webhook-id").expect("it has one");
                assert_eq!(*ids.entry(id).or_insert(number_of(post)), number_of(post));
            }
            assert_eq!(ids.len(), ids.values().collect::<BTreeSet<_>>().len(), "one id for each event");
        }
        assert!(came.is_empty(), "{came:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever rules there are, webhooks get the posts that docs/lab.md says, and none of an event from before they existed,
    /// after they were deleted, or while they were off.
    #[test]
    fn posts_arrive_as_the_rules_say(steps in prop::collection::vec(step(), 10..60)) {
        let mut course = Course::new();
        (0..EVENTS.len()).for_each(|event| course.create(event));
        steps.iter().for_each(|step| course.take(step));
        course.end();
    }
}

/// Every pair of rules without a count, in both orders, strikes a row of posts.
#[test]
fn two_rules_that_strike_every_post_do_what_the_older_one_says() {
    for (one, other) in (0..DEEDS.len()).flat_map(|one| (0..DEEDS.len()).map(move |other| (one, other))) {
        let mut course = Course::new();
        course.create(0);
        for deed in [one, other] {
            course.take(&Step::AddsRule { deed, event: None, count: None });
        }
        (0..5).for_each(|_| course.take(&Step::Happens(0)));
        course.end();
    }
}
