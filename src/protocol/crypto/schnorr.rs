//! The 2019 draft of Schnorr signatures, not BIP340. Source: protocol.md 2.2.
use crate::protocol::{KeyPair, PublicKey};

pub fn sign(keys: &KeyPair, hash: &[u8; 32]) -> [u8; 64] {
    todo!("{:?} {hash:?}", keys.public())
}

/// Whether the signature holds; never an error.
pub fn verify(key: &PublicKey, hash: &[u8; 32], signature: &[u8]) -> bool {
    todo!("{key:?} {hash:?} {signature:?}")
}
