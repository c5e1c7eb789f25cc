//! Those whom a test plays: ovnkube-controller, which leads pods to the node that lets them out, and ovnkube-node, which
//! knows the services.

use std::net::IpAddr;

use egret_netlab::{Policy, Service};
use serde_json::Value;

use crate::whole::Whole;

impl Whole {
    /// OVN leads these pods to that node; those that are on it come out there anyway.
    pub(crate) fn lead(&self, pods: &[&str], to: &str) {
        let lab = self.cluster.lab();
        for pod in pods {
            if lab.node_of(pod).as_deref() == Some(to) {
                lab.unreroute(pod).unwrap();
            } else {
                lab.reroute(pod, to).unwrap();
            }
        }
    }

    /// OVN lets every pod out on its own node again.
    pub(crate) fn release(&self, pods: &[&str]) {
        for pod in pods {
            self.cluster.lab().unreroute(pod).unwrap();
        }
    }

    /// OVN sends to these pods what comes for the service; it has these addresses outside.
    pub(crate) fn program(&self, service: &Value, external: &[IpAddr], pods: &[&str]) {
        let number = |pointer: &str| u16::try_from(service.pointer(pointer).and_then(Value::as_u64).unwrap()).unwrap();
        let known = Service {
            name: service["metadata"]["name"].as_str().unwrap().to_owned(),
            external: external.to_vec(),
            cluster: cluster_ips(service),
            port: number("/spec/ports/0/port"),
            node_port: number("/spec/ports/0/nodePort"),
            pods: pods.iter().map(|pod| (*pod).to_owned()).collect(),
            policy: Policy::Cluster,
        };
        self.cluster.lab().service(known).unwrap();
    }
}

/// The addresses that Kubernetes has given a service.
pub(crate) fn cluster_ips(service: &Value) -> Vec<IpAddr> {
    let all = service["spec"]["clusterIPs"].as_array().unwrap();
    all.iter().map(|ip| ip.as_str().unwrap().parse().unwrap()).collect()
}
