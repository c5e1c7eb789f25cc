//! Random small clusters, and random changes to them.
//!
//! Everything is drawn from small pools (ten node names of which eight can exist, fourteen addresses, three pools of
//! labels), so that what is rare in a real cluster happens all the time here: addresses that two objects want, host
//! addresses that are egress IPs, statuses that speak of deleted nodes, capacities of 0, equal ages.
//!
//! Strategies shrink towards few, plain, healthy nodes and empty objects.

mod change;
mod node;
mod object;

use egret_core::{Options, Platform, Snapshot};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

pub use change::{Change, changes};

use crate::builders::{address, selector};

/// The addresses that objects ask for. Nodes have their own addresses in the same networks (`node.rs`).
pub const ADDRESSES: [&str; 14] = [
    "10.0.0.100",
    "10.0.0.101",
    "10.0.0.102",
    "10.0.0.103",
    "10.0.1.100",
    "10.0.1.101",
    "172.16.0.100",
    "172.16.0.101",
    "172.16.5.100",
    "fd00::100",
    "fd00::101",
    "fd01::100",
    // Host addresses of the first node, when it is in the first network of its kind.
    "10.0.0.10",
    // In no network of any node.
    "203.0.113.7",
];

/// How many nodes and how many objects of a kind there are at most.
const MOST: usize = 8;

/// A random cluster, on bare metal or on a cloud.
// Alternatives, here and below, not `prop_flat_map`: that draws the second value again while the first one shrinks.
pub fn cluster() -> impl Strategy<Value = Snapshot> {
    prop_oneof![3 => cluster_on(Platform::BareMetal), 2 => cluster_on(Platform::Cloud)]
}

/// A random cluster and what happens to it.
pub fn history() -> impl Strategy<Value = (Snapshot, Vec<Change>)> {
    let history = |platform| (cluster_on(platform), changes(platform));
    prop_oneof![3 => history(Platform::BareMetal), 2 => history(Platform::Cloud)]
}

/// A random cluster on this platform.
pub fn cluster_on(platform: Platform) -> impl Strategy<Value = Snapshot> {
    let requests = if platform == Platform::Cloud { 4 } else { 0 };
    (
        options(platform),
        vec(node::parts(platform), 0..=MOST),
        vec(object::egress_ip_parts(), 0..=MOST),
        vec(object::egress_service_parts(), 0..=MOST / 2),
        vec(object::cloud_request(), 0..=requests),
        btree_set((index(ADDRESSES.len()), index(MOST)), 0..=2),
    )
        .prop_map(|(options, nodes, egress_ips, services, requests, departed)| {
            let mut snapshot = Snapshot { options, ..Snapshot::default() };
            for (i, parts) in nodes.into_iter().enumerate() {
                snapshot.departed.extend(parts.departed().map(|address| (address, node_name(i).as_str().into())));
                parts.build(i).put(&mut snapshot);
            }
            for (i, parts) in egress_ips.into_iter().enumerate() {
                let egress_ip = parts.build(i);
                snapshot.egress_ips.insert(egress_ip.name.clone(), egress_ip);
            }
            for (i, parts) in services.into_iter().enumerate() {
                let (object, service, endpoints) = parts.build(i);
                snapshot.services.extend(service.map(|service| (object.key.clone(), service)));
                snapshot.endpoints.insert(object.key.clone(), endpoints);
                snapshot.egress_services.insert(object.key.clone(), object);
            }
            snapshot.cloud.extend(requests.into_iter().map(|request| (request.address, request)));
            let departed =
                departed.into_iter().map(|(i, node)| (address(ADDRESSES[i]), node_name(node).as_str().into()));
            snapshot.departed.extend(departed);
            snapshot
        })
}

fn options(platform: Platform) -> impl Strategy<Value = Options> {
    (rare(), rare()).prop_map(move |(ignoring, cordon_excludes)| {
        let windows = selector("os=windows").compiled().cloned();
        Options { platform, no_host_subnet: windows.filter(|_| ignoring), cordon_excludes, cluster_subnets: Vec::new() }
    })
}

/// The name of the node of this number; from `MOST` on no such node ever exists.
fn node_name(i: usize) -> String {
    format!("n{i}")
}

/// A number of a node, of one that was deleted now and then.
fn node_index() -> impl Strategy<Value = usize> + Clone {
    index(MOST + 2)
}

fn index(len: usize) -> std::ops::Range<usize> {
    0..len
}

/// True in one case of eight; shrinks to false.
fn rare() -> impl Strategy<Value = bool> + Clone {
    prop::bool::weighted(0.125)
}
