//! C1 to C3.

use std::collections::BTreeMap;

use egret_core::{Capacity, Snapshot};
use egret_placement::audit::{Check, State, audit};
use egret_placement::{Outcome, Placer, Touched, decide};
use egret_testkit::builders::{NodeBuilder, SnapshotBuilder, egress_ip, egress_service, node, service_key, snapshot};

use crate::{A, B, C, alone, decided, one, pooled, settled, then, told, worker};

fn cloud() -> SnapshotBuilder {
    snapshot().cloud()
}

fn all(snapshot: &Snapshot, names: &[&str]) -> Vec<String> {
    names.iter().flat_map(|name| decided(snapshot, name)).collect()
}

#[test]
fn c1_what_is_valid_never_moves() {
    // Everything speaks for n2: the load, and an older object that could have the only place on n1.
    let cluster = cloud().node(worker("n1", 1).capacity(1)).node(worker("n2", 2).capacity(0));
    let cluster = cluster.egress_ip(egress_ip("e").address(A).created(2).recorded(A, "n1"));
    let cluster = cluster.egress_ip(egress_ip("old").address(B).created(1)).build();
    assert_eq!(all(&cluster, &["e", "old"]), ["kept n1", "unplaced"]);
    let returned = snapshot().node(worker("n1", 1)).node(worker("n2", 2));
    let returned = returned.egress_ip(egress_ip("a").address(A).recorded(A, "n1"));
    let returned = returned.egress_ip(egress_ip("b").address(B).recorded(B, "n1")).build();
    assert_eq!(all(&returned, &["a", "b"]), ["kept n1", "kept n1"], "a returning node attracts nothing");
}

#[test]
fn c1_the_oldest_object_is_served_first_then_the_first_by_name() {
    let of = |a, b| {
        let cluster = cloud().node(worker("n1", 1).capacity(1));
        cluster.egress_ip(egress_ip("a").address(A).created(a)).egress_ip(egress_ip("b").address(B).created(b)).build()
    };
    assert_eq!(all(&of(2, 1), &["a", "b"]), ["unplaced", "placed n1"]);
    assert_eq!(all(&of(1, 2), &["a", "b"]), ["placed n1", "unplaced"]);
    assert_eq!(all(&of(1, 1), &["a", "b"]), ["placed n1", "unplaced"]);
    // Whatever the order in which they came.
    let mut placer = Placer::new(&cloud().build());
    let (snapshot, touch) = (of(1, 1), |name: &str| Touched::EgressIp(name.into()));
    placer.update(&snapshot, &[touch("b"), touch("a"), Touched::Node("n1".into())]);
    assert_eq!(placer.decide(), &decide(&snapshot));
}

#[test]
fn c1_an_object_gets_back_first_what_it_held() {
    for (held, expected) in [(A, "placed n1, unplaced"), (B, "unplaced, placed n1")] {
        let cluster = snapshot().node(worker("n1", 1)).node(worker("n2", 2).not_ready());
        assert_eq!(alone(cluster, one().address(B).recorded(held, "n2")), expected);
    }
}

#[test]
fn c1_one_of_two_records_stays() {
    let cluster = || snapshot().node(worker("n1", 1)).node(worker("n2", 2)).node(worker("n3", 3).not_ready());
    assert_eq!(alone(cluster(), one().recorded(A, "n2").recorded(A, "n1")), "kept n1");
    assert_eq!(alone(cluster(), one().recorded(A, "n2").recorded(A, "n3")), "kept n2");
    assert_eq!(alone(cluster(), one().address(B).recorded(A, "n2").recorded(B, "n2")), "kept n2, placed n1");
}

#[test]
fn c1_on_a_cloud_the_node_is_the_one_that_the_cloud_was_asked_for() {
    use egret_core::CloudState::{Confirmed, Refused, Requested};
    for (state, owner, expected) in [
        (Confirmed, "e", "kept n2"),
        (Requested, "e", "kept n2"),
        (Refused, "e", "placed n1"),
        (Confirmed, "other", "kept n1"),
    ] {
        let cluster = cloud().node(worker("n1", 1)).node(worker("n2", 2)).request(A, owner, "n2", state);
        assert_eq!(alone(cluster, one().recorded(A, "n1")), expected, "{state:?} {owner}");
    }
    let off = snapshot().node(worker("n1", 1)).node(worker("n2", 2)).request(A, "e", "n2", Confirmed);
    assert_eq!(alone(off, one().recorded(A, "n1")), "kept n1");
}

