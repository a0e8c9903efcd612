//! Loss, duplication, reordering and bandwidth equal their closed forms, and directions of a link know nothing of each
//! other.

use super::{
    arrivals, network, pairs,
    samples::{binomial, distributed, independent},
};
use dposlab::{
    actors::{Message, NodeId, SimTime},
    sim::{
        Latency, NetworkModel, SeedTree,
        network::{Distribution, Per, Reordering, size_of},
    },
};

const MESSAGES: usize = 60_000;
const NOW: SimTime = SimTime::from_micros(1_000_000);

fn constant(ms: f64) -> Latency {
    Latency { distribution: Distribution::Constant { ms }, per: Per::Link }
}

/// The arrivals of many messages over one link, in turns from one end and the other.
fn both_ways(model: &NetworkModel, seed: u64) -> Vec<(Vec<SimTime>, Vec<SimTime>)> {
    let mut network = network(3, model, seed);
    let mut route = |a, b| arrivals(network.route(NOW, NodeId(a), NodeId(b), &Message::StatusRequest));
    (0..MESSAGES).map(|_| (route(0, 1), route(1, 0))).collect()
}

#[test]
fn loss_and_duplication_are_binomial_and_independent_in_both_directions() {
    let model = NetworkModel { loss: 0.1, duplication: 0.2, latency: constant(50.0), ..NetworkModel::default() };
    let sent = both_ways(&model, 3);
    for copies in [sent.iter().map(|pair| pair.0.len()).collect::<Vec<_>>(), sent.iter().map(|p| p.1.len()).collect()] {
        let of = |number| copies.iter().filter(|copies| **copies == number).count();
        assert_eq!(of(0) + of(1) + of(2), MESSAGES);
        binomial(of(0), MESSAGES, 0.1);
        binomial(of(2), MESSAGES - of(0), 0.2);
        binomial(of(1), MESSAGES, 0.9 * 0.8);
        // The fate of a message does not depend on that of the one before.
        let successive: Vec<_> = copies.windows(2).map(|pair| (pair[0] as f64, pair[1] as f64)).collect();
        independent(&successive);
        let lost: Vec<_> = copies.windows(2).map(|pair| (f64::from(pair[0] == 0), f64::from(pair[1] == 0))).collect();
        independent(&lost);
    }
    let directions: Vec<_> = sent.iter().map(|(a, b)| (a.len() as f64, b.len() as f64)).collect();
    independent(&directions);
    let lost: Vec<_> = sent.iter().map(|(a, b)| (f64::from(a.is_empty()), f64::from(b.is_empty()))).collect();
    independent(&lost);
    assert!(sent.iter().flat_map(|(a, b)| a.iter().chain(b)).all(|at| at.micros() == NOW.micros() + 50_000));
}

/// Losses, copies and delays in one direction move nothing in the other: messages from 1 to 0 fare the same whether or not
/// anything goes from 0 to 1.
#[test]
fn a_direction_draws_numbers_of_its_own() {
    let per_message =
        Latency { distribution: Distribution::LogNormal { median_ms: 80.0, sigma: 0.5 }, per: Per::Message };
    let reordering = Some(Reordering { chance: 0.3, by_ms: 200 });
    let model =
        NetworkModel { loss: 0.2, duplication: 0.2, reordering, latency: per_message, ..NetworkModel::default() };
    let together = both_ways(&model, 5);
    let mut alone = network(3, &model, 5);
    for (_, with_the_other) in together.iter().take(2_000) {
        let found = arrivals(alone.route(NOW, NodeId(1), NodeId(0), &Message::StatusRequest));
        assert_eq!(&found, with_the_other);
    }
    let first = |arrivals: &[SimTime]| arrivals.first().map(|at| at.since(NOW).as_secs_f64().ln());
    let delays: Vec<(f64, f64)> = together.iter().filter_map(|(a, b)| Some((first(a)?, first(b)?))).collect();
    independent(&delays);
    // A copy takes a latency of its own.
    let copies: Vec<(f64, f64)> = together
        .iter()
        .filter(|(a, _)| a.len() == 2)
        .map(|(a, _)| (a[0].since(NOW).as_secs_f64(), a[1].since(NOW).as_secs_f64()))
        .collect();
    assert!(copies.len() > 9_000);
    independent(&copies);
}

