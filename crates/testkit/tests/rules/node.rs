//! N1 to N9.

use egret_api::Manifests;
use egret_core::{CloudState, Node, NodeName, Options, Reachability, Selector, Snapshot};
use egret_placement::audit::{Check, State, audit};
use egret_placement::{Explainer, Placer, Touched, Verdict, decide};
use egret_testkit::builders::{EgressIpBuilder, NodeBuilder, SnapshotBuilder, address, egress_ip, node, snapshot};
use serde_json::{Value, json};

use crate::{A, A6, B, C, Change, alone, decided, one, settled, then, told, worker};

const SECONDARY: &str = "172.16.0.100";

/// The reason of node `n1` against the address of `e`, as rule and name; `-` for none.
fn reason(snapshot: &Snapshot, text: &str) -> String {
    let decision = decide(snapshot);
    let object = &snapshot.egress_ips[&"e".into()];
    let node = &snapshot.nodes[&"n1".into()];
    match Explainer::new(snapshot, &decision).node(object, address(text), node) {
        Verdict::Excluded(reason) => format!("{} {}", reason.rule(), reason.name()),
        Verdict::Holds | Verdict::Eligible { .. } => "-".to_owned(),
    }
}

#[test]
fn n1_to_n5_each_keeps_a_node_from_taking_and_most_from_keeping() {
    let cases: [(&str, Change, &str); 8] = [
        ("-", |node| node, "kept n1"),
        ("N1 Ignored", |node| node.label("os", "windows"), "unplaced"),
        ("N2 SelectorMismatch", |node| node.label("pool", "b"), "unplaced"),
        ("N2 Drained", NodeBuilder::drained, "unplaced"),
        ("N3 NotInfrastructureReady", |node| node.missing("k8s.ovn.org/host-cidrs"), "unplaced"),
        ("N4 NotReady", NodeBuilder::not_ready, "unplaced"),
        ("N5 Unreachable", NodeBuilder::unreachable, "unplaced"),
        ("N5 NotProbed", NodeBuilder::not_probed, "kept n1"),
    ];
    for (expected, change, keeps) in cases {
        let cluster = || snapshot().ignoring("os=windows").node(change(worker("n1", 1).label("pool", "a")));
        let object = || one().selector("pool=a");
        let takes = if expected == "-" { "placed n1" } else { "unplaced" };
        assert_eq!(alone(cluster(), object()), takes, "{expected}");
        assert_eq!(alone(cluster(), object().recorded(A, "n1")), keeps, "{expected}");
        assert_eq!(reason(&cluster().egress_ip(object()).build(), A), expected);
    }
}

/// Node `n1` and the EgressIP `e` with every rule of N1 to N9 broken but the first so many.
fn broken_after(mended: u8) -> Snapshot {
    let broken = |rule| rule > mended;
    let primary = if broken(6) { "10.0.9.1/24" } else { "10.0.0.1/24" };
    let change = |node: &mut Node| {
        node.ready = !broken(4);
        node.reachability = if broken(5) { Reachability::Unreachable } else { Reachability::Reachable };
        node.capacity.total = broken(7).then_some(1);
    };
    let mut n1 = node("n1").primary(primary).adjust(change);
    n1 = if broken(1) { n1.label("os", "windows") } else { n1 };
    n1 = if broken(2) { n1 } else { n1.assignable() };
    n1 = if broken(3) { n1.missing("k8s.ovn.org/host-cidrs") } else { n1 };
    let object = if broken(8) { one().address(B).recorded(B, "n1") } else { one() };
    let cluster = snapshot().cloud().ignoring("os=windows").node(n1).egress_ip(object);
    if broken(9) { cluster.request(A, "e", "n1", CloudState::Refused).build() } else { cluster.build() }
}

