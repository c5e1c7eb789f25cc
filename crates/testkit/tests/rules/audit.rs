//! Each check of the audit can fail, and alone; none fails on a cluster at rest.

use egret_core::{CloudState, Host, Snapshot};
use egret_placement::audit::{State, audit, needless_moves};
use egret_placement::decide;
use egret_testkit::builders::{
    NodeBuilder, SnapshotBuilder, egress_ip, egress_service, faulty_selector, node, service_key, snapshot,
};

use crate::{A, B, C, Change, one, settled, worker};

/// The findings about the record, as check and subject.
fn found(snapshot: &Snapshot) -> Vec<String> {
    let findings = audit(snapshot, &State::recorded(snapshot));
    findings.iter().map(|finding| format!("{} {}", finding.check.name(), finding.subject)).collect()
}

fn of(cluster: SnapshotBuilder) -> Vec<String> {
    found(&cluster.build())
}

fn nodes() -> SnapshotBuilder {
    snapshot().node(worker("n1", 1)).node(worker("n2", 2))
}

#[test]
fn audit_is_quiet_on_a_cluster_at_rest() {
    let cluster = || {
        let cluster = nodes().node(worker("n3", 3).not_probed()).node(worker("n4", 4).not_ready());
        let cluster = cluster.egress_ip(one().address(B)).egress_ip(egress_ip("dup").address(A).created(5));
        let cluster = cluster.egress_ip(egress_ip("many").address(C).address("10.0.0.103").address("10.0.0.104"));
        let cluster = cluster.egress_ip(egress_ip("host").address("10.0.0.1").address("ten"));
        let cluster = cluster.egress_ip(egress_ip("faulty").address("10.0.0.105").faulty());
        cluster.egress_service(egress_service("ns/s").endpoint("10.128.0.1", "n1"))
    };
    assert_eq!(found(&settled(cluster().build())), [""; 0]);
    assert_eq!(found(&settled(cluster().cloud().build())), [""; 0]);
}

#[test]
fn audit_one_owner() {
    let twice = nodes().egress_ip(one().recorded(A, "n1").recorded(A, "n2"));
    assert_eq!(of(twice), ["OneOwner egressip/e"]);
    let holds = |name| egress_ip(name).address(A).recorded(A, "n1");
    assert_eq!(of(nodes().egress_ip(holds("a")).egress_ip(holds("b"))), ["OneOwner egressip/a", "OneOwner egressip/b"]);
}

#[test]
fn audit_requested() {
    assert_eq!(of(nodes().egress_ip(egress_ip("e").recorded(A, "n1"))), ["Requested egressip/e"]);
    let gone =
        State { egress_ips: [("gone".into(), one().recorded(A, "n1").build().recorded)].into(), ..State::default() };
    assert_eq!(audit(&nodes().build(), &gone)[0].subject, "egressip/gone");
}

#[test]
fn audit_eligible_owner_knows_n1_to_n6() {
    let cases: [(Change, &str); 7] = [
        (|node| node.label("os", "windows"), "N1"),
        (|node| node.label("pool", "b"), "N2"),
        (NodeBuilder::drained, "N2"),
        (|node| node.missing("k8s.ovn.org/host-cidrs"), "N3"),
        (NodeBuilder::not_ready, "N4"),
        (NodeBuilder::unreachable, "N5"),
        (NodeBuilder::not_probed, ""),
    ];
    for (change, rule) in cases {
        let cluster = snapshot().ignoring("os=windows").node(change(worker("n1", 1)));
        let cluster = cluster.egress_ip(one().selector("pool!=b").recorded(A, "n1")).build();
        let findings = audit(&cluster, &State::recorded(&cluster));
        let expected: Vec<&str> = if rule.is_empty() { vec![] } else { vec!["EligibleOwner"] };
        assert_eq!(findings.iter().map(|finding| finding.check.name()).collect::<Vec<_>>(), expected, "{rule}");
        assert!(findings.iter().all(|finding| finding.message.contains(rule)), "{rule}: {findings:?}");
    }
    let elsewhere =
        snapshot().node(worker("n1", 1)).egress_ip(egress_ip("e").address("192.0.2.1").recorded("192.0.2.1", "n1"));
    assert_eq!(of(elsewhere), ["EligibleOwner egressip/e"]);
    assert_eq!(of(snapshot().egress_ip(one().recorded(A, "gone"))), ["EligibleOwner egressip/e"]);
    let mut cordoned = snapshot().node(worker("n1", 1).cordoned()).egress_ip(one().recorded(A, "n1")).build();
    assert_eq!(found(&cordoned), [""; 0]);
    cordoned.options.cordon_excludes = true;
    assert_eq!(found(&cordoned), ["EligibleOwner egressip/e"]);
}

