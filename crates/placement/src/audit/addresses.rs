//! The checks of addresses.

use std::collections::{BTreeMap, BTreeSet};

use egret_core::Snapshot;
use egret_core::{Address, CloudState, EgressIp, EgressIpName, Node, NodeName, Platform, RecordedItem, Selector};

use super::facts::Facts;
use super::nodes::{in_primary, over_capacity, takes_new, unfit_to_keep, usage};
use super::{Check, Finding, State};

fn finding(check: Check, name: &EgressIpName, message: String) -> Finding {
    Finding::new(check, format_args!("egressip/{name}"), message)
}

/// Every (object, address, node) of the state.
fn holdings(state: &State) -> impl Iterator<Item = (&EgressIpName, &RecordedItem)> {
    state.egress_ips.iter().flat_map(|(name, items)| items.iter().map(move |item| (name, item)))
}

/// One owner: an address is on one node, for one object.
pub(super) fn one_owner(state: &State) -> Vec<Finding> {
    let mut owners: BTreeMap<Address, BTreeSet<(&EgressIpName, &NodeName)>> = BTreeMap::new();
    for (name, item) in holdings(state) {
        owners.entry(item.address).or_default().insert((name, &item.node));
    }
    let mut findings = Vec::new();
    for (address, owners) in owners.into_iter().filter(|(_, owners)| owners.len() > 1) {
        let list: Vec<String> = owners.iter().map(|(name, node)| format!("{node} (egressip/{name})")).collect();
        let names: BTreeSet<&EgressIpName> = owners.iter().map(|(name, _)| *name).collect();
        for name in names {
            let message = format!("{address} has {} owners: {} (A3)", owners.len(), list.join(", "));
            findings.push(finding(Check::OneOwner, name, message));
        }
    }
    findings
}

/// Requested: an object holds only what it asks for.
pub(super) fn requested(snapshot: &Snapshot, state: &State) -> Vec<Finding> {
    let unasked = holdings(state).filter(|(name, item)| {
        snapshot.egress_ips.get(*name).is_none_or(|object| !object.requested.contains(&item.address))
    });
    let message = |item: &RecordedItem| format!("{} on {} is not requested", item.address, item.node);
    unasked.map(|(name, item)| finding(Check::Requested, name, message(item))).collect()
}

/// Why `node` cannot keep `address` of `object` (N1 to N6).
fn ineligible(snapshot: &Snapshot, object: &EgressIp, address: Address, node: &NodeName) -> Option<String> {
    let Some(node) = snapshot.nodes.get(node) else { return Some("there is no such node".to_owned()) };
    unfit_to_keep(snapshot, node, &object.selector).or_else(|| {
        let outside = in_primary(node, address).is_none();
        outside.then(|| "the address is in none of its networks (N6)".to_owned())
    })
}

/// Eligible owner: whoever holds an address can host it.
pub(super) fn eligible_owner(snapshot: &Snapshot, state: &State) -> Vec<Finding> {
    let ineligible = holdings(state).filter_map(|(name, item)| {
        let object = snapshot.egress_ips.get(name)?;
        let why = ineligible(snapshot, object, item.address, &item.node)?;
        let message = format!("{} is on {}, which cannot host it: {why}", item.address, item.node);
        Some(finding(Check::EligibleOwner, name, message))
    });
    ineligible.collect()
}

/// A4: the cloud holds `address` for somebody unknown.
fn foreign(snapshot: &Snapshot, address: Address) -> bool {
    snapshot.options.platform == Platform::Cloud
        && snapshot.cloud.get(&address).is_some_and(|config| config.owner.is_none())
}

/// No host conflict: no object holds a node's own address.
pub(super) fn no_host_conflict(facts: &Facts<'_>, state: &State) -> Vec<Finding> {
    let conflicts = holdings(state).filter_map(|(name, item)| {
        let host = facts.conflict(item.address)?;
        let message = format!("{} is held, and is a host address of node {host} (A2)", item.address);
        Some(finding(Check::NoHostConflict, name, message))
    });
    conflicts.collect()
}

/// Anti-co-location: a node holds at most one address of an object.
pub(super) fn anti_co_location(state: &State) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, items) in &state.egress_ips {
        let mut by_node: BTreeMap<&NodeName, BTreeSet<Address>> = BTreeMap::new();
        for item in items {
            by_node.entry(&item.node).or_default().insert(item.address);
        }
        for (node, addresses) in by_node.into_iter().filter(|(_, addresses)| addresses.len() > 1) {
            let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            let message = format!("{node} holds {} addresses of it: {} (N8)", list.len(), list.join(", "));
            findings.push(finding(Check::AntiCoLocation, name, message));
        }
    }
    findings
}

/// Whether some node passes N1 to N6 for something new, or validly holds `address` now. One that is not yet probed may
/// still answer.
fn could_hold(facts: &Facts<'_>, object: &EgressIp, address: Address) -> bool {
    let keeps = |node: &NodeName| ineligible(facts.snapshot, object, address, node).is_none();
    let items = facts.snapshot.present(object);
    (object.selector.compiled().is_some() && facts.snapshot.nodes.keys().any(keeps))
        || items.iter().any(|item| item.address == address && keeps(&item.node))
}

