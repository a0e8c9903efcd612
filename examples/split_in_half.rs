//! A network split in two halves, each of which goes on forging: do they find together again?
//!
//! cargo run --example split_in_half

use dposlab::{
    check::Simulation,
    sim::{
        Fault, FaultKind, Trigger,
        fault::{NodeRef, Nodes, Partition},
    },
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let half = Nodes::List((0..6).map(NodeRef::Number).collect());
    let split = Fault {
        kind: FaultKind::Partition(Partition { groups: vec![half], ..Partition::default() }),
        from: Trigger::Seconds(100.0),
        until: Some(Trigger::Seconds(400.0)),
    };

    for seed in 1..=3 {
        let mut run = Simulation::builder()
            .delegates(12)
            .rounds(60)
            .seed(seed)
            .rule("gossip", "reference")
            .fault(split.clone())
            .build()?;
        run.eventually("both halves have a chain of their own", 4, |network| !network.is_converged());
        let played = run.play()?;
        let together = played.findings.iter().all(|finding| !finding.invariant.contains("deeper than a round"));
        println!(
            "seed {seed}: height {}, {} rollbacks, none deeper than a round: {together}",
            played.height,
            played.sometimes.of("a rollback"),
        );
    }
    Ok(())
}
