//! Latencies have the configured distribution, deviation included.

use super::{
    arrivals, network, pairs,
    samples::{distributed, independent},
};
use dposlab::{
    actors::{Message, NodeId, SimTime},
    sim::{
        Latency, NetworkModel,
        network::{Distribution, LinkLatency, Per, Regions},
    },
};
use statrs::distribution::{ContinuousCDF, LogNormal, Normal, Pareto};

/// Links between so many nodes are all asked, under several seeds.
const NODES: u32 = 120;
const SEEDS: [u64; 3] = [1, 2, 3];
const NOW: SimTime = SimTime::from_micros(5_000_000);

/// Latencies in milliseconds, as messages that leave now have them: one of each link and seed, or as many of single
/// messages, half in each direction of one link.
fn sampled(distribution: Distribution, per: Per) -> Vec<f64> {
    let model = NetworkModel { latency: Latency { distribution, per }, ..NetworkModel::default() };
    let mut samples = Vec::new();
    for seed in SEEDS {
        let mut network = network(NODES, &model, seed);
        for (index, (a, b)) in pairs(NODES).enumerate() {
            let (a, b) = match (per, index % 2) {
                (Per::Link, _) => (a, b),
                (Per::Message, 0) => (NodeId(3), NodeId(5)),
                (Per::Message, _) => (NodeId(5), NodeId(3)),
            };
            let at = arrivals(network.route(NOW, a, b, &Message::StatusRequest));
            let [at] = at[..] else { panic!("one message arrives once: {at:?}") };
            let ms = (at.micros() - NOW.micros()) as f64 / 1_000.0;
            if per == Per::Link {
                assert_eq!(network.delay(a, b).as_micros(), u128::from(at.micros() - NOW.micros()));
                assert_eq!(arrivals(network.route(NOW, a, b, &Message::PeersRequest)), [at], "the link keeps it");
            }
            samples.push(ms);
        }
    }
    samples
}

fn uniform(min: f64, max: f64) -> impl Fn(f64) -> f64 {
    move |x| ((x - min) / (max - min)).clamp(0.0, 1.0)
}

/// The distribution of a normal value, of which negative ones count as 0.
fn normal(mean: f64, deviation: f64) -> impl Fn(f64) -> f64 {
    let normal = Normal::new(mean, deviation).expect("it is one");
    move |x| if x < 0.0 { 0.0 } else { normal.cdf(x) }
}

fn log_normal(median: f64, sigma: f64) -> impl Fn(f64) -> f64 {
    let log_normal = LogNormal::new(median.ln(), sigma).expect("it is one");
    move |x| log_normal.cdf(x)
}

#[test]
fn constant_latencies_are_all_the_same() {
    for per in [Per::Link, Per::Message] {
        let all = sampled(Distribution::Constant { ms: 12.345 }, per);
        assert!(all.iter().all(|ms| *ms == 12.345), "{per:?}");
    }
}

#[test]
fn uniform_latencies_are_uniform() {
    for per in [Per::Link, Per::Message] {
        let samples = sampled(Distribution::Uniform { min_ms: 20, max_ms: 100 }, per);
        distributed(&samples, uniform(20.0, 100.0), uniform(20.0, 103.0));
        distributed(&samples, uniform(20.0, 100.0), uniform(17.0, 100.0));
    }
}

#[test]
fn normal_latencies_have_their_mean_and_their_deviation() {
    for per in [Per::Link, Per::Message] {
        let samples = sampled(Distribution::Normal { mean_ms: 200.0, deviation_ms: 30.0 }, per);
        distributed(&samples, normal(200.0, 30.0), normal(200.0, 32.4));
        distributed(&samples, normal(200.0, 30.0), normal(202.0, 30.0));
        // One in six would be negative.
        let samples = sampled(Distribution::Normal { mean_ms: 20.0, deviation_ms: 20.0 }, per);
        distributed(&samples, normal(20.0, 20.0), normal(20.0, 22.0));
        assert!(samples.contains(&0.0));
    }
}

#[test]
fn log_normal_latencies_have_their_median_and_their_sigma() {
    for per in [Per::Link, Per::Message] {
        let samples = sampled(Distribution::LogNormal { median_ms: 80.0, sigma: 0.5 }, per);
        distributed(&samples, log_normal(80.0, 0.5), log_normal(80.0, 0.54));
        distributed(&samples, log_normal(80.0, 0.5), log_normal(83.0, 0.5));
        // The moments have closed forms: the mean is median·exp(σ²/2), the variance mean²·(exp(σ²) - 1).
        let (mean, spread) = (80.0 * 0.125_f64.exp(), 0.25_f64.exp_m1());
        let found = samples.iter().sum::<f64>() / samples.len() as f64;
        let error = mean * spread.sqrt() / (samples.len() as f64).sqrt();
        assert!((found - mean).abs() < 4.0 * error, "a mean of {found}, not {mean} ± {error}");
        let squares = samples.iter().map(|ms| (ms - mean).powi(2)).sum::<f64>() / samples.len() as f64;
        assert!((squares.sqrt() / (mean * spread.sqrt()) - 1.0).abs() < 0.03, "a deviation of {}", squares.sqrt());
    }
}

/// The distribution that SimBlock draws latencies from.
fn pareto(mean: f64, shape: f64) -> impl Fn(f64) -> f64 {
    let pareto = Pareto::new(mean - 5.0, shape).expect("it is one");
    move |x| pareto.cdf(x)
}

