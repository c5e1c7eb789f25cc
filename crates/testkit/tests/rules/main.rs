//! The rules of `docs/placement.md`, sentence by sentence: each test fails when the line that makes it true is removed.

mod address;
mod audit;
mod choice;
mod found;
mod node;
mod plan;
mod service;
mod told;

use egret_core::{EgressIpName, Snapshot};
use egret_placement::{AddressReason, Decision, Outcome, Placer, ServiceOutcome, Touched, decide};
use egret_testkit::builders::{EgressIpBuilder, NodeBuilder, SnapshotBuilder, egress_ip, node, service_key};

/// The network of every [`worker`], and addresses in it.
const A: &str = "10.0.0.100";
const B: &str = "10.0.0.101";
const C: &str = "10.0.0.102";
/// In the IPv6 network of a worker that has one.
const A6: &str = "fd00::100";

/// What makes a node good or bad.
type Change = fn(NodeBuilder) -> NodeBuilder;

/// A node that the default selector matches, with `10.0.0.<last>/24`.
fn worker(name: &str, last: u8) -> NodeBuilder {
    node(name).assignable().primary(&format!("10.0.0.{last}/24"))
}

/// The same with a pool.
fn pooled(name: &str, last: u8, pool: &str) -> NodeBuilder {
    worker(name, last).label("pool", pool)
}

/// What is decided of each address of the EgressIP `name`, ascending by address: `kept n1`, `placed n1`, `unplaced`, or
/// the rule with what it names.
fn told(decision: &Decision, name: &str) -> Vec<String> {
    let outcome = |outcome: &Outcome| match outcome {
        Outcome::Kept(node) => format!("kept {node}"),
        Outcome::Placed(node) => format!("placed {node}"),
        Outcome::Unplaced => "unplaced".to_owned(),
        Outcome::Refused(AddressReason::ConflictsWithHost(node)) => format!("A2 {node}"),
        Outcome::Refused(AddressReason::HeldByAnother(object)) => format!("A3 {object}"),
        Outcome::Refused(AddressReason::HeldInCloud) => "A4".to_owned(),
    };
    decision.egress_ips[&EgressIpName::from(name)].iter().map(|(_, decided)| outcome(decided)).collect()
}

fn decided(snapshot: &Snapshot, name: &str) -> Vec<String> {
    told(&decide(snapshot), name)
}

/// One object `e` that asks for one address: what is decided of it.
fn alone(cluster: SnapshotBuilder, object: EgressIpBuilder) -> String {
    decided(&cluster.egress_ip(object).build(), "e").join(", ")
}

/// What is decided of the EgressService `ns/s`: `kept n1`, `elected n1`, `ALL`, or the rule and the reason.
fn hosted(snapshot: &Snapshot, key: &str) -> String {
    match &decide(snapshot).egress_services[&service_key(key)] {
        ServiceOutcome::Kept(node) => format!("kept {node}"),
        ServiceOutcome::Elected(node) => format!("elected {node}"),
        ServiceOutcome::All => "ALL".to_owned(),
        ServiceOutcome::None(reason) => format!("{} {}", reason.rule(), reason.name()),
    }
}

/// The snapshot with the decision about it recorded.
fn settled(mut snapshot: Snapshot) -> Snapshot {
    decide(&snapshot).record(&mut snapshot);
    snapshot
}

/// Decides about `before`, then about `after` by what was touched only; holds that against a full decision.
fn then(before: &Snapshot, after: &Snapshot, touched: &[Touched]) -> Decision {
    let mut placer = Placer::new(before);
    placer.decide();
    placer.update(after, touched);
    assert_eq!(placer.decide(), &decide(after));
    placer.decision().clone()
}

/// An EgressIP `e` with the default selector that asks for [`A`].
fn one() -> EgressIpBuilder {
    egress_ip("e").address(A)
}
