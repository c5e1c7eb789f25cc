//! A CloudPrivateIPConfig: what the cloud was asked for, and what it answered.

use crate::{Address, EgressIpName, NodeName};

/// What the cloud says of `spec.node`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloudState {
    /// No answer for this node yet.
    Requested,
    /// `Assigned` is True on the requested node.
    Confirmed,
    /// `Assigned` is False on the requested node.
    Refused,
}

/// A CloudPrivateIPConfig object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudPrivateIpConfig {
    /// The address its name stands for.
    pub address: Address,
    /// The annotation `k8s.ovn.org/egressip-owner-ref`; without it the object is nobody's we know.
    pub owner: Option<EgressIpName>,
    /// `spec.node`.
    pub node: NodeName,
    /// The cloud's answer for `spec.node`.
    pub state: CloudState,
}
