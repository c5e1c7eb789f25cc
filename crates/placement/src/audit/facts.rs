//! What the checks look up again and again: who asks for an address, and which nodes say that it is theirs.

use std::collections::BTreeMap;

use egret_core::{Address, EgressIp, Node, NodeName, RecordedItem, Snapshot};

/// A snapshot, and its addresses the other way round.
pub(super) struct Facts<'a> {
    pub(super) snapshot: &'a Snapshot,
    claimants: BTreeMap<Address, Vec<&'a EgressIp>>,
    hosts: BTreeMap<Address, Vec<&'a Node>>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(snapshot: &'a Snapshot) -> Self {
        let mut claimants: BTreeMap<Address, Vec<&EgressIp>> = BTreeMap::new();
        for object in snapshot.egress_ips.values() {
            for address in &object.requested {
                claimants.entry(*address).or_default().push(object);
            }
        }
        let mut hosts: BTreeMap<Address, Vec<&Node>> = BTreeMap::new();
        for node in snapshot.nodes.values() {
            for address in node.primary_addresses.iter().chain(&node.host_addresses) {
                hosts.entry(*address).or_default().push(node);
            }
        }
        Self { snapshot, claimants, hosts }
    }

    /// The objects that ask for `address`.
    pub(super) fn claimants(&self, address: Address) -> &[&'a EgressIp] {
        self.claimants.get(&address).map_or(&[], Vec::as_slice)
    }

    /// A2: the first node that has `address` as its own, and no excuse.
    pub(super) fn conflict(&self, address: Address) -> Option<&'a NodeName> {
        let hosts = self.hosts.get(&address).into_iter().flatten();
        hosts.filter(|node| !self.excused(address, node)).map(|node| &node.name).min()
    }

    fn excused(&self, address: Address, node: &Node) -> bool {
        let here = RecordedItem { address, node: node.name.clone() };
        !node.primary_addresses.contains(&address)
            && (node.own_egress_addresses.contains(&address)
                || self.snapshot.departed.contains(&(address, node.name.clone()))
                || self
                    .snapshot
                    .egress_ips
                    .values()
                    .any(|object| object.recorded.contains(&here) || self.snapshot.present(object).contains(&here)))
    }
}
