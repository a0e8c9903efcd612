//! Schnorr signatures, real ones by the crate `schnorr2019` and modelled ones. Source: protocol.md 2.2.

use super::{CryptoMode, mode};
use crate::protocol::{KeyPair, PublicKey};
pub use schnorr2019::Item;

/// Signs a digest deterministically: `R.x ‖ s`, 64 bytes.
pub fn sign(hash: &[u8; 32], keys: &KeyPair) -> [u8; 64] {
    if keys.crypto().is_modelled() {
        let model = mode::model(hash, keys.public().as_bytes());
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&model);
        signature[32..].copy_from_slice(&model);
        return signature;
    }
    schnorr2019::sign(hash, &keys.private().to_secret())
}

/// Returns true if a signature is valid. Returns false also for another length, numbers out of range and keys off the curve.
pub fn verify(hash: &[u8; 32], signature: &[u8], public: &PublicKey, crypto: CryptoMode) -> bool {
    if crypto.is_modelled() {
        return mode::is_schnorr_model(hash, signature, public);
    }
    schnorr2019::verify(hash, signature, public.as_bytes())
}

/// Returns true if all signatures are valid. The result is that of single checks, in less than half the time for a full block.
pub fn verify_batch(items: &[Item], crypto: CryptoMode) -> bool {
    if crypto.is_modelled() {
        let is_model =
            |item: &Item| mode::is_schnorr_model(&item.hash, &item.signature, &PublicKey::from_bytes(item.public));
        return items.iter().all(is_model);
    }
    schnorr2019::verify_batch(items)
}
