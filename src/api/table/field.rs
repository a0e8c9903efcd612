//! Fields by which resources are filtered and ordered: one table for each resource. Source: api.md 3, 4.2.

use super::{
    dialect::{Dialect, Spoken},
    frame::Frame,
    like::Pattern,
    parameter::Parameters,
    rule::Given,
};
use serde_json::Value;
use std::{borrow::Cow, cmp::Ordering};

/// One field of a resource: a row of its table.
pub struct Field<R> {
    pub name: &'static str,
    pub spoken: Spoken,
    pub value: for<'r> fn(&'r R, &Frame<'r>) -> Cell<'r>,
    pub test: Test,
    pub missing: Missing,
}

/// The place in an order of rows without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Last in both directions.
    Last,
    /// As greater than all values, which is how the reference's database has it.
    Greatest,
}

/// The value of a resource in a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell<'r> {
    Missing,
    Number(i128),
    Text(Cow<'r, str>),
    Flag(bool),
    Texts(Vec<Cow<'r, str>>),
    Json(Value),
}

/// The comparison of a text with the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    Equal,
    /// In hex, where upper case counts as lower.
    SameHex,
    Contains,
    /// Whole bytes of it, in hex.
    ContainsHex,
    /// As the reference's database looks for a part: `%` stands for any bytes, `_` for one, and what follows two
    /// backslashes for itself. Source: api.md 4.2.
    Like,
}

impl<R> Field<R> {
    /// A field that is asked for exactly.
    pub const fn new(name: &'static str, value: for<'r> fn(&'r R, &Frame<'r>) -> Cell<'r>) -> Self {
        Self { name, spoken: Spoken::Always, value, test: Test::Equal, missing: Missing::Last }
    }

    /// A field in hex.
    pub const fn hex(name: &'static str, value: for<'r> fn(&'r R, &Frame<'r>) -> Cell<'r>) -> Self {
        Self { name, spoken: Spoken::Always, value, test: Test::SameHex, missing: Missing::Last }
    }

    /// A field of which a part is asked for.
    pub const fn containing(name: &'static str, value: for<'r> fn(&'r R, &Frame<'r>) -> Cell<'r>) -> Self {
        Self { name, spoken: Spoken::Always, value, test: Test::Contains, missing: Missing::Last }
    }

    /// A field of some dialects.
    pub const fn only(name: &'static str, spoken: Spoken, value: for<'r> fn(&'r R, &Frame<'r>) -> Cell<'r>) -> Self {
        Self { name, spoken, value, test: Test::Equal, missing: Missing::Last }
    }
}

/// True if a resource has all that is asked for. Parameters without a field of their name are not filters.
pub fn matches<R>(fields: &[Field<R>], parameters: &Parameters, row: &R, frame: &Frame<'_>) -> bool {
    parameters.iter().all(|(name, given)| {
        find(fields, name, frame.dialect).is_none_or(|field| (field.value)(row, frame).passes(given, field.test))
    })
}

/// True if anything is asked for that has a field.
pub fn filters<R>(fields: &[Field<R>], parameters: &Parameters, dialect: Dialect) -> bool {
    parameters.iter().any(|(name, given)| {
        !matches!(given, Given::Range { from: None, to: None }) && find(fields, name, dialect).is_some()
    })
}

/// The number of a resource in a field; `None` if the field has none.
pub fn number<R>(fields: &[Field<R>], name: &str, row: &R, frame: &Frame<'_>) -> Option<i128> {
    match (find(fields, name, frame.dialect)?.value)(row, frame) {
        Cell::Number(number) => Some(number),
        _ => None,
    }
}

