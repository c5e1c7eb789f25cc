//! The policy that keeps an agent to its own node: who may change what of a Node, as the API server itself answers.

use egret_testkit::objects::node;
use egret_testkit::server::Server;
use egret_testkit::server::hand::create;
use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::client::Body;
use serde_json::{Value, json};

use crate::install::installed;

const AGENT: &str = "system:serviceaccount:egret-system:egret-agent";
const OURS: &str = "k8s.ovn.org/secondary-host-egress-ips";

/// An agent whose token says that it runs on this node.
fn agent_on(server: &Server, node: Option<&'static str>) -> Client {
    let client = server.client_as(AGENT);
    let named = move |mut request: Request<Body>| {
        if let Some(node) = node {
            let header = "impersonate-extra-authentication.kubernetes.io%2fnode-name";
            request.headers_mut().insert(header, node.parse().expect("a name"));
        }
        let client = client.clone();
        async move { client.send(request).await }
    };
    Client::new(tower::service_fn(named), "default")
}

async fn may(client: Client, name: &str, patch: Value) -> Result<(), String> {
    let api: Api<Node> = Api::all(client);
    let answer = api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    answer.map(drop).map_err(|error| error.to_string())
}

fn annotations(annotations: &Value) -> Value {
    json!({"metadata": {"annotations": annotations}})
}

#[track_caller]
fn denied(answer: &Result<(), String>, why: &str) {
    assert!(answer.as_ref().is_err_and(|error| error.contains(why)), "{answer:?}");
}

async fn cluster() -> Server {
    let server = installed("base", &[]).await;
    for (name, number) in [("n1", 1), ("n2", 2)] {
        create(&server.client(), &node(name, number)).await;
    }
    server
}

#[tokio::test]
async fn an_agent_writes_its_annotation_on_its_node() {
    let server = cluster().await;
    for value in [json!(r#"["10.20.0.100"]"#), json!("[]"), Value::Null] {
        let patch = annotations(&json!({OURS: value}));
        may(agent_on(&server, Some("n1")), "n1", patch).await.expect("that is what it is for");
    }
}

#[tokio::test]
async fn an_agent_changes_no_other_node() {
    let server = cluster().await;
    let patch = annotations(&json!({OURS: "[]"}));
    for node in [Some("n2"), Some(""), None] {
        denied(&may(agent_on(&server, node), "n1", patch.clone()).await, "only the Node that it runs on");
    }
}

#[tokio::test]
async fn an_agent_changes_nothing_else_of_its_node() {
    let server = cluster().await;
    let agent = || agent_on(&server, Some("n1"));
    let annotation = "only the annotation";
    denied(&may(agent(), "n1", annotations(&json!({"k8s.ovn.org/host-cidrs": "[]"}))).await, annotation);
    denied(&may(agent(), "n1", annotations(&json!({"k8s.ovn.org/node-primary-ifaddr": null}))).await, annotation);
    denied(&may(agent(), "n1", annotations(&json!({"new": "", OURS: "[]"}))).await, annotation);
    let nothing = "nothing of a Node but its annotation";
    denied(&may(agent(), "n1", json!({"metadata": {"labels": {"new": ""}}})).await, nothing);
    denied(&may(agent(), "n1", json!({"status": {"capacity": {"cpu": "99"}}})).await, nothing);
    denied(&may(agent(), "n1", json!({"metadata": {"finalizers": ["example.org/stays"]}})).await, nothing);
}

#[tokio::test]
async fn others_are_not_asked() {
    let server = cluster().await;
    may(server.client(), "n1", annotations(&json!({"other": "x"}))).await.expect("an administrator may");
}
