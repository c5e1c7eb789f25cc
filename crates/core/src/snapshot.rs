//! Everything that is known of a cluster at one moment.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use crate::{
    Address, CloudPrivateIpConfig, CloudState, EgressIp, EgressIpName, EgressService, Endpoint, Node, NodeName,
    RecordedItem, Selector, Service, ServiceKey,
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
    /// Networks of pods, beside the pod subnets that the nodes name themselves (rule S3).
    pub cluster_subnets: Vec<IpNet>,
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
    /// What the cloud has refused not long ago, beside what its objects still say: the pair cools down (rule N9).
    pub refused: BTreeSet<(Address, NodeName)>,
}

impl Snapshot {
    /// Every network of pods that is known: those of the options and those of the nodes, one by one.
    pub fn pod_networks(&self) -> impl Iterator<Item = &IpNet> {
        self.options.cluster_subnets.iter().chain(self.nodes.values().flat_map(|node| &node.pod_subnets))
    }

    /// Where the addresses of `object` are, before anything is decided: off the cloud what its status says; on a cloud,
    /// for an address that the cloud was asked for on this object's behalf, the node it was asked for (unless that was
    /// refused), and the status for the others. Ascending.
    ///
    /// What the cloud has confirmed is the truth that the status follows, never the other way round.
    #[must_use]
    pub fn present(&self, object: &EgressIp) -> Vec<RecordedItem> {
        if self.options.platform != Platform::Cloud {
            return object.recorded.clone();
        }
        let claims = |owner: &EgressIpName, address: &Address| {
            self.egress_ips.get(owner).is_some_and(|owner| owner.requested.contains(address))
        };
        let owned = |address: &Address| {
            let config = self.cloud.get(address).filter(|_| object.requested.contains(address));
            config.filter(|config| config.owner.as_ref().is_some_and(|owner| claims(owner, address)))
        };
        let ours = |config: &&CloudPrivateIpConfig| {
            config.owner.as_ref() == Some(&object.name) && config.state != CloudState::Refused
        };
        // An address that the cloud was asked for on another object's behalf is not here, whatever the status says.
        let status = object.recorded.iter().filter(|item| owned(&item.address).is_none()).cloned();
        let cloud = object.requested.iter().filter_map(owned).filter(ours);
        let cloud = cloud.map(|config| RecordedItem { address: config.address, node: config.node.clone() });
        let mut items: Vec<RecordedItem> = status.chain(cloud).collect();
        items.sort_unstable();
        items
    }
}