/// Sorts by a field; equal rows keep their order.
pub fn sort<R: Clone>(
    fields: &[Field<R>],
    (name, descending): (&str, bool),
    rows: Vec<R>,
    frame: &Frame<'_>,
) -> Vec<R> {
    let Some(field) = find(fields, name, frame.dialect) else { return rows };
    // A cell may cost a hash and an encoding, so each is made once.
    let mut cells: Vec<_> = rows.iter().map(|row| ((field.value)(row, frame), row)).collect();
    cells.sort_by(|(one, _), (other, _)| one.order(other, descending, field.missing));
    cells.into_iter().map(|(_, row)| row.clone()).collect()
}

fn find<'f, R>(fields: &'f [Field<R>], name: &str, dialect: Dialect) -> Option<&'f Field<R>> {
    fields.iter().find(|field| field.name == name && field.spoken.holds(dialect))
}

impl<'r> Cell<'r> {
    /// A text, or nothing.
    pub fn text(text: Option<impl Into<Cow<'r, str>>>) -> Self {
        text.map_or(Self::Missing, |text| Self::Text(text.into()))
    }

    /// A value that prints as a text.
    pub fn shown(value: impl ToString) -> Self {
        Self::Text(Cow::Owned(value.to_string()))
    }

    /// A value that prints as a text, if there is one.
    pub fn shown_some(value: Option<impl ToString>) -> Self {
        value.map_or(Self::Missing, Self::shown)
    }

    /// Any number.
    pub fn number(number: impl Into<i128>) -> Self {
        Self::Number(number.into())
    }

    fn passes(&self, given: &Given, test: Test) -> bool {
        match (self, given) {
            (_, Given::Range { from: None, to: None }) => true,
            (Self::Number(found), Given::Integer(wanted)) => *found == i128::from(*wanted),
            (Self::Number(found), Given::Range { from, to }) => {
                from.is_none_or(|from| *found >= i128::from(from)) && to.is_none_or(|to| *found <= i128::from(to))
            }
            (Self::Flag(found), Given::Boolean(wanted)) => found == wanted,
            (Self::Text(found), Given::Text(wanted)) => test.passes(found, wanted),
            (Self::Text(found), Given::Texts(wanted)) => wanted.iter().any(|wanted| test.passes(found, wanted)),
            (Self::Texts(found), Given::Texts(wanted)) => {
                wanted.iter().all(|wanted| found.iter().any(|found| test.passes(found, wanted)))
            }
            (Self::Json(found), Given::Value(wanted)) => contains(found, wanted),
            _ => false,
        }
    }

    fn order(&self, other: &Self, descending: bool, missing: Missing) -> Ordering {
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
            // One field has values of one kind.
            _ => Ordering::Equal,
        };
        if descending { ascending.reverse() } else { ascending }
    }
}

impl Test {
    fn passes(self, found: &str, wanted: &str) -> bool {
        match self {
            Self::Equal => found == wanted,
            Self::SameHex => found.eq_ignore_ascii_case(wanted),
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
        let [a, b, none] = [Cell::text(Some("a")), Cell::text(Some("b")), Cell::Missing];
        let order =
            |one: &Cell<'_>, other, missing| (one.order(other, false, missing), one.order(other, true, missing));
        assert_eq!(order(&a, &b, Missing::Last), (Ordering::Less, Ordering::Greater));
        assert_eq!(order(&b, &none, Missing::Last), (Ordering::Less, Ordering::Less));
        assert_eq!(order(&none, &a, Missing::Last), (Ordering::Greater, Ordering::Greater));
        assert_eq!(order(&none, &a, Missing::Greatest), (Ordering::Greater, Ordering::Less));
    }

    #[test]
    fn an_empty_range_filters_nothing() {
        let open = Given::Range { from: None, to: None };
        assert!(Cell::Missing.passes(&open, Test::Equal));
        let range = Given::Range { from: Some(2), to: Some(3) };
        let passed: Vec<_> = (1..5).filter(|number| Cell::number(*number).passes(&range, Test::Equal)).collect();
        assert_eq!(passed, [2, 3]);
        assert!(!Cell::text(Some("5")).passes(&Given::Integer(5), Test::Equal));
    }
}