#[test]
fn audit_no_host_conflict() {
    let held = || nodes().egress_ip(one().recorded(A, "n1"));
    assert_eq!(of(held().node(node("h").host_address(A))), ["NoHostConflict egressip/e"]);
    assert_eq!(of(held().node(node("h").host_address(A).own_egress_address(A))), [""; 0]);
    assert_eq!(of(held().node(node("h").host_address(A)).departed(A, "h")), [""; 0]);
    assert_eq!(of(held().node(worker("n1", 1).host_address(A))), [""; 0]);
    let own = nodes().egress_ip(egress_ip("e").address("10.0.0.1").recorded("10.0.0.1", "n1"));
    assert_eq!(of(own), ["NoHostConflict egressip/e"]);
}

#[test]
fn audit_anti_co_location() {
    let both = snapshot().node(worker("n1", 1)).egress_ip(one().address(B).recorded(A, "n1").recorded(B, "n1"));
    assert_eq!(of(both), ["AntiCoLocation egressip/e"]);
}

#[test]
fn audit_capacity_is_a_matter_of_the_cloud() {
    for (node, over) in [
        (worker("n1", 1).capacity(1), true),
        (worker("n1", 1).capacities(Some(1), None), true),
        (worker("n1", 1).capacities(None, Some(0)), false),
        (worker("n1", 1).capacity(2), false),
    ] {
        let holds = |name, text| egress_ip(name).address(text).recorded(text, "n1");
        let cluster = snapshot().cloud().node(node).egress_ip(holds("a", A)).egress_ip(holds("b", B)).build();
        assert_eq!(found(&cluster), if over { vec!["Capacity node/n1"] } else { vec![] });
    }
    let mut foreign =
        snapshot().cloud().node(worker("n1", 1).capacity(0)).request(A, "-", "n1", CloudState::Confirmed).build();
    foreign.cloud.values_mut().for_each(|config| config.owner = None);
    assert_eq!(found(&foreign), ["Capacity node/n1"]);
}

#[test]
fn audit_owner_or_reason() {
    let idle = |cluster: SnapshotBuilder| of(cluster.egress_ip(one()));
    assert_eq!(idle(nodes()), ["OwnerOrReason egressip/e"]);
    // Each of these is a reason.
    for cluster in [
        snapshot(),
        snapshot().node(worker("n1", 1).not_probed()),
        snapshot().cloud().node(worker("n1", 1).capacity(0)),
        snapshot().cloud().node(worker("n1", 1)).request(A, "e", "n1", CloudState::Refused),
        nodes().node(node("h").host_address(A)),
        nodes().egress_ip(egress_ip("f").address(A).created(9).recorded(A, "n1")),
    ] {
        assert_eq!(idle(cluster), [""; 0]);
    }
    assert_eq!(of(nodes().egress_ip(one().faulty())), [""; 0]);
    // A sibling where it could be, and the primary network where a secondary one is to be had.
    assert_eq!(of(snapshot().node(worker("n1", 1)).egress_ip(one().address(B).recorded(B, "n1"))), [""; 0]);
    let lan = "172.16.0.100";
    let cluster = snapshot()
        .node(worker("n1", 1).secondary("172.16.0.1/24"))
        .node(node("n2").assignable().primary("172.16.0.2/24"));
    let taken = egress_ip("e").address(lan).address(A).recorded(A, "n1");
    assert_eq!(of(cluster.egress_ip(taken)), [""; 0]);
}

