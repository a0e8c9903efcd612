//! Parameters of searches beside plain values: ranges, lists, names of numbers. Source: api.md 1.3, 4.2.

use super::{
    number::{Bound, SAFE_MAX, greatest},
    value::ParameterValue,
};
use crate::api::table::dialect::Dialect;
use serde_json::{Map, Value};

/// A range of whole numbers. `documented` also takes one number.
pub(crate) fn range(bound: Bound, name: &str, value: &Value, dialect: Dialect) -> Result<ParameterValue, String> {
    let check = |name: &str, value: &Value| bound.check(name, value, greatest(dialect), dialect);
    match (value, dialect) {
        (Value::Object(range), _) => ends(range, check),
        (_, Dialect::Documented) => check(name, value).map(ParameterValue::Integer),
        (_, Dialect::Core26) => Err(must_be_an_object(name)),
    }
}

/// A range of percents, as hundredths of a percent. `documented` also takes one percent.
pub(crate) fn percents(name: &str, value: &Value, dialect: Dialect) -> Result<ParameterValue, String> {
    match (value, dialect) {
        (Value::Object(range), _) => ends(range, percent),
        (_, Dialect::Documented) => percent(name, value).map(ParameterValue::Integer),
        (_, Dialect::Core26) => Err(must_be_an_object(name)),
    }
}

fn percent(name: &str, value: &Value) -> Result<i64, String> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    // Only two decimals of a percentage count.
    let hundredths = |number: f64| (number * 100.0).round() / 100.0;
    match number.filter(|number: &f64| number.is_finite()).map(hundredths) {
        None => Err(format!("\"{name}\" must be a number")),
        Some(number) if number < 0.0 => Err(format!("\"{name}\" must be larger than or equal to 0")),
        Some(number) if number > 100.0 => Err(format!("\"{name}\" must be less than or equal to 100")),
        Some(number) => Ok((number * 100.0).round() as i64),
    }
}

/// A number out of a few, or its name.
pub(crate) fn named(
    name: &str,
    value: &Value,
    names: &[(&str, i64)],
    dialect: Dialect,
) -> Result<ParameterValue, String> {
    if let Some((_, number)) = names.iter().find(|(known, _)| value == known) {
        return Ok(ParameterValue::Integer(*number));
    }
    let number = Bound::Any.check(name, value, SAFE_MAX, dialect)?;
    if names.iter().any(|(_, known)| *known == number) {
        return Ok(ParameterValue::Integer(number));
    }
    let texts = names.iter().map(|(known, _)| (*known).to_owned());
    let allowed: Vec<String> = texts.chain(names.iter().map(|(_, number)| number.to_string())).collect();
    Err(format!("\"{name}\" must be one of [{}]", allowed.join(", ")))
}

/// A list of different texts.
pub(crate) fn several(
    name: &str,
    value: &Value,
    check: impl Fn(&str, &Value) -> Result<ParameterValue, String>,
    (least, most): (usize, usize),
) -> Result<ParameterValue, String> {
    let items = value.as_array().ok_or_else(|| format!("\"{name}\" must be an array"))?;
    let mut texts: Vec<String> = Vec::with_capacity(items.len().min(most));
    for (index, item) in items.iter().enumerate() {
        let place = index.to_string();
        let wrong = |reason| format!("\"{name}\" at position {index} fails because [{reason}]");
        match check(&place, item).map_err(wrong)? {
            ParameterValue::Text(text) if !texts.contains(&text) => texts.push(text),
            _ => return Err(format!("\"{name}\" position {index} contains a duplicate value")),
        }
        // A longer list is refused below, so its other items need no comparison.
        if index > most {
            break;
        }
    }
    match items.len() {
        count if count < least => Err(format!("\"{name}\" must contain at least {least} items")),
        count if count > most => Err(format!("\"{name}\" must contain less than or equal to {most} items")),
        _ => Ok(ParameterValue::Texts(texts)),
    }
}

/// Any object.
pub(crate) fn object(name: &str, value: &Value) -> Result<ParameterValue, String> {
    if value.is_object() { Ok(ParameterValue::Value(value.clone())) } else { Err(must_be_an_object(name)) }
}

fn ends(
    range: &Map<String, Value>,
    check: impl Fn(&str, &Value) -> Result<i64, String>,
) -> Result<ParameterValue, String> {
    let end = |name: &str| match range.get(name).map(|value| check(name, value)) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(reason)) => Err(format!("child \"{name}\" fails because [{reason}]")),
    };
    let given = ParameterValue::Range { from: end("from")?, to: end("to")? };
    match range.keys().find(|key| !matches!(key.as_str(), "from" | "to")) {
        Some(unknown) => Err(format!("\"{unknown}\" is not allowed")),
        None => Ok(given),
    }
}

fn must_be_an_object(name: &str) -> String {
    format!("\"{name}\" must be an object")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ranges_are_objects_or_also_numbers() {
        let check = |value, dialect| range(Bound::Least(0), "n", &value, dialect);
        assert_eq!(check(json!(7), Dialect::Documented), Ok(ParameterValue::Integer(7)));
        assert_eq!(check(json!(7), Dialect::Core26), Err("\"n\" must be an object".to_owned()));
        let open = Ok(ParameterValue::Range { from: Some(1), to: None });
        assert_eq!(check(json!({"from": "1"}), Dialect::Core26), open);
        let beyond = json!({"to": 9_007_199_254_740_992_i64});
        assert!(check(beyond.clone(), Dialect::Documented).is_ok());
        let refused = Err("child \"to\" fails because [\"to\" must be a safe number]".to_owned());
        assert_eq!(check(beyond, Dialect::Core26), refused);
    }

    #[test]
    fn percents_become_hundredths() {
        let check = |value| percents("p", &value, Dialect::Core26);
        let range = Ok(ParameterValue::Range { from: Some(0), to: Some(150) });
        assert_eq!(check(json!({"from": 0, "to": 1.5})), range);
        let beyond = "child \"to\" fails because [\"to\" must be less than or equal to 100]";
        assert_eq!(check(json!({"to": 101})), Err(beyond.to_owned()));
        assert!(check(json!({"to": "NaN"})).is_err() && check(json!({"from": -0.5})).is_err());
        assert!(check(json!({"from": -0.001, "to": 100.004})).is_ok(), "rounded before it is held against the bounds");
    }

    #[test]
    fn numbers_with_names_are_taken_as_both() {
        let check = |value| named("t", &value, &[("Time", 1), ("Height", 2)], Dialect::Core26);
        assert_eq!(check(json!("Height")), Ok(ParameterValue::Integer(2)));
        assert_eq!(check(json!("1")), Ok(ParameterValue::Integer(1)));
        assert_eq!(check(json!(3)), Err("\"t\" must be one of [Time, Height, 1, 2]".to_owned()));
        assert_eq!(check(json!("abc")), Err("\"t\" must be a number".to_owned()));
    }
}
