//! Blocks that have settled take no memory. Beside the protocol, for here every byte is counted.

use super::allocations::bytes_now;
use dposlab::{
    actors::SimTime,
    ledger::{
        BlockTree, Link,
        settled_chain::{SettledChain, SettledError},
    },
    protocol::{BlockId, Height, TransactionId},
    scenario::Scenario,
    sim::{SeedTree, stage::inline::InlineStage},
};
use std::{path::Path, sync::Arc};

/// Has settled blocks, and nobody asks for them.
struct Elsewhere;

impl SettledChain for Elsewhere {
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
    let scenario = Scenario::parse(
        "version = 1\nrounds = 1\ncrypto = \"modelled\"\n[network]\ndelegates = 5\n",
        Path::new("s.toml"),
    );
    let scenario = scenario.expect("a scenario");
    let seeds = SeedTree::new(1);
    let testnet = scenario.testnet(seeds);
    let usual = scenario.plan(&testnet, seeds);
    let (config, rules) = (usual.tree.config().clone(), usual.tree.rules().clone());
    let tree = Arc::new(BlockTree::with_span(config, rules, 50).expect("as the usual one"));
    let first = usual.tree.slots().slot(usual.start.seconds());
    let plan = scenario.plan_on(&testnet, tree.clone(), tree.genesis().clone(), first, seeds);
    let mut stage = InlineStage::new(&plan, Vec::new());
    let settled: Arc<dyn SettledChain> = Arc::new(Elsewhere);
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
