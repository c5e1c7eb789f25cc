//! What the API server has told, cut down to what a node needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use egret_api::annotation::secondary_host_egress_ips;
use egret_api::{egress_ip, egress_service, endpoint_slice, node, pod, service};
use egret_core::{EgressIp, EgressService, Endpoint, Node, NodeName, Platform, ServiceKey};
use egret_daemon::Resource;
use ipnet::IpNet;
use serde_json::Value;

/// A kind that a node agent watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Always: where the cluster's inside is.
    Node,
    /// Always.
    EgressIp,
    /// Always.
    EgressService,
    /// Always, but only addresses and ports are kept.
    Service,
    /// Those of Services that have an EgressService.
    EndpointSlice,
    /// Always: where the cluster's inside is.
    ServiceCidr,
    /// While any node holds an EgressIP on a secondary network.
    Namespace,
    /// While any node holds an EgressIP on a secondary network: those of this node, and where OVN-Kubernetes leads all pods
    /// of an EgressIP to the node that holds it, and this node holds one, those of all nodes.
    Pod,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Node,
        Self::EgressIp,
        Self::EgressService,
        Self::Service,
        Self::EndpointSlice,
        Self::ServiceCidr,
        Self::Namespace,
        Self::Pod,
    ];

    /// Where its objects are served.
    #[must_use]
    pub fn resource(self) -> Resource {
        let core = |kind, plural| Resource { api_version: "v1", kind, plural };
        match self {
            Self::Node => egret_api::Kind::Node.into(),
            Self::EgressIp => egret_api::Kind::EgressIp.into(),
            Self::EgressService => egret_api::Kind::EgressService.into(),
            Self::Service => egret_api::Kind::Service.into(),
            Self::EndpointSlice => egret_api::Kind::EndpointSlice.into(),
            Self::ServiceCidr => {
                Resource { api_version: "networking.k8s.io/v1", kind: "ServiceCIDR", plural: "servicecidrs" }
            }
            Self::Namespace => core("Namespace", "namespaces"),
            Self::Pod => core("Pod", "pods"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.resource().plural)
    }
}

/// Everything that was told.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub(crate) nodes: BTreeMap<String, NodeFacts>,
    pub(crate) egress_ips: BTreeMap<String, EgressIpFacts>,
    pub(crate) egress_services: BTreeMap<ServiceKey, EgressService>,
    pub(crate) services: BTreeMap<ServiceKey, service::Frontend>,
    pub(crate) slices: BTreeMap<(String, String), (ServiceKey, Vec<Endpoint>)>,
    pub(crate) service_networks: BTreeMap<String, Vec<IpNet>>,
    pub(crate) namespaces: BTreeMap<String, BTreeMap<String, String>>,
    pub(crate) pods: BTreeMap<(String, String), pod::Pod>,
    listed: BTreeSet<Kind>,
}

/// A node, with all addresses that it has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeFacts {
    pub(crate) node: Node,
    pub(crate) addresses: Vec<egret_core::Address>,
    /// What its annotation `secondary-host-egress-ips` says.
    pub(crate) said: BTreeSet<IpAddr>,
}

/// An EgressIP, with the pods that it is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EgressIpFacts {
    pub(crate) object: EgressIp,
    pub(crate) pods: Option<egress_ip::Pods>,
}

impl Objects {
    /// Everything there is of a kind. Whether that is anything new to a node.
    pub fn listed(&mut self, kind: Kind, objects: &[Value]) -> bool {
        let mut all = Self::default();
        for object in objects {
            all.seen(kind, object);
        }
        let news = match kind {
            Kind::Node => replace(&mut self.nodes, all.nodes),
            Kind::EgressIp => replace(&mut self.egress_ips, all.egress_ips),
            Kind::EgressService => replace(&mut self.egress_services, all.egress_services),
            Kind::Service => replace(&mut self.services, all.services),
            Kind::EndpointSlice => replace(&mut self.slices, all.slices),
            Kind::ServiceCidr => replace(&mut self.service_networks, all.service_networks),
            Kind::Namespace => replace(&mut self.namespaces, all.namespaces),
            Kind::Pod => replace(&mut self.pods, all.pods),
        };
        self.listed.insert(kind) || news
    }

    /// A kind is not watched any more.
    pub fn forget(&mut self, kind: Kind) {
        self.listed(kind, &[]);
        self.listed.remove(&kind);
    }

