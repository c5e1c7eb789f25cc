//! S1 to S7.

use std::collections::BTreeSet;

use egret_core::{Endpoint, GatewayMode, Snapshot};
use egret_placement::{Placer, Touched, decide, service_label_keys, service_labels};
use egret_testkit::builders::{
    EgressServiceBuilder, NodeBuilder, SnapshotBuilder, egress_service, endpoint, node, service_key, snapshot,
};

use crate::{Change, hosted, settled, then};

/// A node with pods of its own.
fn worker(name: &str, number: u8) -> NodeBuilder {
    node(name).primary(&format!("10.0.0.{number}/24")).pods(&format!("10.128.{number}.0/24"))
}

/// The EgressService `ns/s` with a pod on node `n1`.
fn service() -> EgressServiceBuilder {
    egress_service("ns/s").endpoint("10.128.1.5", "n1")
}

fn nodes() -> SnapshotBuilder {
    snapshot().node(worker("n1", 1)).node(worker("n2", 2))
}

fn host(cluster: SnapshotBuilder, service: EgressServiceBuilder) -> String {
    hosted(&cluster.egress_service(service).build(), "ns/s")
}

#[test]
fn s1_without_a_service_there_is_no_host() {
    assert_eq!(host(nodes(), service().without_service().recorded("n1")), "S1 ServiceMissing");
    assert_eq!(host(nodes(), service().without_service().by_network().recorded("ALL")), "S1 ServiceMissing");
}

#[test]
fn s2_by_network_is_hosted_by_all_unless_any_node_is_shared() {
    let with = |mode| nodes().node(worker("n3", 3).gateway(mode));
    assert_eq!(host(nodes(), egress_service("ns/s").by_network().without_ingress()), "ALL");
    assert_eq!(host(with(GatewayMode::Local), service().by_network().recorded("n1")), "ALL");
    assert_eq!(host(with(GatewayMode::Disabled), service().by_network()), "ALL");
    assert_eq!(host(with(GatewayMode::Shared), service().by_network().recorded("ALL")), "S2 SharedGateway");
    assert_eq!(host(with(GatewayMode::Shared), service()).split(' ').next(), Some("elected"));
    let two = with(GatewayMode::Shared).node(worker("n0", 4).gateway(GatewayMode::Shared));
    let decision = decide(&two.egress_service(service().by_network()).build());
    let reason = egret_placement::NoHostReason::SharedGateway("n0".into());
    assert_eq!(decision.egress_services[&service_key("ns/s")], egret_placement::ServiceOutcome::None(reason));
}

#[test]
fn s3_by_address_needs_an_ingress_and_a_pod() {
    assert_eq!(host(nodes(), service().without_ingress().recorded("n1")), "S3 NoIngress");
    assert_eq!(host(nodes(), egress_service("ns/s").recorded("n1")), "S3 NoEndpoints");
    // Outside the pod subnets, or a node's own address: a pod of the host network.
    for text in ["192.0.2.1", "10.0.0.2"] {
        assert_eq!(host(nodes(), egress_service("ns/s").endpoint(text, "n1")), "S3 NoEndpoints", "{text}");
    }
    let own = snapshot().node(worker("n1", 1).host_address("10.128.1.2"));
    assert_eq!(host(own, egress_service("ns/s").endpoint("10.128.1.2", "n1")), "S3 NoEndpoints");
    // Where no pod subnets are known, anything but a node's own address.
    let unknown = || snapshot().node(node("n1").primary("10.0.0.1/24"));
    assert_eq!(host(unknown(), egress_service("ns/s").endpoint("192.0.2.1", "n1")), "elected n1");
    assert_eq!(host(unknown(), egress_service("ns/s").endpoint("10.0.0.1", "n1")), "S3 NoEndpoints");
    // Not serving is no matter, unless the traffic policy is Local.
    let mut cluster = nodes().egress_service(egress_service("ns/s")).build();
    let endpoint = Endpoint { serving: false, ..endpoint("10.128.1.5", Some("n1")) };
    cluster.endpoints.insert(service_key("ns/s"), vec![endpoint]);
    assert!(hosted(&cluster, "ns/s").starts_with("elected"));
}

