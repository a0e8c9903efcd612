//! The simulator against mathematics: what has a closed form, or an independent algorithm, equals it.
//!
//! Digests show that something changed and never that it is right. Here the second way is a formula, an arithmetic of
//! whole numbers, or another crate's algorithm. Seeds are fixed, so a test that passes passes always; each test of a
//! distribution also shows that a slightly wrong parameter would have failed.

mod access;
mod announcing;
mod churn;
mod clocks;
mod faults;
mod flooding;
mod latencies;
mod load;
mod messages;
pub mod samples;
mod scaling;
mod slots;
mod streams;

use dposlab::{
    actors::{NodeId, SimTime},
    protocol::crypto::CryptoMode::Real,
    scenario::{Scenario, Testnet},
    sim::{
        NetworkModel, SeedTree,
        network::{MessageNetwork, Route},
    },
};
use std::path::Path;

/// The network of a model between so many nodes.
fn network(nodes: u32, model: &NetworkModel, seed: u64) -> MessageNetwork {
    let seeds = SeedTree::new(seed);
    let config = Testnet::generate(SeedTree::new(1), 1, Real).config;
    MessageNetwork::new(nodes, model.topology.links(nodes, seeds), model, seeds, config)
}

/// A scenario of this text below its version.
fn scenario(text: &str) -> Scenario {
    Scenario::parse(&format!("version = 1\ncrypto = \"modelled\"\n{text}"), Path::new("mathematics"))
        .expect("the test writes a scenario")
}

/// The times at which the copies of a message arrive.
fn arrivals(route: Route) -> Vec<SimTime> {
    match route {
        Route::Lost => Vec::new(),
        Route::Arrives(at) => vec![at],
        Route::ArrivesAt(all) => all,
        Route::Comes(all) => all.into_iter().map(|approach| approach.last).collect(),
        Route::Leaves(after) => panic!("it shares the uplink and arrives later: {after:?}"),
    }
}

/// All ordered pairs of so many nodes.
fn pairs(nodes: u32) -> impl Iterator<Item = (NodeId, NodeId)> {
    let all = move |a| (0..nodes).filter(move |b| a != *b).map(move |b| (NodeId(a), NodeId(b)));
    (0..nodes).flat_map(all)
}
