//! What a node says of its objects.

use std::fmt;
use std::net::IpAddr;

use egret_core::{Family, NodeName};
use serde::{Deserialize, Serialize};

use crate::{NetworkFault, Owner};

/// One thing to know about one object on this node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Report {
    /// The object.
    pub about: Owner,
    /// What to know.
    pub finding: Finding,
}

/// What there is to know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Finding {
    /// These many sources have their way out here.
    Active {
        /// How many.
        sources: u32,
    },
    /// ovnkube-node does it on this node.
    LeftToOvn,
    /// The Service has no load-balancer address yet.
    NoLoadBalancer,
    /// The load balancer has no address of that family; the source address is left to the network.
    NoLoadBalancerAddress {
        /// `IPv4` or `IPv6`.
        family: String,
    },
    /// Another node has it, and nothing leads there: what these sources send out of the cluster is dropped.
    Elsewhere {
        /// The node; absent if none has it.
        host: Option<String>,
        /// How many sources.
        refused: u32,
    },
    /// The network is not there: what its sources send out of the cluster goes nowhere.
    Network {
        /// Why.
        fault: NetworkFault,
    },
    /// The network has no route of that family.
    NoRoute {
        /// The network.
        network: String,
        /// `IPv4` or `IPv6`.
        family: String,
    },
    /// More networks than ways can be told apart; replies of this one's inbound connections keep the default network.
    TooManyNetworks,
    /// Some of its sources are another object's (rules D1, D2).
    Standby {
        /// Whose.
        winner: Owner,
        /// How many.
        sources: u32,
    },
    /// No link of this node is in the address's network.
    NoLink {
        /// The address.
        ip: IpAddr,
    },
    /// Somebody else asks for the address, or it has never been said that it is here, and the API server does not confirm
    /// that it is this node's.
    Unconfirmed {
        /// The address.
        ip: IpAddr,
    },
    /// Somebody else answers for the address on the wire, or put it on this node's link; it is not taken until they stop.
    Contested {
        /// The address.
        ip: IpAddr,
    },
}

impl Finding {
    /// The finding that another node, or none, has it.
    pub(crate) fn elsewhere(host: Option<&NodeName>, refused: u32) -> Self {
        Self::Elsewhere { host: host.map(|host| host.as_str().to_owned()), refused }
    }

    /// The finding that `network` has no route.
    pub(crate) fn no_route(network: &str, family: Family) -> Self {
        Self::NoRoute { network: network.to_owned(), family: family.to_string() }
    }

    /// The names of all findings.
    pub const NAMES: [&'static str; 12] = [
        "active",
        "left-to-ovn",
        "no-load-balancer",
        "no-load-balancer-address",
        "elsewhere",
        "network",
        "no-route",
        "too-many-networks",
        "standby",
        "no-link",
        "unconfirmed",
        "contested",
    ];

    /// Its name, as it is serialised.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let [active, left, balancer, address, elsewhere, network, route, many, standby, link, unconfirmed, contested] =
            Self::NAMES;
        match self {
            Self::Active { .. } => active,
            Self::LeftToOvn => left,
            Self::NoLoadBalancer => balancer,
            Self::NoLoadBalancerAddress { .. } => address,
            Self::Elsewhere { .. } => elsewhere,
            Self::Network { .. } => network,
            Self::NoRoute { .. } => route,
            Self::TooManyNetworks => many,
            Self::Standby { .. } => standby,
            Self::NoLink { .. } => link,
            Self::Unconfirmed { .. } => unconfirmed,
            Self::Contested { .. } => contested,
        }
    }

    /// Whether it is as it should be.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        matches!(self, Self::Active { .. } | Self::LeftToOvn)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active { sources } => write!(f, "active for {sources} sources"),
            Self::LeftToOvn => f.write_str("left to ovnkube-node, which does it on this node"),
            Self::NoLoadBalancer => f.write_str("the Service has no load-balancer address yet"),
            Self::NoLoadBalancerAddress { family } => write!(f, "the load balancer has no {family} address"),
            Self::Elsewhere { host: Some(host), refused } => {
                write!(f, "node {host} has it and nothing leads there: {refused} sources on this node are kept in")
            }
            Self::Elsewhere { host: None, refused } => {
                write!(f, "no node has it: {refused} sources on this node are kept in")
            }
            Self::Network { fault } => write!(f, "{fault}: its sources get nowhere"),
            Self::NoRoute { network, family } => write!(f, "network {network} has no {family} route"),
            Self::TooManyNetworks => f.write_str("too many networks: its replies keep the default network"),
            Self::Standby { winner, sources } => write!(f, "{sources} of its sources are {winner}'s"),
            Self::NoLink { ip } => write!(f, "no interface of this node is in the network of {ip}"),
            Self::Unconfirmed { ip } => write!(f, "the API server does not confirm that {ip} is this node's"),
            Self::Contested { ip } => write!(f, "somebody else has {ip}, on the wire or on this node"),
        }
    }
}
