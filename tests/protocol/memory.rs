//! The estimate of a run's memory equals what the run takes, within a factor. Beside the protocol, for here every byte is
//! counted.

use crate::allocations::{bytes_now, most_bytes};
use dposlab::{
    actors::SimTime,
    ledger::{
        BlockTree, Link,
        settled::{Settled, SettledError},
    },
    protocol::{BlockId, Height, TransactionId},
    report::Metrics,
    scenario::{
        Scenario, StageKind,
        memory::{Need, PROCESS},
    },
    sim::{Observer, SeedTree, stage::inline::InlineStage},
};
use proptest::{
    prelude::*,
    strategy::{Just, Strategy, ValueTree},
    test_runner::TestRunner,
};
use std::{path::Path, sync::Arc};

/// A run takes at most so many times the sum. Where blocks get through, the sum is at most so many times what it takes.
const FACTOR: u64 = 2;
/// Bytes that make no difference beside what a process has anyway.
const SLACK: u64 = 4 << 20;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(&format!("version = 1\ncrypto = \"modelled\"\n{text}"), Path::new("s.toml")).expect("a scenario")
}

/// Bytes of a run of this scenario as `run` plays it, at most at a time.
fn taken(scenario: &Scenario) -> u64 {
    let most = most_bytes(|| {
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let metrics = Metrics::new(&plan);
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(metrics.clone())];
        let outcome = scenario.play(&plan, StageKind::Inline, observers, |_| {}).expect("no actor dies");
        (plan, metrics.finish(outcome.end))
    });
    u64::try_from(most).expect("a run takes memory")
}

#[track_caller]
fn holds(text: &str) {
    let (need, said, taken) = enough(text);
    assert!(said <= FACTOR * taken + SLACK, "said {need}, took {taken} bytes beside the process:\n{text}");
}

/// If something goes wrong, the sum is of all that could wait and be under way: less may be taken, but not more.
#[track_caller]
fn enough(text: &str) -> (Need, u64, u64) {
    let scenario = scenario(text);
    let need = scenario.memory();
    let (said, taken) = (need.bytes() - PROCESS, taken(&scenario));
    println!("{said:>10} {taken:>10} {:>5.2}  {}", said as f64 / taken as f64, text.replace('\n', "; "));
    assert!(taken <= FACTOR * said + SLACK, "said {need}, took {taken} bytes beside the process:\n{text}");
    (need, said, taken)
}

/// A network, with clients or without, with what goes wrong on it.
#[track_caller]
fn drawn_holds((network, clients, wrong): (Net, String, String)) {
    // A message that nobody repeats does not get far where not all are connected: there clients may never be funded.
    let gets_through = wrong.is_empty() && (clients.is_empty() || network.gets_through);
    let text = network.text + &clients + &wrong;
    if gets_through {
        holds(&text);
    } else {
        enough(&text);
    }
}

/// A network's part of a scenario.
#[derive(Clone, Debug)]
struct Net {
    text: String,
    /// Each node gets each block, where nothing goes wrong.
    gets_through: bool,
}

/// A network: most sizes at which a second or two is enough.
fn network(relays: u32) -> impl Strategy<Value = Net> {
    let topology = prop_oneof![
        3 => Just(String::new()),
        1 => (2..=4_u32).prop_map(|half| format!("topology = {{ regular = {} }}\n", 2 * half)),
        1 => (2..=4_u32).prop_map(|each| format!("topology = {{ ring = {each} }}\n")),
        1 => Just("topology = \"star\"\n".to_owned()),
    ];
    let gossip = prop_oneof![Just("once"), Just("reference")];
    (4..=30_u32, relays / 4..=relays, gossip, topology, 1..=40_u32).prop_map(|(delegates, relays, gossip, topology, blocks)| {
        let rounds = 1 + blocks / delegates;
        let text = format!(
            "rounds = {rounds}\n[network]\ndelegates = {delegates}\nrelays = {relays}\ngossip = \"{gossip}\"\n{topology}"
        );
        Net { text, gets_through: gossip == "reference" || topology.is_empty() }
    })
}

/// Clients: few to many transactions in a second, from few wallets or many, into large pools or small ones.
fn clients() -> impl Strategy<Value = String> {
    let rate = prop_oneof![1..=10_u32, 10..=40_u32];
    let generate = (rate.clone(), prop_oneof![1..=20_u32, 100..=300_u32]);
    let generate = generate.prop_map(|(rate, wallets)| {
        format!("[[workload]]\nkind = \"generate\"\nper_second = {rate}\nwallets = {wallets}\n")
    });
    let kind = prop_oneof![Just("spam-pool"), Just("low-fee-flood")];
    let flood = (kind, rate, 10..=300_u32).prop_map(|(kind, rate, after)| {
        format!(
            "[[fault]]\nkind = \"{kind}\"\nper_second = {rate}\nfrom = {{ seconds = 20 }}\nuntil = {{ after = {after} }}\n"
        )
    });
    let room = prop_oneof![2 => Just(String::new()), 1 => (10..=2_000_u32).prop_map(|most| format!("[rules.pool]\nmax_transactions = {most}\n"))];
    (room, prop_oneof![2 => generate, 1 => flood]).prop_map(|(room, clients)| room + &clients)
}

