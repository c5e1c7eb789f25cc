//! Service: what an election of a host needs of it, and what a node that serves it does.

use std::sync::LazyLock;

use egret_core::{Address, Service};
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::{Converted, metadata, schema};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "additionalProperties": true,
        "properties": {
            "metadata": metadata::schema(),
            "spec": {
                "type": "object",
                "additionalProperties": true,
                "properties": {"type": text, "externalTrafficPolicy": text},
            },
            "status": {
                "type": "object",
                "additionalProperties": true,
                "properties": {
                    "loadBalancer": {
                        "type": "object",
                        "additionalProperties": true,
                        "properties": {"ingress": {"type": "array", "items": {"type": "object"}}},
                    },
                },
            },
        },
    })
});

/// Reads a Service; there is no object without a name.
pub fn from_value(value: &Value) -> Converted<Service> {
    let faults = schema::check(&SCHEMA, value);
    let is = |pointer, text| metadata::text(value, pointer) == Some(text);
    let service = metadata::name(value).map(|_| Service {
        has_ingress: is("/spec/type", "LoadBalancer")
            && !metadata::list(value, "/status/loadBalancer/ingress").is_empty(),
        traffic_policy_local: is("/spec/externalTrafficPolicy", "Local"),
    });
    Converted::new(service, faults)
}

/// Where a Service is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontend {
    /// The load balancer's addresses, in the order of `status.loadBalancer.ingress`; none unless `spec.type` is
    /// `LoadBalancer`. Entries that are names only are left out.
    pub load_balancer: Vec<Address>,
    /// `spec.clusterIPs`; none for a headless Service.
    pub cluster_ips: Vec<Address>,
    /// `spec.ports`.
    pub ports: Vec<FrontendPort>,
    /// `spec.externalTrafficPolicy` is `Local`.
    pub traffic_policy_local: bool,
}

/// One of a Service's ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontendPort {
    /// `protocol`, TCP if it is not said.
    pub protocol: String,
    /// `port`.
    pub port: u16,
    /// `nodePort`, where it has one.
    pub node_port: Option<u16>,
}

/// Where a Service is reached. What cannot be read is left out: an API server has checked it.
#[must_use]
pub fn frontend(value: &Value) -> Frontend {
    let is = |pointer, text| metadata::text(value, pointer) == Some(text);
    let address = |text: Option<&str>| text.and_then(|text| Address::parse(text).ok());
    let ingress = metadata::list(value, "/status/loadBalancer/ingress").iter();
    let ingress = ingress.filter_map(|entry| address(entry.get("ip").and_then(Value::as_str)));
    let mut cluster_ips: Vec<Address> =
        metadata::list(value, "/spec/clusterIPs").iter().filter_map(|ip| address(ip.as_str())).collect();
    if cluster_ips.is_empty() {
        cluster_ips.extend(address(metadata::text(value, "/spec/clusterIP")));
    }
    let number = |port: &Value, key| port.get(key).and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
    let ports = metadata::list(value, "/spec/ports").iter().filter_map(|port| {
        Some(FrontendPort {
            protocol: port.get("protocol").and_then(Value::as_str).unwrap_or("TCP").to_owned(),
            port: number(port, "port")?,
            node_port: number(port, "nodePort").filter(|port| *port != 0),
        })
    });
    Frontend {
        load_balancer: if is("/spec/type", "LoadBalancer") { ingress.collect() } else { Vec::new() },
        cluster_ips,
        ports: ports.collect(),
        traffic_policy_local: is("/spec/externalTrafficPolicy", "Local"),
    }
}

/// The prefixes of a ServiceCIDR (`networking.k8s.io/v1`).
#[must_use]
pub fn networks(value: &Value) -> Vec<IpNet> {
    let cidrs = metadata::list(value, "/spec/cidrs").iter();
    cidrs.filter_map(|cidr| cidr.as_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(spec: &Value, status: &Value) -> Option<Service> {
        let converted = from_value(&json!({"metadata": {"name": "svc"}, "spec": spec, "status": status}));
        assert_eq!(converted.faults, []);
        converted.object
    }

    #[test]
    fn only_a_load_balancer_has_an_ingress() {
        let ingress = json!({"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}});
        for (spec, status, has_ingress) in [
            (json!({"type": "LoadBalancer"}), &ingress, true),
            (json!({"type": "LoadBalancer"}), &json!({"loadBalancer": {"ingress": []}}), false),
            (json!({"type": "LoadBalancer"}), &json!({"loadBalancer": {}}), false),
            (json!({"type": "ClusterIP"}), &ingress, false),
            (json!({}), &ingress, false),
        ] {
            let service = read(&spec, status).unwrap();
            assert_eq!(service.has_ingress, has_ingress, "{spec} {status}");
        }
    }

    #[test]
    fn traffic_policy_is_local_only_if_it_says_so() {
        for (policy, local) in [(json!("Local"), true), (json!("Cluster"), false), (Value::Null, false)] {
            let service = read(&json!({"externalTrafficPolicy": policy}), &Value::Null).unwrap();
            assert_eq!(service.traffic_policy_local, local);
        }
    }

    #[test]
    fn a_service_is_reached_at_its_load_balancer_its_cluster_ips_and_its_ports() {
        let spec = json!({
            "type": "LoadBalancer",
            "externalTrafficPolicy": "Local",
            "clusterIPs": ["10.96.0.10", "fd00::10"],
            "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}],
        });
        let status = json!({"loadBalancer": {"ingress": [{"hostname": "lb.example"}, {"ip": "192.0.2.10"}]}});
        let found = frontend(&json!({"spec": spec, "status": status}));
        let texts = |addresses: &[Address]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(&found.load_balancer), ["192.0.2.10"]);
        assert_eq!(texts(&found.cluster_ips), ["10.96.0.10", "fd00::10"]);
        assert!(found.traffic_policy_local);
        let port = |protocol: &str, port, node_port| FrontendPort { protocol: protocol.to_owned(), port, node_port };
        assert_eq!(found.ports, [port("TCP", 80, Some(30080)), port("UDP", 53, None)]);
    }

    #[test]
    fn a_headless_service_and_one_without_a_load_balancer_have_no_such_addresses() {
        let ingress = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.10"}]}});
        let found = frontend(&json!({"spec": {"type": "ClusterIP", "clusterIP": "None"}, "status": ingress}));
        assert_eq!(found, Frontend::default());
    }

    #[test]
    fn a_service_network_has_its_prefixes() {
        let found = networks(&json!({"spec": {"cidrs": ["10.96.0.0/16", "fd00:10:96::/112", "garbage"]}}));
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.96.0.0/16", "fd00:10:96::/112"]);
    }
}
