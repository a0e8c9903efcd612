//! Whole numbers of any size, read as JavaScript reads a `BigInt`.

use std::cmp::Ordering;

/// The largest number of digits that is read: no amount has as many, and reading more takes time.
const DIGITS_MAX: usize = 1_024;

/// A whole number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Integer {
    is_negative: bool,
    /// The digits in base 2^32, the lowest first, without zeros at the end; empty for 0.
    limbs: Vec<u32>,
}

impl Integer {
    /// Parses a text: decimal with sign, or `0x`, `0o`, `0b` without one. The empty text is 0.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (digits, radix, is_negative) = match text.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&text[2..], 16, false),
            [b'0', b'o' | b'O', ..] => (&text[2..], 8, false),
            [b'0', b'b' | b'B', ..] => (&text[2..], 2, false),
            [b'-', ..] => (&text[1..], 10, true),
            [b'+', ..] => (&text[1..], 10, false),
            _ => (text, 10, false),
        };
        if digits.len() > DIGITS_MAX || (digits.is_empty() && !text.is_empty()) {
            return None;
        }
        let mut limbs: Vec<u32> = Vec::new();
        for digit in digits.chars() {
            let mut carry = u64::from(digit.to_digit(radix)?);
            for limb in &mut limbs {
                let sum = u64::from(*limb) * u64::from(radix) + carry;
                *limb = sum as u32;
                carry = sum >> 32;
            }
            if carry > 0 {
                limbs.push(carry as u32);
            }
        }
        Some(Self { is_negative: is_negative && !limbs.is_empty(), limbs })
    }

    /// Converts a float if it is whole.
    pub fn from_float(float: f64) -> Option<Self> {
        // A float prints all its digits.
        (float.is_finite() && float.fract() == 0.0).then(|| Self::parse(&format!("{float:.0}"))).flatten()
    }
}

impl From<i64> for Integer {
    fn from(number: i64) -> Self {
        Self::parse(&number.to_string()).expect("a number prints as one")
    }
}

impl Ord for Integer {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = |number: &Self| number.limbs.len();
        let by_size =
            || size(self).cmp(&size(other)).then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()));
        match (self.is_negative, other.is_negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => by_size(),
            (true, true) => by_size().reverse(),
        }
    }
}

impl PartialOrd for Integer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_read_as_a_bigint_is() {
        let number = |text: &str| Integer::parse(text);
        for (one, other) in [("", "0"), (" 12 ", "+12"), ("0xfF", "255"), ("0b11", "3"), ("0o17", "15"), ("-0", "0")] {
            assert_eq!(number(one), number(other), "{one}");
            assert!(number(one).is_some());
        }
        for wrong in ["1.5", "1e3", "abc", "0x", "-", "--1", "-0x5", "1 2", "²"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
        assert_eq!(number(&"9".repeat(2_000)), None);
        assert_eq!(Integer::from_float(1e21), number("1000000000000000000000"));
        assert_eq!((Integer::from_float(0.5), Integer::from_float(f64::INFINITY)), (None, None));
    }

    proptest! {
        #[test]
        fn order_is_that_of_numbers(a: i128, b: i128, small: i8) {
            for (a, b) in [(a, b), (a, i128::from(small)), (i128::from(small), b), (a, a)] {
                let number = |number: i128| Integer::parse(&number.to_string()).unwrap();
                prop_assert_eq!(number(a).cmp(&number(b)), a.cmp(&b));
            }
        }
    }
}
