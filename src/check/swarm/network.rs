//! The network of a run: connections, latencies, the fates of messages, clock errors, and changes with height.

use super::Draw;
use crate::{
    actors::NodeId,
    ledger::rules::Gossip,
    scenario::section::{Change, NetworkSection},
    sim::{
        Latency, NetworkModel, SeedTree,
        network::{ByClass, Clocks, Distribution, LinkLatency, Per, Regions, Reordering, Topology},
    },
};
use rand::{Rng, seq::IndexedRandom};

/// A network of `delegates` delegates, or of a random number of them.
pub(super) fn network(draw: &mut Draw, delegates: Option<u32>) -> NetworkSection {
    let delegates = delegates.unwrap_or_else(|| *[4, 5, 5, 7, 7, 10, 13, 21].choose(draw).unwrap_or(&7));
    let standby = *[0, 0, 1, 2, 4].choose(draw).unwrap_or(&0);
    let relays = *[0, 0, 0, 1, 3].choose(draw).unwrap_or(&0);
    let nodes = delegates + standby + relays;
    let topology = match draw.random_range(0..10) {
        0..=6 => Topology::Mesh,
        7 => Topology::Regular(draw.random_range(3..=5)),
        8 => Topology::Ring(draw.random_range(2..=3)),
        _ => Topology::Regular((nodes / 2).max(3)),
    };
    let topology = topology.fitted(nodes);
    let latency = match draw.random_range(0..6) {
        0 => Latency::uniform(0, 1),
        1..=3 => {
            let least = draw.random_range(1..=60);
            Latency::uniform(least, least + draw.random_range(1..=120))
        }
        // A peer that takes more than 1.5 seconds to answer (`rules.node.forging_ping_ms`) counts as gone: with more, no delegate could
        // ever forge.
        4 => Latency::uniform(100, draw.random_range(200..=500)),
        _ => Latency::uniform(300, draw.random_range(400..=700)),
    };
    let mut model = NetworkModel { topology, latency, ..NetworkModel::default() };
    let flaws = *[0, 0, 0, 1, 1, 2, 4].choose(draw).unwrap_or(&0);
    (0..flaws).for_each(|_| flaw(draw, &mut model, nodes));
    fit(&mut model, nodes);
    // With `Gossip::Once`, a block does not get beyond the forger's own peers. In a mesh, the copies that the reference sends are nine
    // of ten messages, and reveal nothing new.
    let once = model.topology == Topology::Mesh && draw.random_bool(0.75);
    let gossip = if once { Gossip::Once } else { Gossip::Reference };
    let reward = draw.random_ratio(2, 3).then_some(200_000_000);
    let mut network =
        NetworkSection { delegates, standby, reward, relays, gossip: Some(gossip), model, ..NetworkSection::default() };
    if draw.random_ratio(1, 3) {
        change(draw, &mut network);
    }
    network
}

/// Removes settings that a file must not have: latencies of missing links, and a latency of all links beside regions.
fn fit(model: &mut NetworkModel, nodes: u32) {
    let links = model.topology.links(nodes, SeedTree::new(1));
    let is_there = |(a, b): &(u32, u32)| links.connects(NodeId(*a), NodeId(*b));
    model.links.retain(|link| link.directions().is_ok_and(|(_, directions)| directions.iter().all(is_there)));
    if model.regions.is_some() {
        model.latency = Latency::default();
    }
}

/// Adds an imperfection to a network, sometimes an extreme one.
fn flaw(draw: &mut Draw, model: &mut NetworkModel, nodes: u32) {
    match draw.random_range(0..9) {
        0 => model.latency.distribution = distribution(draw),
        1 => model.latency.per = Per::Message,
        2 => model.regions = Some(regions(draw)),
        3 => {
            for _ in 0..draw.random_range(1..=3) {
                let (a, b) = (draw.random_range(0..nodes), draw.random_range(0..nodes));
                let latency = Latency { distribution: slow(draw), per: Per::Link };
                let (one_way, is_given) = (draw.random_ratio(1, 4), |given: &LinkLatency| is_of(given, a, b));
                if a != b && !model.links.iter().any(is_given) {
                    let link = if one_way { LinkLatency::one_way } else { LinkLatency::between };
                    model.links.push(link(a, b, latency));
                }
            }
        }
        4 => model.loss = *[0.001, 0.01, 0.05, 0.3].choose(draw).unwrap_or(&0.01),
        5 => model.duplication = *[0.001, 0.01, 0.1, 0.5].choose(draw).unwrap_or(&0.01),
        6 => {
            let (chance, by_ms) = (*[0.02, 0.3, 1.0].choose(draw).unwrap_or(&0.3), draw.random_range(50..=5_000));
            model.reordering = Some(Reordering { chance, by_ms });
        }
        7 => model.bandwidth = Some(*[1_000, 10_000, 100_000].choose(draw).unwrap_or(&10_000)),
        _ => {
            let offset_ms = *[0, 200, 1_500, 6_000].choose(draw).unwrap_or(&200);
            let drift_ppm = *[50, 50, 1_000, 20_000].choose(draw).unwrap_or(&50);
            model.clocks = Some(Clocks { offset_ms, drift_ppm: if offset_ms == 200 { 0 } else { drift_ppm } }.into());
        }
    }
}

/// Returns true if a latency is of the link between two nodes, in any direction.
fn is_of(given: &LinkLatency, a: u32, b: u32) -> bool {
    given.directions().is_ok_and(|(_, directions)| directions.contains(&(a, b)) || directions.contains(&(b, a)))
}

