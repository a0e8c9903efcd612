//! Access by address, and the limit of requests. Source: api.md 1.1, 1.4.
#![expect(clippy::disallowed_methods, reason = "clients live in real time, and so do the limits they keep")]

use dashmap::DashMap;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    time::{Duration, Instant, SystemTime},
};

/// The number of clients at which the server forgets those whose window is over.
const CLIENTS_MAX: usize = 10_000;

/// The client addresses that get an answer: patterns such as `127.0.0.*`, where `*` stands for any text. Without a
/// pattern every address does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whitelist(Vec<String>);

/// The number of requests that an address has in a window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    pub requests: u32,
    /// In milliseconds.
    pub window_ms: u64,
}

/// The requests that a client has left, as the headers of every answer say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub limit: u32,
    /// Requests left in the window; -1 for one too many.
    pub remaining: i64,
    /// The end of the window [Unix ms].
    pub reset_ms: u64,
    /// The time until then in seconds, rounded up, at least 1.
    pub retry_after_seconds: u64,
}

/// Counts the requests of each address.
#[derive(Debug, Default)]
pub struct Limiter(DashMap<IpAddr, Window>);

#[derive(Debug)]
struct Window {
    used: u32,
    end: Instant,
}

impl Whitelist {
    /// The whitelist of this machine.
    pub fn loopback() -> Self {
        Self(["127.*", "::1"].map(str::to_owned).into())
    }

    /// True if all are answered.
    pub fn is_open(&self) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| pattern == "*")
    }

    /// True if a client is answered. One without an address is answered only if all are.
    pub fn allows(&self, remote: Option<SocketAddr>) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let Some(ip) = remote.map(|remote| remote.ip().to_canonical()) else { return false };
        let mut texts = vec![ip.to_string()];
        if let IpAddr::V4(ip) = ip {
            texts.push(format!("::ffff:{ip}"));
        }
        self.0.iter().any(|pattern| texts.iter().any(|text| is_like(pattern, text)))
    }
}

impl FromStr for Whitelist {
    type Err = String;

    /// Reads patterns that are separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let patterns: Vec<String> =
            text.split(',').map(|part| part.trim().to_ascii_lowercase()).filter(|part| !part.is_empty()).collect();
        let is_address = |part: &String| part.bytes().all(|byte| byte.is_ascii_hexdigit() || b".:*".contains(&byte));
        match patterns.iter().find(|part| !is_address(part)) {
            Some(wrong) => Err(format!("'{wrong}' is no pattern of addresses: give some like 127.0.0.* or ::1")),
            None => Ok(Self(patterns)),
        }
    }
}

impl fmt::Display for Whitelist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// True if `text` matches `pattern`, where each `*` matches any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, others)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let (middle, last) = others.rsplit_once('*').unwrap_or(("", others));
    for part in middle.split('*') {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

impl Default for RateLimit {
    /// The reference's: 100 requests a minute.
    fn default() -> Self {
        Self { requests: 100, window_ms: 60_000 }
    }
}

impl FromStr for RateLimit {
    type Err = String;

    /// Requests a minute, or with their own seconds: `100`, `100/60`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (requests, seconds) = text.split_once('/').unwrap_or((text, "60"));
        match (requests.parse(), seconds.parse::<u64>()) {
            (Ok(requests @ 1..), Ok(seconds @ 1..=86_400)) => Ok(Self { requests, window_ms: seconds * 1_000 }),
            _ => Err(format!("'{text}' is no limit: give requests a minute, 1 or more, or requests/seconds to 86400")),
        }
    }
}

impl Limiter {
    /// Counts a request of a client.
    pub fn take(&self, limit: RateLimit, client: IpAddr) -> Quota {
        self.take_at(limit, client, Instant::now(), SystemTime::now())
    }

