//! Parameters of webhooks: a target and conditions. Source: api.md 1.3, 6.1.

use super::{
    search::several,
    text::{ANY_TEXT_CHECKS, one_of, text},
    value::ParameterValue,
};
use crate::{
    actors::webhook::{CONDITIONS_MAX, Comparison, EVENTS_MAX, VALUE_DEPTH_MAX},
    api::table::dialect::Dialect,
};
use fluent_uri::Uri;
use serde_json::Value;

/// An absolute URI of any scheme.
pub(crate) fn uri(name: &str, value: &Value) -> Result<ParameterValue, String> {
    let text = text(name, value, ANY_TEXT_CHECKS)?;
    // An authority must have a host.
    let is_uri =
        Uri::parse(text.as_str()).is_ok_and(|uri| uri.authority().is_none_or(|authority| !authority.host().is_empty()));
    if is_uri { Ok(ParameterValue::Text(text)) } else { Err(format!("\"{name}\" must be a valid uri")) }
}

/// The name of an event. The dialect [`Dialect::Documented`] also takes a list of different names.
pub(crate) fn events(name: &str, value: &Value, dialect: Dialect) -> Result<ParameterValue, String> {
    let one = |name: &str, value: &Value| text(name, value, ANY_TEXT_CHECKS).map(ParameterValue::Text);
    match (value, dialect) {
        (Value::Array(_), Dialect::Documented) => several(name, value, one, (1, EVENTS_MAX)),
        _ => one(name, value),
    }
}

/// A list of conditions, which may be empty. As in the reference, a string that contains the JSON of a list counts as
/// the list.
pub(crate) fn conditions(name: &str, value: &Value) -> Result<ParameterValue, String> {
    let read = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    let value = read.as_ref().unwrap_or(value);
    let items = value.as_array().ok_or_else(|| format!("\"{name}\" must be an array"))?;
    if items.len() > CONDITIONS_MAX {
        return Err(format!("\"{name}\" must contain less than or equal to {CONDITIONS_MAX} items"));
    }
    for (index, item) in items.iter().enumerate() {
        condition(index, item).map_err(|why| format!("\"{name}\" at position {index} fails because [{why}]"))?;
    }
    Ok(ParameterValue::Value(value.clone()))
}

fn condition(index: usize, item: &Value) -> Result<(), String> {
    let members = item.as_object().ok_or_else(|| format!("\"{index}\" must be an object"))?;
    let child = |name: &str, check: &dyn Fn(&Value) -> Result<(), String>| {
        let outcome = members.get(name).map_or_else(|| Err(format!("\"{name}\" is required")), check);
        outcome.map_err(|why| format!("child \"{name}\" fails because [{why}]"))
    };
    child("key", &|key| text("key", key, ANY_TEXT_CHECKS).map(drop))?;
    child("condition", &|condition| one_of("condition", condition, &Comparison::NAMES).map(drop))?;
    if members.get("value").is_some_and(|value| is_deeper(value, VALUE_DEPTH_MAX)) {
        return Err(format!("\"value\" must not be nested deeper than {VALUE_DEPTH_MAX}"));
    }
    match members.keys().find(|key| !matches!(key.as_str(), "key" | "condition" | "value")) {
        Some(unknown) => Err(format!("\"{unknown}\" is not allowed")),
        None => Ok(()),
    }
}

/// True if lists and objects are nested deeper than this in a value.
fn is_deeper(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth == 0 || items.iter().any(|value| is_deeper(value, depth - 1)),
        Value::Object(members) => depth == 0 || members.values().any(|value| is_deeper(value, depth - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn targets_are_absolute() {
        for fine in ["http://127.0.0.1:1/x?y", "ftp://example.invalid/x", "mailto:a@b.c", "http://[::1]"] {
            assert!(uri("target", &json!(fine)).is_ok(), "{fine}");
        }
        for wrong in ["not a uri", "/path", "example.com", "http://", "http://a b/", "//host/x", "http://[::1"] {
            assert_eq!(uri("target", &json!(wrong)), Err("\"target\" must be a valid uri".to_owned()), "{wrong}");
        }
        assert_eq!(uri("target", &json!("")), Err("\"target\" is not allowed to be empty".to_owned()));
    }

    #[test]
    fn a_webhook_is_for_one_event_or_for_several() {
        let check = |value| events("event", &value, Dialect::Documented);
        assert_eq!(check(json!("a")), Ok(ParameterValue::Text("a".to_owned())));
        assert_eq!(check(json!("[\"a\"]")), Ok(ParameterValue::Text("[\"a\"]".to_owned())), "any text is a name");
        assert_eq!(check(json!(["a", "b"])), Ok(ParameterValue::Texts(vec!["a".to_owned(), "b".to_owned()])));
        let many: Vec<String> = (0..=EVENTS_MAX).map(|number| number.to_string()).collect();
        assert!(check(json!(many[1..])).is_ok());
        for (value, why) in [
            (json!(7), "\"event\" must be a string"),
            (json!([]), "\"event\" must contain at least 1 items"),
            (json!(many), "\"event\" must contain less than or equal to 64 items"),
            (json!(["a", "a"]), "\"event\" position 1 contains a duplicate value"),
            (json!(["a", ""]), "\"event\" at position 1 fails because [\"1\" is not allowed to be empty]"),
        ] {
            assert_eq!(check(value), Err(why.to_owned()));
        }
        let reference = events("event", &json!(["a", "b"]), Dialect::Core26);
        assert_eq!(reference, Err("\"event\" must be a string".to_owned()));
    }

    #[test]
    fn conditions_are_checked_one_by_one() {
        let check = |value| conditions("conditions", &value);
        assert!(check(json!([])).is_ok() && check(json!([{"key": "a", "condition": "eq", "value": null}])).is_ok());
        assert_eq!(check(json!("[]")), Ok(ParameterValue::Value(json!([]))));
        let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        let of = |value| json!([{"key": "a", "condition": "eq", "value": value}]);
        assert!(check(of(nested(VALUE_DEPTH_MAX))).is_ok());
        let (deep, deep_objects) =
            (nested(VALUE_DEPTH_MAX + 1), (0..33).fold(json!(1), |inner, _| json!({"x": inner})));
        for wrong in [deep, deep_objects] {
            assert!(check(of(wrong)).unwrap_err().contains("nested deeper than 32"));
        }
        let one = json!({"key": "a", "condition": "truthy"});
        assert!(check(json!(vec![&one; 64])).is_ok());
        assert!(check(json!(vec![&one; 65])).unwrap_err().contains("less than or equal to 64 items"));
        for (value, why) in [
            (json!({}), "\"conditions\" must be an array"),
            (json!([1]), "\"conditions\" at position 0 fails because [\"0\" must be an object]"),
            (
                json!([{"key": "a", "condition": "eq"}, {"key": 1}]),
                "\"conditions\" at position 1 fails because [child \"key\" fails because [\"key\" must be a string]]",
            ),
        ] {
            assert_eq!(check(value), Err(why.to_owned()));
        }
    }
}
