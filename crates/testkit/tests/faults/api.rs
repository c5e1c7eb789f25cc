//! The API server dies, or the etcd behind it is slow.

use std::time::Duration;

use egret_api::{Kind, ObjectKey};
use egret_testkit::controller::{Controller, config};
use egret_testkit::objects::not_ready;

use crate::support::{CONTROLLER, Cluster, address, egress_ip_key, egress_ip_of, everyone_is_placed, placed};

const OBJECTS: usize = 100;

/// A cluster whose objects wait for a controller.
async fn waiting() -> Cluster {
    let cluster = Cluster::of(6).await;
    for number in 0..OBJECTS {
        cluster.create(egress_ip_of(number)).await;
    }
    cluster
}

/// Each address has had one node, and each object was written once.
fn assert_each_once(cluster: &Cluster) {
    let history = cluster.history();
    history.assert_one_owner();
    for number in 0..OBJECTS {
        let name = format!("e{number}");
        for address in [address(2 * number), address(2 * number + 1)] {
            assert_eq!(history.places(&name, &address).len(), 1, "{name} {address}");
        }
        assert_eq!(history.by_controller(&egress_ip_key(&name)), 1, "{name} is written once");
    }
}

/// So slow that a wave can be interrupted.
fn slow(cluster: &Cluster) -> Controller {
    let mut config = config("one");
    config.writes_at_once = 2;
    cluster.controller(config)
}

/// Kills the API server, and says how many EgressIPs were written before.
async fn kill_and_start(cluster: &Cluster) -> usize {
    cluster.server.kill_api();
    let writes = cluster.writes_of(CONTROLLER);
    cluster.server.start_api().await.unwrap();
    writes.iter().filter(|write| write.resource == "egressips" && write.code == 200).count()
}

#[tokio::test]
async fn an_api_server_that_dies_in_the_middle_of_a_wave_costs_nothing_but_time() {
    let cluster = waiting().await;
    let controller = slow(&cluster);
    cluster.until("the wave to begin", |state| placed(state) > 0).await;
    let before = kill_and_start(&cluster).await;
    assert!(before < OBJECTS, "it was killed in the middle, not after {before}");
    cluster.until("every address to have a node", everyone_is_placed).await;
    controller.end().await;
    assert_each_once(&cluster);
}

#[tokio::test]
async fn an_api_server_that_dies_while_addresses_move_leaves_each_with_one_move() {
    let cluster = waiting().await;
    let controller = slow(&cluster);
    cluster.until("every address to have a node", everyone_is_placed).await;
    let on_first = |state: &egret_testkit::world::State| {
        state.statuses().values().flatten().filter(|(_, node)| node == "n1" || node == "n2").count()
    };
    let moving = on_first(&cluster.state());
    for node in ["n1", "n2"] {
        cluster.edit_status(&ObjectKey::cluster(Kind::Node, node), serde_json::json!({"status": not_ready()})).await;
    }
    cluster.until("the first to move", |state| on_first(state) < moving).await;
    kill_and_start(&cluster).await;
    cluster.until("all to have moved", |state| on_first(state) == 0 && everyone_is_placed(state)).await;
    controller.end().await;

    let history = cluster.history();
    history.assert_one_owner();
    for number in 0..OBJECTS {
        let name = format!("e{number}");
        for address in [address(2 * number), address(2 * number + 1)] {
            // From the first to the second, perhaps, before that was lost too.
            let places = history.places(&name, &address);
            let (last, left) = places.split_last().unwrap();
            let failed = |node: &String| node == "n1" || node == "n2";
            assert!(!failed(last) && left.iter().all(failed) && left.len() <= 2, "{name} {address}: {places:?}");
        }
    }
}

#[tokio::test]
async fn a_slow_etcd_slows_the_wave_and_repeats_nothing_of_it() {
    let cluster = waiting().await;
    let controller = slow(&cluster);
    cluster.until("the wave to begin", |state| placed(state) > 0).await;
    // In bursts that a write outlasts, and at last longer than the leadership lasts.
    for pause in [300, 700, 700, 4000] {
        cluster.server.pause_etcd().unwrap();
        tokio::time::sleep(Duration::from_millis(pause)).await;
        cluster.server.resume_etcd().unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    cluster.until("every address to have a node", everyone_is_placed).await;
    controller.end().await;
    assert_each_once(&cluster);
}
