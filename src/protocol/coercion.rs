//! The conversion of JSON values in arithmetic, as in the reference's language. Source: protocol.md 5.5.
//!
//! The reference reads the files of a network without a schema. JavaScript converts a value of another type than in the official
//! files, and files of other networks rely on that: `"reward": "0"`.

use serde_json::Value;

/// The value in arithmetic and comparisons; `None` is a missing member. Any other value is NaN.
pub(crate) fn number(value: Option<&Value>) -> f64 {
    match value {
        None => f64::NAN,
        Some(Value::Null) => 0.0,
        Some(Value::Bool(flag)) => f64::from(u8::from(*flag)),
        Some(Value::Number(number)) => number.as_f64().unwrap_or(f64::NAN),
        Some(Value::String(text)) => number_of_text(text),
        Some(Value::Array(_)) => number_of_text(&text(value.expect("it was matched"))),
        Some(Value::Object(_)) => f64::NAN,
    }
}

/// The value as a whole number of any size, as the reference's amounts are read. `None` if the conversion fails.
pub(crate) fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Null | Value::Object(_) => None,
        Value::Bool(flag) => Some(i128::from(*flag)),
        // In JavaScript every number of JSON is a double, whole ones beyond 2^53 too.
        Value::Number(number) => number.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i128),
        Value::String(text) => integer_of_text(text),
        Value::Array(_) => integer_of_text(&text(value)),
    }
}

/// The value as a condition; `None` is a missing member.
pub(crate) fn is_true(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(_) | Value::Object(_)) => true,
    }
}

/// The value as a text.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let part = |item: &Value| if item.is_null() { String::new() } else { text(item) };
            items.iter().map(part).collect::<Vec<_>>().join(",")
        }
        Value::Object(_) => "[object Object]".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn number_of_text(text: &str) -> f64 {
    let text = trimmed(text);
    if text.is_empty() {
        return 0.0;
    }
    if let Some(whole) = of_other_base(text) {
        return whole.map_or(f64::NAN, |whole| whole as f64);
    }
    match text {
        "Infinity" | "+Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ if text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) => {
            text.parse().unwrap_or(f64::NAN)
        }
        _ => f64::NAN,
    }
}

fn integer_of_text(text: &str) -> Option<i128> {
    let text = trimmed(text);
    match of_other_base(text) {
        Some(whole) => whole,
        None if text.is_empty() => Some(0),
        None => text.parse().ok(),
    }
}

/// Parses `0x1f`, `0o17` and `0b11`, without a sign. The outer `None` means another form.
fn of_other_base(text: &str) -> Option<Option<i128>> {
    let base = match text.get(..2)? {
        "0x" | "0X" => 16,
        "0o" | "0O" => 8,
        "0b" | "0B" => 2,
        _ => return None,
    };
    let digits = &text[2..];
    let are_digits = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(base));
    Some(are_digits.then(|| i128::from_str_radix(digits, base).unwrap_or(i128::MAX)))
}

/// Trims whitespace, line ends included, at both ends.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_number_is_what_arithmetic_makes_of_a_value() {
        for (value, expected) in [
            (json!(8), 8.0),
            (json!("8"), 8.0),
            (json!(" 8.50 "), 8.5),
            (json!("1e2"), 100.0),
            (json!("0x10"), 16.0),
            (json!("-Infinity"), f64::NEG_INFINITY),
            (json!(""), 0.0),
            (json!(null), 0.0),
            (json!(true), 1.0),
            (json!([]), 0.0),
            (json!(["7"]), 7.0),
            (json!([[7]]), 7.0),
        ] {
            assert_eq!(number(Some(&value)), expected, "{value}");
        }
        for value in [json!("eight"), json!("8 s"), json!("0x"), json!("-0x1"), json!("inf"), json!([1, 2]), json!({})]
        {
            assert!(number(Some(&value)).is_nan(), "{value}");
        }
        assert!(number(None).is_nan());
    }

    #[test]
    fn an_integer_is_whole_and_of_any_size() {
        for (value, expected) in [
            (json!("9223372036854775808"), 9_223_372_036_854_775_808),
            (json!(9_007_199_254_740_993_u64), 9_007_199_254_740_992),
            (json!(2e8), 200_000_000),
            (json!("-1"), -1),
            (json!("0b11"), 3),
            (json!(""), 0),
            (json!([5]), 5),
            (json!(true), 1),
        ] {
            assert_eq!(integer(&value), Some(expected), "{value}");
        }
        for value in [json!(null), json!({}), json!(1.5), json!("1.5"), json!("1e8"), json!("five"), json!([1, 2])] {
            assert_eq!(integer(&value), None, "{value}");
        }
    }

    #[test]
    fn a_condition_is_false_for_what_is_empty() {
        for value in [json!(null), json!(false), json!(0), json!(-0.0), json!("")] {
            assert!(!is_true(Some(&value)), "{value}");
        }
        for value in [json!(true), json!(0.5), json!("0"), json!("false"), json!([]), json!({})] {
            assert!(is_true(Some(&value)), "{value}");
        }
        assert!(!is_true(None));
    }
}
