//! The whole controller.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use egret_brain::Answer;
use egret_controller::lease::Terms;
use egret_controller::probe::Probes;
use egret_controller::{Config, Metrics, RunError, Shared, Surroundings, run};
use egret_core::NodeName;
use egret_testkit::server::Server;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::fixture::{PATIENCE, admin, create, egress_ip, eventually, get, merge, node};

/// Every node answers.
struct Alive(UnboundedSender<(NodeName, Answer)>);

impl Probes for Alive {
    fn set_targets(&mut self, targets: BTreeMap<NodeName, Vec<IpAddr>>) {
        for node in targets.into_keys() {
            let _ = self.0.send((node, Answer::Alive));
        }
    }
}

struct Controller {
    shared: Arc<Shared>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Controller {
    fn start(client: Client, identity: &str) -> Self {
        let mut config = Config::new("default", identity);
        // Proportions as they run; an answer may take a second.
        config.election.terms = Terms {
            duration: Duration::from_secs(4),
            deadline: Duration::from_secs(2),
            retry: Duration::from_millis(300),
        };
        let (shared, questions) = Shared::new();
        let shared = Arc::new(shared);
        let stop = CancellationToken::new();
        let surroundings = Surroundings {
            client,
            metrics: Arc::new(Metrics::new()),
            shared: Arc::clone(&shared),
            questions,
            stop: stop.clone(),
        };
        let task =
            tokio::spawn(async move { Box::pin(run(&config, surroundings, |answers| Box::new(Alive(answers)))).await });
        Self { shared, stop, task }
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.expect("it ends").unwrap().unwrap();
    }
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
    let controller = Controller::start(client.clone(), "one");
    let object = create(&client, &egress_ip("e", &["172.18.0.100"])).await;
    let first = eventually("a node", async || host(&client, &object).await).await;

    let not_ready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let api: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(client.clone());
    api.patch_status(&first, &kube::api::PatchParams::default(), &kube::api::Patch::Strategic(not_ready))
        .await
        .unwrap();
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
    let controller = Controller::start(client.clone(), "one");
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
    let first = Controller::start(client.clone(), "one");
    let object = create(&client, &egress_ip("e", &["172.18.0.100"])).await;
    let node = eventually("a node", async || host(&client, &object).await).await;
    let second = Controller::start(client.clone(), "two");
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
    let controller = Controller::start(client.clone(), "one");
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
    let controller = Controller::start(client.clone(), "one");
    eventually("it leads", async || controller.shared.leading().then_some(())).await;
    merge(&client, &lease(), json!({"spec": {"holderIdentity": "thief"}})).await;
    eventually("it leads no more", async || (!controller.shared.leading()).then_some(())).await;
    let object = create(&client, &egress_ip("e", &["172.18.0.100"])).await;
    eventually("it leads again", async || {
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