    /// Whether a kind has been listed once.
    #[must_use]
    pub fn is_listed(&self, kind: Kind) -> bool {
        self.listed.contains(&kind)
    }

    /// An object is new or has changed. What cannot be read counts as not there: it is the controller that says what is
    /// wrong with it. Whether that is anything new to a node: most of what changes in an object is not.
    pub fn seen(&mut self, kind: Kind, value: &Value) -> bool {
        let (namespace, name) = name_of(value);
        let id = (namespace.clone(), name.clone());
        match kind {
            Kind::Node => put(&mut self.nodes, name, node_facts(value)),
            Kind::EgressIp => {
                let object = egress_ip::from_value(value).object;
                put(
                    &mut self.egress_ips,
                    name,
                    object.map(|object| EgressIpFacts { object, pods: egress_ip::pods(value) }),
                )
            }
            Kind::EgressService => put(
                &mut self.egress_services,
                ServiceKey::new(&namespace, &name),
                egress_service::from_value(value).object,
            ),
            Kind::Service => {
                put(&mut self.services, ServiceKey::new(&namespace, &name), Some(service::frontend(value)))
            }
            Kind::EndpointSlice => {
                let slice = endpoint_slice::from_value(value).object;
                put(&mut self.slices, id, slice.map(|slice| (slice.service, slice.endpoints)))
            }
            Kind::ServiceCidr => put(&mut self.service_networks, name, Some(service::networks(value))),
            Kind::Namespace => put(&mut self.namespaces, name, Some(pod::labels(value))),
            Kind::Pod => put(&mut self.pods, id, pod::from_value(value)),
        }
    }

    /// An object is gone. Whether a node knew it.
    pub fn gone(&mut self, kind: Kind, value: &Value) -> bool {
        let (namespace, name) = name_of(value);
        let id = (namespace.clone(), name.clone());
        match kind {
            Kind::Node => self.nodes.remove(&name).is_some(),
            Kind::EgressIp => self.egress_ips.remove(&name).is_some(),
            Kind::EgressService => self.egress_services.remove(&ServiceKey::new(&namespace, &name)).is_some(),
            Kind::Service => self.services.remove(&ServiceKey::new(&namespace, &name)).is_some(),
            Kind::EndpointSlice => self.slices.remove(&id).is_some(),
            Kind::ServiceCidr => self.service_networks.remove(&name).is_some(),
            Kind::Namespace => self.namespaces.remove(&name).is_some(),
            Kind::Pod => self.pods.remove(&id).is_some(),
        }
    }

    /// The egress addresses that a node says it has on its secondary networks.
    pub(crate) fn said_addresses(&self, node: &NodeName) -> BTreeSet<IpAddr> {
        self.nodes.get(node.as_str()).map(|facts| facts.said.clone()).unwrap_or_default()
    }

    /// Where a node is probed.
    pub(crate) fn management_addresses(&self, node: &NodeName) -> Vec<IpAddr> {
        self.nodes.get(node.as_str()).map(|facts| facts.node.management_addresses()).unwrap_or_default()
    }

    /// The names of the Services whose EndpointSlices matter.
    #[must_use]
    pub fn selected_services(&self) -> BTreeSet<String> {
        self.egress_services.keys().map(|key| key.name.to_string()).collect()
    }
}

fn put<K: Ord, V: PartialEq>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> bool {
    let news = map.get(&key) != value.as_ref();
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
    news
}

fn replace<T: PartialEq>(known: &mut T, now: T) -> bool {
    let news = *known != now;
    *known = now;
    news
}

fn name_of(value: &Value) -> (String, String) {
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("/metadata/namespace"), text("/metadata/name"))
}

fn node_facts(value: &Value) -> Option<NodeFacts> {
    // Off the cloud: secondary networks are a bare-metal matter, and on a cloud the agent is told that there are none.
    let node = node::from_value(value, Platform::BareMetal).object?;
    let mut addresses = node::addresses(value);
    addresses.extend(&node.host_addresses);
    addresses.extend(&node.primary_addresses);
    let text = value.pointer("/metadata/annotations").and_then(|all| all.get(secondary_host_egress_ips::KEY)?.as_str());
    let said = text.and_then(|text| secondary_host_egress_ips::decode(text).ok()).unwrap_or_default();
    Some(NodeFacts { node, addresses, said: said.into_iter().map(egret_core::Address::ip).collect() })
}
