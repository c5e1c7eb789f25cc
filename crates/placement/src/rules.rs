//! The rules that judge a node alone, in their order. The fast path and `explain` both ask here.

use egret_core::{Node, NodeSelector, Options, Reachability};

use crate::NodeReason;

/// N1: a node that has no OVN host subnet is nobody's.
pub(crate) fn n1(node: &Node, options: &Options) -> Result<(), NodeReason> {
    let ignored = options.no_host_subnet.as_ref().is_some_and(|selector| selector.matches(&node.labels));
    if ignored { Err(NodeReason::Ignored) } else { Ok(()) }
}

/// N2: the labels match the selector. The one that does not compile matches nothing new.
pub(crate) fn n2(node: &Node, selector: &NodeSelector) -> Result<(), NodeReason> {
    let NodeSelector::Compiled(selector) = selector else { return Err(NodeReason::SelectorFaulty) };
    match selector.first_unfulfilled(&node.labels) {
        Some(requirement) => Err(NodeReason::SelectorMismatch(requirement.clone())),
        None => n2_drained(node),
    }
}

/// N2 for a drained node: it is in no object's pool.
pub(crate) fn n2_drained(node: &Node) -> Result<(), NodeReason> {
    if node.drained { Err(NodeReason::Drained) } else { Ok(()) }
}

/// N3: the annotations that the node needs can be read.
pub(crate) fn n3(node: &Node) -> Result<(), NodeReason> {
    match &node.network {
        Ok(_) => Ok(()),
        Err(fault) => Err(NodeReason::NotInfrastructureReady(fault.clone())),
    }
}

/// N4: the node is Ready, and not cordoned where that counts.
pub(crate) fn n4(node: &Node, options: &Options) -> Result<(), NodeReason> {
    match (node.ready, node.cordoned && options.cordon_excludes) {
        (false, _) => Err(NodeReason::NotReady),
        (true, true) => Err(NodeReason::Cordoned),
        (true, false) => Ok(()),
    }
}

/// N5: the node answers probes.
pub(crate) fn n5(node: &Node) -> Result<(), NodeReason> {
    match node.reachability {
        Reachability::Reachable => Ok(()),
        Reachability::Unreachable => Err(NodeReason::Unreachable),
        Reachability::NotProbed => Err(NodeReason::NotProbed),
        Reachability::InDoubt => Err(NodeReason::InDoubt),
    }
}

/// What a node may do for EgressIPs, whatever the object and the address: N1, N3, N4, N5 and the drain of N2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// It keeps what it has and takes more.
    Open,
    /// It keeps what it has and takes nothing new: not yet probed, or its silence is in doubt.
    Waiting,
    /// It holds nothing.
    Closed,
}

/// The gate of `node`.
pub(crate) fn gate(node: &Node, options: &Options) -> Gate {
    let firm = n1(node, options).and(n2_drained(node)).and(n3(node)).and(n4(node, options));
    match (firm, node.reachability) {
        (Err(_), _) | (_, Reachability::Unreachable) => Gate::Closed,
        (Ok(()), Reachability::NotProbed | Reachability::InDoubt) => Gate::Waiting,
        (Ok(()), Reachability::Reachable) => Gate::Open,
    }
}

/// S4 without selector and endpoints: what makes a node unfit to host any service. Never probed counts as reachable; a
/// node whose silence is in doubt keeps what it hosts ([`takes_services`] says whether it takes more).
pub(crate) fn unfit_for_services(node: &Node, options: &Options) -> Option<NodeReason> {
    let reachable = match node.reachability {
        Reachability::Unreachable => Err(NodeReason::Unreachable),
        Reachability::Reachable | Reachability::NotProbed | Reachability::InDoubt => Ok(()),
    };
    n1(node, options).and(n2_drained(node)).and(n4(node, options)).and(reachable).err()
}

/// S4 for a service that is not on the node yet.
pub(crate) fn takes_services(node: &Node) -> Result<(), NodeReason> {
    if node.reachability == Reachability::InDoubt { Err(NodeReason::InDoubt) } else { Ok(()) }
}
