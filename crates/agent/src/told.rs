//! From what was told to a node's policy.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use egret_core::{EgressService, GatewayMode, NetworkKind, NodeName, ServiceKey};
use egret_hostmodel::{AddressExit, Datapath, Others, Policy, Port, ServiceExit, Settings, Transport};
use ipnet::IpNet;

use crate::objects::{EgressIpFacts, Objects};

/// What a node's options say of its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// This node.
    pub node: NodeName,
    /// The numbers to use.
    pub settings: Settings,
    /// Who brings packets here; `None`: OVN-Kubernetes if the node carries its annotations.
    pub datapath: Option<Datapath>,
    /// More prefixes inside the cluster.
    pub cluster: BTreeSet<IpNet>,
    /// What OVN-Kubernetes replaces the node's address by for `externalTrafficPolicy: Local`.
    pub local_policy_sources: BTreeSet<IpAddr>,
}

impl Options {
    /// The defaults for a node.
    #[must_use]
    pub fn new(node: &str) -> Self {
        // OVN-Kubernetes' masquerade addresses: the network's third in both of its plans.
        let third =
            ["169.254.169.3", "169.254.0.3", "fd69::3"].map(|ip| ip.parse().expect("written here as an address"));
        Self {
            node: node.into(),
            settings: Settings::default(),
            datapath: None,
            cluster: BTreeSet::new(),
            local_policy_sources: third.into(),
        }
    }
}

/// Who brings packets to this node.
#[must_use]
pub(crate) fn datapath(objects: &Objects, node: &NodeName, told: Option<Datapath>) -> Datapath {
    let mode = || objects.nodes.get(node.as_str()).and_then(|this| this.node.gateway_mode);
    told.unwrap_or_else(|| match mode() {
        Some(GatewayMode::Local | GatewayMode::Shared) => Datapath::Ovn,
        Some(GatewayMode::Disabled) | None => Datapath::Direct,
    })
}

/// The policy of this node.
#[must_use]
pub fn policy(objects: &Objects, options: &Options, others: Others) -> Policy {
    let datapath = datapath(objects, &options.node, options.datapath);
    let addresses: BTreeSet<IpAddr> =
        objects.nodes.values().flat_map(|facts| &facts.addresses).map(|address| address.ip()).collect();
    let pods = objects.nodes.values().flat_map(|facts| &facts.node.pod_subnets).copied();
    let services = objects.service_networks.values().flatten().copied();
    let inner: BTreeSet<IpNet> = pods.chain(services).map(|net| net.trunc()).collect();
    let mut cluster: BTreeSet<IpNet> = inner.iter().chain(&options.cluster).copied().collect();
    cluster.extend(addresses.iter().map(|ip| IpNet::from(*ip)));
    Policy {
        node: options.node.clone(),
        settings: options.settings,
        datapath,
        others,
        cluster,
        inner: inner.iter().chain(&options.cluster).copied().collect(),
        local_policy_sources: options.local_policy_sources.clone(),
        services: services_of(objects, &addresses),
        addresses: addresses_of(objects, &options.node, datapath),
        contested: BTreeSet::new(),
        unconfirmed: BTreeSet::new(),
    }
}

fn services_of(objects: &Objects, hosts: &BTreeSet<IpAddr>) -> Vec<ServiceExit> {
    let mut endpoints: BTreeMap<&ServiceKey, BTreeMap<IpAddr, Option<NodeName>>> = BTreeMap::new();
    for (service, slice) in objects.slices.values() {
        let own = endpoints.entry(service).or_default();
        for endpoint in slice {
            // One that uses its node's own network has its node's address.
            if !hosts.contains(&endpoint.address.ip()) {
                let node = own.entry(endpoint.address.ip()).or_default();
                *node = node.take().or_else(|| endpoint.node.clone());
            }
        }
    }
    let selected = objects.egress_services.values().filter_map(|service| {
        let frontend = objects.services.get(&service.key)?;
        Some(exit(service, frontend, endpoints.remove(&service.key).unwrap_or_default()))
    });
    selected.collect()
}

