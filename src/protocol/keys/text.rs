//! Text forms: hex both ways, the errors of all text forms, and `Serialize`/`Deserialize` by way of them.

use std::fmt;

/// The reason why a text is not the key, address or id it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("{what} is {found:?}, allowed are {digits} hex digits")]
    Hex { what: &'static str, found: String, digits: usize },
    #[error("the private key is 0 or not below the order of the group")]
    PrivateRange,
    #[error("{what} is {found:?}, allowed is base58 (digits and letters without 0, O, I, l)")]
    Base58 { what: &'static str, found: String },
    #[error("Invalid checksum: the last 4 bytes of {what} {found:?} do not belong to the rest")]
    Checksum { what: &'static str, found: String },
    #[error("{what} {found:?} holds {bytes} bytes, allowed are {allowed}")]
    Bytes { what: &'static str, found: String, bytes: usize, allowed: usize },
    #[error("Invalid network version: the WIF begins with {found}, allowed is {allowed}")]
    WifVersion { found: u8, allowed: u8 },
    #[error("the WIF ends with {found}, allowed is 1 (a compressed public key)")]
    WifCompression { found: u8 },
    #[error("{what} is {found:?}, allowed is {allowed}")]
    Other { what: &'static str, found: String, allowed: &'static str },
}

/// Reads `N` bytes from `2 * N` hex digits, upper or lower case.
pub fn hex_array<const N: usize>(what: &'static str, text: &str) -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    match decode_into(text.as_bytes(), &mut bytes) {
        true => Ok(bytes),
        false => Err(KeyError::Hex { what, found: shorten(text), digits: 2 * N }),
    }
}

/// Decodes any number of bytes from hex digits. Returns `None` for an odd number of digits or another character.
pub fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; text.len() / 2];
    decode_into(text.as_bytes(), &mut bytes).then_some(bytes)
}

/// Fills a buffer from twice as many hex digits. Returns false for another number of digits or another character.
pub(in crate::protocol) fn decode_hex_into(text: &str, bytes: &mut [u8]) -> bool {
    decode_into(text.as_bytes(), bytes)
}

fn decode_into(digits: &[u8], bytes: &mut [u8]) -> bool {
    if digits.len() != 2 * bytes.len() {
        return false;
    }
    // Values past 15 mark bytes that are no digit; collecting them keeps the loop free of branches.
    let mut seen = 0;
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let (high, low) = (VALUES[usize::from(pair[0])], VALUES[usize::from(pair[1])]);
        seen |= high | low;
        *byte = high << 4 | low & 15;
    }
    seen < 16
}

/// The value of every hex digit, 255 for every other byte.
const VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// Lower-case hex digits of bytes.
pub(in crate::protocol) fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let mut buffer = [0; 128];
    for part in bytes.chunks(64) {
        let digits = &mut buffer[..2 * part.len()];
        hex::encode_to_slice(part, digits).expect("two digits a byte");
        f.write_str(std::str::from_utf8(digits).expect("hex digits are ASCII"))?;
    }
    Ok(())
}

/// The first 80 characters of an input, for a message.
pub(in crate::protocol) fn shorten(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// `Serialize` and `Deserialize` as the string of `Display` and `FromStr`.
macro_rules! string_form {
    ($($name:ty),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub(in crate::protocol) use string_form;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_strict_about_length_and_digits_but_not_about_case() {
        assert_eq!(hex_array::<2>("it", "0aFf"), Ok([0x0a, 0xff]));
        for wrong in ["", "0a", "0aff0", "0aff00", "0g00", "0a ff", "éé"] {
            let error = hex_array::<2>("it", wrong).unwrap_err();
            assert_eq!(error.to_string(), format!("it is {wrong:?}, allowed are 4 hex digits"));
        }
        assert_eq!(decode_hex("0"), None);
        assert_eq!(decode_hex(""), Some(vec![]));
    }
}