#[test]
fn c2_the_node_that_holds_the_fewest_of_all_objects_and_families_takes_it() {
    let dual = |name, last| worker(name, last).primary(&format!("fd00::{last}/64"));
    // Without the load the hash decides, differently for different addresses.
    for text in [A, B, C, "10.0.0.103", "10.0.0.104"] {
        let cluster = snapshot().node(dual("n1", 1)).node(dual("n2", 2));
        let held = [("fd00::a", "n1"), ("fd00::b", "n1"), ("10.0.0.200", "n2")];
        let cluster = held.into_iter().fold(cluster, |cluster, (text, node)| {
            cluster.egress_ip(egress_ip(&format!("f{text}")).address(text).recorded(text, node))
        });
        assert_eq!(alone(cluster, egress_ip("e").address(text)), "placed n2");
    }
    // What is placed in this decision counts too.
    let cluster = (0..9).fold(snapshot(), |cluster, i| {
        cluster.egress_ip(egress_ip(&format!("e{i}")).address(&format!("10.0.0.{}", 100 + i)))
    });
    let cluster = cluster.node(worker("n1", 1)).node(worker("n2", 2)).node(worker("n3", 3)).build();
    assert_eq!(decide(&cluster).loads().into_values().collect::<Vec<_>>(), [3, 3, 3]);
}

/// Where each of a thousand addresses goes, each decided alone on ten equal nodes.
fn spread(suffix: &str) -> BTreeMap<String, u32> {
    let nodes = (0..10).fold(snapshot(), |cluster, i| {
        let name = format!("worker-{i}{suffix}");
        cluster.node(node(&name).assignable().primary(&format!("10.0.0.{i}/8")))
    });
    let mut counts = BTreeMap::new();
    for i in 0..1000 {
        let object = egress_ip("e").address(&format!("10.9.{}.{}", i / 250, i % 250));
        let decision = decide(&nodes.clone().egress_ip(object).build());
        let node = decision.egress_ips.values().flatten().find_map(|(_, outcome)| outcome.node());
        *counts.entry(node.expect("a place").to_string()).or_default() += 1;
    }
    counts
}

#[test]
fn c2_ties_spread() {
    for suffix in ["", ".cluster.example.com"] {
        let counts = spread(suffix);
        assert_eq!(counts.len(), 10);
        // Chi-squared with nine degrees of freedom: above 27.9 in one of a thousand fair spreads.
        let chi: u32 = counts.values().map(|count| count.abs_diff(100).pow(2)).sum();
        assert!(chi < 2790, "{chi}: {counts:?}");
    }
}

#[test]
fn c3_an_address_placed_in_the_same_decision_makes_room() {
    // The older object would take either node; the younger only n1.
    for last in 100..120 {
        let cluster = cloud().node(pooled("n1", 1, "a").capacity(1)).node(pooled("n2", 2, "b").capacity(1));
        let cluster = cluster.egress_ip(egress_ip("old").address(&format!("10.0.0.{last}")).created(1));
        let cluster = cluster.egress_ip(egress_ip("young").address("10.0.0.200").selector("pool=a").created(2)).build();
        assert_eq!(all(&cluster, &["old", "young"]), ["placed n2", "placed n1"]);
    }
}

#[test]
fn c3_a_sibling_makes_room() {
    // Both addresses of the object can have n2, only the first n1 as well.
    for last in 100..120 {
        let first = format!("10.0.0.{last}");
        let n2 = worker("n2", 2).primary("10.0.1.2/24");
        let cluster = snapshot().node(worker("n1", 1)).node(n2);
        assert_eq!(alone(cluster, egress_ip("e").address(&first).address("10.0.1.9")), "placed n1, placed n2");
    }
}

