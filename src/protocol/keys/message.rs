//! Signed messages: ECDSA over SHA256 of the text; no prefix takes part. Source: protocol.md 1.

use super::{KeyPair, PublicKey};
use crate::protocol::crypto::{CryptoMode, ecdsa, sha256};
use serde::{Deserialize, Serialize};

/// A text with the key that signed it and the signature (DER in hex).
///
/// ```
/// use dposlab::protocol::{KeyPair, crypto::CryptoMode::Real, keys::SignedMessage};
///
/// let mut message = SignedMessage::sign("hello", &KeyPair::from_passphrase("my secret", Real));
/// assert!(message.verify(Real));
/// message.message.push('!');
/// assert!(!message.verify(Real));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignedMessage {
    pub public_key: PublicKey,
    pub signature: String,
    pub message: String,
}

impl SignedMessage {
    pub fn sign(message: &str, keys: &KeyPair) -> Self {
        let signature = hex::encode(ecdsa::sign(&sha256(message.as_bytes()), keys));
        Self { public_key: *keys.public(), signature, message: message.to_owned() }
    }

    /// Returns true if the signature is valid. Returns false also if it is not hex or DER.
    pub fn verify(&self, crypto: CryptoMode) -> bool {
        let hash = sha256(self.message.as_bytes());
        super::decode_hex(&self.signature)
            .is_some_and(|signature| ecdsa::verify(&hash, &signature, &self.public_key, crypto))
    }
}
