//! A cluster on a real API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use egret_api::{Kind, ObjectKey, crd};
use egret_controller::{Config, client};
use egret_testkit::controller::Controller;
use egret_testkit::objects;
use egret_testkit::patience::{PATIENCE, eventually};
use egret_testkit::server::{Server, Write};
use egret_testkit::world::State;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::recorder::{History, Recorder, has_status_subresource, key, path, version_of};

/// As whom the controller speaks, and a second one.
pub(crate) const CONTROLLER: &str = "system:serviceaccount:egret:egret-controller";
pub(crate) const RIVAL: &str = "system:serviceaccount:egret:rival";

const MERGE: &str = "application/merge-patch+json";
/// The conditions of a node have a key: a merge patch would do as well, but kubelets send these.
const JSON: &str = "application/json";

/// A cluster, in the hands of its users.
pub(crate) struct Cluster {
    pub(crate) server: Server,
    pub(crate) client: Client,
    recorder: Recorder,
    /// Versions that the test itself has stored, and objects that it deleted.
    own: Mutex<BTreeSet<u64>>,
    deleted: Mutex<BTreeSet<ObjectKey>>,
}

impl Cluster {
    /// One with so many nodes, `n1` and so on.
    pub(crate) async fn of(nodes: u8) -> Self {
        Self::with(&crd::definitions(false), nodes).await
    }

    /// The same with other definitions.
    pub(crate) async fn with(definitions: &[Value], nodes: u8) -> Self {
        let server = Server::take().await.unwrap();
        for definition in definitions {
            server.install_crd(definition).await.unwrap();
        }
        let client = server.client();
        let recorder = Recorder::start(&client).await;
        let cluster = Self { server, client, recorder, own: Mutex::default(), deleted: Mutex::default() };
        // What rights a controller needs is proven elsewhere.
        let group =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts:egret"});
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "egret"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [group],
        });
        cluster.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.unwrap();
        for number in 1..=nodes {
            cluster.create(objects::node(&format!("n{number}"), number)).await;
        }
        cluster
    }

    /// Starts a controller that has all rights.
    pub(crate) fn controller(&self, config: Config) -> Controller {
        Controller::start(client(self.server.config_as(CONTROLLER)).unwrap(), config)
    }

    /// Stores an object that the recorder does not look at.
    pub(crate) async fn post(&self, path: &str, object: &Value) -> kube::Result<Value> {
        self.send(Method::POST, path, JSON, object).await
    }

    /// Stores a new object, status included.
    pub(crate) async fn create(&self, object: Value) -> Value {
        self.try_create(object).await.unwrap()
    }

    /// The same where the server may not answer.
    pub(crate) async fn try_create(&self, object: Value) -> kube::Result<Value> {
        let key = key(&object).unwrap();
        let stored = self.post(&path(key.kind, key.namespace.as_deref(), None), &object).await?;
        self.own.lock().unwrap().insert(version_of(&stored));
        match object.get("status").filter(|_| has_status_subresource(key.kind)) {
            Some(status) => Ok(self.edit_status(&key, json!({"status": status})).await),
            None => Ok(stored),
        }
    }

    /// Merges a change into an object, and waits until the record has it.
    pub(crate) async fn edit(&self, key: &ObjectKey, change: Value) -> Value {
        self.merge(key, "", &change).await
    }

    /// The same for the status, where that is written apart.
    pub(crate) async fn edit_status(&self, key: &ObjectKey, change: Value) -> Value {
        let subresource = if has_status_subresource(key.kind) { "/status" } else { "" };
        self.merge(key, subresource, &change).await
    }

    async fn merge(&self, key: &ObjectKey, subresource: &str, change: &Value) -> Value {
        let path = format!("{}{subresource}", path(key.kind, key.namespace.as_deref(), Some(&key.name)));
        let stored = self.send(Method::PATCH, &path, MERGE, change).await.unwrap();
        self.own.lock().unwrap().insert(version_of(&stored));
        self.recorder.until_at(version_of(&stored), key).await;
        stored
    }

    pub(crate) async fn delete(&self, key: &ObjectKey) {
        let path = path(key.kind, key.namespace.as_deref(), Some(&key.name));
        self.deleted.lock().unwrap().insert(key.clone());
        self.send(Method::DELETE, &path, JSON, &json!({})).await.unwrap();
    }

    async fn send(&self, method: Method, path: &str, content: &str, body: &Value) -> kube::Result<Value> {
        let request = Request::builder().method(method).uri(path).header("Content-Type", content);
        self.client.request(request.body(serde_json::to_vec(body).unwrap()).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> kube::Result<Value> {
        self.client.request(Request::get(path).body(Vec::new()).unwrap()).await
    }

    /// What is stored, as far as the record has got.
    pub(crate) fn state(&self) -> State {
        self.recorder.state()
    }

    /// Waits until what is stored is as it should be.
    pub(crate) async fn until(&self, what: &str, reached: impl Fn(&State) -> bool) {
        if timeout(PATIENCE, self.recorder.until(reached)).await.is_err() {
            let state = self.state();
            let ours = state.iter().filter(|(key, _)| key.kind != Kind::Node);
            let statuses: BTreeMap<_, _> = ours.map(|(key, object)| (key, object["status"].to_string())).collect();
            panic!("waited in vain for {what}: {statuses:#?}, {:?}", self.recorder.broken());
        }
    }

    /// Everything that was stored, and by whom.
    pub(crate) fn history(&self) -> History {
        self.recorder.history(&self.own.lock().unwrap(), &self.deleted.lock().unwrap())
    }

    /// Replaces the definition of EgressIP, and waits until the server goes by it.
    pub(crate) async fn upgrade(&self, definition: &Value) {
        self.server.install_crd(definition).await.unwrap();
        let probe = objects::egress_ip("probe", &[]);
        eventually("the server to go by the new definition", async || {
            let path = format!("{}?dryRun=All", path(Kind::EgressIp, None, None));
            let stored = self.post(&path, &probe).await.ok()?;
            stored["spec"].get("egressNodeSelector").map(drop)
        })
        .await;
    }

    /// Lets the record go by the new definition, too.
    pub(crate) async fn renew_record(&mut self) {
        self.recorder.renew().await;
    }

    /// How often the record had to be filled in because the server had forgotten what came before.
    pub(crate) fn forgotten(&self) -> usize {
        self.recorder.forgotten()
    }

    /// The events about an object, by reason and text.
    pub(crate) fn events(&self, object: &Value) -> Vec<(String, String)> {
        self.recorder.events(object["metadata"]["uid"].as_str().unwrap())
    }

    /// Waits for an event about an object.
    pub(crate) async fn until_event(&self, object: &Value, reason: &str) {
        let uid = object["metadata"]["uid"].as_str().unwrap();
        let there = timeout(PATIENCE, self.recorder.until_event(uid, reason)).await;
        assert!(there.is_ok(), "waited in vain for {reason}: {:?}", self.events(object));
    }

    /// What somebody has tried to write to objects of ours.
    pub(crate) fn writes_of(&self, user: &str) -> Vec<Write> {
        let kinds = Kind::ALL.map(|kind| format!("{}s", kind.as_str()));
        let writes = self.server.audit().unwrap().into_iter();
        writes.filter(|write| write.user == user && kinds.contains(&write.resource)).collect()
    }

    /// How much the controller writes within a time in which nothing happens.
    pub(crate) async fn writes_within(&self, time: Duration) -> Vec<Write> {
        let before = self.writes_of(CONTROLLER).len();
        tokio::time::sleep(time).await;
        self.writes_of(CONTROLLER).split_off(before)
    }
}
