//! What a parameter may be, and the words in which a wrong one is refused. Source: api.md 1.3.

mod hook;
mod search;

use crate::api::context::Dialect;
use serde_json::Value;

/// The greatest integer that JavaScript holds exactly, 2^53-1.
pub const SAFE_MAX: i64 = 9_007_199_254_740_991;
/// Of a text of which nothing is asked but that there is one.
const ANY_TEXT_CHECKS: &[Check] = &[];

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
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
    /// A list of so many to so many different texts.
    Several(&'static Rule, usize, usize),
    /// Any object.
    Object,
    /// An absolute URI.
    Uri,
    /// A list of a webhook's conditions.
    Conditions,
    /// A number from 0 to 1, given as whole millionths.
    Share,
}

/// Which whole numbers.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    Any,
    Positive,
    Least(i64),
    Between(i64, i64),
}

/// One check of a text, in the order of a list.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    AlphaNumeric,
    Hex,
    Length(usize),
    AtMost(usize),
    /// So many bytes in UTF-8 at most; the message says characters, as the reference's does.
    BytesAtMost(usize),
    /// Lower-case letters, digits and `!@$&_.`.
    Username,
    /// Decimal digits.
    Digits,
    /// Words of letters and digits, joined by one space, dot, dash or underscore, or by a dash between spaces.
    GenericName,
}

/// A parameter that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    Integer(i64),
    /// Inclusive on both ends.
    Range {
        from: Option<i64>,
        to: Option<i64>,
    },
    Boolean(bool),
    Text(String),
    Order {
        field: &'static str,
        descending: bool,
    },
    Texts(Vec<String>),
    Value(Value),
}

impl Rule {
    /// The parameter's value, or what is wrong with it, as the inside of `child "name" fails because […]`.
    pub fn check(self, name: &str, value: &Value, dialect: Dialect) -> Result<Given, String> {
        let read = self.read_text(value);
        let value = read.as_ref().unwrap_or(value);
        match self {
            Self::Integer(bound) => bound.check(name, value, SAFE_MAX, dialect).map(Given::Integer),
            Self::Quantity(bound) => match (value, dialect) {
                (_, Dialect::Documented) => search::range(bound, name, value, dialect),
                (_, Dialect::Core26) => bound.check(name, value, SAFE_MAX, dialect).map(Given::Integer),
            },
            Self::Boolean => boolean(value).map(Given::Boolean).ok_or(format!("\"{name}\" must be a boolean")),
            Self::OneOf(allowed) => one_of(name, value, allowed),
            Self::Text(checks) => text(name, value, checks).map(Given::Text),
            Self::Either(lists) => either(name, value, lists),
            Self::Order(fields) => order(name, value, fields),
            Self::Ip => ip(name, value),
            Self::Range(bound) => search::range(bound, name, value, dialect),
            Self::Percents => search::percents(name, value, dialect),
            Self::Named(names) => search::named(name, value, names, dialect),
            Self::Several(of, least, most) => search::several(name, value, (*of, least, most), dialect),
            Self::Object => search::object(name, value),
            Self::Uri => hook::uri(name, value),
            Self::Conditions => hook::conditions(name, value),
            Self::Share => share(name, value),
        }
    }

    /// Where an object or a list is wanted, the JSON text of one is one, as in the reference.
    fn read_text(self, value: &Value) -> Option<Value> {
        let first = match self {
            Self::Range(_) | Self::Percents | Self::Object => '{',
            Self::Several(..) | Self::Conditions => '[',
            _ => return None,
        };
        let text = value.as_str().filter(|text| text.trim_start().starts_with(first))?;
        serde_json::from_str(text).ok()
    }

    /// Whether the parameter is a number or a flag, so that no text of it can be meant.
    pub fn is_plain_value(self) -> bool {
        matches!(self, Self::Integer(_) | Self::Quantity(_) | Self::Range(_) | Self::Named(_) | Self::Boolean)
    }

    /// Whether a range is taken.
    pub fn is_range(self) -> bool {
        matches!(self, Self::Quantity(_) | Self::Range(_) | Self::Percents)
    }
}

