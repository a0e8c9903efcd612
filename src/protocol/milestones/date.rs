//! Parsing the epoch, in every form that the reference's library of dates accepts. Source: protocol.md 5.5.

use crate::protocol::coercion;
use serde_json::Value;

/// The instant that a value names \[ms since 1970\]; `None` if it names none. A time without a zone is UTC.
pub(super) fn unix_ms(value: &Value) -> Option<i64> {
    let ms = match value {
        Value::Null | Value::Object(_) => return None,
        Value::Bool(_) | Value::Number(_) => {
            let ms = coercion::number(Some(value));
            (ms.abs() < MOST_MS as f64).then_some(ms as i64)
        }
        Value::Array(_) => with_zone(&coercion::text(value)),
        Value::String(text) if text.ends_with(['Z', 'z']) => with_zone(text),
        Value::String(text) => without_zone(text).or_else(|| with_zone(text)),
    };
    ms.filter(|ms| ms.abs() < MOST_MS)
}

/// The end of the year 9999: later instants have no form in the API.
const MOST_MS: i64 = 253_402_300_800_000;

/// Parses year, month, day, hour, minute, second and thousandths in this order. All but the year are optional, and so are
/// the usual signs between them. A part may be larger than the calendar allows: the 32nd of March is the first of April.
fn without_zone(text: &str) -> Option<i64> {
    let mut rest = Rest(text);
    let year = rest.digits(4, 4)?;
    // Two digits behind two zeros are a year of the last century.
    let year = if year < 100 { 1900 + year } else { year };
    rest.one_of(&['-', '/']);
    let month = rest.digits(1, 2).unwrap_or(1);
    rest.one_of(&['-', '/']);
    let day = rest.digits(1, 2).unwrap_or(1);
    rest.0 = rest.0.trim_start_matches(|sign: char| matches!(sign, 'T' | 't') || sign.is_whitespace());
    let hour = rest.digits(1, 2).unwrap_or(0);
    rest.one_of(&[':']);
    let minute = rest.digits(1, 2).unwrap_or(0);
    rest.one_of(&[':']);
    let second = rest.digits(1, 2).unwrap_or(0);
    rest.one_of(&['.', ':']);
    let ms = rest.digits(1, 3).unwrap_or(0);
    let is_done = rest.0.bytes().all(|byte| byte.is_ascii_digit());
    let months = year * 12 + month - 1;
    let days = days_since_1970(months.div_euclid(12), months.rem_euclid(12) + 1, day);
    is_done.then_some(days * 86_400_000 + hour * 3_600_000 + minute * 60_000 + second * 1_000 + ms)
}

/// Parses a date of ISO 8601, with or without time and zone, or a date of an e-mail.
fn with_zone(text: &str) -> Option<i64> {
    iso(text).or_else(|| {
        let date = jiff::fmt::rfc2822::parse(text).ok()?;
        Some(date.timestamp().as_millisecond())
    })
}

fn iso(text: &str) -> Option<i64> {
    let mut rest = Rest(text);
    let year = match rest.sign() {
        // The year -000000 does not exist.
        Some(sign) => Some(sign * rest.digits(6, 6)?).filter(|year| sign > 0 || *year != 0)?,
        None => rest.digits(4, 4)?,
    };
    let month = if rest.one_of(&['-']) { rest.digits(2, 2)? } else { 1 };
    let day = if rest.one_of(&['-']) { rest.digits(2, 2)? } else { 1 };
    let (mut hour, mut minute, mut second, mut ms, mut offset) = (0, 0, 0, 0, 0);
    if rest.one_of(&['T', 't', ' ']) {
        hour = rest.digits(2, 2)?;
        rest.one_of(&[':']).then_some(())?;
        minute = rest.digits(2, 2)?;
        if rest.one_of(&[':']) {
            second = rest.digits(2, 2)?;
            if rest.one_of(&['.']) {
                let digits = rest.0.len() - rest.0.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
                let shown = digits.min(3);
                ms = rest.digits(1, 3)? * 10_i64.pow(3 - shown as u32);
                rest.0 = &rest.0[digits - shown..];
            }
        }
    }
    if !rest.one_of(&['Z', 'z'])
        && let Some(sign) = rest.sign()
    {
        let hours = rest.digits(2, 2)?;
        rest.one_of(&[':']);
        let minutes = rest.digits(2, 2)?;
        (hours < 24 && minutes < 60).then_some(())?;
        offset = sign * (hours * 60 + minutes);
    }
    let is_midnight = hour == 24 && minute == 0 && second == 0 && ms == 0;
    let in_range = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (hour < 24 || is_midnight)
        && minute < 60
        && second < 60
        && rest.0.is_empty();
    let days = days_since_1970(year, month, day);
    in_range.then_some(days * 86_400_000 + hour * 3_600_000 + (minute - offset) * 60_000 + second * 1_000 + ms)
}

