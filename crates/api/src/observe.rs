//! From stored objects to a snapshot.

use egret_core::{Options, Snapshot};

use crate::{
    Converted, Fault, Kind, Manifests, ObjectKey, cloud_private_ip_config, egress_ip, egress_service, endpoint_slice,
    metadata, node, service,
};

/// What the stored objects come to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Observation {
    /// Everything that could be read; every node counts as reachable.
    pub snapshot: Snapshot,
    /// Everything that is wrong, by object and then by path.
    pub faults: Vec<(ObjectKey, Fault)>,
}

impl Manifests {
    /// Converts everything. The same objects give the same observation, whatever order they came in.
    pub fn observe(&self, options: &Options) -> Observation {
        let snapshot = Snapshot { options: options.clone(), ..Snapshot::default() };
        let mut observation = Observation { snapshot, faults: Vec::new() };
        for (key, value) in self.iter() {
            observation.add(key, value);
        }
        for endpoints in observation.snapshot.endpoints.values_mut() {
            endpoints.sort_unstable();
            endpoints.dedup();
        }
        observation
    }
}

impl Observation {
    fn add(&mut self, key: &ObjectKey, value: &serde_json::Value) {
        let platform = self.snapshot.options.platform;
        match key.kind {
            Kind::Node => {
                if let Some(node) = self.take(key, node::from_value(value, platform)) {
                    self.snapshot.nodes.insert(node.name.clone(), node);
                }
            }
            Kind::EgressIp => {
                if let Some(egress_ip) = self.take(key, egress_ip::from_value(value)) {
                    self.snapshot.egress_ips.insert(egress_ip.name.clone(), egress_ip);
                }
            }
            Kind::EgressService => {
                if let Some(service) = self.take(key, egress_service::from_value(value)) {
                    self.snapshot.egress_services.insert(service.key.clone(), service);
                }
            }
            Kind::Service => {
                let service = self.take(key, service::from_value(value));
                if let Some((key, service)) = metadata::key(value).zip(service) {
                    self.snapshot.services.insert(key, service);
                }
            }
            Kind::EndpointSlice => {
                if let Some(slice) = self.take(key, endpoint_slice::from_value(value)) {
                    self.snapshot.endpoints.entry(slice.service).or_default().extend(slice.endpoints);
                }
            }
            Kind::CloudPrivateIpConfig => {
                if let Some(config) = self.take(key, cloud_private_ip_config::from_value(value)) {
                    self.snapshot.cloud.insert(config.address, config);
                }
            }
        }
    }

    fn take<T>(&mut self, key: &ObjectKey, converted: Converted<T>) -> Option<T> {
        self.faults.extend(converted.faults.into_iter().map(|fault| (key.clone(), fault)));
        converted.object
    }
}

#[cfg(test)]
mod tests {
    use egret_core::{Platform, ServiceKey};
    use serde_json::{Value, json};

    use super::*;

    fn objects() -> Vec<Value> {
        let slice = |name: &str, address: &str| {
            json!({
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": name, "namespace": "ns", "labels": {"kubernetes.io/service-name": "svc"}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [address, "10.0.0.9"]}],
            })
        };
        let named = |api_version: &str, kind: &str, name: &str, spec: Value| {
            json!({
                "apiVersion": api_version,
                "kind": kind,
                "metadata": {"name": name, "namespace": "ns"},
                "spec": spec,
            })
        };
        vec![
            slice("svc-b", "10.0.0.2"),
            slice("svc-a", "10.0.0.1"),
            named("v1", "Service", "svc", json!({"type": "LoadBalancer"})),
            named("k8s.ovn.org/v1", "EgressService", "svc", json!({"sourceIPBy": "x"})),
            named("k8s.ovn.org/v1", "EgressIP", "eip", json!({"egressIPs": ["x"]})),
            named("cloud.network.openshift.io/v1", "CloudPrivateIPConfig", "10.0.0.1", json!({"node": "a"})),
            named("v1", "Node", "a", json!({})),
        ]
    }

    fn observe(objects: Vec<Value>) -> Observation {
        let mut manifests = Manifests::default();
        for object in objects {
            manifests.insert(object).unwrap();
        }
        manifests.observe(&Options { platform: Platform::Cloud, ..Options::default() })
    }

    #[test]
    fn every_object_is_converted_and_every_fault_names_its_object() {
        let Observation { snapshot, faults } = observe(objects());
        let counts = [
            snapshot.nodes.len(),
            snapshot.egress_ips.len(),
            snapshot.egress_services.len(),
            snapshot.services.len(),
            snapshot.cloud.len(),
        ];
        assert_eq!(counts, [1; 5]);
        let faults: Vec<_> = faults.iter().map(|(key, fault)| format!("{key} {}", fault.path)).collect();
        assert_eq!(
            faults,
            [
                "egressip/eip spec.egressIPs[0]",
                "egressip/eip spec.namespaceSelector",
                "egressservice/ns/svc spec.sourceIPBy"
            ]
        );
    }

    #[test]
    fn slices_of_a_service_are_joined() {
        let snapshot = observe(objects()).snapshot;
        let endpoints = &snapshot.endpoints[&ServiceKey::new("ns", "svc")];
        let addresses: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address.to_string()).collect();
        assert_eq!(addresses, ["10.0.0.1", "10.0.0.2", "10.0.0.9"]);
    }

    #[test]
    fn the_order_of_the_objects_does_not_matter() {
        let mut reversed = objects();
        reversed.reverse();
        assert_eq!(observe(objects()), observe(reversed));
    }
}
