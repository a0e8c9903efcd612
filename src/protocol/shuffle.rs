//! The forging order of a round. Source: consensus.md 1.3.

use super::{Round, crypto::sha256};

/// For each place of the forging order the index into the ranking. The first four bytes of every digest swap one
/// place each, then one place is passed over: an oddity of the chain that every node must share.
pub fn forging_order(round: Round, delegates: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..delegates).collect();
    let mut seed = sha256(round.to_string().as_bytes());
    let step = if planted!(ShuffleEveryPlace) { 4 } else { 5 };
    for start in (0..delegates).step_by(step) {
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
        assert_eq!(forging_order(Round(1), 5), [0, 4, 3, 2, 1]);
        assert_eq!(forging_order(Round(2), 5), [1, 2, 4, 3, 0]);
        assert_eq!(forging_order(Round(1), 7), [2, 1, 5, 0, 6, 3, 4]);
        assert_eq!(forging_order(Round(1), 0), [0; 0]);
        assert_eq!(forging_order(Round(2), 51)[..6], [11, 13, 43, 42, 32, 6]);
    }
}
