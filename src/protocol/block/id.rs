//! Block ids of both formats. Source: protocol.md 4.2.

use crate::protocol::keys::{KeyError, hex_array, shorten, string_form};
use std::{fmt, str::FromStr};

/// A block id: numeric before the `idFullSha256` milestone, 32 bytes from it on. `Display` as in JSON: decimal or hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockId {
    /// The first eight bytes of the header's SHA256 as a little-endian number. `Display` is decimal.
    Numeric(u64),
    /// The SHA256 of the header. `Display` is hex.
    Full([u8; 32]),
}

impl BlockId {
    /// The id of a header with this hash: all of it, or its first eight bytes as a little-endian number.
    pub fn of_hash(hash: [u8; 32], full: bool) -> Self {
        match full {
            true => Self::Full(hash),
            false => Self::Numeric(u64::from_le_bytes(hash[..8].try_into().expect("8 of 32 bytes"))),
        }
    }

    /// 16 or 64 lower-case hex digits.
    pub fn to_hex(self) -> String {
        match self {
            Self::Numeric(number) => format!("{number:016x}"),
            Self::Full(hash) => hex::encode(hash),
        }
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numeric(number) => fmt::Display::fmt(number, f),
            Self::Full(hash) => f.pad(&hex::encode(hash)),
        }
    }
}

/// From a decimal number of 64 bits or from 64 hex digits.
impl FromStr for BlockId {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.len() == 64 {
            return hex_array("block id", text).map(Self::Full);
        }
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| text.parse().ok()).flatten();
        let allowed = "a decimal number up to 18446744073709551615 or 64 hex digits";
        let wrong = || KeyError::Other { what: "block id", found: shorten(text), allowed };
        number.map(Self::Numeric).ok_or_else(wrong)
    }
}

string_form!(BlockId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_have_a_text() {
        let id: BlockId = "17184958558311101492".parse().unwrap();
        assert_eq!((id.to_hex().as_str(), id.to_string().as_str()), ("ee7d3cc24bf13434", "17184958558311101492"));
        let full: BlockId = "AB".repeat(32).parse().unwrap();
        assert_eq!(full, BlockId::Full([0xab; 32]));
        for wrong in ["", "-1", "18446744073709551616", "ee7d3cc24bf13434", "+1"] {
            assert!(wrong.parse::<BlockId>().is_err(), "{wrong}");
        }
    }
}