impl Bound {
    fn check(self, name: &str, value: &Value, greatest: i64, dialect: Dialect) -> Result<i64, String> {
        let refuse = |reason: String| Err(format!("\"{name}\" {reason}"));
        let is_lost = value.as_str().is_some_and(|text| dialect == Dialect::Core26 && is_odd_zero(text.trim()));
        let number = match whole(value) {
            Number::Fraction | Number::Whole(_) if is_lost => return refuse("must be a safe number".to_owned()),
            Number::Not => return refuse("must be a number".to_owned()),
            Number::Fraction => return refuse("must be an integer".to_owned()),
            Number::Whole(number) if number.abs() > i128::from(greatest) => {
                return refuse("must be a safe number".to_owned());
            }
            Number::Whole(number) => number as i64,
        };
        match self {
            Self::Positive if number < 1 => refuse("must be a positive number".to_owned()),
            Self::Least(least) | Self::Between(least, _) if number < least => {
                refuse(format!("must be larger than or equal to {least}"))
            }
            Self::Between(_, most) if number > most => refuse(format!("must be less than or equal to {most}")),
            _ => Ok(number),
        }
    }
}

/// A value read as a number.
enum Number {
    Not,
    Fraction,
    Whole(i128),
}

/// Reads a JSON number or a text of one.
fn whole(value: &Value) -> Number {
    match value {
        Value::Number(number) => number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
            .map_or_else(|| number.as_f64().map_or(Number::Not, from_float), Number::Whole),
        Value::String(text) => from_text(text.trim()),
        _ => Number::Not,
    }
}

fn from_text(text: &str) -> Number {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // What does not even fit here is out of any bounds.
        let far = if text.starts_with('-') { i128::MIN + 1 } else { i128::MAX };
        return Number::Whole(text.parse().unwrap_or(far));
    }
    // Digits, then perhaps a point and digits, then perhaps an exponent.
    let (mantissa, exponent) = digits.split_once(['e', 'E']).map_or((digits, None), |(head, tail)| (head, Some(tail)));
    let (integer, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(head, tail)| (head, Some(tail)));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exponent = |text: &str| are_digits(text.strip_prefix(['-', '+']).unwrap_or(text));
    if !are_digits(integer) || !fraction.is_none_or(are_digits) || !exponent.is_none_or(is_exponent) {
        return Number::Not;
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => from_float(number),
        // Written as a number, but beyond all.
        _ => Number::Whole(i128::MAX),
    }
}

/// Whether the text of a number without an exponent begins with a zero that the reference loses when it writes the number
/// again, by which it tells what is safe: `-0`, `00`, `00.5`. Source: api.md 1.3.
fn is_odd_zero(text: &str) -> bool {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = integer.strip_prefix('-').unwrap_or(integer);
    let is_zero = !digits.is_empty() && digits.bytes().all(|byte| byte == b'0');
    let is_whole = fraction.bytes().all(|byte| byte == b'0');
    is_zero && (digits.len() > 1 || (integer != digits && is_whole))
}

