//! Wallet import format: `base58check(version ‖ key ‖ 01)`. Source: protocol.md 1.

use super::{KeyError, address::decode_check, text};

pub(super) fn encode(private: &[u8; 32], version: u8) -> String {
    let mut payload = [1; 34];
    payload[0] = version;
    payload[1..33].copy_from_slice(private);
    bs58::encode(payload).with_check().into_string()
}

pub(super) fn decode(text: &str, version: u8) -> Result<[u8; 32], KeyError> {
    let (bytes, length) = decode_check::<38>("WIF", text)?;
    if length != 34 {
        return Err(KeyError::Bytes { what: "WIF", found: text::shorten(text), bytes: length, allowed: 34 });
    }
    if bytes[0] != version {
        return Err(KeyError::WifVersion { found: bytes[0], allowed: version });
    }
    if bytes[33] != 1 {
        return Err(KeyError::WifCompression { found: bytes[33] });
    }
    Ok(bytes[1..33].try_into().expect("32 of 34 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_networks_version_is_refused() {
        let text = encode(&[7; 32], 186);
        assert_eq!(decode(&text, 186), Ok([7; 32]));
        assert_eq!(decode(&text, 170), Err(KeyError::WifVersion { found: 186, allowed: 170 }));
        assert!(decode("", 186).is_err());
    }
}
