//! Laws that hold whatever happens to a network: its events tell its chains, and after a heal it finds together again. Source:
//! consensus.md 7.1 I9, 7.1 I14, 7.2.

use super::cluster::{Cluster, Setup, rules};
use dposlab::{
    actors::{Event, Message},
    ledger::{Link, Rules},
};
use proptest::prelude::*;
use std::sync::Arc;

/// Something that happens to a network of fifteen.
#[derive(Clone, Debug)]
enum Trouble {
    /// These nodes, from one on, are cut off for so many seconds.
    Cut {
        from: u32,
        count: u32,
        seconds: u64,
    },
    /// A node is gone for so many seconds and starts again on the chain it has stored.
    Crash {
        node: u32,
        seconds: u64,
    },
    /// A node hears of another block in the running slot before all others do.
    Fool {
        node: u32,
    },
    Calm {
        seconds: u64,
    },
}

const NODES: u32 = 15;

fn trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        3 => (0..NODES, 1..5_u32, 30..900_u64).prop_map(|(from, count, seconds)| Trouble::Cut { from, count, seconds }),
        2 => (0..NODES, 10..600_u64).prop_map(|(node, seconds)| Trouble::Crash { node, seconds }),
        2 => (0..NODES).prop_map(|node| Trouble::Fool { node }),
        1 => (10..200_u64).prop_map(|seconds| Trouble::Calm { seconds }),
    ]
}

fn befall(cluster: &mut Cluster, trouble: &Trouble) {
    match *trouble {
        Trouble::Cut { from, count, seconds } => {
            cluster.cut(|node| u32::from((node + NODES - from) % NODES < count));
            cluster.run_for(seconds);
            cluster.heal();
        }
        Trouble::Crash { node, seconds } => {
            cluster.crash(node);
            cluster.run_for(seconds);
            cluster.restart(node);
        }
        Trouble::Fool { node } => {
            let (tip, slot) = (cluster.tip(node).clone(), cluster.slot());
            if cluster.tree.slots().slot(tip.block().header.timestamp) < slot {
                let transfer = Arc::new(cluster.transfer(0, 1).remove(0));
                let block = cluster.block(&tip, slot, vec![transfer]);
                cluster.say((node + 1) % NODES, node, Message::Block(block));
            }
            cluster.run_for(8);
        }
        Trouble::Calm { seconds } => cluster.run_for(seconds),
    }
}

/// Follows a node's events, which begin anew where it starts again, and ends where its chain does.
fn check_events(cluster: &Cluster, node: u32) -> Result<(), TestCaseError> {
    let mut at: Option<Arc<Link>> = None;
    for event in cluster.events(node) {
        match event {
            Event::BlockApplied(link) => {
                let parent = link.parent().expect("genesis is never applied");
                let begins = at.as_ref().is_none_or(|at| at.descends_from(&parent));
                prop_assert!(begins, "node {node} applied {link:?} on top of {at:?}");
                at = Some(link.clone());
            }
            Event::BlockReverted(link) => {
                prop_assert_eq!(at.as_ref().map(|at| at.id()), Some(link.id()), "node {} reverts its tip", node);
                at = link.parent();
            }
            Event::RolledBack { from, to, .. } => {
                prop_assert_eq!(at.as_ref().map(|at| at.id()), Some(to.id()));
                prop_assert!(from.descends_from(to) && from.height() > to.height());
            }
            _ => {}
        }
    }
    if let Some(at) = at {
        prop_assert!(at.descends_from(cluster.tip(node)), "node {node} stands where its events say");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 40, ..ProptestConfig::default() })]

    /// No side is ever more than four of fifteen, so the others have their quorum, and the network has one chain in the
    /// end.
    #[test]
    fn a_corrected_network_finds_together_again(
        seed in 0..1_000_u64,
        troubles in prop::collection::vec(trouble(), 1..5),
    ) {
        let mut cluster = Setup { delegates: NODES, rules: rules(Rules::corrected()), seed, ..Setup::default() }.build();
        cluster.run_for(100);
        for trouble in &troubles {
            befall(&mut cluster, trouble);
        }
        let mut hours = 0;
        cluster.run_for(3_600);
        while !cluster.on_one_chain(cluster.numbers()) && hours < 12 {
            cluster.run_for(3_600);
            hours += 1;
        }
        let heights: Vec<u32> = cluster.numbers().map(|node| cluster.height(node)).collect();
        prop_assert!(cluster.on_one_chain(cluster.numbers()), "{heights:?} after {hours} hours");
        let before = heights.iter().max().copied().unwrap_or_default();
        cluster.run_for(1_200);
        prop_assert!(cluster.numbers().all(|node| cluster.height(node) > before + 50), "and it goes on");
        for node in cluster.numbers() {
            check_events(&cluster, node)?;
        }
    }
}
