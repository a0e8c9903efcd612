//! A webhook dispatcher: delivers the events of a node to their subscribers. Source: api.md 6.
//!
//! ```text
//!   observations ──► which events of the catalogue ──► which hooks ──► deliveries, in the hooks' order
//!                    (firing, payload)                 (condition)
//! ```
//!
//! Like every actor it is a value without IO: it receives its node's events and returns the posts. The simulation never learns when or
//! whether a post arrives, so webhooks never change a run.

mod condition;
mod events;
mod firing;
mod integer;
mod payload;

pub use condition::{Comparison, Condition};
pub use events::{EVENTS_MAX, EventNames};
pub use payload::PeerState;

use super::{Event, SimTime};
use crate::ledger::{Applied, BlockTree, Link};
use firing::Firing;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fmt, sync::Arc};

/// The largest number of webhooks of a node. The reference sets no limit.
pub const WEBHOOKS_MAX: usize = 1_024;
/// The largest number of conditions with a pattern of all webhooks of a node together: each costs time with every event.
pub const PATTERNS_MAX: usize = 256;
/// The largest number of conditions of a webhook.
pub const CONDITIONS_MAX: usize = 64;
/// The largest nesting depth of a condition's value.
pub const VALUE_DEPTH_MAX: usize = 32;
/// The number of characters of a token that the node stores. It never receives the other half again. Source: api.md 6.1.
pub const SECRET_LENGTH: usize = 32;

/// A webhook as the node stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// A version 4 UUID.
    pub id: String,
    /// The events that it subscribes to. Any names are allowed, also those of events that never happen.
    pub event: EventNames,
    /// The absolute URI that is posted to.
    pub target: String,
    /// The first half of its token, by which the receiver recognises the node.
    pub secret: String,
    pub enabled: bool,
    /// It fires if one of them holds, or if there are none.
    pub conditions: Vec<Condition>,
}

impl Webhook {
    /// Returns true if a payload makes it fire. A condition that cannot be evaluated does not hold; without a payload none does.
    pub fn is_met_by(&self, payload: Option<&Value>) -> bool {
        let holds = |condition: &Condition| payload.is_some_and(|payload| condition.holds(payload) == Ok(true));
        self.conditions.is_empty() || self.conditions.iter().any(holds)
    }
}

/// The changes to a webhook; its id and token stay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookChange {
    pub event: Option<EventNames>,
    pub target: Option<String>,
    pub enabled: Option<bool>,
    pub conditions: Option<Vec<Condition>>,
}

/// An input of a dispatcher.
#[derive(Clone, Debug)]
pub enum WebhookInput {
    /// Its node has started.
    Started,
    /// Something happened at its node.
    Observed(Box<Observation>),
}

/// An event, with data that the event itself leaves out.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The number of the event among those of its node, if they are numbered.
    pub number: Option<u64>,
    pub event: Event,
    /// The states around a block that was applied. The dispatcher looks them up if they are missing.
    pub states: Option<States>,
    /// The peer that was added or removed. Without it, the event has no payload.
    pub peer: Option<PeerState>,
}

impl From<Event> for Observation {
    fn from(event: Event) -> Self {
        Self { number: None, event, states: None, peer: None }
    }
}

/// The states before and after a block.
#[derive(Clone, Debug)]
pub struct States {
    pub before: Arc<Applied>,
    pub after: Arc<Applied>,
}

impl States {
    /// The states around a block of the tree; genesis has the same before as after it.
    pub fn around(tree: &BlockTree, link: &Arc<Link>) -> Self {
        let after = tree.applied(link);
        let before = link.parent().map_or_else(|| after.clone(), |parent| tree.applied(&parent));
        Self { before, after }
    }
}

/// An effect that a dispatcher wants.
#[derive(Clone, Debug)]
pub enum WebhookEffect {
    Deliver(Delivery),
}

/// The position of a post's content in everything that its node posts: the greater one came later. Posts of the same content to
/// different webhooks have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sequence {
    /// The number of the event among those of its node.
    pub event: u64,
    /// The position among all posts that the event can cause. It does not depend on the webhooks that exist.
    pub post: u32,
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.event, self.post)
    }
}

/// A body on its way to a webhook's target.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub hook: Arc<Webhook>,
    /// The short form of its content.
    pub head: Head,
    /// JSON: `{"timestamp":…,"data":…,"event":…,"sequence":…}`, shared by all who get it.
    pub body: Arc<[u8]>,
}

/// The members of a body that the node itself reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Head {
    /// The event that fired, one of those that the webhook subscribes to.
    pub event: String,
    /// The position of the post. Missing if the cause is not a numbered event of the node, such as its start.
    pub sequence: Option<Sequence>,
}

impl Delivery {
    /// A delivery of a body that was made earlier.
    pub fn again(hook: Arc<Webhook>, body: Arc<[u8]>) -> Self {
        // A body that this node made has both.
        let head = serde_json::from_slice(&body).unwrap_or_default();
        Self { hook, head, body }
    }
}

