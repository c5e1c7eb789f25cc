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
