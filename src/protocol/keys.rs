//! Private and public keys, addresses, WIF, multisignature keys, messages, passphrases. Source: protocol.md 1.
//!
//! A passphrase is hashed as it is: no word list, no normalisation. A [`PublicKey`] is 33 bytes that need not be a
//! point; an [`Address`] is the network byte and RIPEMD160 of those bytes. Text forms are strict both ways.

mod address;
mod message;
mod multisignature;
mod passphrase;
mod text;
mod wif;

pub use address::Address;
pub use message::SignedMessage;
pub use multisignature::derive as multisignature_key;
pub use passphrase::generate_passphrase;
pub use text::{KeyError, decode_hex, hex_array};
pub(super) use text::{decode_hex_into, shorten, string_form};

use crate::protocol::crypto::{CryptoMode, curve, sha256};
use std::{fmt, str::FromStr, sync::OnceLock};

/// A secp256k1 private key, 1..n. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey([u8; 32]);

/// 33 bytes in the form of a compressed key. They need not be a point of the curve: the chain's assets may name
/// keys off the curve (protocol.md 7 item 21), whose signatures never verify.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 33]);

/// A private key with its public key, computed once. It signs by the treatment of signatures that it was made for.
#[derive(Clone, Debug)]
pub struct KeyPair {
    private: PrivateKey,
    public: PublicKey,
    crypto: CryptoMode,
    /// The network of the first request for an address, and the address there.
    address: OnceLock<(u8, Address)>,
}

impl PartialEq for KeyPair {
    fn eq(&self, other: &Self) -> bool {
        self.private == other.private
    }
}

impl Eq for KeyPair {}

impl KeyPair {
    /// The pair whose private key is SHA256 of the passphrase's UTF-8 bytes. Any string is accepted, "" too.
    pub fn from_passphrase(passphrase: &str, crypto: CryptoMode) -> Self {
        let private = PrivateKey::new(sha256(passphrase.as_bytes()));
        Self::new(private.expect("no text is known that hashes to 0 or past the order"), crypto)
    }

    /// The pair of a private key.
    pub fn new(private: PrivateKey, crypto: CryptoMode) -> Self {
        let public = PublicKey(private.to_secret().public_key(curve()).serialize());
        Self { private, public, crypto, address: OnceLock::new() }
    }

    /// The pair of a private key's bytes; refuses 0 and everything from the group order on.
    pub fn from_private(private: [u8; 32], crypto: CryptoMode) -> Result<Self, KeyError> {
        Ok(Self::new(PrivateKey::new(private)?, crypto))
    }

    /// The pair of a key in wallet import format; `wif_byte` is the network's (`Network::wif`).
    pub fn from_wif(text: &str, wif_byte: u8, crypto: CryptoMode) -> Result<Self, KeyError> {
        Self::from_private(wif::decode(text, wif_byte)?, crypto)
    }

    /// The wallet import format of the private key, for a compressed public key.
    pub fn to_wif(&self, wif_byte: u8) -> String {
        wif::encode(&self.private.0, wif_byte)
    }

    /// The public key.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The private key. Its `Debug` form does not show it.
    pub fn private(&self) -> &PrivateKey {
        &self.private
    }

    /// The treatment that its signatures are for.
    pub fn crypto(&self) -> CryptoMode {
        self.crypto
    }

    /// The address of the public key on a network, computed once for the first network it is asked for.
    pub fn address(&self, network_byte: u8) -> Address {
        let compute = || self.public.address(network_byte);
        let (network, address) = *self.address.get_or_init(|| (network_byte, compute()));
        if network == network_byte { address } else { compute() }
    }
}

impl PrivateKey {
    /// Refuses 0 and everything from the group order on.
    ///
    /// # Errors
    /// [`KeyError::PrivateRange`].
    pub fn new(bytes: [u8; 32]) -> Result<Self, KeyError> {
        match secp256k1::SecretKey::from_byte_array(bytes) {
            Ok(_) => Ok(Self(bytes)),
            Err(_) => Err(KeyError::PrivateRange),
        }
    }