fn from_float(number: f64) -> Number {
    match number {
        _ if !number.is_finite() => Number::Not,
        _ if number.fract() != 0.0 => Number::Fraction,
        // Saturates, and is then out of bounds.
        _ => Number::Whole((number as i128).clamp(i128::MIN + 1, i128::MAX)),
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

fn share(name: &str, value: &Value) -> Result<Given, String> {
    match value.as_f64().filter(|share| (0.0..=1.0).contains(share)) {
        Some(share) => Ok(Given::Integer((share * 1e6).round() as i64)),
        None => Err(format!("\"{name}\" must be a number from 0 to 1")),
    }
}

fn one_of(name: &str, value: &Value, allowed: &[&str]) -> Result<Given, String> {
    match value.as_str() {
        Some("") => Err(format!("\"{name}\" is not allowed to be empty")),
        Some(text) if allowed.contains(&text) => Ok(Given::Text(text.to_owned())),
        _ => Err(format!("\"{name}\" must be one of [{}]", allowed.join(", "))),
    }
}

fn text(name: &str, value: &Value, checks: &[Check]) -> Result<String, String> {
    let text = value.as_str().ok_or_else(|| format!("\"{name}\" must be a string"))?;
    if text.is_empty() {
        return Err(format!("\"{name}\" is not allowed to be empty"));
    }
    match checks.iter().find_map(|check| check.refusal(text)) {
        Some(reason) => Err(format!("\"{name}\" {reason}")),
        None => Ok(text.to_owned()),
    }
}

fn either(name: &str, value: &Value, lists: &[&[Check]]) -> Result<Given, String> {
    let mut reasons = Vec::with_capacity(lists.len());
    for checks in lists {
        match text(name, value, checks) {
            Ok(text) => return Ok(Given::Text(text)),
            Err(reason) => reasons.push(reason),
        }
    }
    // What all of them say is said as often, as in the reference.
    Err(reasons.join(", "))
}

fn order(name: &str, value: &Value, fields: &'static [&'static str]) -> Result<Given, String> {
    let text = value.as_str().unwrap_or_default();
    let parts: Option<(&str, &str)> = text.split_once(':').filter(|(_, direction)| !direction.contains(':'));
    let (field, direction) = parts.ok_or_else(|| format!("\"{name}\" needs to match format <iteratee>:<direction>"))?;
    if !matches!(direction, "asc" | "desc") {
        return Err(format!("\"{name}\" needs to have a direction of either \"asc\" or \"desc\""));
    }
    match fields.iter().find(|known| **known == field) {
        Some(field) => Ok(Given::Order { field, descending: direction == "desc" }),
        None => Err(format!("\"{name}\" needs to have an iteratee included in: [{}]", fields.join(", "))),
    }
}

fn ip(name: &str, value: &Value) -> Result<Given, String> {
    let parse = |text: &str| {
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: std::net::IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        length.map_or(Some(0), |length| length.parse::<u8>().ok()).filter(|length| *length <= most)
    };
    match value.as_str().filter(|text| parse(text).is_some()) {
        Some(text) => Ok(Given::Text(text.to_owned())),
        None => Err(format!("\"{name}\" must be a valid ip address with a optional CIDR")),
    }
}

impl Check {
    /// Why a text that is not empty fails.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn number(bound: Bound, value: Value, dialect: Dialect) -> Result<Given, String> {
        Rule::Quantity(bound).check("n", &value, dialect)
    }

    #[test]
    fn numbers_are_read_as_texts_too_and_bounds_are_named() {
        use Dialect::{Core26, Documented};
        assert_eq!(number(Bound::Any, json!("5"), Core26), Ok(Given::Integer(5)));
        assert_eq!(number(Bound::Any, json!("1e2"), Core26), Ok(Given::Integer(100)));
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
        assert_eq!(number(Bound::Any, large, Documented), Ok(Given::Integer(9_007_199_254_740_993)));
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
            assert_eq!(number(Bound::Any, json!(text), Dialect::Core26), Ok(Given::Integer(value)), "{text}");
        }
        for fraction in ["0.5", "-0.5"] {
            let refused = Err("\"n\" must be an integer".to_owned());
            assert_eq!(number(Bound::Any, json!(fraction), Dialect::Core26), refused, "{fraction}");
        }
        // A JSON number has been read by then, and the published specification knows no such thing.
        assert_eq!(number(Bound::Any, json!(-0.0), Dialect::Core26), Ok(Given::Integer(0)));
        for text in ["-0", "00"] {
            assert_eq!(number(Bound::Any, json!(text), Dialect::Documented), Ok(Given::Integer(0)), "{text}");
        }
    }

    #[test]
    fn ranges_are_a_matter_of_dialect() {
        let range = json!({"from": 1, "to": "5"});
        let given = Given::Range { from: Some(1), to: Some(5) };
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
        assert_eq!(check(json!(0.25)), Ok(Given::Integer(250_000)));
        assert_eq!((check(json!(0)), check(json!(1))), (Ok(Given::Integer(0)), Ok(Given::Integer(1_000_000))));
        for wrong in [json!(1.1), json!(-0.1), json!("0.5"), json!(null)] {
            assert_eq!(check(wrong), Err("\"share\" must be a number from 0 to 1".to_owned()));
        }
    }

    #[test]
    fn the_order_of_complaints_about_an_order_is_fixed() {
        let rule = Rule::Order(&["height", "version"]);
        let check = |text: &str| rule.check("orderBy", &json!(text), Dialect::Documented);
        assert_eq!(check("height:desc"), Ok(Given::Order { field: "height", descending: true }));
        for (text, part) in [("height", "format"), ("a:b:c", "format"), ("a:b", "direction"), ("a:asc", "iteratee")] {
            assert!(check(text).unwrap_err().contains(part), "{text}");
        }
    }
}