/// Faults beside: none, a network in two parts, or delegates that are down.
fn wrong() -> impl Strategy<Value = String> {
    let partition = (2..=5_u32, 60..=300_u32).prop_map(|(tenths, after)| {
        format!(
            "[[fault]]\nkind = \"partition\"\nshare = {{ share = 0.{tenths} }}\nfrom = {{ seconds = 30 }}\nuntil = {{ after = {after} }}\n"
        )
    });
    let crash = (0..=3_u32, 60..=300_u32).prop_map(|(last, after)| {
        format!(
            "[[fault]]\nkind = \"crash\"\nnodes = {{ from = \"genesis_1\", to = \"genesis_{}\" }}\nfrom = {{ seconds = 30 }}\nuntil = {{ after = {after} }}\n", last + 1
        )
    });
    prop_oneof![2 => Just(String::new()), 1 => partition, 1 => crash]
}

/// So many of a kind, the same ones each time.
fn drawn<T: std::fmt::Debug>(shapes: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| shapes.new_tree(&mut runner).expect("a value").current()).collect()
}

/// Shapes that are drawn, without clients.
#[test]
fn a_run_takes_what_it_is_said_to_need() {
    drawn((network(400), Just(String::new()), wrong()), 6).into_iter().for_each(drawn_holds);
}

/// The same with clients: pools with few and with many pending transactions.
#[test]
fn pools_take_what_they_are_said_to_need() {
    drawn((network(40), clients(), wrong()), 12).into_iter().for_each(drawn_holds);
}

/// Each part where it is nearly all.
#[test]
fn each_part_of_the_sum_is_what_such_a_part_takes() {
    holds("rounds = 1\n[network]\ndelegates = 5\nrelays = 1800\n");
    holds("rounds = 1\n[network]\ndelegates = 11\nrelays = 500\ngossip = \"reference\"\n");
    holds("rounds = 1\n[network]\ndelegates = 11\nrelays = 201\ntopology = { regular = 16 }\n");
    holds("rounds = 1\n[network]\ndelegates = 11\nrelays = 3000\ngossip = \"reference\"\ntopology = { regular = 4 }\n");
    holds("rounds = 800\n[network]\ndelegates = 5\n");
    holds("rounds = 20\n[network]\ndelegates = 5\nrelays = 5\n[[workload]]\nkind = \"generate\"\nper_second = 6\n");
    holds(
        "rounds = 10\n[network]\ndelegates = 5\nrelays = 40\n[[workload]]\nkind = \"generate\"\nper_second = 30\nwallets = 100\n",
    );
    assert_eq!(Need::default().parts().iter().map(|(_, _, bytes)| bytes).sum::<u64>(), 0, "nothing takes nothing");
}

/// Has settled blocks, and nobody asks for them.
struct Elsewhere;

impl Settled for Elsewhere {
    fn top(&self) -> Height {
        Height(u32::MAX)
    }

    fn link(&self, height: Height) -> Result<Option<Arc<Link>>, SettledError> {
        panic!("the block at {height} is asked for")
    }

    fn height_of(&self, _: &BlockId) -> Result<Option<Height>, SettledError> {
        Ok(None)
    }

    fn spot_of(&self, _: &TransactionId) -> Result<Option<(Height, u32)>, SettledError> {
        Ok(None)
    }
}

/// Bytes that a block costs in a run whose blocks settle, or do not.
fn bytes_of_a_block(settles: bool) -> f64 {
    let scenario = scenario("rounds = 1\n[network]\ndelegates = 5\n");
    let seeds = SeedTree::new(1);
    let testnet = scenario.testnet(seeds);
    let usual = scenario.plan(&testnet, seeds);
    let (config, rules) = (usual.tree.config().clone(), usual.tree.rules().clone());
    let tree = Arc::new(BlockTree::with_span(config, rules, 50).expect("as the usual one"));
    let first = usual.tree.slots().slot(usual.start.seconds());
    let plan = scenario.plan_on(&testnet, tree.clone(), tree.genesis().clone(), first, seeds);
    let mut stage = InlineStage::new(&plan, Vec::new());
    let settled: Arc<dyn Settled> = Arc::new(Elsewhere);
    let mut play = |height: u32| {
        while stage.world().tips().winning().height().0 < height {
            for _ in 0..500 {
                stage.step(SimTime::from_micros(u64::MAX));
            }
            if settles && let Some(top) = tree.settles_at(stage.world().tips().all(), 500) {
                tree.settle(&top, &settled);
            }
        }
        bytes_now()
    };
    let (early, late) = (play(5_000), play(15_000));
    (late - early) as f64 / 10_000.0
}

/// The links, the states of seams, the places in tables: all of it goes.
#[test]
fn a_block_that_has_settled_takes_no_memory() {
    let (settled, kept) = (bytes_of_a_block(true), bytes_of_a_block(false));
    println!("{settled:.1} bytes a block that settles, {kept:.1} a block that does not");
    assert!(kept > 400.0, "or nothing was measured: {kept}");
    assert!(settled.abs() < 8.0, "{settled} bytes a block");
}
