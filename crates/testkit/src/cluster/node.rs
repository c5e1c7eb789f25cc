//! Node objects, as a kubelet and ovnkube-node write them.

use egret_netlab::{Family, Host, Lab, Network};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::error::ClusterError;

/// Says that a node is there and Ready.
pub(crate) async fn register(client: &Client, lab: &Lab, host: &Host) -> Result<(), ClusterError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let object = object(lab, host);
    let patched = nodes.patch(host.name(), &PatchParams::apply("kubelet").force(), &Patch::Apply(&object)).await;
    patched.map_err(ClusterError::api(format!("the node {}", host.name())))?;
    ready(client, host).await
}

/// Says that a node is Ready, which the controllers take back when its lease runs out.
pub(crate) async fn ready(client: &Client, host: &Host) -> Result<(), ClusterError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut addresses: Vec<Value> =
        Family::BOTH.map(|family| json!({"type": "InternalIP", "address": host.address(family)})).to_vec();
    addresses.push(json!({"type": "Hostname", "address": host.name()}));
    let status = json!({"status": {
        "addresses": addresses,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
        "nodeInfo": {
            "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
            "kubeletVersion": "", "machineID": "", "operatingSystem": "linux", "osImage": "", "systemUUID": "",
        },
    }});
    let patched = nodes.patch_status(host.name(), &PatchParams::default(), &Patch::Merge(&status)).await;
    patched.map(drop).map_err(ClusterError::api(format!("the status of {}", host.name())))
}

fn object(lab: &Lab, host: &Host) -> Value {
    let name = host.name();
    let subnets = lab.pod_subnets(name);
    let cidrs: Vec<String> = host.addresses().iter().map(|address| with_length(*address)).collect();
    let primary = Family::BOTH.map(|family| with_length(host.address(family)));
    let gateway = lab.outside(Network::Red);
    let gateways = Family::BOTH.map(|family| gateway.address(family));
    let l3_gateway = json!({"default": {
        "mode": "local", "interface-id": format!("br-ex_{name}"), "mac-address": "0a:58:00:00:00:01",
        "ip-addresses": primary, "next-hops": gateways, "node-port-enable": "true", "vlan-id": "0",
    }});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            "annotations": {
                "k8s.ovn.org/node-primary-ifaddr": json!({"ipv4": primary[0], "ipv6": primary[1]}).to_string(),
                "k8s.ovn.org/host-cidrs": json!(cidrs).to_string(),
                "k8s.ovn.org/node-subnets": json!({"default": subnets}).to_string(),
                "k8s.ovn.org/l3-gateway-config": l3_gateway.to_string(),
            },
        },
        "spec": {"podCIDR": subnets[0], "podCIDRs": subnets},
    })
}

/// All networks of the lab are of this size.
fn with_length(address: std::net::IpAddr) -> String {
    format!("{address}/{}", if address.is_ipv4() { 24 } else { 64 })
}
