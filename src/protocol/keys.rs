//! Private and public keys, addresses, WIF. Source: protocol.md 1.

use std::fmt;

/// A secp256k1 private key. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey([u8; 32]);

/// 33 bytes in the shape of a compressed key. That the point exists is not proved: the chain's assets may name
/// keys off the curve (protocol.md 7, 21), signatures by them simply never verify.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 33]);

/// Network byte and RIPEMD160 of the 33 key bytes (no SHA256 first).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 21]);

/// A private key with its public key, computed once.
#[derive(Clone)]
pub struct KeyPair {
    private: PrivateKey,
    public: PublicKey,
}

impl KeyPair {
    /// SHA256 of the passphrase's UTF-8 bytes as private key; any string is accepted, "" too.
    pub fn from_passphrase(passphrase: &str) -> Self {
        todo!("{passphrase}")
    }
    pub fn public(&self) -> &PublicKey {
        &self.public
    }
    pub fn private(&self) -> &PrivateKey {
        &self.private
    }
}

impl PublicKey {
    pub fn from_bytes(bytes: [u8; 33]) -> Self {
        Self(bytes)
    }
    pub fn as_bytes(&self) -> &[u8; 33] {
        &self.0
    }
    pub fn address(&self, network_byte: u8) -> Address {
        todo!("{network_byte}")
    }
}

impl Address {
    pub fn from_bytes(bytes: [u8; 21]) -> Self {
        Self(bytes)
    }
    pub fn as_bytes(&self) -> &[u8; 21] {
        &self.0
    }
    pub fn network_byte(&self) -> u8 {
        self.0[0]
    }
}
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        { let _ = f; todo!() }
    }
}
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        { let _ = f; todo!() }
    }
}
impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
// Also wanted: FromStr (hex / base58check) with precise errors, WIF, multisignature keys, messages, BIP39.
