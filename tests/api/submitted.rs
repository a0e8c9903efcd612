//! Transactions as a real node was given them, in the order they were made, while its chain moved.
//!
//! Those it accepted stand in the recorded chain, which tells between which blocks the others were handed in. A node on
//! the same block must answer the same.

use crate::support::{Answered, ask, exchanges, host, recorded_view, recordings};
use dposlab::{
    actors::SimTime,
    api::{ApiContext, Dialect, Request, Settings},
    sim::{LiveHandle, NodePlan, Observer, Plan, SeedTree},
};
use serde_json::Value;
use std::{ops::RangeInclusive, path::Path, thread::JoinHandle, time::Duration};
use warp::http::Method;

/// Which of the recorded submissions were made on which height.
const MADE_AT: [(RangeInclusive<usize>, usize); 6] =
    [(0..=52, 46), (53..=57, 48), (58..=60, 50), (61..=61, 51), (62..=90, 52), (91..=96, 55)];

/// A node that forges nothing, on the recorded chain's block of a height.
struct Node {
    context: ApiContext,
    handle: LiveHandle,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    fn at(folder: &Path, height: usize) -> Self {
        let (tip, view) = recorded_view(folder, height);
        let start = SimTime::from_seconds(tip.block().header.timestamp) + Duration::from_secs(3);
        let nodes = vec![NodePlan { forger: None }];
        let plan = Plan::new(view.tree().clone(), tip, nodes, SeedTree::new(1), start);
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(view.clone())];
        let (handle, thread) = host(plan, observers);
        let settings = Settings { dialect: Dialect::Core26, ..Settings::default() };
        let context = ApiContext { settings, ..ApiContext::new(view, handle.clone()) };
        Self { context, handle, thread: Some(thread) }
    }

    fn post(&self, exchange: &Value) -> Answered {
        let recorded = &exchange["request"];
        let request = Request::new(Method::POST, recorded["path"].as_str().expect("a path"));
        ask(&self.context, &request, recorded["body"].to_string().into_bytes())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.handle.stop();
        self.thread.take().map(JoinHandle::join);
    }
}

/// Of an item that fits no schema the real node lists what each of its sixteen types would have wanted; this one says
/// what the item's own type wants, and where (docs/deviations.md). Each of its clauses must be among the real ones.
fn says_no_more(answered: &Value, real: &Value) -> bool {
    let message = |body: &Value| body["message"].as_str().unwrap_or_default().to_owned();
    let (own, all) = (message(answered), message(real));
    let clause =
        |clause: &str| clause.split_once(" should ").map_or(clause.to_owned(), |(_, rest)| format!("should {rest}"));
    answered["error"] == real["error"] && !own.is_empty() && own.split(',').all(|one| all.contains(&clause(one)))
}

#[test]
fn transactions_are_taken_and_refused_as_a_real_node_did() {
    let folder = recordings();
    let recorded = exchanges(&folder.join("submissions.jsonl"));
    assert_eq!(recorded.len(), 97);
    for (made, height) in MADE_AT {
        answers_like(&Node::at(&folder, height), &recorded[made]);
    }
}

/// One sender's quota, in whole requests: the one that reaches it is taken whole.
#[test]
fn a_sender_may_have_so_many_pending_as_at_a_real_node() {
    let folder = recordings();
    let node = Node::at(&folder, 111);
    let posts = |file: &str| -> Vec<Value> {
        exchanges(&folder.join(file)).into_iter().filter(|exchange| !exchange["request"]["body"].is_null()).collect()
    };
    let (filling, full) = (posts("submissions-expiring.jsonl"), posts("submissions-excess.jsonl"));
    assert_eq!((filling.len(), full.len()), (9, 2));
    answers_like(&node, &filling);
    answers_like(&node, &full[..1]);
    // The other sender's pending transactions before this one were not recorded.
    let mixed = node.post(&full[1]);
    assert_eq!(mixed.body["data"]["excess"], full[1]["response"]["body"]["data"]["excess"]);
}

fn answers_like(node: &Node, recorded: &[Value]) {
    let mut differ = Vec::new();
    for exchange in recorded {
        let name = &exchange["name"];
        let answered = node.post(exchange);
        let expected = &exchange["response"];
        let same = match answered.status {
            422 => says_no_more(&answered.body, &expected["body"]),
            _ => answered.body == expected["body"],
        };
        if expected["status"] != answered.status || !same {
            differ.push(format!("{name}:\n  {}\n  {}", expected["body"], answered.body));
        }
    }
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), recorded.len(), differ.join("\n"));
}
