//! What a node is told: by Kubernetes, and by its options.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use egret_core::{EgressIpName, Host, NodeName, ServiceKey, SourceIpBy, Timestamp};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::{Settings, Transport};

/// Everything that decides what this node should do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// This node.
    pub node: NodeName,
    /// The numbers to use.
    pub settings: Settings,
    /// Who brings packets here, and how.
    pub datapath: Datapath,
    /// What somebody else on this node already does, so that we only look.
    pub others: Others,
    /// Prefixes inside the cluster: pods, services, nodes, and what options add.
    pub cluster: BTreeSet<IpNet>,
    /// Those of them to which packets come in by other networks: pods', and services' where OVN-Kubernetes serves them.
    pub inner: BTreeSet<IpNet>,
    /// What OVN-Kubernetes replaces the node's address by for a service with `externalTrafficPolicy: Local`; the replies
    /// of its load balancer's connections come back from there and from the node port.
    pub local_policy_sources: BTreeSet<IpAddr>,
    /// The EgressServices.
    pub services: Vec<ServiceExit>,
    /// The EgressIPs of which this node, or another one only, holds an address on a secondary network.
    pub addresses: Vec<AddressExit>,
    /// Addresses for which somebody else answers on the wire.
    pub contested: BTreeSet<IpAddr>,
    /// Addresses that are not taken, or given up, until the API server confirms that they are this node's.
    pub unconfirmed: BTreeSet<IpAddr>,
}

/// Who brings an endpoint's packets to which node's kernel, and how connections from outside reach an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Datapath {
    /// OVN-Kubernetes: it reroutes endpoints to the node that `status.host` names, and pods to the node that holds their
    /// address; a service's connections are DNATed to the ClusterIP here and to the pod in OVN.
    Ovn,
    /// Any other: a pod's packets leave through its own node, and one DNAT leads from a load balancer's address to the pod.
    Direct,
}

/// Jobs of ours that ovnkube-node does on this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    /// EgressServices.
    pub services: bool,
    /// EgressIPs on secondary networks.
    pub addresses: bool,
}

/// An EgressService with what its Service and its EndpointSlices say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceExit {
    /// Namespace and name.
    pub key: ServiceKey,
    /// When the EgressService was created.
    pub created: Timestamp,
    /// `spec.sourceIPBy`.
    pub source_ip_by: SourceIpBy,
    /// `spec.network`; absent, traffic keeps the network that it has anyway.
    pub network: Option<String>,
    /// `status.host`.
    pub host: Host,
    /// The load balancer's addresses, in the order of `status.loadBalancer.ingress`.
    pub load_balancer: Vec<IpAddr>,
    /// `spec.clusterIPs`, none for a headless service.
    pub cluster_ips: Vec<IpAddr>,
    /// `spec.ports`.
    pub ports: Vec<Port>,
    /// `spec.externalTrafficPolicy` is `Local`.
    pub local_policy: bool,
    /// Pod endpoints of the whole cluster, ready or not; none that use a node's own network.
    pub endpoints: BTreeMap<IpAddr, Option<NodeName>>,
}

/// A port of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// Its protocol.
    pub transport: Transport,
    /// Its number at the service's addresses.
    pub port: u16,
    /// Its number at the nodes' addresses, where it has one.
    pub node_port: Option<u16>,
}

/// An EgressIP of which a node holds an address on a secondary network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressExit {
    /// The object.
    pub name: EgressIpName,
    /// When it was created.
    pub created: Timestamp,
    /// The address.
    pub ip: IpAddr,
    /// The node that holds it. Of an object's addresses that others hold there is none here if this node holds one of the
    /// same family.
    pub node: NodeName,
    /// The pods whose packets reach this node, with a name for people.
    pub pods: BTreeMap<IpAddr, String>,
}
