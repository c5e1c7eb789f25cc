//! A1 to A4.

use egret_core::{CloudState, EgressIp, Snapshot};
use egret_placement::Touched;
use egret_testkit::builders::{NodeBuilder, SnapshotBuilder, address, egress_ip, node, snapshot};

use crate::{A, B, Change, alone, decided, one, pooled, settled, then, told, worker};

/// The cloud's record of [`A`] has no owner that we know.
fn foreign(mut snapshot: Snapshot, node: &str) -> Snapshot {
    let state = CloudState::Confirmed;
    let config = egret_core::CloudPrivateIpConfig { address: address(A), owner: None, node: node.into(), state };
    snapshot.cloud.insert(config.address, config);
    snapshot
}

#[test]
fn a1_only_the_bad_entry_is_refused() {
    for bad in ["10.0.0.101/32", "fe80::1%eth0", "ten", ""] {
        let object = one().address(bad).build();
        assert_eq!((object.requested, object.invalid.len()), (vec![address(A)], 1), "{bad}");
    }
    assert_eq!(alone(snapshot().node(worker("n1", 1)), one().address("10.0.0.101/32")), "placed n1");
}

#[test]
fn a1_two_spellings_are_one_request() {
    let cluster = snapshot().node(worker("n1", 1)).node(worker("n2", 2));
    assert_eq!(alone(cluster, one().address("::ffff:10.0.0.100").recorded(A, "n2")), "kept n2");
}

#[test]
fn a2_a_host_address_of_any_node_conflicts() {
    let nodes: [Change; 8] = [
        |node| node,
        NodeBuilder::assignable,
        |node| node.label("os", "windows"),
        NodeBuilder::not_ready,
        NodeBuilder::unreachable,
        NodeBuilder::not_probed,
        NodeBuilder::drained,
        |node| node.missing("k8s.ovn.org/node-primary-ifaddr"),
    ];
    for change in nodes {
        let host = change(node("host").host_address(A));
        let cluster = || snapshot().ignoring("os=windows").node(worker("n1", 1)).node(host.clone());
        assert_eq!(alone(cluster(), one()), "A2 host");
        assert_eq!(alone(cluster(), one().recorded(A, "n1")), "A2 host", "it holds later too");
    }
}

#[test]
fn a2_names_the_first_of_several_nodes() {
    let host = |name| node(name).host_address(A);
    assert_eq!(alone(snapshot().node(host("h2")).node(host("h1")).node(host("h3")), one()), "A2 h1");
}

/// A node that lists [`A`], and another that does or does not.
fn listed(other: bool) -> SnapshotBuilder {
    let node = worker("n2", 2);
    snapshot().node(worker("n1", 1).host_address(A)).node(if other { node.host_address(A) } else { node })
}

#[test]
fn a2_no_conflict_where_a_status_puts_it_but_only_there() {
    assert_eq!(alone(listed(false), one().recorded(A, "n1")), "kept n1");
    assert_eq!(alone(listed(true), one().recorded(A, "n1")), "A2 n2");
    assert_eq!(alone(listed(false), one().recorded(A, "n2")), "A2 n1");
    assert_eq!(alone(listed(false), one().recorded(B, "n1")), "A2 n1");
    // Any EgressIP's status counts, also of one that does not ask for the address any more.
    let former = || egress_ip("former").recorded(A, "n1");
    assert!(alone(listed(false).egress_ip(former()), one()).starts_with("placed"));
    assert_eq!(alone(listed(true).egress_ip(former()), one()), "A2 n2");
    // On a cloud as well, while the request of that object for another node is not withdrawn.
    let cloud = listed(false).cloud().request(A, "former", "n2", CloudState::Confirmed);
    assert!(alone(cloud.egress_ip(former()), one()).starts_with("placed"));
}

