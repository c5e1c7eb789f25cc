//! What a node may be asked for, and the checks of nodes.

use std::collections::{BTreeMap, BTreeSet};

use egret_core::{Address, Family, Host, IpNet, Node, NodeName, NodeSelector, Platform, Reachability, Snapshot};

use super::{Check, Finding, State};
use crate::service_label::{SERVICE_LABEL_PREFIX, service_label_keys};

/// Why `node` cannot keep an EgressIP's address, whatever the address (N1 to N5), in words.
pub(super) fn unfit_to_keep(snapshot: &Snapshot, node: &Node, selector: &NodeSelector) -> Option<String> {
    let options = &snapshot.options;
    if options.no_host_subnet.as_ref().is_some_and(|ignored| ignored.matches(&node.labels)) {
        return Some("it has no OVN host subnet (N1)".to_owned());
    }
    if let NodeSelector::Compiled(selector) = selector
        && !selector.matches(&node.labels)
    {
        return Some(format!("its labels do not match {selector} (N2)"));
    }
    if node.drained {
        return Some("it is drained (N2)".to_owned());
    }
    if let Err(fault) = &node.network {
        return Some(format!("{fault} (N3)"));
    }
    if !node.ready || (options.cordon_excludes && node.cordoned) {
        return Some("it is not ready (N4)".to_owned());
    }
    (node.reachability == Reachability::Unreachable).then(|| "it does not answer probes (N5)".to_owned())
}

/// Whether `node` could take something new, whatever the address.
pub(super) fn takes_new(snapshot: &Snapshot, node: &Node, selector: &NodeSelector) -> bool {
    selector.compiled().is_some()
        && node.reachability == Reachability::Reachable
        && unfit_to_keep(snapshot, node, selector).is_none()
}

/// The kind of network by which `node` hosts `address`: `Some(true)` the primary one, `Some(false)` a secondary one.
pub(super) fn in_primary(node: &Node, address: Address) -> Option<bool> {
    let network = node.network.as_ref().ok()?;
    let contains = |nets: &[IpNet]| nets.iter().any(|net| net.contains(&address.ip()));
    match (contains(network.primary()), contains(network.secondary())) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

/// The addresses that count against the capacity of each node.
pub(super) fn usage<'a>(snapshot: &'a Snapshot, state: &'a State) -> BTreeMap<&'a NodeName, Vec<Address>> {
    let mut usage: BTreeMap<&NodeName, Vec<Address>> = BTreeMap::new();
    for item in state.egress_ips.values().flatten() {
        usage.entry(&item.node).or_default().push(item.address);
    }
    for config in snapshot.cloud.values().filter(|config| config.owner.is_none()) {
        usage.entry(&config.node).or_default().push(config.address);
    }
    usage
}

/// Whether `node`, which holds `held`, is within its limits with `more` more addresses of `family` (N7).
pub(super) fn over_capacity(node: &Node, held: &[Address], more: Option<Family>) -> Option<String> {
    let families = || held.iter().map(|address| address.family()).chain(more);
    let count =
        |wanted: Option<Family>| families().filter(|family| wanted.is_none_or(|wanted| *family == wanted)).count();
    let limits =
        [(node.capacity.v4, Some(Family::V4)), (node.capacity.v6, Some(Family::V6)), (node.capacity.total, None)];
    let broken = limits.into_iter().find_map(|(limit, family)| {
        let (limit, count) = (limit?, count(family));
        let concerned = more.is_none() || family.is_none() || family == more;
        (concerned && count > usize::try_from(limit).unwrap_or(usize::MAX)).then_some((count, limit, family))
    });
    broken.map(|(count, limit, family)| match family {
        Some(family) => format!("it holds {count} {family} addresses and may hold {limit} (N7)"),
        None => format!("it holds {count} addresses and may hold {limit} (N7)"),
    })
}

/// Capacity: no node holds more than the cloud lets it.
pub(super) fn capacity(snapshot: &Snapshot, state: &State) -> Vec<Finding> {
    if snapshot.options.platform != Platform::Cloud {
        return Vec::new();
    }
    let over = usage(snapshot, state).into_iter().filter_map(|(name, held)| {
        let message = over_capacity(snapshot.nodes.get(name)?, &held, None)?;
        Some(Finding::new(Check::Capacity, format_args!("node/{name}"), message))
    });
    over.collect()
}

/// Service labels: a node has the label of each service that it hosts, and no other of that prefix.
pub(super) fn service_labels(snapshot: &Snapshot, state: &State) -> Vec<Finding> {
    let keys = service_label_keys(snapshot);
    let mut findings = Vec::new();
    for node in snapshot.nodes.values() {
        let hosted = state.hosts.iter().filter(|(_, host)| **host == Host::Node(node.name.clone()));
        let wanted: BTreeSet<&str> = hosted.filter_map(|(key, _)| keys.get(key)).map(String::as_str).collect();
        let found = node.labels.keys().filter(|key| key.starts_with(SERVICE_LABEL_PREFIX));
        let found: BTreeSet<&str> = found.map(String::as_str).collect();
        let mut add = |message| {
            findings.push(Finding::new(Check::ServiceLabels, format_args!("node/{}", node.name), message));
        };
        for label in found.difference(&wanted) {
            add(format!("label {label} is stale: the node does not host that service"));
        }
        for label in wanted.difference(&found) {
            add(format!("label {label} is missing: the node hosts that service"));
        }
    }
    findings
}
