//! Snapshots.

use egret_core::{CloudPrivateIpConfig, CloudState, NodeSelector, Platform, Snapshot};

use super::{EgressIpBuilder, EgressServiceBuilder, NodeBuilder, address, selector};

/// Builds a [`Snapshot`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SnapshotBuilder(Snapshot);

/// An empty cluster on bare metal.
pub fn snapshot() -> SnapshotBuilder {
    SnapshotBuilder::default()
}

impl SnapshotBuilder {
    /// On a cloud.
    pub fn cloud(mut self) -> Self {
        self.0.options.platform = Platform::Cloud;
        self
    }

    /// Ignoring the nodes that match, see [`selector`].
    pub fn ignoring(mut self, text: &str) -> Self {
        self.0.options.no_host_subnet = match selector(text) {
            NodeSelector::Compiled(selector) => Some(selector),
            NodeSelector::Faulty(_) => None,
        };
        self
    }

    /// With a node.
    pub fn node(mut self, node: NodeBuilder) -> Self {
        node.put(&mut self.0);
        self
    }

    /// With an EgressIP.
    pub fn egress_ip(mut self, egress_ip: EgressIpBuilder) -> Self {
        let egress_ip = egress_ip.build();
        self.0.egress_ips.insert(egress_ip.name.clone(), egress_ip);
        self
    }

    /// With an EgressService, its Service and endpoints.
    pub fn egress_service(mut self, egress_service: EgressServiceBuilder) -> Self {
        let (object, service, endpoints) = egress_service.build();
        self.0.endpoints.insert(object.key.clone(), endpoints);
        self.0.services.extend(service.map(|service| (object.key.clone(), service)));
        self.0.egress_services.insert(object.key.clone(), object);
        self
    }

    /// With a request to the cloud.
    pub fn request(mut self, text: &str, owner: &str, node: &str, state: CloudState) -> Self {
        let (address, owner, node) = (address(text), Some(owner.into()), node.into());
        self.0.cloud.insert(address, CloudPrivateIpConfig { address, owner, node, state });
        self
    }

    /// With an address that just left a node.
    pub fn departed(mut self, text: &str, node: &str) -> Self {
        self.0.departed.insert((address(text), node.into()));
        self
    }

    /// The snapshot.
    #[must_use]
    pub fn build(self) -> Snapshot {
        self.0
    }
}
