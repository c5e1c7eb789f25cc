//! `{"ipv4":"192.0.2.1/24","ipv6":"2001:db8::1/64"}`: the shape several annotations share.

use egret_core::{Address, Family};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{DecodeFault, parse_prefix, to_json};

/// An address with its prefix length for one family or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ifaddr {
    v4: Option<IpNet>,
    v6: Option<IpNet>,
}

/// The shape on the wire; an absent key and an empty text are the same.
#[derive(Default, Serialize, Deserialize)]
#[serde(expecting = "a map with an address for ipv4 or ipv6")]
pub(super) struct Wire {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ipv4: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ipv6: Option<String>,
}

impl Ifaddr {
    /// Host bits are kept.
    ///
    /// # Errors
    /// If there is no address at all, or one stands for the other family.
    pub fn new(v4: Option<IpNet>, v6: Option<IpNet>) -> Result<Self, DecodeFault> {
        if v4.is_none() && v6.is_none() {
            return Err(DecodeFault::Missing { what: "address of either family" });
        }
        match (v4, v6) {
            (Some(prefix @ IpNet::V6(_)), _) => Err(DecodeFault::Family { prefix, family: Family::V4 }),
            (_, Some(prefix @ IpNet::V4(_))) => Err(DecodeFault::Family { prefix, family: Family::V6 }),
            _ => Ok(Self { v4, v6 }),
        }
    }

    /// The addresses with their prefix lengths, IPv4 first.
    pub fn prefixes(self) -> impl Iterator<Item = IpNet> {
        self.v4.into_iter().chain(self.v6)
    }

    /// The addresses, IPv4 first.
    pub fn addresses(self) -> impl Iterator<Item = Address> {
        self.prefixes().map(|prefix| prefix.addr().into())
    }

    pub(super) fn decode(text: &str) -> Result<Self, DecodeFault> {
        Self::of_wire(&serde_json::from_str(text)?)
    }

    pub(super) fn of_wire(wire: &Wire) -> Result<Self, DecodeFault> {
        let prefix =
            |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(parse_prefix).transpose();
        Self::new(prefix(&wire.ipv4)?, prefix(&wire.ipv6)?)
    }

    pub(super) fn wire(self) -> Wire {
        let text = |prefix: Option<IpNet>| prefix.map(|prefix| prefix.to_string());
        Wire { ipv4: text(self.v4), ipv6: text(self.v6) }
    }

    pub(super) fn encode(self) -> String {
        to_json(&self.wire())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_family_and_an_empty_text_are_the_same() {
        let one = Ifaddr::decode(r#"{"ipv4":"192.168.126.12/24","ipv6":""}"#).expect("one family");
        assert_eq!(one.prefixes().map(|net| net.to_string()).collect::<Vec<_>>(), ["192.168.126.12/24"]);
        assert_eq!(one.encode(), r#"{"ipv4":"192.168.126.12/24"}"#);
    }

    #[test]
    fn both_families_come_back() {
        let text = r#"{"ipv4":"192.168.126.31/24","ipv6":"fd2e::31/64"}"#;
        assert_eq!(Ifaddr::decode(text).expect("both families").encode(), text);
    }

    #[test]
    fn no_family_and_the_wrong_family_are_faults() {
        for text in ["{}", r#"{"ipv4":"","ipv6":""}"#] {
            assert!(matches!(Ifaddr::decode(text), Err(DecodeFault::Missing { .. })), "{text}");
        }
        for text in [r#"{"ipv4":"fd00::1/64"}"#, r#"{"ipv6":"10.0.0.1/8"}"#] {
            assert!(matches!(Ifaddr::decode(text), Err(DecodeFault::Family { .. })), "{text}");
        }
        assert!(matches!(Ifaddr::decode(r#"{"ipv4":"10.0.0.1"}"#), Err(DecodeFault::Prefix { .. })));
        assert!(Ifaddr::decode("7").is_err());
    }
}
