//! Parts of an answer, for clients that ask for some bytes only.

use std::ops::RangeInclusive;

/// The bytes that a `Range` header requests in a body of `length` bytes. `None` if it requests anything but one existing part: the
/// answer is then the whole body.
pub(crate) fn parse(header: &str, length: usize) -> Option<RangeInclusive<usize>> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let end = length.checked_sub(1)?;
    let range = match (first, last) {
        ("", count) => length.saturating_sub(count.parse().ok()?)..=end,
        (first, "") => first.parse().ok()?..=end,
        (first, last) => first.parse().ok()?..=last.parse::<usize>().ok()?.min(end),
    };
    (range.start() <= range.end()).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_lies_in_the_body_or_is_none() {
        for (header, range) in [
            ("bytes=0-9", Some(0..=9)),
            ("bytes=90-", Some(90..=99)),
            ("bytes=-5", Some(95..=99)),
            ("bytes=-500", Some(0..=99)),
            ("bytes=50-500", Some(50..=99)),
            ("bytes=100-", None),
            ("bytes=9-0", None),
            ("bytes=-0", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-1", None),
            ("bytes=-", None),
            ("bytes=99999999999999999999-", None),
        ] {
            assert_eq!(parse(header, 100), range, "{header}");
        }
        assert_eq!(parse("bytes=0-", 0), None);
    }
}
