//! Events, summaries, and whom the prober asks.

use std::collections::BTreeSet;

use egret_core::{EventReason, NodeName, Snapshot};
use egret_placement::{Explainer, decide, event_reasons, probe_targets};
use egret_testkit::builders::{
    EgressIpBuilder, NodeBuilder, SnapshotBuilder, address, egress_ip, egress_service, node, snapshot,
};

use crate::{A, B, C, Change, one, worker};

fn events(snapshot: &Snapshot, name: &str) -> Vec<String> {
    let reasons = event_reasons(snapshot, &decide(snapshot), &name.into());
    reasons.into_iter().map(|reason| reason.to_string()).collect()
}

fn of(nodes: Vec<NodeBuilder>, object: EgressIpBuilder) -> Vec<String> {
    let cluster = nodes.into_iter().fold(snapshot().ignoring("os=windows"), SnapshotBuilder::node);
    events(&cluster.egress_ip(object).build(), "e")
}

#[test]
fn events_say_nothing_when_everything_is_served() {
    assert_eq!(of(vec![worker("n1", 1)], one()), [""; 0]);
    assert_eq!(of(vec![worker("n1", 1).not_probed()], one().recorded(A, "n1")), [""; 0]);
    assert_eq!(of(vec![], egress_ip("e")), [""; 0]);
    assert_eq!(events(&snapshot().build(), "unknown"), [""; 0]);
}

#[test]
fn events_no_matching_node_is_about_labels_alone() {
    assert_eq!(of(vec![], one()), ["NoMatchingNodeFound"]);
    assert_eq!(of(vec![node("n1").primary("10.0.0.1/24")], one()), ["NoMatchingNodeFound"]);
    // The unfiltered snapshot: a node that matches is one, whatever its state.
    let unavailable: [Change; 4] = [
        |node| node.label("os", "windows"),
        |node| node.missing("k8s.ovn.org/host-cidrs"),
        NodeBuilder::not_ready,
        NodeBuilder::unreachable,
    ];
    for change in unavailable {
        assert_eq!(of(vec![change(worker("n1", 1))], one()), ["MatchingNodesUnavailable"]);
    }
}

#[test]
fn events_unavailable_is_not_said_while_one_waits_for_its_first_probe() {
    let (dead, waiting) = (|| worker("n1", 1).not_ready(), || worker("n2", 2).not_probed());
    assert_eq!(of(vec![dead(), waiting()], one()), [""; 0]);
    assert_eq!(of(vec![dead(), waiting().not_ready()], one()), ["MatchingNodesUnavailable"]);
    assert_eq!(of(vec![dead(), node("n2").primary("10.0.0.2/24").not_probed()], one()), ["MatchingNodesUnavailable"]);
}

#[test]
fn events_unassigned_is_said_when_an_available_node_matches() {
    assert_eq!(of(vec![worker("n1", 1)], one().address(B)), ["UnassignedRequest"]);
    assert_eq!(of(vec![worker("n1", 1)], egress_ip("e").address("192.0.2.1")), ["UnassignedRequest"]);
    let full = snapshot().cloud().node(worker("n1", 1).capacity(0)).egress_ip(one()).build();
    assert_eq!(events(&full, "e"), ["UnassignedRequest"]);
    assert_eq!(of(vec![worker("n1", 1), worker("n2", 2).not_ready()], one().address(B)), ["UnassignedRequest"]);
}

#[test]
fn events_unassigned_is_not_said_while_one_waits_for_its_first_probe() {
    let (taken, waiting) = (|| worker("n1", 1), || worker("n2", 2).not_probed());
    assert_eq!(of(vec![taken(), waiting()], one().address(B)), [""; 0]);
    assert_eq!(of(vec![waiting(), worker("n3", 3)], one().address(B)), [""; 0]);
    assert_eq!(of(vec![taken(), waiting().not_ready()], one().address(B)), ["UnassignedRequest"]);
    assert_eq!(of(vec![taken(), worker("n2", 2).unreachable()], one().address(B)), ["UnassignedRequest"]);
}

