//! The proxy in front of a server, which names each client in a header.

use super::{access::Whitelist, error::ApiError};
use std::net::{IpAddr, SocketAddr};
use warp::http::{HeaderMap, HeaderName};

/// The header in which proxies name their clients, and the addresses of the proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxies {
    pub header: HeaderName,
    /// The header of any other sender is ignored.
    pub from: Whitelist,
}

impl Proxies {
    /// The client behind a connection. A proxy appends its own client to the header. Earlier parts of the header may be
    /// forged.
    ///
    /// # Errors
    /// The header names no address.
    pub fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> Result<SocketAddr, ApiError> {
        if !self.from.allows(Some(peer)) {
            return Ok(peer);
        }
        let Some(named) = headers.get_all(&self.header).iter().next_back() else { return Ok(peer) };
        let named = named.to_str().unwrap_or("").rsplit(',').next().unwrap_or("").trim();
        address(named).ok_or_else(|| {
            ApiError::BadRequest(format!("{}: found '{named}', allowed is an IP address at its end", self.header))
        })
    }
}

/// Reads a header in which proxies name their clients.
///
/// # Errors
/// It is no header's name, or `Forwarded`, which holds more than addresses.
pub fn header(name: &str) -> Result<HeaderName, String> {
    let header = name.parse().map_err(|_| format!("found '{name}', allowed is the name of a header"))?;
    match header == warp::http::header::FORWARDED {
        true => {
            Err("found 'Forwarded', allowed is a header of addresses, such as X-Forwarded-For or X-Real-IP".to_owned())
        }
        false => Ok(header),
    }
}

/// The address in `ip`, `ip:port` or `[ip]:port`.
fn address(text: &str) -> Option<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    text.parse().ok().or_else(|| bare.parse().ok().map(|ip: IpAddr| SocketAddr::new(ip, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies() -> Proxies {
        Proxies { header: header("X-Forwarded-For").expect("a header"), from: Whitelist::loopback() }
    }

    fn client(peer: &str, values: &[&str]) -> Result<String, String> {
        let value = |value: &&str| (HeaderName::from_static("x-forwarded-for"), value.parse().expect("a value"));
        let headers: HeaderMap = values.iter().map(value).fold(HeaderMap::new(), |mut headers, (name, value)| {
            headers.append(name, value);
            headers
        });
        let peer = SocketAddr::new(peer.parse().expect("an address"), 9);
        proxies().client(peer, &headers).map(|client| client.ip().to_string()).map_err(|why| why.to_string())
    }

    #[test]
    fn the_last_address_is_the_proxy_s_own_word() {
        let ip = |text: &str| Ok(text.to_owned());
        assert_eq!(client("127.0.0.1", &["198.51.100.7"]), ip("198.51.100.7"));
        assert_eq!(client("127.0.0.1", &["127.0.0.1, 198.51.100.7"]), ip("198.51.100.7"));
        assert_eq!(client("::1", &["127.0.0.1", "10.0.0.1,198.51.100.7:80"]), ip("198.51.100.7"));
        assert_eq!(client("127.0.0.1", &["[2001:db8::1]:80"]), ip("2001:db8::1"));
        assert_eq!(client("127.0.0.1", &["[2001:db8::1]"]), ip("2001:db8::1"));
        assert_eq!(client("127.0.0.1", &[]), ip("127.0.0.1"));
        assert_eq!(client("192.0.2.1", &["127.0.0.1"]), ip("192.0.2.1"), "it is no proxy of ours");
        for wrong in ["", "unknown", "198.51.100.7,", "198.51.100.7, _hidden"] {
            assert!(
                client("127.0.0.1", &[wrong]).is_err_and(|why| why.starts_with("x-forwarded-for: found '")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_header_of_addresses_is_named() {
        assert!(header("X-Real-IP").is_ok());
        assert!(header("forwarded").is_err_and(|why| why.contains("X-Forwarded-For")));
        assert!(header("no header").is_err_and(|why| why.contains("'no header'")));
    }
}
