//! The treatment of signatures: real ones, real ones that every node verifies again, or modelled ones.
//!
//! A modelled signature is a digest of the signer's public key and the signed digest, so anyone could make it and checking
//! it costs a hash. It has the form of a real one, and everything but signatures and the ids that depend on them stays
//! the same. A network has one treatment ([`NetworkConfig::crypto`](crate::protocol::NetworkConfig)), and keys sign by
//! the one they were made for ([`KeyPair`](crate::protocol::KeyPair)).

use super::sha256_of;
use crate::protocol::PublicKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The treatment of signatures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CryptoMode {
    /// Signed, and verified once in the process however many nodes ask.
    #[default]
    Real,
    /// Signed, and verified by every node that asks.
    EveryNode,
    /// Replaced by a cheap digest: for large studies.
    Modelled,
}

impl CryptoMode {
    /// Returns true if the cached result of verifying a signature is used.
    pub(in crate::protocol) fn remembers(self) -> bool {
        self != Self::EveryNode
    }

    pub(super) fn is_modelled(self) -> bool {
        self == Self::Modelled
    }
}

/// 32 bytes that stand for a signature, the first from 1 to 127.
pub(super) fn model(hash: &[u8; 32], public: &[u8; 33]) -> [u8; 32] {
    let mut digest = sha256_of(&[b"modelled", public, hash]);
    digest[0] = (digest[0] & 0x7f).max(1);
    digest
}

/// Returns true if bytes are the model of a Schnorr signature.
pub(super) fn is_schnorr_model(hash: &[u8; 32], signature: &[u8], public: &PublicKey) -> bool {
    let digest = model(hash, public.as_bytes());
    signature.len() == 64 && signature[..32] == digest && signature[32..] == digest
}
