//! Who is connected to whom.

use crate::{actors::NodeId, sim::SeedTree};
use prefetch_index::prefetch_index;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, sync::Arc};

/// The links of a network, in both directions. Where a link is missing nothing can pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Everybody with everybody.
    #[default]
    Mesh,
    /// Everybody with so many others, chosen at random from the seed.
    Regular(u32),
    /// Everybody with so many neighbours on either side.
    Ring(u32),
    /// Everybody with node 0 only.
    Star,
    /// As listed, by the numbers of nodes.
    Edges(Vec<(u32, u32)>),
}

/// The links of a run, ready to be asked; clones share them.
#[derive(Clone, Debug)]
pub enum Links {
    /// All nodes with all others.
    Mesh(Arc<[NodeId]>),
    /// Some with some.
    Lists(Arc<Lists>),
}

/// The neighbours of each node, ascending. They lie close together, for each message is held against them.
#[derive(Debug)]
pub struct Lists {
    /// Where in `all` the neighbours of a node begin; at last, where those of the last one end.
    starts: Vec<u32>,
    all: Vec<NodeId>,
}

impl Topology {
    /// The links between so many nodes.
    pub fn links(&self, nodes: u32, seeds: SeedTree) -> Links {
        let mut edges = BTreeSet::new();
        let mut connect = |a: u32, b: u32| {
            if a != b && a < nodes && b < nodes {
                edges.insert((a, b));
                edges.insert((b, a));
            }
        };
        match self {
            Self::Mesh => return Links::mesh(nodes),
            Self::Regular(degree) if *degree + 1 >= nodes => return Links::mesh(nodes),
            Self::Regular(degree) => edges = regular(nodes, *degree, seeds),
            Self::Ring(reach) => {
                for node in 0..nodes {
                    (1..=(*reach).min(nodes)).for_each(|step| connect(node, (node + step) % nodes));
                }
            }
            Self::Star => (1..nodes).for_each(|node| connect(0, node)),
            Self::Edges(list) => list.iter().for_each(|(a, b)| connect(*a, *b)),
        }
        Links::Lists(Lists::new(nodes, &edges).into())
    }
}

impl Lists {
    /// Of edges that are there in both directions.
    fn new(nodes: u32, edges: &BTreeSet<(u32, u32)>) -> Self {
        let mut starts = vec![0; nodes as usize + 1];
        edges.iter().for_each(|(from, _)| starts[*from as usize + 1] += 1);
        (1..starts.len()).for_each(|node| starts[node] += starts[node - 1]);
        Self { starts, all: edges.iter().map(|(_, to)| NodeId(*to)).collect() }
    }

