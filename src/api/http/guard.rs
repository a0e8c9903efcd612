//! The guard of the run: the checks that a request to `/lab` or the webhooks must pass.
//!
//! A browser on this machine sends any request that a web page wants, and its connection comes from loopback like the user's own.
//! Three checks detect such a request, and all three must pass:
//!
//! - `Host` names an address that is served. A page whose own name was made to resolve to this machine (DNS rebinding)
//!   sends that name.
//! - `Origin`, if there is one, names an address that is served. A page of another origin cannot forge its `Origin`.
//! - A body is `application/json`. A page of another origin may send that only after a preflight, and a preflight is
//!   never granted here.
//!
//! A proxy on this machine forwards the requests of any client, and its connection comes from loopback as well. A request does not
//! count as one of this machine if a header shows that a proxy named itself or its client there.
//!
//! If a header occurs twice, both values must pass, so that the client cannot choose the one that counts.
//!
//! With `--lab token` the token replaces the checks of `Host`, `Origin` and proxies, because no page knows it. Source: Fetch
//! standard, 3.2 and 4.8; RFC 9110, 7.6.3; RFC 7239.

use super::{access::Whitelist, error::ApiError, request::Request};
use std::{fmt, net::IpAddr, sync::Arc};
use warp::http::{HeaderMap, header, uri::Authority};

/// Headers that proxies add, beside those that begin with `x-forwarded-`.
const PROXY_HEADERS: [&str; 9] = [
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "true-client-ip",
    "cf-connecting-ip",
    "proxy-connection",
];
/// The shortest length of a token [characters].
const TOKEN_LENGTH_MIN: usize = 16;

/// The clients that `/lab` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LabAccess {
    /// No client.
    Off,
    /// Programs on this machine, and pages that this server itself gave out.
    #[default]
    Loopback,
    /// Any client with the token, from anywhere.
    Token(LabToken),
}

/// A secret that a request shows as `Authorization: Bearer TOKEN`.
#[derive(Clone, PartialEq, Eq)]
pub struct LabToken(Arc<str>);

impl LabToken {
    /// The token in a text, without the white space around it.
    ///
    /// # Errors
    /// It is shorter than 16 characters, or holds anything but visible ASCII.
    pub fn new(text: &str) -> Result<Self, String> {
        let token = text.trim();
        if token.len() < TOKEN_LENGTH_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("a token has {TOKEN_LENGTH_MIN} or more visible ASCII characters, without spaces"));
        }
        Ok(Self(token.into()))
    }

    /// True if a text is the token. The comparison takes the same time for all texts of one length, so its duration reveals nothing.
    fn is(&self, shown: &str) -> bool {
        let differing = |(a, b): (u8, u8)| a ^ b;
        let difference = self.0.bytes().zip(shown.bytes()).map(differing).fold(0, |all, one| all | one);
        shown.len() == self.0.len() && difference == 0
    }
}

impl fmt::Debug for LabToken {
    /// Keeps the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LabToken(..)")
    }
}

/// The clients that a route answers, of those that the API answers at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Everyone,
    /// This machine only.
    Loopback,
    /// Clients that may make the node call others.
    Webhooks,
}

/// The parts of a server's settings that decide who is answered.
#[derive(Clone, Copy)]
pub struct Gate<'s> {
    pub lab: &'s LabAccess,
    /// Clients that may use the webhooks.
    pub webhooks: &'s Whitelist,
    /// True if a proxy is in front of the server. A connection from this machine then proves nothing.
    pub is_behind_proxy: bool,
    /// The address and the port that the server listens on.
    pub host: IpAddr,
    pub port: u16,
}

