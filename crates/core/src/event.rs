//! Why an EgressIP is not served in full, as the event on the object says it.

use std::fmt;

/// The reason of a Warning event on an EgressIP, gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventReason {
    /// The selector does not compile (N2).
    InvalidEgressNodeSelector,
    /// No node of the cluster matches the selector.
    NoMatchingNodeFound,
    /// Nodes match, none of them is infrastructure-ready, ready and reachable.
    MatchingNodesUnavailable,
    /// Available nodes match, yet an address found no place.
    UnassignedRequest,
    /// An address is a host address of a node (A2).
    EgressIpConflict,
    /// An address is held by another object (A3).
    UnsupportedRequest,
    /// An entry is not an IP literal (A1).
    InvalidEgressIp,
    /// No mark is free.
    MarkPoolExhausted,
}

impl EventReason {
    /// The reason as it is written into the event.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidEgressNodeSelector => "InvalidEgressNodeSelector",
            Self::NoMatchingNodeFound => "NoMatchingNodeFound",
            Self::MatchingNodesUnavailable => "MatchingNodesUnavailable",
            Self::UnassignedRequest => "UnassignedRequest",
            Self::EgressIpConflict => "EgressIPConflict",
            Self::UnsupportedRequest => "UnsupportedRequest",
            Self::InvalidEgressIp => "InvalidEgressIP",
            Self::MarkPoolExhausted => "MarkPoolExhausted",
        }
    }
}

impl fmt::Display for EventReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
