//! Why not: the typed reasons of the rules in `docs/placement.md`.

use std::fmt;

use egret_core::{Address, EgressIpName, Family, InfrastructureFault, NodeName, Requirement};

/// Why a node cannot host an address or a service: the first rule that fails.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeReason {
    /// N1: the node has no OVN host subnet.
    Ignored,
    /// N2: the labels fail this requirement of the selector.
    SelectorMismatch(Requirement),
    /// N2: the selector does not compile, so nothing new is placed.
    SelectorFaulty,
    /// N2: the node is drained in this plan, as if it were in no object's pool.
    Drained,
    /// N3: an annotation that the node needs is missing or unparsable.
    NotInfrastructureReady(InfrastructureFault),
    /// N4: the Ready condition is not True.
    NotReady,
    /// N4: the node is cordoned, and the option says that this counts.
    Cordoned,
    /// N5: the node does not answer probes.
    Unreachable,
    /// N5: no probe has ended yet; nothing new is placed here.
    NotProbed,
    /// N5: the node fell silent together with most others; nothing new is placed here until that is confirmed.
    InDoubt,
    /// N6: the address is in none of the node's networks.
    NoNetwork,
    /// N6: the node has the address in its primary network, but another candidate has it in a secondary one.
    SecondaryPreferred,
    /// N7: the node holds as many as it may; in total, or of one family.
    CapacityFull {
        /// The limit.
        limit: u32,
        /// The family that the limit is for; `None` for both together.
        family: Option<Family>,
    },
    /// N8: the node already holds this other address of the same object.
    CoLocated(Address),
    /// N9: the cloud has refused this address on this node.
    RefusedByCloud,
    /// S4: with `externalTrafficPolicy: Local` the host needs a serving pod endpoint.
    NoLocalEndpoint,
}

impl NodeReason {
    /// The number of the rule in `docs/placement.md`.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Ignored => "N1",
            Self::SelectorMismatch(_) | Self::SelectorFaulty | Self::Drained => "N2",
            Self::NotInfrastructureReady(_) => "N3",
            Self::NotReady | Self::Cordoned => "N4",
            Self::Unreachable | Self::NotProbed | Self::InDoubt => "N5",
            Self::NoNetwork | Self::SecondaryPreferred => "N6",
            Self::CapacityFull { .. } => "N7",
            Self::CoLocated(_) => "N8",
            Self::RefusedByCloud => "N9",
            Self::NoLocalEndpoint => "S4",
        }
    }

    /// The reason's name, as machines read it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ignored => "Ignored",
            Self::SelectorMismatch(_) => "SelectorMismatch",
            Self::SelectorFaulty => "SelectorFaulty",
            Self::Drained => "Drained",
            Self::NotInfrastructureReady(_) => "NotInfrastructureReady",
            Self::NotReady => "NotReady",
            Self::Cordoned => "Cordoned",
            Self::Unreachable => "Unreachable",
            Self::NotProbed => "NotProbed",
            Self::InDoubt => "InDoubt",
            Self::NoNetwork => "NoNetwork",
            Self::SecondaryPreferred => "SecondaryPreferred",
            Self::CapacityFull { .. } => "CapacityFull",
            Self::CoLocated(_) => "CoLocated",
            Self::RefusedByCloud => "RefusedByCloud",
            Self::NoLocalEndpoint => "NoLocalEndpoint",
        }
    }
}

