//! Tables of parameters: those of each route, in the order of their checks. Source: api.md 1.3, 4.

use super::{
    dialect::{Dialect, DialectSet},
    rule::{Bound, Check, ParameterValue, Rule},
};
use crate::api::http::error::ApiError;
use serde_json::{Map, Value};

/// One parameter of a route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub name: &'static str,
    pub rule: Rule,
    pub spoken: DialectSet,
    /// True if the request is refused without it.
    pub is_required: bool,
}

impl Parameter {
    /// The same, of the published specification only.
    pub const fn if_documented(self) -> Self {
        Self { spoken: DialectSet::DOCUMENTED, ..self }
    }

    /// The same, which must be given.
    pub const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }
}

/// A parameter of both dialects.
pub(crate) const fn both(name: &'static str, rule: Rule) -> Parameter {
    Parameter { name, rule, spoken: DialectSet::Always, is_required: false }
}

/// A parameter that only the published specification has.
pub(crate) const fn documented(name: &'static str, rule: Rule) -> Parameter {
    Parameter { name, rule, spoken: DialectSet::DOCUMENTED, is_required: false }
}

pub(crate) const ADDRESS: Rule = Rule::Text(ADDRESS_CHECKS);
pub(crate) const PUBLIC_KEY: Rule = Rule::Text(PUBLIC_KEY_CHECKS);
pub(crate) const USERNAME: Rule = Rule::Text(USERNAME_CHECKS);
pub(crate) const WALLET_ID: Rule = Rule::Either(&[USERNAME_CHECKS, ADDRESS_CHECKS, PUBLIC_KEY_CHECKS]);
pub(crate) const BLOCK_ID: Rule =
    Rule::Either(&[&[Check::AtMost(20), Check::Digits], &[Check::Length(64), Check::Hex]]);
pub(crate) const TRANSACTION_ID: Rule = Rule::Text(&[Check::Hex, Check::Length(64)]);
pub(crate) const HEX: Rule = Rule::Text(&[Check::Hex]);
pub(crate) const ANY_TEXT: Rule = Rule::Text(&[]);
pub(crate) const FROM_ZERO: Rule = Rule::Quantity(Bound::Least(0));
pub(crate) const ADDRESSES: Rule = Rule::Several(&ADDRESS, 1, 50);
pub(crate) const FROM_ONE: Rule = Rule::Quantity(Bound::Positive);
const ADDRESS_CHECKS: &[Check] = &[Check::AlphaNumeric, Check::Length(34)];
const PUBLIC_KEY_CHECKS: &[Check] = &[Check::Hex, Check::Length(66)];
const USERNAME_CHECKS: &[Check] = &[Check::Username, Check::AtMost(20)];

/// The parameters that all lists take.
pub(crate) const PAGING: &[Parameter] = &[
    both("page", Rule::Integer(Bound::Positive)),
    both("offset", Rule::Integer(Bound::Least(0))),
    both("limit", Rule::Integer(Bound::Between(1, 100))),
];

/// The argument of a path that names a resource by its number.
pub(crate) const BY_NUMBER: &[Parameter] = &[both("id", Rule::Integer(Bound::Least(1)))];
/// The argument of a path that names a resource by any text.
pub(crate) const BY_TEXT: &[Parameter] = &[both("id", ANY_TEXT)];
/// The argument of a path that names a file of a page.
pub(crate) const BY_FILE: &[Parameter] = &[both("file", ANY_TEXT)];

/// Selects the API's shape of a resource, or the resource's own if it is false. The links of routes with this parameter
/// contain it.
pub(crate) const TRANSFORM: &[Parameter] = &[both("transform", Rule::Boolean)];

/// Parameters that passed, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters(Vec<(&'static str, ParameterValue)>);

