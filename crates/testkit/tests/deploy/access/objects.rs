//! The objects of a life.

use egret_testkit::objects;
use serde_json::{Value, json};

use super::life::Platform;

pub(super) fn node(number: u8, platform: Platform) -> Value {
    let address = format!("192.168.126.{}/24", 10 + number);
    let mut annotations = json!({
        "k8s.ovn.org/node-primary-ifaddr": json!({"ipv4": address}).to_string(),
        "k8s.ovn.org/host-cidrs": json!([address]).to_string(),
        "k8s.ovn.org/node-subnets": json!({"default": [format!("10.130.{}.0/24", number)]}).to_string(),
    });
    if platform == Platform::Cloud {
        let room = json!([{"interface": "nic0", "ifaddr": {"ipv4": "192.168.126.0/24"}, "capacity": {"ipv4": 10}}]);
        annotations["cloud.network.openshift.io/egress-ipconfig"] = room.to_string().into();
    }
    // Without any label, so that the first one is a change of the whole map, which has a guard.
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": format!("n{number}"), "annotations": annotations},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

pub(super) fn egress_ip(name: &str, address: &str) -> Value {
    let mut object = objects::egress_ip(name, &[address]);
    object["spec"]["egressNodeSelector"] = json!({});
    object
}

pub(super) fn service() -> Value {
    let mut service = objects::service("shop", "web");
    service["status"] = objects::ingress();
    service
}