impl fmt::Display for NodeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignored => f.write_str("the node has no OVN host subnet"),
            Self::SelectorMismatch(requirement) => write!(f, "the labels do not match {requirement}"),
            Self::SelectorFaulty => f.write_str("the selector does not compile, so nothing new is placed"),
            Self::Drained => f.write_str("the node is drained"),
            Self::NotInfrastructureReady(fault) => fault.fmt(f),
            Self::NotReady => f.write_str("the node is not Ready"),
            Self::Cordoned => f.write_str("the node is cordoned"),
            Self::Unreachable => f.write_str("the node does not answer probes"),
            Self::NotProbed => f.write_str("the node has not answered its first probe yet"),
            Self::InDoubt => {
                f.write_str("the node is silent, but so are most others at once: nothing is concluded from it")
            }
            Self::NoNetwork => f.write_str("the address is in none of the node's networks"),
            Self::SecondaryPreferred => f.write_str("another candidate has the address in a secondary network"),
            Self::CapacityFull { limit, family: None } => write!(f, "the node holds all {limit} addresses it may"),
            Self::CapacityFull { limit, family: Some(family) } => {
                write!(f, "the node holds all {limit} {family} addresses it may")
            }
            Self::CoLocated(address) => write!(f, "the node already holds {address} of the same object"),
            Self::RefusedByCloud => f.write_str("the cloud refused the address on this node"),
            Self::NoLocalEndpoint => {
                f.write_str("no serving pod endpoint is on the node (externalTrafficPolicy: Local)")
            }
        }
    }
}

/// Why an address is refused for itself, whatever the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AddressReason {
    /// A2: it is a host address of this node.
    ConflictsWithHost(NodeName),
    /// A3: this other object holds it or has the better claim.
    HeldByAnother(EgressIpName),
    /// A4: the cloud holds it for an owner we do not know.
    HeldInCloud,
}

impl AddressReason {
    /// The number of the rule in `docs/placement.md`.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::ConflictsWithHost(_) => "A2",
            Self::HeldByAnother(_) => "A3",
            Self::HeldInCloud => "A4",
        }
    }

    /// The reason's name, as machines read it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ConflictsWithHost(_) => "ConflictsWithHost",
            Self::HeldByAnother(_) => "HeldByAnother",
            Self::HeldInCloud => "HeldInCloud",
        }
    }
}

impl fmt::Display for AddressReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConflictsWithHost(node) => write!(f, "it is a host address of node {node}"),
            Self::HeldByAnother(object) => write!(f, "egressip/{object} has the better claim to it"),
            Self::HeldInCloud => f.write_str("its CloudPrivateIPConfig has no owner that we know, so it is left alone"),
        }
    }
}

/// Why an EgressService has no host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NoHostReason {
    /// S1: there is no Service of its name.
    ServiceMissing,
    /// S2: `sourceIPBy: Network` needs local gateway mode; this node is in shared mode.
    SharedGateway(NodeName),
    /// S3: the Service has no load-balancer address.
    NoIngress,
    /// S3: the Service has no pod endpoint.
    NoEndpoints,
    /// S4: the node selector does not compile.
    SelectorFaulty,
    /// S4: no node qualifies.
    NoEligibleNode,
}

impl NoHostReason {
    /// The number of the rule in `docs/placement.md`.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::ServiceMissing => "S1",
            Self::SharedGateway(_) => "S2",
            Self::NoIngress | Self::NoEndpoints => "S3",
            Self::SelectorFaulty | Self::NoEligibleNode => "S4",
        }
    }

    /// The reason's name, as machines read it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ServiceMissing => "ServiceMissing",
            Self::SharedGateway(_) => "SharedGateway",
            Self::NoIngress => "NoIngress",
            Self::NoEndpoints => "NoEndpoints",
            Self::SelectorFaulty => "SelectorFaulty",
            Self::NoEligibleNode => "NoEligibleNode",
        }
    }
}

impl fmt::Display for NoHostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServiceMissing => f.write_str("there is no Service of that name"),
            Self::SharedGateway(node) => {
                write!(f, "sourceIPBy: Network needs local gateway mode, and node {node} is in shared mode")
            }
            Self::NoIngress => f.write_str("the Service has no load-balancer address"),
            Self::NoEndpoints => f.write_str("the Service has no pod endpoint"),
            Self::SelectorFaulty => f.write_str("the node selector does not compile"),
            Self::NoEligibleNode => f.write_str("no node qualifies"),
        }
    }
}