#[test]
fn audit_cloud() {
    let holds = || snapshot().cloud().node(worker("n1", 1)).node(worker("n2", 2)).egress_ip(one().recorded(A, "n1"));
    assert_eq!(of(holds()), [""; 0], "no requests at all: a cluster dumped without them");
    assert_eq!(of(holds().request(A, "e", "n1", CloudState::Confirmed)), [""; 0]);
    let other =
        || holds().egress_ip(egress_ip("f").address(B).recorded(B, "n1")).request(B, "f", "n1", CloudState::Confirmed);
    assert_eq!(of(other()), ["Cloud egressip/e"]);
    assert_eq!(of(holds().request(A, "e", "n2", CloudState::Confirmed)), ["Cloud egressip/e"]);
    assert_eq!(of(holds().request(A, "e", "n1", CloudState::Requested)), ["Cloud egressip/e"]);
    let mut unowned = holds().request(A, "e", "n1", CloudState::Confirmed).build();
    unowned.cloud.values_mut().for_each(|config| config.owner = None);
    assert_eq!(found(&unowned), ["Cloud egressip/e"]);
}

#[test]
fn audit_hosts() {
    let service = || egress_service("ns/s").endpoint("192.0.2.9", "n1");
    let label = "egress-service.k8s.ovn.org/ns-s";
    let of = |n1: NodeBuilder, service| {
        let cluster = snapshot().node(n1.label(label, "")).egress_service(service).build();
        found(&cluster)
    };
    let n1 = || worker("n1", 1);
    assert_eq!(of(n1(), service().recorded("n1")), [""; 0]);
    assert_eq!(of(n1().not_probed(), service().recorded("n1")), [""; 0]);
    for (node, service) in [
        (n1().not_ready(), service().recorded("n1")),
        (n1().unreachable(), service().recorded("n1")),
        (n1().drained(), service().recorded("n1")),
        (n1(), service().selector("pool=z").recorded("n1")),
        (n1(), service().without_ingress().recorded("n1")),
        (n1(), service().without_service().recorded("n1")),
        (n1(), egress_service("ns/s").recorded("n1")),
        (n1(), egress_service("ns/s").local().endpoint("192.0.2.9", "n2").recorded("n1")),
        (n1(), service().by_network().recorded("n1")),
    ] {
        assert_eq!(of(node, service)[0], "EligibleHost egressservice/ns/s");
    }
    let bare = |service| found(&snapshot().node(worker("n1", 1)).egress_service(service).build());
    assert_eq!(bare(service().recorded("ALL")), ["EligibleHost egressservice/ns/s"]);
    assert_eq!(bare(service().recorded("gone")), ["EligibleHost egressservice/ns/s"]);
    assert_eq!(bare(service()), ["HostOrReason egressservice/ns/s"]);
    assert_eq!(bare(service().by_network()), ["HostOrReason egressservice/ns/s"]);
    assert_eq!(bare(service().without_ingress()), [""; 0]);
    assert_eq!(bare(service().selector("pool=z")), [""; 0]);
    let mut faulty = snapshot().node(worker("n1", 1)).egress_service(service()).build();
    faulty.egress_services.get_mut(&service_key("ns/s")).expect("an object").selector = faulty_selector();
    assert_eq!(found(&faulty), [""; 0]);
}

#[test]
fn audit_service_labels() {
    let cluster = |n1: NodeBuilder| {
        let service = egress_service("ns/s").endpoint("192.0.2.9", "n1").recorded("n1");
        snapshot().node(n1).egress_service(service)
    };
    assert_eq!(of(cluster(worker("n1", 1))), ["ServiceLabels node/n1"]);
    let labelled = worker("n1", 1).label("egress-service.k8s.ovn.org/ns-s", "");
    assert_eq!(of(cluster(labelled.clone())), [""; 0]);
    assert_eq!(of(cluster(labelled.label("egress-service.k8s.ovn.org/ns-old", ""))), ["ServiceLabels node/n1"]);
}

#[test]
fn audit_needless_moves() {
    let service = egress_service("ns/s").endpoint("192.0.2.9", "n1").recorded("n1");
    let before = nodes().egress_ip(one().recorded(A, "n1")).egress_service(service).build();
    let mut state = State::decided(&decide(&before));
    assert_eq!(needless_moves(&before, &state), []);
    state.egress_ips.insert("e".into(), one().recorded(A, "n2").build().recorded);
    state.hosts.insert(service_key("ns/s"), Host::Node("n2".into()));
    let subjects: Vec<String> = needless_moves(&before, &state).into_iter().map(|finding| finding.subject).collect();
    assert_eq!(subjects, ["egressip/e", "egressservice/ns/s"]);
    let mut lost = before;
    worker("n1", 1).not_ready().put(&mut lost);
    assert_eq!(needless_moves(&lost, &state), []);
}
