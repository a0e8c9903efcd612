//! An instant as the API shows it: seconds since the epoch, Unix seconds, and ISO 8601. Source: api.md 4.1.

use crate::{
    api::table::{Frame, Shape, json::MemberWriter},
    protocol::Timestamp,
};
use std::fmt;

/// The shape of an instant.
pub(crate) const SHAPE: Shape = Shape::Members(&[
    ("epoch", Shape::Integer, true),
    ("unix", Shape::Integer, true),
    ("human", Shape::Pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$"), true),
]);

/// `{"epoch":…,"unix":…,"human":"…"}`.
pub(crate) fn write(slot: MemberWriter<'_, '_>, frame: &Frame<'_>, timestamp: Timestamp) {
    let slots = frame.view.tree().slots();
    slot.object(|object| {
        object.member("epoch").put(&timestamp);
        object.member("unix").put(&slots.unix(timestamp));
        object.member("human").text(Iso8601(slots.epoch_ms() + 1_000 * i64::from(timestamp.0)));
    });
}

/// Unix time \[ms\], printed as `2017-03-21T13:00:00.000Z`, to the end of the year 9999.
struct Iso8601(i64);

impl fmt::Display for Iso8601 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::MAX))
    }
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
            assert_eq!(Iso8601(unix * 1_000).to_string(), human);
        }
        assert_eq!(Iso8601(1_636_376_653_688).to_string(), "2021-11-08T13:04:13.688Z");
    }
}