/// The unread rest of a text.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// Reads a number of `least` to `most` digits, as many as there are.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(count);
        let number = (count >= least).then(|| digits.parse().ok()).flatten()?;
        self.0 = rest;
        Some(number)
    }

    fn one_of(&mut self, signs: &[char]) -> bool {
        let rest = self.0.strip_prefix(signs);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn sign(&mut self) -> Option<i64> {
        let sign = if self.0.starts_with('-') { -1 } else { 1 };
        self.one_of(&['+', '-']).then_some(sign)
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, counting years from March so that the leap day is last. A day
/// beyond the month is one of the next.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dates_are_counted_right() {
        for (value, expected) in [
            (json!("1970-01-01T00:00:00Z"), 0),
            (json!("2017-03-21T13:00:00.000Z"), 1_490_101_200_000),
            (json!("2000-02-29T23:59:59.9Z"), 951_868_799_900),
            (json!("2021-11-08T13:04:13.688Z"), 1_636_376_653_688),
            (json!("2017-03-21T13:00:00.98765Z"), 1_490_101_200_987),
            (json!("2017-03-21T15:00:00+02:00"), 1_490_101_200_000),
            (json!("2017-03-21T13:00Z"), 1_490_101_200_000),
            (json!("2017-03-21T24:00:00Z"), 1_490_140_800_000),
            (json!("2017-02-31T00:00:00Z"), 1_488_499_200_000),
            (json!("+002017-03-21T13:00:00Z"), 1_490_101_200_000),
            (json!("Tue, 21 Mar 2017 13:00:00 GMT"), 1_490_101_200_000),
            (json!("2017-03-21"), 1_490_054_400_000),
            (json!("2017"), 1_483_228_800_000),
            (json!("20170321"), 1_490_054_400_000),
            (json!("2017/3/21 13:00"), 1_490_101_200_000),
            (json!("2017-03-21T13:00:00"), 1_490_101_200_000),
            // Not thousandths of a second that were left off, but nine of them.
            (json!("2017-03-21 13:00:00.9"), 1_490_101_200_009),
            (json!("2017-13-45"), 1_518_566_400_000),
            (json!("2017-00-00"), 1_480_464_000_000),
            (json!("0050-01-01"), -631_152_000_000),
            (json!("1969-12-31T23:59:59.999Z"), -1),
            (json!(1_490_101_200_000_i64), 1_490_101_200_000),
            (json!(1.5), 1),
            (json!(["2017-03-21"]), 1_490_054_400_000),
        ] {
            assert_eq!(unix_ms(&value), Some(expected), "{value}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for value in [
            json!(""),
            json!("Z"),
            json!("yesterday"),
            json!("2017-13-21T13:00:00Z"),
            json!("2017-02-32T00:00:00Z"),
            json!("2017-03-21T13:60:00Z"),
            json!("2017-03-21T13:00:60Z"),
            json!("2017-03-21T24:00:01Z"),
            json!("2017-03-21T13:00:00.000Z "),
            json!("17-03-21T13:00:00Z"),
            json!("2017-03-21T13:00:00+99:00"),
            json!("-000000-03-21T13:00:00Z"),
            json!("2017-3-21T1:2:3Z"),
            json!(null),
            json!([]),
            json!({}),
            json!(8.64e15),
        ] {
            assert_eq!(unix_ms(&value), None, "{value}");
        }
    }
}
