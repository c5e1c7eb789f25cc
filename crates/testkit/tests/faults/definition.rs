//! The definition of EgressIP is one of before, and is upgraded while the controller runs.

use std::time::Duration;

use egret_api::crd;
use egret_testkit::controller::config;
use serde_json::{Value, json};

use crate::support::{Cluster, address, egress_ip_key, egress_ip_of, everyone_is_placed, placed};

const OBJECTS: usize = 20;
const RETRIAL: Duration = Duration::from_secs(2);

/// Without `egressNodeSelector` and without conditions.
fn old() -> Value {
    let mut definition = crd::egress_ip_definition();
    for (part, field) in [("spec", "egressNodeSelector"), ("status", "conditions")] {
        let fields = format!("/spec/versions/0/schema/openAPIV3Schema/properties/{part}/properties");
        definition.pointer_mut(&fields).unwrap().as_object_mut().unwrap().remove(field).unwrap();
    }
    definition
}

#[tokio::test]
async fn an_old_definition_is_lived_with_and_its_upgrade_moves_nothing() {
    let mut cluster = Cluster::with(&[old(), crd::egress_service_definition()], 4).await;
    for number in 0..OBJECTS {
        cluster.create(egress_ip_of(number)).await;
    }
    let mut config = config("one");
    config.retrial = RETRIAL;
    let controller = cluster.controller(config);
    cluster.until("every address to have a node", |state| placed(state) == 2 * OBJECTS).await;
    let tried = cluster.writes_within(RETRIAL * 4).await.len();
    assert!((1..=5).contains(&tried), "one object tries once in {RETRIAL:?}, not {tried} times");
    let history = cluster.history();
    for number in 0..OBJECTS {
        let key = egress_ip_key(&format!("e{number}"));
        assert_eq!(history.by_controller(&key), 1, "{key}: what is dropped makes no version");
        assert_eq!(cluster.state().get(&key).unwrap()["status"].get("conditions"), None);
    }

    cluster.upgrade(&crd::egress_ip_definition()).await;
    // Watches that began before go on for a while and do not tell of the new field.
    let pool = json!({"spec": {"egressNodeSelector": {"matchLabels": {"kubernetes.io/hostname": "none"}}}});
    cluster.edit(&egress_ip_key("e0"), pool).await;
    cluster.renew_record().await;
    cluster.until("the new selector to be followed", |state| state.statuses()["e0"].is_empty()).await;
    cluster.delete(&egress_ip_key("e0")).await;
    cluster
        .until("every other object to have its condition", |state| {
            placed(state) == 2 * (OBJECTS - 1) && everyone_is_placed(state)
        })
        .await;
    assert_eq!(cluster.writes_within(RETRIAL * 2).await, [], "then there is rest");
    controller.end().await;
    let history = cluster.history();
    for number in 1..OBJECTS {
        let name = format!("e{number}");
        for address in [address(2 * number), address(2 * number + 1)] {
            assert_eq!(history.places(&name, &address).len(), 1, "{name} {address} stays");
        }
        assert_eq!(history.by_controller(&egress_ip_key(&name)), 2, "{name}");
    }
}
