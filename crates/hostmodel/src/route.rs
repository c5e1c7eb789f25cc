//! Routes.

use std::fmt;
use std::net::IpAddr;

use egret_core::Family;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// The table that everything goes by which no rule sends elsewhere.
pub const MAIN: u32 = 254;

/// A unicast route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Route {
    /// Its table.
    pub table: u32,
    /// Where it leads; the default route is the prefix of length 0.
    pub destination: IpNet,
    /// Lower is preferred. IPv6 has no 0: the kernel makes 1024 of it, and so does whoever observes.
    pub metric: u32,
    /// The ways, more than one for a multipath route; ordered.
    pub hops: Vec<Hop>,
    /// Who put it there (`proto`).
    pub protocol: u8,
}

/// One way of a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Hop {
    /// The name of the link.
    pub link: String,
    /// The next router; absent on the link itself.
    pub gateway: Option<IpAddr>,
    /// The gateway is on the link though no route says so.
    pub onlink: bool,
    /// Share of the traffic, 1 to 256.
    pub weight: u16,
}

/// The family of a prefix.
pub(crate) fn family(net: &IpNet) -> Family {
    match net {
        IpNet::V4(_) => Family::V4,
        IpNet::V6(_) => Family::V6,
    }
}

/// The family of an address.
pub(crate) fn family_of(ip: IpAddr) -> Family {
    if ip.is_ipv4() { Family::V4 } else { Family::V6 }
}

/// The prefix that is one address.
pub(crate) fn host(ip: IpAddr) -> IpNet {
    IpNet::from(ip)
}

impl fmt::Display for Route {
    /// As `ip route` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.destination.prefix_len() {
            0 if self.destination.addr().is_ipv6() => f.write_str("::/0")?,
            0 => f.write_str("default")?,
            _ => write!(f, "{}", self.destination)?,
        }
        let several = self.hops.len() > 1;
        for hop in &self.hops {
            f.write_str(if several { " nexthop" } else { "" })?;
            if let Some(gateway) = hop.gateway {
                write!(f, " via {gateway}")?;
            }
            write!(f, " dev {}", hop.link)?;
            if hop.onlink {
                f.write_str(" onlink")?;
            }
            if several {
                write!(f, " weight {}", hop.weight)?;
            }
        }
        write!(f, " table {} metric {} proto {}", self.table, self.metric, self.protocol)
    }
}
