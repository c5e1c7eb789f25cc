//! Kubernetes objects, as an API server would show them.

use std::net::IpAddr;

use egret_netlab::{Family, Host, Lab};
use serde_json::{Value, json};

/// A service with its `EgressService`, in namespace `default`.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    pub(crate) name: &'static str,
    /// Seconds; the older comes first.
    pub(crate) created: u32,
    pub(crate) by: &'static str,
    pub(crate) network: Option<&'static str>,
    pub(crate) host: &'static str,
    pub(crate) external: Vec<IpAddr>,
    pub(crate) cluster: Vec<IpAddr>,
    pub(crate) local_policy: bool,
    /// Names of pods.
    pub(crate) pods: Vec<String>,
}

pub(crate) fn parse(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().unwrap()).collect()
}

/// `web`: the load balancer's address, the network in table 1234, on `n1`.
pub(crate) fn web(pods: &[&str]) -> Exit {
    Exit {
        name: "web",
        created: 1,
        by: "LoadBalancerIP",
        network: Some("1234"),
        host: "n1",
        external: parse(&["192.168.70.10", "fd00:70::10"]),
        cluster: parse(&["10.96.0.10", "fd00:10:96::a"]),
        local_policy: false,
        pods: pods.iter().map(|pod| (*pod).to_owned()).collect(),
    }
}

/// Another one, younger.
pub(crate) fn other(pods: &[&str]) -> Exit {
    Exit {
        name: "other",
        created: 2,
        external: parse(&["192.168.70.11", "fd00:70::11"]),
        cluster: parse(&["10.96.0.11", "fd00:10:96::b"]),
        ..web(pods)
    }
}

impl Exit {
    pub(crate) fn objects(&self, lab: &Lab) -> Vec<Value> {
        let created = format!("1970-01-01T00:00:{:02}Z", self.created);
        let metadata = json!({"namespace": "default", "name": self.name, "creationTimestamp": created});
        let mut spec = json!({"sourceIPBy": self.by});
        if let Some(network) = self.network {
            spec["network"] = json!(network);
        }
        let ingress: Vec<Value> = self.external.iter().map(|ip| json!({"ip": ip})).collect();
        let policy = if self.local_policy { "Local" } else { "Cluster" };
        let mut objects = vec![
            json!({
                "apiVersion": "k8s.ovn.org/v1", "kind": "EgressService", "metadata": metadata, "spec": spec,
                "status": {"host": self.host},
            }),
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": {
                    "type": "LoadBalancer", "externalTrafficPolicy": policy, "clusterIPs": self.cluster,
                    "ports": [
                        {"protocol": "TCP", "port": egret_netlab::PORT, "nodePort": 30080},
                        {"protocol": "UDP", "port": egret_netlab::PORT, "nodePort": 30080},
                    ],
                },
                "status": {"loadBalancer": {"ingress": ingress}},
            }),
        ];
        for (kind, family) in [("IPv4", Family::V4), ("IPv6", Family::V6)] {
            let endpoints: Vec<Value> = self.pods.iter().map(|pod| endpoint(lab, pod, family)).collect();
            objects.push(json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {
                    "namespace": "default", "name": format!("{}-{kind}", self.name),
                    "labels": {"kubernetes.io/service-name": self.name},
                },
                "addressType": kind, "endpoints": endpoints,
            }));
        }
        objects
    }

    /// What makes it reachable.
    pub(crate) fn service(&self) -> egret_netlab::Service {
        egret_netlab::Service {
            name: self.name.to_owned(),
            external: self.external.clone(),
            cluster: self.cluster.clone(),
            port: egret_netlab::PORT,
            node_port: 30080,
            pods: self.pods.clone(),
            policy: if self.local_policy { egret_netlab::Policy::Local } else { egret_netlab::Policy::Cluster },
        }
    }

    /// Its load-balancer address of a family.
    pub(crate) fn address(&self, family: Family) -> IpAddr {
        *self.external.iter().find(|ip| Family::of(**ip) == family).unwrap()
    }
}

fn endpoint(lab: &Lab, pod: &str, family: Family) -> Value {
    // Not ready: a pod that starts must leave with the right source already.
    json!({
        "addresses": [lab.pod(pod).address(family)], "nodeName": lab.node_of(pod).unwrap(),
        "conditions": {"ready": false, "serving": false},
    })
}

/// An `EgressIP` for the pods of an app, whose addresses are on these nodes.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// Seconds; the older comes first.
    pub(crate) created: u32,
    pub(crate) app: &'static str,
    pub(crate) ips: Vec<IpAddr>,
    pub(crate) node: &'static str,
}

/// `exit`: an address of either family on the second network, on `n1`, for the app `web`.
pub(crate) fn way() -> Way {
    Way { name: "exit", created: 1, app: "web", ips: parse(&["192.168.60.50", "fd00:60::50"]), node: "n1" }
}

impl Way {
    /// In namespaces with the label `exit: yes`.
    pub(crate) fn object(&self) -> Value {
        let items: Vec<Value> = self.ips.iter().map(|ip| json!({"node": self.node, "egressIP": ip})).collect();
        let created = format!("1970-01-01T00:00:{:02}Z", self.created);
        json!({
            "apiVersion": "k8s.ovn.org/v1", "kind": "EgressIP",
            "metadata": {"name": self.name, "creationTimestamp": created},
            "spec": {
                "egressIPs": self.ips,
                "namespaceSelector": {"matchLabels": {"exit": "yes"}},
                "podSelector": {"matchLabels": {"app": self.app}},
            },
            "status": {"items": items},
        })
    }
}

/// The namespace `default`.
pub(crate) fn namespace(exit: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"exit": exit}}})
}

/// A pod of an app, in namespace `default`.
pub(crate) fn pod(lab: &Lab, name: &str, app: &str, phase: &str) -> Value {
    let ips: Vec<Value> = lab.pod(name).addresses().iter().map(|ip| json!({"ip": ip})).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "labels": {"app": app}},
        "spec": {"nodeName": lab.node_of(name).unwrap()},
        "status": {"phase": phase, "podIPs": ips},
    })
}

/// A node, as a cluster has it whose nodes say in which networks they are.
pub(crate) fn node(host: &Host) -> Value {
    let number = host.name().trim_start_matches('n');
    let addresses: Vec<Value> =
        host.addresses().iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect();
    let with_bits = |ip: &IpAddr| format!("{ip}/{}", if ip.is_ipv4() { 24 } else { 64 });
    let [v4, v6] = Family::BOTH.map(|family| with_bits(&host.address(family)));
    let annotations = json!({
        "k8s.ovn.org/node-primary-ifaddr": json!({"ipv4": v4, "ipv6": v6}).to_string(),
        "k8s.ovn.org/host-cidrs": json!(host.addresses().iter().map(with_bits).collect::<Vec<_>>()).to_string(),
    });
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": host.name(), "annotations": annotations},
        "spec": {"podCIDRs": [format!("10.244.{number}.0/24"), format!("fd00:10:244:{number}::/64")]},
        "status": {"addresses": addresses, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}