#[test]
fn n_the_first_rule_that_fails_is_the_reason() {
    let reasons = [
        "N1 Ignored",
        "N2 SelectorMismatch",
        "N3 NotInfrastructureReady",
        "N4 NotReady",
        "N5 Unreachable",
        "N6 NoNetwork",
        "N7 CapacityFull",
        "N8 CoLocated",
        "N9 RefusedByCloud",
        "-",
    ];
    for (mended, expected) in (0..).zip(reasons) {
        assert_eq!(reason(&broken_after(mended), A), expected);
    }
}

/// What is observed of objects as an API server with an old CRD stores them: nothing puts in a default.
fn manifests(objects: &[Value]) -> Snapshot {
    let mut manifests = Manifests::default();
    for object in objects {
        manifests.insert(object.clone()).expect("an object that can be stored");
    }
    manifests.observe(&Options::default()).snapshot
}

fn stored_node(name: &str, labels: &Value, annotations: &Value) -> Value {
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "status": {"conditions": conditions},
    })
}

fn stored_object(selector: Option<Value>) -> Value {
    let mut spec = json!({"egressIPs": [A], "namespaceSelector": {}});
    if let Some(selector) = selector {
        spec["egressNodeSelector"] = selector;
    }
    json!({"apiVersion": "k8s.ovn.org/v1", "kind": "EgressIP", "metadata": {"name": "e"}, "spec": spec})
}

fn annotations(last: u8, host_cidrs: &str) -> Value {
    json!({
        "k8s.ovn.org/node-primary-ifaddr": format!("{{\"ipv4\":\"10.0.0.{last}/24\"}}"),
        "k8s.ovn.org/host-cidrs": host_cidrs,
    })
}