fn exit(
    service: &EgressService,
    frontend: &egret_api::service::Frontend,
    endpoints: BTreeMap<IpAddr, Option<NodeName>>,
) -> ServiceExit {
    let ports = frontend.ports.iter().filter_map(|port| {
        let transport = Transport::named(&port.protocol.to_lowercase())?;
        Some(Port { transport, port: port.port, node_port: port.node_port })
    });
    ServiceExit {
        key: service.key.clone(),
        created: service.created,
        source_ip_by: service.source_ip_by,
        network: service.network.clone(),
        host: service.recorded.clone(),
        load_balancer: frontend.load_balancer.iter().map(|address| address.ip()).collect(),
        cluster_ips: frontend.cluster_ips.iter().map(|address| address.ip()).collect(),
        ports: ports.collect(),
        local_policy: frontend.traffic_policy_local,
        endpoints,
    }
}

/// Whether any node holds an address on a secondary network, so that pods matter.
#[must_use]
pub fn needs_pods(objects: &Objects) -> bool {
    objects.egress_ips.values().any(|facts| held(objects, facts).next().is_some())
}

/// Whether the pods of other nodes matter, too: OVN-Kubernetes leads them to the node that holds an address.
pub(crate) fn needs_all_pods(objects: &Objects, node: &NodeName) -> bool {
    objects.egress_ips.values().any(|facts| held(objects, facts).any(|(_, holder)| holder == node))
}

/// The addresses of an EgressIP that nodes hold on secondary networks, and which nodes do.
fn held<'a>(objects: &'a Objects, facts: &'a EgressIpFacts) -> impl Iterator<Item = (IpAddr, &'a NodeName)> + 'a {
    let secondary = facts.object.recorded.iter().filter(|item| {
        let network = objects.nodes.get(item.node.as_str()).and_then(|holder| holder.node.network.as_ref().ok());
        let hosting = network.and_then(|network| network.hosting(item.address));
        matches!(hosting, Some((NetworkKind::Secondary, _)))
    });
    secondary.map(|item| (item.address.ip(), &item.node))
}

fn addresses_of(objects: &Objects, node: &NodeName, datapath: Datapath) -> Vec<AddressExit> {
    let mut exits = Vec::new();
    for facts in objects.egress_ips.values() {
        let here: Vec<IpAddr> = held(objects, facts).filter(|(_, holder)| *holder == node).map(|(ip, _)| ip).collect();
        let has_own = |ip: IpAddr| here.iter().any(|own| own.is_ipv4() == ip.is_ipv4());
        for (ip, holder) in held(objects, facts).filter(|(ip, holder)| *holder == node || !has_own(*ip)) {
            // Of those that others hold, the pods of this node come out here if they come out anywhere.
            let reach = if holder == node { datapath } else { Datapath::Direct };
            exits.push(AddressExit {
                name: facts.object.name.clone(),
                created: facts.object.created,
                ip,
                node: holder.clone(),
                pods: selected(objects, facts, node, reach),
            });
        }
    }
    exits
}

/// The pods of an EgressIP whose packets reach this node.
fn selected(objects: &Objects, facts: &EgressIpFacts, node: &NodeName, datapath: Datapath) -> BTreeMap<IpAddr, String> {
    let Some(selectors) = &facts.pods else { return BTreeMap::new() };
    let reach = objects.pods.values().filter(|pod| datapath == Datapath::Ovn || pod.node == *node);
    let matching = reach.filter(|pod| {
        let namespace = objects.namespaces.get(&pod.namespace);
        namespace.is_some_and(|labels| selectors.namespaces.matches(labels)) && selectors.pods.matches(&pod.labels)
    });
    let named = matching.flat_map(|pod| {
        pod.addresses.iter().map(move |address| (address.ip(), format!("{}/{}", pod.namespace, pod.name)))
    });
    named.collect()
}
