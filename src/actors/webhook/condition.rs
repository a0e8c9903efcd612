//! Conditions that a payload must meet for a webhook to fire. Source: api.md 6.3.
//!
//! The reference evaluates conditions in JavaScript. So the comparisons for equality treat numbers as doubles, and those for order treat
//! them as whole numbers of any size. A comparison that throws in JavaScript is an error here, and counts as not fulfilled.

use super::integer::Integer;
use fancy_regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::{
    borrow::Cow,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// The number of backtracking steps after which a match fails: text and pattern come from strangers.
const BACKTRACKS_MAX: usize = 1_000;
/// The number of failed matches after which a pattern is no longer evaluated. This bounds the cost of a pattern over all events, of
/// which a block brings hundreds.
const FAILURES_MAX: u32 = 16;
/// The approximate size limit of a compiled pattern, in bytes.
const PATTERN_SIZE_MAX: usize = 1 << 16;
/// Longest pattern that is compiled, in bytes.
const PATTERN_LENGTH_MAX: usize = 1_000;

/// One condition of a webhook: a comparison of a member of the payload with a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The name of a top-level member of the payload. For an array or a text: an index, or `length`.
    pub key: String,
    pub condition: Comparison,
    /// The value that the member is compared with; null is a value, too.
    #[serde(default, deserialize_with = "any_value", skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The value as a pattern, compiled when it is first needed.
    #[serde(skip)]
    compiled: CompiledPattern,
}

/// A compiled pattern, or the reason why it cannot be compiled. It follows from the condition, so comparisons and copies of a condition
/// ignore it.
#[derive(Debug, Default)]
struct CompiledPattern {
    pattern: OnceLock<Result<Box<Regex>, String>>,
    /// The number of matches that failed, such as those that took too long.
    failures: AtomicU32,
}

impl CompiledPattern {
    fn is_match(&self, pattern: impl FnOnce() -> Result<Regex, String>, text: &str) -> Result<bool, String> {
        let regex = self.pattern.get_or_init(|| pattern().map(Box::new)).as_ref().map_err(Clone::clone)?;
        if self.failures.load(Ordering::Relaxed) >= FAILURES_MAX {
            return Err(format!("it took too long {FAILURES_MAX} times, and is not asked any more"));
        }
        regex.is_match(text).map_err(|why| {
            self.failures.fetch_add(1, Ordering::Relaxed);
            why.to_string()
        })
    }
}

impl Clone for CompiledPattern {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for CompiledPattern {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A comparison of a member, A, with the condition's value, B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// B is `{min, max}`, both of them outside.
    Between,
    /// A is a text with B in it, or a list with B in it.
    Contains,
    /// The same value of the same type.
    Eq,
    /// A is no `true`, neither as value nor as text.
    Falsy,
    Gt,
    Gte,
    Lt,
    Lte,
    Ne,
    NotBetween,
    /// The pattern B is found in A's text.
    Regexp,
    /// A is `true`, as value or as text.
    Truthy,
}

impl Comparison {
    /// All of them, in the order of their names.
    pub const NAMES: [&'static str; 12] =
        ["between", "contains", "eq", "falsy", "gt", "gte", "lt", "lte", "ne", "not-between", "regexp", "truthy"];
}

/// Why a condition cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    #[error("the payload has no member '{0}' to look at")]
    Missing(String),
    #[error("the value is no object with members 'min' and 'max'")]
    NoRange,
    #[error("member '{0}' is neither text nor list")]
    NoContainer(String),
    #[error("pattern '{pattern}': {why}")]
    BadPattern { pattern: String, why: String },
}

impl Condition {
    /// Returns true if a payload fulfils the condition. An absent payload fulfils none.
    ///
    /// # Errors
    /// The condition cannot be evaluated for this payload.
    pub fn holds(&self, payload: &Value) -> Result<bool, ConditionError> {
        let found = member(payload, &self.key);
        let (a, b) = (found.as_deref(), self.value.as_ref());
        match self.condition {
            Comparison::Eq => Ok(same_or_both_missing(a, b)),
            Comparison::Ne => Ok(!same_or_both_missing(a, b)),
            Comparison::Gt => Ok(compare(a, b, |a, b| a > b)),
            Comparison::Gte => Ok(compare(a, b, |a, b| a >= b)),
            Comparison::Lt => Ok(compare(a, b, |a, b| a < b)),
            Comparison::Lte => Ok(compare(a, b, |a, b| a <= b)),
            Comparison::Between => self.is_between(a),
            Comparison::NotBetween => self.is_between(a).map(|is_between| !is_between),
            Comparison::Contains => self.contains(a),
            Comparison::Regexp => self.is_matched(a),
            Comparison::Truthy => self.is_true(a),
            Comparison::Falsy => self.is_true(a).map(|is_true| !is_true),
        }
    }

