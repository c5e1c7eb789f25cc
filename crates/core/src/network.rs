//! The networks of a node, and which of them hosts an address.

use ipnet::IpNet;

use crate::{Address, Family};

/// How many egress IPs a node may hold, as the cloud says: per family, in total, or both.
///
/// `None` is no limit and `Some(0)` is a full node; the two are never confused (rule N7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Capacity {
    /// Limit for IPv4 addresses.
    pub v4: Option<u32>,
    /// Limit for IPv6 addresses.
    pub v6: Option<u32>,
    /// Limit for both families together.
    pub total: Option<u32>,
}

impl Capacity {
    /// The limit that counts for one family alone.
    #[must_use]
    pub fn family(self, family: Family) -> Option<u32> {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }
}

/// Through which kind of network a node hosts an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetworkKind {
    /// The node's primary network, which OVN-Kubernetes calls the OVN network.
    Primary,
    /// Another network of the host (bare metal only).
    Secondary,
}

/// The networks in which one node can host egress IPs (rule N6).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeNetwork {
    primary: Vec<IpNet>,
    secondary: Vec<IpNet>,
}

impl NodeNetwork {
    /// The node's primary networks (at most one a family) and its secondary host networks, in any order.
    ///
    /// Host bits are dropped, so that nodes in the same networks compare equal.
    #[must_use]
    pub fn new(primary: impl IntoIterator<Item = IpNet>, secondary: impl IntoIterator<Item = IpNet>) -> Self {
        let masked = |nets: &mut dyn Iterator<Item = IpNet>| {
            let mut nets: Vec<IpNet> = nets.map(|net| net.trunc()).collect();
            // Longest prefix first: the first that contains an address is the longest match.
            nets.sort_unstable_by_key(|net| (std::cmp::Reverse(net.prefix_len()), *net));
            nets.dedup();
            nets
        };
        Self { primary: masked(&mut primary.into_iter()), secondary: masked(&mut secondary.into_iter()) }
    }

    /// The network that hosts `address`: the primary one if it contains the address, whatever more specific secondary
    /// network there is, else the longest secondary prefix that does.
    #[must_use]
    pub fn hosting(&self, address: Address) -> Option<(NetworkKind, IpNet)> {
        let of = |kind, nets: &[IpNet]| nets.iter().find(|net| net.contains(&address.ip())).map(|net| (kind, *net));
        of(NetworkKind::Primary, &self.primary).or_else(|| of(NetworkKind::Secondary, &self.secondary))
    }

    /// The primary networks, host bits dropped.
    #[must_use]
    pub fn primary(&self) -> &[IpNet] {
        &self.primary
    }

    /// The secondary host networks, longest prefix first.
    #[must_use]
    pub fn secondary(&self) -> &[IpNet] {
        &self.secondary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().expect("a prefix")).collect()
    }

    #[test]
    fn a_more_specific_secondary_network_takes_nothing_from_the_primary() {
        let network = NodeNetwork::new(nets(&["10.0.0.9/16"]), nets(&["10.0.5.1/24"]));
        let hosting = network.hosting(Address::parse("10.0.5.7").expect("an address"));
        assert_eq!(hosting, Some((NetworkKind::Primary, nets(&["10.0.0.0/16"])[0])));
    }

    #[test]
    fn the_longest_secondary_prefix_hosts() {
        let network = NodeNetwork::new(nets(&["192.0.2.1/24"]), nets(&["10.0.0.1/8", "10.1.0.1/16"]));
        let hosting = network.hosting(Address::parse("10.1.2.3").expect("an address"));
        assert_eq!(hosting, Some((NetworkKind::Secondary, nets(&["10.1.0.0/16"])[0])));
        assert_eq!(network.hosting(Address::parse("172.16.0.1").expect("an address")), None);
    }
}
