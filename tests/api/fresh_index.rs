//! The API against the ledger: after every block, fork, rollback and change of a pool, every route answers what a fresh
//! index of the same chain answers, and what the chain's blocks add up to when they are counted the slow way.
//!
//! ```text
//!   history  three nodes on one tree of blocks, and what their views are told
//!   asked    every route of the API's own description, with parameters drawn from what answers have shown
//!   naive    the same figures again, from blocks alone (books)
//!   reverted each type of transaction, taken back
//!   lists    orders and searches of every list, from its own rows
//!   settled  blocks that leave memory
//!   damaged  their lists, when the folder is damaged
//! ```

mod asked;
mod books;
mod damaged;
mod history;
mod lists;
mod naive;
mod reverted;
mod settled;

use crate::support::get;
use asked::{Asked, Operation, Words, operations};
use dposlab::{
    api::{ApiContext, Dialect, Settings, View},
    protocol::Timestamp,
    sim::{LiveHandle, SeedTree},
};
use history::{Change, NODES, Network, ROUND, change};
use naive::Naive;
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use std::collections::BTreeMap;

/// Requests of each route that are kept to be asked again after the next change, so that what was remembered for one
/// chain would show on the next.
const KEPT: usize = 2;

/// The same requests to the views of a run and to fresh ones.
struct Comparison {
    random: ChaCha8Rng,
    words: Words,
    /// Each with its requests, in both dialects.
    asked: Vec<(Dialect, Operation, Vec<Asked>)>,
    /// Answers with something in them, by route.
    found: BTreeMap<String, usize>,
    /// The highest block a view stood on.
    highest: u32,
}

impl Comparison {
    fn new(seed: u64, view: &View) -> Self {
        let dialects = [Dialect::Documented, Dialect::Core26].into_iter();
        let asked = dialects.flat_map(|dialect| {
            let operations = operations(&context(view, dialect));
            operations.into_iter().map(move |operation| (dialect, operation, Vec::new()))
        });
        let (random, asked) = (SeedTree::new(seed).stream("requests"), asked.collect());
        Self { random, words: Words::default(), asked, found: BTreeMap::new(), highest: 0 }
    }

    /// Every answer of a node's view is that of a fresh one.
    fn compare(&mut self, network: &Network, node: usize) {
        let running = &network.views[node];
        self.highest = self.highest.max(network.tips[node].height().0);
        self.words.learn(&context(&network.fresh(node), Dialect::Documented));
        // One for each dialect: what is remembered for one must not be answered in the other.
        let fresh = [Dialect::Documented, Dialect::Core26].map(|dialect| context(&network.fresh(node), dialect));
        for (dialect, operation, kept) in &mut self.asked {
            kept.push(operation.draw(&self.words, &mut self.random));
            if kept.len() > KEPT {
                kept.remove(0);
            }
            for asked in &*kept {
                let answered = asked.of(&context(running, *dialect));
                let wanted = asked.of(&fresh[usize::from(*dialect == Dialect::Core26)]);
                let same = answered.status == wanted.status && answered.reply.body == wanted.reply.body;
                assert!(
                    same,
                    "node {node} at {} ({dialect}): {asked:?}\nanswered {} {}\n   fresh {} {}",
                    network.tips[node].height().0,
                    answered.status,
                    shown(&answered.body),
                    wanted.status,
                    shown(&wanted.body),
                );
                let has_something = match &answered.body["data"] {
                    Value::Null => false,
                    Value::Array(rows) => !rows.is_empty(),
                    _ => answered.status == 200,
                };
                *self.found.entry(operation.path.clone()).or_default() += usize::from(has_something);
            }
        }
    }
}

fn shown(body: &Value) -> String {
    body.to_string().chars().take(2_000).collect()
}

fn context(view: &View, dialect: Dialect) -> ApiContext {
    let settings = Settings { dialect, ..Settings::default() };
    ApiContext { settings, ..ApiContext::new(view.clone(), LiveHandle::ended()) }
}

