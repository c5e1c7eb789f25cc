//! Which addresses everything in the lab has.
//!
//! | | IPv4 | IPv6 |
//! |---|---|---|
//! | node N on red, the primary network | 192.168.50.1N | `fd00:50::1N` |
//! | node N on blue | 192.168.60.1N | `fd00:60::1N` |
//! | the outside server of either network | .200 | `::200` |
//! | the test itself, if it joins | 192.168.50.100 | `fd00:50::100` |
//! | pod I (from 11) of node N | 10.244.N.I | `fd00:10:244:N::I` |
//! | services | 10.96.0.0/16 | `fd00:10:96::/112` |
//! | the destination that is on red and on blue | 172.31.0.9 | `fd00:31::9` |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// For tests that do the same in each.
    pub const BOTH: [Family; 2] = [Family::V4, Family::V6];

    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// The destination that the outside servers of red and of blue both have: who answers tells which network was used.
    #[must_use]
    pub fn destination(self) -> IpAddr {
        match self {
            Family::V4 => IpAddr::V4(Ipv4Addr::new(172, 31, 0, 9)),
            Family::V6 => IpAddr::V6(Ipv6Addr::new(0xfd00, 0x31, 0, 0, 0, 0, 0, 9)),
        }
    }

    /// The prefix length of a single address.
    #[must_use]
    pub fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }

    /// What nft calls it.
    pub(crate) fn nft(self) -> &'static str {
        match self {
            Family::V4 => "ip",
            Family::V6 => "ip6",
        }
    }
}

/// A network outside the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    /// The nodes' primary one, where their default route points. Its outside server is `ext`.
    Red,
    /// A second one. Its outside server is `blue`.
    Blue,
    /// Between the OVN stand-ins of the nodes; stands for the tunnels.
    Tunnel,
}

impl Network {
    /// The namespace of its bridge.
    pub(crate) fn switch(self) -> &'static str {
        match self {
            Network::Red => "sw-red",
            Network::Blue => "sw-blue",
            Network::Tunnel => "sw-tunnel",
        }
    }

    /// The address of the host with this number.
    pub(crate) fn address(self, family: Family, host: u8) -> IpAddr {
        let text = match (self, family) {
            (Network::Red, Family::V4) => format!("192.168.50.{host}"),
            (Network::Red, Family::V6) => format!("fd00:50::{host}"),
            (Network::Blue, Family::V4) => format!("192.168.60.{host}"),
            (Network::Blue, Family::V6) => format!("fd00:60::{host}"),
            (Network::Tunnel, Family::V4) => format!("100.88.0.{host}"),
            (Network::Tunnel, Family::V6) => format!("fd00:100:88::{host}"),
        };
        text.parse().expect("made of an address")
    }
}

/// The length of the prefix of every network and of every node's pods.
pub(crate) fn subnet_bits(family: Family) -> u8 {
    match family {
        Family::V4 => 24,
        Family::V6 => 64,
    }
}

/// The number of an outside server in its network.
pub(crate) const OUTSIDE: u8 = 200;

/// The number of the namespace that the test itself runs in, on red.
pub(crate) const SELF: u8 = 100;

/// The number of a node in the networks it is on.
pub(crate) fn node_host(node: u8) -> u8 {
    10 + node
}

/// An address in the pod subnet of a node.
pub(crate) fn pod(family: Family, node: u8, host: u8) -> IpAddr {
    let text = match family {
        Family::V4 => format!("10.244.{node}.{host}"),
        Family::V6 => format!("fd00:10:244:{node}::{host}"),
    };
    text.parse().expect("made of an address")
}

/// The pod subnet of a node.
pub(crate) fn pod_subnet(family: Family, node: u8) -> String {
    match family {
        Family::V4 => format!("10.244.{node}.0/24"),
        Family::V6 => format!("fd00:10:244:{node}::/64"),
    }
}

/// All pods.
pub(crate) fn pods(family: Family) -> &'static str {
    match family {
        Family::V4 => "10.244.0.0/16",
        Family::V6 => "fd00:10:244::/48",
    }
}

/// All services.
pub(crate) fn services(family: Family) -> &'static str {
    match family {
        Family::V4 => "10.96.0.0/16",
        Family::V6 => "fd00:10:96::/112",
    }
}
