//! Somebody else takes the lease.

use std::time::Duration;

use egret_testkit::controller::{TERMS, config};
use http::Request;
use serde_json::json;

use crate::support::{CONTROLLER, Cluster, egress_ip_of, everyone_is_placed, placed};

const OBJECTS: usize = 120;
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/egret-controller";

async fn renew_as_a_thief(cluster: &Cluster, count: u64) {
    let change = json!({"spec": {"holderIdentity": "thief", "leaseTransitions": 100 + count}});
    let request = Request::patch(LEASE).header("Content-Type", "application/merge-patch+json");
    let request = request.body(serde_json::to_vec(&change).unwrap()).unwrap();
    cluster.client.request::<serde_json::Value>(request).await.unwrap();
}

#[tokio::test]
async fn a_leader_whose_lease_is_stolen_in_the_middle_of_a_wave_stops_and_ends_the_wave_when_it_can() {
    let cluster = Cluster::of(4).await;
    for number in 0..OBJECTS {
        cluster.create(egress_ip_of(number)).await;
    }
    let mut config = config("one");
    config.writes_at_once = 1;
    let controller = cluster.controller(config);
    cluster.until("the wave to begin", |state| placed(state) > 0).await;
    renew_as_a_thief(&cluster, 0).await;
    controller.until_leading(false).await;
    // What was under way when it learned of it may still land.
    tokio::time::sleep(TERMS.retry).await;
    let before = cluster.writes_of(CONTROLLER).len();
    for number in OBJECTS..OBJECTS + 5 {
        cluster.create(egress_ip_of(number)).await;
    }
    for count in 1..8 {
        renew_as_a_thief(&cluster, count).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!controller.shared.leading());
    }
    assert_eq!(cluster.writes_of(CONTROLLER).len(), before, "it writes nothing while somebody else leads");
    assert!(!everyone_is_placed(&cluster.state()));

    cluster
        .until("the wave to be ended", |state| placed(state) == 2 * (OBJECTS + 5) && everyone_is_placed(state))
        .await;
    controller.end().await;
    cluster.history().assert_one_owner();
}
