//! Watches see what is there, what changes and what goes, whatever happens to the connection.

use std::sync::Arc;

use egret_api::Kind;
use egret_brain::Input;
use egret_controller::{Metrics, client};
use egret_daemon::watch::WAITING;
use egret_testkit::objects::{egress_ip, node};
use egret_testkit::patience::{PATIENCE, eventually};
use egret_testkit::server::hand::{create, delete, get, merge};
use egret_testkit::server::{Server, Wire};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::admin;

/// What comes out of a watch, in the words of these tests.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Listed(Vec<String>),
    Seen(String),
    Gone(String),
}

struct Watched {
    changes: mpsc::Receiver<Input>,
    metrics: Arc<Metrics>,
    last: Value,
}

impl Watched {
    fn new(client: Client, kind: Kind) -> Self {
        let (sender, changes) = mpsc::channel(WAITING);
        let metrics = Arc::new(Metrics::new());
        tokio::spawn(egret_controller::watch(client, kind, sender, Arc::clone(&metrics)).run());
        Self { changes, metrics, last: Value::Null }
    }

    fn failures(&self) -> u64 {
        let metrics = self.metrics.exposition();
        let counts = metrics.lines().filter(|line| line.starts_with("egret_controller_watch_errors_total{"));
        counts.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }

    async fn next(&mut self) -> Change {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
        match timeout(PATIENCE, self.changes.recv()).await.expect("a change").expect("a watch does not end") {
            Input::Listed { objects, .. } => {
                let mut names: Vec<_> = objects.iter().map(name).collect();
                names.sort_unstable();
                self.last = objects.into_iter().next().unwrap_or_default();
                Change::Listed(names)
            }
            Input::Seen { object, .. } => {
                self.last = object;
                Change::Seen(name(&self.last))
            }
            Input::Gone { object, .. } => Change::Gone(name(&object)),
            other => panic!("{other:?} is none of a watch"),
        }
    }

    /// The next change that is not a repeated one: a watch that goes on may see some objects again.
    async fn until(&mut self, change: &Change) {
        while self.next().await != *change {}
    }
}

fn listed(names: &[&str]) -> Change {
    Change::Listed(names.iter().map(|name| (*name).to_owned()).collect())
}

fn seen(name: &str) -> Change {
    Change::Seen(name.to_owned())
}

fn gone(name: &str) -> Change {
    Change::Gone(name.to_owned())
}

#[tokio::test]
async fn what_is_there_is_listed_once_and_then_every_change_is_seen() {
    let server = Server::take().await.unwrap();
    let client = admin(&server);
    create(&client, &node("a", 1)).await;
    let mut watched = Watched::new(client.clone(), Kind::Node);
    assert_eq!(watched.next().await, listed(&["a"]));
    assert_eq!(watched.last["kind"], "Node");
    assert_eq!(watched.last.pointer("/metadata/managedFields"), None);
    assert_eq!(watched.last["metadata"]["annotations"].as_object().unwrap().len(), 3);
    assert!(watched.last["metadata"]["resourceVersion"].is_string());

    create(&client, &node("b", 2)).await;
    watched.until(&seen("b")).await;
    merge(&client, &node("a", 1), json!({"metadata": {"labels": {"pool": "x"}}})).await;
    watched.until(&seen("a")).await;
    assert_eq!(watched.last["metadata"]["labels"]["pool"], "x");
    delete(&client, &node("a", 1)).await;
    watched.until(&gone("a")).await;
}

#[tokio::test]
async fn a_kind_that_is_not_installed_is_empty_until_it_appears_and_again_when_it_goes() {
    let server = Server::take().await.unwrap();
    let client = admin(&server);
    let mut watched = Watched::new(client.clone(), Kind::EgressIp);
    assert_eq!(watched.next().await, listed(&[]));

    server.install_crds(false).await.unwrap();
    create(&client, &egress_ip("a", &["172.18.0.100"])).await;
    assert!(matches!(watched.next().await, Change::Listed(_)));
    if watched.last.is_null() {
        watched.until(&seen("a")).await;
    }

    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "egressips.k8s.ovn.org"},
    });
    delete(&client, &definition).await;
    watched.until(&listed(&[])).await;
}

#[tokio::test]
async fn what_happened_while_the_wire_was_cut_is_seen_afterwards() {
    let server = Server::take().await.unwrap();
    let (mut wire, config) = Wire::to(server.config()).await.unwrap();
    let admin = admin(&server);
    create(&admin, &node("a", 1)).await;
    create(&admin, &node("b", 2)).await;
    let mut watched = Watched::new(client(config).unwrap(), Kind::Node);
    assert_eq!(watched.next().await, listed(&["a", "b"]));

    wire.cut().await;
    delete(&admin, &node("a", 1)).await;
    create(&admin, &node("c", 3)).await;
    wire.mend().await.unwrap();
    // Goes on where it was: nothing is listed again.
    let mut changes = Vec::new();
    while changes.last() != Some(&seen("c")) {
        changes.push(watched.next().await);
    }
    assert!(changes.contains(&gone("a")), "{changes:?}");
    assert!(!changes.iter().any(|change| matches!(change, Change::Listed(_))), "{changes:?}");
}

#[tokio::test]
async fn a_history_that_is_too_short_is_listed_again() {
    let server = Server::take().await.unwrap();
    let (mut wire, config) = Wire::to(server.config()).await.unwrap();
    let admin = admin(&server);
    create(&admin, &node("a", 1)).await;
    let mut watched = Watched::new(client(config).unwrap(), Kind::Node);
    assert_eq!(watched.next().await, listed(&["a"]));

    wire.cut().await;
    delete(&admin, &node("a", 1)).await;
    create(&admin, &node("b", 2)).await;
    // A new API server remembers nothing of that, and says 410 to whoever asks.
    server.kill_api();
    server.start_api().await.unwrap();
    wire.mend().await.unwrap();
    assert_eq!(watched.next().await, listed(&["b"]));
    assert!(watched.failures() > 0);
}

#[tokio::test]
async fn an_api_server_that_was_killed_is_watched_again_when_it_is_back() {
    let server = Server::take().await.unwrap();
    let client = admin(&server);
    let mut watched = Watched::new(client.clone(), Kind::Node);
    assert_eq!(watched.next().await, listed(&[]));
    server.kill_api();
    server.start_api().await.unwrap();
    create(&client, &node("a", 1)).await;
    loop {
        match watched.next().await {
            Change::Listed(names) if names == ["a"] => break,
            Change::Seen(name) if name == "a" => break,
            _ => {}
        }
    }
    assert!(get(&client, &node("a", 1)).await.is_some());
}

#[tokio::test]
async fn a_kind_that_may_not_be_read_is_not_taken_for_an_empty_one() {
    let server = Server::take().await.unwrap();
    let nobody = client(server.config_as("system:serviceaccount:egret:nobody")).unwrap();
    let mut watched = Watched::new(nobody, Kind::Node);
    eventually("two failures", async || (watched.failures() >= 2).then_some(())).await;
    assert!(watched.changes.try_recv().is_err());
}