#[test]
fn s3_pod_subnets_come_and_go_with_their_nodes() {
    let with =
        nodes().node(worker("n3", 3)).egress_service(egress_service("ns/s").endpoint("10.128.3.5", "n3")).build();
    let mut without = with.clone();
    without.nodes.remove(&"n3".into());
    let touched = [Touched::Node("n3".into())];
    then(&with, &without, &touched);
    then(&without, &with, &touched);
    assert_eq!(hosted(&without, "ns/s"), "S3 NoEndpoints");
}

#[test]
fn s4_a_host_is_ready_selected_and_not_known_to_be_silent() {
    let cases: [(Change, bool); 9] = [
        (|node| node, true),
        (NodeBuilder::not_probed, true),
        (|node| node.missing("k8s.ovn.org/host-cidrs"), true),
        (NodeBuilder::cordoned, true),
        (NodeBuilder::not_ready, false),
        (NodeBuilder::unreachable, false),
        (NodeBuilder::drained, false),
        (|node| node.label("os", "windows"), false),
        (|node| node.label("pool", "b"), false),
    ];
    for (i, (change, fit)) in cases.into_iter().enumerate() {
        let cluster = || snapshot().ignoring("os=windows").node(change(worker("n1", 1).label("pool", "a")));
        for (recorded, expected) in [("", "elected n1"), ("n1", "kept n1")] {
            let expected = if fit { expected } else { "S4 NoEligibleNode" };
            assert_eq!(host(cluster(), service().selector("pool=a").recorded(recorded)), expected, "case {i}");
        }
    }
    let mut cordoned = snapshot().node(worker("n1", 1).cordoned()).egress_service(service()).build();
    cordoned.options.cordon_excludes = true;
    assert_eq!(hosted(&cordoned, "ns/s"), "S4 NoEligibleNode");
}

#[test]
fn s4_with_a_local_traffic_policy_it_has_a_serving_pod() {
    assert_eq!(host(nodes(), service().local()), "elected n1");
    assert_eq!(host(nodes(), service().local().recorded("n2")), "elected n1");
    assert_eq!(host(nodes(), service().recorded("n2")), "kept n2");
    for bad in [
        Endpoint { serving: false, ..endpoint("10.128.1.5", Some("n1")) },
        endpoint("10.128.1.5", None),
        endpoint("10.0.0.1", Some("n1")),
    ] {
        let mut cluster = nodes().egress_service(service().local().endpoint("10.128.2.5", "n2").recorded("n1")).build();
        cluster.endpoints.get_mut(&service_key("ns/s")).expect("endpoints")[0] = bad;
        assert_eq!(hosted(&cluster, "ns/s"), "elected n2");
    }
}

#[test]
fn s4_a_selector_that_does_not_compile_keeps_and_takes_nothing() {
    for (node, recorded, expected) in [
        (worker("n1", 1), "n1", "kept n1"),
        (worker("n1", 1), "", "S4 SelectorFaulty"),
        (worker("n1", 1).not_ready(), "n1", "S4 SelectorFaulty"),
    ] {
        let mut cluster = snapshot().node(node).egress_service(service().recorded(recorded)).build();
        let object = cluster.egress_services.get_mut(&service_key("ns/s")).expect("an object");
        object.selector = egret_testkit::builders::faulty_selector();
        assert_eq!(hosted(&cluster, "ns/s"), expected);
    }
}

/// So many services `ns/b0`, `ns/b1` that a node hosts.
fn busy(cluster: SnapshotBuilder, node: &str, count: u8) -> SnapshotBuilder {
    (0..count).fold(cluster, |cluster, i| {
        let key = format!("ns/{node}-{i}");
        cluster.egress_service(egress_service(&key).endpoint("10.128.1.5", "n1").recorded(node))
    })
}

#[test]
fn s5_a_valid_host_stays() {
    assert_eq!(host(busy(nodes(), "n1", 3), service().recorded("n1")), "kept n1");
    assert!(host(nodes(), service().recorded("gone")).starts_with("elected"));
    assert!(host(nodes(), service().recorded("ALL")).starts_with("elected"));
}