/// Each transaction of a chain has the same answer by its id, those of genesis too, whose nonces are counted.
fn check_each(network: &Network, node: usize) {
    let [running, fresh] = [&network.views[node], &network.fresh(node)].map(|view| context(view, Dialect::Documented));
    for link in std::iter::successors(Some(network.tips[node].clone()), |link| link.parent()) {
        for transaction in &link.block().transactions {
            let target = format!("/api/transactions/{}", transaction.id());
            let [answered, wanted] = [&running, &fresh].map(|context| get(context, &target));
            assert!(wanted.status == 200 && answered.body == wanted.body, "{target}: {}", shown(&answered.body));
        }
    }
}

fn check_naively(network: &Network, node: usize) {
    let (context, Timestamp(now)) = (context(&network.views[node], Dialect::Documented), network.now.seconds());
    Naive::new(&context, &network.tips[node]).check(&network.pools[node], now);
}

/// Since when a chain is the node's never goes back: clients ask by it whether anything has changed.
fn check_dates(network: &Network, node: usize, last: &mut [(String, i64); NODES]) {
    let head = network.views[node].head();
    let (id, modified) = (head.tip().id().to_string(), head.modified());
    let (last_id, last_modified) = &last[node];
    assert!(if *last_id == id { modified >= *last_modified } else { modified > *last_modified }, "{id}: {modified}");
    last[node] = (id, modified);
}

/// Plays a history; `often` says after which changes figures are counted naively, too.
fn play(mut network: Network, seed: u64, changes: &[Change], often: usize) -> Comparison {
    let mut comparison = Comparison::new(seed, &network.views[0]);
    let mut last = std::array::from_fn(|_| (String::new(), i64::MIN));
    for (number, change) in changes.iter().enumerate() {
        let mut seen = 0;
        network.change(change, |network| {
            check_dates(network, change.node, &mut last);
            seen += 1;
            // Between a block and its pool's word, and between a rollback and its pool's.
            if seen <= 2 {
                comparison.compare(network, change.node);
            }
        });
        comparison.compare(&network, change.node);
        // The others see it as their neighbour.
        comparison.compare(&network, (change.node + 1) % NODES);
        if number % often == 0 {
            check_naively(&network, change.node);
        }
    }
    (0..NODES).for_each(|node| check_naively(&network, node));
    (0..NODES).for_each(|node| check_each(&network, node));
    lists::check(&context(&network.views[0], Dialect::Documented));
    comparison
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 6,
        max_shrink_iters: 200,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/tests/fresh_index.txt"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_answer_is_that_of_a_fresh_index(seed in any::<u64>(), changes in prop::collection::vec(change(), 1..12)) {
        play(Network::new(), seed, &changes, 4);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3,
        max_shrink_iters: 200,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/tests/fresh_index.txt"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_answer_of_settled_blocks_is_that_of_a_fresh_index_in_memory(
        seed in any::<u64>(),
        changes in prop::collection::vec(change(), 14..22),
    ) {
        play(Network::settling(), seed, &changes, 8);
    }
}

/// One long history of known content, so that it is known what was seen.
fn long_history(network: Network, changes: usize) -> Comparison {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let changes = prop::collection::vec(change(), changes).new_tree(&mut runner).expect("a value").current();
    let comparison = play(network, 7, &changes, 6);
    assert!(comparison.highest > 3 * ROUND, "several rounds: {}", comparison.highest);
    comparison
}

#[test]
#[ignore = "long: CI runs it"]
fn a_long_history_settles() {
    long_history(Network::settling(), 50);
}

#[test]
#[ignore = "long: CI runs it"]
fn a_long_history_reaches_every_route() {
    // Fewer do not reach every route.
    let comparison = long_history(Network::new(), 80);
    let never: Vec<&String> = comparison.found.iter().filter(|(_, count)| **count == 0).map(|(path, _)| path).collect();
    // No node keeps a log, has webhooks or pays everybody here, and the pages of the description are files.
    let excused =
        |path: &str| ["debug", "webhooks", "/faucet", "/docs", "/about", "/page/"].iter().any(|of| path.contains(of));
    let never: Vec<_> = never.into_iter().filter(|path| !excused(path) && *path != "/api/openapi.json").collect();
    assert!(never.is_empty(), "never answered with anything in it: {never:?}");
}
