//! A delegate that stands by is voted in, and forges from the next round on.
//!
//! cargo run --example vote_swing

use dposlab::{
    check::Simulation,
    scenario::{Action, Deed},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // genesis_6 stands by. Ten accounts have a million coins each, and an active delegate far more; so one of those
    // gives most of its coin to a voter first.
    let pays = Action {
        height: 3,
        by: "genesis_1".to_owned(),
        does: Deed::Transfer,
        to: Some("account_1".to_owned()),
        amount: Some(15_000_000 * 100_000_000),
        ..Action::default()
    };
    let votes = Action {
        height: 5,
        by: "account_1".to_owned(),
        does: Deed::Vote,
        to: Some("genesis_6".to_owned()),
        ..Action::default()
    };

    let mut run = Simulation::builder().delegates(5).standby(1).rounds(5).action(pays).action(votes).build()?;
    run.always("five delegates forge", |network| network.active().len() == 5);
    run.eventually("genesis_6 is active", 4, |network| network.active().contains(&"genesis_6".to_owned()));
    run.eventually("genesis_1 is not", 4, |network| !network.active().contains(&"genesis_1".to_owned()));
    let played = run.play()?;

    println!("swings at a boundary: {}", played.sometimes.of("a vote swing at a boundary"));
    Ok(())
}
