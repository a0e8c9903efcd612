//! Reading a merged milestone object into its typed form.

use super::{BlockRules, Milestone, MilestoneError, StaticFees, date, merge::shown};
use crate::protocol::{Arktoshi, Height, coercion, transaction::Kind};
use serde_json::Value;

pub(super) fn milestone((height, json): (Height, Value)) -> Result<Milestone, MilestoneError> {
    let read = Reader { height, json: &json };
    Ok(Milestone {
        height,
        reward: read.amount("reward")?,
        active_delegates: read.number("activeDelegates", 1, MAX_DELEGATES)?,
        blocktime: read.number("blocktime", 1, u32::MAX)?,
        block: BlockRules {
            version: read.version()?,
            max_transactions: read.limit("block.maxTransactions")?,
            max_payload: read.limit("block.maxPayload")?,
            id_full_sha256: read.flag("block.idFullSha256"),
            accept_expired_transaction_timestamps: read.flag("block.acceptExpiredTransactionTimestamps"),
        },
        vendor_field_length: at_most(read.get("vendorFieldLength")).map(|most| most.min(255) as usize),
        multi_payment_limit: match read.get("multiPaymentLimit") {
            found if coercion::is_true(found) => at_most(found).unwrap_or(0).min(u16::MAX.into()) as usize,
            _ => DEFAULT_MULTI_PAYMENT_LIMIT,
        },
        aip11: read.flag("aip11"),
        htlc_enabled: read.get("aip11") == Some(&Value::Bool(true))
            && read.get("htlcEnabled") == Some(&Value::Bool(true)),
        ignore_invalid_second_signature_field: read.flag("ignoreInvalidSecondSignatureField"),
        ignore_expired_transactions: read.flag("ignoreExpiredTransactions"),
        fees: read.fees()?,
        json: json.clone(),
    })
}

/// The largest number of delegates. More would make no sense and only cause long shuffles.
const MAX_DELEGATES: u32 = 1_000_000;
/// Source: protocol.md 3.7, payments.
const DEFAULT_MULTI_PAYMENT_LIMIT: usize = 500;

/// The epoch of a merged milestone \[ms since 1970\].
pub(super) fn epoch((height, json): &(Height, Value)) -> Result<i64, MilestoneError> {
    let read = Reader { height: *height, json };
    let allowed = || "a time of the years 1 to 9999 such as \"2017-03-21T13:00:00.000Z\"".to_owned();
    let found = read.get("epoch").ok_or_else(|| read.missing("epoch", allowed()))?;
    date::unix_ms(found).ok_or_else(|| read.wrong("epoch", found, allowed()))
}

/// The largest count that the value allows as a limit: `None` if it is below 0 or no number.
fn at_most(limit: Option<&Value>) -> Option<u32> {
    let limit = coercion::number(limit);
    // Rust's cast drops the fraction and stops at the ends, as a comparison with a count does.
    (limit >= 0.0).then_some(limit as u32)
}

struct Reader<'a> {
    height: Height,
    json: &'a Value,
}

impl Reader<'_> {
    /// The member at a path with dots.
    fn get(&self, key: &str) -> Option<&Value> {
        key.split('.').try_fold(self.json, |value, part| value.get(part))
    }

    /// A whole number, in any form that arithmetic takes.
    fn number(&self, key: &str, min: u32, max: u32) -> Result<u32, MilestoneError> {
        let allowed = || format!("a whole number from {min} to {max}");
        let found = self.get(key).ok_or_else(|| self.missing(key, allowed()))?;
        let number = coercion::number(Some(found));
        let is_allowed = number.fract() == 0.0 && (f64::from(min)..=f64::from(max)).contains(&number);
        if is_allowed { Ok(number as u32) } else { Err(self.wrong(key, found, allowed())) }
    }

    /// The reference compares a block's version without conversion to a number, so a version given as text would match no block.
    fn version(&self) -> Result<u32, MilestoneError> {
        let key = "block.version";
        match self.get(key) {
            Some(found) if !found.is_number() => {
                Err(self.wrong(key, found, format!("a whole number from 0 to {}, not as text", u32::MAX)))
            }
            _ => self.number(key, 0, u32::MAX),
        }
    }

    /// A limit on blocks. There is no limit if it is missing or no number. A limit below 0 is an error: it would allow no block.
    fn limit(&self, key: &str) -> Result<usize, MilestoneError> {
        let found = self.get(key);
        match at_most(found) {
            Some(limit) => Ok(limit as usize),
            None => match found.filter(|found| coercion::number(Some(found)) < 0.0) {
                Some(found) => Err(self.wrong(key, found, "0 or more".to_owned())),
                None => Ok(u32::MAX as usize),
            },
        }
    }

    fn amount(&self, key: &str) -> Result<Arktoshi, MilestoneError> {
        let allowed = || format!("a whole number from 0 to {}", Arktoshi::MAX);
        let found = self.get(key).ok_or_else(|| self.missing(key, allowed()))?;
        let amount = coercion::integer(found).and_then(|amount| u64::try_from(amount).ok()).and_then(Arktoshi::new);
        amount.ok_or_else(|| self.wrong(key, found, allowed()))
    }

    fn flag(&self, key: &str) -> bool {
        coercion::is_true(self.get(key))
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
        MilestoneError::Wrong { height: self.height, key: key.to_owned(), found: shown(found), allowed }
    }
}
