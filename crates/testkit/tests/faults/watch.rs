//! Watches end, and what they missed is noticed.

use egret_api::{Kind, ObjectKey};
use egret_controller::client;
use egret_testkit::controller::{Controller, config};
use egret_testkit::objects::{egress_ip, not_ready};
use egret_testkit::server::Wire;
use egret_testkit::world::State;
use serde_json::json;

use crate::support::{
    CONTROLLER, Cluster, address, egress_ip_key, egress_ip_of, everyone_is_placed, host_of, key, placed,
};

const OBJECTS: usize = 20;

/// A cluster at rest with a controller at the end of a wire.
async fn at_rest() -> (Cluster, Wire, Controller) {
    let cluster = Cluster::of(4).await;
    for number in 0..OBJECTS {
        cluster.create(egress_ip_of(number)).await;
    }
    let (wire, connection) = Wire::to(cluster.server.config_as(CONTROLLER)).await.unwrap();
    let controller = Controller::start(client(connection).unwrap(), config("one"));
    cluster.until("every address to have a node", everyone_is_placed).await;
    (cluster, wire, controller)
}

/// What the controller does not see: one of everything that a watch can tell. Returns whom it concerns.
async fn change_everything(cluster: &Cluster) -> Vec<String> {
    let on = |node: &str| {
        let statuses = cluster.state().statuses();
        let names = statuses.into_iter().filter(|(_, items)| items.iter().any(|(_, host)| host == node));
        names.map(|(name, _)| name).collect::<Vec<_>>()
    };
    let mut concerned = on("n1");
    concerned.extend(on("n2"));
    cluster.delete(&ObjectKey::cluster(Kind::Node, "n1")).await;
    cluster.edit_status(&ObjectKey::cluster(Kind::Node, "n2"), json!({"status": not_ready()})).await;
    // An address changes hands.
    cluster.delete(&egress_ip_key("e0")).await;
    cluster.create(egress_ip("heir", &[&address(0)])).await;
    cluster.edit(&egress_ip_key("e1"), json!({"spec": {"egressIPs": [address(2)]}})).await;
    concerned.extend(["e0", "e1", "heir"].map(str::to_owned));
    concerned
}

fn settled(state: &State) -> bool {
    let heir = state.get(&egress_ip_key("heir")).and_then(|object| host_of(object, &address(0)));
    let lost = |items: &Vec<(String, String)>| items.iter().any(|(_, node)| node == "n1" || node == "n2");
    everyone_is_placed(state)
        && !state.statuses().values().any(lost)
        && heir.is_some()
        && placed(state) == 2 * (OBJECTS - 2) + 2
}

/// Whom it did not concern was not written.
fn assert_others_rest(cluster: &Cluster, concerned: &[String]) {
    let history = cluster.history();
    history.assert_one_owner();
    let others = (0..OBJECTS).map(|number| format!("e{number}")).filter(|name| !concerned.contains(name));
    for name in others {
        assert_eq!(history.by_controller(&egress_ip_key(&name)), 1, "{name}");
    }
}

#[tokio::test]
async fn what_happens_while_watches_are_cut_is_noticed_afterwards() {
    let (cluster, mut wire, controller) = at_rest().await;
    wire.cut().await;
    let concerned = change_everything(&cluster).await;
    wire.mend().await.unwrap();
    cluster.until("everything to be noticed", settled).await;
    controller.end().await;
    assert_eq!(cluster.forgotten(), 0, "the server still knew");
    assert_others_rest(&cluster, &concerned);
}

#[tokio::test]
async fn a_server_that_has_forgotten_where_the_watches_were_is_asked_for_everything_again() {
    let (cluster, mut wire, controller) = at_rest().await;
    wire.cut().await;
    let concerned = change_everything(&cluster).await;
    cluster.server.kill_api();
    cluster.server.start_api().await.unwrap();
    let version = cluster.state().get(&egress_ip_key("e1")).unwrap()["metadata"]["resourceVersion"].clone();
    let version = version.as_str().unwrap().parse::<u64>().unwrap() - 1;
    let watch = format!("/apis/k8s.ovn.org/v1/egressips?watch=true&timeoutSeconds=1&resourceVersion={version}");
    let refused = cluster.get(&watch).await.map_err(|error| error.to_string());
    assert!(format!("{refused:?}").contains("410"), "it has forgotten what the controller knows: {refused:?}");

    wire.mend().await.unwrap();
    cluster.until("everything to be noticed", settled).await;
    let failures = controller.metrics.exposition();
    let failed =
        failures.lines().find(|line| line.starts_with("egret_controller_watch_errors_total{kind=\"EgressIP\"}"));
    assert!(failed.is_some_and(|line| !line.ends_with(" 0")), "its watches were refused: {failed:?}");
    controller.end().await;
    assert_others_rest(&cluster, &concerned);
}

#[tokio::test]
async fn a_wire_that_is_cut_again_and_again_in_the_middle_of_a_wave_moves_nothing_twice() {
    let cluster = Cluster::of(4).await;
    let (mut wire, connection) = Wire::to(cluster.server.config_as(CONTROLLER)).await.unwrap();
    let mut config = config("one");
    config.writes_at_once = 2;
    let controller = Controller::start(client(connection).unwrap(), config);
    controller.until_leading(true).await;
    for number in 0..3 * OBJECTS {
        let stored = cluster.create(egress_ip_of(number)).await;
        if number % 15 == 14 {
            let name = key(&stored).unwrap();
            cluster.until("it to be seen", |state| state.get(&name).is_some()).await;
            wire.cut().await;
            wire.mend().await.unwrap();
        }
    }
    cluster
        .until("every address to have a node", |state| placed(state) == 6 * OBJECTS && everyone_is_placed(state))
        .await;
    controller.end().await;
    let history = cluster.history();
    history.assert_one_owner();
    for number in 0..3 * OBJECTS {
        for address in [address(2 * number), address(2 * number + 1)] {
            assert_eq!(history.places(&format!("e{number}"), &address).len(), 1, "e{number} {address}");
        }
    }
}
