//! Decides whether a number is a square modulo p, without taking its root.
//!
//! A root costs 255 squarings; the Jacobi symbol costs about as much as a greatest common divisor. For public data
//! only: the time taken depends on the number.
//!
//! The laws used, for odd f > 0: `(2/f)` is -1 exactly when f is 3 or 5 modulo 8; for odd f and g `(g/f)` and `(f/g)`
//! differ exactly when both are 3 modulo 4; and adding a multiple of f to g changes nothing. So g is made divisible
//! by powers of two by adding multiples of f, divided, and swapped with f when f has become the longer one. That looks
//! only at low bits, hence 62 steps are done on single words and then applied to the long numbers all at once.

/// p, lowest limb first.
const P: Long = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];

/// Steps on single words before the long numbers follow.
const STEPS: u32 = 62;
/// About ten rounds are needed; for a number that takes more than this (none is known) the root decides.
const MAX_ROUNDS: usize = 25;

/// 256 bits, lowest limb first.
type Long = [u64; 4];

/// Returns true if a number below p, big-endian, is a square modulo p and not 0. Nothing if the rounds did not suffice.
pub(crate) fn is_square(number: &[u8; 32]) -> Option<bool> {
    let mut g: Long = std::array::from_fn(|limb| {
        u64::from_be_bytes(number[24 - 8 * limb..32 - 8 * limb].try_into().expect("8 bytes"))
    });
    if g == [0; 4] {
        return Some(false);
    }
    let (mut f, mut state) = (P, State { lead: -1, minus: 0 });
    for _ in 0..MAX_ROUNDS {
        let steps = state.advance(f[0], g[0]);
        (f, g) = (steps.f.apply(&f, &g), steps.g.apply(&f, &g));
        if f == [1, 0, 0, 0] {
            return Some(state.minus & 1 == 0);
        }
    }
    None
}

/// The state between rounds.
struct State {
    /// An estimate by how many bits g is the longer one; below 0 it is time to swap.
    lead: i64,
    /// The lowest bit tells whether the symbol has changed its sign.
    minus: u64,
}

/// `(here · f + there · g) / 2^62`.
#[derive(Clone, Copy)]
struct Row {
    here: u64,
    there: u64,
}

struct Steps {
    f: Row,
    g: Row,
}

impl State {
    /// 62 steps on the lowest words, as the two combinations of f and g they amount to.
    fn advance(&mut self, mut f: u64, mut g: u64) -> Steps {
        let (mut rows, mut left) = (Steps { f: Row { here: 1, there: 0 }, g: Row { here: 0, there: 1 } }, STEPS);
        loop {
            let zeros = (g | u64::MAX << left).trailing_zeros();
            g >>= zeros;
            rows.f = Row { here: rows.f.here << zeros, there: rows.f.there << zeros };
            self.lead -= i64::from(zeros);
            left -= zeros;
            self.minus ^= u64::from(zeros) & (f >> 1 ^ f >> 2);
            if left == 0 {
                return rows;
            }
            let most = if self.lead < 0 {
                self.lead = -self.lead;
                self.minus ^= (f & g) >> 1;
                std::mem::swap(&mut f, &mut g);
                (rows.f, rows.g) = (rows.g, rows.f);
                6
            } else {
                4
            };
            // As many low bits of g may go as f is not longer than g, and as steps are left.
            let bits = (self.lead + 1).min(i64::from(left)).min(most) as u32;
            let factor = minus_inverse(f).wrapping_mul(g) & ((1 << bits) - 1);
            g = g.wrapping_add(f.wrapping_mul(factor));
            rows.g.here += rows.f.here * factor;
            rows.g.there += rows.f.there * factor;
        }
    }
}

/// `-1/f` modulo 64 for odd f: `f·(2 - f²)` is right to six bits, since `(1 - f²)²` is divisible by 64.
fn minus_inverse(f: u64) -> u64 {
    f.wrapping_mul(f.wrapping_mul(f).wrapping_sub(2))
}

impl Row {
    /// The combination, which is divisible by 2^62 and, the factors adding up to 2^62 at most, not longer than the
    /// longer of the two.
    fn apply(&self, f: &Long, g: &Long) -> Long {
        let (mut carry, mut low, mut result) = (0u128, 0u64, [0; 4]);
        for limb in 0..4 {
            // Each product is below 2^126, so that the sum with a carry below 2^64 fits.
            carry += u128::from(self.here) * u128::from(f[limb]) + u128::from(self.there) * u128::from(g[limb]);
            if limb > 0 {
                result[limb - 1] = low >> STEPS | (carry as u64) << (64 - STEPS);
            }
            low = carry as u64;
            carry >>= 64;
        }
        result[3] = low >> STEPS | (carry as u64) << (64 - STEPS);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha256_of;
    use k256::{FieldBytes, FieldElement};

    /// The same by taking the root.
    fn has_root(number: &[u8; 32]) -> bool {
        let element = FieldElement::from_bytes(&FieldBytes::from(*number)).unwrap();
        !bool::from(element.is_zero()) && bool::from(element.sqrt().is_some())
    }

    #[test]
    fn the_symbol_says_what_the_root_says() {
        let mut numbers: Vec<[u8; 32]> = (0..5000u32).map(|seed| sha256_of(&[&seed.to_le_bytes()])).collect();
        for small in 0..=255 {
            let mut number = [0; 32];
            number[31] = small;
            numbers.push(number);
            let mut large = [0xff; 32];
            large[27] = 0xfe;
            (large[30], large[31]) = (0xfb, small);
            numbers.push(large);
            let mut sparse = [0; 32];
            sparse[usize::from(small) / 8] = 1 << (small % 8);
            numbers.push(sparse);
        }
        for number in numbers {
            assert_eq!(is_square(&number), Some(has_root(&number)), "{}", hex::encode(number));
        }
    }
}
