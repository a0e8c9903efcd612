//! The values of members, and how they are written, filtered and ordered. Source: api.md 3, 4.2.

use super::{json::MemberWriter, like_pattern::Pattern, rule::ParameterValue, shape::Shape};
use crate::{
    ledger::Balance,
    protocol::{Address, Arktoshi, BlockId, Height, Nonce, PublicKey, Timestamp, TransactionId},
};
use serde_json::Value;
use std::{borrow::Cow, cmp::Ordering};

/// The place of rows without a value in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Last in both directions.
    Last,
    /// As greater than all values, which is how the reference's database has it.
    Greatest,
}

/// The value of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell<'r> {
    Missing,
    /// The resource has a value, but not in this form.
    Elsewhere,
    Number(i128),
    Text(Cow<'r, str>),
    Flag(bool),
    Texts(Vec<Cow<'r, str>>),
    Json(Value),
    Address(Address),
    Block(BlockId),
    Id(TransactionId),
    Key(PublicKey),
    /// Bytes, which are shown in hex.
    Hex(&'r [u8]),
}

/// The comparison of a member's text with the requested text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// In hex, upper case counts as lower.
    Equal,
    Contains,
    /// Contains the requested bytes, both in hex.
    ContainsHex,
    /// Contains a pattern of the reference's database: `%` stands for any bytes, `_` for one byte, and two backslashes
    /// make the next byte literal. Source: api.md 4.2.
    Like,
}

impl<'r> Cell<'r> {
    /// Writes the value in its shape. Writes nothing for a missing value if the shape has no null.
    pub fn write(&self, shape: Shape, slot: MemberWriter<'_, '_>) {
        match self {
            Self::Missing if shape.is_nullable() => slot.put(&()),
            Self::Missing | Self::Elsewhere => {}
            Self::Number(number) if shape.is_text() => slot.text(number),
            Self::Number(number) => slot.number(number),
            Self::Text(text) => slot.put(text),
            Self::Flag(flag) => slot.put(flag),
            Self::Texts(texts) => slot.put(texts),
            Self::Json(value) => slot.put(value),
            Self::Address(address) => slot.text(address),
            Self::Block(id) => slot.text(id),
            Self::Id(id) => slot.text(id),
            Self::Key(key) => slot.text(key),
            Self::Hex(bytes) => slot.text(hex::encode(bytes)),
        }
    }

    /// The text of an address, an id, a key or bytes, as the API shows it. `None` for any other value.
    pub(super) fn plain(&self) -> Option<Self> {
        let text = match self {
            Self::Address(address) => address.to_string(),
            Self::Block(id) => id.to_string(),
            Self::Id(id) => id.to_string(),
            Self::Key(key) => key.to_string(),
            Self::Hex(bytes) => hex::encode(bytes),
            _ => return None,
        };
        Some(text.into())
    }

    pub(super) fn passes(&self, given: &ParameterValue, test: Test) -> bool {
        let is_hex = matches!(self, Self::Id(_) | Self::Key(_) | Self::Hex(_));
        let plain = self.plain();
        match (plain.as_ref().unwrap_or(self), given) {
            (_, ParameterValue::Range { from: None, to: None }) => true,
            (Self::Number(found), given) => given.ends().is_some_and(|(from, to)| {
                from.is_none_or(|from| *found >= i128::from(from)) && to.is_none_or(|to| *found <= i128::from(to))
            }),
            (Self::Flag(found), ParameterValue::Boolean(wanted)) => found == wanted,
            (Self::Text(found), ParameterValue::Text(wanted)) if is_hex => found.eq_ignore_ascii_case(wanted),
            (Self::Text(found), ParameterValue::Text(wanted)) => test.passes(found, wanted),
            (Self::Text(found), ParameterValue::Texts(wanted)) => {
                wanted.iter().any(|wanted| test.passes(found, wanted))
            }
            (Self::Texts(found), ParameterValue::Texts(wanted)) => {
                wanted.iter().all(|wanted| found.iter().any(|found| test.passes(found, wanted)))
            }
            (Self::Json(found), ParameterValue::Value(wanted)) => contains(found, wanted),
            _ => false,
        }
    }

    pub(super) fn order(&self, other: &Self, descending: bool, missing: Missing) -> Ordering {
        let is_missing = |cell: &Self| *cell == Self::Missing;
        let ascending = match (self, other) {
            (Self::Missing, _) | (_, Self::Missing) if missing == Missing::Last => {
                return is_missing(self).cmp(&is_missing(other));
            }
            (Self::Missing, _) | (_, Self::Missing) => is_missing(self).cmp(&is_missing(other)),
            (Self::Number(one), Self::Number(other)) => one.cmp(other),
            (Self::Text(one), Self::Text(other)) if one.is_ascii() && other.is_ascii() => one.cmp(other),
            (Self::Text(one), Self::Text(other)) => one.encode_utf16().cmp(other.encode_utf16()),
            (Self::Flag(one), Self::Flag(other)) => one.cmp(other),
            // Not reached: all values of one field are of one kind.
            _ => Ordering::Equal,
        };
        if descending { ascending.reverse() } else { ascending }
    }
}

impl<'r, T: Into<Cell<'r>>> From<Option<T>> for Cell<'r> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, T::into)
    }
}

