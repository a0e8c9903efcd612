//! An instant as the API shows it: seconds since the epoch, Unix seconds, and ISO 8601. Source: api.md 4.1.

use crate::{
    api::table::{Shape, json::MemberWriter},
    protocol::{Timestamp, slots::Slots},
};
use std::fmt;

/// The shape of an instant.
pub const SHAPE: Shape = Shape::Members(&[
    ("epoch", Shape::Integer, true),
    ("unix", Shape::Integer, true),
    ("human", Shape::Pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.000Z$"), true),
]);

/// `{"epoch":…,"unix":…,"human":"…"}`.
pub fn write(slot: MemberWriter<'_, '_>, slots: &Slots, timestamp: Timestamp) {
    let unix = slots.epoch_unix() + i64::from(timestamp.0);
    slot.object(|object| {
        object.member("epoch").put(&timestamp);
        object.member("unix").put(&unix);
        object.member("human").text(Iso8601(unix));
    });
}

/// Unix seconds, printed as `2017-03-21T13:00:00.000Z`.
struct Iso8601(i64);

impl fmt::Display for Iso8601 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0.div_euclid(86_400), self.0.rem_euclid(86_400));
        let (year, month, day) = civil_date(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
    }
}

/// Year, month and day of a day counted from 1970-01-01. Years begin in March here, so that the leap day is the last
/// of its year, and 400 years always have 146,097 days.
fn civil_date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix, human) in [
            (1_490_101_200, "2017-03-21T13:00:00.000Z"),
            (1_490_106_200, "2017-03-21T14:23:20.000Z"),
            (1_795_219_504, "2026-11-21T00:05:04.000Z"),
            (1_582_934_399, "2020-02-28T23:59:59.000Z"),
            (1_582_934_400, "2020-02-29T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Iso8601(unix).to_string(), human);
        }
    }
}