    /// The 32 bytes of the key, big-endian.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(super) fn to_secret(&self) -> secp256k1::SecretKey {
        secp256k1::SecretKey::from_byte_array(self.0).expect("the range was checked when the key was made")
    }
}

impl PublicKey {
    /// Takes the bytes as they are. They need not be a point of the curve.
    pub fn from_bytes(bytes: [u8; 33]) -> Self {
        Self(bytes)
    }

    /// The 33 bytes: 2 for an even or 3 for an odd Y, then X, if the key is a point of the curve.
    pub fn as_bytes(&self) -> &[u8; 33] {
        &self.0
    }

    /// The address of this key on a network.
    pub fn address(&self, network_byte: u8) -> Address {
        Address::of_key(self, network_byte)
    }

    /// Returns true if the bytes are a point of the curve. Otherwise no signature by this key is ever valid.
    pub fn is_on_curve(&self) -> bool {
        self.to_point().is_some()
    }

    pub(super) fn to_point(self) -> Option<secp256k1::PublicKey> {
        secp256k1::PublicKey::from_byte_array_compressed(self.0).ok()
    }
}

/// 66 lower-case hex digits.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write_hex(f, &self.0)
    }
}

/// Reads 66 hex digits, upper or lower case. Does not check that the point is on the curve.
impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        hex_array("public key", text).map(Self)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(hidden)")
    }
}

string_form!(PublicKey, Address);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_examples_are_reproduced() {
        for (passphrase, private, public, address) in [
            (
                "spec sender",
                "793466ead0146f7c96851b77386bf67d12b7918c36cedebf0377f9e095a91d75",
                "03642c926b8bf47b05d48b296a4c12aa6455b0cc4449610e9c40d0a9493082f44e",
                "AMnzwMZ4Kgu5qrcqymcAwgaz9aG1WQ66Dw",
            ),
            (
                "spec recipient",
                "3294c06af41b56fdbb33eda6319cec59664ce67d99fe0af1da2b770d6bb7adf3",
                "0221ef22cc008e052fe5cb14059860181b6d58989b523450d07d00fb9cce9fd2a6",
                "AUKZWXcVmdpv9XBeqXQS5AQr2dRhjKxARH",
            ),
        ] {
            let keys = KeyPair::from_passphrase(passphrase, CryptoMode::Real);
            assert_eq!(hex::encode(keys.private().as_bytes()), private);
            assert_eq!(keys.public().to_string(), public);
            assert_eq!(keys.public().address(23).to_string(), address);
        }
        let sender = KeyPair::from_passphrase("spec sender", CryptoMode::Real);
        assert_eq!(sender.public().address(30).to_string(), "DBADq7e5Hx9DZtbT9hwQLZVVZ74cUbiejj");
        assert_eq!(sender.to_wif(186), "UautVuMmkg2WqBSShGvpEwgCDS8L6NHiD6htDfdwTrrhdHYfP1vM");
        assert_eq!(KeyPair::from_wif(&sender.to_wif(186), 186, CryptoMode::Real).unwrap(), sender);
    }

    #[test]
    fn a_private_key_outside_the_group_is_refused() {
        assert_eq!(KeyPair::from_private([0; 32], CryptoMode::Real), Err(KeyError::PrivateRange));
        assert_eq!(KeyPair::from_private([0xff; 32], CryptoMode::Real), Err(KeyError::PrivateRange));
    }

    #[test]
    fn a_key_off_the_curve_has_an_address_but_is_known_to_be_off() {
        let key: PublicKey = format!("02{}", "ff".repeat(32)).parse().unwrap();
        assert!(!key.is_on_curve());
        assert_eq!(key.address(23).network_byte(), 23);
        assert!("02ff".parse::<PublicKey>().unwrap_err().to_string().contains("66 hex digits"));
    }
}
