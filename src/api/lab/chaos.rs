//! Deliberate trouble between a node and its clients: rules by which answers come late, broken, old or not at all, and posts of
//! webhooks late, twice, out of order or never. They test how client programs handle it.
//!
//! Every rule has a random stream of its own and draws once for each request that it matches, so the n-th of them always has the same
//! fate. All matching rules draw. Their delays add up, and the first striking rule of any other kind decides the rest. The simulation
//! knows nothing of chaos.

use crate::{actors::NodeId, api::view::View, sim::SeedTree};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use warp::http::Method;

/// Shares are counted in millionths.
pub(crate) const MILLION: u32 = 1_000_000;
/// The greatest number of rules.
pub(crate) const RULES_MAX: usize = 1_000;

/// The rules of one served node. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Chaos(Arc<ChaosState>);

struct ChaosState {
    seed: u64,
    node: NodeId,
    /// The views of all served nodes, by number.
    served: Arc<OnceLock<Vec<View>>>,
    /// The numbers of rules for requests and for posts, so that a check without rules needs no lock.
    of_requests: AtomicUsize,
    of_posts: AtomicUsize,
    rules: Mutex<Rules>,
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Rules {
    last: u64,
    all: BTreeMap<u64, Rule>,
}

/// The effect of a rule on what it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The answer begins this number of milliseconds later.
    Delay(u32),
    /// The connection is closed without an answer. The request has no effect.
    Refuse,
    /// The answer has this status. The request has no effect.
    Status(u16),
    /// The body ends before it is as long as its head says.
    Cut,
    /// The answer is that of the node this number of blocks ago.
    Stale(u32),
    /// Another served node answers.
    Node(u32),
    /// A post, and those behind it, leave this number of milliseconds later.
    Late(u32),
    /// A post is sent twice.
    Twice,
    /// A post is sent after the next one of its webhook.
    Reorder,
    /// A post is never sent.
    Lost,
}

/// A rule as a client states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleLine {
    /// The pattern of a route, or the beginning of patterns with `*` behind it; `None` for all of the public API.
    pub route: Option<String>,
    pub method: Option<String>,
    /// The event of the webhooks; `None` for all.
    pub event: Option<String>,
    /// The share of matches that the rule strikes, in millionths.
    pub share: u32,
    /// The largest number of matches that the rule strikes.
    pub count: Option<u64>,
    /// The seed of its draws; `None` for the network's.
    pub seed: Option<u64>,
    pub treatment: Treatment,
}

/// A rule with its counts of matches and of strikes.
#[derive(Clone)]
pub struct Rule {
    pub line: RuleLine,
    pub matched: u64,
    pub applied: u64,
    random: ChaCha8Rng,
}

/// The effect of all rules on a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strike {
    pub delay: Duration,
    /// [`Treatment::Refuse`], `Status`, `Cut`, `Stale` or `Node`.
    pub then: Option<Treatment>,
}

/// The effect of all rules on a post.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostStrike {
    pub late: Duration,
    /// [`Treatment::Twice`], `Reorder` or `Lost`.
    pub then: Option<Treatment>,
}

