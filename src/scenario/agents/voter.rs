//! The voters of a group of agents: their keys, and their coins at genesis.

use super::Agents;
use crate::{
    protocol::{Address, Arktoshi, KeyPair, PrivateKey, crypto::CryptoMode},
    sim::SeedTree,
};
use std::sync::Arc;

/// The draw of a voter's part of the stake.
const SPREAD: u64 = 4;

/// A voter with its coins at genesis.
#[derive(Clone)]
pub struct Voter {
    pub keys: KeyPair,
    pub address: Address,
    pub stake: Arktoshi,
}

impl Voter {
    /// The voters of each group, with keys and stakes drawn from the seed.
    pub fn of(groups: &[Agents], seeds: SeedTree, crypto: CryptoMode, network_byte: u8) -> Vec<Arc<[Self]>> {
        let of_group = |(index, group): (usize, &Agents)| {
            let name = group.name(&groups[..index]);
            let (mut random, choices) =
                (seeds.stream(&format!("keys/{name}")), seeds.choices(&format!("{name}/stake")));
            let mut key = || loop {
                if let Ok(key) = PrivateKey::new(rand::Rng::random(&mut random)) {
                    return KeyPair::new(key, crypto);
                }
            };
            let drawn = |voter: u32| group.spread.draw(&mut choices.at(&[SPREAD, voter.into()]));
            let parts: Vec<f64> = (0..group.voters).map(drawn).collect();
            let stakes = divided(Arktoshi::coins(group.stake.into()).value(), &parts);
            let voter = |stake: u64| {
                let keys = key();
                let stake = Arktoshi::new(stake).expect("a part of an amount");
                Self { address: keys.address(network_byte), keys, stake }
            };
            stakes.into_iter().map(voter).collect()
        };
        groups.iter().enumerate().map(of_group).collect()
    }
}

/// Divides a whole in proportion to numbers that are not negative. The parts sum to the whole.
fn divided(whole: u64, by: &[f64]) -> Vec<u64> {
    let total: f64 = by.iter().sum();
    let (mut sum, mut before) = (0.0, 0);
    let part = |(index, one): (usize, &f64)| {
        sum += one;
        let until = if index + 1 == by.len() { whole } else { ((whole as f64 * (sum / total)) as u64).min(whole) };
        let part = until.saturating_sub(before);
        before = before.max(until);
        part
    };
    by.iter().enumerate().map(part).collect()
}