#[test]
fn n2_absent_and_null_mean_the_default_and_an_empty_selector_matches_all() {
    let label = json!({"k8s.ovn.org/egress-assignable": "false"});
    for (selector, plain, labelled) in [
        (None, "unplaced", "placed n1"),
        (Some(Value::Null), "unplaced", "placed n1"),
        (Some(json!({})), "placed n1", "placed n1"),
        (Some(json!({"matchLabels": {}, "matchExpressions": []})), "placed n1", "placed n1"),
    ] {
        for (labels, expected) in [(&json!({}), plain), (&label, labelled)] {
            let node = stored_node("n1", labels, &annotations(1, r#"["10.0.0.1/24"]"#));
            let snapshot = manifests(&[node, stored_object(selector.clone())]);
            assert_eq!(decided(&snapshot, "e"), [expected], "{selector:?} {labels}");
        }
    }
}

#[test]
fn n2_expressions_select_as_kubernetes_does() {
    for (text, expected) in [
        ("pool=a", "placed n1"),
        ("pool in (b,c)", "placed n2"),
        ("pool notin (a,b)", "placed n3"),
        ("!pool", "placed n3"),
        ("pool;zone", "placed n2"),
        ("pool=z", "unplaced"),
    ] {
        let cluster = snapshot().node(worker("n1", 1).label("pool", "a"));
        let cluster = cluster.node(worker("n2", 2).label("pool", "b").label("zone", "")).node(worker("n3", 3));
        assert_eq!(alone(cluster, one().selector(text)), expected, "{text}");
    }
}

#[test]
fn n2_a_key_may_have_a_prefix_of_253_characters() {
    for (length, legal) in [(253, true), (254, false)] {
        let key = format!("{}/pool", "a".repeat(length));
        assert_eq!(Selector::compile([(key.as_str(), "")], []).is_ok(), legal, "{length}");
    }
}

#[test]
fn n2_the_own_selector_replaces_the_default_label() {
    let bare = node("n1").label("pool", "a").primary("10.0.0.1/24");
    assert_eq!(alone(snapshot().node(bare.clone()), one().selector("pool=a").recorded(A, "n1")), "kept n1");
    assert_eq!(alone(snapshot().node(bare), one()), "unplaced");
}

#[test]
fn n2_a_selector_that_does_not_compile_keeps_and_takes_nothing() {
    let cluster = || snapshot().node(worker("n1", 1)).node(worker("n2", 2));
    assert_eq!(alone(cluster(), one().faulty()), "unplaced");
    assert_eq!(alone(cluster(), one().faulty().recorded(A, "n2")), "kept n2");
    let lost = snapshot().node(worker("n1", 1)).node(worker("n2", 2).not_ready());
    assert_eq!(alone(lost, one().faulty().recorded(A, "n2")), "unplaced");
    let faulty = cluster().egress_ip(one().faulty().address(B).recorded(B, "n2")).build();
    assert_eq!(decided(&faulty, "e"), ["unplaced", "kept n2"]);
    assert_eq!(reason(&faulty, A), "N2 SelectorFaulty");
}

#[test]
fn n2_only_a_selector_that_does_not_match_any_more_moves_an_address() {
    let of = |selector, node: NodeBuilder| {
        let cluster = snapshot().node(node).node(worker("n2", 2).label("pool", "b"));
        cluster.egress_ip(one().selector(selector).recorded(A, "n1")).build()
    };
    let n1 = || worker("n1", 1).label("pool", "a");
    let before = of("pool=a", n1());
    let object = [Touched::EgressIp("e".into())];
    assert_eq!(told(&then(&before, &of("pool in (a,b)", n1()), &object), "e"), ["kept n1"]);
    assert_eq!(told(&then(&before, &of("pool=b", n1()), &object), "e"), ["placed n2"]);
    let node = [Touched::Node("n1".into())];
    assert_eq!(told(&then(&before, &of("pool=a", n1().label("zone", "z")), &node), "e"), ["kept n1"]);
    assert_eq!(told(&then(&before, &of("pool=a", worker("n1", 1)), &node), "e"), ["unplaced"]);
    assert_eq!(told(&then(&of("pool=a", worker("n1", 1)), &before, &node), "e"), ["kept n1"]);
}

#[test]
fn n3_only_that_node_is_left_out_and_what_it_owns_stays_its_own() {
    let label = json!({"k8s.ovn.org/egress-assignable": ""});
    let good = stored_node("n2", &label, &annotations(2, r#"["10.0.0.2/24"]"#));
    for (last, host_cidrs, expected) in [
        (1, r#"["10.0.0.1/24"]"#, "placed n1"),
        (1, "garbage", "placed n2"),
        (1, r#"["garbage","10.0.0.1/24"]"#, "placed n2"),
        (1, r#"["garbage","10.0.0.100/24"]"#, "A2 n1"),
        (100, "garbage", "A2 n1"),
    ] {
        let bad = stored_node("n1", &label, &annotations(last, host_cidrs));
        // The second node holds something, so that the first is the better one if it can be used.
        let held = egress_ip("f").address(B).recorded(B, "n2").build();
        let mut snapshot = manifests(&[bad, good.clone(), stored_object(None)]);
        snapshot.egress_ips.insert(held.name.clone(), held);
        assert_eq!(decided(&snapshot, "e"), [expected], "{host_cidrs}");
    }
    let nothing = stored_node("n1", &label, &json!({}));
    assert_eq!(decided(&manifests(&[nothing, good, stored_object(None)]), "e"), ["placed n2"]);
}

#[test]
fn n4_a_cordon_counts_only_where_the_option_is_on() {
    for (on, takes, keeps) in [(false, "placed n1", "kept n1"), (true, "unplaced", "unplaced")] {
        for (object, expected) in [(one(), takes), (one().recorded(A, "n1"), keeps)] {
            let mut cluster = snapshot().node(worker("n1", 1).cordoned()).egress_ip(object).build();
            cluster.options.cordon_excludes = on;
            assert_eq!(decided(&cluster, "e"), [expected]);
            assert_eq!(reason(&cluster, A), if on { "N4 Cordoned" } else { "-" });
        }
    }
}

/// A node in the network of [`SECONDARY`], not by its primary interface.
fn beside(name: &str, last: u8) -> NodeBuilder {
    worker(name, last).secondary(&format!("172.16.0.{last}/24"))
}

/// A node with that network on its primary interface.
fn within(name: &str, last: u8) -> NodeBuilder {
    node(name).assignable().primary(&format!("172.16.0.{last}/24"))
}

fn asks(text: &str) -> EgressIpBuilder {
    egress_ip("e").address(text)
}

#[test]
fn n6_the_address_must_be_in_a_network_of_the_node() {
    let cluster = || snapshot().node(beside("n1", 1));
    for (text, expected) in [(A, "placed n1"), (SECONDARY, "placed n1"), ("192.0.2.1", "unplaced"), (A6, "unplaced")] {
        assert_eq!(alone(cluster(), asks(text)), expected, "{text}");
    }
    assert_eq!(alone(cluster(), asks("192.0.2.1").recorded("192.0.2.1", "n1")), "unplaced");
    assert_eq!(alone(cluster(), asks(SECONDARY).recorded(SECONDARY, "n1")), "kept n1");
}

#[test]
fn n6_the_primary_network_wins_however_specific_a_secondary_one_is() {
    // By its primary network n1 is no better than n2, which holds less.
    let n1 = node("n1").assignable().primary("172.16.0.1/16").secondary("172.16.0.1/24");
    let busy = egress_ip("f").address("172.16.9.9").recorded("172.16.9.9", "n1");
    assert_eq!(alone(snapshot().node(n1).node(within("n2", 2)).egress_ip(busy), asks(SECONDARY)), "placed n2");
}

#[test]
fn n6_a_candidate_on_a_secondary_network_goes_before_any_on_the_primary() {
    let busy = || egress_ip("f").address(B).recorded(B, "n1");
    let cluster = |n1: NodeBuilder| snapshot().node(n1).node(within("n2", 2)).egress_ip(busy());
    assert_eq!(alone(cluster(beside("n1", 1)), asks(SECONDARY)), "placed n1");
    // Only who passes N1 to N5 is a candidate.
    for n1 in [beside("n1", 1).unreachable(), beside("n1", 1).not_probed(), beside("n1", 1).not_ready()] {
        assert_eq!(alone(cluster(n1), asks(SECONDARY)), "placed n2");
    }
    assert_eq!(alone(cluster(beside("n1", 1)), asks(SECONDARY).selector("!pool;zone!=z")), "placed n1");
    assert_eq!(alone(cluster(beside("n1", 1).label("zone", "z")), asks(SECONDARY).selector("zone!=z")), "placed n2");
    // It is a candidate also where it already holds a sibling: then nobody takes the address.
    let sibling = asks(SECONDARY).address(A).recorded(A, "n1");
    assert_eq!(alone(cluster(beside("n1", 1)), sibling), "kept n1, unplaced");
}

#[test]
fn n6_it_is_decided_for_each_address_by_itself_and_unseats_nothing() {
    let cluster = || snapshot().node(beside("n1", 1)).node(within("n2", 2)).node(worker("n3", 3));
    assert_eq!(alone(cluster(), asks(SECONDARY).address(A)), "placed n3, placed n1");
    assert_eq!(alone(cluster(), asks(SECONDARY).recorded(SECONDARY, "n2")), "kept n2");
    let snapshot = cluster().egress_ip(asks(SECONDARY)).build();
    let swapped = Snapshot { nodes: snapshot.nodes.into_values().map(renamed).collect(), ..snapshot };
    assert_eq!(reason(&swapped, SECONDARY), "N6 SecondaryPreferred");
}

/// `n1` and `n2` change names.
fn renamed(mut node: Node) -> (NodeName, Node) {
    node.name = match node.name.as_str() {
        "n1" => "n2".into(),
        "n2" => "n1".into(),
        other => other.into(),
    };
    (node.name.clone(), node)
}

fn cloud(node: NodeBuilder) -> SnapshotBuilder {
    snapshot().cloud().node(node)
}

fn dual(name: &str, last: u8) -> NodeBuilder {
    worker(name, last).primary(&format!("fd00::{last}/64"))
}

#[test]
fn n7_zero_is_a_full_node_and_absent_is_no_limit() {
    for (v4, v6, total, takes) in [
        (None, None, None, [true, true]),
        (Some(0), None, None, [false, true]),
        (None, Some(0), None, [true, false]),
        (None, None, Some(0), [false, false]),
        (Some(1), Some(0), None, [true, false]),
        (Some(1), None, Some(0), [false, false]),
    ] {
        for (text, takes) in [A, A6].into_iter().zip(takes) {
            let capacity = egret_core::Capacity { v4, v6, total };
            let cluster = cloud(dual("n1", 1).adjust(|node| node.capacity = capacity)).egress_ip(asks(text)).build();
            assert_eq!(decided(&cluster, "e"), [if takes { "placed n1" } else { "unplaced" }], "{capacity:?} {text}");
            assert_eq!(reason(&cluster, text), if takes { "-" } else { "N7 CapacityFull" });
        }
    }
}

#[test]
fn n7_a_limit_counts_its_family_or_both() {
    let held = || egress_ip("f").address("fd00::1:1").selector("{}").recorded("fd00::1:1", "n1");
    for (node, expected) in [
        (dual("n1", 1).capacity(1), "unplaced"),
        (dual("n1", 1).capacity(2), "placed n1"),
        (dual("n1", 1).capacities(Some(1), Some(1)), "placed n1"),
    ] {
        assert_eq!(alone(cloud(node).egress_ip(held()), one()), expected);
    }
    let two =
        cloud(worker("n1", 1).capacity(1)).egress_ip(egress_ip("a").address(A)).egress_ip(egress_ip("b").address(B));
    let two = two.build();
    assert_eq!([decided(&two, "a"), decided(&two, "b")].concat(), ["placed n1", "unplaced"]);
}

#[test]
fn n7_a_node_whose_capacity_shrank_keeps_what_it_has_and_the_audit_says_so() {
    for capacity in [1, 0] {
        let cluster = cloud(worker("n1", 1).capacity(capacity));
        let holds = |name: &str, text| egress_ip(name).address(text).recorded(text, "n1");
        let cluster = cluster.egress_ip(holds("a", A)).egress_ip(holds("b", B)).egress_ip(egress_ip("c").address(C));
        let cluster = cluster.build();
        assert_eq!(["a", "b", "c"].map(|name| decided(&cluster, name)).concat(), ["kept n1", "kept n1", "unplaced"]);
        let findings = audit(&cluster, &State::recorded(&cluster));
        assert_eq!(findings.iter().map(|finding| finding.check).collect::<Vec<_>>(), [Check::Capacity]);
        assert_eq!(findings[0].subject, "node/n1");
    }
}

#[test]
fn n7_what_the_cloud_was_asked_for_or_holds_for_others_counts() {
    for state in [CloudState::Requested, CloudState::Confirmed] {
        let cluster = cloud(worker("n1", 1).capacity(1)).request(B, "f", "n1", state);
        let cluster = cluster.egress_ip(egress_ip("f").address(B).selector("{}"));
        assert_eq!(alone(cluster, one()), "unplaced", "{state:?}");
    }
    for (capacity, foreign, takes) in [(1, B, "unplaced"), (2, B, "placed n1"), (1, "fd00::9", "unplaced")] {
        let mut cluster = cloud(dual("n1", 1).capacity(capacity)).request(foreign, "f", "n1", CloudState::Confirmed);
        cluster = cluster.egress_ip(one());
        let mut cluster = cluster.build();
        cluster.cloud.get_mut(&address(foreign)).expect("a request").owner = None;
        assert_eq!(decided(&cluster, "e"), [takes]);
        let before = Snapshot { cloud: [].into(), ..cluster.clone() };
        assert_eq!(told(&then(&before, &cluster, &[Touched::Cloud(address(foreign))]), "e"), [takes]);
        assert_eq!(told(&then(&cluster, &before, &[Touched::Cloud(address(foreign))]), "e"), ["placed n1"]);
    }
}

#[test]
fn n7_is_judged_again_when_the_limit_changes() {
    let of = |capacity| cloud(worker("n1", 1).capacity(capacity)).egress_ip(one()).build();
    let touched = [Touched::Node("n1".into())];
    assert_eq!(told(&then(&of(0), &of(1), &touched), "e"), ["placed n1"]);
    assert_eq!(told(&then(&of(1), &of(0), &touched), "e"), ["unplaced"]);
}

#[test]
fn n8_a_node_holds_one_address_of_an_object_and_any_number_of_different_ones() {
    let cluster = || snapshot().node(worker("n1", 1));
    assert_eq!(alone(cluster(), one().address(B)), "placed n1, unplaced");
    assert_eq!(alone(cluster(), one().address(B).recorded(B, "n1")), "unplaced, kept n1");
    let co_located = cluster().egress_ip(one().address(B).recorded(B, "n1")).build();
    assert_eq!(reason(&co_located, A), "N8 CoLocated");
    let two = cluster().egress_ip(egress_ip("f").address(B)).egress_ip(one()).build();
    assert_eq!([decided(&two, "e"), decided(&two, "f")].concat(), ["placed n1", "placed n1"]);
}

#[test]
fn n9_only_the_refused_pair_is_out_and_only_on_a_cloud() {
    let cluster = |start: SnapshotBuilder| {
        let cluster = start.node(worker("n1", 1)).node(worker("n2", 2)).request(A, "e", "n1", CloudState::Refused);
        let busy = egress_ip("f").address(C).recorded(C, "n2");
        cluster.egress_ip(busy)
    };
    assert_eq!(alone(cluster(snapshot().cloud()), one()), "placed n2");
    assert_eq!(alone(cluster(snapshot().cloud()), one().recorded(A, "n1")), "placed n2");
    assert_eq!(alone(cluster(snapshot().cloud()), asks(B)), "placed n1");
    assert_eq!(alone(cluster(snapshot()), one()), "placed n1");
    let refused = cluster(snapshot().cloud()).egress_ip(one()).build();
    assert_eq!(reason(&refused, A), "N9 RefusedByCloud");
    let free = Snapshot { cloud: [].into(), ..refused.clone() };
    let touched = [Touched::Cloud(address(A))];
    assert_eq!(told(&then(&free, &refused, &touched), "e"), ["placed n2"]);
    assert_eq!(told(&then(&refused, &free, &touched), "e"), ["placed n1"]);
    // Without an owner that we know it is no refusal of ours (A4).
    let mut unowned = refused;
    unowned.cloud.get_mut(&address(A)).expect("a request").owner = None;
    assert_eq!(decided(&unowned, "e"), ["A4"]);
    assert_eq!(reason(&unowned, A), "-");
}

#[test]
fn n_a_joining_or_leaving_node_is_noticed() {
    let without = snapshot().egress_ip(one().selector("{}")).build();
    let bare = || node("n1").primary("10.0.0.1/24");
    let with = snapshot().node(bare()).egress_ip(one().selector("{}")).build();
    let touched = [Touched::Node("n1".into())];
    assert_eq!(told(&then(&without, &with, &touched), "e"), ["placed n1"]);
    assert_eq!(told(&then(&with, &without, &touched), "e"), ["unplaced"]);
    let mut placer = Placer::new(&with);
    for (snapshot, expected) in [(&with, "placed n1"), (&without, "unplaced"), (&with, "placed n1")] {
        placer.update(snapshot, &touched);
        assert_eq!(told(placer.decide(), "e"), [expected]);
    }
    assert_eq!(decided(&settled(with), "e"), ["kept n1"]);
}
