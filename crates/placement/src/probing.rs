//! Whom the prober asks.

use std::collections::BTreeSet;

use egret_core::{Host, NodeName, Snapshot};

use crate::rules::n1;

/// The nodes to probe: those that are Ready and match at least one EgressIP's selector (so `{}` probes every node and no
/// object probes none), those that host an EgressService, and of those in `drained` the ones that are still there.
///
/// `drained` names the nodes that lost a service because they fell silent and have not answered since: without a probe
/// they could never come back.
#[must_use]
pub fn probe_targets(snapshot: &Snapshot, drained: &BTreeSet<NodeName>) -> BTreeSet<NodeName> {
    let hosts = snapshot.egress_services.values().filter_map(|service| match &service.recorded {
        Host::Node(node) => Some(node),
        Host::None | Host::All => None,
    });
    let kept: BTreeSet<&NodeName> = hosts.chain(drained).collect();
    let selectors: BTreeSet<_> = snapshot.egress_ips.values().filter_map(|object| object.selector.compiled()).collect();
    let selected = |labels| selectors.iter().any(|selector| selector.matches(labels));
    let nodes = snapshot.nodes.values().filter(|node| {
        n1(node, &snapshot.options).is_ok() && (kept.contains(&node.name) || (node.ready && selected(&node.labels)))
    });
    nodes.map(|node| node.name.clone()).collect()
}