#[test]
fn a2_no_conflict_where_the_node_lists_it_as_an_egress_ip_but_only_there() {
    for (owner, expected) in [("n1", "placed"), ("n2", "A2 n1")] {
        let own = |node: NodeBuilder, name| if name == owner { node.own_egress_address(A) } else { node };
        let cluster = snapshot().node(own(worker("n1", 1).host_address(A), "n1")).node(own(worker("n2", 2), "n2"));
        let decided = alone(cluster, one());
        assert!(decided.starts_with(expected), "{owner}: {decided}");
    }
}

#[test]
fn a2_no_conflict_where_it_just_left_but_only_there() {
    for (left, item, expected) in [("n1", A, "placed"), ("n2", A, "A2 n1"), ("n1", B, "A2 n1")] {
        let decided = alone(listed(false).departed(item, left), one());
        assert!(decided.starts_with(expected), "{item} left {left}: {decided}");
    }
}

#[test]
fn a2_the_address_of_the_primary_interface_has_no_excuse() {
    let own = "10.0.0.1";
    let cluster = |node: NodeBuilder| snapshot().node(node).node(worker("n2", 2));
    let object = || egress_ip("e").address(own);
    assert_eq!(alone(cluster(worker("n1", 1)), object().recorded(own, "n1")), "A2 n1");
    assert_eq!(alone(cluster(worker("n1", 1)).departed(own, "n1"), object()), "A2 n1");
    assert_eq!(alone(cluster(worker("n1", 1).own_egress_address(own)), object()), "A2 n1");
    // Also where only node-primary-ifaddr says it.
    let unlisted = worker("n1", 1).adjust(|node| node.host_addresses.clear());
    assert_eq!(alone(cluster(unlisted), object()), "A2 n1");
}

#[test]
fn a2_is_judged_again_when_a_node_or_a_status_changes() {
    let node = || worker("n1", 1);
    let cluster = |node, object| snapshot().node(node).node(worker("n2", 2)).egress_ip(object).build();
    let holds = cluster(node(), one().recorded(A, "n2"));
    let appeared = cluster(node().host_address(A), one().recorded(A, "n2"));
    let on_n1 = [Touched::Node("n1".into())];
    assert_eq!(told(&then(&holds, &appeared, &on_n1), "e"), ["A2 n1"]);
    assert_eq!(told(&then(&appeared, &holds, &on_n1), "e"), ["kept n2"]);
    let own = cluster(node().host_address(A).own_egress_address(A), one().recorded(A, "n2"));
    assert_eq!(told(&then(&appeared, &own, &on_n1), "e"), ["kept n2"]);
    let two = |former| {
        let cluster = snapshot().node(node().host_address(A)).egress_ip(one());
        cluster.egress_ip(former).build()
    };
    let (excused, not) = (two(egress_ip("f").recorded(A, "n1")), two(egress_ip("f")));
    assert_eq!(told(&then(&excused, &not, &[Touched::EgressIp("f".into())]), "e"), ["A2 n1"]);
    let left = snapshot().node(node().host_address(A)).egress_ip(one()).egress_ip(egress_ip("f")).departed(A, "n1");
    let left = left.build();
    let touched = [Touched::Departed(address(A))];
    assert_eq!(told(&then(&not, &left, &touched), "e"), ["placed n1"]);
    assert_eq!(told(&then(&left, &not, &touched), "e"), ["A2 n1"]);
}

#[test]
fn a3_the_holder_wins_then_the_oldest_then_the_first_name() {
    let object = |name, age| egress_ip(name).address(A).created(age);
    let nodes = || snapshot().node(worker("n1", 1)).node(worker("n2", 2));
    let of = |a, b| nodes().egress_ip(a).egress_ip(b).build();
    for (a, b, expected) in [
        (object("a", 1), object("b", 1), ["placed", "A3 a"]),
        (object("a", 2), object("b", 1), ["A3 b", "placed"]),
        (object("a", 1), object("b", 2).recorded(A, "n2"), ["A3 b", "kept n2"]),
        (object("a", 2).recorded(A, "n1"), object("b", 1).recorded(A, "n2"), ["A3 b", "kept n2"]),
    ] {
        let snapshot = of(a, b);
        let all = [decided(&snapshot, "a"), decided(&snapshot, "b")].concat();
        assert!(all.iter().zip(expected).all(|(found, expected)| found.starts_with(expected)), "{all:?} {expected:?}");
    }
}

