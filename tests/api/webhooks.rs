//! Webhooks: the recorded exchanges and deliveries of a real node, receivers of all kinds, and a rollback.

mod catalogue;
mod delivery;
mod endpoints;
mod model;
mod receiver;
pub mod recorded;
mod struck;

use crate::support::{Answered, ask, at_genesis, of_json};
use dposlab::{
    actors::{Event, SimTime},
    api::{ApiContext, Dialect, WebhookSettings, WebhookThread, webhooks::WebhookObserver},
    sim::Observer,
};
use serde_json::{Value, json};
use std::time::Duration;
use warp::http::Method;

/// Settings under which no receiver that answers is ever too slow, however busy the machine is.
fn patient() -> WebhookSettings {
    WebhookSettings { timeout: Duration::from_secs(60), ..WebhookSettings::default() }
}

/// A node on its genesis block, with webhooks.
struct Node {
    context: ApiContext,
    observer: WebhookObserver,
    // Last, since the others use it.
    thread: WebhookThread,
}

impl Node {
    fn new(dialect: Dialect, settings: WebhookSettings) -> Self {
        Self::of(at_genesis(dialect).1, settings)
    }

    fn of(context: ApiContext, settings: WebhookSettings) -> Self {
        let mut thread = WebhookThread::start().expect("a thread");
        let webhooks = thread.host(context.view.clone(), settings).expect("nothing is kept");
        let observer = webhooks.observer();
        Self { context: ApiContext { webhooks: Some(webhooks), ..context }, observer, thread }
    }

    /// Something happens at the node, so many seconds after the epoch.
    fn happens(&mut self, second: u32, event: &Event) {
        let now = SimTime::from_seconds(dposlab::protocol::Timestamp(second));
        self.observer.observe(now, self.context.view.node(), event);
    }

    fn ask(&self, method: Method, target: &str, body: &Value) -> Answered {
        ask(&self.context, &of_json(method, target), body.to_string().into_bytes())
    }

    /// Creates a webhook and answers what was shown.
    fn create(&self, event: &str, target: &str, conditions: Value) -> Value {
        let body = json!({"event": event, "target": target, "conditions": conditions});
        let answered = self.ask(Method::POST, "/api/webhooks", &body);
        assert_eq!(answered.status, 201, "{}", answered.body);
        answered.body["data"].clone()
    }

    /// The counts of a webhook's deliveries by outcome.
    fn counts(&self, id: &Value) -> Value {
        let counts = self.ask(Method::GET, "/lab/webhooks", &Value::Null).body["data"]["webhooks"].clone();
        let rows = counts.as_array().expect("a list");
        rows.iter().find(|row| row["id"] == *id).expect("the webhook is there").clone()
    }

    /// The same, once a delivery has failed. A name may take its time to be found out.
    fn failed(&self, id: &Value) -> Value {
        loop {
            let counts = self.counts(id);
            if counts["failed"] != 0 {
                return counts;
            }
            std::thread::yield_now();
        }
    }

    /// Ends the deliveries. It waits for a second of the real clock at most, so a test first takes what must arrive.
    fn finish(self) {
        self.thread.stop();
    }
}
