//! What a change would move: the difference of two decisions, with the cause of every move.
//!
//! The second decision starts from the first one's outcome. So a plan shows what the change moves, and nothing that the
//! controller would do anyway; that is the [`pending`] part, the difference between the recorded state and the first
//! decision. However many changes there are, they make one new state, and every address moves once, directly.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use egret_core::{Address, CloudState, EgressIpName, Host, NodeName, Platform, RecordedItem, ServiceKey, Snapshot};

use crate::decision::{Decision, Outcome, ServiceOutcome};
use crate::explain::{Explainer, Verdict};
use crate::{AddressReason, NoHostReason, NodeReason};

/// Why something moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is requested and had no node yet.
    Requested,
    /// The object was deleted.
    ObjectDeleted,
    /// The object does not ask for the address any more.
    NotRequested,
    /// The node that takes it is new in the cluster.
    NodeJoined,
    /// The node that held it is not in the cluster any more.
    NodeGone,
    /// The node that held it fails this rule now.
    NodeLost(NodeReason),
    /// The address itself is refused now.
    Refused(AddressReason),
    /// What kept the new node from taking it is no reason any more.
    NodeGained(NodeReason),
    /// What refused the address itself is no reason any more.
    Freed(AddressReason),
    /// It was recorded on more than one node, or beside another address of its object.
    RecordedTwice,
    /// The cloud has confirmed the address on another node than the status says.
    CloudDisagrees,
    /// The cloud was asked for the address there and has not confirmed it yet; the status waits for that.
    CloudPending,
    /// The cloud refused the address on the node that it was asked for.
    CloudRefused,
    /// The service cannot be hosted any more.
    NoHost(NoHostReason),
    /// What kept the service from being hosted is no reason any more.
    HostFound(NoHostReason),
    /// `sourceIPBy` was changed.
    SourceChanged,
}

impl Cause {
    /// The cause's name, as machines read it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Requested => "Requested",
            Self::ObjectDeleted => "ObjectDeleted",
            Self::NotRequested => "NotRequested",
            Self::NodeJoined => "NodeJoined",
            Self::NodeGone => "NodeGone",
            Self::NodeLost(reason) | Self::NodeGained(reason) => reason.name(),
            Self::Refused(reason) | Self::Freed(reason) => reason.name(),
            Self::RecordedTwice => "RecordedTwice",
            Self::CloudDisagrees => "CloudDisagrees",
            Self::CloudPending => "CloudPending",
            Self::CloudRefused => "CloudRefused",
            Self::NoHost(reason) | Self::HostFound(reason) => reason.name(),
            Self::SourceChanged => "SourceChanged",
        }
    }

    /// The number of the rule in `docs/placement.md` that the cause comes from, if it comes from one.
    #[must_use]
    pub fn rule(&self) -> Option<&'static str> {
        match self {
            Self::NodeLost(reason) | Self::NodeGained(reason) => Some(reason.rule()),
            Self::Refused(reason) | Self::Freed(reason) => Some(reason.rule()),
            Self::NoHost(reason) | Self::HostFound(reason) => Some(reason.rule()),
            Self::RecordedTwice => Some("N8"),
            Self::CloudRefused => Some("N9"),
            Self::Requested
            | Self::ObjectDeleted
            | Self::NotRequested
            | Self::NodeJoined
            | Self::NodeGone
            | Self::CloudDisagrees
            | Self::CloudPending
            | Self::SourceChanged => None,
        }
    }
}

/// One address or one service that changes its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// What moves.
    pub subject: Subject,
    /// Where it was.
    pub from: Host,
    /// Where it will be.
    pub to: Host,
    /// Why.
    pub cause: Cause,
}

