//! A request, and the percent-encoding of addresses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::{borrow::Cow, net::SocketAddr};
use warp::http::{HeaderMap, HeaderValue, Method, header};

/// The ports that the node reports to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The peer-to-peer interface. Peers of a simulated network do not really listen.
    pub p2p: u16,
    pub api: u16,
}

impl Default for Ports {
    /// The ports of the reference's `testnet`.
    fn default() -> Self {
        Self { p2p: 4_000, api: 4_003 }
    }
}

/// A request without its body, which is read only where a route wants one.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// As sent, percent-encoded.
    pub path: String,
    /// Without the question mark; empty if there is none.
    pub query: String,
    pub headers: HeaderMap,
    /// The address of the client.
    pub remote: Option<SocketAddr>,
}

impl Request {
    /// A request for a path with its query, from this machine and to the default port of the API.
    pub fn new(method: Method, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let remote = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let host = format!("127.0.0.1:{}", Ports::default().api);
        let headers = HeaderValue::try_from(host).map(|host| (header::HOST, host)).into_iter().collect();
        Self { method, path: path.to_owned(), query: query.to_owned(), headers, remote }
    }

    /// The value of `Host`. `None` if the header is missing or occurs more than once.
    pub fn host(&self) -> Option<&str> {
        let mut hosts = self.headers.get_all(header::HOST).iter();
        hosts.next().filter(|_| hosts.next().is_none())?.to_str().ok()
    }

    /// The same, or else the default of this server.
    pub fn host_or_default(&self) -> &str {
        self.host().unwrap_or("127.0.0.1:4003")
    }

    /// True if it comes from this machine.
    pub fn is_from_loopback(&self) -> bool {
        self.remote.is_some_and(|remote| remote.ip().to_canonical().is_loopback())
    }
}

/// The set of bytes to encode in links: all but letters, digits and `-_.!~*'()`, as in the reference.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// Decodes `%41` to `A`. Other text stays, and invalid UTF-8 becomes U+FFFD.
pub(crate) fn percent_decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Encodes all but letters, digits and `-_.!~*'()`, as the links of the reference do.
pub(crate) fn percent_encode(text: &str, out: &mut String) {
    out.extend(utf8_percent_encode(text, KEPT));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_takes_any_bytes() {
        for (encoded, decoded) in
            [("a%20b", "a b"), ("%", "%"), ("%4", "%4"), ("%zz%41", "%zzA"), ("%ff", "\u{fffd}"), ("%C3%A9", "é")]
        {
            assert_eq!(percent_decode(encoded), decoded, "{encoded}");
        }
    }

    #[test]
    fn encoding_is_that_of_links() {
        let mut link = String::new();
        percent_encode("balance:desc é", &mut link);
        assert_eq!(link, "balance%3Adesc%20%C3%A9");
    }
}