#[test]
fn pareto_latencies_have_their_mean_and_the_shape_of_it() {
    for per in [Per::Link, Per::Message] {
        for mean_ms in [11.0, 124.0] {
            let samples = sampled(Distribution::Pareto { mean_ms }, per);
            distributed(&samples, pareto(mean_ms, 0.2 * mean_ms), pareto(mean_ms, 0.22 * mean_ms));
            distributed(&samples, pareto(mean_ms, 0.2 * mean_ms), pareto(mean_ms + 0.3, 0.2 * mean_ms));
        }
        // The mean of a Pareto distribution is shape * scale / (shape - 1), which is the mean here, and its variance has a closed form.
        let (mean, shape) = (124.0, 24.8_f64);
        let samples = sampled(Distribution::Pareto { mean_ms: mean }, per);
        let found = samples.iter().sum::<f64>() / samples.len() as f64;
        let deviation = mean / (shape * (shape - 2.0)).sqrt();
        let error = deviation / (samples.len() as f64).sqrt();
        assert!((found - mean).abs() < 4.0 * error, "a mean of {found}, not {mean} ± {error}");
    }
}

#[test]
fn messages_between_regions_draw_a_latency_each() {
    let latency_ms = vec![vec![11.0, 80.0], vec![120.0, 32.0]];
    let regions =
        Regions { shares: vec![1.0, 1.0], latency_ms: latency_ms.clone(), pareto: true, ..Regions::default() };
    let model = NetworkModel { regions: Some(regions), ..NetworkModel::default() };
    let mut network = network(4, &model, 3);
    for (from, to) in [(0, 1), (0, 2), (3, 1), (2, 3)] {
        let mean_ms = latency_ms[usize::from(from > 1)][usize::from(to > 1)];
        let ms = |at: SimTime| (at.micros() - NOW.micros()) as f64 / 1_000.0;
        let samples: Vec<f64> = (0..20_000)
            .flat_map(|_| arrivals(network.route(NOW, NodeId(from), NodeId(to), &Message::StatusRequest)))
            .map(ms)
            .collect();
        distributed(&samples, pareto(mean_ms, 0.2 * mean_ms), pareto(mean_ms, 0.22 * mean_ms));
    }
}

#[test]
fn the_directions_of_a_link_are_drawn_apart() {
    let latency = Latency { distribution: Distribution::LogNormal { median_ms: 80.0, sigma: 0.5 }, per: Per::Link };
    let network = network(200, &NetworkModel { latency, ..NetworkModel::default() }, 7);
    let ms = |a, b| network.delay(a, b).as_secs_f64().ln();
    let there_and_back: Vec<_> = pairs(200).filter(|(a, b)| a < b).map(|(a, b)| (ms(a, b), ms(b, a))).collect();
    independent(&there_and_back);
    // Nor do links of neighbouring numbers say anything of each other.
    let beside = |by: u32| -> Vec<(f64, f64)> {
        let next = |node: NodeId| NodeId((node.0 + by) % 200);
        pairs(200).filter(|(a, b)| next(*b) != *a).map(|(a, b)| (ms(a, b), ms(a, next(b)))).collect()
    };
    (1..=5).for_each(|by| independent(&beside(by)));
}

#[test]
fn regions_have_the_latency_of_their_ends_and_spread_it_evenly() {
    let regions = Regions {
        shares: vec![1.0, 3.0],
        latency_ms: vec![vec![5.0, 80.0], vec![120.0, 10.0]],
        spread: 0.2,
        ..Regions::default()
    };
    let model = NetworkModel { regions: Some(regions.clone()), ..NetworkModel::default() };
    let mut samples = vec![vec![Vec::new(); 2]; 2];
    for seed in [1, 2, 3, 4, 5] {
        let network = network(200, &model, seed);
        for (a, b) in pairs(200) {
            // A quarter of the nodes, the first ones, are in the first region.
            let region = |node: NodeId| usize::from(node.0 >= 50);
            let (from, to) = (region(a), region(b));
            samples[from][to].push(network.delay(a, b).as_secs_f64() * 1e3 / regions.latency_ms[from][to]);
        }
    }
    for part in samples.iter().flatten() {
        distributed(part, uniform(0.8, 1.2), uniform(0.79, 1.21));
    }
}

#[test]
fn a_link_with_a_latency_of_its_own_has_it_in_both_directions() {
    let own = Latency { distribution: Distribution::Constant { ms: 7.0 }, per: Per::Link };
    let links = vec![LinkLatency::between(4, 2, own)];
    let network = network(6, &NetworkModel { links, ..NetworkModel::default() }, 1);
    for (a, b) in pairs(6) {
        let is_own = [(2, 4), (4, 2)].contains(&(a.0, b.0));
        assert_eq!(network.delay(a, b).as_micros() == 7_000, is_own, "{a} to {b}");
    }
}

#[test]
fn a_direction_of_a_link_has_a_latency_of_its_own_and_the_other_direction_another() {
    let constant = |ms| Latency { distribution: Distribution::Constant { ms }, per: Per::Link };
    let links = vec![LinkLatency::one_way(4, 2, constant(7.0)), LinkLatency::one_way(2, 4, constant(9.0))];
    let network = network(6, &NetworkModel { links, ..NetworkModel::default() }, 1);
    for (a, b) in pairs(6) {
        let expected = match (a.0, b.0) {
            (4, 2) => Some(7_000),
            (2, 4) => Some(9_000),
            _ => None,
        };
        let found = network.delay(a, b).as_micros();
        assert!(expected.map_or(![7_000, 9_000].contains(&found), |micros| found == micros), "{a} to {b}: {found}");
    }
}
