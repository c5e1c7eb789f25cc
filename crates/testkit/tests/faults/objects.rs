//! Objects and nodes that the API server takes and that make no sense.

use egret_api::{Kind, ObjectKey};
use egret_testkit::controller::config;
use egret_testkit::objects::egress_ip;
use serde_json::{Value, json};

use crate::support::{Cluster, address, egress_ip_key, egress_ip_of, everyone_is_placed, host_of, placed};

fn condition(object: &Value) -> (&str, &str) {
    let condition = &object["status"]["conditions"][0];
    (condition["status"].as_str().unwrap_or_default(), condition["reason"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn an_object_that_only_the_schema_takes_says_what_is_wrong_and_concerns_nobody_else() {
    let cluster = Cluster::of(3).await;
    let controller = cluster.controller(config("one"));
    for number in 0..10 {
        cluster.create(egress_ip_of(number)).await;
    }
    cluster.until("every address to have a node", |state| placed(state) == 20 && everyone_is_placed(state)).await;

    let mut faulty = egress_ip("faulty", &[&address(100)]);
    faulty["spec"]["egressNodeSelector"] = json!({"matchExpressions": [{"key": "pool", "operator": "In"}]});
    let faulty = cluster.create(faulty).await;
    let garbage = cluster.create(egress_ip("garbage", &["10.0.0.300", "172.18.9.0/24", &address(101)])).await;
    let told = |name: &'static str, expected: (&'static str, &'static str)| {
        move |state: &egret_testkit::world::State| {
            state.get(&egress_ip_key(name)).is_some_and(|object| condition(object) == expected)
        }
    };
    cluster.until("a condition", told("faulty", ("False", "InvalidEgressNodeSelector"))).await;
    cluster.until("a condition", told("garbage", ("False", "InvalidEgressIP"))).await;
    cluster.until_event(&faulty, "InvalidEgressNodeSelector").await;
    cluster.until_event(&garbage, "InvalidEgressIP").await;
    let state = cluster.state();
    assert_eq!(state.statuses()["faulty"], []);
    assert_eq!(state.statuses()["garbage"].len(), 1, "its legal address has a node");

    cluster.edit(&egress_ip_key("faulty"), json!({"spec": {"egressNodeSelector": {"matchExpressions": null}}})).await;
    cluster.edit(&egress_ip_key("garbage"), json!({"spec": {"egressIPs": [address(101)]}})).await;
    cluster.until("both to be as good as any", everyone_is_placed).await;
    controller.end().await;
    assert_eq!((cluster.events(&faulty).len(), cluster.events(&garbage).len()), (1, 1));
    let history = cluster.history();
    for number in 0..10 {
        assert_eq!(history.by_controller(&egress_ip_key(&format!("e{number}"))), 1, "e{number}");
    }
}

#[tokio::test]
async fn a_node_with_a_broken_annotation_is_left_out_alone_also_by_a_controller_that_starts() {
    let cluster = Cluster::of(4).await;
    for number in 0..20 {
        cluster.create(egress_ip(&format!("e{number}"), &[&address(number)])).await;
    }
    let controller = cluster.controller(config("one"));
    cluster.until("every address to have a node", everyone_is_placed).await;
    controller.end().await;
    let before = cluster.state();
    let broken = ObjectKey::cluster(Kind::Node, "n4");
    let annotations = json!({"metadata": {"annotations": {"k8s.ovn.org/host-cidrs": "not a list"}}});
    let node = cluster.edit(&broken, annotations).await;

    let controller = cluster.controller(config("one"));
    cluster
        .until("its addresses to move", |state| {
            let there = |items: &Vec<(String, String)>| items.iter().any(|(_, node)| node == "n4");
            everyone_is_placed(state) && !state.statuses().values().any(there)
        })
        .await;
    cluster.until_event(&node, "InvalidNodeAnnotation").await;
    controller.end().await;
    let history = cluster.history();
    history.assert_one_owner();
    for number in 0..20 {
        let (name, address) = (format!("e{number}"), address(number));
        let was = host_of(before.get(&egress_ip_key(&name)).unwrap(), &address).unwrap();
        let moves = history.places(&name, &address).len() - 1;
        assert_eq!(moves, usize::from(was == "n4"), "{name}");
    }
}
