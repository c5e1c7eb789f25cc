//! An EgressService, the Service it belongs to, and that Service's endpoints.

use std::fmt;

use crate::{Address, NodeName, NodeSelector, ServiceKey, Timestamp};

/// `spec.sourceIPBy`; an empty one means the load balancer's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceIpBy {
    /// Traffic leaves with the load balancer's address, from one host.
    LoadBalancerIp,
    /// Traffic leaves with an address of the network it takes, from every node.
    Network,
}

/// `status.host`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// No node: the empty string.
    None,
    /// One node.
    Node(NodeName),
    /// Every node: `ALL`.
    All,
}

impl Host {
    /// The value of `status.host`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::None => "",
            Self::Node(node) => node.as_str(),
            Self::All => "ALL",
        }
    }
}

impl From<&str> for Host {
    fn from(text: &str) -> Self {
        match text {
            "" => Self::None,
            "ALL" => Self::All,
            node => Self::Node(node.into()),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An EgressService object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressService {
    /// Namespace and name, those of its Service.
    pub key: ServiceKey,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// `spec.sourceIPBy`.
    pub source_ip_by: SourceIpBy,
    /// `spec.nodeSelector`; absent selects every node.
    pub selector: NodeSelector,
    /// `spec.network`: number or name of a routing table.
    pub network: Option<String>,
    /// `status.host`.
    pub recorded: Host,
}

/// What an election needs of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    /// `status.loadBalancer.ingress` has an entry.
    pub has_ingress: bool,
    /// `spec.externalTrafficPolicy` is `Local`.
    pub traffic_policy_local: bool,
}

/// One address of an EndpointSlice of the Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The address.
    pub address: Address,
    /// `nodeName`.
    pub node: Option<NodeName>,
    /// `conditions.serving`; missing means true, a terminating endpoint may still serve.
    pub serving: bool,
}