/// Turns values into cells, each type in its way.
macro_rules! cells {
    ($($type:ty: $value:ident => $cell:expr;)*) => {$(
        impl<'r> From<$type> for Cell<'r> {
            fn from($value: $type) -> Self {
                $cell
            }
        }
    )*};
}

cells! {
    u8: number => Self::Number(number.into());
    u16: number => Self::Number(number.into());
    u32: number => Self::Number(number.into());
    u64: number => Self::Number(number.into());
    i64: number => Self::Number(number.into());
    i128: number => Self::Number(number);
    usize: number => Self::Number(number as i128);
    Arktoshi: amount => Self::Number(amount.value().into());
    Balance: balance => Self::Number(balance.0);
    Height: height => Self::Number(height.0.into());
    Nonce: nonce => Self::Number(nonce.0.into());
    Timestamp: timestamp => Self::Number(timestamp.0.into());
    bool: flag => Self::Flag(flag);
    String: text => Self::Text(Cow::Owned(text));
    &'r str: text => Self::Text(Cow::Borrowed(text));
    &'r [u8]: bytes => Self::Hex(bytes);
    &'r [u8; 32]: hash => Self::Hex(hash);
    TransactionId: id => Self::Id(id);
    BlockId: id => Self::Block(id);
    Address: address => Self::Address(address);
    PublicKey: key => Self::Key(key);
    Value: value => Self::Json(value);
}

impl Test {
    fn passes(self, found: &str, wanted: &str) -> bool {
        match self {
            Self::Equal => found == wanted,
            Self::Contains => found.contains(wanted),
            Self::ContainsHex => {
                let (found, wanted) = (found.as_bytes(), wanted.as_bytes());
                let mut parts = found.windows(wanted.len().max(1)).step_by(2);
                parts.any(|part| part.eq_ignore_ascii_case(wanted))
            }
            Self::Like => Pattern::containing(wanted).matches(found.as_bytes()),
        }
    }
}

/// True if a value has all members and elements of another one, at any depth.
fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| found.get(name).is_some_and(|found| contains(found, wanted)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            wanted.iter().all(|wanted| found.iter().any(|found| contains(found, wanted)))
        }
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn containment_is_by_members_and_elements() {
        let found = json!({"a": {"b": 1, "c": 2}, "d": ["x", "y"]});
        for wanted in [json!({}), json!({"a": {}}), json!({"a": {"c": 2}}), json!({"d": ["y"]}), json!({"d": []})] {
            assert!(contains(&found, &wanted), "{wanted}");
        }
        for wanted in [json!({"a": {"c": "2"}}), json!({"d": ["z"]}), json!({"d": "x"}), json!({"e": null})] {
            assert!(!contains(&found, &wanted), "{wanted}");
        }
    }

    #[test]
    fn hex_is_found_at_whole_bytes() {
        assert!(Test::ContainsHex.passes("0abc", "BC") && !Test::ContainsHex.passes("0abc", "ab"));
        assert!(!Test::ContainsHex.passes("", "ab"));
    }

    #[test]
    fn rows_without_a_value_come_last_or_count_as_greatest() {
        let [a, b, none] = [Cell::from("a"), Cell::from("b"), Cell::Missing];
        let order =
            |one: &Cell<'_>, other, missing| (one.order(other, false, missing), one.order(other, true, missing));
        assert_eq!(order(&a, &b, Missing::Last), (Ordering::Less, Ordering::Greater));
        assert_eq!(order(&b, &none, Missing::Last), (Ordering::Less, Ordering::Less));
        assert_eq!(order(&none, &a, Missing::Last), (Ordering::Greater, Ordering::Greater));
        assert_eq!(order(&none, &a, Missing::Greatest), (Ordering::Greater, Ordering::Less));
    }

    #[test]
    fn an_empty_range_filters_nothing() {
        let open = ParameterValue::Range { from: None, to: None };
        assert!(Cell::Missing.passes(&open, Test::Equal));
        let range = ParameterValue::Range { from: Some(2), to: Some(3) };
        let passed: Vec<_> = (1..5_u32).filter(|number| Cell::from(*number).passes(&range, Test::Equal)).collect();
        assert_eq!(passed, [2, 3]);
        assert!(!Cell::from("5").passes(&ParameterValue::Integer(5), Test::Equal));
    }
}
