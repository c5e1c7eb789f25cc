//! The whole controller.

use std::time::{Duration, Instant};

use egret_testkit::controller::{Controller, config};
use egret_testkit::objects::{egress_ip, node, not_ready};
use egret_testkit::patience::{PATIENCE, eventually};
use egret_testkit::server::Server;
use egret_testkit::server::hand::{create, get, merge, merge_status};
use kube::Client;
use serde_json::{Value, json};

use crate::admin;

fn start(client: &Client, identity: &str) -> Controller {
    Controller::start(client.clone(), config(identity))
}

fn lease() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "egret-controller", "namespace": "default"},
    })
}

async fn host(client: &Client, object: &Value) -> Option<String> {
    let stored = get(client, object).await?;
    stored.pointer("/status/items/0/node")?.as_str().map(str::to_owned)
}

async fn cluster() -> (Server, Client) {
    let server = Server::take().await.unwrap();
    server.install_crds(false).await.unwrap();
    let client = admin(&server);
    create(&client, &node("a", 1)).await;
    create(&client, &node("b", 2)).await;
    (server, client)
}

#[tokio::test]
async fn an_address_gets_a_node_and_another_one_when_that_is_not_ready() {
    let (_server, client) = cluster().await;
    let controller = start(&client, "one");
    let object = create(&client, &egress_ip("e", &["172.18.0.100"])).await;
    let first = eventually("a node", async || host(&client, &object).await).await;

    merge_status(&client, &node(&first, 0), &not_ready()).await;
    let moved = eventually("another node", async || host(&client, &object).await.filter(|host| *host != first));
    assert_ne!(moved.await, first);

    assert!(controller.shared.listed() && controller.shared.leading());
    assert!(controller.shared.silent_for() < Duration::from_secs(5));
    let view = controller.shared.view(PATIENCE).await.expect("an answer");
    assert!(view.leading);
    controller.end().await;
}

#[tokio::test]
async fn an_object_that_gets_no_node_has_an_event_that_names_its_uid() {
    let (_server, client) = cluster().await;
    let controller = start(&client, "one");
    let mut object = egress_ip("e", &["172.18.0.100"]);
    object["spec"]["egressNodeSelector"] = json!({"matchLabels": {"pool": "none"}});
    let object = create(&client, &object).await;
    let events: kube::Api<k8s_openapi::api::events::v1::Event> = kube::Api::namespaced(client.clone(), "default");
    let event = eventually("an event", async || {
        let list = events.list(&kube::api::ListParams::default()).await.unwrap();
        list.items.into_iter().find(|event| event.reason.as_deref() == Some("NoMatchingNodeFound"))
    });
    let event = event.await;
    let regarding = event.regarding.unwrap();
    assert_eq!(regarding.uid.as_deref(), object["metadata"]["uid"].as_str());
    assert_eq!((regarding.kind.as_deref(), event.type_.as_deref()), (Some("EgressIP"), Some("Warning")));
    controller.end().await;
}

#[tokio::test]
async fn the_second_controller_goes_on_where_the_first_one_stops() {
    let (_server, client) = cluster().await;
    let first = start(&client, "one");
    let object = create(&client, &egress_ip("e", &["172.18.0.100"])).await;
    let node = eventually("a node", async || host(&client, &object).await).await;
    let second = start(&client, "two");
    eventually("the second to know everything", async || second.shared.listed().then_some(())).await;
    assert!(!second.shared.leading());

    first.end().await;
    let further = create(&client, &egress_ip("f", &["172.18.0.101"])).await;
    eventually("a node from the second", async || host(&client, &further).await).await;
    assert_eq!(host(&client, &object).await, Some(node), "what is valid stays");
    second.end().await;
}

#[tokio::test]
async fn whoever_stops_in_good_order_gives_the_lease_up_and_is_soon_gone() {
    let (_server, client) = cluster().await;
    let controller = start(&client, "one");
    let object = create(&client, &egress_ip("e", &["172.18.0.100"])).await;
    eventually("a node", async || host(&client, &object).await).await;
    let (writes_and_words, began) = (Duration::from_secs(4), Instant::now());
    controller.end().await;
    assert!(began.elapsed() < writes_and_words, "nothing was under way: {:?}", began.elapsed());
    assert_eq!(get(&client, &lease()).await.unwrap()["spec"]["holderIdentity"], "");
}

#[tokio::test]
async fn a_leader_whose_lease_is_stolen_decides_nothing_and_goes_on_afterwards() {
    let (_server, client) = cluster().await;
    let controller = start(&client, "one");
    controller.until_leading(true).await;
    merge(&client, &lease(), json!({"spec": {"holderIdentity": "thief"}})).await;
    controller.until_leading(false).await;
    let object = create(&client, &egress_ip("e", &["172.18.0.100"])).await;
    eventually("it to lead again", async || {
        let leads = controller.shared.leading();
        if !leads {
            assert_eq!(host(&client, &object).await, None);
        }
        leads.then_some(())
    })
    .await;
    eventually("a node", async || host(&client, &object).await).await;
    controller.end().await;
}
