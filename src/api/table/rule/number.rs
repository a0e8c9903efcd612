//! Whole numbers as parameters, read from JSON numbers and from texts. Source: api.md 1.3.

use crate::api::table::dialect::Dialect;
use serde_json::Value;

/// The greatest integer that JavaScript holds exactly, 2^53-1.
pub(crate) const SAFE_MAX: i64 = 9_007_199_254_740_991;

/// The greatest integer that a search or a list takes in a dialect.
pub(crate) fn greatest(dialect: Dialect) -> i64 {
    if dialect == Dialect::Documented { i64::MAX } else { SAFE_MAX }
}

/// A range of whole numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    Any,
    Positive,
    Least(i64),
    Between(i64, i64),
}

impl Bound {
    /// The number, or the reason why it is refused.
    pub fn check(self, name: &str, value: &Value, greatest: i64, dialect: Dialect) -> Result<i64, String> {
        let refuse = |reason: String| Err(format!("\"{name}\" {reason}"));
        let is_lost = value.as_str().is_some_and(|text| dialect == Dialect::Core26 && is_odd_zero(text.trim()));
        let number = match whole(value) {
            Number::Fraction | Number::Whole(_) if is_lost => return refuse("must be a safe number".to_owned()),
            Number::Not => return refuse("must be a number".to_owned()),
            Number::Fraction => return refuse("must be an integer".to_owned()),
            Number::Whole(number) if number.abs() > i128::from(greatest) => {
                return refuse("must be a safe number".to_owned());
            }
            Number::Whole(number) => number as i64,
        };
        match self {
            Self::Positive if number < 1 => refuse("must be a positive number".to_owned()),
            Self::Least(least) | Self::Between(least, _) if number < least => {
                refuse(format!("must be larger than or equal to {least}"))
            }
            Self::Between(_, most) if number > most => refuse(format!("must be less than or equal to {most}")),
            _ => Ok(number),
        }
    }
}

/// A value read as a number.
enum Number {
    Not,
    Fraction,
    Whole(i128),
}

/// Reads a JSON number or a text of one.
fn whole(value: &Value) -> Number {
    match value {
        Value::Number(number) => number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
            .map_or_else(|| number.as_f64().map_or(Number::Not, from_float), Number::Whole),
        Value::String(text) => from_text(text.trim()),
        _ => Number::Not,
    }
}

fn from_text(text: &str) -> Number {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that does not fit into an i128 is out of any bounds.
        let far = if text.starts_with('-') { i128::MIN + 1 } else { i128::MAX };
        return Number::Whole(text.parse().unwrap_or(far));
    }
    // Digits, then perhaps a point and digits, then perhaps an exponent.
    let (mantissa, exponent) = digits.split_once(['e', 'E']).map_or((digits, None), |(head, tail)| (head, Some(tail)));
    let (integer, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(head, tail)| (head, Some(tail)));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exponent = |text: &str| are_digits(text.strip_prefix(['-', '+']).unwrap_or(text));
    if !are_digits(integer) || !fraction.is_none_or(are_digits) || !exponent.is_none_or(is_exponent) {
        return Number::Not;
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => from_float(number),
        // The text is a number, but beyond every bound.
        _ => Number::Whole(i128::MAX),
    }
}

/// True if the text of a number without an exponent begins with a zero that the reference loses when it writes the number
/// again: `-0`, `00`, `00.5`. The reference compares the two texts to decide if a number is safe. Source: api.md 1.3.
fn is_odd_zero(text: &str) -> bool {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = integer.strip_prefix('-').unwrap_or(integer);
    let is_zero = !digits.is_empty() && digits.bytes().all(|byte| byte == b'0');
    let is_whole = fraction.bytes().all(|byte| byte == b'0');
    is_zero && (digits.len() > 1 || (integer != digits && is_whole))
}

fn from_float(number: f64) -> Number {
    match number {
        _ if !number.is_finite() => Number::Not,
        _ if number.fract() != 0.0 => Number::Fraction,
        // The conversion saturates, and the result is then out of bounds.
        _ => Number::Whole((number as i128).clamp(i128::MIN + 1, i128::MAX)),
    }
}
