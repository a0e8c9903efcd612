//! A merged milestone object into its typed form.

use super::{BlockRules, Milestone, MilestoneError, StaticFees};
use crate::protocol::{Arktoshi, Height, transaction::Kind};
use serde_json::Value;

pub(super) fn milestone((height, json): (Height, Value)) -> Result<Milestone, MilestoneError> {
    let read = Reader { height, json: &json };
    Ok(Milestone {
        height,
        reward: read.amount("reward")?,
        active_delegates: read.number("activeDelegates", 1, MAX_DELEGATES)? as u32,
        blocktime: read.number("blocktime", 1, u64::from(u32::MAX))? as u32,
        epoch_unix: read.epoch()?,
        block: BlockRules {
            version: read.number("block.version", 0, u64::from(u32::MAX))? as u32,
            max_transactions: read.number("block.maxTransactions", 0, u64::from(u32::MAX))? as usize,
            max_payload: read.number("block.maxPayload", 0, u64::from(u32::MAX))? as usize,
            id_full_sha256: read.flag("block.idFullSha256")?,
            accept_expired_transaction_timestamps: read.flag("block.acceptExpiredTransactionTimestamps")?,
        },
        vendor_field_length: read.number("vendorFieldLength", 0, 255)? as usize,
        multi_payment_limit: match read.get("multiPaymentLimit") {
            Some(_) => read.number("multiPaymentLimit", 0, u64::from(u16::MAX))? as usize,
            None => DEFAULT_MULTI_PAYMENT_LIMIT,
        },
        aip11: read.flag("aip11")?,
        htlc_enabled: read.flag("htlcEnabled")?,
        ignore_invalid_second_signature_field: read.flag("ignoreInvalidSecondSignatureField")?,
        ignore_expired_transactions: read.flag("ignoreExpiredTransactions")?,
        fees: read.fees()?,
        json: json.clone(),
    })
}

/// More would make no sense and only long shuffles.
const MAX_DELEGATES: u64 = 1_000_000;
/// Source: protocol.md 3.7, payments.
const DEFAULT_MULTI_PAYMENT_LIMIT: usize = 500;

struct Reader<'a> {
    height: Height,
    json: &'a Value,
}

impl Reader<'_> {
    /// The member at a path with dots.
    fn get(&self, key: &str) -> Option<&Value> {
        key.split('.').try_fold(self.json, |value, part| value.get(part))
    }

    fn number(&self, key: &str, min: u64, max: u64) -> Result<u64, MilestoneError> {
        let allowed = || format!("a whole number from {min} to {max}");
        let found = self.get(key).ok_or_else(|| self.missing(key, allowed()))?;
        let number = found.as_u64().filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| self.wrong(key, found, allowed()))
    }

    fn amount(&self, key: &str) -> Result<Arktoshi, MilestoneError> {
        let value = self.number(key, 0, Arktoshi::MAX.value())?;
        Ok(Arktoshi::new(value).expect("the number is in the range of amounts"))
    }

    /// An absent flag is false.
    fn flag(&self, key: &str) -> Result<bool, MilestoneError> {
        let Some(found) = self.get(key) else { return Ok(false) };
        found.as_bool().ok_or_else(|| self.wrong(key, found, "true or false".to_owned()))
    }

    fn epoch(&self) -> Result<i64, MilestoneError> {
        let allowed = || "a UTC time such as \"2017-03-21T13:00:00.000Z\"".to_owned();
        let found = self.get("epoch").ok_or_else(|| self.missing("epoch", allowed()))?;
        found.as_str().and_then(unix_seconds).ok_or_else(|| self.wrong("epoch", found, allowed()))
    }

    fn fees(&self) -> Result<StaticFees, MilestoneError> {
        let mut fees = StaticFees::default();
        for kind in Kind::ALL {
            let key = format!("fees.staticFees.{}", kind.key());
            if self.get(&key).is_some() {
                fees.set(kind, self.amount(&key)?);
            }
        }
        Ok(fees)
    }

    fn missing(&self, key: &str, allowed: String) -> MilestoneError {
        MilestoneError::Missing { height: self.height, key: key.to_owned(), allowed }
    }

    fn wrong(&self, key: &str, found: &Value, allowed: String) -> MilestoneError {
        let found = found.to_string().chars().take(80).collect();
        MilestoneError::Wrong { height: self.height, key: key.to_owned(), found, allowed }
    }
}

/// `YYYY-MM-DDThh:mm:ss[.fff]Z` as Unix time [s]; fractions of a second are dropped.
fn unix_seconds(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let number = |part: &str, digits: usize| {
        (part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| part.parse::<i64>().ok())?
    };
    let mut date = date.split('-');
    let (year, month, day) = (number(date.next()?, 4)?, number(date.next()?, 2)?, number(date.next()?, 2)?);
    let mut time = time.split('.').next()?.split(':');
    let (hour, minute, second) = (number(time.next()?, 2)?, number(time.next()?, 2)?, number(time.next()?, 2)?);
    let in_range = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    (in_range && date.next().is_none() && time.next().is_none())
        .then(|| days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, counting years from March so that the leap day is last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_right() {
        assert_eq!(unix_seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_seconds("2017-03-21T13:00:00.000Z"), Some(1_490_101_200));
        assert_eq!(unix_seconds("2000-02-29T23:59:59.9Z"), Some(951_868_799));
        for wrong in [
            "",
            "Z",
            "2017-03-21",
            "2017-13-21T13:00:00Z",
            "2017-03-21T13:00Z",
            "2017-03-21T13:00:00",
            "2017-03-21T24:00:00Z",
            "2017-03-21T13:60:00Z",
            "2017-03-21T13:00:60Z",
            "2017-00-21T13:00:00Z",
            "2017-03-32T13:00:00Z",
            "+017-03-21T13:00:00Z",
        ] {
            assert_eq!(unix_seconds(wrong), None, "{wrong}");
        }
    }
}