impl Parameters {
    /// Checks values against tables: the known ones in their order, then whether any is unknown.
    ///
    /// # Errors
    /// The first broken rule, as a 422.
    pub fn check(tables: &[&[Parameter]], values: &Map<String, Value>, dialect: Dialect) -> Result<Self, ApiError> {
        let mut given = Vec::with_capacity(values.len());
        let known = || tables.iter().copied().flatten().filter(|parameter| parameter.spoken.holds(dialect));
        for parameter in known() {
            let refuse =
                |reason| ApiError::Unprocessable(format!("child \"{}\" fails because [{reason}]", parameter.name));
            let Some(value) = values.get(parameter.name) else {
                if parameter.is_required {
                    return Err(refuse(format!("\"{}\" is required", parameter.name)));
                }
                continue;
            };
            if dialect == Dialect::Documented && parameter.rule.is_plain_value() && value == "undefined" {
                // JavaScript clients send this for a value they do not have. Source: api.md 1.5.
                continue;
            }
            let checked = parameter.rule.check(parameter.name, value, dialect).map_err(refuse)?;
            given.push((parameter.name, checked));
        }
        match values.keys().find(|key| !known().any(|parameter| parameter.name == key.as_str())) {
            Some(unknown) => Err(ApiError::Unprocessable(format!("\"{unknown}\" is not allowed"))),
            None => Ok(Self(given)),
        }
    }

    /// Adds `others`, except those that `self` has already. A single address or username replaces a list of them.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0.into_iter().filter(|(name, _)| self.get(name).is_none()).collect::<Vec<_>>());
        for (one, several) in [("address", "addresses"), ("username", "usernames")] {
            if self.get(one).is_some() {
                self.0.retain(|(name, _)| *name != several);
            }
        }
        self
    }

    /// All of them, in the order of the tables.
    pub fn iter(&self) -> impl Iterator<Item = &(&'static str, ParameterValue)> {
        self.0.iter()
    }

    /// A parameter, if it was given.
    pub fn get(&self, name: &str) -> Option<&ParameterValue> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, given)| given)
    }

    /// A number, if one was given that the type holds.
    pub fn number<N: TryFrom<i64>>(&self, name: &str) -> Option<N> {
        match self.get(name)? {
            ParameterValue::Integer(number) => N::try_from(*number).ok(),
            _ => None,
        }
    }

    /// A flag, if one was given.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            ParameterValue::Boolean(flag) => Some(*flag),
            _ => None,
        }
    }

    /// A text, if one was given.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            ParameterValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A list of texts, if one was given.
    pub fn texts(&self, name: &str) -> Option<&[String]> {
        match self.get(name)? {
            ParameterValue::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// True if the request wants the API's shape of resources, which is the default.
    pub fn transform(&self) -> bool {
        self.flag("transform").unwrap_or(true)
    }

    /// The requested order: a field, and true if it descends.
    pub fn order(&self) -> Option<(&'static str, bool)> {
        match self.get("orderBy")? {
            ParameterValue::Order { field, descending } => Some((field, *descending)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(values: Value, dialect: Dialect) -> Result<Parameters, String> {
        let Value::Object(values) = values else { panic!("an object") };
        let own: &[Parameter] = &[both("id", BLOCK_ID), documented("extra", FROM_ZERO)];
        Parameters::check(&[PAGING, own], &values, dialect).map_err(|error| error.to_string())
    }

    #[test]
    fn known_keys_come_before_unknown_ones() {
        let both_wrong = json!({"foo": "1", "limit": "0"});
        let message = "child \"limit\" fails because [\"limit\" must be larger than or equal to 1]";
        assert_eq!(check(both_wrong, Dialect::Core26).unwrap_err(), message);
        assert_eq!(check(json!({"foo": "1"}), Dialect::Core26).unwrap_err(), "\"foo\" is not allowed");
    }

    #[test]
    fn alternatives_tell_all_reasons() {
        let message = "child \"id\" fails because [\"id\" with value \"abc\" fails to match the decimal non-negative \
                       integer pattern, \"id\" length must be 64 characters long]";
        assert_eq!(check(json!({"id": "abc"}), Dialect::Core26).unwrap_err(), message);
    }

    #[test]
    fn rows_belong_to_dialects() {
        assert!(check(json!({"extra": "1"}), Dialect::Documented).is_ok());
        assert_eq!(check(json!({"extra": "1"}), Dialect::Core26).unwrap_err(), "\"extra\" is not allowed");
    }

    #[test]
    fn undefined_is_absent_where_no_text_can_be_meant() {
        let given = check(json!({"extra": "undefined", "limit": "undefined"}), Dialect::Documented).unwrap();
        assert!(given.get("extra").is_none() && given.get("limit").is_none());
        assert!(check(json!({"limit": "undefined"}), Dialect::Core26).is_err());
    }
}