impl Gate<'_> {
    /// Lets a request through to a route of this access.
    ///
    /// # Errors
    /// It may not pass; the message names what was found and what is allowed.
    pub fn check(self, request: &Request, access: Access) -> Result<(), ApiError> {
        match access {
            Access::Everyone => Ok(()),
            Access::Loopback => self.check_lab(request),
            Access::Webhooks if !self.webhooks.allows(request.remote) => Err(ApiError::Forbidden),
            Access::Webhooks if self.webhooks.is_open() => check_body_type(&request.headers),
            Access::Webhooks if self.is_behind_proxy => {
                let message = "webhooks are closed behind a proxy; --webhook-whitelist '*' opens them to all clients";
                Err(ApiError::Refused(message.to_owned()))
            }
            Access::Webhooks => self.check_page(request, "webhooks are for programs that ask for them themselves"),
        }
    }

    fn check_lab(self, request: &Request) -> Result<(), ApiError> {
        match self.lab {
            LabAccess::Off => Err(ApiError::Refused("/lab is off: this testnet was started with --lab off".to_owned())),
            LabAccess::Token(token) => check_token(token, request),
            LabAccess::Loopback if self.is_behind_proxy => {
                let message = "/lab is closed behind a proxy; --lab token opens it to those who have a token";
                Err(ApiError::Refused(message.to_owned()))
            }
            LabAccess::Loopback if request.is_from_loopback() => self
                .check_page(request, "/lab answers programs that ask it themselves, or with the token of --lab token"),
            LabAccess::Loopback => {
                let message = "/lab answers this machine only; --lab token opens it to those who have a token";
                Err(ApiError::Refused(message.to_owned()))
            }
        }
    }

    /// Refuses a request that may come from another site's web page, or through a proxy. `who` names the clients that get an answer.
    fn check_page(self, request: &Request, who: &str) -> Result<(), ApiError> {
        if let Some(header) = request.headers.keys().map(|name| name.as_str()).find(|name| is_of_proxy(name)) {
            return Err(ApiError::Refused(format!("{header}: this came through a proxy; {who}")));
        }
        let host = request.host().unwrap_or("");
        if !self.is_served(host) {
            return Err(self.refused("Host", host));
        }
        for origin in request.headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or("");
            let page = origin.strip_prefix("http://").unwrap_or("");
            if page != host && !self.is_of_this_machine(page) {
                return Err(self.refused("Origin", origin));
            }
        }
        check_body_type(&request.headers)
    }

    fn refused(self, header: &str, found: &str) -> ApiError {
        let port = self.port;
        ApiError::Refused(format!("{header} '{found}' is not served here: ask 127.0.0.1:{port} or localhost:{port}"))
    }

    /// True if a `Host` names an address of this server. A server that listens on all addresses accepts every IP address, because no
    /// page can make an IP address lead elsewhere.
    fn is_served(self, host: &str) -> bool {
        let is_number = ip_and_port(host).is_some_and(|(ip, port)| ip.is_some() && port == self.port);
        self.is_of_this_machine(host) || (self.host.is_unspecified() && is_number)
    }

    /// True if `host:port` is the address this server listens on, or leads to it by loopback.
    fn is_of_this_machine(self, address: &str) -> bool {
        let Some((ip, port)) = ip_and_port(address) else { return false };
        let listens = self.host.to_canonical();
        let is_here = listens.is_loopback() || listens.is_unspecified();
        let is_own = match ip {
            Some(ip) => ip == listens || (is_here && ip.is_loopback()),
            None => is_here,
        };
        is_own && port == self.port
    }
}

fn check_token(token: &LabToken, request: &Request) -> Result<(), ApiError> {
    let shown = request.headers.get(header::AUTHORIZATION).and_then(|shown| shown.to_str().ok());
    let shown = shown.and_then(|shown| shown.split_once(' ')).filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    match shown {
        Some((_, shown)) if token.is(shown.trim()) => check_body_type(&request.headers),
        Some(_) => Err(ApiError::Unauthorized("the token is not the one of --lab-token")),
        None => Err(ApiError::Unauthorized("/lab wants a token: send 'Authorization: Bearer TOKEN'")),
    }
}

/// True of a header that only a proxy adds. Its name is in lower case.
fn is_of_proxy(header: &str) -> bool {
    header.starts_with("x-forwarded-") || PROXY_HEADERS.contains(&header)
}

/// The address and the port of `host:port`; no address for `localhost`, nothing for any other name.
fn ip_and_port(address: &str) -> Option<(Option<IpAddr>, u16)> {
    let authority: Authority = address.parse().ok().filter(|_| !address.contains('@'))?;
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let ip = name.parse::<IpAddr>().map(|ip| ip.to_canonical()).ok();
    (ip.is_some() || name.eq_ignore_ascii_case("localhost")).then(|| (ip, authority.port_u16().unwrap_or(80)))
}

/// Refuses a body that is not declared as JSON.
fn check_body_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let length = headers.get(header::CONTENT_LENGTH).map(|length| length.as_bytes() != b"0");
    let has_body = length.unwrap_or_else(|| headers.contains_key(header::TRANSFER_ENCODING));
    let kinds = || headers.get_all(header::CONTENT_TYPE).iter().map(|kind| kind.to_str().unwrap_or(""));
    let is_json =
        |kind: &&str| kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    match kinds().find(|kind| !is_json(kind)) {
        Some(kind) => Err(ApiError::MediaType(format!("Content-Type is '{kind}': send application/json"))),
        None if has_body && kinds().count() == 0 => {
            Err(ApiError::MediaType("Content-Type is missing: send application/json".to_owned()))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_compared_whole() {
        let token = LabToken::new(" 0123456789abcdef\n").expect("a token");
        assert!(token.is("0123456789abcdef"));
        for other in ["", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0"] {
            assert!(!token.is(other), "{other}");
        }
        for wrong in ["", "short", "0123456789abcde", "0123456789 abcdef", "0123456789abcd\u{e9}f"] {
            assert!(LabToken::new(wrong).unwrap_err().contains("16 or more"), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "LabToken(..)");
    }

    #[test]
    fn addresses_are_numbers_or_localhost() {
        let ip = |text: &str| text.parse().ok();
        assert_eq!(ip_and_port("127.0.0.1:4003"), Some((ip("127.0.0.1"), 4003)));
        assert_eq!(ip_and_port("[::1]:1"), Some((ip("::1"), 1)));
        assert_eq!(ip_and_port("[::ffff:10.0.0.1]"), Some((ip("10.0.0.1"), 80)));
        assert_eq!(ip_and_port("LocalHost:5"), Some((None, 5)));
        for wrong in ["", "localhost.example.com:5", "user@localhost:5", "127.0.0.1.example.com", ":5", "null", "a b"] {
            assert_eq!(ip_and_port(wrong), None, "{wrong}");
        }
    }
}
