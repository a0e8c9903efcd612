//! A simulation from code: one delegate of five is offline for a round, and the slots it owned stay empty.
//!
//! `cargo run --example simulate`

use dposlab::{
    check::check_all,
    report::Rounds,
    scenario::{Scenario, StageKind},
    sim::SeedTree,
};
use std::{error::Error, path::Path};

const SCENARIO: &str = r#"
version = 1
rounds = 4
[network]
delegates = 5
[[fault]]
kind = "offline"
delegates = ["genesis_3"]
rounds = 2
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let scenario = Scenario::parse(SCENARIO, Path::new("the text above"))?;
    let seeds = SeedTree::new(7);
    let testnet = scenario.testnet(seeds);
    let plan = scenario.plan(&testnet, seeds);
    let rounds = Rounds::new(&plan);
    let observers: Vec<Box<dyn dposlab::sim::Observer>> = vec![Box::new(rounds.clone())];
    let outcome = scenario.play(&plan, StageKind::Inline, observers, |_| {})?;
    for round in rounds.rounds() {
        println!("round {}: {} blocks, {} slots missed", round.round, round.blocks, round.missed_slots);
    }
    let tip = rounds.tip();
    check_all(&plan.tree, &tip)?;
    println!("all invariants hold at height {}, digest {}", tip.height(), outcome.digest);
    Ok(())
}
