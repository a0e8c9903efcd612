//! Rules of parameters, and the messages about values that break them. Source: api.md 1.3.

mod hook;
mod number;
mod search;
mod text;
mod value;

pub(crate) use number::{Bound, SAFE_MAX, greatest};
pub(crate) use text::Check;
pub(crate) use value::ParameterValue;

use super::dialect::Dialect;
use serde_json::Value;

/// The values that a parameter may have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// A whole number.
    Integer(Bound),
    /// A whole number that a resource is filtered by. `documented` also takes a range, and numbers to 2^63-1.
    Quantity(Bound),
    Boolean,
    OneOf(&'static [&'static str]),
    Text(&'static [Check]),
    /// A text that passes one of these lists of checks; the messages of all are joined.
    Either(&'static [&'static [Check]]),
    /// `<field>:<asc|desc>` over these fields.
    Order(&'static [&'static str]),
    Ip,
    /// An object `{from, to}` of whole numbers, both optional. `documented` also takes one number.
    Range(Bound),
    /// The same of percents, which may have decimals.
    Percents,
    /// One of these numbers, or its name.
    Named(&'static [(&'static str, i64)]),
    /// A list of different texts, with the least and the largest number of them.
    Several(&'static Rule, usize, usize),
    /// Any object.
    Object,
    /// An absolute URI.
    Uri,
    /// A list of a webhook's conditions.
    Conditions,
    /// A webhook's event. `documented` also takes a list of different ones.
    Events,
    /// A number from 0 to 1, given as whole millionths.
    Share,
}

impl Rule {
    /// The parameter's value, or the reason of its refusal, which goes into `child "name" fails because […]`.
    pub fn check(self, name: &str, value: &Value, dialect: Dialect) -> Result<ParameterValue, String> {
        let read = self.read_text(value);
        let value = read.as_ref().unwrap_or(value);
        match self {
            Self::Integer(bound) => bound.check(name, value, SAFE_MAX, dialect).map(ParameterValue::Integer),
            Self::Quantity(bound) => match (value, dialect) {
                (_, Dialect::Documented) => search::range(bound, name, value, dialect),
                (_, Dialect::Core26) => bound.check(name, value, SAFE_MAX, dialect).map(ParameterValue::Integer),
            },
            Self::Boolean => boolean(value).map(ParameterValue::Boolean).ok_or(format!("\"{name}\" must be a boolean")),
            Self::OneOf(allowed) => text::one_of(name, value, allowed),
            Self::Text(checks) => text::text(name, value, checks).map(ParameterValue::Text),
            Self::Either(lists) => text::either(name, value, lists),
            Self::Order(fields) => order(name, value, fields),
            Self::Ip => ip(name, value),
            Self::Range(bound) => search::range(bound, name, value, dialect),
            Self::Percents => search::percents(name, value, dialect),
            Self::Named(names) => search::named(name, value, names, dialect),
            Self::Several(of, least, most) => {
                search::several(name, value, |place, item| of.check(place, item, dialect), (least, most))
            }
            Self::Object => search::object(name, value),
            Self::Uri => hook::uri(name, value),
            Self::Conditions => hook::conditions(name, value),
            Self::Events => hook::events(name, value, dialect),
            Self::Share => share(name, value),
        }
    }

    /// Reads a string that contains the JSON of an object or a list, for rules that require one. The reference does so.
    fn read_text(self, value: &Value) -> Option<Value> {
        let first = match self {
            Self::Range(_) | Self::Percents | Self::Object => '{',
            Self::Several(..) | Self::Conditions => '[',
            _ => return None,
        };
        let text = value.as_str().filter(|text| text.trim_start().starts_with(first))?;
        serde_json::from_str(text).ok()
    }

    /// True if the parameter is a number or a flag, so that the text `undefined` cannot be its value.
    pub fn is_plain_value(self) -> bool {
        matches!(self, Self::Integer(_) | Self::Quantity(_) | Self::Range(_) | Self::Named(_) | Self::Boolean)
    }