impl Chaos {
    /// No rules yet, for one of the served nodes.
    pub fn new(seed: u64, node: NodeId, served: Arc<OnceLock<Vec<View>>>) -> Self {
        let (of_requests, of_posts, rules) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::default());
        let turn = tokio::sync::Mutex::default();
        Self(Arc::new(ChaosState { seed, node, served, of_requests, of_posts, rules, turn }))
    }

    /// Number of served nodes, which are the first ones.
    pub fn served(&self) -> usize {
        self.0.served.get().map_or(0, Vec::len)
    }

    /// The view of a served node.
    pub fn view(&self, node: u32) -> Option<View> {
        self.0.served.get()?.get(node as usize).cloned()
    }

    /// Adds a rule and returns its number, or `None` if there are [`RULES_MAX`] rules.
    pub fn add(&self, line: RuleLine) -> Option<u64> {
        let mut rules = self.lock();
        if rules.all.len() >= RULES_MAX {
            return None;
        }
        rules.last += 1;
        let number = rules.last;
        let random = match line.seed {
            Some(seed) => SeedTree::new(seed).stream("chaos"),
            None => SeedTree::new(self.0.seed).stream(&format!("chaos/{}/{number}", self.0.node.0)),
        };
        rules.all.insert(number, Rule { line, matched: 0, applied: 0, random });
        self.count(&rules);
        Some(number)
    }

    /// All rules, by number.
    pub fn all(&self) -> BTreeMap<u64, Rule> {
        self.lock().all.clone()
    }

    /// The rule with a number.
    pub fn get(&self, number: u64) -> Option<Rule> {
        self.lock().all.get(&number).cloned()
    }

    /// Waits for the caller's turn to change rules and to report the change to the run. So the run receives changes in the order in
    /// which they were made.
    pub async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.turn.lock().await
    }

    /// Removes a rule, if there is one with this number.
    pub fn remove(&self, number: u64) -> Option<Rule> {
        let mut rules = self.lock();
        let removed = rules.all.remove(&number);
        self.count(&rules);
        removed
    }

    /// Removes all rules and returns their number.
    pub fn clear(&self) -> usize {
        let mut rules = self.lock();
        let were_there = std::mem::take(&mut rules.all).len();
        self.count(&rules);
        were_there
    }

    /// The effect of all rules on a request of a route. Without rules it costs one atomic read.
    pub fn request(&self, path: &str, method: &Method) -> Strike {
        let mut strike = Strike::default();
        if self.0.of_requests.load(Ordering::Relaxed) == 0 {
            return strike;
        }
        for rule in self.lock().all.values_mut().filter(|rule| rule.line.is_for_request(path, method)) {
            match (rule.strikes(), rule.line.treatment) {
                (true, Treatment::Delay(ms)) => strike.delay += rule.apply(ms),
                (true, treatment) if strike.then.is_none() => {
                    rule.applied += 1;
                    strike.then = Some(treatment);
                }
                _ => {}
            }
        }
        strike
    }

    /// The effect of all rules on a post about an event.
    pub fn post(&self, event: &str) -> PostStrike {
        let mut strike = PostStrike::default();
        if self.0.of_posts.load(Ordering::Relaxed) == 0 {
            return strike;
        }
        for rule in self.lock().all.values_mut().filter(|rule| rule.line.is_for_post(event)) {
            match (rule.strikes(), rule.line.treatment) {
                (true, Treatment::Late(ms)) => strike.late += rule.apply(ms),
                (true, treatment) if strike.then.is_none() => {
                    rule.applied += 1;
                    strike.then = Some(treatment);
                }
                _ => {}
            }
        }
        strike
    }

    fn count(&self, rules: &Rules) {
        let of_posts = rules.all.values().filter(|rule| rule.line.treatment.is_of_posts()).count();
        self.0.of_posts.store(of_posts, Ordering::Relaxed);
        self.0.of_requests.store(rules.all.len() - of_posts, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        // A panic while it was locked leaves whole rules.
        self.0.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Treatment {
    /// True if the treatment applies to posts of webhooks and not to requests.
    pub fn is_of_posts(self) -> bool {
        matches!(self, Self::Late(_) | Self::Twice | Self::Reorder | Self::Lost)
    }
}

impl RuleLine {
    /// True if the rule is for requests and matches a route's path and a method.
    pub fn is_for_request(&self, path: &str, method: &Method) -> bool {
        let is_for_method = self.method.as_deref().is_none_or(|wanted| wanted == method.as_str());
        !self.treatment.is_of_posts() && is_for_method && self.is_for_path(path)
    }

    fn is_for_path(&self, path: &str) -> bool {
        match &self.route {
            None => true,
            Some(wanted) => match wanted.strip_suffix('*') {
                Some(beginning) => path.starts_with(beginning),
                None => wanted == path,
            },
        }
    }

    fn is_for_post(&self, event: &str) -> bool {
        self.treatment.is_of_posts() && self.event.as_deref().is_none_or(|wanted| wanted == event)
    }
}

impl Rule {
    /// Counts a match, and draws whether the rule strikes.
    fn strikes(&mut self) -> bool {
        self.matched += 1;
        let drawn = self.random.random_ratio(self.line.share, MILLION);
        drawn && self.line.count.is_none_or(|count| self.applied < count)
    }

    fn apply(&mut self, milliseconds: u32) -> Duration {
        self.applied += 1;
        Duration::from_millis(milliseconds.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(treatment: Treatment, share: u32) -> RuleLine {
        RuleLine { route: None, method: None, event: None, share, count: None, seed: None, treatment }
    }

    #[test]
    fn the_nth_request_always_meets_the_same() {
        let struck = |seed: Option<u64>, network: u64, others: bool| -> Vec<bool> {
            let chaos = Chaos::new(network, NodeId(0), Arc::default());
            let number = chaos.add(RuleLine { seed, ..line(Treatment::Cut, 300_000) }).expect("there is room");
            if others {
                chaos.add(RuleLine { count: Some(7), ..line(Treatment::Refuse, MILLION) });
                chaos.add(line(Treatment::Delay(5), 500_000));
            }
            let strikes = (0..1_000).map(|_| chaos.request("/api/blocks", &Method::GET).then);
            let struck: Vec<bool> = strikes.map(|then| then == Some(Treatment::Cut)).collect();
            let rule = chaos.get(number).expect("it is there");
            assert_eq!((rule.matched, rule.applied), (1_000, struck.iter().filter(|struck| **struck).count() as u64));
            struck
        };
        let first = struck(None, 7, false);
        assert_eq!(first, struck(None, 7, true), "whatever other rules do");
        assert_ne!(first, struck(None, 8, false));
        assert_eq!(struck(Some(3), 7, false), struck(Some(3), 8, false));
        let share = first.iter().filter(|struck| **struck).count();
        assert!((230..370).contains(&share), "{share} of 1000");
    }

    #[test]
    fn rules_match_by_route_method_and_count_and_delays_add_up() {
        let chaos = Chaos::new(1, NodeId(0), Arc::default());
        let rule = |route: &str, method: Option<&str>, count, treatment| {
            let (route, method) = (Some(route.to_owned()), method.map(str::to_owned));
            chaos.add(RuleLine { route, method, count, ..line(treatment, MILLION) }).expect("there is room")
        };
        rule("/api/blocks", None, Some(2), Treatment::Delay(10));
        rule("/api/*", Some("GET"), None, Treatment::Delay(5));
        let spent = rule("/api/blocks/{id}", None, Some(1), Treatment::Status(503));
        rule("/api/blocks/{id}", None, None, Treatment::Refuse);
        let ask = |path: &str, method| chaos.request(path, &method);
        let delays: Vec<u128> = (0..3).map(|_| ask("/api/blocks", Method::GET).delay.as_millis()).collect();
        assert_eq!(delays, [15, 15, 5]);
        assert_eq!(ask("/api/blocks", Method::HEAD), Strike::default());
        let then: Vec<_> = (0..2).map(|_| ask("/api/blocks/{id}", Method::HEAD).then).collect();
        assert_eq!(then, [Some(Treatment::Status(503)), Some(Treatment::Refuse)]);
        assert!(chaos.remove(spent).is_some() && chaos.remove(spent).is_none());
        assert_eq!(chaos.clear(), 3);
        assert_eq!(ask("/api/blocks", Method::GET), Strike::default());
    }

    #[test]
    fn posts_have_rules_of_their_own() {
        let chaos = Chaos::new(1, NodeId(0), Arc::default());
        chaos.add(RuleLine { event: Some("block.applied".to_owned()), ..line(Treatment::Lost, MILLION) });
        chaos.add(line(Treatment::Late(20), MILLION));
        assert_eq!(chaos.request("/api/blocks", &Method::GET), Strike::default());
        let (late, lost) = (Duration::from_millis(20), Some(Treatment::Lost));
        assert_eq!(chaos.post("block.applied"), PostStrike { late, then: lost });
        assert_eq!(chaos.post("block.forged"), PostStrike { late, then: None });
    }
}
