//! Flooding with fixed latencies equals shortest paths, by petgraph's algorithm.

use super::{pairs, scenario};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    scenario::StageKind,
    sim::{Observer, SeedTree},
};
use petgraph::{algo::dijkstra, graph::DiGraph};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// The time at which each node had a transaction first, and the times at which each block was forged and received.
#[derive(Clone, Default)]
struct Arrivals(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    pool: BTreeMap<NodeId, SimTime>,
    forged: BTreeMap<String, (NodeId, SimTime)>,
    received: BTreeMap<(String, NodeId), SimTime>,
}

impl Observer for Arrivals {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut seen = self.0.lock().expect("nobody panics with it");
        match event {
            Event::PoolAdded(_) => drop(seen.pool.entry(node).or_insert(now)),
            Event::BlockForged(block) => drop(seen.forged.insert(block.id.to_string(), (node, now))),
            Event::BlockReceived(block) => {
                seen.received.entry((block.id.to_string(), node)).or_insert(now);
            }
            _ => {}
        }
    }
}

/// Hands one transaction in at a node and compares, to the microsecond, when each other node has it with the shortest
/// path there. A pool passes a transaction on to 20 peers at once, so no node may have more.
fn floods(topology: &str, (seed, origin, height): (u64, u32, u32)) {
    let text = format!(
        "rounds = 4\n[network]\ndelegates = 5\nrelays = 16\ngossip = \"reference\"\n{topology}\n\
         latency = {{ min_ms = 5, max_ms = 100 }}\n[rules]\nminimum_network_reach = false\n\
         [[action]]\nheight = {height}\nnode = {origin}\nby = \"account_1\"\ndoes = \"transfer\"\nto = \"account_2\"\namount = 7\n"
    );
    let (scenario, seeds, seen) = (scenario(&text), SeedTree::new(seed), Arrivals::default());
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(seen.clone())];
    scenario.play(&plan, StageKind::Inline, observers, |_| {}).expect("no actor dies");

    let network = plan.network();
    let nodes = plan.nodes.len() as u32;
    let mut graph = DiGraph::<(), u64>::new();
    let places: Vec<_> = (0..nodes).map(|_| graph.add_node(())).collect();
    for (a, b) in pairs(nodes).filter(|(a, b)| network.links().connects(*a, *b)) {
        graph.add_edge(places[a.0 as usize], places[b.0 as usize], network.delay(a, b).as_micros() as u64);
    }
    let paths = dijkstra(&graph, places[origin as usize], None, |edge| *edge.weight());
    let found = &seen.0.lock().expect("nobody panics with it").pool;
    let began = found[&NodeId(origin)];
    for (place, node) in places.iter().zip((0..).map(NodeId)) {
        let took = found.get(&node).map(|at| at.since(began).as_micros() as u64);
        assert_eq!(took, paths.get(place).copied(), "{topology}, seed {seed}: {node} from {origin}");
    }
    assert_eq!(paths.len(), nodes as usize, "all are connected");
}

#[test]
fn a_transaction_takes_the_shortest_path_to_every_node() {
    let tree: Vec<String> = (1..21).map(|node| format!("[{}, {node}]", (node - 1) / 2)).collect();
    let edges = format!("topology = {{ edges = [{}, [3, 17], [20, 5]] }}", tree.join(", "));
    let topologies = [
        "",
        "topology = \"star\"",
        "topology = { ring = 1 }",
        "topology = { ring = 3 }",
        "topology = { regular = 2 }",
        "topology = { regular = 4 }",
        edges.as_str(),
    ];
    for topology in topologies {
        // A node that a block did not reach stands on genesis still, on which transactions of today are refused: these are
        // runs in which all have left it behind.
        let (first, second) = match topology {
            _ if topology.contains("star") => ((1, 0, 8), (4, 13, 2)),
            _ if topology.contains("edges") => ((2, 13, 2), (5, 13, 2)),
            _ => ((1, 0, 2), (2, 13, 2)),
        };
        floods(topology, first);
        floods(topology, second);
    }
}

/// Sent once, a block takes the one link from its forger to each node.
#[test]
fn a_block_sent_once_arrives_after_the_latency_of_its_link() {
    let text = "rounds = 2\n[network]\ndelegates = 13\ngossip = \"once\"\nlatency = { min_ms = 5, max_ms = 300 }\n";
    let (scenario, seeds, seen) = (scenario(text), SeedTree::new(4), Arrivals::default());
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(seen.clone())];
    scenario.play(&plan, StageKind::Inline, observers, |_| {}).expect("no actor dies");
    let (network, seen) = (plan.network(), seen.0.lock().expect("nobody panics with it"));
    let mut compared = 0;
    for ((id, node), at) in &seen.received {
        let (forger, forged) = seen.forged[id];
        if *node != forger {
            assert_eq!(at.since(forged), network.delay(forger, *node), "{id} from {forger} to {node}");
            compared += 1;
        }
    }
    assert_eq!(compared, 25 * 12, "25 blocks to 12 others each");
}