#[test]
fn a3_a_holder_stays_the_holder_through_a_fail_over() {
    let cluster = snapshot().node(worker("n1", 1).not_ready()).node(worker("n2", 2));
    let cluster = cluster.egress_ip(egress_ip("old").address(A).created(1));
    let cluster = cluster.egress_ip(egress_ip("new").address(A).created(2).recorded(A, "n1")).build();
    assert_eq!(decided(&cluster, "new"), ["placed n2"]);
    assert_eq!(decided(&cluster, "old"), ["A3 new"]);
}

/// Node `n1` of pool a and node `n2` of pool b; the older object may only use pool a, the younger only pool b.
fn rivals(n1: NodeBuilder) -> SnapshotBuilder {
    let object = |name: &str, pool: &str, age| {
        egress_ip(name).address(A).selector(&format!("pool={pool};os!=linux")).created(age)
    };
    let cluster = snapshot().ignoring("os=windows").node(n1).node(pooled("n2", 2, "b"));
    cluster.egress_ip(object("old", "a", 1)).egress_ip(object("young", "b", 2))
}

#[test]
fn a3_a_claimant_for_which_no_node_passes_n1_to_n6_does_not_block() {
    let n1 = || pooled("n1", 1, "a");
    let blocked: [NodeBuilder; 7] = [
        n1().label("os", "windows"),
        n1().label("os", "linux"),
        n1().missing("k8s.ovn.org/host-cidrs"),
        n1().not_ready(),
        n1().unreachable(),
        n1().drained(),
        node("n1").label("pool", "a").primary("10.0.1.1/24"),
    ];
    for node in blocked {
        let snapshot = rivals(node).build();
        assert_eq!(decided(&snapshot, "young"), ["placed n2"]);
        assert_eq!(decided(&snapshot, "old"), ["A3 young"]);
    }
    // Full, or waiting for its first probe, is another matter.
    for node in [n1(), n1().capacity(0), n1().not_probed()] {
        assert_eq!(decided(&rivals(node).build(), "young"), ["A3 old"]);
    }
    // A selector that does not compile places nothing new, and so blocks nobody; what it holds it holds.
    let faulty = |object: EgressIp| EgressIp { selector: egret_testkit::builders::faulty_selector(), ..object };
    for (object, young) in [
        (egress_ip("old").address(A).created(1), "placed n2"),
        (egress_ip("old").address(A).created(1).recorded(A, "n1"), "A3 old"),
    ] {
        let mut snapshot = rivals(n1()).build();
        snapshot.egress_ips.insert("old".into(), faulty(object.build()));
        assert_eq!(decided(&snapshot, "young"), [young]);
    }
}

#[test]
fn a3_a_holder_without_a_node_lets_go_in_the_same_decision() {
    // The holder's own pool has a node left, which is full: it passes N1 to N6, so the holder would claim the address.
    let cluster = |n1: NodeBuilder| {
        let cluster = snapshot().cloud().node(n1).node(pooled("n2", 2, "b")).node(pooled("n3", 3, "a").capacity(0));
        let holder = egress_ip("holder").address(A).selector("pool=a").created(2).recorded(A, "n1");
        cluster.egress_ip(holder).egress_ip(egress_ip("old").address(A).selector("pool=b").created(1)).build()
    };
    let holds = cluster(pooled("n1", 1, "a"));
    assert_eq!(decided(&holds, "old"), ["A3 holder"]);
    let lost = cluster(pooled("n1", 1, "a").not_ready());
    let decision = then(&holds, &lost, &[Touched::Node("n1".into())]);
    assert_eq!(told(&decision, "old"), ["placed n2"]);
    assert_eq!(told(&decision, "holder"), ["A3 old"]);
    // And back: nothing of the let-go is remembered.
    assert_eq!(told(&then(&lost, &holds, &[Touched::Node("n1".into())]), "old"), ["A3 holder"]);
}

