//! The effect of a delegate that is switched off on a round: its slots stay empty, everybody else goes on.
//!
//! cargo run --example missed_slot

use dposlab::{
    check::Simulation,
    sim::{
        Fault, FaultKind, Trigger,
        fault::{NodeRef, Nodes, Offline},
    },
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let delegates = Nodes::List(vec![NodeRef::Delegate("genesis_3".to_owned())]);
    let offline = Fault {
        kind: FaultKind::Offline(Offline { delegates, rounds: None }),
        from: Trigger::Round(2),
        until: Some(Trigger::Round(3)),
    };

    let mut run = Simulation::builder().delegates(7).rounds(4).fault(offline).build()?;
    run.always("no node falls two blocks behind", |network| network.lowest().0 + 2 >= network.height().0);
    run.eventually("the fourth round begins", 5, |network| network.round().0 == 4);
    let played = run.play()?;

    println!("height {} after {} slots", played.height, played.slots);
    println!("slots missed: {}", u64::from(played.slots + 1) - u64::from(played.height.0));
    Ok(())
}
