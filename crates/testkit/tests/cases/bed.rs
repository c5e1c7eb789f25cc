//! A small cluster to lie in.

use std::collections::BTreeMap;

use egret_api::annotation::{host_cidrs, node_primary_ifaddr, node_subnets};
use egret_api::{Kind, ObjectKey};
use egret_testkit::objects::egress_ip;
use egret_testkit::scenario::{NodeSpec, Op, PlatformName, Settings};
use egret_testkit::world::{History, Memory, World, items};
use serde_json::{Value, json};

pub(crate) const ASSIGNABLE: &str = "k8s.ovn.org/egress-assignable";

/// A ready node that answers, without labels, with the address `10.0.0.<last>/24`.
pub(crate) fn bare(name: &str, last: u8) -> NodeSpec {
    let annotations = [
        (node_primary_ifaddr::KEY, format!(r#"{{"ipv4":"10.0.0.{last}/24"}}"#)),
        (host_cidrs::KEY, format!(r#"["10.0.0.{last}/24"]"#)),
        (node_subnets::KEY, format!(r#"{{"default":"10.128.{last}.0/24"}}"#)),
    ];
    NodeSpec {
        name: name.to_owned(),
        labels: BTreeMap::new(),
        annotations: annotations.map(|(key, value)| (key.to_owned(), value)).into(),
        ready: true,
        reachable: true,
        no_host_subnet: false,
    }
}

/// The same with the label that the default selector asks for.
pub(crate) fn worker(name: &str, last: u8) -> NodeSpec {
    with_label(bare(name, last), ASSIGNABLE, "")
}

/// `n1` to `n<count>`.
pub(crate) fn workers(count: u8) -> Vec<NodeSpec> {
    (1..=count).map(|number| worker(&format!("n{number}"), number)).collect()
}

pub(crate) fn with_label(mut node: NodeSpec, key: &str, value: &str) -> NodeSpec {
    node.labels.insert(key.to_owned(), value.to_owned());
    node
}

/// A worker for which the cloud has such a capacity.
pub(crate) fn in_cloud(name: &str, last: u8, capacity: &str) -> NodeSpec {
    let mut node = worker(name, last);
    let config = format!(r#"[{{"interface":"eth0","ifaddr":{{"ipv4":"10.0.0.0/24"}},"capacity":{capacity}}}]"#);
    node.annotations.insert("cloud.network.openshift.io/egress-ipconfig".to_owned(), config);
    node
}

pub(crate) fn on_cloud() -> Settings {
    Settings { platform: PlatformName::Aws, ..Settings::default() }
}

/// An EgressIP with `egressNodeSelector: {matchLabels: {pool: ...}}`.
pub(crate) fn in_pool(name: &str, addresses: &[&str], pool: &str) -> Value {
    let mut object = egress_ip(name, addresses);
    object["spec"]["egressNodeSelector"] = json!({"matchLabels": {"pool": pool}});
    object
}

/// A cluster with a controller at rest.
pub(crate) fn at_rest<'a>(
    stage: &'a mut Memory,
    settings: &Settings,
    nodes: &[NodeSpec],
    objects: impl IntoIterator<Item = Value>,
) -> World<'a> {
    let mut world = World::open(stage, settings, nodes.iter()).unwrap();
    for node in nodes {
        world.add_node(node).unwrap();
    }
    for object in objects {
        world.insert(object).unwrap();
    }
    world.begin().unwrap();
    world.start().unwrap();
    world.settle(true).unwrap();
    world
}

/// Changes something and lets it come to its end. Returns what happened.
pub(crate) fn after(world: &mut World<'_>, ops: impl IntoIterator<Item = Op>) -> History {
    world.take_history();
    for op in ops {
        world.change(&op).unwrap();
    }
    world.settle(true).unwrap();
    world.take_history()
}

/// A new controller on what is stored. Returns what happened.
pub(crate) fn restarted(world: &mut World<'_>, meanwhile: impl IntoIterator<Item = Op>) -> History {
    world.stop().unwrap();
    for op in meanwhile {
        world.change(&op).unwrap();
    }
    world.begin().unwrap();
    world.start().unwrap();
    world.settle(true).unwrap();
    world.take_history()
}

pub(crate) fn label(node: &str, key: &str, value: Option<&str>) -> Op {
    Op::SetNodeLabel { node: node.to_owned(), labels: [(key.to_owned(), value.map(str::to_owned))].into() }
}

pub(crate) fn annotate(node: &str, key: &str, value: Option<&str>) -> Op {
    Op::SetNodeAnnotation { node: node.to_owned(), annotations: [(key.to_owned(), value.map(str::to_owned))].into() }
}

pub(crate) fn reachable(node: &str, reachable: bool) -> Op {
    Op::SetReachable { node: node.to_owned(), reachable }
}

pub(crate) fn ready(node: &str, ready: bool) -> Op {
    Op::SetReady { node: node.to_owned(), ready }
}

/// The node of each address of an object.
pub(crate) fn places(world: &World<'_>, name: &str) -> BTreeMap<String, String> {
    world.state().statuses()[name].iter().cloned().collect()
}

/// The node of the only address of an object.
pub(crate) fn place(world: &World<'_>, name: &str) -> String {
    let places = places(world, name);
    assert!(places.len() <= 1, "{places:?}");
    places.into_values().next().unwrap_or_default()
}

/// The reason of the condition; empty if it is True.
pub(crate) fn reason(world: &World<'_>, name: &str) -> String {
    let object = world.state().get(&ObjectKey::cluster(Kind::EgressIp, name)).unwrap();
    let condition = &object["status"]["conditions"][0];
    assert_eq!(condition["type"], "Assigned");
    if condition["status"] == "True" { String::new() } else { condition["reason"].as_str().unwrap().to_owned() }
}

/// The nodes that an address of an object had in this history, one after the other, the time without one as "".
pub(crate) fn path(history: &History, name: &str, address: &str) -> Vec<String> {
    let versions = history.versions.iter().filter(|version| version.key.name == name);
    let host = |object: &Value| items(object).into_iter().find(|(item, _)| item == address).map(|(_, node)| node);
    let mut path: Vec<String> =
        versions.filter_map(|version| Some(host(version.object.as_ref()?).unwrap_or_default())).collect();
    path.dedup();
    path
}

/// Whether the controller wrote anything.
pub(crate) fn wrote(history: &History) -> bool {
    !history.attempts.is_empty()
}
