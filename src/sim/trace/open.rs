//! SHA256 whose intermediate state can be saved, so that another process can continue it.

use crate::ledger::codec::saved;
use sha2::compress256;
use std::{mem, slice};

/// Bytes that are compressed together.
const BLOCK: usize = 64;

/// The hash of the bytes so far, open to more of them.
#[derive(Clone)]
pub(super) struct OpenSha256 {
    state: [u32; 8],
    /// The bytes that do not fill a block yet.
    rest: Vec<u8>,
    /// The number of bytes so far.
    length: u64,
}

saved!(struct OpenSha256 { state, rest, length });

impl Default for OpenSha256 {
    /// The digest of no bytes. Source: FIPS 180-4, 5.3.3.
    fn default() -> Self {
        let state =
            [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
        Self { state, rest: Vec::with_capacity(BLOCK), length: 0 }
    }
}

impl OpenSha256 {
    /// Adds bytes.
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if !self.rest.is_empty() {
            let (first, others) = bytes.split_at(bytes.len().min(BLOCK.saturating_sub(self.rest.len())));
            self.rest.extend_from_slice(first);
            bytes = others;
            if self.rest.len() < BLOCK {
                return;
            }
            let whole = mem::take(&mut self.rest);
            self.compress(&whole);
        }
        let (whole, rest) = bytes.split_at(bytes.len() - bytes.len() % BLOCK);
        self.compress(whole);
        self.rest.extend_from_slice(rest);
    }

    /// The hash of the bytes so far. Source: FIPS 180-4, 5.1.1.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut padded = self.clone();
        let zeros = (2 * BLOCK - 9 - self.rest.len()) % BLOCK;
        padded.update(&[0x80]);
        padded.update(&[0; BLOCK][..zeros]);
        padded.update(&(self.length * 8).to_be_bytes());
        let mut digest = [0; 32];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(padded.state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        digest
    }

    /// Whole blocks.
    fn compress(&mut self, blocks: &[u8]) {
        for block in blocks.chunks_exact(BLOCK) {
            compress256(&mut self.state, slice::from_ref(block.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use sha2::{Digest, Sha256};

    proptest! {
        #[test]
        fn it_is_sha256_however_the_bytes_come(parts in vec(vec(any::<u8>(), 0..200), 0..8)) {
            let mut open = OpenSha256::default();
            parts.iter().for_each(|part| open.update(part));
            prop_assert_eq!(open.digest(), <[u8; 32]>::from(Sha256::digest(parts.concat())));
        }
    }
}