#[test]
fn events_an_address_refused_for_itself_gives_only_its_own() {
    assert_eq!(of(vec![node("h").host_address(A)], one()), ["EgressIPConflict"]);
    assert_eq!(of(vec![], egress_ip("e").address("10.0.0.0/24")), ["InvalidEgressIP"]);
    let cluster = snapshot().node(worker("n1", 1)).egress_ip(egress_ip("f").address(A).recorded(A, "n1"));
    assert_eq!(events(&cluster.egress_ip(one()).build(), "e"), ["UnsupportedRequest"]);
    // Each address gives its own; the gravest comes first.
    let cluster = snapshot().node(worker("n1", 1)).node(node("h").host_address(B));
    let cluster = cluster.egress_ip(egress_ip("f").address(A).recorded(A, "n1").selector("{}"));
    let object = one().address(B).address(C).address("ten").selector("pool=z");
    let expected = ["NoMatchingNodeFound", "EgressIPConflict", "UnsupportedRequest", "InvalidEgressIP"];
    assert_eq!(events(&cluster.egress_ip(object).build(), "e"), expected);
}

#[test]
fn events_a_selector_that_does_not_compile_is_said_and_no_more() {
    assert_eq!(of(vec![worker("n1", 1)], one().faulty()), ["InvalidEgressNodeSelector"]);
    assert_eq!(of(vec![], one().faulty()), ["InvalidEgressNodeSelector"]);
    assert_eq!(of(vec![worker("n1", 1)], one().faulty().recorded(A, "n1")), ["InvalidEgressNodeSelector"]);
    assert_eq!(EventReason::EgressIpConflict.as_str(), "EgressIPConflict");
}

#[test]
fn summary_begins_with_the_nodes_that_come_nearest() {
    let cluster = snapshot().node(worker("n1", 1).not_ready()).node(worker("n2", 2).not_ready());
    let cluster = cluster.node(node("n3")).node(worker("n4", 4).unreachable()).egress_ip(one()).build();
    let decision = decide(&cluster);
    let summary = Explainer::new(&cluster, &decision).summary(&cluster.egress_ips[&"e".into()], address(A));
    let summary: Vec<_> = summary.iter().map(|(reason, count)| (reason.name(), *count)).collect();
    assert_eq!(summary, [("Unreachable", 1), ("NotReady", 2), ("SelectorMismatch", 1)]);
}

#[test]
fn probe_targets_are_the_ready_nodes_that_something_selects() {
    let targets = |objects: Vec<EgressIpBuilder>, drained: &[&str]| {
        let cluster = snapshot().ignoring("os=windows").node(worker("n1", 1)).node(worker("n2", 2).not_ready());
        let cluster =
            cluster.node(node("n3")).node(worker("n4", 4).label("os", "windows")).node(worker("n5", 5).not_ready());
        let cluster = cluster.egress_service(egress_service("ns/s").recorded("n2"));
        let cluster = cluster.egress_service(egress_service("ns/all").by_network().recorded("ALL"));
        let cluster = objects.into_iter().fold(cluster, SnapshotBuilder::egress_ip).build();
        let drained: BTreeSet<NodeName> = drained.iter().map(|name| NodeName::from(*name)).collect();
        let targets = probe_targets(&cluster, &drained);
        targets.iter().map(NodeName::to_string).collect::<Vec<_>>()
    };
    assert_eq!(targets(vec![], &[]), ["n2"], "the host of a service, ready or not");
    assert_eq!(targets(vec![one()], &[]), ["n1", "n2"]);
    assert_eq!(targets(vec![one().selector("{}")], &[]), ["n1", "n2", "n3"]);
    assert_eq!(targets(vec![one().faulty()], &[]), ["n2"]);
    assert_eq!(targets(vec![], &["n3", "n4", "gone"]), ["n2", "n3"], "who lost a service by being silent");
}
