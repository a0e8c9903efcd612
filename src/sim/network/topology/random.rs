//! Random graphs of four models of the literature. A graph that falls apart is joined: the lowest node of each further part gets one link
//! to a node of those before, chosen at random.

use super::{Edges, SmallWorld, ring};
use rand::{
    Rng,
    seq::{IndexedRandom, SliceRandom},
};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

/// A ring in which each link is rewired with a chance. Source: D. J. Watts and S. H. Strogatz, Collective dynamics of
/// "small-world" networks (1998).
pub(super) fn small_world(nodes: u32, world: SmallWorld, random: &mut ChaCha8Rng) -> Edges {
    let SmallWorld { reach, rewired } = world;
    let mut edges = ring(nodes, reach);
    for step in 1..=reach {
        for node in 0..nodes {
            let other = (node + step) % nodes;
            let is_full = |edges: &Edges| edges.range((node, 0)..=(node, u32::MAX)).count() + 1 == nodes as usize;
            if !random.random_bool(rewired) || !edges.contains(&(node, other)) || is_full(&edges) {
                continue;
            }
            let mut to = node;
            while to == node || edges.contains(&(node, to)) {
                to = random.random_range(0..nodes);
            }
            unlink(&mut edges, node, other);
            link(&mut edges, node, to);
        }
    }
    joined(nodes, edges, random)
}

/// A graph that grows: each node that comes links to `links` others, chosen with chances proportional to their numbers of neighbours.
/// The first `links + 1` nodes are all linked. Source: A.-L. Barabási and R. Albert, Emergence of scaling in random networks (1999).
pub(super) fn scale_free(nodes: u32, links: u32, random: &mut ChaCha8Rng) -> Edges {
    let mut edges = Edges::new();
    // Each node, once for each of its links.
    let mut ends: Vec<u32> = Vec::new();
    for node in 1..nodes {
        let mut chosen = BTreeSet::new();
        if node <= links {
            chosen.extend(0..node);
        }
        while chosen.len() < links.min(node) as usize {
            chosen.insert(ends[random.random_range(0..ends.len())]);
        }
        for to in chosen {
            link(&mut edges, node, to);
            ends.extend([node, to]);
        }
    }
    edges
}

/// Nodes anywhere in a square of side 1, each linked with those within a radius. Source: E. N. Gilbert, Random plane networks (1961).
pub(super) fn geometric(nodes: u32, radius: f64, random: &mut ChaCha8Rng) -> Edges {
    let places: Vec<(f64, f64)> = (0..nodes).map(|_| (random.random(), random.random())).collect();
    let mut from_left: Vec<u32> = (0..nodes).collect();
    from_left.sort_by(|a, b| places[*a as usize].0.total_cmp(&places[*b as usize].0));
    // Bands at least as high as the radius, each from left to right: the neighbours of a node are in its own band and in those beside it.
    let height = radius.max(1.0 / f64::from(nodes).sqrt());
    let band = |node: u32| (places[node as usize].1 / height) as usize;
    let mut bands = vec![Vec::new(); (1.0 / height) as usize + 1];
    from_left.iter().for_each(|node| bands[band(*node)].push(*node));
    let mut edges = Edges::new();
    for a in &from_left {
        let (x, y) = places[*a as usize];
        let near = band(*a).saturating_sub(1)..(band(*a) + 2).min(bands.len());
        for of_band in &bands[near] {
            let from = of_band.partition_point(|b| places[*b as usize].0 < x);
            for b in &of_band[from..] {
                let (right, up) = (places[*b as usize].0 - x, places[*b as usize].1 - y);
                if right > radius {
                    break;
                }
                if a != b && right * right + up * up <= radius * radius {
                    link(&mut edges, *a, *b);
                }
            }
        }
    }
    joined(nodes, edges, random)
}