    fn of(&self, node: NodeId) -> &[NodeId] {
        let node = node.0 as usize;
        &self.all[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

impl Links {
    fn mesh(nodes: u32) -> Self {
        Self::Mesh((0..nodes).map(NodeId).collect())
    }

    /// The neighbours of a node, ascending.
    pub fn of(&self, node: NodeId) -> Vec<NodeId> {
        self.given(node).iter().copied().filter(|other| *other != node).collect()
    }

    /// The neighbours of a node, ascending, itself perhaps among them: one list is shared where all are connected.
    pub fn given(&self, node: NodeId) -> Arc<[NodeId]> {
        match self {
            Self::Mesh(all) => all.clone(),
            Self::Lists(lists) => lists.of(node).into(),
        }
    }

    /// Has the processor fetch the neighbours of a node.
    pub fn prefetch(&self, node: NodeId) {
        if let Self::Lists(lists) = self {
            prefetch_index(&lists.all, lists.starts[node.0 as usize] as usize);
        }
    }

    /// Whether two nodes are connected.
    #[inline]
    pub fn connects(&self, a: NodeId, b: NodeId) -> bool {
        match self {
            Self::Mesh(_) => true,
            Self::Lists(lists) => lists.of(a).binary_search(&b).is_ok(),
        }
    }

    /// The fewest neighbours any node has.
    pub fn least_degree(&self) -> u32 {
        match self {
            Self::Mesh(all) => (all.len() as u32).saturating_sub(1),
            Self::Lists(lists) => lists.starts.windows(2).map(|ends| ends[1] - ends[0]).min().unwrap_or(0),
        }
    }
}

/// A connected random graph in which each node has `degree` neighbours, or, where their product is odd, one has one
/// fewer: stubs are paired at random, and a pair that may not be trades its end with another pair.
fn regular(nodes: u32, degree: u32, seeds: SeedTree) -> BTreeSet<(u32, u32)> {
    let mut random = seeds.stream("network/topology");
    for _ in 0..100 {
        let mut stubs: Vec<u32> = (0..nodes).flat_map(|node| std::iter::repeat_n(node, degree as usize)).collect();
        stubs.shuffle(&mut random);
        let mut edges = BTreeSet::new();
        let mut left: Vec<u32> = Vec::new();
        for pair in stubs.chunks_exact(2) {
            let (a, b) = (pair[0], pair[1]);
            if a == b || edges.contains(&(a, b)) {
                left.extend([a, b]);
            } else {
                edges.extend([(a, b), (b, a)]);
            }
        }
        if mend(&mut edges, &left) && is_connected(nodes, &edges) {
            return edges;
        }
    }
    // A degree of 1 gives pairs and no network; anything from 3 on is connected at the first or second try.
    (0..nodes).flat_map(|node| [(node, (node + 1) % nodes), ((node + 1) % nodes, node)]).collect()
}

/// Puts each pair of left-over stubs into the graph by opening an edge: `a-b` and `x-y` become `a-x` and `b-y`.
fn mend(edges: &mut BTreeSet<(u32, u32)>, left: &[u32]) -> bool {
    left.chunks_exact(2).all(|pair| {
        let (a, b) = (pair[0], pair[1]);
        let free = |(x, y): &(u32, u32)| {
            ![a, b].contains(x) && ![a, b].contains(y) && !edges.contains(&(a, *x)) && !edges.contains(&(b, *y))
        };
        let Some((x, y)) = edges.iter().copied().find(free) else { return false };
        edges.remove(&(x, y));
        edges.remove(&(y, x));
        edges.extend([(a, x), (x, a), (b, y), (y, b)]);
        true
    })
}

fn is_connected(nodes: u32, edges: &BTreeSet<(u32, u32)>) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([0]), vec![0]);
    while let Some(node) = open.pop() {
        for (_, next) in edges.range((node, 0)..=(node, u32::MAX)) {
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    seen.len() == nodes as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_regular_graph_is_regular_connected_and_the_seed_s() {
        for (nodes, degree) in [(10, 3), (51, 8), (1_000, 8), (64, 5)] {
            let links = Topology::Regular(degree).links(nodes, SeedTree::new(7));
            for node in (0..nodes).map(NodeId) {
                let neighbours = links.of(node);
                assert_eq!(neighbours.len(), degree as usize, "{node} of {nodes}");
                assert!(neighbours.is_sorted() && !neighbours.contains(&node));
                assert!(neighbours.iter().all(|other| links.connects(*other, node)), "links go both ways");
            }
            let again = Topology::Regular(degree).links(nodes, SeedTree::new(7));
            let other = Topology::Regular(degree).links(nodes, SeedTree::new(8));
            assert_eq!(links.of(NodeId(0)), again.of(NodeId(0)));
            assert!((0..nodes).any(|node| links.of(NodeId(node)) != other.of(NodeId(node))));
        }
    }

    #[test]
    fn star_ring_and_edges_connect_whom_they_say() {
        let seeds = SeedTree::new(1);
        let star = Topology::Star.links(5, seeds);
        assert_eq!((star.of(NodeId(0)).len(), star.of(NodeId(3))), (4, vec![NodeId(0)]));
        assert_eq!(star.least_degree(), 1);
        let ring = Topology::Ring(2).links(6, seeds);
        assert_eq!(ring.of(NodeId(0)), [1, 2, 4, 5].map(NodeId));
        let edges = Topology::Edges(vec![(0, 1), (1, 2)]).links(3, seeds);
        assert!(edges.connects(NodeId(1), NodeId(0)) && !edges.connects(NodeId(0), NodeId(2)));
        assert!(Topology::Mesh.links(3, seeds).connects(NodeId(0), NodeId(2)));
    }
}
