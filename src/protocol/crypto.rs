//! Hashes and signatures over 32-byte digests. Source: protocol.md 2.
//!
//! [`ecdsa`] and [`schnorr`] sign and verify; `transaction` and `block` decide which of the two applies.
//! Everything here is a function of its arguments; the
//! curve context is a constant table.

pub mod ecdsa;
pub(crate) mod mode;
pub mod schnorr;

pub use mode::CryptoMode;

use secp256k1::{All, Secp256k1};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The tables of libsecp256k1, made once.
static CURVE: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

/// Single SHA256, the chain's only hash beside base58check's.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Single SHA256 over several pieces as if they were joined.
pub fn sha256_of(pieces: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update(piece);
    }
    hash.finalize().into()
}

pub(super) fn curve() -> &'static Secp256k1<All> {
    &CURVE
}