    /// True if the rule accepts a range.
    pub fn is_range(self) -> bool {
        matches!(self, Self::Quantity(_) | Self::Range(_) | Self::Percents)
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn share(name: &str, value: &Value) -> Result<ParameterValue, String> {
    match value.as_f64().filter(|share| (0.0..=1.0).contains(share)) {
        Some(share) => Ok(ParameterValue::Integer((share * 1e6).round() as i64)),
        None => Err(format!("\"{name}\" must be a number from 0 to 1")),
    }
}

fn order(name: &str, value: &Value, fields: &'static [&'static str]) -> Result<ParameterValue, String> {
    let text = value.as_str().unwrap_or_default();
    let parts: Option<(&str, &str)> = text.split_once(':').filter(|(_, direction)| !direction.contains(':'));
    let (field, direction) = parts.ok_or_else(|| format!("\"{name}\" needs to match format <iteratee>:<direction>"))?;
    if !matches!(direction, "asc" | "desc") {
        return Err(format!("\"{name}\" needs to have a direction of either \"asc\" or \"desc\""));
    }
    match fields.iter().find(|known| **known == field) {
        Some(field) => Ok(ParameterValue::Order { field, descending: direction == "desc" }),
        None => Err(format!("\"{name}\" needs to have an iteratee included in: [{}]", fields.join(", "))),
    }
}

fn ip(name: &str, value: &Value) -> Result<ParameterValue, String> {
    let parse = |text: &str| {
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: std::net::IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        length.map_or(Some(0), |length| length.parse::<u8>().ok()).filter(|length| *length <= most)
    };
    match value.as_str().filter(|text| parse(text).is_some()) {
        Some(text) => Ok(ParameterValue::Text(text.to_owned())),
        None => Err(format!("\"{name}\" must be a valid ip address with a optional CIDR")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn number(bound: Bound, value: Value, dialect: Dialect) -> Result<ParameterValue, String> {
        Rule::Quantity(bound).check("n", &value, dialect)
    }

    #[test]
    fn numbers_are_read_as_texts_too_and_bounds_are_named() {
        use Dialect::{Core26, Documented};
        assert_eq!(number(Bound::Any, json!("5"), Core26), Ok(ParameterValue::Integer(5)));
        assert_eq!(number(Bound::Any, json!("1e2"), Core26), Ok(ParameterValue::Integer(100)));
        for not in ["", "abc", "inf", "NaN", ".5e1", "1.", "1e", "0x10", "--1"] {
            assert_eq!(number(Bound::Any, json!(not), Core26), Err("\"n\" must be a number".to_owned()), "{not}");
        }
        assert_eq!(number(Bound::Positive, json!("-1.5"), Core26), Err("\"n\" must be an integer".to_owned()));
        assert_eq!(number(Bound::Positive, json!(0), Core26), Err("\"n\" must be a positive number".to_owned()));
        assert_eq!(
            number(Bound::Between(1, 100), json!(101), Core26),
            Err("\"n\" must be less than or equal to 100".to_owned())
        );
        let large = json!("9007199254740993");
        assert_eq!(number(Bound::Any, large.clone(), Core26), Err("\"n\" must be a safe number".to_owned()));
        assert_eq!(number(Bound::Any, large, Documented), Ok(ParameterValue::Integer(9_007_199_254_740_993)));
        assert_eq!(number(Bound::Any, json!("1e999"), Core26), Err("\"n\" must be a safe number".to_owned()));
        let huge = json!("9".repeat(200));
        assert_eq!(number(Bound::Any, huge, Documented), Err("\"n\" must be a safe number".to_owned()));
        assert_eq!(number(Bound::Any, json!(1e300), Documented), Err("\"n\" must be a safe number".to_owned()));
    }

    /// A text is safe where the number is written like that again, but for a plus, zeros before other digits, and zeros behind
    /// the point.
    #[test]
    fn zeros_that_the_reference_loses_are_refused_as_it_refuses_them() {
        let unsafe_number = Err("\"n\" must be a safe number".to_owned());
        for odd in ["-0", "00", "000", "-00", "+00", " 00 ", "-0.0", "00.0", "00.5"] {
            for bound in [Bound::Any, Bound::Positive, Bound::Between(1, 100)] {
                assert_eq!(number(bound, json!(odd), Dialect::Core26), unsafe_number, "{odd}");
                assert_eq!(Rule::Integer(bound).check("n", &json!(odd), Dialect::Core26), unsafe_number, "{odd}");
            }
            let range = json!({ "from": odd });
            let refused = Err("child \"from\" fails because [\"from\" must be a safe number]".to_owned());
            assert_eq!(Rule::Range(Bound::Any).check("n", &range, Dialect::Core26), refused, "{odd}");
        }
        for (text, value) in [("0", 0), ("+0", 0), ("0.0", 0), ("07", 7), ("-007", -7), ("100", 100), ("1.00", 1)] {
            assert_eq!(number(Bound::Any, json!(text), Dialect::Core26), Ok(ParameterValue::Integer(value)), "{text}");
        }
        for fraction in ["0.5", "-0.5"] {
            let refused = Err("\"n\" must be an integer".to_owned());
            assert_eq!(number(Bound::Any, json!(fraction), Dialect::Core26), refused, "{fraction}");
        }
        // A JSON number has been read by then, and the published specification knows no such thing.
        assert_eq!(number(Bound::Any, json!(-0.0), Dialect::Core26), Ok(ParameterValue::Integer(0)));
        for text in ["-0", "00"] {
            assert_eq!(number(Bound::Any, json!(text), Dialect::Documented), Ok(ParameterValue::Integer(0)), "{text}");
        }
    }

    #[test]
    fn ranges_are_a_matter_of_dialect() {
        let range = json!({"from": 1, "to": "5"});
        let given = ParameterValue::Range { from: Some(1), to: Some(5) };
        assert_eq!(number(Bound::Any, range.clone(), Dialect::Documented), Ok(given));
        assert!(number(Bound::Any, range, Dialect::Core26).is_err());
        assert_eq!(
            number(Bound::Least(0), json!({"from": -1}), Dialect::Documented),
            Err("child \"from\" fails because [\"from\" must be larger than or equal to 0]".to_owned())
        );
        assert_eq!(
            number(Bound::Any, json!({"foo": 1}), Dialect::Documented),
            Err("\"foo\" is not allowed".to_owned())
        );
    }

    #[test]
    fn shares_are_millionths() {
        let check = |value: Value| Rule::Share.check("share", &value, Dialect::Documented);
        assert_eq!(check(json!(0.25)), Ok(ParameterValue::Integer(250_000)));
        assert_eq!(
            (check(json!(0)), check(json!(1))),
            (Ok(ParameterValue::Integer(0)), Ok(ParameterValue::Integer(1_000_000)))
        );
        for wrong in [json!(1.1), json!(-0.1), json!("0.5"), json!(null)] {
            assert_eq!(check(wrong), Err("\"share\" must be a number from 0 to 1".to_owned()));
        }
    }

    #[test]
    fn the_order_of_complaints_about_an_order_is_fixed() {
        let rule = Rule::Order(&["height", "version"]);
        let check = |text: &str| rule.check("orderBy", &json!(text), Dialect::Documented);
        assert_eq!(check("height:desc"), Ok(ParameterValue::Order { field: "height", descending: true }));
        for (text, part) in [("height", "format"), ("a:b:c", "format"), ("a:b", "direction"), ("a:asc", "iteratee")] {
            assert!(check(text).unwrap_err().contains(part), "{text}");
        }
    }

    #[test]
    fn the_json_text_of_a_range_or_a_list_is_one() {
        let open = Ok(ParameterValue::Range { from: Some(1), to: None });
        assert_eq!(Rule::Range(Bound::Any).check("n", &json!("{\"from\": 1}"), Dialect::Core26), open);
        let list = Rule::Several(&Rule::Ip, 1, 2).check("l", &json!("[\"1.2.3.4\"]"), Dialect::Core26);
        assert_eq!(list, Ok(ParameterValue::Texts(vec!["1.2.3.4".to_owned()])));
        let refused = Err("\"n\" must be an object".to_owned());
        assert_eq!(Rule::Range(Bound::Any).check("n", &json!("{broken"), Dialect::Core26), refused);
    }

    #[test]
    fn lists_hold_different_items_of_one_rule() {
        let check = |value| Rule::Several(&Rule::Ip, 1, 2).check("l", &value, Dialect::Core26);
        assert_eq!(check(json!(["1.2.3.4"])), Ok(ParameterValue::Texts(vec!["1.2.3.4".to_owned()])));
        for (value, reason) in [
            (json!("x"), "\"l\" must be an array"),
            (json!([]), "\"l\" must contain at least 1 items"),
            (json!(["1.1.1.1", "1.1.1.2", "1.1.1.3"]), "\"l\" must contain less than or equal to 2 items"),
            (json!(["1.1.1.1", "1.1.1.1"]), "\"l\" position 1 contains a duplicate value"),
        ] {
            assert_eq!(check(value), Err(reason.to_owned()));
        }
        let inner = "\"l\" at position 0 fails because [\"0\" must be a valid ip address with a optional CIDR]";
        assert_eq!(check(json!(["x"])), Err(inner.to_owned()));
    }
}
