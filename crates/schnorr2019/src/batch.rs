//! Many signatures at once, as one sum that must be zero.

use crate::{
    Item, challenge,
    curve_point::{Affine, Compressed},
    multiscalar::Terms,
    sha256_of, split,
};
use k256::Scalar;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Returns true if all hold; nothing if the sum cannot be formed this way.
pub(crate) fn holds(items: &[Item]) -> Option<bool> {
    let mut coefficients = Coefficients::of(items);
    let mut generator = Scalar::ZERO;
    // Equal keys and equal R share a term: fewer terms, and equal points never meet in the sum.
    let (mut keys, mut nonces) = (BTreeMap::<[u8; 33], Scalar>::new(), BTreeMap::<[u8; 32], Vec<u128>>::new());
    for item in items {
        let Some((r, s)) = split(&item.signature) else { return Some(false) };
        let number = coefficients.next();
        let coefficient = Scalar::from(number);
        let e = challenge(&r, &item.public, &item.hash);
        generator += coefficient * s;
        *keys.entry(item.public).or_insert(Scalar::ZERO) -= coefficient * e;
        nonces.entry(r).or_default().push(number);
    }
    let mut terms = Terms::with_capacity(2 + 2 * keys.len() + nonces.len());
    terms.add(&generator, Affine::generator());
    let compressed = keys.keys().map(Compressed::Key);
    let compressed: Vec<_> = compressed.chain(nonces.keys().map(Compressed::SquareY)).collect();
    let Some(points) = decompress(&compressed) else { return Some(false) };
    let (key_points, nonce_points) = points.split_at(keys.len());
    for (scalar, point) in keys.values().zip(key_points) {
        terms.add(scalar, *point);
    }
    for (numbers, point) in nonces.values().zip(nonce_points) {
        match numbers[..] {
            [number] => terms.add_short(number, point.negated()),
            _ => terms.add(&numbers.iter().map(|number| Scalar::from(*number)).sum(), point.negated()),
        }
    }
    terms.sum_is_zero()
}

/// All points, four at a time (eight are slower, three no faster); nothing if one is off the curve.
fn decompress(compressed: &[Compressed<'_>]) -> Option<Vec<Affine>> {
    let (fours, rest) = compressed.as_chunks::<4>();
    let mut points = Vec::with_capacity(compressed.len());
    for four in fours {
        points.extend(Affine::decompress(*four)?);
    }
    for one in rest {
        points.extend(Affine::decompress([*one])?);
    }
    Some(points)
}

/// Numbers of 128 bits from a hash of the batch, two from each digest.
struct Coefficients {
    seed: [u8; 32],
    count: u64,
    ready: Option<u128>,
}

impl Coefficients {
    fn of(items: &[Item]) -> Self {
        let mut hash = Sha256::new();
        for item in items {
            hash.update(item.hash);
            hash.update(item.signature);
            hash.update(item.public);
        }
        Self { seed: hash.finalize().into(), count: 0, ready: None }
    }

    fn next(&mut self) -> u128 {
        if let Some(ready) = self.ready.take() {
            return ready;
        }
        let digest = sha256_of(&[&self.seed, &self.count.to_le_bytes()]);
        self.count += 1;
        let half = |bytes: &[u8]| u128::from_le_bytes(bytes.try_into().expect("16 of 32 bytes"));
        self.ready = Some(half(&digest[16..]));
        half(&digest[..16])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{sign, tests::keys, verify_batch};

    fn items(count: u32, senders: u32) -> Vec<Item> {
        let item = |number: u32| {
            let (secret, public) = keys(&format!("batch {}", number % senders));
            let hash = sha256_of(&[&number.to_le_bytes()]);
            Item { hash, signature: sign(&hash, &secret), public }
        };
        (0..count).map(item).collect()
    }

    #[test]
    fn a_batch_holds_exactly_when_all_its_signatures_do() {
        for (count, senders) in [(1, 1), (8, 8), (9, 2), (33, 33)] {
            let items = items(count, senders);
            assert_eq!(holds(&items), Some(true), "{count} of {senders}");
            for bit in [0, 77, 255, 256, 300, 511] {
                let mut broken = items.clone();
                broken[count as usize / 2].signature[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(holds(&broken), Some(false), "{count} of {senders}, bit {bit}");
            }
        }
    }

    #[test]
    fn two_faults_do_not_make_up_for_one_another() {
        let mut items = items(10, 10);
        let (one, other) = (items[3].signature, items[4].signature);
        items[3].signature[32..].copy_from_slice(&other[32..]);
        items[4].signature[32..].copy_from_slice(&one[32..]);
        assert_eq!(holds(&items), Some(false));
    }

    #[test]
    fn the_same_signature_twice_and_keys_off_the_curve_are_no_trouble() {
        let mut items = items(10, 10);
        items[3] = items[4];
        assert!(verify_batch(&items));
        items[5].public = [3; 33];
        assert!(!verify_batch(&items));
        assert!(verify_batch(&[]));
    }
}