/// Nodes that each choose others at random to link to, in the order of their numbers. The numbers of links come from a cumulative
/// distribution and are dealt out at random. A node does not choose one that it has a link to. Source: SimBlock (docs/validation.md).
pub(super) fn outgoing(nodes: u32, shares: &[f64], random: &mut ChaCha8Rng) -> Edges {
    let links = |node: u32| 1 + shares.iter().take_while(|share| f64::from(nodes) * **share < f64::from(node)).count();
    let mut counts: Vec<usize> = (0..nodes).map(links).collect();
    counts.shuffle(random);
    let mut edges = Edges::new();
    let mut others: Vec<u32> = (0..nodes).collect();
    for (node, count) in (0..nodes).zip(counts) {
        others.shuffle(random);
        let free = others.iter().filter(|other| **other != node && !edges.contains(&(node, **other)));
        let chosen: Vec<u32> = free.take(count).copied().collect();
        chosen.into_iter().for_each(|other| link(&mut edges, node, other));
    }
    joined(nodes, edges, random)
}

fn link(edges: &mut Edges, a: u32, b: u32) {
    edges.extend([(a, b), (b, a)]);
}

fn unlink(edges: &mut Edges, a: u32, b: u32) {
    edges.remove(&(a, b));
    edges.remove(&(b, a));
}

