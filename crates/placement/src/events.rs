//! What the events and the condition of an EgressIP say.

use std::collections::BTreeSet;

use egret_core::{EgressIp, EgressIpName, EventReason, NodeSelector, Snapshot};

use crate::AddressReason;
use crate::decision::{Decision, Outcome};
use crate::rules::{Gate, gate, n2};

/// Why the EgressIP `name` is not served in full, gravest first; empty when every requested address has a node.
///
/// An address that is refused for itself (A1 to A3) gives only its own reason. While a matching node waits for its first
/// probe the nodes are not called unavailable.
#[must_use]
pub fn event_reasons(snapshot: &Snapshot, decision: &Decision, name: &EgressIpName) -> BTreeSet<EventReason> {
    let mut reasons = BTreeSet::new();
    let Some(object) = snapshot.egress_ips.get(name) else { return reasons };
    if matches!(object.selector, NodeSelector::Faulty(_)) {
        reasons.insert(EventReason::InvalidEgressNodeSelector);
    }
    if !object.invalid.is_empty() {
        reasons.insert(EventReason::InvalidEgressIp);
    }
    for (_, outcome) in decision.egress_ips.get(name).map_or(&[][..], Vec::as_slice) {
        match outcome {
            Outcome::Kept(_) | Outcome::Placed(_) => {}
            Outcome::Refused(AddressReason::ConflictsWithHost(_)) => {
                reasons.insert(EventReason::EgressIpConflict);
            }
            Outcome::Refused(AddressReason::HeldByAnother(_) | AddressReason::HeldInCloud) => {
                reasons.insert(EventReason::UnsupportedRequest);
            }
            Outcome::Unplaced => reasons.extend(unplaced(snapshot, object)),
        }
    }
    reasons
}

/// Why no node could take an address of `object`, as far as the nodes alone tell.
fn unplaced(snapshot: &Snapshot, object: &EgressIp) -> Option<EventReason> {
    object.selector.compiled()?;
    let matching = snapshot.nodes.values().filter(|node| n2(node, &object.selector).is_ok());
    let gates: Vec<Gate> = matching.map(|node| gate(node, &snapshot.options)).collect();
    if gates.is_empty() {
        Some(EventReason::NoMatchingNodeFound)
    } else if gates.contains(&Gate::Open) {
        Some(EventReason::UnassignedRequest)
    } else if gates.contains(&Gate::Waiting) {
        None
    } else {
        Some(EventReason::MatchingNodesUnavailable)
    }
}
