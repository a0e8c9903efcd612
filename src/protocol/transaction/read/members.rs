//! Members of a JSON object, each read with its path for the error.

use crate::protocol::{
    Arktoshi, PublicKey, keys,
    transaction::{Rule, SchemaError, schema},
};
use serde_json::{Map, Value};

/// A JSON object whose members are read.
#[derive(Clone, Copy)]
pub(crate) struct Members<'a> {
    object: &'a Map<String, Value>,
}

impl<'a> Members<'a> {
    pub fn of(json: &'a Value) -> Result<Self, SchemaError> {
        Self::at("", json)
    }

    fn at(path: &str, json: &'a Value) -> Result<Self, SchemaError> {
        let object = json.as_object().ok_or_else(|| SchemaError::new(path, describe(json), Rule::Object))?;
        Ok(Self { object })
    }

    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key)
    }

    pub fn require(&self, path: &str, key: &str) -> Result<&'a Value, SchemaError> {
        self.get(key).ok_or_else(|| SchemaError::new(join(path, key), "missing", Rule::Required))
    }

    /// The object below a key, which must be there.
    pub fn object(&self, path: &str, key: &str) -> Result<Members<'a>, SchemaError> {
        Self::at(&join(path, key), self.require(path, key)?)
    }

    pub fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.object.iter()
    }

    pub fn text(&self, path: &str, key: &str) -> Result<Option<&'a str>, SchemaError> {
        let Some(found) = self.get(key) else { return Ok(None) };
        found.as_str().map(Some).ok_or_else(|| SchemaError::new(join(path, key), describe(found), Rule::Text))
    }

    pub fn required_text(&self, path: &str, key: &str) -> Result<&'a str, SchemaError> {
        self.require(path, key)?;
        Ok(self.text(path, key)?.expect("required just before"))
    }

    pub fn list(&self, path: &str, key: &str) -> Result<&'a Vec<Value>, SchemaError> {
        let found = self.require(path, key)?;
        found.as_array().ok_or_else(|| SchemaError::new(join(path, key), describe(found), Rule::Array))
    }

    /// A whole number from 0 on, as a number; a text is none.
    pub fn number(&self, key: &str, max: u64) -> Result<Option<u64>, SchemaError> {
        let Some(found) = self.get(key) else { return Ok(None) };
        let number = whole(found).filter(|number| *number <= max);
        number.map(Some).ok_or_else(|| SchemaError::new(key, describe(found), Rule::Number { min: 0, max }))
    }

    pub fn required_number(&self, path: &str, key: &str, max: u64) -> Result<u64, SchemaError> {
        let found = self.require(path, key)?;
        let wrong = || SchemaError::new(join(path, key), describe(found), Rule::Number { min: 0, max });
        whole(found).filter(|number| *number <= max).ok_or_else(wrong)
    }

    /// A whole number as number or text.
    pub fn amount(&self, key: &str, lax: bool) -> Result<Option<Arktoshi>, SchemaError> {
        self.get(key).map(|found| amount(key, found, lax)).transpose()
    }

    /// Reads `N` bytes in hex, upper or lower case.
    pub fn hex<const N: usize>(&self, path: &str, key: &str) -> Result<Option<[u8; N]>, SchemaError> {
        let Some(text) = self.text(path, key)? else { return Ok(None) };
        let wrong = |_| SchemaError::of_text(join(path, key), text, Rule::Hex { digits: 2 * N });
        keys::hex_array("member", text).map(Some).map_err(wrong)
    }

    pub fn required_hex<const N: usize>(&self, path: &str, key: &str) -> Result<[u8; N], SchemaError> {
        self.require(path, key)?;
        Ok(self.hex(path, key)?.expect("required just before"))
    }

    pub fn key(&self, key: &str) -> Result<Option<PublicKey>, SchemaError> {
        Ok(self.hex("", key)?.map(PublicKey::from_bytes))
    }
}

pub(crate) fn amount(path: &str, found: &Value, lax: bool) -> Result<Arktoshi, SchemaError> {
    let number = match found {
        Value::String(text) if lax && (path != "nonce" || !text.is_empty()) => script_integer(text),
        Value::String(text) => decimal(text),
        Value::Bool(true) if lax => Some(1),
        Value::Array(items) if lax && items.is_empty() => Some(0),
        Value::Array(items) if lax && items.len() == 1 => return amount(path, &items[0], lax),
        found => whole(found),
    };
    let rule = || Rule::Amount { min: 0, max: Arktoshi::MAX.value() };
    number.and_then(Arktoshi::new).ok_or_else(|| SchemaError::new(path, describe(found), rule()))
}