/// What moves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// An address of an EgressIP.
    Address(EgressIpName, Address),
    /// The host of an EgressService.
    Service(ServiceKey),
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (&self.from, &self.to);
        match &self.cause {
            Cause::Requested => write!(f, "requested, and had no node yet"),
            Cause::ObjectDeleted => write!(f, "the object is deleted"),
            Cause::NotRequested => write!(f, "the object does not ask for it any more"),
            Cause::NodeJoined => write!(f, "node {to} is new"),
            Cause::NodeGone => write!(f, "node {from} is gone"),
            Cause::NodeLost(reason) => reason.fmt(f),
            Cause::Refused(reason) => reason.fmt(f),
            Cause::NodeGained(reason) => write!(f, "until now {reason}"),
            Cause::Freed(reason) => write!(f, "until now {reason}"),
            Cause::RecordedTwice => write!(f, "{from} already holds another, or the address is recorded twice"),
            Cause::CloudDisagrees => write!(f, "the cloud has the address on {to}"),
            Cause::CloudPending => write!(f, "asked of the cloud on {to}, not confirmed yet"),
            Cause::CloudRefused => write!(f, "the cloud refused it on the node it was asked for"),
            Cause::NoHost(reason) => reason.fmt(f),
            Cause::HostFound(reason) => write!(f, "until now {reason}"),
            Cause::SourceChanged => write!(f, "spec.sourceIPBy was changed"),
        }
    }
}

/// What the controller would change in the recorded state of `snapshot` to make `decision` true.
#[must_use]
pub fn pending(snapshot: &Snapshot, decision: &Decision) -> Vec<Move> {
    let explainer = Explainer::new(snapshot, decision);
    let mut moves = Vec::new();
    for (name, object) in &snapshot.egress_ips {
        let holds: BTreeSet<(Address, NodeName)> =
            decision.items(name).into_iter().map(|item| (item.address, item.node)).collect();
        // Raw status beside what the cloud says: on a cloud the status follows the cloud.
        let status: BTreeSet<(Address, NodeName)> =
            object.recorded.iter().map(|item| (item.address, item.node.clone())).collect();
        let real: BTreeSet<(Address, NodeName)> =
            snapshot.present(object).into_iter().map(|item| (item.address, item.node)).collect();
        let gone: Vec<_> = status.difference(&holds).collect();
        let mut arriving: BTreeMap<Address, NodeName> = holds.difference(&status).cloned().collect();
        for (address, node) in gone {
            let to = arriving.remove(address);
            let elsewhere = !real.contains(&(*address, node.clone()));
            let cause = match cloud_cause(snapshot, name, *address, to.as_ref()) {
                Some(cause) if elsewhere => cause,
                _ => left(&explainer, snapshot, decision, name, *address, node),
            };
            moves.push(address_move(name, *address, Some(node.clone()), to, cause));
        }
        for (address, node) in arriving {
            let cause = cloud_cause(snapshot, name, address, Some(&node)).unwrap_or(Cause::Requested);
            moves.push(address_move(name, address, None, Some(node), cause));
        }
    }
    for (key, service) in &snapshot.egress_services {
        let outcome = decision.egress_services.get(key);
        let to = outcome.map_or(Host::None, ServiceOutcome::host);
        if to != service.recorded {
            let cause = service_cause(&explainer, snapshot, key, &service.recorded, outcome, None);
            moves.push(Move { subject: Subject::Service(key.clone()), from: service.recorded.clone(), to, cause });
        }
    }
    moves.sort_by(|a, b| a.subject.cmp(&b.subject).then_with(|| a.from.cmp(&b.from)));
    moves
}

/// What the cloud has to do with an address that goes to `to`: nothing, off the cloud or where it was not asked.
fn cloud_cause(snapshot: &Snapshot, name: &EgressIpName, address: Address, to: Option<&NodeName>) -> Option<Cause> {
    let config = snapshot.cloud.get(&address).filter(|_| snapshot.options.platform == Platform::Cloud)?;
    if config.owner.as_ref() != Some(name) {
        return None;
    }
    match config.state {
        CloudState::Refused => Some(Cause::CloudRefused),
        _ if to != Some(&config.node) => None,
        CloudState::Confirmed => Some(Cause::CloudDisagrees),
        CloudState::Requested => Some(Cause::CloudPending),
    }
}

