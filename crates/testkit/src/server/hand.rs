//! What somebody with `kubectl` does: objects of any kind are created, read, changed and deleted as plain JSON.
//!
//! What the API server refuses here ends the test: whoever wants to see a refusal asks by [`api`].

use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

/// Where an object is, by what it says of itself.
#[must_use]
pub fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let api_version = text("/apiVersion").expect("an object has a version");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, text("/kind").expect("an object has a kind"));
    let resource = ApiResource::from_gvk(&kind);
    match text("/metadata/namespace") {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Creates an object, status included. Returns it as it is stored.
pub async fn create(client: &Client, object: &Value) -> Value {
    let whole = serde_json::from_value(object.clone()).expect("an object has metadata");
    let created = done("create", object, api(client, object).create(&PostParams::default(), &whole).await);
    // An EgressIP has no subresource for it.
    match object.get("status").filter(|_| object["kind"] != "EgressIP") {
        Some(status) => merge_status(client, object, status).await,
        None => json(created),
    }
}

/// An object like this as it is stored now, if it is.
pub async fn get(client: &Client, like: &Value) -> Option<Value> {
    done("get", like, api(client, like).get_opt(name(like)).await).map(json)
}

/// Merges a change into an object like this. Returns it as it is stored.
pub async fn merge(client: &Client, like: &Value, change: Value) -> Value {
    let changed = api(client, like).patch(name(like), &PatchParams::default(), &Patch::Merge(change)).await;
    json(done("change", like, changed))
}

/// The same for the status of kinds that have it apart.
pub async fn merge_status(client: &Client, like: &Value, status: &Value) -> Value {
    let patch = Patch::Merge(json!({"status": status}));
    let changed = api(client, like).patch_status(name(like), &PatchParams::default(), &patch).await;
    json(done("change the status of", like, changed))
}

/// Deletes an object like this.
pub async fn delete(client: &Client, like: &Value) {
    done("delete", like, api(client, like).delete(name(like), &DeleteParams::default()).await);
}

#[expect(clippy::panic, reason = "only tests have a hand, and a test cannot go on without what it asked for")]
fn done<T>(what: &str, object: &Value, result: kube::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("failed to {what} {object}: {error}"))
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("an object has a name")
}

fn json(object: DynamicObject) -> Value {
    serde_json::to_value(object).expect("what came as JSON is JSON")
}
