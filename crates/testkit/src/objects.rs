//! Objects as users, nodes and their agents write them: JSON, as an API server takes it.

use serde_json::{Value, json};

/// A node on which OVN-Kubernetes runs, ready and assignable; `number` makes its addresses.
#[must_use]
pub fn node(name: &str, number: u8) -> Value {
    let mut node = node_at(name, &format!("172.18.0.{number}/16"));
    let annotations = &mut node["metadata"]["annotations"];
    annotations["k8s.ovn.org/node-subnets"] = format!(r#"{{"default":["10.244.{number}.0/24"]}}"#).into();
    annotations["example.com/somebody-elses"] = "x".into();
    node
}

/// A node that is ready and assignable, has one address in its network (`172.18.0.1/16`), and says nothing of its pods.
#[must_use]
pub fn node_at(name: &str, cidr: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"k8s.ovn.org/egress-assignable": "", "kubernetes.io/hostname": name},
            "annotations": {
                "k8s.ovn.org/node-primary-ifaddr": format!(r#"{{"ipv4":"{cidr}"}}"#),
                "k8s.ovn.org/host-cidrs": format!(r#"["{cidr}"]"#),
            },
        },
        "status": ready(),
    })
}

/// The status of a node that is Ready.
#[must_use]
pub fn ready() -> Value {
    conditions("True")
}

/// The status of a node that is not.
#[must_use]
pub fn not_ready() -> Value {
    conditions("False")
}

fn conditions(status: &str) -> Value {
    json!({"conditions": [{
        "type": "Ready", "status": status, "reason": "Test", "message": "",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]})
}

/// An EgressIP with these addresses and the default selector.
#[must_use]
pub fn egress_ip(name: &str, addresses: &[&str]) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": {"name": name},
        "spec": {"egressIPs": addresses, "namespaceSelector": {}},
    })
}

/// The same with its recorded (node, address) pairs.
#[must_use]
pub fn egress_ip_on(name: &str, addresses: &[&str], items: &[(&str, &str)]) -> Value {
    let mut object = egress_ip(name, addresses);
    let items = items.iter().map(|(node, address)| json!({"node": node, "egressIP": address}));
    object["status"] = json!({"items": items.collect::<Vec<_>>()});
    object
}

/// An EgressService whose source is the address of its Service.
#[must_use]
pub fn egress_service(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"sourceIPBy": "LoadBalancerIP"},
    })
}

/// The Service of that name; it needs the status [`ingress`] to be of use.
#[must_use]
pub fn service(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}], "allocateLoadBalancerNodePorts": false},
    })
}

/// The status of a Service that has an address.
#[must_use]
pub fn ingress() -> Value {
    json!({"loadBalancer": {"ingress": [{"ip": "5.5.5.5"}]}})
}

/// One endpoint of that Service, on a node.
#[must_use]
pub fn endpoint_slice(namespace: &str, service: &str, node: &str, address: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": service, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "nodeName": node, "conditions": {"ready": true}}],
        "ports": [{"port": 80}],
    })
}
