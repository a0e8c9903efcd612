//! A hasher for maps with ids or numbers as keys.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`IdHasher`]s.
pub(crate) type IdHash = BuildHasherDefault<IdHasher>;

/// A hasher that uses the last eight bytes of an id, which is a hash already (all addresses of a network begin alike). A map with this
/// hasher must never be iterated in its own order.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk::<8>() {
            self.0 ^= u64::from_le_bytes(*last);
        }
    }

    /// Spreads a small number over all bits: both halves of its product with 2⁶⁴ over the golden ratio.
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write_usize(&mut self, _length: usize) {}

    fn write_isize(&mut self, _variant: isize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
