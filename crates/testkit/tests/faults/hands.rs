//! People edit by hand what is the controller's to write.

use egret_api::{Kind, ObjectKey};
use egret_testkit::controller::{Controller, config};
use egret_testkit::objects::{egress_service, endpoint_slice, ingress, service};
use egret_testkit::world::State;
use serde_json::{Value, json};

use crate::support::{CONTROLLER, Cluster, address, egress_ip_key, egress_ip_of, everyone_is_placed, host_of};

const OBJECTS: usize = 4;
const MARK: &str = "k8s.ovn.org/egressip-mark";

async fn at_rest() -> (Cluster, Controller) {
    let cluster = Cluster::of(4).await;
    // In no object's pool.
    let label = json!({"metadata": {"labels": {"k8s.ovn.org/egress-assignable": null}}});
    cluster.edit(&ObjectKey::cluster(Kind::Node, "n4"), label).await;
    for number in 0..OBJECTS {
        cluster.create(egress_ip_of(number)).await;
    }
    let controller = cluster.controller(config("one"));
    cluster.until("every address to have a node", everyone_is_placed).await;
    (cluster, controller)
}

/// Whether every object has exactly its addresses, on different nodes of the pool, and nobody else has them.
fn healthy(state: &State) -> bool {
    (0..OBJECTS).all(|number| {
        let items = &state.statuses()[&format!("e{number}")];
        let addresses: Vec<_> = items.iter().map(|(address, _)| address.clone()).collect();
        let nodes: Vec<_> = items.iter().map(|(_, node)| node.as_str()).collect();
        addresses == [address(2 * number), address(2 * number + 1)]
            && nodes[0] != nodes[1]
            && nodes.iter().all(|node| ["n1", "n2", "n3"].contains(node))
    }) && everyone_is_placed(state)
}

fn item(address: &str, node: &str) -> Value {
    json!({"egressIP": address, "node": node})
}

#[tokio::test]
async fn a_status_that_is_edited_by_hand_is_repaired_and_no_repair_makes_a_second_owner() {
    let (cluster, controller) = at_rest().await;
    assert!(healthy(&cluster.state()));
    let (mine, too, theirs) = (address(0), address(1), address(2));
    let edits = [
        ("a node that does not exist", json!([item(&mine, "nowhere"), item(&too, "n1")])),
        ("a node outside of the pool", json!([item(&mine, "n4"), item(&too, "n1")])),
        ("an address of another object", json!([item(&mine, "n1"), item(&theirs, "n2")])),
        ("all addresses of another object", json!([item(&theirs, "n1"), item(&address(3), "n2")])),
        ("an address twice", json!([item(&mine, "n1"), item(&mine, "n2"), item(&too, "n3")])),
        ("two addresses on one node", json!([item(&mine, "n1"), item(&too, "n1")])),
        ("what nobody asked for", json!([item(&mine, "n1"), item("172.18.99.99", "n2"), item(&too, "n3")])),
        ("garbage", json!([item("garbage", ""), item(&mine, "n1"), item(&too, "n2")])),
        ("nothing", json!([])),
    ];
    for (what, items) in edits {
        let others =
            |state: &State| (1..OBJECTS).map(|n| state.statuses()[&format!("e{n}")].clone()).collect::<Vec<_>>();
        let before = others(&cluster.state());
        cluster.edit(&egress_ip_key("e0"), json!({"status": {"items": items}})).await;
        cluster.until(&format!("{what} to be repaired"), healthy).await;
        assert_eq!(others(&cluster.state()), before, "{what}: whom it does not concern stays");
    }
    // The status as a whole, conditions included.
    cluster.edit(&egress_ip_key("e0"), json!({"status": null})).await;
    cluster.until("no status to be repaired", healthy).await;
    // A valid node is a valid node, whoever chose it.
    let now = cluster.state();
    let hosts = [&mine, &too].map(|address| host_of(now.get(&egress_ip_key("e0")).unwrap(), address).unwrap());
    let free = ["n1", "n2", "n3"].into_iter().find(|node| !hosts.contains(&(*node).to_owned())).unwrap();
    cluster.edit(&egress_ip_key("e0"), json!({"status": {"items": [item(&mine, free), item(&too, &hosts[1])]}})).await;
    cluster.edit(&egress_ip_key("e0"), json!({"status": {"conditions": []}})).await;
    cluster.until("the condition to be repaired", healthy).await;
    assert_eq!(host_of(cluster.state().get(&egress_ip_key("e0")).unwrap(), &mine).as_deref(), Some(free));
    controller.end().await;
    cluster.history().assert_one_owner();
}

