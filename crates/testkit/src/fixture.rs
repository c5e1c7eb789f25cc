//! Clusters of real size, as their JSON: what the benchmarks run on.
//!
//! Nodes have thirty labels and all annotations that OVN-Kubernetes writes, live in racks of fifty with a subnet each
//! for a second interface, and belong to one of twenty pools; every tenth is not Ready. Objects ask for two addresses
//! and select nodes in several ways: by pool, by pool and zone, by the default label, by exclusion.

use serde_json::{Value, json};

/// Pools of nodes.
const POOLS: usize = 20;
/// Nodes that share the subnet of the second interface.
const RACK: usize = 50;
/// One node of so many in every pool is not Ready.
const UNAVAILABLE: usize = 10;

/// The nodes and EgressIPs of a cluster, nodes first; no status is recorded.
pub fn objects(nodes: usize, egress_ips: usize) -> impl Iterator<Item = Value> {
    (0..nodes).map(node).chain((0..egress_ips).map(egress_ip))
}

/// The same as one `List`, the form in which kubectl dumps it.
#[must_use]
pub fn list(nodes: usize, egress_ips: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": objects(nodes, egress_ips).collect::<Vec<_>>()})
}

/// The name of the node of this number.
#[must_use]
pub fn node_name(i: usize) -> String {
    format!("worker-{i:05}.cluster.example.com")
}

fn node(i: usize) -> Value {
    let name = node_name(i);
    let (high, low) = (i / 250, i % 250 + 1);
    let (rack, place) = (i / RACK, i % RACK + 10);
    let primary = format!("10.0.{high}.{low}/16");
    let second = format!("172.20.{rack}.{place}/24");
    let primary6 = format!("fd00:10::{high:x}:{low:x}/64");
    let subnet = format!("10.{}.{}.0/24", 128 + i / 256, i % 256);
    let gateway = json!({"default": {
        "mode": "local", "bridge-id": "breth0", "interface-id": format!("breth0_{name}"),
        "mac-address": "02:42:ac:12:00:03", "ip-addresses": [primary], "ip-address": primary,
        "next-hops": ["10.0.255.254"], "next-hop": "10.0.255.254", "node-port-enable": "true", "vlan-id": "0",
    }});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": format!("00000000-0000-0000-0000-{i:012x}"),
            "resourceVersion": "123456",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels(i),
            "annotations": {
                "k8s.ovn.org/node-primary-ifaddr": json!({"ipv4": primary, "ipv6": primary6}).to_string(),
                "k8s.ovn.org/host-cidrs": json!([primary, second, primary6]).to_string(),
                "k8s.ovn.org/node-subnets": json!({"default": [subnet]}).to_string(),
                "k8s.ovn.org/l3-gateway-config": gateway.to_string(),
                "k8s.ovn.org/node-id": (i + 2).to_string(),
                "k8s.ovn.org/node-transit-switch-port-ifaddr": "{\"ipv4\":\"100.88.0.4/16\"}",
                "k8s.ovn.org/node-chassis-id": format!("10000000-0000-0000-0000-{i:012x}"),
                "k8s.ovn.org/network-ids": "{\"default\":\"0\"}",
                "k8s.ovn.org/layer2-topology-version": "2.0",
                "k8s.ovn.org/secondary-host-egress-ips": "[]",
                "k8s.ovn.org/node-masquerade-subnet": "{\"ipv4\":\"169.254.0.0/17\"}",
                "k8s.ovn.org/node-encap-ips": json!([format!("10.0.{high}.{low}")]).to_string(),
            },
        },
        "spec": {"podCIDR": subnet, "podCIDRs": [subnet]},
        "status": {"conditions": [
            {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory"},
            {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure"},
            {"type": "Ready", "status": if i / POOLS % UNAVAILABLE == 3 { "False" } else { "True" }, "reason": "Kubelet"},
        ]},
    })
}

fn labels(i: usize) -> Value {
    let mut labels = json!({
        "kubernetes.io/hostname": node_name(i),
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node-role.kubernetes.io/worker": "",
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": format!("zone-{}", i % 3),
        "egress-pool": format!("pool-{}", i % POOLS),
    });
    if i.is_multiple_of(2) {
        labels["k8s.ovn.org/egress-assignable"] = json!("");
    }
    for feature in 0..22 {
        labels[format!("feature.node.kubernetes.io/cpu-model.feature-{feature}")] = json!(format!("v{}", i % 7));
    }
    labels
}

fn egress_ip(i: usize) -> Value {
    // From 10.0.64.0 upwards, where no node has an address.
    let address = |n: usize| format!("10.0.{}.{}", 64 + n / 250, n % 250 + 1);
    let pool = format!("pool-{}", i % POOLS);
    let mut spec = json!({
        "egressIPs": [address(2 * i), address(2 * i + 1)],
        "namespaceSelector": {"matchLabels": {"tenant": format!("tenant-{i}")}},
    });
    let selector = match i % 10 {
        0 => None,
        1 => Some(json!({"matchExpressions": [{"key": "egress-pool", "operator": "NotIn", "values": [pool]}]})),
        2 | 3 => Some(json!({
            "matchLabels": {"egress-pool": pool},
            "matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-0", "zone-1"]},
            ],
        })),
        _ => Some(json!({"matchLabels": {"egress-pool": pool}})),
    };
    if let Some(selector) = selector {
        spec["egressNodeSelector"] = selector;
    }
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": {
            "name": format!("tenant-{i:05}"),
            "uid": format!("20000000-0000-0000-0000-{i:012x}"),
            "creationTimestamp": format!("2026-02-{:02}T{:02}:{:02}:00Z", 1 + i % 28, i % 24, i % 60),
            "annotations": {"k8s.ovn.org/egressip-mark": (50_000 + i % 5_000).to_string()},
        },
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use egret_api::Manifests;
    use egret_core::Options;
    use egret_placement::decide;

    use super::*;

    #[test]
    fn every_object_of_the_fixture_is_good_and_every_address_finds_a_node() {
        let mut manifests = Manifests::default();
        for object in objects(100, 50) {
            manifests.insert(object).expect("a known kind");
        }
        let observation = manifests.observe(&Options::default());
        assert_eq!(observation.faults, []);
        assert!(observation.snapshot.nodes.values().all(|node| node.labels.len() >= 29));
        let decision = decide(&observation.snapshot);
        let outcomes = decision.egress_ips.values().flatten();
        assert_eq!(outcomes.filter(|(_, outcome)| outcome.node().is_some()).count(), 100);
    }
}
