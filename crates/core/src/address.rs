//! One IP address, in canonical form.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// An IP address that two spellings of the same address compare equal as.
///
/// An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) is the IPv4 address, as Go's `net.ParseIP` and so every reader of
/// `status.items` sees it. `Display` gives the canonical text: lower case, compressed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(IpAddr);

impl Address {
    /// Parses an IP literal (rule A1).
    ///
    /// # Errors
    /// [`AddressFault`] says what the text is instead.
    pub fn parse(text: &str) -> Result<Self, AddressFault> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(ip.into());
        }
        let (host, _) = text.split_once('/').unwrap_or((text, ""));
        Err(if text.is_empty() {
            AddressFault::Empty
        } else if host.len() < text.len() && host.parse::<IpAddr>().is_ok() {
            AddressFault::Cidr
        } else if text.split_once('%').is_some_and(|(host, _)| host.parse::<Ipv6Addr>().is_ok()) {
            AddressFault::Zone
        } else {
            AddressFault::NotAnAddress
        })
    }

    /// The address as the standard library has it; never IPv4-mapped.
    #[must_use]
    pub fn ip(self) -> IpAddr {
        self.0
    }

    /// Its family.
    #[must_use]
    pub fn family(self) -> Family {
        if self.0.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// Whether this is what Go's `netip.Addr.IsGlobalUnicast` accepts: not unspecified, loopback, multicast,
    /// link-local or limited broadcast; private and unique-local addresses are.
    #[must_use]
    pub fn is_global_unicast(self) -> bool {
        match self.0 {
            IpAddr::V4(ip) => {
                !(ip.is_unspecified()
                    || ip.is_loopback()
                    || ip.is_multicast()
                    || ip.is_link_local()
                    || ip == Ipv4Addr::BROADCAST)
            }
            IpAddr::V6(ip) => {
                !(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || ip.is_unicast_link_local())
            }
        }
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        Self(ip.to_canonical())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a text is not an [`Address`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressFault {
    /// The text is empty.
    #[error("an empty text is not an IP address")]
    Empty,
    /// The text has a prefix length.
    #[error("a CIDR is not an IP address; leave the prefix length away")]
    Cidr,
    /// The text has an IPv6 zone.
    #[error("an address with a zone is only valid on one host; leave the zone away")]
    Zone,
    /// The text is something else altogether.
    #[error("this is not an IP address")]
    NotAnAddress,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_address_are_equal() {
        for (a, b) in [("FC00:F853:0CCD::54", "fc00:f853:ccd:0:0:0:0:54"), ("::ffff:192.0.2.1", "192.0.2.1")] {
            assert_eq!(Address::parse(a), Address::parse(b));
        }
        assert_eq!(Address::parse("::ffff:192.0.2.1").map(|a| a.to_string()), Ok("192.0.2.1".to_owned()));
    }

    #[test]
    fn only_a_literal_is_an_address() {
        for (text, fault) in [
            ("", AddressFault::Empty),
            ("192.0.2.1/24", AddressFault::Cidr),
            ("fc00::/7", AddressFault::Cidr),
            ("fe80::1%eth0", AddressFault::Zone),
            ("192.0.2.01", AddressFault::NotAnAddress),
            ("192.0.2", AddressFault::NotAnAddress),
            ("host/24", AddressFault::NotAnAddress),
            (" 192.0.2.1", AddressFault::NotAnAddress),
        ] {
            assert_eq!(Address::parse(text), Err(fault), "{text:?}");
        }
    }

    #[test]
    fn global_unicast_is_what_go_says() {
        for (text, global) in [
            ("10.0.0.1", true),
            ("fd00::1", true),
            ("169.254.1.1", false),
            ("fe80::1", false),
            ("127.0.0.1", false),
            ("::1", false),
            ("0.0.0.0", false),
            ("255.255.255.255", false),
            ("224.0.0.1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(Address::parse(text).map(Address::is_global_unicast), Ok(global), "{text}");
        }
    }
}