    /// A monotonic clock measures the windows. The other clock only tells clients when their window ends.
    fn take_at(&self, limit: RateLimit, client: IpAddr, now: Instant, shown: SystemTime) -> Quota {
        if self.0.len() > CLIENTS_MAX {
            self.0.retain(|_, window| window.end > now);
        }
        let end = now + Duration::from_millis(limit.window_ms);
        let mut window = self.0.entry(client.to_canonical()).or_insert(Window { used: 0, end });
        if window.end <= now {
            *window = Window { used: 0, end };
        }
        window.used = window.used.saturating_add(1).min(limit.requests.saturating_add(1));
        let remaining = i64::from(limit.requests) - i64::from(window.used);
        let left = window.end.saturating_duration_since(now);
        // A clock before 1970 gives 0.
        let reset = (shown + left).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Quota {
            limit: limit.requests,
            remaining,
            reset_ms: u64::try_from(reset.as_millis()).unwrap_or(u64::MAX),
            retry_after_seconds: u64::try_from(left.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX).max(1),
        }
    }
}

impl Quota {
    /// The quota of a client that has just used up a window that begins now, and has asked once more.
    pub fn exceeded(limit: RateLimit) -> Self {
        let full = RateLimit { requests: 0, ..limit };
        Self { limit: limit.requests, ..Limiter::default().take(full, IpAddr::from([0; 4])) }
    }

    /// True if this was one request too many.
    pub fn is_exceeded(&self) -> bool {
        self.remaining < 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_addresses() {
        let allows = |list: &str, ip: &str| {
            let remote = SocketAddr::new(ip.parse().unwrap(), 1);
            list.parse::<Whitelist>().unwrap().allows(Some(remote))
        };
        assert!(allows("", "1.2.3.4") && allows("*", "::1") && allows("127.0.0.1, ::ffff:127.0.0.1", "127.0.0.1"));
        assert!(allows("::ffff:10.*", "10.1.2.3") && allows("10.*.3", "10.1.2.3") && allows("10.*", "::ffff:10.0.0.1"));
        assert!(!allows("10.*.4", "10.1.2.3") && !allows("127.0.0.1", "127.0.0.10") && !allows("::1", "::11"));
        assert!("localhost!".parse::<Whitelist>().is_err());
        assert!(!"::1".parse::<Whitelist>().unwrap().allows(None));
    }

    #[test]
    fn limits_are_requests_in_a_time() {
        assert_eq!("100".parse(), Ok(RateLimit::default()));
        assert_eq!("3/2".parse(), Ok(RateLimit { requests: 3, window_ms: 2_000 }));
        for wrong in ["", "0", "-1", "5/", "5/0", "5/86401", "many"] {
            assert!(wrong.parse::<RateLimit>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_exceeded_quota_is_that_of_one_request_too_many() {
        let limit = RateLimit { requests: 7, window_ms: 30_000 };
        let quota = Quota::exceeded(limit);
        assert_eq!((quota.limit, quota.remaining, quota.retry_after_seconds), (7, -1, 30));
        assert!(quota.is_exceeded());
    }

    #[test]
    fn a_window_ends_and_another_one_begins() {
        let (limiter, limit) = (Limiter::default(), RateLimit { requests: 2, window_ms: 1_500 });
        let client = IpAddr::from([10, 0, 0, 1]);
        let start = Instant::now();
        let at = |client, ms: u64, shown_ms: u64| {
            let shown = SystemTime::UNIX_EPOCH + Duration::from_millis(shown_ms);
            limiter.take_at(limit, client, start + Duration::from_millis(ms), shown)
        };
        let left = |ms| at(client, ms, ms).remaining;
        assert_eq!([left(0), left(100), left(200), left(1_499)], [1, 0, -1, -1]);
        // The clock on the wall was set back a day; the window ends all the same.
        let late = at(client, 1_499, 5);
        assert_eq!((late.reset_ms, late.retry_after_seconds, late.is_exceeded()), (6, 1, true));
        assert_eq!(left(1_500), 1);
        assert_eq!(at(IpAddr::from([10, 0, 0, 2]), 1_505, 0).remaining, 1);
    }
}
