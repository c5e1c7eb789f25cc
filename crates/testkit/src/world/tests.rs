//! What a world does beyond what scenarios show, and what it does not.

use egret_api::annotation::host_cidrs;
use egret_api::{Kind, ObjectKey};
use serde_json::{Value, json};

use super::*;
use crate::scenario::Op;

const EGRESS_ASSIGNABLE: &str = "k8s.ovn.org/egress-assignable";

fn spec(name: &str, last: u8) -> NodeSpec {
    let annotations = [
        ("k8s.ovn.org/node-primary-ifaddr", format!("{{\"ipv4\":\"10.0.0.{last}/24\"}}")),
        (host_cidrs::KEY, format!("[\"10.0.0.{last}/24\"]")),
        ("k8s.ovn.org/node-subnets", format!("{{\"default\":\"10.128.{last}.0/24\"}}")),
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

fn world(stage: &mut Memory, platform: PlatformName, cloud_ack: CloudAck) -> World<'_> {
    let settings = Settings { platform, cloud_ack, ..Settings::default() };
    let mut world = World::open(stage, &settings, std::iter::empty()).expect("a world");
    world.add_node(&spec("n1", 11)).expect("a node");
    world.insert(egress_ip("a", "10.0.0.100")).expect("an object");
    world.begin().expect("a history");
    world.start().expect("a controller");
    world
}

fn items_of(world: &World<'_>) -> Vec<String> {
    world.state().statuses()["a"].iter().map(|(address, node)| format!("{address}@{node}")).collect()
}

#[test]
fn no_probe_is_answered_without_a_round() {
    let mut stage = Memory::new();
    let mut world = world(&mut stage, PlatformName::BareMetal, CloudAck::Auto);
    world.settle(false).expect("rest");
    assert!(items_of(&world).is_empty());
    world.settle(true).expect("rest");
    assert_eq!(items_of(&world), ["10.0.0.100@n1"]);
}

#[test]
fn a_cloud_that_confirms_is_asked_and_one_that_waits_gives_no_status() {
    for (cloud_ack, expected) in [(CloudAck::Auto, vec!["10.0.0.100@n1"]), (CloudAck::Manual, vec![])] {
        let mut stage = Memory::new();
        let mut world = world(&mut stage, PlatformName::Aws, cloud_ack);
        world.settle(true).expect("rest");
        assert_eq!(items_of(&world), expected);
        let confirmed = cloud_ack == CloudAck::Auto;
        let config = CloudConfig { node: "n1".to_owned(), owner: "a".to_owned(), confirmed };
        assert_eq!(world.state().cloud_requests(), [("10.0.0.100".to_owned(), config)].into());
    }
}

#[test]
fn history_says_who_wrote_what() {
    let mut stage = Memory::new();
    let mut world = world(&mut stage, PlatformName::BareMetal, CloudAck::Auto);
    world.settle(true).expect("rest");
    let history = world.take_history();
    let key = ObjectKey::cluster(Kind::EgressIp, "a");
    assert!(history.by_controller().any(|version| version.key == key));
    assert!(history.attempts.contains(&key));
    world.change(&Op::SetReady { node: "n1".to_owned(), ready: true }).expect("a node");
    world.settle(true).expect("rest");
    let history = world.take_history();
    assert_eq!((history.versions.len(), history.attempts.len()), (0, 0));
}
