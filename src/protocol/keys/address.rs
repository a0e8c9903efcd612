//! Addresses. Source: protocol.md 1.

use super::{KeyError, PublicKey, text};
use ripemd::{Digest, Ripemd160};
use std::{fmt, str::FromStr};

/// Network byte and RIPEMD160 of the 33 key bytes (no SHA256 first).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 21]);

impl Address {
    /// Takes the bytes as they are: the network byte, and 20 bytes of the hash.
    pub fn from_bytes(bytes: [u8; 21]) -> Self {
        Self(bytes)
    }

    /// The network byte and the 20 bytes of the hash, as on the wire.
    pub fn as_bytes(&self) -> &[u8; 21] {
        &self.0
    }

    /// The first byte, the same for all addresses of a network ([`Network::pub_key_hash`](crate::protocol::Network::pub_key_hash)).
    pub fn network_byte(&self) -> u8 {
        self.0[0]
    }

    pub(super) fn of_key(key: &PublicKey, network_byte: u8) -> Self {
        let mut bytes = [network_byte; 21];
        bytes[1..].copy_from_slice(&Ripemd160::digest(key.as_bytes()));
        Self(bytes)
    }
}

/// Base58check; 34 characters for the network bytes 23 and 30.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0u8; 40];
        let length =
            bs58::encode(&self.0).with_check().onto(&mut buffer[..]).expect("25 bytes are at most 35 characters");
        f.write_str(std::str::from_utf8(&buffer[..length]).expect("base58 is ASCII"))
    }
}

/// From base58check of exactly 21 bytes, whatever the network byte.
impl FromStr for Address {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bytes = decode_check::<25>("address", text)?;
        let payload: Result<[u8; 21], _> = bytes.0[..bytes.1].try_into();
        payload.map(Self).map_err(|_| wrong_size("address", text, bytes.1, 21))
    }
}

/// The payload of base58check in a buffer that has room for its checksum, and the payload's length.
pub(super) fn decode_check<const N: usize>(what: &'static str, text: &str) -> Result<([u8; N], usize), KeyError> {
    let mut buffer = [0; N];
    let found = || text::shorten(text);
    let length = bs58::decode(text).onto(&mut buffer[..]).map_err(|error| match error {
        bs58::decode::Error::BufferTooSmall => wrong_size(what, text, bs58_size(text), N - 4),
        _ => KeyError::Base58 { what, found: found() },
    })?;
    let payload = length.checked_sub(4).ok_or_else(|| wrong_size(what, text, length, N - 4))?;
    let hash = crate::protocol::crypto::sha256(&crate::protocol::crypto::sha256(&buffer[..payload]));
    if hash[..4] != buffer[payload..length] {
        return Err(KeyError::Checksum { what, found: found() });
    }
    Ok((buffer, payload))
}

fn wrong_size(what: &'static str, text: &str, bytes: usize, allowed: usize) -> KeyError {
    KeyError::Bytes { what, found: text::shorten(text), bytes, allowed }
}

/// About how many bytes a base58 text too long for its buffer holds, without its checksum.
fn bs58_size(text: &str) -> usize {
    (text.len() * 733 / 1000).saturating_sub(4)
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_go_both_ways() {
        let text = "AMnzwMZ4Kgu5qrcqymcAwgaz9aG1WQ66Dw";
        let address: Address = text.parse().unwrap();
        assert_eq!(address.to_string(), text);
        assert_eq!(address.network_byte(), 23);
    }

    #[test]
    fn each_fault_has_its_error() {
        let parse = |text: &str| text.parse::<Address>().unwrap_err();
        assert!(matches!(parse("AMnzwMZ4Kgu5qrcqymcAwgaz9aG1WQ66Dv"), KeyError::Checksum { .. }));
        assert!(matches!(parse("0MnzwMZ4Kgu5qrcqymcAwgaz9aG1WQ66Dv"), KeyError::Base58 { .. }));
        assert!(matches!(parse(""), KeyError::Bytes { .. }));
        // 9,000 digits of base58 are some 6,590 bytes.
        assert!(matches!(parse(&"A".repeat(9000)), KeyError::Bytes { bytes: 6_500..6_600, allowed: 21, .. }));
        let short = bs58::encode([23, 1, 2]).with_check().into_string();
        assert!(matches!(parse(&short), KeyError::Bytes { bytes: 3, allowed: 21, .. }));
    }
}