fn distribution(draw: &mut Draw) -> Distribution {
    let ms = *[1.0, 40.0, 120.0, 450.0].choose(draw).unwrap_or(&40.0);
    match draw.random_range(0..3) {
        0 => Distribution::Constant { ms },
        1 => Distribution::Normal { mean_ms: ms, deviation_ms: ms * *[0.1, 0.5, 1.0].choose(draw).unwrap_or(&0.5) },
        _ => Distribution::LogNormal { median_ms: ms, sigma: *[0.2, 0.5, 1.0].choose(draw).unwrap_or(&0.5) },
    }
}

/// Draws the latency of a link that answers late, or so late that its ends take each other for gone.
fn slow(draw: &mut Draw) -> Distribution {
    let ms = *[600.0, 740.0, 900.0, 2_500.0].choose(draw).unwrap_or(&740.0);
    Distribution::Constant { ms }
}

fn regions(draw: &mut Draw) -> Regions {
    let count = draw.random_range(2..=3);
    let shares = (0..count).map(|_| f64::from(draw.random_range(1..=5))).collect();
    let latency_ms = (0..count)
        .map(|from| {
            let far = |draw: &mut Draw| *[60.0, 120.0, 300.0, 650.0].choose(draw).unwrap_or(&120.0);
            (0..count).map(|to| if from == to { 15.0 } else { far(draw) }).collect()
        })
        .collect();
    let spread = *[0.0, 0.1, 0.3].choose(draw).unwrap_or(&0.1);
    Regions { shares, latency_ms, spread, ..Regions::default() }
}

/// One or two milestones in the first rounds: another reward, another number of delegates, or both.
fn change(draw: &mut Draw, network: &mut NetworkSection) {
    let mut round = 1;
    for _ in 0..draw.random_range(1..=2) {
        round += draw.random_range(1..=3);
        let (first, seats) = network.round(round, 1);
        let registered = network.delegates + network.standby;
        let what = draw.random_range(0..3);
        let reward = [0, 1, 100_000_000, 5_000_000_000].choose(draw).copied().filter(|_| what != 0);
        let fewest = registered.div_ceil(3).max(2);
        let delegates = (what != 1).then(|| draw.random_range(fewest..=registered));
        // A reward may change anywhere in a round.
        let height = if delegates.is_some() { first } else { first + draw.random_range(0..seats) };
        if network.milestones.last().is_none_or(|last| last.height < height) {
            network.milestones.push(Change { height, reward, delegates });
        }
    }
}

/// Returns the longest latency of a link, in milliseconds. For a drawn latency it is four deviations above the middle.
fn slowest_ms(model: &NetworkModel) -> f64 {
    let slowest_of = |latency: &Latency| match latency.distribution {
        Distribution::Constant { ms } => ms,
        Distribution::Uniform { max_ms, .. } => f64::from(max_ms),
        Distribution::Normal { mean_ms, deviation_ms } => mean_ms + 4.0 * deviation_ms,
        Distribution::LogNormal { median_ms, sigma } => median_ms * (4.0 * sigma).exp(),
        Distribution::Pareto { mean_ms } => tail_ms(mean_ms),
    };
    let far = model.regions.iter().flat_map(|regions| {
        let slowest = |ms: &f64| if regions.pareto { tail_ms(*ms) } else { ms * (1.0 + regions.spread) };
        regions.latency_ms.iter().flatten().map(slowest)
    });
    let of_links = model.links.iter().map(|link| slowest_of(&link.latency));
    let overhead = model.overhead.map_or(0, |overhead| overhead.block_ms.max(overhead.other_ms));
    f64::from(overhead) + of_links.chain(far).chain([slowest_of(&model.latency)]).fold(0.0, f64::max)
}

/// Returns the latency of Pareto's distribution that one in 31,574 exceeds, like four deviations of a normal distribution.
fn tail_ms(mean_ms: f64) -> f64 {
    mean_ms * 31_574_f64.powf(5.0 / mean_ms)
}

/// The longest latency of a link in an easy network, in milliseconds.
const EASY_MS: u32 = 120;

/// Takes away all that makes messages late, lost or doubled, or clocks wrong.
pub(super) fn ease(model: &mut NetworkModel) {
    let topology = std::mem::take(&mut model.topology);
    *model = NetworkModel { topology, latency: Latency::uniform(20, EASY_MS), ..NetworkModel::default() };
}

/// Returns true if nothing makes messages late, lost or doubled, or clocks wrong.
pub(super) fn is_easy(model: &NetworkModel) -> bool {
    model.loss == 0.0
        && model.duplication == 0.0
        && model.reordering.is_none()
        && model.is_unlimited()
        && model.clocks.is_none()
        && slowest_ms(model) <= f64::from(EASY_MS)
}

/// Returns true if a network, faults apart, is good enough for one growing chain: it loses and doubles nothing, delays
/// nothing for long, and its clocks differ by less than a forger waits.
pub(super) fn is_whole(model: &NetworkModel) -> bool {
    let mut clocks = model.clocks.iter().flat_map(ByClass::named);
    let late = model.reordering.as_ref().map_or(0.0, |reordering| f64::from(reordering.by_ms));
    model.loss == 0.0
        && model.duplication == 0.0
        && model.is_unlimited()
        && clocks.all(|clocks| clocks.offset_ms <= 500 && clocks.drift_ppm == 0)
        && slowest_ms(model) + late < f64::min(ANSWER_MS / 2.0, CONNECTING_MS / 6.0)
}

/// The time limit of a connection, in milliseconds, which takes three round trips. If it may take longer, nodes that lost each other
/// never connect again. Source: consensus.md 6.
const CONNECTING_MS: f64 = 2_000.0;
/// Time to answer a ping before forging, in milliseconds. Source: consensus.md 2.2.
const ANSWER_MS: f64 = 1_500.0;