#[tokio::test]
async fn a_mark_that_is_edited_by_hand_is_repaired_and_other_annotations_stay() {
    let (cluster, controller) = at_rest().await;
    let marks = cluster.state().marks();
    let good = |state: &State| {
        let marks = state.marks();
        let numbers: std::collections::BTreeSet<u32> = marks.values().filter_map(|mark| mark.parse().ok()).collect();
        numbers.len() == OBJECTS && numbers.iter().all(|number| (50_000..55_000).contains(number))
    };
    assert!(good(&cluster.state()));
    // The youngest, so that the mark of another is not its own by age.
    let name = format!("e{}", OBJECTS - 1);
    let key = egress_ip_key(&name);
    for mark in [json!(null), json!("garbage"), json!("70000"), json!(marks["e0"])] {
        let annotations = json!({"metadata": {"annotations": {MARK: mark, "example.com/mine": "x"}}});
        cluster.edit(&key, annotations).await;
        cluster.until(&format!("the mark to be repaired after {mark}"), good).await;
    }
    cluster.edit(&key, json!({"metadata": {"annotations": null}})).await;
    cluster.until("the mark to be given again", good).await;
    cluster.edit(&key, json!({"metadata": {"annotations": {MARK: "54321", "example.com/mine": "x"}}})).await;
    cluster.edit(&key, json!({"metadata": {"labels": {"a": "b"}}})).await;
    let last = crate::support::key(&cluster.create(egress_ip_of(OBJECTS)).await).unwrap();
    cluster.until("another object to be served", |state| state.get(&last).is_some() && everyone_is_placed(state)).await;
    let state = cluster.state();
    assert_eq!(state.marks()[&name], "54321", "a valid one stays");
    assert_eq!(state.annotations(&name).unwrap()["example.com/mine"], "x");
    for number in 0..OBJECTS - 1 {
        assert_eq!(state.marks()[&format!("e{number}")], marks[&format!("e{number}")], "the others keep theirs");
    }
    controller.end().await;
    let writes = cluster.writes_of(CONTROLLER);
    let written = writes.iter().filter(|write| write.name == "e0").count();
    assert_eq!(written, 1, "nor is anything else of theirs written");
}

#[tokio::test]
async fn a_label_or_a_host_that_is_edited_by_hand_is_repaired() {
    const LABEL: &str = "egress-service.k8s.ovn.org/default-s";
    let cluster = Cluster::of(3).await;
    let mut balanced = service("default", "s");
    balanced["status"] = ingress();
    cluster.create(balanced).await;
    cluster.create(endpoint_slice("default", "s", "n1", "10.244.1.7")).await;
    let object = crate::support::key(&cluster.create(egress_service("default", "s")).await).unwrap();
    let controller = cluster.controller(config("one"));
    let labelled = |state: &State| -> Vec<String> {
        let nodes = ["n1", "n2", "n3"].into_iter();
        nodes.filter(|node| state.label_keys(node).unwrap().contains(LABEL)).map(str::to_owned).collect()
    };
    let settled = |state: &State| {
        let host = state.hosts().get("default/s").cloned().unwrap_or_default();
        !host.is_empty() && labelled(state) == [host]
    };
    cluster.until("a host and its label", settled).await;
    let host = cluster.state().hosts()["default/s"].clone();
    let other = if host == "n1" { "n2" } else { "n1" };

    let node = |name: &str| ObjectKey::cluster(Kind::Node, name);
    cluster.edit(&node(&host), json!({"metadata": {"labels": {LABEL: null, "mine": "x"}}})).await;
    cluster.until("the label to come back", settled).await;
    cluster.edit(&node(other), json!({"metadata": {"labels": {LABEL: "", "mine": "x"}}})).await;
    cluster.until("the label to go where it does not belong", settled).await;
    let stray = "egress-service.k8s.ovn.org/default-nobody";
    cluster.edit(&node(other), json!({"metadata": {"labels": {stray: ""}}})).await;
    cluster.until("nobody's label to go", |state| !state.label_keys(other).unwrap().contains(stray)).await;
    assert_eq!(cluster.state().hosts()["default/s"], host, "the host stays through all of it");

    for wrong in ["nowhere", ""] {
        cluster.edit_status(&object, json!({"status": {"host": wrong}})).await;
        cluster.until("the host to be repaired", settled).await;
    }
    cluster.edit_status(&object, json!({"status": null})).await;
    cluster.until("the host to be repaired", settled).await;
    let now = cluster.state().hosts()["default/s"].clone();
    let another = if now == "n1" { "n2" } else { "n1" };
    cluster.edit_status(&object, json!({"status": {"host": another}})).await;
    cluster.until("the label to follow a valid host", |state| labelled(state) == [another]).await;
    assert_eq!(cluster.state().hosts()["default/s"], another);
    let state = cluster.state();
    assert!(state.label_keys(&host).unwrap().contains("mine") && state.label_keys(other).unwrap().contains("mine"));
    controller.end().await;
    assert_never_two_labels(&cluster, LABEL);
}

/// No version that the controller stored gives the label to a second node.
fn assert_never_two_labels(cluster: &Cluster, label: &str) {
    let mut holders = std::collections::BTreeSet::new();
    for version in cluster.history().0.iter().filter(|version| version.key.kind == Kind::Node) {
        let has = version.object.as_ref().is_some_and(|node| node["metadata"]["labels"].get(label).is_some());
        let gains = has && !holders.contains(&version.key.name);
        if gains && version.writer == egret_testkit::world::Writer::Controller {
            assert!(holders.is_empty(), "{} gets it while {holders:?} have it", version.key);
        }
        if has {
            holders.insert(version.key.name.clone())
        } else {
            holders.remove(&version.key.name)
        };
    }
}
