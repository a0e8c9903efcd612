//! The vote weights of delegates at genesis.

use crate::sim::network::ListOrFile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest exponent of Zipf's law.
pub(crate) const EXPONENT_LIMIT: f64 = 10.0;
/// The part of rank 1 before the coins are divided. All parts are whole, so their sum does not depend on an order.
const SCALE: f64 = (1_u64 << 60) as f64;

/// The vote weight of each delegate at genesis. Each delegate holds it as coins of its own and votes for itself. Coins that no delegate
/// gets stay in a wallet that votes for no delegate, so the supply is always the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VoteWeights {
    /// All coins but those of accounts and agents, in equal parts. Active delegates get one coin more than standby ones.
    #[default]
    Equal,
    /// The same coins by Zipf's law with this exponent, from 0 to 10. The weight of `genesis_k` is in proportion to 1 / k^exponent,
    /// rounded down to whole arktoshi.
    Zipf(f64),
    /// Weights in arktoshi, one for each delegate by its number, standby delegates included.
    List(#[schemars(with = "ListOrFile<u64>")] Vec<u64>),
}

impl VoteWeights {
    pub(super) fn is_equal(&self) -> bool {
        *self == Self::Equal
    }

    /// The weights of `delegates` delegates by number, of `spare` arktoshi in all. `None` if they are equal.
    pub(super) fn divide(&self, delegates: usize, spare: u64) -> Option<Vec<u64>> {
        match self {
            Self::Equal => None,
            Self::Zipf(exponent) => Some(zipf(*exponent, delegates as u32, spare)),
            Self::List(weights) => Some(weights.clone()),
        }
    }
}

/// Divides a whole by Zipf's law. With p(k) = 2^60 / k^exponent, rounded to the nearest whole number, rank k gets whole * p(k) / sum of
/// all p, rounded down.
fn zipf(exponent: f64, ranks: u32, whole: u64) -> Vec<u64> {
    let parts: Vec<u128> = (1..=ranks).map(|rank| (SCALE / power(rank.into(), exponent)).round() as u128).collect();
    let sum: u128 = parts.iter().sum();
    parts.iter().map(|part| (u128::from(whole) * part / sum) as u64).collect()
}

/// A power with an exponent of 0 or more. Products and square roots are rounded alike on every machine, and `powf` is not.
fn power(base: f64, exponent: f64) -> f64 {
    let mut power = (0..exponent as u32).fold(1.0, |power, _| power * base);
    let (mut root, mut rest) = (base, exponent.fract());
    while rest > 0.0 {
        root = root.sqrt();
        rest *= 2.0;
        if rest >= 1.0 {
            power *= root;
            rest -= 1.0;
        }
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_s_law_divides_a_whole_by_rank() {
        assert_eq!(zipf(1.0, 3, 12), [6, 3, 2], "6.5, 3.3 and 2.2");
        assert_eq!(zipf(0.0, 4, 7), [1; 4], "three are left over");
        assert_eq!(zipf(2.0, 1, 5), [5]);
        for exponent in [0.0, 0.3, 0.5, 1.0, 1.1, 2.75, EXPONENT_LIMIT] {
            for ranks in [1, 2, 51, 2_000] {
                let whole = 11_500_000_000_000_000;
                let found = zipf(exponent, ranks, whole);
                let sum: f64 = (1..=ranks).map(|rank| f64::from(rank).powf(-exponent)).sum();
                for (rank, found) in (1..=ranks).zip(&found) {
                    let expected = whole as f64 * f64::from(rank).powf(-exponent) / sum;
                    assert!(
                        (*found as f64 - expected).abs() <= 1.0 + 1e-13 * expected,
                        "{exponent}, {rank} of {ranks}"
                    );
                }
                let left = whole - found.iter().sum::<u64>();
                assert!(left < u64::from(ranks), "{exponent}, {ranks}: {left} are left over");
            }
        }
    }

    #[test]
    fn a_power_is_the_power() {
        for (base, exponent) in [(2.0, 0.5), (3.0, 2.0), (10.0, 1.75), (2_000.0, 9.999), (7.0, 1e-300), (1.0, 0.1)] {
            let expected = f64::powf(base, exponent);
            assert!((power(base, exponent) - expected).abs() <= 1e-13 * expected, "{base}^{exponent}");
        }
    }
}