/// Decimal digits and nothing else.
fn decimal(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) { None } else { text.parse().ok() }
}

/// The value of a text by JavaScript's `BigInt`, if it is not negative and fits.
fn script_integer(text: &str) -> Option<u64> {
    let text = text.trim();
    let radix = |radix, digits: &str| {
        digits.chars().all(|c| c.is_digit(radix)).then(|| u64::from_str_radix(digits, radix).ok()).flatten()
    };
    match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        _ if text.is_empty() => Some(0),
        Some("0x") => radix(16, &text[2..]),
        Some("0o") => radix(8, &text[2..]),
        Some("0b") => radix(2, &text[2..]),
        _ => decimal(text.strip_prefix('+').unwrap_or(text)).or_else(|| (text == "-0").then_some(0)),
    }
}

/// A JSON number that is whole and not negative. `1e8` and `1.0` are numbers like any other in JSON.
pub(crate) fn whole(found: &Value) -> Option<u64> {
    let safe = |number: &f64| number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(number);
    found.as_u64().or_else(|| found.as_f64().filter(|_| found.is_f64()).filter(safe).map(|number| number as u64))
}

/// A member that is there, as a text.
pub(crate) fn text_of<'a>(path: &str, found: &'a Value) -> Result<&'a str, SchemaError> {
    found.as_str().ok_or_else(|| SchemaError::new(path, describe(found), Rule::Text))
}

/// A value for a message, shortened.
pub(crate) fn describe(found: &Value) -> String {
    match found {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        other => keys::shorten(&other.to_string()),
    }
}

pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A text that looks like an address.
pub(crate) fn address_looks<'a>(path: &str, found: &'a Value) -> Result<&'a str, SchemaError> {
    let text = text_of(path, found)?;
    schema::base58(path, text, 34, 34)?;
    Ok(text)
}

/// A rule for a text at a path.
type TextRule = fn(&str, &str) -> Result<(), SchemaError>;

/// An optional text that obeys a rule.
pub(crate) fn checked(
    asset: Members<'_>,
    path: &str,
    key: &str,
    rule: TextRule,
) -> Result<Option<String>, SchemaError> {
    let Some(text) = asset.text(path, key)? else { return Ok(None) };
    rule(&join(path, key), text)?;
    Ok(Some(text.to_owned()))
}

/// An optional URI. The reference's rule does not require a text, so null counts as missing.
pub(crate) fn optional_uri(
    asset: Members<'_>,
    path: &str,
    key: &str,
    lax: bool,
) -> Result<Option<String>, SchemaError> {
    match asset.get(key) {
        Some(Value::Null) => Ok(None),
        Some(found) if lax && (whole(found) == Some(0) || found.as_array().is_some_and(Vec::is_empty)) => Ok(None),
        _ => checked(asset, path, key, schema::uri),
    }
}

/// An object of those texts that are there.
pub(crate) fn texts<'a>(members: impl IntoIterator<Item = (&'a str, Option<&'a String>)>) -> Map<String, Value> {
    let present = members.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.as_str().into())));
    present.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn amounts_are_whole_numbers_or_decimal_texts() {
        for good in [json!(7), json!("7"), json!("007"), json!(7.0)] {
            assert_eq!(amount("a", &good, false).unwrap().value(), 7, "{good}");
        }
        for bad in [
            json!("0x7"),
            json!(" 7"),
            json!("+7"),
            json!("1e8"),
            json!(""),
            json!(null),
            json!(1.5),
            json!(-1),
            json!(true),
            json!([7]),
            json!("9223372036854775808"),
        ] {
            assert!(amount("a", &bad, false).is_err(), "{bad}");
        }
        for lax in [json!("0x7"), json!(" 7"), json!("+7"), json!("0b111"), json!([7]), json!(["0o7"])] {
            assert_eq!(amount("a", &lax, true).unwrap().value(), 7, "{lax}");
        }
        for bad in [json!("1e8"), json!("-1"), json!(null), json!("7 7"), json!("0x"), json!("0x-7")] {
            assert!(amount("a", &bad, true).is_err(), "{bad}");
        }
    }
}
