//! Rules for texts. The patterns are few and simple, so they are matched by hand instead of by a regex engine.

use super::{Rule, SchemaError, SchemaResult};
use crate::protocol::keys::shorten;
use indexmap::IndexMap;
use std::net::{IpAddr, Ipv4Addr};

const BASE58: &str = "^[123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz]+$";
const USERNAME: &str = "^[a-z0-9!@$&_.]+$";
const NAME: &str = "^[a-zA-Z0-9]+(( - |[ ._-])[a-zA-Z0-9]+)*[.]?$";

fn quoted(text: &str) -> String {
    format!("{:?}", shorten(text))
}

fn require(holds: bool, path: &str, text: &str, rule: Rule) -> SchemaResult {
    if holds { Ok(()) } else { Err(SchemaError::new(path, quoted(text), rule)) }
}

fn characters(path: &str, text: &str, min: usize, max: usize) -> SchemaResult {
    let holds = (min..=max).contains(&text.chars().count());
    if holds { Ok(()) } else { Err(SchemaError::of_text(path, text, Rule::Characters { min, max })) }
}

/// Delegate names: pattern, then length.
pub(crate) fn username(path: &str, text: &str) -> SchemaResult {
    let allowed = |c: u8| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'!' | b'@' | b'$' | b'&' | b'_' | b'.');
    require(!text.is_empty() && text.bytes().all(allowed), path, text, Rule::Pattern(USERNAME))?;
    characters(path, text, 1, 20)
}

/// Names of businesses and bridgechains: words with single separators, at most 40 characters.
pub(crate) fn name(path: &str, text: &str) -> SchemaResult {
    require(is_name(text), path, text, Rule::Pattern(NAME))?;
    characters(path, text, 1, 40)
}