#[test]
fn s6_the_node_that_hosts_the_fewest_is_elected() {
    for (n1, n2, expected) in [(2, 1, "elected n2"), (1, 2, "elected n1")] {
        assert_eq!(host(busy(busy(nodes(), "n1", n1), "n2", n2), service()), expected);
    }
    let cluster = (0..6).fold(nodes().node(worker("n3", 3)), |cluster, i| {
        cluster.egress_service(egress_service(&format!("ns/s{i}")).endpoint("10.128.1.5", "n1"))
    });
    let labels = service_labels(&cluster.clone().build(), &decide(&cluster.build()));
    assert_eq!(labels.values().map(BTreeSet::len).collect::<Vec<_>>(), [2, 2, 2]);
}

#[test]
fn s6_ties_spread_and_the_oldest_is_served_first() {
    let alone = |i| {
        let key = format!("ns/s{i}");
        hosted(&nodes().egress_service(egress_service(&key).endpoint("10.128.1.5", "n1")).build(), &key)
    };
    let on_n1 = (0..100).filter(|i| alone(*i) == "elected n1").count();
    assert!((30..=70).contains(&on_n1), "{on_n1} of 100");
    // Of two that prefer the same node the first served gets it.
    let both: Vec<String> =
        (0..100).filter(|i| alone(*i) == "elected n1").map(|i| format!("ns/s{i}")).take(2).collect();
    let pair = |ages: [i64; 2]| {
        let cluster = both.iter().zip(ages).fold(nodes(), |cluster, (key, age)| {
            cluster.egress_service(egress_service(key).endpoint("10.128.1.5", "n1").created(age))
        });
        let cluster = cluster.build();
        [hosted(&cluster, &both[0]), hosted(&cluster, &both[1])]
    };
    assert_eq!(pair([1, 2]), ["elected n1", "elected n2"]);
    assert_eq!(pair([2, 1]), ["elected n2", "elected n1"]);
    assert_eq!(pair([1, 1]), ["elected n1", "elected n2"], "then by name");
}

#[test]
fn s_every_change_elects_again() {
    let before = nodes().egress_service(service().recorded("n1")).build();
    let mut placer = Placer::new(&before);
    placer.decide();
    let mut silent = before.clone();
    silent.nodes.get_mut(&"n1".into()).expect("a node").reachability = egret_core::Reachability::Unreachable;
    let mut gone = before.clone();
    gone.services.clear();
    let mut empty = before.clone();
    empty.endpoints.clear();
    let key = || Touched::Service(service_key("ns/s"));
    for (after, touched) in [(silent, Touched::Node("n1".into())), (gone, key()), (empty, key())] {
        then(&before, &after, std::slice::from_ref(&touched));
        then(&after, &before, &[touched]);
        assert_ne!(hosted(&after, "ns/s"), "kept n1");
    }
    let deleted = Snapshot { egress_services: [].into(), ..before.clone() };
    assert!(then(&before, &deleted, &[key()]).egress_services.is_empty());
}

#[test]
fn s7_the_oldest_keeps_a_label_that_two_would_share() {
    let keys = |ages: [i64; 2]| {
        let object = |key, age| egress_service(key).created(age);
        let cluster = snapshot().egress_service(object("a/b-c", ages[0])).egress_service(object("a-b/c", ages[1]));
        let keys = service_label_keys(&cluster.build());
        ["a/b-c", "a-b/c"].map(|key| keys[&service_key(key)] == "egress-service.k8s.ovn.org/a-b-c")
    };
    assert_eq!(keys([1, 2]), [true, false]);
    assert_eq!(keys([2, 1]), [false, true]);
}

#[test]
fn s7_the_host_and_nobody_else_carries_the_label() {
    let cluster = nodes().node(worker("n3", 3).label("egress-service.k8s.ovn.org/ns-old", ""));
    let cluster = settled(cluster.egress_service(service().recorded("n2")).build());
    let labelled: Vec<&str> = cluster
        .nodes
        .values()
        .filter(|node| node.labels.keys().any(|key| key.starts_with("egress-service.k8s.ovn.org/")))
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(labelled, ["n2"]);
    assert!(cluster.nodes[&"n2".into()].labels.contains_key("egress-service.k8s.ovn.org/ns-s"));
}
