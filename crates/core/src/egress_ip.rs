//! An EgressIP object: what it asks for, and what its status records.

use std::fmt;

use crate::{Address, AddressFault, EgressIpName, NodeName, Selector, SelectorFault, Timestamp};

/// The node label that the default selector asks for.
pub(crate) const EGRESS_ASSIGNABLE: &str = "k8s.ovn.org/egress-assignable";

/// An entry of `spec.egressIPs` that is not an address (rule A1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRequest {
    /// The entry as written.
    pub text: String,
    /// What is wrong with it.
    pub fault: AddressFault,
}

/// A selector of nodes, or why it does not compile. One that does not compile keeps what is validly placed and places
/// nothing new (rule N2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSelector {
    /// Kubernetes accepts it.
    Compiled(Selector),
    /// Kubernetes would refuse it; never empty.
    Faulty(Vec<SelectorFault>),
}

impl NodeSelector {
    /// `{matchExpressions: [{key: k8s.ovn.org/egress-assignable, operator: Exists}]}`: what an absent or null
    /// `egressNodeSelector` means (OKEP-6800).
    #[must_use]
    pub fn egress_assignable() -> Self {
        Self::Compiled(Selector::exists(EGRESS_ASSIGNABLE))
    }

    /// `{}`: every node.
    #[must_use]
    pub fn everything() -> Self {
        Self::Compiled(Selector::everything())
    }

    /// The selector, if it compiles.
    #[must_use]
    pub fn compiled(&self) -> Option<&Selector> {
        match self {
            Self::Compiled(selector) => Some(selector),
            Self::Faulty(_) => None,
        }
    }
}

impl fmt::Display for NodeSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compiled(selector) => selector.fmt(f),
            Self::Faulty(_) => f.write_str("<faulty>"),
        }
    }
}

/// One readable item of `status.items`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordedItem {
    /// `egressIP`.
    pub address: Address,
    /// `node`.
    pub node: NodeName,
}

/// An EgressIP object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressIp {
    /// `metadata.name`.
    pub name: EgressIpName,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// The distinct addresses of `spec.egressIPs`, ascending.
    pub requested: Vec<Address>,
    /// The entries of `spec.egressIPs` that are no addresses.
    pub invalid: Vec<InvalidRequest>,
    /// `spec.egressNodeSelector`, the default already put in.
    pub selector: NodeSelector,
    /// The distinct readable items of `status.items`, ascending.
    pub recorded: Vec<RecordedItem>,
}
