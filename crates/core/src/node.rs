//! A node as placement sees it.

use std::fmt;

use ipnet::IpNet;

use crate::{Address, Capacity, Labels, NodeName, NodeNetwork};

/// What the prober knows of a node (rule N5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reachability {
    /// The last probe was answered, or probing is off.
    Reachable,
    /// The last probe was not answered.
    Unreachable,
    /// No probe has ended yet: the node takes nothing new and keeps what it validly holds.
    NotProbed,
}

/// `mode` of the node's `l3-gateway-config` annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GatewayMode {
    /// Egress traffic leaves through the host's kernel.
    Local,
    /// Egress traffic leaves through the OVN gateway router.
    Shared,
    /// The node has no gateway.
    Disabled,
}

/// Why a node is not infrastructure-ready (rule N3): the annotation, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InfrastructureFault {
    /// The key of the annotation.
    pub annotation: &'static str,
    /// What is wrong with it.
    pub kind: InfrastructureFaultKind,
}

/// What is wrong with an annotation that a node needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InfrastructureFaultKind {
    /// The node does not have it (yet).
    Missing,
    /// The node has it, but it cannot be read.
    Unparsable,
}

impl fmt::Display for InfrastructureFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            InfrastructureFaultKind::Missing => "missing",
            InfrastructureFaultKind::Unparsable => "unparsable",
        };
        write!(f, "annotation {} is {what}", self.annotation)
    }
}

/// A node: what Kubernetes, the node itself and the prober say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `metadata.name`.
    pub name: NodeName,
    /// `metadata.labels`.
    pub labels: Labels,
    /// The Ready condition is True.
    pub ready: bool,
    /// `spec.unschedulable`.
    pub cordoned: bool,
    /// As if the node were in no object's pool any more: set by `plan --drain`, never by an observation.
    pub drained: bool,
    /// What the prober knows.
    pub reachability: Reachability,
    /// The networks for egress IPs, or why the node is not infrastructure-ready.
    pub network: Result<NodeNetwork, InfrastructureFault>,
    /// Limits from the cloud; no limits off the cloud.
    pub capacity: Capacity,
    /// The address of each family in `node-primary-ifaddr`: never an egress IP (rule A2).
    pub primary_addresses: Vec<Address>,
    /// Every address in `host-cidrs` that can be read, whether or not the node is usable (rule A2).
    pub host_addresses: Vec<Address>,
    /// The addresses that the node says are egress IPs it has put on its links (rule A2).
    pub own_egress_addresses: Vec<Address>,
    /// The gateway mode, if the node says it.
    pub gateway_mode: Option<GatewayMode>,
    /// The pod subnets of the default network: what is outside of all nodes' is host-networked.
    pub pod_subnets: Vec<IpNet>,
}

impl Node {
    /// A node that is Ready and reachable and has nothing else: the start of a builder.
    #[must_use]
    pub fn new(name: &str, network: Result<NodeNetwork, InfrastructureFault>) -> Self {
        Self {
            name: name.into(),
            labels: Labels::default(),
            ready: true,
            cordoned: false,
            drained: false,
            reachability: Reachability::Reachable,
            network,
            capacity: Capacity::default(),
            primary_addresses: Vec::new(),
            host_addresses: Vec::new(),
            own_egress_addresses: Vec::new(),
            gateway_mode: None,
            pod_subnets: Vec::new(),
        }
    }
}