#[test]
fn c3_a_whole_chain_makes_room() {
    // Object i may use the nodes i and i + 1; the last one only its own.
    let count = 6;
    let node = |i: u8| {
        worker(&format!("n{i}"), 1 + i).capacity(1).label(&format!("k{i}"), "").label(&format!("k{}", i + 1), "")
    };
    let cluster = (0..count).fold(cloud(), |cluster, i| cluster.node(node(i)));
    let cluster = (0..count).fold(cluster, |cluster, i| {
        let text = format!("10.0.0.{}", 100 + i);
        let selector = format!("k{i}");
        cluster.egress_ip(egress_ip(&format!("e{i}")).address(&text).selector(&selector).created(i64::from(count - i)))
    });
    let decision = decide(&cluster.build());
    let placed = decision.egress_ips.values().flatten().filter(|(_, outcome)| matches!(outcome, Outcome::Placed(_)));
    assert_eq!(placed.count(), usize::from(count));
}

#[test]
fn c3_no_object_gets_fewer_because_of_a_younger_one() {
    let cluster = cloud().node(worker("n1", 1).capacity(1)).node(worker("n2", 2).capacity(1));
    let cluster = cluster.egress_ip(egress_ip("old").address(A).address(B).created(1));
    let cluster = cluster.egress_ip(egress_ip("young").address(C).created(2)).build();
    assert_eq!(all(&cluster, &["young"]), ["unplaced"]);
}

#[test]
fn c3_what_was_placed_earlier_makes_no_room() {
    let cluster = |n2: NodeBuilder| {
        let cluster = cloud().node(pooled("n1", 1, "a").capacity(1)).node(n2);
        cluster.egress_ip(egress_ip("old").address(A).created(1))
    };
    let first = settled(cluster(pooled("n2", 2, "b").capacity(0)).build());
    let young = egress_ip("young").address(B).selector("pool=a").created(2).build();
    let mut second = cluster(pooled("n2", 2, "b").capacity(1)).build();
    second.egress_ips = first.egress_ips;
    second.egress_ips.insert(young.name.clone(), young);
    second.cloud = first.cloud;
    assert_eq!(all(&second, &["old", "young"]), ["kept n1", "unplaced"]);
}

