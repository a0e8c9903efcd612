//! The targets of webhooks: ranges of addresses, never names, because a name can resolve to any address.

use ipnet::IpNet;
use std::{fmt, net::IpAddr, str::FromStr};

/// The addresses that webhooks may be posted to. Without a range there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets(Vec<AddressRange>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressRange {
    /// This machine.
    Loopback,
    /// All public addresses of the internet.
    Public,
    Any,
    Net(IpNet),
}

/// Address ranges of the internet that belong to no public host: the registries of special-purpose addresses, RFC 6890.
/// Among them are the ranges of IPv6 that lead to IPv4 addresses in disguise. [`is_public`] also excludes all of IPv6 outside
/// 2000::/3.
const SPECIAL: [&str; 19] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
];

impl Targets {
    /// This machine only.
    pub fn loopback() -> Self {
        Self(vec![AddressRange::Loopback])
    }

    /// No addresses.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// True if an address may be connected to.
    pub fn allow(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|range| match range {
            AddressRange::Loopback => address.is_loopback(),
            AddressRange::Public => is_public(address),
            AddressRange::Any => true,
            AddressRange::Net(net) => net.contains(&address),
        })
    }
}

/// True if an address is that of a public host. It must not be an IPv4 address mapped to IPv6.
fn is_public(address: IpAddr) -> bool {
    let is_in = |range: &str| range.parse::<IpNet>().expect("the table holds ranges").contains(&address);
    (address.is_ipv4() || is_in("2000::/3")) && !SPECIAL.iter().any(|range| is_in(range))
}

impl FromStr for Targets {
    type Err = String;

    /// Reads ranges that are separated by commas, or `none`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::none());
        }
        let range = |part: &str| match part {
            "loopback" => Ok(AddressRange::Loopback),
            "public" => Ok(AddressRange::Public),
            "any" => Ok(AddressRange::Any),
            part => {
                let net = part.parse().or_else(|_| part.parse::<IpAddr>().map(IpNet::from));
                net.map(AddressRange::Net).map_err(|_| {
                    format!(
                        "'{part}' is no range of addresses: give 'loopback', 'public', 'any', 'none', an address, or a \
                         range like 10.1.0.0/16; host names are not taken, because they can be made to lead anywhere"
                    )
                })
            }
        };
        text.split(',').map(|part| range(part.trim())).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (index, range) in self.0.iter().enumerate() {
            f.write_str(if index > 0 { "," } else { "" })?;
            match range {
                AddressRange::Loopback => f.write_str("loopback"),
                AddressRange::Public => f.write_str("public"),
                AddressRange::Any => f.write_str("any"),
                AddressRange::Net(net) => net.fmt(f),
            }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(targets: &str, address: &str) -> bool {
        targets.parse::<Targets>().unwrap().allow(address.parse().unwrap())
    }

    #[test]
    fn loopback_is_this_machine_in_every_dress() {
        for address in ["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1"] {
            assert!(allowed("loopback", address), "{address}");
        }
        for address in ["0.0.0.0", "::", "10.0.0.1", "169.254.169.254", "fe80::1", "::ffff:10.0.0.1", "1.1.1.1"] {
            assert!(!allowed("loopback", address), "{address}");
        }
    }

    #[test]
    fn public_is_what_no_registry_sets_aside() {
        for address in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1"] {
            assert!(allowed("public", address), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::",
            "::1",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "2002:7f00:1::",
            "64:ff9b::7f00:1",
            "::ffff:10.0.0.1",
            "::7f00:1",
            "255.255.255.255",
            "224.0.0.1",
            "198.18.0.1",
            "2001:db8::1",
            "192.0.0.8",
        ] {
            assert!(!allowed("public", address), "{address}");
        }
    }

    #[test]
    fn ranges_are_read_and_shown() {
        let text = "loopback,10.1.0.0/16,192.0.2.7/32,public,any";
        assert_eq!("loopback, 10.1.0.0/16,192.0.2.7,public,any".parse::<Targets>().unwrap().to_string(), text);
        assert!(allowed("10.1.0.0/16", "10.1.255.1") && !allowed("10.1.0.0/16", "10.2.0.1"));
        assert!(allowed("10.1.0.0/16", "::ffff:10.1.0.1") && !allowed("none", "127.0.0.1"));
        assert_eq!(Targets::none().to_string(), "none");
        for wrong in ["localhost", "example.com", "10.0.0.0/33", "", "loopback,,any"] {
            assert!(wrong.parse::<Targets>().unwrap_err().contains("no range of addresses"), "{wrong}");
        }
    }
}