/// A3: the object that has the best claim to `address`, if it could be had anywhere.
fn claimant<'a>(facts: &Facts<'a>, address: Address) -> Option<&'a EgressIpName> {
    let mut claimants: Vec<&EgressIp> = facts.claimants(address).to_vec();
    if let [only] = claimants[..] {
        return Some(&only.name);
    }
    claimants.sort_by_cached_key(|object| {
        let holds = facts.snapshot.present(object).iter().any(|item| item.address == address);
        (!holds, object.created, object.name.clone())
    });
    claimants.into_iter().find(|object| could_hold(facts, object, address)).map(|object| &object.name)
}

/// Owner or reason: an address without a node has no node that could simply take it.
pub(super) fn owner_or_reason(facts: &Facts<'_>, state: &State) -> Vec<Finding> {
    let usage = usage(facts.snapshot, state);
    let mut candidates: BTreeMap<&Selector, Vec<&Node>> = BTreeMap::new();
    let mut findings = Vec::new();
    for object in facts.snapshot.egress_ips.values() {
        let held = state.egress_ips.get(&object.name).map_or(&[][..], Vec::as_slice);
        for address in &object.requested {
            let settled = held.iter().any(|item| item.address == *address)
                || facts.conflict(*address).is_some()
                || foreign(facts.snapshot, *address)
                || claimant(facts, *address) != Some(&object.name);
            let Some(selector) = object.selector.compiled().filter(|_| !settled) else { continue };
            let fit = || facts.snapshot.nodes.values().filter(|node| takes_new(facts.snapshot, node, &object.selector));
            let candidates = candidates.entry(selector).or_insert_with(|| fit().collect());
            if let Some(node) = could_take(facts.snapshot, candidates, *address, held, &usage) {
                let message = format!("{address} has no node, and {node} could take it");
                findings.push(finding(Check::OwnerOrReason, &object.name, message));
            }
        }
    }
    findings
}

/// The candidate that passes N6 to N9 for `address`.
fn could_take<'a>(
    snapshot: &Snapshot,
    candidates: &[&'a Node],
    address: Address,
    held: &[RecordedItem],
    usage: &BTreeMap<&NodeName, Vec<Address>>,
) -> Option<&'a NodeName> {
    let secondary = candidates.iter().any(|node| in_primary(node, address) == Some(false));
    let refused = |node: &NodeName| {
        let config = snapshot.cloud.get(&address).filter(|_| snapshot.options.platform == Platform::Cloud);
        snapshot.refused.contains(&(address, node.clone()))
            || config.is_some_and(|config| {
                config.state == CloudState::Refused && config.owner.is_some() && config.node == *node
            })
    };
    let free = candidates.iter().find(|node| {
        let full = usage.get(&node.name).map_or(&[][..], Vec::as_slice);
        in_primary(node, address).is_some_and(|primary| !(primary && secondary))
            && !held.iter().any(|item| item.node == node.name)
            && over_capacity(node, full, Some(address.family())).is_none()
            && !refused(&node.name)
    });
    free.map(|node| &node.name)
}

/// Cloud: what the status says is what the cloud has confirmed.
pub(super) fn cloud(snapshot: &Snapshot, state: &State) -> Vec<Finding> {
    if snapshot.options.platform != Platform::Cloud {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (name, item) in holdings(state).filter(|_| !snapshot.cloud.is_empty()) {
        let why = match snapshot.cloud.get(&item.address) {
            None => "has no CloudPrivateIPConfig".to_owned(),
            Some(config) if config.node != item.node => format!("is requested on {} from the cloud", config.node),
            Some(config) if config.owner.as_ref().is_some_and(|owner| owner != name) => {
                "is requested from the cloud for another object".to_owned()
            }
            Some(config) if config.owner.is_none() => {
                "its CloudPrivateIPConfig has no owner that we know (A4)".to_owned()
            }
            Some(config) if config.state != CloudState::Confirmed => "is not confirmed by the cloud".to_owned(),
            Some(_) => continue,
        };
        let message = format!("{} is on {} by the status, but {why}", item.address, item.node);
        findings.push(finding(Check::Cloud, name, message));
    }
    findings
}

/// No needless move: what was validly recorded is still where it was.
///
/// Of several valid items of one address one must stay, and of several addresses of one object on one node one must
/// stay there.
pub(super) fn no_needless_move(facts: &Facts<'_>, state: &State) -> Vec<Finding> {
    let snapshot = facts.snapshot;
    let mut findings = Vec::new();
    for object in snapshot.egress_ips.values() {
        let held = state.egress_ips.get(&object.name).map_or(&[][..], Vec::as_slice);
        let recorded = snapshot.present(object);
        for item in &recorded {
            let valid = object.requested.contains(&item.address)
                && ineligible(snapshot, object, item.address, &item.node).is_none()
                && facts.conflict(item.address).is_none()
                && !foreign(snapshot, item.address)
                && claimant(facts, item.address) == Some(&object.name);
            let stays = recorded
                .iter()
                .any(|other| (other.address == item.address || other.node == item.node) && held.contains(other));
            if valid && !stays {
                let message = format!("{} was validly on {} and is not any more", item.address, item.node);
                findings.push(finding(Check::NoNeedlessMove, &object.name, message));
            }
        }
    }
    findings
}
