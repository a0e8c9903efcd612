//! The links between nodes.

mod random;

use super::ListOrFile;
use crate::{
    actors::{
        NodeId,
        prefetch::{self, Prefetch},
    },
    sim::SeedTree,
};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    f64::consts::{PI, SQRT_2},
    sync::Arc,
};

/// The links of a network, in both directions. Where a link is missing nothing can pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Everybody with everybody.
    #[default]
    Mesh,
    /// Each node with exactly this number of others, chosen at random from the seed: from 2 to the number of the others, and
    /// even where the number of nodes is odd.
    Regular(u32),
    /// Each node with this number of neighbours on either side: up to half of the nodes.
    Ring(u32),
    /// Everybody with node 0 only.
    Star,
    /// A ring of which some links are rewired, by the model of Watts and Strogatz.
    SmallWorld(SmallWorld),
    /// Nodes that come one after the other, each with this number of links to nodes that are there, rather to those that have many, by
    /// the model of Barabási and Albert.
    ScaleFree(u32),
    /// Nodes at random places of a square of side 1, each with all within this radius.
    Geometric(f64),
    /// Nodes with links to others, chosen at random, of which a share as of this list has one, two and so on, or fewer: a cumulative
    /// distribution, ascending to 1. Each link carries messages in both directions.
    Outgoing(Vec<f64>),
    /// As listed, by the numbers of nodes.
    Edges(#[schemars(with = "ListOrFile<(u32, u32)>")] Vec<(u32, u32)>),
}

/// The parameters of a small world.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SmallWorld {
    /// Neighbours on either side in the ring before: up to half of the nodes.
    pub reach: u32,
    /// The chance of each link to be rewired, from 0 to 1.
    pub rewired: f64,
}

/// Edges, each in both directions.
type Edges = BTreeSet<(u32, u32)>;

/// The largest radius of a geometric graph: the square's diagonal is shorter.
const RADIUS_MAX: f64 = 1.5;

/// A topology that this number of nodes cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}`: found {found}, allowed is {allowed}")]
pub struct TopologyError {
    /// The key within the topology.
    pub part: String,
    pub found: String,
    pub allowed: String,
}

/// The links of a run, in a form for fast lookup. Clones share them.
#[derive(Clone, Debug)]
pub enum Links {
    /// All nodes with all others.
    Mesh(Arc<[NodeId]>),
    /// Some with some.
    Lists(Arc<Lists>),
}

/// The neighbours of each node, ascending. They lie close together in memory, because each message looks them up.
#[derive(Debug)]
pub struct Lists {
    /// The index in `all` at which the neighbours of each node begin. The last entry is the end of the last node's neighbours.
    starts: Vec<u32>,
    all: Vec<NodeId>,
}

