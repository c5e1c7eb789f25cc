//! Everything that is known of a cluster at one moment.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Address, CloudPrivateIpConfig, EgressIp, EgressIpName, EgressService, Endpoint, Node, NodeName, Selector, Service,
    ServiceKey,
};

/// Where the cluster runs, as far as egress IPs care.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Platform {
    /// Networks come from the nodes' own annotations; secondary host networks count; capacity is unlimited.
    #[default]
    BareMetal,
    /// Networks and capacity come from `cloud.network.openshift.io/egress-ipconfig`.
    Cloud,
}

/// What no object says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Where the cluster runs.
    pub platform: Platform,
    /// Nodes that match are ignored (rule N1); `None` ignores none.
    pub no_host_subnet: Option<Selector>,
    /// A cordoned node hosts nothing (rule N4); off by default.
    pub cordon_excludes: bool,
}

/// Everything that is known of a cluster at one moment; what every decision is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// What no object says.
    pub options: Options,
    /// The nodes.
    pub nodes: BTreeMap<NodeName, Node>,
    /// The EgressIPs.
    pub egress_ips: BTreeMap<EgressIpName, EgressIp>,
    /// The EgressServices.
    pub egress_services: BTreeMap<ServiceKey, EgressService>,
    /// The Services; only those of EgressServices are asked for.
    pub services: BTreeMap<ServiceKey, Service>,
    /// The endpoints of Services.
    pub endpoints: BTreeMap<ServiceKey, Vec<Endpoint>>,
    /// The CloudPrivateIPConfigs.
    pub cloud: BTreeMap<Address, CloudPrivateIpConfig>,
    /// Addresses that just left a node which has not reported its addresses since (rule A2).
    pub departed: BTreeSet<(Address, NodeName)>,
}