/// What moves between `before` and `after`, each a snapshot and the decision about it.
///
/// `after`'s snapshot must have `before`'s decision as its recorded state ([`Decision::record`]).
#[must_use]
pub fn moves(before: (&Snapshot, &Decision), after: (&Snapshot, &Decision)) -> Vec<Move> {
    let (old, new) = (Explainer::new(before.0, before.1), Explainer::new(after.0, after.1));
    let mut moves = Vec::new();
    let names: BTreeSet<&EgressIpName> = before.1.egress_ips.keys().chain(after.1.egress_ips.keys()).collect();
    for name in names {
        let holds = |decision: &Decision| -> BTreeMap<Address, NodeName> {
            decision.items(name).into_iter().map(|item| (item.address, item.node)).collect()
        };
        let (from, to) = (holds(before.1), holds(after.1));
        let addresses: BTreeSet<Address> = from.keys().chain(to.keys()).copied().collect();
        for address in addresses {
            let (from, to) = (from.get(&address), to.get(&address));
            if from == to {
                continue;
            }
            let cause = match (from, to) {
                (Some(from), to) => {
                    let stays = after.0.egress_ips.get(name).is_some_and(|object| {
                        let here = RecordedItem { address, node: from.clone() };
                        after.0.present(object).contains(&here)
                    });
                    let cloud = cloud_cause(after.0, name, address, to).filter(|_| !stays);
                    cloud.unwrap_or_else(|| left(&new, after.0, after.1, name, address, from))
                }
                (None, Some(to)) => gained(&old, before, name, address, to),
                (None, None) => continue,
            };
            moves.push(address_move(name, address, from.cloned(), to.cloned(), cause));
        }
    }
    let keys: BTreeSet<&ServiceKey> = before.1.egress_services.keys().chain(after.1.egress_services.keys()).collect();
    for key in keys {
        let (old, outcome) = (before.1.egress_services.get(key), after.1.egress_services.get(key));
        let host = |outcome: Option<&ServiceOutcome>| outcome.map_or(Host::None, ServiceOutcome::host);
        let (from, to) = (host(old), host(outcome));
        if from != to {
            let cause = service_cause(&new, after.0, key, &from, outcome, old);
            moves.push(Move { subject: Subject::Service(key.clone()), from, to, cause });
        }
    }
    moves
}

fn address_move(
    name: &EgressIpName,
    address: Address,
    from: Option<NodeName>,
    to: Option<NodeName>,
    cause: Cause,
) -> Move {
    let host = |node: Option<NodeName>| node.map_or(Host::None, Host::Node);
    Move { subject: Subject::Address(name.clone(), address), from: host(from), to: host(to), cause }
}

/// Why `address` cannot stay on `node`.
fn left(
    explainer: &Explainer<'_>,
    snapshot: &Snapshot,
    decision: &Decision,
    name: &EgressIpName,
    address: Address,
    node: &NodeName,
) -> Cause {
    let Some(object) = snapshot.egress_ips.get(name) else { return Cause::ObjectDeleted };
    if !object.requested.contains(&address) {
        return Cause::NotRequested;
    }
    // A2 and A4 take an address from a fit node; A3 gives it to another only after its holder lost the node.
    let refused = match decision.outcome(name, address) {
        Some(Outcome::Refused(reason)) => Some(reason.clone()),
        _ => None,
    };
    if let Some(reason @ (AddressReason::ConflictsWithHost(_) | AddressReason::HeldInCloud)) = refused {
        return Cause::Refused(reason);
    }
    let Some(node) = snapshot.nodes.get(node) else { return Cause::NodeGone };
    match (explainer.lost(object, address, node), refused) {
        (Err(reason), _) => Cause::NodeLost(reason),
        (Ok(()), Some(reason)) => Cause::Refused(reason),
        (Ok(()), None) => Cause::RecordedTwice,
    }
}

/// Why `address`, which had no node, gets `node`: what stood against it before.
fn gained(
    old: &Explainer<'_>,
    before: (&Snapshot, &Decision),
    name: &EgressIpName,
    address: Address,
    node: &NodeName,
) -> Cause {
    let Some(object) = before.0.egress_ips.get(name) else { return Cause::Requested };
    match before.1.outcome(name, address) {
        Some(Outcome::Refused(reason)) => Cause::Freed(reason.clone()),
        Some(_) => {
            let verdicts = old.address(object, address);
            match verdicts.into_iter().find(|(other, _)| *other == node) {
                Some((_, Verdict::Excluded(reason))) => Cause::NodeGained(reason),
                None => Cause::NodeJoined,
                _ => Cause::Requested,
            }
        }
        None => Cause::Requested,
    }
}