/// The limit on the webhooks of a node, or on the patterns in them, is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooManyWebhooks {
    #[error("this node has {WEBHOOKS_MAX} webhooks, which is as many as it takes; delete one first")]
    Hooks,
    #[error("the webhooks of this node would have {0} conditions 'regexp'; it takes {PATTERNS_MAX} at most")]
    Patterns(usize),
}

/// The webhooks of one node, in the order of their creation.
#[derive(Clone)]
pub struct WebhookDispatcher {
    tree: Arc<BlockTree>,
    hooks: Vec<Arc<Webhook>>,
}

impl WebhookDispatcher {
    /// A dispatcher with stored webhooks.
    pub fn new(tree: Arc<BlockTree>, hooks: Vec<Webhook>) -> Self {
        Self { tree, hooks: hooks.into_iter().map(Arc::new).collect() }
    }

    /// One input in, the wanted effects out, in order.
    pub fn step(&self, now: SimTime, input: &WebhookInput, effects: &mut Vec<WebhookEffect>) {
        let number = match input {
            WebhookInput::Started => None,
            WebhookInput::Observed(observation) => observation.number,
        };
        let next = number.map(|event| Sequence { event, post: 0 });
        let mut firing = Firing { tree: &self.tree, now, hooks: &self.hooks, next, effects };
        match input {
            WebhookInput::Started => firing.started(),
            WebhookInput::Observed(observation) => firing.observed(observation),
        }
    }

    /// All webhooks, oldest first.
    pub fn hooks(&self) -> &[Arc<Webhook>] {
        &self.hooks
    }

    /// The webhook with this id.
    pub fn get(&self, id: &str) -> Option<&Arc<Webhook>> {
        self.hooks.iter().find(|hook| hook.id == id)
    }

    /// Adds a webhook. The caller draws its id and its token.
    ///
    /// # Errors
    /// There are [`WEBHOOKS_MAX`] already, or too many patterns.
    pub fn create(&mut self, hook: Webhook) -> Result<(), TooManyWebhooks> {
        if self.hooks.len() >= WEBHOOKS_MAX {
            return Err(TooManyWebhooks::Hooks);
        }
        self.check_patterns(None, &hook.conditions)?;
        self.hooks.push(Arc::new(hook));
        Ok(())
    }

    /// Changes a webhook. Returns false if it does not exist.
    ///
    /// # Errors
    /// There would be too many patterns.
    pub fn update(&mut self, id: &str, change: WebhookChange) -> Result<bool, TooManyWebhooks> {
        if let Some(conditions) = &change.conditions {
            self.check_patterns(Some(id), conditions)?;
        }
        let Some(hook) = self.hooks.iter_mut().find(|hook| hook.id == id) else { return Ok(false) };
        let hook = Arc::make_mut(hook);
        hook.event = change.event.unwrap_or_else(|| hook.event.clone());
        hook.target = change.target.unwrap_or_else(|| hook.target.clone());
        hook.enabled = change.enabled.unwrap_or(hook.enabled);
        hook.conditions = change.conditions.unwrap_or_else(|| hook.conditions.clone());
        Ok(true)
    }

    /// Checks that there is room for the patterns of these conditions, in place of those of one webhook.
    fn check_patterns(&self, in_place_of: Option<&str>, conditions: &[Condition]) -> Result<(), TooManyWebhooks> {
        let others = self.hooks.iter().filter(|hook| in_place_of != Some(&*hook.id));
        let others: usize = others.map(|hook| patterns(&hook.conditions)).sum();
        match others + patterns(conditions) {
            all if all > PATTERNS_MAX => Err(TooManyWebhooks::Patterns(all)),
            _ => Ok(()),
        }
    }

    /// Deletes a webhook. Returns false if it does not exist.
    pub fn delete(&mut self, id: &str) -> bool {
        let count = self.hooks.len();
        self.hooks.retain(|hook| hook.id != id);
        self.hooks.len() < count
    }
}

fn patterns(conditions: &[Condition]) -> usize {
    conditions.iter().filter(|condition| condition.condition == Comparison::Regexp).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hook(id: &str, conditions: Value) -> Webhook {
        let mut hook = json!({"id": id, "event": "block.applied", "target": "http://127.0.0.1:1", "secret": "s"});
        hook["enabled"] = json!(true);
        hook["conditions"] = conditions;
        serde_json::from_value(hook).unwrap()
    }

    #[test]
    fn one_condition_is_enough_and_errors_are_none() {
        let payload = Some(json!({"height": 5}));
        let wrong = json!({"key": "nothere", "condition": "contains", "value": "x"});
        let right = json!({"key": "height", "condition": "gt", "value": 0});
        assert!(hook("1", json!([])).is_met_by(None) && hook("1", json!([wrong, right])).is_met_by(payload.as_ref()));
        assert!(!hook("1", json!([wrong])).is_met_by(payload.as_ref()));
        let ne = json!({"key": "height", "condition": "ne", "value": 0});
        assert!(!hook("1", json!([ne])).is_met_by(None), "no payload, nothing to ask");
    }
}