#[test]
fn a3_an_address_displaced_by_its_sibling_is_let_go() {
    // Both were recorded on n1, and the selector finds no other node.
    let cluster = snapshot().node(worker("n1", 1)).node(worker("n2", 2));
    let holder = egress_ip("e").address(A).address(B).created(1).faulty().recorded(A, "n1").recorded(B, "n1");
    let snapshot = cluster.egress_ip(holder).egress_ip(egress_ip("w").address(B).created(2)).build();
    assert_eq!([decided(&snapshot, "e"), decided(&snapshot, "w")].concat(), ["kept n1", "A3 w", "placed n2"]);
}

#[test]
fn a3_what_one_lets_go_frees_nothing_else_of_it() {
    // `b` holds A on a lost node and B on a good one.
    let cluster = snapshot().node(worker("n1", 1)).node(worker("n2", 2).not_ready());
    let cluster = cluster.egress_ip(egress_ip("a").address(A).created(1));
    let holder = egress_ip("b").address(A).address(B).created(2).recorded(A, "n2").recorded(B, "n1");
    let snapshot = cluster.egress_ip(holder).build();
    assert_eq!(decided(&snapshot, "a"), ["placed n1"]);
    assert_eq!(decided(&snapshot, "b"), ["A3 a", "kept n1"]);
}

#[test]
fn a3_the_waiter_is_served_as_soon_as_the_holder_lets_go() {
    let cluster = || snapshot().node(worker("n1", 1)).egress_ip(egress_ip("w").address(A).created(2));
    let held = cluster().egress_ip(egress_ip("h").address(A).created(1).recorded(A, "n1")).build();
    assert_eq!(decided(&held, "w"), ["A3 h"]);
    for after in [
        cluster().build(),
        cluster().egress_ip(egress_ip("h").address(B).created(1).recorded(A, "n1")).build(),
        cluster().egress_ip(egress_ip("h").address(A).created(1).selector("pool=z").recorded(A, "n1")).build(),
    ] {
        assert_eq!(told(&then(&held, &after, &[Touched::EgressIp("h".into())]), "w"), ["placed n1"]);
        assert_eq!(told(&then(&after, &held, &[Touched::EgressIp("h".into())]), "w"), ["A3 h"]);
    }
}

#[test]
fn a3_is_judged_again_when_a_node_makes_a_claimant_eligible() {
    let (without, with) = (rivals(pooled("n1", 1, "a").not_ready()).build(), rivals(pooled("n1", 1, "a")).build());
    let touched = [Touched::Node("n1".into())];
    assert_eq!(told(&then(&without, &with, &touched), "young"), ["A3 old"]);
    assert_eq!(told(&then(&with, &without, &touched), "young"), ["placed n2"]);
    // Once the younger holds it, it keeps it.
    assert_eq!(decided(&settled_then(&without, &with), "young"), ["kept n2"]);
}

fn settled_then(first: &Snapshot, second: &Snapshot) -> Snapshot {
    let settled = settled(first.clone());
    Snapshot { egress_ips: settled.egress_ips, ..second.clone() }
}

#[test]
fn a4_what_the_cloud_holds_for_nobody_we_know_is_left_alone() {
    let cluster = |cluster: SnapshotBuilder| cluster.node(worker("n1", 1)).egress_ip(one().recorded(A, "n1"));
    let known = cluster(snapshot().cloud()).build();
    let unknown = foreign(known.clone(), "n1");
    let touched: [Touched; 1] = [Touched::Cloud(address(A))];
    assert_eq!(told(&then(&known, &unknown, &touched), "e"), ["A4"]);
    assert_eq!(told(&then(&unknown, &known, &touched), "e"), ["kept n1"]);
    assert_eq!(
        decided(&foreign(cluster(snapshot()).build(), "n1"), "e"),
        ["kept n1"],
        "there is no cloud off the cloud"
    );
}
