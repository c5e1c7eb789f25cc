//! The decision: which node holds which address, which node hosts which service.

use std::collections::BTreeMap;

use egret_core::{Address, CloudPrivateIpConfig, CloudState, EgressIpName, Host, NodeName, Platform, RecordedItem};
use egret_core::{ServiceKey, Snapshot};

use crate::AddressReason;

/// What was decided of one address of one EgressIP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The recorded assignment is valid: it does not move.
    Kept(NodeName),
    /// The address gets this node now.
    Placed(NodeName),
    /// The address itself is refused (A2, A3).
    Refused(AddressReason),
    /// No node can host the address now (N1 to N9).
    Unplaced,
}

impl Outcome {
    /// The node that holds the address.
    #[must_use]
    pub fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Kept(node) | Self::Placed(node) => Some(node),
            Self::Refused(_) | Self::Unplaced => None,
        }
    }
}

/// What was decided of one EgressService.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceOutcome {
    /// The recorded host is valid: it does not change.
    Kept(NodeName),
    /// The service gets this host now.
    Elected(NodeName),
    /// Every node hosts it (`sourceIPBy: Network`).
    All,
    /// No node hosts it.
    None(crate::NoHostReason),
}

impl ServiceOutcome {
    /// The value for `status.host`.
    #[must_use]
    pub fn host(&self) -> Host {
        match self {
            Self::Kept(node) | Self::Elected(node) => Host::Node(node.clone()),
            Self::All => Host::All,
            Self::None(_) => Host::None,
        }
    }
}

/// A decision about every EgressIP and EgressService of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// For every EgressIP: its distinct valid addresses, ascending, and what was decided of each.
    pub egress_ips: BTreeMap<EgressIpName, Vec<(Address, Outcome)>>,
    /// For every EgressService.
    pub egress_services: BTreeMap<ServiceKey, ServiceOutcome>,
}