/// The graph with a link from each further part to those before.
fn joined(nodes: u32, mut edges: Edges, random: &mut ChaCha8Rng) -> Edges {
    let mut reached = super::part_of(&edges, 0);
    for node in 0..nodes {
        if !reached.contains(&node) {
            let before: Vec<u32> = reached.iter().copied().collect();
            reached.extend(super::part_of(&edges, node));
            link(&mut edges, node, *before.choose(random).expect("node 0 is in the first part"));
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn random() -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(7)
    }

    fn others(edges: &Edges, node: u32) -> Vec<u32> {
        edges.range((node, 0)..=(node, u32::MAX)).map(|(_, to)| *to).collect()
    }

    fn is_a_connected_graph(nodes: u32, edges: &Edges) {
        assert!(edges.iter().all(|(a, b)| a != b && edges.contains(&(*b, *a)) && *a.max(b) < nodes));
        assert_eq!(super::super::part_of(edges, 0).len(), nodes as usize);
    }

    /// Triangles, each seen from its three nodes, by pairs of neighbours.
    fn clustering(nodes: u32, edges: &Edges) -> f64 {
        let (mut closed, mut all) = (0_u32, 0_u32);
        for node in 0..nodes {
            let others = others(edges, node);
            for (index, a) in others.iter().enumerate() {
                all += (others.len() - index - 1) as u32;
                closed += others[index + 1..].iter().filter(|b| edges.contains(&(*a, **b))).count() as u32;
            }
        }
        f64::from(closed) / f64::from(all)
    }

    /// A. Barrat and M. Weigt, On the properties of small-world network models (2000): the clustering is that of the ring, 3 (k - 1) / 2
    /// (2 k - 1) of k neighbours on either side, times (1 - p)^3, but for terms of 1 / n. Rewiring leaves the number of links.
    #[test]
    fn a_small_world_clusters_as_barrat_and_weigt_say() {
        for (reach, rewired) in [(2, 0.0), (3, 0.0), (3, 0.1), (5, 0.3)] {
            let nodes = 2_000;
            let edges = small_world(nodes, SmallWorld { reach, rewired }, &mut random());
            is_a_connected_graph(nodes, &edges);
            assert_eq!(edges.len(), 2 * (nodes * reach) as usize);
            let k = f64::from(reach);
            let wanted = 3.0 * (k - 1.0) / (2.0 * (2.0 * k - 1.0)) * (1.0 - rewired).powi(3);
            let found = clustering(nodes, &edges);
            assert!((found - wanted).abs() < 0.03 * wanted, "{reach} {rewired}: {found}, {wanted}");
            let moved = edges.iter().filter(|(a, b)| a.abs_diff(*b).min(nodes - a.abs_diff(*b)) > reach).count();
            let share = moved as f64 / edges.len() as f64;
            assert!((share - rewired).abs() < 0.02, "{share} of the links lead elsewhere");
        }
        // Each link of a ring of ten is rewired. The parts are joined.
        (0..50).for_each(|seed| {
            let edges = small_world(10, SmallWorld { reach: 1, rewired: 1.0 }, &mut ChaCha8Rng::seed_from_u64(seed));
            is_a_connected_graph(10, &edges);
        });
    }

    /// S. N. Dorogovtsev, J. F. F. Mendes and A. N. Samukhin, Structure of growing networks with preferential linking (2000): a share of
    /// 2 m (m + 1) / k (k + 1) (k + 2) of the nodes has k links.
    #[test]
    fn a_scale_free_graph_has_the_degrees_of_its_law() {
        for links in [1, 2, 4] {
            let nodes = 20_000;
            let edges = scale_free(nodes, links, &mut random());
            is_a_connected_graph(nodes, &edges);
            assert_eq!(edges.len() as u32, links * (links + 1) + 2 * (nodes - links - 1) * links);
            let degrees: Vec<usize> = (0..nodes).map(|node| others(&edges, node).len()).collect();
            for k in links..links + 6 {
                let share = degrees.iter().filter(|degree| **degree == k as usize).count() as f64 / f64::from(nodes);
                let (m, k) = (f64::from(links), f64::from(k));
                let wanted = 2.0 * m * (m + 1.0) / (k * (k + 1.0) * (k + 2.0));
                // Four standard deviations of a count of independent nodes.
                let spread = 4.0 * (wanted * (1.0 - wanted) / f64::from(nodes)).sqrt();
                assert!((share - wanted).abs() < spread, "{links} links, degree {k}: {share}, {wanted}");
            }
        }
        assert_eq!(scale_free(3, 2, &mut random()).len(), 6);
    }

    /// Each node has as many links of its own as it is dealt: 25 % of 40 nodes one, with the node on the border, 50 % two, the others four.
    #[test]
    fn nodes_link_to_as_many_others_as_they_are_dealt() {
        let edges = outgoing(40, &[0.25, 0.75, 0.75, 1.0], &mut random());
        is_a_connected_graph(40, &edges);
        assert_eq!(edges.len(), 2 * (11 + 2 * 20 + 4 * 9));
        // Half of the links come from others, so the mean number of neighbours is twice that of the links.
        let edges = outgoing(3_000, &[0.0, 0.5, 1.0], &mut random());
        let degrees: Vec<usize> = (0..3_000).map(|node| others(&edges, node).len()).collect();
        assert_eq!(degrees.iter().sum::<usize>(), 2 * (1 + 1_500 * 2 + 1_499 * 3));
        // The links of others come as from a binomial distribution, here nearly a Poisson one with mean and variance 2.5.
        let variance = degrees.iter().map(|degree| (*degree as f64 - 5.0).powi(2)).sum::<f64>() / 3_000.0;
        assert!((variance - 2.75).abs() < 0.3, "{variance}");
        assert_eq!(outgoing(3, &[0.0, 1.0], &mut random()).len(), 6, "all with all");
    }

    /// Two points of a square of side 1 are within r <= 1 with the chance pi r^2 - 8 r^3 / 3 + r^4 / 2.
    #[test]
    fn a_geometric_graph_has_the_links_of_its_radius() {
        for radius in [0.1_f64, 0.3, 0.8] {
            let nodes = 1_500;
            let edges = geometric(nodes, radius, &mut random());
            is_a_connected_graph(nodes, &edges);
            let wanted = std::f64::consts::PI * radius.powi(2) - 8.0 / 3.0 * radius.powi(3) + radius.powi(4) / 2.0;
            let found = edges.len() as f64 / f64::from(nodes * (nodes - 1));
            assert!((found - wanted).abs() < 0.03 * wanted, "{radius}: {found}, {wanted}");
        }
        // Points that far apart have no links of their own: the parts are joined to a tree.
        let tree = geometric(30, 0.001, &mut random());
        is_a_connected_graph(30, &tree);
        assert_eq!(tree.len(), 58);
    }
}