    fn is_between(&self, a: Option<&Value>) -> Result<bool, ConditionError> {
        let range = self.value.as_ref().and_then(Value::as_object).ok_or(ConditionError::NoRange)?;
        Ok(compare(a, range.get("min"), |a, min| a > min) && compare(a, range.get("max"), |a, max| a < max))
    }

    fn contains(&self, a: Option<&Value>) -> Result<bool, ConditionError> {
        match a {
            Some(Value::String(text)) => Ok(text.contains(&*text_of(self.value.as_ref()))),
            Some(Value::Array(items)) => Ok(items.iter().any(|item| is_same_plain(item, self.value.as_ref()))),
            _ => Err(ConditionError::NoContainer(self.key.clone())),
        }
    }

    fn is_matched(&self, a: Option<&Value>) -> Result<bool, ConditionError> {
        let pattern = || match &self.value {
            None => Cow::Borrowed(""),
            value => text_of(value.as_ref()),
        };
        let found = self.compiled.is_match(|| compile(&pattern()), &text_of(a));
        found.map_err(|why| ConditionError::BadPattern { pattern: pattern().into_owned(), why })
    }

    fn is_true(&self, a: Option<&Value>) -> Result<bool, ConditionError> {
        match a {
            None | Some(Value::Null) => Err(ConditionError::Missing(self.key.clone())),
            Some(a) => Ok(text_of(Some(a)).trim().eq_ignore_ascii_case("true")),
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN_LENGTH_MAX {
        return Err(format!("it is longer than {PATTERN_LENGTH_MAX} bytes"));
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.backtrack_limit(BACKTRACKS_MAX).delegate_size_limit(PATTERN_SIZE_MAX);
    builder.delegate_dfa_size_limit(PATTERN_SIZE_MAX);
    builder.build().map_err(|why| why.to_string())
}

fn any_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Returns the value that JavaScript finds under a key.
fn member<'p>(payload: &'p Value, key: &str) -> Option<Cow<'p, Value>> {
    let index = || key.parse().ok().filter(|index: &usize| index.to_string() == key);
    match payload {
        Value::Object(members) => members.get(key).map(Cow::Borrowed),
        Value::Array(items) if key == "length" => Some(Cow::Owned(items.len().into())),
        Value::Array(items) => items.get(index()?).map(Cow::Borrowed),
        Value::String(text) if key == "length" => Some(Cow::Owned(text.encode_utf16().count().into())),
        Value::String(text) => {
            let unit = text.encode_utf16().nth(index()?)?;
            Some(Cow::Owned(String::from_utf16_lossy(&[unit]).into()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn same_or_both_missing(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => is_same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Returns true if two values are the same JSON text, numbers being doubles.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((key, a), (other, b))| key == other && is_same(a, b))
        }
        (a, b) => a == b,
    }
}

/// Returns true if two values are equal as elements of a list. Two lists or two objects never are.
fn is_same_plain(a: &Value, b: Option<&Value>) -> bool {
    !matches!(a, Value::Array(_) | Value::Object(_)) && b.is_some_and(|b| is_same(a, b))
}

/// Returns true if both are whole numbers and `holds` returns true for them.
fn compare(a: Option<&Value>, b: Option<&Value>, holds: impl FnOnce(&Integer, &Integer) -> bool) -> bool {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => holds(&a, &b),
        _ => false,
    }
}

fn integer(value: Option<&Value>) -> Option<Integer> {
    match value? {
        Value::Bool(flag) => Some(Integer::from(i64::from(*flag))),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Some(Integer::from(number)),
            None => Integer::from_float(number.as_f64()?),
        },
        Value::String(text) => Integer::parse(text),
        Value::Array(_) => Integer::parse(&text_of(value)),
        Value::Null | Value::Object(_) => None,
    }
}

/// A value as JavaScript turns it into text.
fn text_of(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        None => "undefined".into(),
        Some(Value::Null) => "null".into(),
        Some(Value::Bool(flag)) => flag.to_string().into(),
        Some(Value::Number(number)) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => float.to_string().into(),
            None => number.to_string().into(),
        },
        Some(Value::String(text)) => text.into(),
        Some(Value::Array(items)) => {
            let item = |item| if matches!(item, &Value::Null) { "".into() } else { text_of(Some(item)) };
            items.iter().map(item).collect::<Vec<_>>().join(",").into()
        }
        Some(Value::Object(_)) => "[object Object]".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Asks one condition of the member `a` of a payload.
    fn ask(a: Value, name: &str, value: Option<Value>) -> Option<bool> {
        let mut condition = json!({"key": "a", "condition": name});
        if let Some(value) = value {
            condition["value"] = value;
        }
        let condition: Condition = serde_json::from_value(condition).unwrap();
        condition.holds(&json!({ "a": a })).ok()
    }

