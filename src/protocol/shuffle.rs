//! The forging order of a round, or a lottery for each of its slots. Sources: consensus.md 1.3; B. David et al.,
//! Ouroboros Praos (2018).

use super::{PublicKey, RoundNumber, Slot, crypto::sha256};

/// For each place of the forging order the index into the ranking. The first four bytes of every digest swap one
/// place each, and the fifth place is skipped: a quirk of the chain that every node must share.
pub fn forging_order(round: RoundNumber, delegates: usize) -> Vec<usize> {
    shuffled(round, delegates, 5)
}

/// The forging order without the quirk: every place is swapped.
pub fn forging_order_of_every_place(round: RoundNumber, delegates: usize) -> Vec<usize> {
    shuffled(round, delegates, 4)
}

fn shuffled(round: RoundNumber, delegates: usize, places_a_digest: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..delegates).collect();
    let mut seed = sha256(round.to_string().as_bytes());
    for start in (0..delegates).step_by(places_a_digest) {
        for (place, byte) in (start..delegates).zip(&seed[..4]) {
            order.swap(place, usize::from(*byte) % delegates);
        }
        seed = sha256(&seed);
    }
    order
}

/// The number that a delegate draws for a slot. It owns the slot if the number is below [`chance`]. The number is that of the slot in
/// the sequence of SplitMix64 that begins with the delegate's key, so every node can compute it in advance. In Ouroboros Praos only the
/// delegate knows it, until it shows a proof. Source: G. Steele et al., Fast splittable pseudorandom number generators (2014).
pub fn lot(slot: Slot, key: &PublicKey) -> u64 {
    let begin = u64::from_be_bytes(*key.as_bytes().last_chunk().expect("a key has 33 bytes"));
    let mut mixed = begin.wrapping_add(u64::from(slot.0).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// The chance that a delegate with this share of the vote weight owns a slot, out of 2^64: φ = 1 - (1 - f)^share, with f slots in a
/// million that have an owner. So the chance of a slot does not depend on how the weight is divided.
pub fn chance(share: f64, active_per_million: u32) -> u64 {
    let empty = 1.0 - f64::from(active_per_million) / 1e6;
    // `libm::pow` gives the same result on all machines, unlike the standard library's power.
    ((1.0 - libm::pow(empty, share)) * 18_446_744_073_709_551_616.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{KeyPair, crypto::CryptoMode};

    /// The weight of one delegate, divided among two, gives the pair the same chance: 1 - (1 - φ)² = f.
    #[test]
    fn a_chance_does_not_depend_on_how_weight_is_divided() {
        let whole = chance(1.0, 50_000) as f64 / 2_f64.powi(64);
        let half = chance(0.5, 50_000) as f64 / 2_f64.powi(64);
        assert!((whole - 0.05).abs() < 1e-12, "{whole}");
        assert!((1.0 - (1.0 - half).powi(2) - 0.05).abs() < 1e-12, "{half}");
        assert_eq!(chance(0.0, 50_000), 0);
    }

    /// A delegate with all of the weight owns 1,000 of 20,000 slots, but for 4.5 standard deviations of a binomial distribution; and two
    /// delegates own as many together as chance allows.
    #[test]
    fn lots_are_even_and_of_each_delegate_alone() {
        let keys = ["one", "two"].map(|name| *KeyPair::from_passphrase(name, CryptoMode::Real).public());
        let owned = |key: &PublicKey, slot: u32| lot(Slot(slot), key) < chance(1.0, 50_000);
        let counts = keys.map(|key| (0..20_000).filter(|slot| owned(&key, *slot)).count());
        assert!(counts.iter().all(|count| count.abs_diff(1_000) < 139), "{counts:?}");
        let both = (0..20_000).filter(|slot| keys.iter().all(|key| owned(key, *slot))).count();
        assert!(both.abs_diff(50) < 32, "{both}");
    }

    #[test]
    fn the_contract_examples_are_reproduced() {
        assert_eq!(forging_order(RoundNumber(1), 5), [0, 4, 3, 2, 1]);
        assert_eq!(forging_order(RoundNumber(2), 5), [1, 2, 4, 3, 0]);
        assert_eq!(forging_order(RoundNumber(1), 7), [2, 1, 5, 0, 6, 3, 4]);
        assert_eq!(forging_order(RoundNumber(1), 0), [0; 0]);
        assert_eq!(forging_order(RoundNumber(2), 51)[..6], [11, 13, 43, 42, 32, 6]);
        // Digest `6b86b273..`: 0-2, 1-4, 2-3, 3-0, as above; then, where the reference stops, digest `9c2e4d8f..`: 4-1.
        assert_eq!(forging_order_of_every_place(RoundNumber(1), 5), [0, 1, 3, 2, 4]);
    }
}