/// Nodes of both families: pools, limits of IPv4, IPv6 and in total.
type Nodes<'a> = &'a [(&'a str, [Option<u32>; 3])];
/// Objects from the oldest: pool, addresses, where some of these were.
type Objects<'a> = &'a [(&'a str, &'a [&'a str], &'a [(&'a str, &'a str)])];

/// How many addresses of each object find a place, once it is sure that no rule is broken by that.
fn counts(nodes: Nodes<'_>, objects: Objects<'_>) -> Vec<usize> {
    let cluster = nodes.iter().zip(0..).fold(cloud(), |cluster, ((pools, [v4, v6, total]), i)| {
        let node = node(&format!("n{i}")).primary(&format!("10.0.0.1{i}/24")).primary(&format!("fd00::1{i}/64"));
        let node = pools.split(' ').fold(node, |node, pool| node.label(pool, ""));
        cluster.node(node.adjust(|node| node.capacity = Capacity { v4: *v4, v6: *v6, total: *total }))
    });
    let cluster = objects.iter().zip(0..).fold(cluster, |cluster, ((pool, addresses, recorded), i)| {
        let object = egress_ip(&format!("e{i}")).selector(pool).created(i);
        let object = addresses.iter().fold(object, |object, text| object.address(text));
        cluster.egress_ip(recorded.iter().fold(object, |object, (text, node)| object.recorded(text, node)))
    });
    let cluster = cluster.build();
    let decision = decide(&cluster);
    let state = State::decided(&decision);
    // What was so before (a limit that shrank) is no fault of the choice.
    let before = audit(&cluster, &State::recorded(&cluster));
    let broken = |check| matches!(check, Check::Capacity | Check::AntiCoLocation | Check::EligibleOwner);
    let after = audit(&cluster, &state);
    assert!(!after.iter().any(|finding| broken(finding.check) && !before.contains(finding)), "{decision:#?}");
    state.egress_ips.values().map(Vec::len).collect()
}

#[test]
fn c3_under_limits_for_each_family_only_that_family_makes_room() {
    let nodes: Nodes<'_> =
        &[("p q", [Some(1), Some(1), None]), ("p q", [Some(1), Some(1), None]), ("p", [Some(1), Some(1), Some(1)])];
    let objects: Objects<'_> = &[
        ("p", &["10.0.0.101", "fd00::102"], &[]),
        ("q", &["10.0.0.104", "fd00::103"], &[]),
        ("q", &["10.0.0.105"], &[]),
    ];
    assert_eq!(counts(nodes, objects), [2, 2, 1]);
}

#[test]
fn c3_under_limits_for_each_family_a_path_puts_no_siblings_together() {
    let nodes: Nodes<'_> =
        &[("p q", [None, Some(1), None]), ("p q", [Some(1), Some(1), None]), ("q", [Some(1), Some(1), Some(1)])];
    let objects: Objects<'_> = &[
        ("p", &["10.0.0.102", "10.0.0.103", "fd00::101"], &[("10.0.0.102", "n0"), ("fd00::101", "n0")]),
        ("q", &["10.0.0.105", "fd00::104"], &[]),
        ("p", &["10.0.0.107", "fd00::106"], &[]),
    ];
    assert_eq!(counts(nodes, objects), [2, 2, 1]);
}

#[test]
fn c3_which_of_two_paths_is_taken_does_not_depend_on_the_order_of_what_was_seen() {
    // Both older addresses could make room for the youngest; the nodes they would go to hold something already.
    let limited = |name, last, pools: [&str; 2]| {
        pools.iter().fold(worker(name, last).capacity(1), |node, pool| node.label(pool, ""))
    };
    let cluster =
        [limited("n1", 1, ["p", "y"]), limited("n2", 2, ["q", "y"])].into_iter().fold(cloud(), SnapshotBuilder::node);
    let cluster = cluster.node(limited("n3", 3, ["p", "-"]).capacity(2)).node(limited("n4", 4, ["q", "-"]).capacity(2));
    let busy = |name, node| egress_ip(name).address(name).selector("{}").recorded(name, node);
    let cluster = cluster.egress_ip(busy("10.0.0.53", "n3")).egress_ip(busy("10.0.0.54", "n4"));
    let cluster = cluster.egress_ip(egress_ip("p").address(A).selector("p").created(1));
    let cluster = cluster.egress_ip(egress_ip("q").address(B).selector("q").created(1));
    for last in 120..130 {
        let young = egress_ip("young").address(&format!("10.0.0.{last}")).selector("y").created(2);
        let cluster = cluster.clone().egress_ip(young).build();
        let objects = cluster.egress_ips.keys().cloned().map(Touched::EgressIp);
        let backwards: Vec<Touched> = cluster.nodes.keys().rev().cloned().map(Touched::Node).chain(objects).collect();
        let mut placer = Placer::new(&cloud().build());
        placer.update(&cluster, &backwards);
        assert_eq!(placer.decide(), &decide(&cluster));
        assert_eq!(all(&cluster, &["young"]).len(), 1);
    }
}

#[test]
fn c3_a_number_that_is_used_again_brings_nothing_along() {
    // Selectors are numbered; the number of one that nobody has any more goes to the next new one.
    let nodes = || snapshot().node(pooled("n1", 1, "a")).node(pooled("n2", 2, "b"));
    let service = || egress_service("ns/s").selector("pool=a");
    let first = nodes().egress_ip(egress_ip("e").address(A).selector("pool=a"));
    let second = nodes().egress_ip(egress_ip("f").address(A).selector("pool=b")).build();
    let touched = [Touched::EgressIp("e".into()), Touched::Service(service_key("ns/s")), Touched::EgressIp("f".into())];
    for before in [first.clone().build(), first.egress_service(service()).build()] {
        assert_eq!(told(&then(&before, &second, &touched), "f"), ["placed n2"]);
    }
}