fn service_cause(
    new: &Explainer<'_>,
    after: &Snapshot,
    key: &ServiceKey,
    from: &Host,
    outcome: Option<&ServiceOutcome>,
    before: Option<&ServiceOutcome>,
) -> Cause {
    let Some(service) = after.egress_services.get(key) else { return Cause::ObjectDeleted };
    match (outcome, from) {
        (Some(ServiceOutcome::None(reason)), _)
            if !matches!(reason, NoHostReason::NoEligibleNode | NoHostReason::SelectorFaulty) =>
        {
            Cause::NoHost(reason.clone())
        }
        (_, Host::Node(node)) if outcome != Some(&ServiceOutcome::All) => match after.nodes.get(node) {
            None => Cause::NodeGone,
            Some(node) => match new.service_exclusion(service, node) {
                Err(reason) => Cause::NodeLost(reason),
                Ok(()) => Cause::Requested,
            },
        },
        (_, Host::Node(_) | Host::All) => Cause::SourceChanged,
        (_, Host::None) => match before {
            Some(ServiceOutcome::None(reason)) => Cause::HostFound(reason.clone()),
            _ => Cause::Requested,
        },
    }
}

#[cfg(test)]
mod tests {
    use egret_core::{CloudPrivateIpConfig, EgressIp, Node, NodeNetwork, NodeSelector, RecordedItem, Timestamp};

    use super::*;
    use crate::decide;

    /// One object whose address the status has on `n1`, or nowhere, and the cloud was asked for on `asked`.
    fn cloud(status: Option<&str>, asked: &str, state: CloudState) -> Vec<(Host, Host, &'static str)> {
        let address = Address::parse("10.0.0.100").expect("an address");
        let mut snapshot = Snapshot::default();
        snapshot.options.platform = Platform::Cloud;
        for name in ["n1", "n2"] {
            let network = NodeNetwork::new(["10.0.0.0/24".parse().expect("a network")], []);
            snapshot.nodes.insert(name.into(), Node::new(name, Ok(network)));
        }
        let recorded = status.map(|node| RecordedItem { address, node: node.into() });
        let object = EgressIp {
            name: "a".into(),
            created: Timestamp(0),
            requested: vec![address],
            invalid: Vec::new(),
            selector: NodeSelector::everything(),
            recorded: recorded.into_iter().collect(),
        };
        let config = CloudPrivateIpConfig { address, owner: Some("a".into()), node: asked.into(), state };
        snapshot.egress_ips.insert("a".into(), object);
        snapshot.cloud.insert(address, config);
        let moves = pending(&snapshot, &decide(&snapshot));
        moves.into_iter().map(|moved| (moved.from.clone(), moved.to.clone(), moved.cause.name())).collect()
    }

    #[test]
    fn pending_on_a_cloud_tells_what_the_cloud_said() {
        let host = |name: &str| Host::from(name);
        for (status, asked, state, expected) in [
            (Some("n1"), "n2", CloudState::Confirmed, vec![(host("n1"), host("n2"), "CloudDisagrees")]),
            (Some("n1"), "n2", CloudState::Requested, vec![(host("n1"), host("n2"), "CloudPending")]),
            (Some("n1"), "n1", CloudState::Refused, vec![(host("n1"), host("n2"), "CloudRefused")]),
            (Some("n1"), "n1", CloudState::Confirmed, vec![]),
            (None, "n1", CloudState::Requested, vec![(Host::None, host("n1"), "CloudPending")]),
            (None, "n1", CloudState::Refused, vec![(Host::None, host("n2"), "CloudRefused")]),
        ] {
            assert_eq!(cloud(status, asked, state), expected, "{status:?} {asked} {state:?}");
        }
    }
}