/// After the network draws anew, messages fare as in none of the runs that draw from another seed.
#[test]
fn a_network_that_draws_anew_knows_nothing_of_what_it_drew_before() {
    let model = NetworkModel { loss: 0.5, latency: constant(50.0), ..NetworkModel::default() };
    let lost = |anew: Option<u64>| {
        let mut network = network(3, &model, 5);
        if let Some(seed) = anew {
            network.draw_anew(SeedTree::new(seed));
        }
        let mut one = || arrivals(network.route(NOW, NodeId(0), NodeId(1), &Message::StatusRequest)).is_empty();
        (0..20_000).map(|_| f64::from(one())).collect::<Vec<f64>>()
    };
    let (before, one, other) = (lost(None), lost(Some(8)), lost(Some(9)));
    assert_eq!(one, lost(Some(8)));
    for (a, b) in [(&before, &one), (&before, &other), (&one, &other)] {
        independent(&a.iter().copied().zip(b.iter().copied()).collect::<Vec<_>>());
    }
}

#[test]
fn overtaken_messages_are_late_by_an_even_draw() {
    let reordering = Some(Reordering { chance: 0.25, by_ms: 400 });
    let model = NetworkModel { reordering, latency: constant(50.0), ..NetworkModel::default() };
    let late = |by: f64, chance: f64| {
        move |ms: f64| if ms < 0.0 { 0.0 } else { 1.0 - chance + chance * (ms / by).clamp(0.0, 1.0) }
    };
    for direction in [0, 1] {
        let of = |pair: &(Vec<SimTime>, Vec<SimTime>)| if direction == 0 { pair.0[0] } else { pair.1[0] };
        let ms = |at: SimTime| (at.micros() - NOW.micros()) as f64 / 1e3 - 50.0;
        let samples: Vec<f64> = both_ways(&model, 9).iter().map(|pair| ms(of(pair))).collect();
        distributed(&samples, late(400.0, 0.25), late(400.0, 0.27));
        binomial(samples.iter().filter(|late| **late > 0.0).count(), MESSAGES, 0.25);
        let only: Vec<f64> = samples.into_iter().filter(|late| *late > 0.0).collect();
        distributed(&only, late(400.0, 1.0), late(420.0, 1.0));
    }
}

/// The k-th of messages sent at once leaves when all bytes so far have: k·size/bandwidth, whatever a microsecond holds. A copy
/// made by duplication leaves with its message.
#[test]
fn bandwidth_takes_size_by_rate_and_each_direction_has_its_own() {
    let milestones = dposlab::protocol::Milestones::testnet();
    let bytes = u128::from(size_of(&Message::StatusRequest, &milestones));
    let rates = [1, 999, 10_000, 1_000_000, 7_777_777, 100_000_000, 3_000_000_000_u64];
    for (bandwidth, copies) in rates.into_iter().flat_map(|rate| [(rate, 1), (rate, 2)]) {
        let duplication = if copies == 2 { 1.0 } else { 0.0 };
        let model = NetworkModel {
            bandwidth: Some(bandwidth),
            duplication,
            latency: constant(50.0),
            ..NetworkModel::default()
        };
        let mut network = network(3, &model, 1);
        let mut route = |now, a, b| {
            let arrivals = arrivals(network.route(now, NodeId(a), NodeId(b), &Message::StatusRequest));
            arrivals.into_iter().map(|at| at.since(now).as_micros()).collect::<Vec<_>>()
        };
        for sent in 1..=1_000_u128 {
            let wanted = sent * bytes * 1_000_000 / u128::from(bandwidth) + 50_000;
            assert_eq!(route(NOW, 0, 1), vec![wanted; copies], "message {sent} at {bandwidth} bytes a second");
            if sent % 100 == 0 {
                // The other way only these tenth parts are under way.
                let wanted = sent / 100 * bytes * 1_000_000 / u128::from(bandwidth) + 50_000;
                assert_eq!(route(NOW, 1, 0), vec![wanted; copies], "back, at {bandwidth} bytes a second");
            }
        }
        // Once all have left, the link is free: no time is owed or saved.
        let later = SimTime::from_micros(NOW.micros() + 1_000_000_000_000);
        let alone = vec![bytes * 1_000_000 / u128::from(bandwidth) + 50_000; copies];
        assert_eq!(route(later, 0, 1), alone);
        assert_eq!(route(later, 2, 1), alone, "another sender");
    }
}

#[test]
fn nothing_passes_where_no_link_is() {
    for topology in [dposlab::sim::network::Topology::Star, dposlab::sim::network::Topology::Ring(2)] {
        let model = NetworkModel { topology, latency: constant(50.0), ..NetworkModel::default() };
        let mut network = network(9, &model, 1);
        for (a, b) in pairs(9) {
            let arrives = !arrivals(network.route(NOW, a, b, &Message::StatusRequest)).is_empty();
            assert_eq!(arrives, network.links().connects(a, b), "{a} to {b}");
        }
    }
}
