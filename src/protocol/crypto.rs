//! Hashes and signatures. Source: protocol.md 2.
pub mod ecdsa;
pub mod schnorr;

use sha2::{Digest, Sha256};

/// Single SHA256, the chain's only hash beside base58check's.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
