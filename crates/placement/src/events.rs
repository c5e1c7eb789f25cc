//! What the events and the condition of an EgressIP say.

use std::collections::{BTreeMap, BTreeSet};

use egret_core::{EgressIp, EgressIpName, EventReason, NodeSelector, Reachability, Selector, Snapshot};

use crate::AddressReason;
use crate::decision::{Decision, Outcome};
use crate::rules::{Gate, gate, n2};

/// What the nodes that match a selector can do for an address that no node took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// No node matches.
    NoMatch,
    /// Nodes match, none of them is infrastructure-ready, ready and reachable.
    Unavailable,
    /// One waits for its first probe, and may turn out to be the place that is missing.
    NotProbed,
    /// None is available, but of one it is in doubt whether it is really silent.
    InDoubt,
    /// One is available; the address itself has no place on it.
    Available,
}

impl Availability {
    /// The reason that it gives; none while something is still to be found out.
    #[must_use]
    pub fn reason(self) -> Option<EventReason> {
        match self {
            Self::NoMatch => Some(EventReason::NoMatchingNodeFound),
            Self::Unavailable => Some(EventReason::MatchingNodesUnavailable),
            Self::Available => Some(EventReason::UnassignedRequest),
            Self::NotProbed | Self::InDoubt => None,
        }
    }
}

/// Tells what the nodes can do, once for each selector however many objects have it.
#[derive(Debug)]
pub struct Availabilities<'a> {
    snapshot: &'a Snapshot,
    known: BTreeMap<&'a Selector, Availability>,
}

impl<'a> Availabilities<'a> {
    /// Those of `snapshot`.
    #[must_use]
    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot, known: BTreeMap::new() }
    }

    /// What the nodes can do for `object`; `None` if its selector does not compile.
    pub fn of(&mut self, object: &'a EgressIp) -> Option<Availability> {
        let selector = object.selector.compiled()?;
        let snapshot = self.snapshot;
        Some(*self.known.entry(selector).or_insert_with(|| availability(snapshot, &object.selector)))
    }
}

fn availability(snapshot: &Snapshot, selector: &NodeSelector) -> Availability {
    let mut found = Availability::NoMatch;
    for node in snapshot.nodes.values().filter(|node| n2(node, selector).is_ok()) {
        found = match (gate(node, &snapshot.options), found) {
            (Gate::Waiting, _) if node.reachability == Reachability::NotProbed => return Availability::NotProbed,
            (Gate::Open, _) | (_, Availability::Available) => Availability::Available,
            (Gate::Waiting, _) => Availability::InDoubt,
            (Gate::Closed, Availability::NoMatch) => Availability::Unavailable,
            (Gate::Closed, found) => found,
        };
    }
    found
}

/// Why the EgressIP `name` is not served in full, gravest first; empty when every requested address has a node.
///
/// An address that is refused for itself (A1 to A4) gives only its own reason. While a matching node waits for its first
/// probe nothing is said of what has no place.
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
    let mut availabilities = Availabilities::new(snapshot);
    for (_, outcome) in decision.egress_ips.get(name).map_or(&[][..], Vec::as_slice) {
        match outcome {
            Outcome::Kept(_) | Outcome::Placed(_) => {}
            Outcome::Refused(reason) => {
                reasons.insert(reason.event());
            }
            Outcome::Unplaced => reasons.extend(availabilities.of(object).and_then(Availability::reason)),
        }
    }
    reasons
}

impl AddressReason {
    /// The reason of the event about it.
    #[must_use]
    pub fn event(&self) -> EventReason {
        match self {
            Self::ConflictsWithHost(_) => EventReason::EgressIpConflict,
            Self::HeldByAnother(_) | Self::HeldInCloud => EventReason::UnsupportedRequest,
        }
    }
}
