//! Random changes to a snapshot.

use egret_core::{Address, CloudPrivateIpConfig, EgressIp, EgressIpName, EgressService, Endpoint, Node, NodeName};
use egret_core::{Platform, Reachability, RecordedItem, Service, ServiceKey, Snapshot};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{ADDRESSES, MOST, index, node, node_name, object};
use crate::builders::address;

/// One change to a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A node joins or changes altogether.
    PutNode(Box<Node>),
    /// A node is deleted.
    RemoveNode(NodeName),
    /// A probe of a node ends, or what is known of it is forgotten.
    SetReachability(NodeName, Reachability),
    /// The Ready condition of a node changes.
    SetReady(NodeName, bool),
    /// An EgressIP is applied: a stored one keeps its age and status.
    PutEgressIp(Box<EgressIp>),
    /// An EgressIP is deleted.
    RemoveEgressIp(EgressIpName),
    /// Somebody writes a status.
    Record(EgressIpName, Vec<RecordedItem>),
    /// An EgressService is applied: a stored one keeps its age and status.
    PutEgressService(Box<EgressService>),
    /// An EgressService is deleted.
    RemoveEgressService(ServiceKey),
    /// A Service is applied.
    PutService(ServiceKey, Service),
    /// A Service is deleted.
    RemoveService(ServiceKey),
    /// The endpoints of a Service change.
    PutEndpoints(ServiceKey, Vec<Endpoint>),
    /// A request to the cloud is made or answered.
    PutRequest(CloudPrivateIpConfig),
    /// A request to the cloud is withdrawn.
    RemoveRequest(Address),
}

impl Change {
    /// Makes the change. One that speaks of what is not there changes nothing.
    pub fn apply(&self, snapshot: &mut Snapshot) {
        match self {
            Self::PutNode(node) => {
                snapshot.nodes.insert(node.name.clone(), (**node).clone());
            }
            Self::RemoveNode(name) => {
                snapshot.nodes.remove(name);
                snapshot.departed.retain(|(_, node)| node != name);
            }
            Self::SetReachability(name, reachability) => {
                snapshot.nodes.entry(name.clone()).and_modify(|node| node.reachability = *reachability);
            }
            Self::SetReady(name, ready) => {
                snapshot.nodes.entry(name.clone()).and_modify(|node| node.ready = *ready);
            }
            Self::PutEgressIp(_) | Self::RemoveEgressIp(_) | Self::Record(..) => self.apply_to_egress_ips(snapshot),
            Self::PutRequest(request) => {
                snapshot.cloud.insert(request.address, request.clone());
            }
            Self::RemoveRequest(address) => {
                snapshot.cloud.remove(address);
            }
            _ => self.apply_to_services(snapshot),
        }
    }

    fn apply_to_egress_ips(&self, snapshot: &mut Snapshot) {
        match self {
            Self::PutEgressIp(object) => {
                let mut object = (**object).clone();
                if let Some(stored) = snapshot.egress_ips.get(&object.name) {
                    object.created = stored.created;
                    object.recorded.clone_from(&stored.recorded);
                }
                snapshot.egress_ips.insert(object.name.clone(), object);
            }
            Self::RemoveEgressIp(name) => {
                snapshot.egress_ips.remove(name);
            }
            Self::Record(name, items) => {
                let record = |object: &mut EgressIp| object.recorded.clone_from(items);
                snapshot.egress_ips.entry(name.clone()).and_modify(record);
            }
            _ => {}
        }
    }

    fn apply_to_services(&self, snapshot: &mut Snapshot) {
        match self {
            Self::PutEgressService(object) => {
                let mut object = (**object).clone();
                if let Some(stored) = snapshot.egress_services.get(&object.key) {
                    object.created = stored.created;
                    object.recorded.clone_from(&stored.recorded);
                }
                snapshot.egress_services.insert(object.key.clone(), object);
            }
            Self::RemoveEgressService(key) => {
                snapshot.egress_services.remove(key);
            }
            Self::PutService(key, service) => {
                snapshot.services.insert(key.clone(), *service);
            }
            Self::RemoveService(key) => {
                snapshot.services.remove(key);
            }
            Self::PutEndpoints(key, endpoints) => {
                snapshot.endpoints.insert(key.clone(), endpoints.clone());
            }
            _ => {}
        }
    }
}

/// A random sequence of changes to a cluster on this platform.
pub fn changes(platform: Platform) -> impl Strategy<Value = Vec<Change>> {
    vec(change(platform), 0..12)
}

fn change(platform: Platform) -> impl Strategy<Value = Change> {
    let requests = if platform == Platform::Cloud { 3 } else { 0 };
    prop_oneof![
        6 => node_change(platform),
        6 => egress_ip_change(),
        3 => service_change(),
        requests => request_change(),
    ]
}

fn node_change(platform: Platform) -> impl Strategy<Value = Change> {
    let name = || index(MOST).prop_map(|i| NodeName::from(node_name(i).as_str()));
    prop_oneof![
        1 => name().prop_map(Change::RemoveNode),
        1 => (name(), any::<bool>()).prop_map(|(name, ready)| Change::SetReady(name, ready)),
        1 => (name(), node::reachability()).prop_map(|(name, state)| Change::SetReachability(name, state)),
        2 => (index(MOST), node::parts(platform)).prop_map(|(i, parts)| Change::PutNode(parts.build(i).build().into())),
    ]
}

fn egress_ip_change() -> impl Strategy<Value = Change> {
    let name = || index(MOST).prop_map(|i| EgressIpName::from(format!("e{i}").as_str()));
    prop_oneof![
        2 => name().prop_map(Change::RemoveEgressIp),
        1 => (name(), object::recorded()).prop_map(|(name, items)| Change::Record(name, items)),
        3 => (index(MOST), object::egress_ip_parts())
            .prop_map(|(i, parts)| Change::PutEgressIp(parts.build(i).into())),
    ]
}

fn service_change() -> impl Strategy<Value = Change> {
    let key = || index(MOST / 2).prop_map(|i| ServiceKey::new("ns", &format!("s{i}")));
    prop_oneof![
        key().prop_map(Change::RemoveEgressService),
        key().prop_map(Change::RemoveService),
        (key(), object::service()).prop_map(|(key, service)| Change::PutService(key, service)),
        (key(), object::endpoints()).prop_map(|(key, endpoints)| Change::PutEndpoints(key, endpoints)),
        (index(MOST / 2), object::egress_service_parts())
            .prop_map(|(i, parts)| Change::PutEgressService(parts.build(i).0.into())),
    ]
}

fn request_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => index(ADDRESSES.len()).prop_map(|i| Change::RemoveRequest(address(ADDRESSES[i]))),
        2 => object::cloud_request().prop_map(Change::PutRequest),
    ]
}
