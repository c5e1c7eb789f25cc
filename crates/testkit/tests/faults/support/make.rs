//! Objects as users and nodes write them.

use serde_json::{Value, json};

/// A node on which OVN-Kubernetes runs, ready and assignable; `number` makes its addresses.
pub(crate) fn node(name: &str, number: u8) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"k8s.ovn.org/egress-assignable": ""},
            "annotations": {
                "k8s.ovn.org/node-primary-ifaddr": format!(r#"{{"ipv4":"172.18.0.{number}/16"}}"#),
                "k8s.ovn.org/host-cidrs": format!(r#"["172.18.0.{number}/16"]"#),
                "k8s.ovn.org/node-subnets": format!(r#"{{"default":["10.244.{number}.0/24"]}}"#),
            },
        },
        "status": ready(),
    })
}

/// The status of a node that is Ready.
pub(crate) fn ready() -> Value {
    conditions("True")
}

/// The status of a node that is not.
pub(crate) fn not_ready() -> Value {
    conditions("False")
}

fn conditions(status: &str) -> Value {
    json!({"conditions": [{
        "type": "Ready", "status": status, "reason": "Test", "message": "",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]})
}

/// An address that every [`node`] can host and none has.
pub(crate) fn address(number: usize) -> String {
    format!("172.18.{}.{}", 1 + number / 200, 1 + number % 200)
}

/// An EgressIP with these addresses.
pub(crate) fn egress_ip(name: &str, addresses: &[&str]) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": {"name": name},
        "spec": {"egressIPs": addresses, "namespaceSelector": {}},
    })
}

/// The EgressIP of a number, `e<number>`, with two addresses of its own.
pub(crate) fn egress_ip_of(number: usize) -> Value {
    egress_ip(&format!("e{number}"), &[&address(2 * number), &address(2 * number + 1)])
}

/// An EgressService, its Service with an ingress, and an endpoint of it on a node.
pub(crate) fn egress_service(name: &str, node: &str, number: u8) -> [Value; 3] {
    let metadata = json!({"name": name, "namespace": "default"});
    [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}], "allocateLoadBalancerNodePorts": false},
            "status": {"loadBalancer": {"ingress": [{"ip": "5.5.5.5"}]}},
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
            "endpoints": [{"addresses": [format!("10.244.{number}.7")], "nodeName": node}],
            "ports": [{"port": 80}],
        }),
        json!({
            "apiVersion": "k8s.ovn.org/v1", "kind": "EgressService", "metadata": metadata,
            "spec": {"sourceIPBy": "LoadBalancerIP"},
        }),
    ]
}

/// The node that a status gives an address to.
pub(crate) fn host_of(object: &Value, address: &str) -> Option<String> {
    let items = egret_testkit::world::items(object);
    items.into_iter().find(|(item, _)| item == address).map(|(_, node)| node)
}