fn is_name(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    // " - " is one separator; a byte no name can contain stands for it.
    let words = text.replace(" - ", "\u{0}");
    words.split([' ', '.', '_', '-', '\u{0}']).all(|word| !word.is_empty() && word.bytes().all(is_alphanumeric))
        && !text.contains('\u{0}')
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// Tax numbers: 8 to 15 letters and digits.
pub(crate) fn vat(path: &str, text: &str) -> SchemaResult {
    require(text.bytes().all(is_alphanumeric), path, text, Rule::Pattern("^[a-zA-Z0-9]+$"))?;
    characters(path, text, 8, 15)
}

/// Scheme, colon, up to two slashes, no blanks; 4 to 80 characters. Only ASCII survives the reference's wire.
pub(crate) fn uri(path: &str, text: &str) -> SchemaResult {
    let rule = || Rule::Format { name: "uri", meaning: "an address of the form scheme:rest without blanks".to_owned() };
    require(is_uri(text), path, text, rule())?;
    characters(path, text, 4, 80)?;
    let ascii = Rule::Format { name: "uri", meaning: "an address in ASCII".to_owned() };
    require(text.is_ascii(), path, text, ascii)
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut scheme = scheme.bytes();
    scheme.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && scheme.all(|byte| is_alphanumeric(byte) || matches!(byte, b'+' | b'-' | b'.'))
        && !rest.contains(is_blank)
}

/// JavaScript's `\s`: white space and the byte order mark, without the next-line control.
fn is_blank(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// Checks for at most `limit` bytes of UTF-8; without a limit refuses even an empty text.
pub(crate) fn vendor_field(text: &str, limit: Option<usize>) -> SchemaResult {
    let Some(limit) = limit else {
        let meaning = "no text, as no milestone says how long one may be".to_owned();
        return require(false, "vendorField", text, Rule::Format { name: "vendorField", meaning });
    };
    let meaning = format!("a text of at most {limit} bytes in UTF-8");
    require(text.len() <= limit, "vendorField", text, Rule::Format { name: "vendorField", meaning })
}

/// The text of a multihash: base58 of 2 to 90 characters.
pub(crate) fn multihash_text(text: &str) -> SchemaResult {
    base58("asset.ipfs", text, 2, 90)
}

/// Checks for `min` to `max` letters and digits without 0, O, I, l.
pub(crate) fn base58(path: &str, text: &str, min: usize, max: usize) -> SchemaResult {
    let is_digit = |byte: u8| is_alphanumeric(byte) && !matches!(byte, b'0' | b'O' | b'I' | b'l');
    characters(path, text, min, max)?;
    require(text.bytes().all(is_digit), path, text, Rule::Pattern(BASE58))
}

/// One to ten different addresses of the internet that are not the machine's own.
pub(crate) fn seed_nodes(path: &str, nodes: &[String]) -> SchemaResult {
    items(path, nodes.len(), 1, 10)?;
    if let Some((one, other)) = last_pair(nodes) {
        return Err(SchemaError::new(path, quoted(&nodes[one]), Rule::Unique(other, one)));
    }
    let meaning = || "an IPv4 or IPv6 address that is neither loopback nor begins with 0".to_owned();
    nodes.iter().enumerate().try_for_each(|(index, node)| {
        let rule = Rule::Format { name: "peer", meaning: meaning() };
        require(is_seed_node(node), &format!("{path}[{index}]"), node, rule)
    })
}

fn is_seed_node(text: &str) -> bool {
    let reachable = |address: Ipv4Addr| !address.is_loopback() && address.octets()[0] != 0;
    match text.parse() {
        Ok(IpAddr::V4(address)) => reachable(address),
        Ok(IpAddr::V6(address)) => {
            let own = address.is_loopback() || address.to_ipv4_mapped().is_some_and(|mapped| mapped.is_loopback());
            !own
        }
        Err(_) => false,
    }
}

/// One to ten ports, that of the public interface among them, with names of 1 to 214 characters. The allowed characters are
/// a rule of the state, not of the schema.
pub(crate) fn ports(path: &str, ports: &IndexMap<String, u16>) -> SchemaResult {
    port_count(path, ports.len(), ports.contains_key(CORE_API))?;
    ports.keys().try_for_each(|name| {
        let rule = Rule::Characters { min: 1, max: PORT_NAME_LENGTH };
        require(is_port_name(name), &format!("{path}['{name}']"), name, rule)
    })
}

pub(crate) fn port_count(path: &str, count: usize, has_core_api: bool) -> SchemaResult {
    if !has_core_api {
        return Err(SchemaError::new(format!("{path}['{CORE_API}']"), "missing", Rule::Required));
    }
    items(path, count, 1, 10)
}

/// The one port that every bridgechain must name.
pub(crate) const CORE_API: &str = "@arkecosystem/core-api";
const PORT_NAME_LENGTH: usize = 214;

/// Returns true if a name is short enough for a port, in JavaScript's count of characters.
pub(crate) fn is_port_name(name: &str) -> bool {
    (1..=PORT_NAME_LENGTH).contains(&name.encode_utf16().count())
}

pub(crate) fn items(path: &str, found: usize, min: usize, max: usize) -> SchemaResult {
    if (min..=max).contains(&found) {
        return Ok(());
    }
    Err(SchemaError::of_list(path, found, Rule::Items { min, max }))
}

/// The indexes of the last two equal members of a list, the lower one first: the reference searches from the end.
pub(crate) fn last_pair<T: PartialEq>(items: &[T]) -> Option<(usize, usize)> {
    (0..items.len()).rev().find_map(|one| {
        let after = items[one + 1..].iter().position(|other| *other == items[one])?;
        Some((one, one + 1 + after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_with_single_separators() {
        for good in ["a", "Acme", "Biz 350", "a - b", "a.b_c-d", "Acme Inc.", "a.", "0"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", " a", "a ", "a  b", "a -b", "a--b", "a..", ".", "-", "é", "a\u{0}b", "a - - b", "a\n"] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn an_address_has_a_scheme_and_no_blanks() {
        for good in ["https://a.io", "mailto:x@y", "a:b", "A+b-.1:/x", "http:///"] {
            assert!(is_uri(good), "{good}");
        }
        for bad in ["a.io", "1a:b", ":b", "", "https://a b", "a:\u{feff}"] {
            assert!(!is_uri(bad), "{bad}");
        }
        assert!(uri("website", "a:b").is_err(), "three characters are too few");
        assert!(uri("website", &format!("a:{}", "b".repeat(79))).is_err());
    }

    #[test]
    fn seed_nodes_are_addresses_elsewhere() {
        for good in ["1.2.3.4", "192.168.1.1", "255.255.255.255", "2001:db8::1", "::ffff:8.8.8.8"] {
            assert!(is_seed_node(good), "{good}");
        }
        for bad in [
            "127.0.0.1",
            "0.1.2.3",
            "::1",
            "::ffff:127.0.0.1",
            "example.com",
            "1.2.3.4:80",
            " 1.2.3.4",
            "1.2.3",
            "01.2.3.4",
        ] {
            assert!(!is_seed_node(bad), "{bad}");
        }
        let node = || "1.2.3.4".to_owned();
        assert_eq!(seed_nodes("s", &[node(), node()]).unwrap_err().rule, Rule::Unique(1, 0));
        assert!(seed_nodes("s", &[]).is_err());
    }
}
