//! ECDSA in strict DER with low S. Source: protocol.md 2.1.
use crate::protocol::{KeyPair, PublicKey};

/// Deterministic (RFC 6979), low S, strict DER: 70 to 72 bytes, rarely less.
pub fn sign(keys: &KeyPair, hash: &[u8; 32]) -> Vec<u8> {
    todo!("{:?} {hash:?}", keys.public())
}

/// `Ok(false)` where the signature does not hold; `Err` where the DER cannot be parsed.
pub fn verify(key: &PublicKey, hash: &[u8; 32], der: &[u8]) -> Result<bool, InvalidSignature> {
    todo!("{key:?} {hash:?} {der:?}")
}

/// Unparsable DER.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("Invalid signature.")]
pub struct InvalidSignature;
