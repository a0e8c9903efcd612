//! The forging order of a round. Source: consensus.md 1.3.

use super::{RoundNumber, crypto::sha256};

/// For each place of the forging order the index into the ranking. The first four bytes of every digest swap one
/// place each, then one place is passed over: an oddity of the chain that every node must share.
pub fn forging_order(round: RoundNumber, delegates: usize) -> Vec<usize> {
    shuffled(round, delegates, 5)
}

/// The same without the oddity: every place is swapped.
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

#[cfg(test)]
mod tests {
    use super::*;

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
