//! Texts as parameters, and the checks they have to pass. Source: api.md 1.3.

use super::value::ParameterValue;
use serde_json::Value;

/// The checks of a text that may be any but the empty one.
pub(crate) const ANY_TEXT_CHECKS: &[Check] = &[];

/// One check of a text, in the order of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    AlphaNumeric,
    Hex,
    Length(usize),
    AtMost(usize),
    /// The greatest number of bytes in UTF-8; the message says characters, as the reference's does.
    BytesAtMost(usize),
    /// Lower-case letters, digits and `!@$&_.`.
    Username,
    /// Decimal digits.
    Digits,
    /// Words of letters and digits, joined by one space, dot, dash or underscore, or by a dash between spaces.
    GenericName,
}

/// One of a few texts.
pub(crate) fn one_of(name: &str, value: &Value, allowed: &[&str]) -> Result<ParameterValue, String> {
    match value.as_str() {
        Some("") => Err(format!("\"{name}\" is not allowed to be empty")),
        Some(text) if allowed.contains(&text) => Ok(ParameterValue::Text(text.to_owned())),
        _ => Err(format!("\"{name}\" must be one of [{}]", allowed.join(", "))),
    }
}

/// A text that passes all of these checks.
pub(crate) fn text(name: &str, value: &Value, checks: &[Check]) -> Result<String, String> {
    let text = value.as_str().ok_or_else(|| format!("\"{name}\" must be a string"))?;
    if text.is_empty() {
        return Err(format!("\"{name}\" is not allowed to be empty"));
    }
    match checks.iter().find_map(|check| check.refusal(text)) {
        Some(reason) => Err(format!("\"{name}\" {reason}")),
        None => Ok(text.to_owned()),
    }
}

/// A text that passes one of these lists of checks.
pub(crate) fn either(name: &str, value: &Value, lists: &[&[Check]]) -> Result<ParameterValue, String> {
    let mut reasons = Vec::with_capacity(lists.len());
    for checks in lists {
        match text(name, value, checks) {
            Ok(text) => return Ok(ParameterValue::Text(text)),
            Err(reason) => reasons.push(reason),
        }
    }
    // A reason that several lists give is repeated, as in the reference.
    Err(reasons.join(", "))
}

impl Check {
    /// The reason why a text that is not empty fails.
    fn refusal(self, text: &str) -> Option<String> {
        let length = text.encode_utf16().count();
        let all = |allowed: fn(u8) -> bool| text.bytes().all(allowed);
        match self {
            Self::AlphaNumeric if !all(|byte| byte.is_ascii_alphanumeric()) => {
                Some("must only contain alpha-numeric characters".to_owned())
            }
            Self::Hex if !all(|byte| byte.is_ascii_hexdigit()) => {
                Some("must only contain hexadecimal characters".to_owned())
            }
            Self::Length(wanted) if length != wanted => Some(format!("length must be {wanted} characters long")),
            Self::AtMost(most) if length > most => {
                Some(format!("length must be less than or equal to {most} characters long"))
            }
            Self::BytesAtMost(most) if text.len() > most => {
                Some(format!("length must be less than or equal to {most} characters long"))
            }
            Self::Username
                if !all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!@$&_.".contains(&byte)) =>
            {
                Some(format!("with value \"{text}\" fails to match the required pattern: /^[a-z0-9!@$&_.]+$/"))
            }
            Self::Digits if !all(|byte| byte.is_ascii_digit()) => {
                Some(format!("with value \"{text}\" fails to match the decimal non-negative integer pattern"))
            }
            Self::GenericName if !is_generic_name(text) => Some(format!(
                "with value \"{text}\" fails to match the required pattern: \
                 /^[a-zA-Z0-9]+(( - |[ ._-])[a-zA-Z0-9]+)*[.]?$/"
            )),
            _ => None,
        }
    }
}

fn is_generic_name(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text).replace(" - ", " ");
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    name.split([' ', '.', '_', '-']).all(is_word)
}
