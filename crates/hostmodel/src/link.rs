//! The node's links and the addresses on them.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A link of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// It is up, and so can be a way out.
    pub up: bool,
    /// The link it is enslaved to.
    pub master: Option<u32>,
    /// The table of a VRF device.
    pub vrf_table: Option<u32>,
    /// Its addresses.
    pub addresses: Vec<LinkAddress>,
}

/// An address on a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkAddress {
    /// The address with its prefix.
    pub net: IpNet,
    /// Its label, where it has one (IPv4).
    pub label: Option<String>,
    /// Secondary (a second address of one IPv4 network) or deprecated (IPv6).
    pub second_rank: bool,
    /// Who put it there (`proto`); 0 is unsaid.
    pub protocol: u8,
}

/// An egress address on a link, ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EgressAddress {
    /// The address; on the link it is a /32 or /128.
    pub ip: IpAddr,
    /// The name of the link.
    pub link: String,
}
