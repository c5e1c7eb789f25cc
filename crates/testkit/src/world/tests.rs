//! The world behaves as `scenarios/README.md` says, where no scenario would notice that it does not.

use egret_core::Timestamp;

use super::*;

fn world() -> World {
    World::new(&Settings::default()).expect("a world")
}

fn on(platform: PlatformName, cloud_ack: CloudAck) -> World {
    World::new(&Settings { platform, cloud_ack, ..Settings::default() }).expect("a world")
}

fn spec(name: &str, last: u8) -> NodeSpec {
    let annotations = [
        ("k8s.ovn.org/node-primary-ifaddr", format!("{{\"ipv4\":\"10.0.0.{last}/24\"}}")),
        (HOST_CIDRS, format!("[\"10.0.0.{last}/24\"]")),
        ("cloud.network.openshift.io/egress-ipconfig", "[{\"ifaddr\":{\"ipv4\":\"10.0.0.0/24\"}}]".to_owned()),
    ];
    NodeSpec {
        name: name.to_owned(),
        labels: [(EGRESS_ASSIGNABLE.to_owned(), String::new())].into(),
        annotations: annotations.map(|(key, value)| (key.to_owned(), value)).into(),
        ready: true,
        reachable: true,
        no_host_subnet: false,
    }
}

fn egress_ip(name: &str, address: &str) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": { "name": name },
        "spec": { "egressIPs": [address], "namespaceSelector": {} },
    })
}

fn apply(world: &mut World, object: Value) {
    world.change(&Op::Apply { object }).expect("an object that can be stored");
}

fn annotate(world: &mut World, node: &str, host_cidrs: &str) {
    let annotations = [(HOST_CIDRS.to_owned(), Some(host_cidrs.to_owned()))].into();
    world.change(&Op::SetNodeAnnotation { node: node.to_owned(), annotations }).expect("a node");
}

fn items(world: &World, name: &str) -> Vec<String> {
    world.statuses()[name].iter().map(|(address, node)| format!("{address}@{node}")).collect()
}

#[test]
fn each_object_is_a_second_younger_and_one_applied_again_keeps_its_age() {
    let mut world = world();
    apply(&mut world, egress_ip("b", "10.0.0.1"));
    apply(&mut world, egress_ip("a", "10.0.0.2"));
    apply(&mut world, egress_ip("b", "10.0.0.3"));
    let snapshot = world.observe();
    let [a, b] = ["a", "b"].map(|name| snapshot.egress_ips[&name.into()].created);
    assert_eq!(a, Timestamp(b.0 + 1));
}

#[test]
fn the_default_selector_is_filled_in_only_where_the_settings_say_so() {
    for (default, filled) in [(None, true), (Some(true), true), (Some(false), false)] {
        let settings = Settings { apply_crd_default: default, ..Settings::default() };
        let mut world = World::new(&settings).expect("a world");
        apply(&mut world, egress_ip("a", "10.0.0.1"));
        let stored = world.manifests.get(&ObjectKey::cluster(Kind::EgressIp, "a")).expect("the object");
        assert_eq!(!stored["spec"]["egressNodeSelector"].is_null(), filled, "{default:?}");
    }
}

#[test]
fn without_a_round_nobody_is_known_and_a_restart_forgets() {
    let mut world = world();
    world.add_node(&spec("n1", 11)).expect("a node");
    apply(&mut world, egress_ip("a", "10.0.0.100"));
    world.settle(false).expect("rest");
    assert!(items(&world, "a").is_empty());
    world.settle(true).expect("rest");
    assert_eq!(items(&world, "a"), ["10.0.0.100@n1"]);
    world.forget();
    assert_eq!(world.observe().nodes[&"n1".into()].reachability, Reachability::NotProbed);
}

#[test]
fn an_address_that_left_is_remembered_until_its_node_reports_again() {
    let mut world = world();
    world.add_node(&spec("n1", 11)).expect("a node");
    apply(&mut world, egress_ip("a", "10.0.0.100"));
    world.settle(true).expect("rest");
    annotate(&mut world, "n1", r#"["10.0.0.11/24","10.0.0.100/32"]"#);
    world.settle(true).expect("rest");
    assert_eq!(items(&world, "a"), ["10.0.0.100@n1"]);
    let delete = Op::Delete { kind: "EgressIP".to_owned(), name: "a".to_owned(), namespace: None };
    world.change(&delete).expect("the object");
    world.settle(true).expect("rest");
    assert_eq!(world.observe().departed.len(), 1);
    annotate(&mut world, "n1", r#"["10.0.0.11/24"]"#);
    assert!(world.observe().departed.is_empty());
}

#[test]
fn mass_silence_needs_five_that_answered_and_more_than_55_percent_of_them() {
    for (nodes, silent, mass) in [(4, 4, false), (5, 2, false), (5, 3, true), (20, 11, false), (20, 12, true)] {
        let mut world = world();
        for i in 0..nodes {
            world.add_node(&spec(&format!("n{i}"), 11 + i)).expect("a node");
        }
        apply(&mut world, egress_ip("a", "10.0.0.100"));
        world.settle(true).expect("rest");
        for i in 0..silent {
            world.change(&Op::SetReachable { node: format!("n{i}"), reachable: false }).expect("a node");
        }
        assert_eq!(world.settle(true) == Err(Loop::MassSilence(MassSilence)), mass, "{silent} of {nodes}");
    }
}

#[test]
fn a_cloud_that_confirms_at_once_is_asked_and_told_to_stop() {
    let mut world = on(PlatformName::Aws, CloudAck::Auto);
    world.add_node(&spec("n1", 11)).expect("a node");
    apply(&mut world, egress_ip("a", "10.0.0.100"));
    world.settle(true).expect("rest");
    let request = CloudConfig { node: "n1".to_owned(), owner: "a".to_owned() };
    assert_eq!(world.cloud_requests(), [("10.0.0.100".to_owned(), request)].into());
    world.change(&Op::SetReady { node: "n1".to_owned(), ready: false }).expect("a node");
    world.settle(true).expect("rest");
    assert!(world.cloud_requests().is_empty());
}

#[test]
fn what_waits_for_the_cloud_writes_no_status_of_its_own() {
    let mut world = on(PlatformName::Aws, CloudAck::Manual);
    world.add_node(&spec("n1", 11)).expect("a node");
    apply(&mut world, egress_ip("a", "10.0.0.100"));
    world.settle(true).expect("rest");
    assert!(items(&world, "a").is_empty());
    assert!(world.cloud_requests().is_empty());
}
