//! Nodes.

use std::sync::Arc;

use egret_core::{Capacity, GatewayMode, InfrastructureFault, InfrastructureFaultKind, IpNet, Node, NodeNetwork};
use egret_core::{Reachability, Snapshot};

use super::{address, prefix};

/// Builds a [`Node`].
#[derive(Clone, Debug)]
#[must_use]
pub struct NodeBuilder {
    node: Node,
    primary: Vec<IpNet>,
    secondary: Vec<IpNet>,
}

/// A node that is Ready and reachable, and has no labels and no networks.
pub fn node(name: &str) -> NodeBuilder {
    let node = Node::new(name, Ok(NodeNetwork::default()));
    NodeBuilder { node, primary: Vec::new(), secondary: Vec::new() }
}

impl NodeBuilder {
    /// With a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        Arc::make_mut(&mut self.node.labels).insert(key.to_owned(), value.to_owned());
        self
    }

    /// With the label that the default selector asks for.
    pub fn assignable(self) -> Self {
        self.label("k8s.ovn.org/egress-assignable", "")
    }

    /// With its primary address in its network: `192.168.126.11/24`, either family.
    pub fn primary(mut self, cidr: &str) -> Self {
        self.primary.push(prefix(cidr));
        self.node.primary_addresses.push(prefix(cidr).addr().into());
        self.host(prefix(cidr))
    }

    /// With a secondary host network, and the node's own address in it.
    pub fn secondary(mut self, cidr: &str) -> Self {
        self.secondary.push(prefix(cidr));
        self.host(prefix(cidr))
    }

    /// With one more host address that opens no network.
    pub fn host_address(mut self, text: &str) -> Self {
        self.node.host_addresses.push(address(text));
        self
    }

    /// Saying itself that an address is an egress IP on one of its links.
    pub fn own_egress_address(mut self, text: &str) -> Self {
        self.node.own_egress_addresses.push(address(text));
        self
    }

    /// Not Ready.
    pub fn not_ready(mut self) -> Self {
        self.node.ready = false;
        self
    }

    /// Cordoned.
    pub fn cordoned(mut self) -> Self {
        self.node.cordoned = true;
        self
    }

    /// Drained in this plan.
    pub fn drained(mut self) -> Self {
        self.node.drained = true;
        self
    }

    /// Silent when probed.
    pub fn unreachable(mut self) -> Self {
        self.node.reachability = Reachability::Unreachable;
        self
    }

    /// Never probed.
    pub fn not_probed(mut self) -> Self {
        self.node.reachability = Reachability::NotProbed;
        self
    }

    /// Without an annotation that it needs.
    pub fn missing(mut self, annotation: &'static str) -> Self {
        self.node.network = Err(InfrastructureFault { annotation, kind: InfrastructureFaultKind::Missing });
        self
    }

    /// With an upper limit for both families together.
    pub fn capacity(mut self, total: u32) -> Self {
        self.node.capacity = Capacity { total: Some(total), ..Capacity::default() };
        self
    }

    /// With an upper limit for each family.
    pub fn capacities(mut self, v4: Option<u32>, v6: Option<u32>) -> Self {
        self.node.capacity = Capacity { v4, v6, total: None };
        self
    }

    /// In this gateway mode.
    pub fn gateway(mut self, mode: GatewayMode) -> Self {
        self.node.gateway_mode = Some(mode);
        self
    }

    /// With a pod subnet.
    pub fn pods(mut self, cidr: &str) -> Self {
        self.node.pod_subnets.push(prefix(cidr));
        self
    }

    /// With whatever else; the networks are those that the builder was told, unless this makes them a fault.
    pub fn adjust(mut self, change: impl FnOnce(&mut Node)) -> Self {
        change(&mut self.node);
        self
    }

    /// The node.
    #[must_use]
    pub fn build(self) -> Node {
        let mut node = self.node;
        node.network = node.network.map(|_| NodeNetwork::new(self.primary, self.secondary));
        node
    }

    /// Puts the node into a snapshot.
    pub fn put(self, snapshot: &mut Snapshot) {
        let node = self.build();
        snapshot.nodes.insert(node.name.clone(), node);
    }

    fn host(mut self, cidr: IpNet) -> Self {
        self.node.host_addresses.push(cidr.addr().into());
        self
    }
}
