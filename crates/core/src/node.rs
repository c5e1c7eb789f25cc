//! A node as placement sees it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
    /// The node fell silent together with most others, which is probably the prober's own fault: it takes nothing new and
    /// keeps what it validly holds.
    InDoubt,
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
    /// Where the node is probed: the addresses of its management port, in the order of its pod subnets and one a family.
    /// It is the second after the network's own: that of `10.130.0.0/23` is `10.130.0.2` (OVN-Kubernetes' address plan).
    #[must_use]
    pub fn management_addresses(&self) -> Vec<IpAddr> {
        let mut addresses: Vec<IpAddr> = Vec::new();
        for net in &self.pod_subnets {
            let address = match net.network() {
                IpAddr::V4(network) => IpAddr::V4(Ipv4Addr::from_bits(network.to_bits().saturating_add(2))),
                IpAddr::V6(network) => IpAddr::V6(Ipv6Addr::from_bits(network.to_bits().saturating_add(2))),
            };
            if net.contains(&address) && addresses.iter().all(|other| other.is_ipv4() != address.is_ipv4()) {
                addresses.push(address);
            }
        }
        addresses
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_management_address_is_the_second_of_the_first_subnet_of_each_family() {
        let fault = InfrastructureFault { annotation: "a", kind: InfrastructureFaultKind::Missing };
        let mut node = Node::new("n", Err(fault));
        let nets = ["fd01:0:0:2::/64", "10.130.0.0/23", "10.140.0.0/23", "10.150.0.0/31"];
        node.pod_subnets = nets.iter().map(|net| net.parse().unwrap()).collect();
        let addresses: Vec<String> = node.management_addresses().iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["fd01:0:0:2::2", "10.130.0.2"]);
        node.pod_subnets.drain(..3);
        assert_eq!(node.management_addresses(), Vec::<IpAddr>::new());
    }
}