    fn holds(a: Value, name: &str, value: Value) -> bool {
        ask(a, name, Some(value)) == Some(true)
    }

    fn condition(key: &str, condition: &str, value: Value) -> Condition {
        serde_json::from_value(json!({"key": key, "condition": condition, "value": value})).unwrap()
    }

    #[test]
    fn equality_is_strict_in_types() {
        assert!(holds(json!(1), "eq", json!(1)) && holds(json!(1), "eq", json!(1.0)));
        assert!(!holds(json!(1), "eq", json!("1")) && holds(json!(1), "ne", json!("1")));
        assert!(holds(json!({"x": [1, null]}), "eq", json!({"x": [1, null]})));
        assert!(!holds(json!({"x": 1, "y": 2}), "eq", json!({"y": 2, "x": 1})), "the texts differ");
        assert!(!holds(json!([1]), "eq", json!([1, 2])));
        assert!(holds(json!(null), "eq", json!(null)));
        let missing = condition("b", "eq", json!(null));
        assert_eq!(missing.holds(&json!({"a": 1})), Ok(false), "what is missing is not null");
        assert_eq!(condition("b", "ne", json!(1)).holds(&json!({"a": 1})), Ok(true));
        assert_eq!(ask(json!(null), "ne", None), Some(true));
    }

    #[test]
    fn order_is_that_of_whole_numbers() {
        assert!(holds(json!("10"), "gt", json!("2")) && holds(json!(10), "gt", json!("0x9")));
        assert!(holds(json!("9007199254740993"), "gt", json!("9007199254740992")));
        assert!(
            holds(json!(true), "gte", json!(1))
                && holds(json!(""), "lt", json!(1))
                && holds(json!(5), "lte", json!("5"))
        );
        assert!(holds(json!("-3"), "lt", json!("-2")) && holds(json!(1e21), "gt", json!("999999999999999999999")));
        for (a, b) in [(json!(1.5), json!(1)), (json!(null), json!(0)), (json!("ten"), json!(1)), (json!({}), json!(0))]
        {
            for name in ["gt", "gte", "lt", "lte"] {
                assert_eq!(ask(a.clone(), name, Some(b.clone())), Some(false), "{a} {name} {b}");
            }
        }
        assert_eq!(ask(json!(5), "gt", None), Some(false));
    }

    #[test]
    fn ranges_are_open() {
        let range = json!({"min": 5, "max": "10"});
        for (a, is_between) in [(5, false), (6, true), (9, true), (10, false)] {
            assert_eq!(holds(json!(a), "between", range.clone()), is_between, "{a}");
            assert_eq!(holds(json!(a), "not-between", range.clone()), !is_between, "{a}");
        }
        for wrong in [Some(json!(5)), Some(json!([1, 2])), None] {
            assert_eq!(ask(json!(6), "between", wrong.clone()), None);
            assert_eq!(ask(json!(6), "not-between", wrong), None);
        }
        assert!(!holds(json!(6), "between", json!({"min": 5})));
    }

