//! Transaction ids.

use crate::protocol::keys::{KeyError, hex_array, string_form};
use std::{fmt, str::FromStr};

/// SHA256 over the transaction with all its signatures; shown as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub [u8; 32]);

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 64];
        hex::encode_to_slice(self.0, &mut digits).expect("two digits a byte");
        f.pad(std::str::from_utf8(&digits).expect("hex digits are ASCII"))
    }
}

impl fmt::Debug for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// From 64 hex digits, upper or lower case.
impl FromStr for TransactionId {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        hex_array("transaction id", text).map(Self)
    }
}

string_form!(TransactionId);
