//! The invariants once more, by code of its own.
//!
//! Nothing here calls the code that decides: selectors are matched plainly, networks are looked up plainly, and each
//! check is one function over the snapshot and the [`State`] to be audited. What both share are the words of
//! `egret-core`. So a fault in one is seen by the other.

mod addresses;
mod facts;
mod nodes;
mod services;

use std::collections::BTreeMap;
use std::fmt;

use egret_core::{EgressIpName, Host, RecordedItem, ServiceKey, Snapshot};

use self::facts::Facts;
use crate::{Decision, ServiceOutcome};

/// Who holds what: the thing that is audited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The (address, node) pairs of every EgressIP.
    pub egress_ips: BTreeMap<EgressIpName, Vec<RecordedItem>>,
    /// The host of every EgressService.
    pub hosts: BTreeMap<ServiceKey, Host>,
}

impl State {
    /// What the status of the objects of `snapshot` says.
    #[must_use]
    pub fn recorded(snapshot: &Snapshot) -> Self {
        let egress_ips = snapshot.egress_ips.values().map(|object| (object.name.clone(), object.recorded.clone()));
        let hosts = snapshot.egress_services.values().map(|object| (object.key.clone(), object.recorded.clone()));
        Self { egress_ips: egress_ips.collect(), hosts: hosts.collect() }
    }

    /// What `decision` says.
    #[must_use]
    pub fn decided(decision: &Decision) -> Self {
        let egress_ips = decision.egress_ips.keys().map(|name| (name.clone(), decision.items(name)));
        let host = |(key, outcome): (&ServiceKey, &ServiceOutcome)| (key.clone(), outcome.host());
        Self { egress_ips: egress_ips.collect(), hosts: decision.egress_services.iter().map(host).collect() }
    }
}

/// Which invariant is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// An address is on more than one node, or in more than one object.
    OneOwner,
    /// An address is held that the object does not ask for.
    Requested,
    /// A node holds an address that it cannot host.
    EligibleOwner,
    /// An address is a host address of a node, and held all the same.
    NoHostConflict,
    /// A node holds two addresses of one object.
    AntiCoLocation,
    /// A node holds more than the cloud lets it.
    Capacity,
    /// An address has neither a node nor a reason for having none.
    OwnerOrReason,
    /// The status and the cloud disagree about an address.
    Cloud,
    /// A service has a host that cannot host it.
    EligibleHost,
    /// A service has neither a host nor a reason for having none.
    HostOrReason,
    /// A node has the label of a service that it does not host, or lacks that of one it does.
    ServiceLabels,
    /// A valid assignment moved.
    NoNeedlessMove,
}

impl Check {
    /// The check's name, as machines read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneOwner => "OneOwner",
            Self::Requested => "Requested",
            Self::EligibleOwner => "EligibleOwner",
            Self::NoHostConflict => "NoHostConflict",
            Self::AntiCoLocation => "AntiCoLocation",
            Self::Capacity => "Capacity",
            Self::OwnerOrReason => "OwnerOrReason",
            Self::Cloud => "Cloud",
            Self::EligibleHost => "EligibleHost",
            Self::HostOrReason => "HostOrReason",
            Self::ServiceLabels => "ServiceLabels",
            Self::NoNeedlessMove => "NoNeedlessMove",
        }
    }
}

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Which.
    pub check: Check,
    /// The object or node it is about, as `kind/name`.
    pub subject: String,
    /// What is wrong, one sentence without a period.
    pub message: String,
}

impl Finding {
    fn new(check: Check, subject: impl fmt::Display, message: String) -> Self {
        Self { check, subject: subject.to_string(), message }
    }
}

/// Every invariant that `state` breaks, ascending. Fit for what is recorded and for what is decided.
#[must_use]
pub fn audit(snapshot: &Snapshot, state: &State) -> Vec<Finding> {
    let facts = Facts::of(snapshot);
    let mut findings = Vec::new();
    findings.extend(addresses::one_owner(state));
    findings.extend(addresses::requested(snapshot, state));
    findings.extend(addresses::eligible_owner(snapshot, state));
    findings.extend(addresses::no_host_conflict(&facts, state));
    findings.extend(addresses::anti_co_location(state));
    findings.extend(addresses::owner_or_reason(&facts, state));
    findings.extend(addresses::cloud(snapshot, state));
    findings.extend(nodes::capacity(snapshot, state));
    findings.extend(nodes::service_labels(snapshot, state));
    findings.extend(services::eligible_host(snapshot, state));
    findings.extend(services::host_or_reason(snapshot, state));
    findings.sort();
    findings
}

/// Every valid assignment of the recorded state of `snapshot` that `state` has moved or dropped.
#[must_use]
pub fn needless_moves(snapshot: &Snapshot, state: &State) -> Vec<Finding> {
    let mut findings = addresses::no_needless_move(&Facts::of(snapshot), state);
    findings.extend(services::no_needless_change(snapshot, state));
    findings.sort();
    findings
}