    #[test]
    fn texts_and_lists_contain() {
        assert!(holds(json!("hello"), "contains", json!("ell")) && holds(json!("a1"), "contains", json!(1)));
        assert!(!holds(json!("hello"), "contains", json!("Ell")));
        assert!(holds(json!([1, "a"]), "contains", json!("a")) && !holds(json!([1]), "contains", json!("1")));
        assert!(!holds(json!([[1]]), "contains", json!([1])));
        assert_eq!(ask(json!(11), "contains", Some(json!(1))), None);
    }

    #[test]
    fn patterns_search_and_bad_ones_fail() {
        assert!(holds(json!("assorted 1100"), "regexp", json!("(?<n>assorted) 1+0*$")));
        assert!(holds(json!(1234), "regexp", json!("^1")) && !holds(json!("Abc"), "regexp", json!("a")));
        assert!(holds(json!("aXbX"), "regexp", json!(r"(X)b\1(?!.)")), "look-ahead and back references");
        assert_eq!(condition("b", "regexp", json!("^undefined$")).holds(&json!({})), Ok(true));
        for bad in ["(", "[", "*"] {
            assert_eq!(ask(json!("x"), "regexp", Some(json!(bad))), None, "{bad}");
        }
        let slow = json!(r"^(a|aa)+\1?$(?<!b)");
        assert_eq!(ask(json!("a".repeat(60) + "!"), "regexp", Some(slow)), None, "too much going back");
        assert_eq!(ask(json!("x"), "regexp", Some(json!("(x{500}){500}"))), None, "too large");
        assert_eq!(ask(json!("x"), "regexp", Some(json!("x".repeat(1_001)))), None, "too long");
    }

    #[test]
    fn truth_is_a_word() {
        for (a, is_true) in [
            (json!(true), true),
            (json!(" TRUE "), true),
            (json!(1), false),
            (json!("no"), false),
            (json!(0), false),
            (json!(false), false),
            (json!([true]), true),
        ] {
            assert_eq!(ask(a.clone(), "truthy", None), Some(is_true), "{a}");
            assert_eq!(ask(a.clone(), "falsy", None), Some(!is_true), "{a}");
        }
        assert_eq!(ask(json!(null), "truthy", None), None);
        assert_eq!(ask(json!(null), "falsy", None), None);
    }

    #[test]
    fn lists_and_texts_have_indexes_and_a_length() {
        assert_eq!(condition("length", "gt", json!(1)).holds(&json!([1, 2])), Ok(true));
        assert_eq!(condition("1", "eq", json!(7)).holds(&json!([1, 7])), Ok(true));
        assert_eq!(condition("01", "eq", json!(7)).holds(&json!([1, 7])), Ok(false));
        assert_eq!(condition("length", "eq", json!(3)).holds(&json!("abc")), Ok(true));
        assert_eq!(condition("0", "eq", json!("a")).holds(&json!("abc")), Ok(true));
        assert_eq!(condition("length", "gt", json!(0)).holds(&json!(true)), Ok(false));
        assert_eq!(condition("a.b", "eq", json!(1)).holds(&json!({"a": {"b": 1}})), Ok(false), "no paths");
    }

    #[test]
    fn every_name_is_a_comparison() {
        for name in Comparison::NAMES {
            let comparison: Comparison = serde_json::from_value(json!(name)).unwrap();
            assert_eq!(serde_json::to_value(comparison).unwrap(), name);
        }
        assert!(Comparison::NAMES.is_sorted());
    }

    /// A block of 150 transactions has a pattern asked 150 times.
    #[test]
    fn a_pattern_that_takes_too_long_again_and_again_is_given_up() {
        let nested = condition("a", "regexp", json!("^((a|aa)+)+\\1$"));
        let ask = |text: &str| nested.holds(&json!({ "a": text })).map_err(|why| why.to_string());
        let long = "a".repeat(60) + "b";
        for _ in 0..FAILURES_MAX {
            assert_eq!(ask("aa"), Ok(true), "a text that costs little is still matched");
            let why = ask(&long).expect_err("it goes back without end");
            assert!(why.contains("backtrack"), "{why}");
        }
        for text in [&long, "aa"] {
            let why = ask(text).expect_err("it is given up");
            assert!(why.ends_with("it took too long 16 times, and is not asked any more"), "{why}");
        }
        assert_eq!(nested.clone().holds(&json!({"a": "aa"})), Ok(true), "a changed webhook begins anew");
    }
}
