//! What several of these tests need.

use std::time::{Duration, Instant};

use egret_controller::client;
use egret_testkit::server::Server;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Asks until there is an answer.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The client that the controller has, with an administrator's rights.
pub(crate) fn admin(server: &Server) -> Client {
    client(server.config()).unwrap()
}

fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let api_version = text("/apiVersion").unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind").unwrap()));
    match text("/metadata/namespace") {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// Creates an object, status included where the kind has a subresource for it.
pub(crate) async fn create(client: &Client, object: &Value) -> Value {
    let api = api(client, object);
    let created = api.create(&PostParams::default(), &serde_json::from_value(object.clone()).unwrap()).await;
    let created = created.unwrap_or_else(|error| panic!("{object}: {error}"));
    let kind = object["kind"].as_str().unwrap();
    let created = match object.get("status").filter(|_| kind != "EgressIP") {
        Some(status) => {
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(name(object), &PatchParams::default(), &patch).await.unwrap()
        }
        None => created,
    };
    serde_json::to_value(created).unwrap()
}

/// An object as it is stored now.
pub(crate) async fn get(client: &Client, like: &Value) -> Option<Value> {
    let object = api(client, like).get_opt(name(like)).await.unwrap();
    object.map(|object| serde_json::to_value(object).unwrap())
}

pub(crate) async fn merge(client: &Client, like: &Value, patch: Value) -> Value {
    let object = api(client, like).patch(name(like), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    serde_json::to_value(object).unwrap()
}

pub(crate) async fn delete(client: &Client, like: &Value) {
    api(client, like).delete(name(like), &kube::api::DeleteParams::default()).await.unwrap();
}

/// A node on which OVN-Kubernetes runs, ready and assignable; `number` makes its addresses.
pub(crate) fn node(name: &str, number: u8) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"k8s.ovn.org/egress-assignable": ""},
            "annotations": {
                "k8s.ovn.org/node-primary-ifaddr": format!(r#"{{"ipv4":"172.18.0.{number}/16"}}"#),
                "k8s.ovn.org/host-cidrs": format!(r#"["172.18.0.{number}/16"]"#),
                "k8s.ovn.org/node-subnets": format!(r#"{{"default":["10.244.{number}.0/24"]}}"#),
                "example.com/somebody-elses": "x",
            },
        },
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "Test", "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]},
    })
}

pub(crate) fn egress_ip(name: &str, addresses: &[&str]) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": {"name": name},
        "spec": {"egressIPs": addresses, "namespaceSelector": {}},
    })
}

pub(crate) fn egress_service(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"sourceIPBy": "LoadBalancerIP"},
    })
}