impl Topology {
    /// Checks that `nodes` nodes can be connected in this way.
    ///
    /// # Errors
    /// No such graph exists, or the description does not match the graph that it gives.
    pub fn check(&self, nodes: u32) -> Result<(), TopologyError> {
        let refused = |part: &str, found: String, allowed| Err(TopologyError { part: part.to_owned(), found, allowed });
        let unlike_ring = |part, reach| {
            let found = format!("{reach} neighbours on either side of each of {nodes} nodes");
            refused(part, found, format!("1 to {}", reach_max(nodes)))
        };
        match self {
            Self::Regular(degree) if !is_regular(nodes, *degree) => {
                refused("regular", format!("{degree} neighbours for each of {nodes} nodes"), degrees(nodes))
            }
            Self::Ring(reach) if !is_ring(nodes, *reach) => unlike_ring("ring", *reach),
            Self::SmallWorld(SmallWorld { reach, .. }) if !is_ring(nodes, *reach) => {
                unlike_ring("small-world.reach", *reach)
            }
            Self::SmallWorld(SmallWorld { rewired, .. }) if !(0.0..=1.0).contains(rewired) => {
                refused("small-world.rewired", rewired.to_string(), "0 to 1".to_owned())
            }
            Self::ScaleFree(links) if !(1..nodes.max(2)).contains(links) => {
                let found = format!("{links} links of each of {nodes} nodes");
                refused("scale-free", found, format!("1 to {}", nodes.saturating_sub(1).max(1)))
            }
            Self::Geometric(radius) if !(*radius > 0.0 && *radius <= RADIUS_MAX) => {
                refused("geometric", radius.to_string(), format!("above 0, up to {RADIUS_MAX}"))
            }
            Self::Outgoing(shares) => {
                let ascends =
                    shares.windows(2).all(|pair| pair[0] <= pair[1]) && shares.first().is_some_and(|one| *one >= 0.0);
                if !ascends || shares.last() != Some(&1.0) {
                    return refused(
                        "outgoing",
                        format!("{shares:?}"),
                        "numbers of 0 or more, ascending to 1".to_owned(),
                    );
                }
                if shares.len() as u32 >= nodes.max(2) {
                    let found = format!("up to {} links of each of {nodes} nodes", shares.len());
                    return refused("outgoing", found, format!("1 to {}", nodes.saturating_sub(1).max(1)));
                }
                Ok(())
            }
            Self::Edges(edges) => {
                let mut seen = BTreeSet::new();
                for (at, (a, b)) in edges.iter().enumerate() {
                    let part = format!("edges[{at}]");
                    if *a.max(b) >= nodes {
                        let allowed = format!("0 to {}", nodes.saturating_sub(1));
                        return refused(&part, format!("nodes {a} and {b}"), allowed);
                    }
                    if a == b {
                        return refused(&part, format!("node {a} twice"), "two nodes".to_owned());
                    }
                    if !seen.insert((a.min(b), a.max(b))) {
                        return refused(&part, format!("nodes {a} and {b} again"), "each edge once".to_owned());
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The sum of the neighbours of `nodes` nodes: two for each link. An upper estimate if the seed decides.
    pub fn neighbours(&self, nodes: u32) -> u64 {
        let nodes = u64::from(nodes);
        let others = nodes.saturating_sub(1);
        match self {
            Self::Mesh => nodes * others,
            Self::SmallWorld(SmallWorld { reach, .. }) => 2 * others + nodes * others.min(2 * u64::from(*reach)),
            Self::ScaleFree(links) => nodes * others.min(2 * u64::from(*links)),
            Self::Outgoing(shares) => 2 * others + nodes * others.min(2 * shares.len() as u64),
            Self::Geometric(radius) => {
                let share = (PI * radius * radius).min(1.0);
                2 * others + ((nodes * others) as f64 * share) as u64
            }
            Self::Regular(degree) => nodes * u64::from(*degree),
            Self::Ring(reach) => nodes * others.min(2 * u64::from(*reach)),
            Self::Star => 2 * others,
            Self::Edges(edges) => 2 * edges.len() as u64,
        }
    }

    /// The fewest neighbours that one of `nodes` nodes has; `None` where the seed decides.
    pub fn least_degree(&self, nodes: u32) -> Option<u32> {
        let others = nodes.saturating_sub(1);
        match self {
            Self::Mesh => Some(others),
            Self::Regular(degree) => Some(*degree),
            Self::Ring(reach) => Some(others.min(reach.saturating_mul(2))),
            Self::Star => Some(others.min(1)),
            Self::SmallWorld(_) | Self::Outgoing(_) => None,
            Self::ScaleFree(links) => Some(others.min(*links)),
            Self::Geometric(radius) => (*radius > SQRT_2).then_some(others),
            Self::Edges(edges) => {
                let mut degrees = vec![0; nodes as usize];
                edges.iter().flat_map(|(a, b)| [*a, *b]).for_each(|node| degrees[node as usize] += 1);
                degrees.into_iter().min()
            }
        }
    }

    /// Returns true if two of `nodes` nodes are connected, `None` where the seed decides.
    pub fn has_link(&self, nodes: u32, a: u32, b: u32) -> Option<bool> {
        let is_there = match self {
            Self::Mesh => true,
            Self::Regular(degree) if *degree + 1 == nodes => true,
            Self::Regular(_) | Self::SmallWorld(_) | Self::ScaleFree(_) | Self::Geometric(_) | Self::Outgoing(_) => {
                return None;
            }
            Self::Ring(reach) => {
                let apart = a.abs_diff(b);
                apart.min(nodes.saturating_sub(apart)) <= *reach
            }
            Self::Star => a == 0 || b == 0,
            Self::Edges(edges) => edges.contains(&(a, b)) || edges.contains(&(b, a)),
        };
        Some(is_there && a != b && a.max(b) < nodes)
    }

    /// The same topology for `nodes` nodes, or the nearest one that they can have.
    pub fn fitted(self, nodes: u32) -> Self {
        let others = nodes.saturating_sub(1);
        match self {
            Self::Regular(_) if others == 0 => Self::Mesh,
            Self::Regular(degree) => {
                let degree = degree.clamp(others.min(2), others);
                Self::Regular(if is_regular(nodes, degree) { degree } else { degree + 1 })
            }
            Self::Ring(reach) => Self::Ring(reach.clamp(1, reach_max(nodes))),
            Self::SmallWorld(SmallWorld { reach, rewired }) => {
                Self::SmallWorld(SmallWorld { reach: reach.clamp(1, reach_max(nodes)), rewired })
            }
            Self::ScaleFree(links) => Self::ScaleFree(links.clamp(1, others.max(1))),
            Self::Edges(edges) => {
                let mut seen = BTreeSet::new();
                let is_new = |(a, b): &(u32, u32)| *a.max(b) < nodes && a != b && seen.insert((*a.min(b), *a.max(b)));
                Self::Edges(edges.into_iter().filter(is_new).collect())
            }
            Self::Outgoing(_) if others < 2 => Self::Mesh,
            Self::Outgoing(mut shares) => {
                shares.truncate(others as usize);
                shares.last_mut().into_iter().for_each(|last| *last = 1.0);
                Self::Outgoing(shares)
            }
            Self::Mesh | Self::Star | Self::Geometric(_) => self,
        }
    }

    /// The links between `nodes` nodes.
    ///
    /// # Panics
    /// The nodes cannot be connected in this way ([`Topology::check`]).
    pub fn links(&self, nodes: u32, seeds: SeedTree) -> Links {
        if let Err(why) = self.check(nodes) {
            panic!("a topology is checked before it is built: {why}");
        }
        let mut edges = BTreeSet::new();
        let mut connect = |a: u32, b: u32| {
            if a != b && a < nodes && b < nodes {
                edges.insert((a, b));
                edges.insert((b, a));
            }
        };
        match self {
            Self::Mesh => return Links::mesh(nodes),
            Self::Regular(degree) if *degree + 1 == nodes => return Links::mesh(nodes),
            Self::Regular(degree) => edges = regular(nodes, *degree, seeds),
            Self::Ring(reach) => edges = ring(nodes, *reach),
            Self::SmallWorld(world) => edges = random::small_world(nodes, *world, &mut seeds.stream(STREAM)),
            Self::ScaleFree(count) if count + 1 >= nodes => return Links::mesh(nodes),
            Self::ScaleFree(count) => edges = random::scale_free(nodes, *count, &mut seeds.stream(STREAM)),
            // The square's diagonal reaches from each to all.
            Self::Geometric(radius) if *radius > SQRT_2 => return Links::mesh(nodes),
            Self::Geometric(radius) => edges = random::geometric(nodes, *radius, &mut seeds.stream(STREAM)),
            Self::Outgoing(shares) => edges = random::outgoing(nodes, shares, &mut seeds.stream(STREAM)),
            Self::Star => (1..nodes).for_each(|node| connect(0, node)),
            Self::Edges(list) => list.iter().for_each(|(a, b)| connect(*a, *b)),
        }
        Links::Lists(Lists::new(nodes, &edges).into())
    }
}

impl Lists {
    /// Makes the links of edges that exist in both directions.
    fn new(nodes: u32, edges: &Edges) -> Self {
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

impl Prefetch<NodeId> for Links {
    /// The neighbours of a node.
    fn fetch(&self, node: NodeId) {
        if let Self::Lists(lists) = self {
            prefetch::line(&lists.all, lists.starts[node.0 as usize] as usize);
        }
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

    /// The neighbours of a node, ascending. The node itself may be among them, because all nodes of a mesh share one list.
    pub fn given(&self, node: NodeId) -> Arc<[NodeId]> {
        match self {
            Self::Mesh(all) => all.clone(),
            Self::Lists(lists) => lists.of(node).into(),
        }
    }

    /// Returns true if two nodes are connected.
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

/// The name of the draws of a graph.
const STREAM: &str = "network/topology";

/// Returns true if each of `nodes` nodes can have `reach` neighbours on either side.
fn is_ring(nodes: u32, reach: u32) -> bool {
    (1..=reach_max(nodes)).contains(&reach)
}

/// The most neighbours on either side that each of `nodes` nodes can have.
fn reach_max(nodes: u32) -> u32 {
    (nodes / 2).max(1)
}

/// Each node with the `reach` nearest on either side, in the order of their numbers.
fn ring(nodes: u32, reach: u32) -> Edges {
    let pairs = (0..nodes).flat_map(|node| (1..=reach).map(move |step| (node, (node + step) % nodes)));
    // A single node is its own neighbour in no graph.
    pairs.filter(|(a, b)| a != b).flat_map(|(a, b)| [(a, b), (b, a)]).collect()
}

/// Returns true if a connected graph exists in which each of `nodes` nodes has `degree` neighbours. Each edge has two ends, so the
/// product is even.
fn is_regular(nodes: u32, degree: u32) -> bool {
    let connected = degree >= 2 || (degree, nodes) == (1, 2);
    connected && degree < nodes && (nodes.is_multiple_of(2) || degree.is_multiple_of(2))
}

/// The numbers of neighbours that are possible, in words.
fn degrees(nodes: u32) -> String {
    match nodes {
        0 | 1 => "none: a node alone has no neighbours".to_owned(),
        2 => "1".to_owned(),
        3 => "2".to_owned(),
        _ if nodes.is_multiple_of(2) => format!("2 to {}", nodes - 1),
        _ => format!("an even number from 2 to {}, for the number of nodes is odd", nodes - 1),
    }
}

/// A connected random graph without loops or double edges in which each node has `degree` neighbours.
///
/// For two neighbours each, the graph is a circle in random order. From three on, it pairs stubs at random, and an invalid pair trades its
/// ends with an edge. If more than half of all edges are wanted, it draws the absent edges instead. A graph that is not connected is rare
/// and drawn again.
fn regular(nodes: u32, degree: u32, seeds: SeedTree) -> Edges {
    let mut random = seeds.stream(STREAM);
    if degree == 2 {
        return circulant(nodes, degree, &mut random);
    }
    let absent = nodes - 1 - degree;
    for _ in 0..100 {
        let drawn = match degree > absent {
            true => paired(nodes, absent, &mut random).map(|edges| complement(nodes, &edges)),
            false => paired(nodes, degree, &mut random),
        };
        if let Some(edges) = drawn.filter(|edges| is_connected(nodes, edges)) {
            return edges;
        }
    }
    // This happens hardly ever. The circle is less random, but also regular and connected.
    circulant(nodes, degree, &mut random)
}

/// Pairs stubs at random. Returns `None` if an invalid pair finds no edge to trade with.
fn paired(nodes: u32, degree: u32, random: &mut ChaCha8Rng) -> Option<Edges> {
    let mut stubs: Vec<u32> = (0..nodes).flat_map(|node| std::iter::repeat_n(node, degree as usize)).collect();
    stubs.shuffle(random);
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
    mend(&mut edges, &left).then_some(edges)
}

/// All edges except `edges`.
fn complement(nodes: u32, edges: &Edges) -> Edges {
    let all = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
    all.filter(|(a, b)| a != b && !edges.contains(&(*a, *b))).collect()
}

/// The nodes in a circle of random order, each with the nearest on either side, and, where the degree is odd, with the
/// one across.
fn circulant(nodes: u32, degree: u32, random: &mut ChaCha8Rng) -> Edges {
    let mut order: Vec<u32> = (0..nodes).collect();
    order.shuffle(random);
    let across = (degree % 2 == 1).then_some(nodes / 2);
    let steps = (1..=degree / 2).chain(across);
    let pairs = steps.flat_map(|step| (0..nodes).map(move |place| (place, (place + step) % nodes)));
    pairs.map(|(a, b)| (order[a as usize], order[b as usize])).flat_map(|(a, b)| [(a, b), (b, a)]).collect()
}

/// Puts each pair of left-over stubs into the graph by opening an edge: `a-b` and `x-y` become `a-x` and `b-y`.
fn mend(edges: &mut Edges, left: &[u32]) -> bool {
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

fn is_connected(nodes: u32, edges: &Edges) -> bool {
    part_of(edges, 0).len() == nodes as usize
}

/// The nodes that can be reached from one, itself among them.
fn part_of(edges: &Edges, node: u32) -> BTreeSet<u32> {
    let (mut seen, mut open) = (BTreeSet::from([node]), vec![node]);
    while let Some(node) = open.pop() {
        for (_, next) in edges.range((node, 0)..=(node, u32::MAX)) {
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    seen
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
    fn every_possible_degree_is_met_exactly_by_a_connected_simple_graph() {
        let mut drawn = 0;
        for nodes in 2..=60_u32 {
            for degree in 0..=nodes + 1 {
                let topology = Topology::Regular(degree);
                let possible = degree < nodes && nodes * degree % 2 == 0 && (degree > 1 || nodes == 2 && degree == 1);
                assert_eq!(topology.check(nodes).is_ok(), possible, "{degree} of {nodes}");
                if !possible {
                    continue;
                }
                for seed in 0..3 {
                    let links = topology.links(nodes, SeedTree::new(seed));
                    assert_eq!(topology.has_link(nodes, 0, 1), (degree + 1 == nodes).then_some(true));
                    let mut edges = BTreeSet::new();
                    for node in (0..nodes).map(NodeId) {
                        let neighbours = links.of(node);
                        assert_eq!(neighbours.len(), degree as usize, "{node} of {nodes}, seed {seed}");
                        assert!(neighbours.windows(2).all(|pair| pair[0] < pair[1]) && !neighbours.contains(&node));
                        assert!(neighbours.iter().all(|other| links.connects(*other, node)));
                        edges.extend(neighbours.iter().map(|other| (node.0, other.0)));
                    }
                    assert!(is_connected(nodes, &edges), "{degree} of {nodes}, seed {seed}");
                    drawn += 1;
                }
            }
        }
        assert!(drawn > 3_500, "{drawn}");
    }

    #[test]
    fn a_graph_that_cannot_be_is_refused_with_what_can_be() {
        let refused = |topology: Topology, nodes| topology.check(nodes).expect_err("it cannot be").to_string();
        assert_eq!(
            refused(Topology::Regular(3), 13),
            "`regular`: found 3 neighbours for each of 13 nodes, allowed is an even number from 2 to 12, for the number of nodes is odd"
        );
        let many = refused(Topology::Regular(20), 14);
        assert_eq!(many, "`regular`: found 20 neighbours for each of 14 nodes, allowed is 2 to 13");
        assert!(refused(Topology::Regular(1), 1).ends_with("a node alone has no neighbours"));
        let ring = refused(Topology::Ring(7), 13);
        assert_eq!(ring, "`ring`: found 7 neighbours on either side of each of 13 nodes, allowed is 1 to 6");
        let edge = refused(Topology::Edges(vec![(0, 1), (3, 1)]), 3);
        assert_eq!(edge, "`edges[1]`: found nodes 3 and 1, allowed is 0 to 2");
        let again = refused(Topology::Edges(vec![(0, 1), (1, 2), (1, 0)]), 3);
        assert_eq!(again, "`edges[2]`: found nodes 1 and 0 again, allowed is each edge once");
        let itself = refused(Topology::Edges(vec![(0, 1), (1, 1)]), 3);
        assert_eq!(itself, "`edges[1]`: found node 1 twice, allowed is two nodes");
        assert_eq!(Topology::Mesh.check(1), Ok(()));
        for nodes in 1..=60 {
            for wanted in 0..=70 {
                for topology in [
                    Topology::Regular(wanted),
                    Topology::Ring(wanted),
                    Topology::SmallWorld(SmallWorld { reach: wanted, rewired: 1.0 }),
                    Topology::ScaleFree(wanted),
                    Topology::Geometric(0.1),
                    Topology::Edges(vec![(0, wanted)]),
                ] {
                    let fitted = topology.clone().fitted(nodes);
                    assert_eq!(fitted.check(nodes), Ok(()), "{topology:?} of {nodes}");
                    if nodes <= 6 {
                        let links = fitted.links(nodes, SeedTree::new(7));
                        assert!(
                            fitted.least_degree(nodes).is_none_or(|least| least == links.least_degree()),
                            "{fitted:?}"
                        );
                        assert!((0..nodes).all(|node| !links.of(NodeId(node)).contains(&NodeId(node))));
                        assert!(links.least_degree() < nodes, "{fitted:?} of {nodes}");
                    }
                }
            }
        }
        assert_eq!(Topology::Regular(3).fitted(13), Topology::Regular(4));
        assert_eq!(Topology::Regular(3).fitted(14), Topology::Regular(3));
    }

    #[test]
    fn the_circle_drawn_where_chance_fails_is_regular_too() {
        for (nodes, degree) in [(5, 2), (10, 3), (12, 5), (13, 6), (60, 59)] {
            let edges = circulant(nodes, degree, &mut SeedTree::new(1).stream("circle"));
            let lists = Lists::new(nodes, &edges);
            assert!((0..nodes).all(|node| lists.of(NodeId(node)).len() == degree as usize), "{degree} of {nodes}");
            assert!(is_connected(nodes, &edges));
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

    #[test]
    fn a_link_is_there_if_it_is_among_all_of_them() {
        let edges = Topology::Edges(vec![(0, 1), (2, 1), (0, 3)]);
        let rings = (1..=4).map(Topology::Ring);
        for topology in rings.chain([Topology::Mesh, Topology::Star, edges]) {
            for nodes in [8, 9] {
                let links = topology.links(nodes, SeedTree::new(1));
                for (a, b) in (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b))).filter(|(a, b)| a != b) {
                    let is_there = links.connects(NodeId(a), NodeId(b));
                    assert_eq!(topology.has_link(nodes, a, b), Some(is_there), "{topology:?} of {nodes}: {a}, {b}");
                }
            }
        }
    }
}
