//! Where an address goes and which mark an object has does not depend on the pods' network: the default one, or a
//! user-defined network of any topology.

use std::collections::BTreeMap;

use egret_testkit::scenario::{NodeSpec, Settings};
use egret_testkit::world::{Items, Memory, World};
use serde_json::{Value, json};

const EGRESS_ASSIGNABLE: &str = "k8s.ovn.org/egress-assignable";

/// What a node says of the networks of pods; `{}` stands for the number of the node.
type Networks = &'static [(&'static str, &'static str)];

const DEFAULT_ONLY: Networks = &[("k8s.ovn.org/node-subnets", r#"{"default":["10.128.{}.0/24"]}"#)];
const LAYER_3: Networks = &[
    ("k8s.ovn.org/node-subnets", r#"{"default":["10.128.{}.0/24"],"tenant":["10.200.{}.0/24"]}"#),
    ("k8s.ovn.org/network-ids", r#"{"default":"0","tenant":"1"}"#),
];
const LAYER_2: Networks = &[
    ("k8s.ovn.org/node-subnets", r#"{"default":["10.128.{}.0/24"]}"#),
    ("k8s.ovn.org/network-ids", r#"{"default":"0","flat":"2"}"#),
    ("k8s.ovn.org/layer2-topology-version", "2.0"),
    ("k8s.ovn.org/udn-layer2-node-gateway-router-lrp-tunnel-ids", r#"{"flat":"{}"}"#),
];

fn node(number: u8, networks: Networks) -> NodeSpec {
    let own = [
        ("k8s.ovn.org/node-primary-ifaddr", r#"{"ipv4":"10.0.0.{}/24"}"#),
        ("k8s.ovn.org/host-cidrs", r#"["10.0.0.{}/24"]"#),
    ];
    let annotation = |(key, text): &(&str, &str)| ((*key).to_owned(), text.replace("{}", &number.to_string()));
    NodeSpec {
        name: format!("n{number}"),
        labels: [(EGRESS_ASSIGNABLE.to_owned(), String::new())].into(),
        annotations: own.iter().chain(networks).map(annotation).collect(),
        ready: true,
        reachable: true,
        no_host_subnet: false,
    }
}

fn egress_ip(number: u8, namespaces: &Value) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": { "name": format!("e{number}") },
        "spec": {
            "egressIPs": [format!("10.0.0.{}", 100 + number), format!("10.0.0.{}", 200 + number)],
            "namespaceSelector": namespaces,
        },
    })
}

/// The statuses and marks that five objects get on three nodes.
fn outcome(networks: Networks, namespaces: &Value) -> (BTreeMap<String, Items>, BTreeMap<String, String>) {
    let mut stage = Memory::new();
    let nodes: Vec<NodeSpec> = (1..=3).map(|number| node(number, networks)).collect();
    let mut world = World::open(&mut stage, &Settings::default(), nodes.iter()).expect("a world");
    for node in &nodes {
        world.add_node(node).expect("a node");
    }
    for number in 1..=5 {
        world.insert(egress_ip(number, namespaces)).expect("an object");
    }
    world.begin().expect("a history");
    world.start().expect("a controller");
    world.settle(true).expect("rest");
    (world.state().statuses(), world.state().marks())
}

#[test]
fn placement_and_marks_do_not_depend_on_the_pods_network() {
    let (statuses, marks) = outcome(DEFAULT_ONLY, &json!({}));
    assert!(statuses.len() == 5 && statuses.values().all(|items| items.len() == 2), "{statuses:?}");
    assert_eq!(marks.len(), 5);
    let primary = json!({ "matchExpressions": [
        { "key": "k8s.ovn.org/primary-user-defined-network", "operator": "Exists" },
    ] });
    for networks in [DEFAULT_ONLY, LAYER_3, LAYER_2] {
        assert_eq!(outcome(networks, &primary), (statuses.clone(), marks.clone()), "{networks:?}");
    }
}
