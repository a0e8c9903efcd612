//! Chains that are drawn without a network, as far as finality looks at them.

use super::LiskBft;
use crate::protocol::{Arktoshi, Block, BlockHeader, BlockId, Height, PublicKey, Timestamp};
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// A key for each number.
pub(in crate::ledger) fn key(index: usize) -> PublicKey {
    let mut bytes = [2; 33];
    bytes[1..9].copy_from_slice(&index.to_be_bytes());
    PublicKey::from_bytes(bytes)
}

/// A block as far as finality looks at it.
pub(super) fn block(height: Height, generator: PublicKey, forged_before: Height) -> Block {
    let header = BlockHeader {
        version: 0,
        timestamp: Timestamp(height.0),
        height,
        previous: None,
        number_of_transactions: 0,
        total_amount: Arktoshi::ZERO,
        total_fee: Arktoshi::ZERO,
        reward: Arktoshi::ZERO,
        payload_length: 0,
        payload_hash: [0; 32],
        generator,
        forged_before,
        signature: Vec::new(),
    };
    Block::new(BlockId::Numeric(height.0.into()), header, Vec::new())
}

/// Returns the height and the delay of each block of a chain under Lisk-BFT, in slots, after the first three rounds. Each round is
/// drawn anew from `seed`, with `active` active delegates and `standby` others, which forge too. A slot is missed with probability
/// `missed`.
pub(crate) fn lisk(active: usize, standby: usize, rounds: u32, missed: f64, seed: u64) -> Vec<(Height, u32)> {
    lisk_in_order((active, standby), rounds, missed, seed, |_, order, random| order.shuffle(random))
}

/// As [`lisk`], with the order of each round from `put_in_order`, which is given the number of the round and the order of the one before.
pub(super) fn lisk_in_order(
    (active, standby): (usize, usize),
    rounds: u32,
    missed: f64,
    seed: u64,
    put_in_order: impl Fn(u32, &mut Vec<PublicKey>, &mut ChaCha8Rng),
) -> Vec<(Height, u32)> {
    let batch = (active + standby) as u32;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut known, mut forged) = (LiskBft::default(), BTreeMap::new());
    let (mut height, mut slot) = (Height::GENESIS, 0);
    let (mut slots, mut delays) = (BTreeMap::new(), Vec::new());
    let mut order: Vec<PublicKey> = (0..active + standby).map(key).collect();
    for round in 0..rounds {
        put_in_order(round, &mut order, &mut random);
        let (first, last) = (height.next(), Height(height.0 + batch));
        while height < last {
            let owner = order[slot % order.len()];
            slot += 1;
            if random.random_bool(missed) {
                continue;
            }
            height = height.next();
            slots.insert(height, slot);
            let before = forged.insert(owner, height).unwrap_or(Height(0));
            let was = known.height();
            known.takes(&block(height, owner, before), (0..active).map(key), first, last);
            for now_final in was.0 + 1..=known.height().0 {
                let delay = slots.get(&Height(now_final)).map_or(0, |then| slot - then);
                delays.push((Height(now_final), delay as u32));
            }
        }
    }
    delays.retain(|(height, _)| height.0 > 3 * batch);
    delays
}
