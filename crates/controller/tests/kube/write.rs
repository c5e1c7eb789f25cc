//! What the API server says to a write becomes the class that the brain goes by.

use std::sync::Arc;
use std::time::Duration;

use egret_api::{Kind, ObjectKey};
use egret_brain::{Action, Input, Write, WriteError, WriteId};
use egret_controller::Metrics;
use egret_controller::lease::{Right, Standing};
use egret_controller::write::{Order, Writer};
use egret_testkit::objects::{egress_ip, egress_service, node};
use egret_testkit::patience::{PATIENCE, eventually};
use egret_testkit::server::Server;
use egret_testkit::server::hand::{create, delete, get, merge};
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::admin;

type Result = std::result::Result<Option<Value>, WriteError>;

/// A writer and its ends.
struct Writes {
    orders: mpsc::UnboundedSender<Order>,
    results: mpsc::UnboundedReceiver<Input>,
    standing: watch::Sender<Standing>,
}

fn right(lasts: Duration) -> Standing {
    right_of(1, lasts)
}

fn right_of(term: u64, lasts: Duration) -> Standing {
    Standing { right: Some(Right { term, until: Instant::now() + lasts }), silence_accepted: None }
}

/// Decided in the first term.
fn order(id: u64, object: ObjectKey, action: Action) -> Order {
    Order { term: 1, write: Write { id: WriteId(id), object, action } }
}

impl Writes {
    fn new(client: Client) -> Self {
        let (standing, standing_out) = watch::channel(right(PATIENCE * 10));
        let (results_in, results) = mpsc::unbounded_channel();
        let (orders, ordered) = mpsc::unbounded_channel();
        let writer = Writer::new(client, standing_out, results_in, Arc::new(Metrics::new()), 4);
        tokio::spawn(writer.run(ordered, CancellationToken::new()));
        Self { orders, results, standing }
    }

    async fn write(&mut self, object: ObjectKey, action: Action) -> Result {
        self.orders.send(order(7, object, action)).unwrap();
        loop {
            match timeout(PATIENCE, self.results.recv()).await.expect("a result").unwrap() {
                Input::Written { id: WriteId(7), result } => return result,
                Input::Written { .. } => {}
                other => panic!("{other:?} is no result"),
            }
        }
    }

    async fn patch(&mut self, name: &str, operations: Value) -> Result {
        let Value::Array(operations) = operations else { panic!("a list") };
        self.write(ObjectKey::cluster(Kind::EgressIp, name), Action::Patch { subresource: None, operations }).await
    }
}

fn status(node: &str) -> Value {
    json!({"items": [{"egressIP": "172.18.0.100", "node": node}]})
}

async fn with_egress_ip() -> (Server, Client, Value) {
    let server = Server::take().await.unwrap();
    server.install_crds(true).await.unwrap();
    let client = admin(&server);
    let object = create(&client, &egress_ip("a", &["172.18.0.100"])).await;
    (server, client, object)
}

#[tokio::test]
async fn a_patch_gives_back_what_is_stored_now() {
    let (_server, client, object) = with_egress_ip().await;
    let version = &object["metadata"]["resourceVersion"];
    let mut writes = Writes::new(client.clone());
    let guarded = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/status", "value": status("n")},
    ]);
    let stored = writes.patch("a", guarded.clone()).await.unwrap().unwrap();
    assert_eq!((&stored["status"], stored["kind"].as_str()), (&status("n"), Some("EgressIP")));
    assert_ne!(&stored["metadata"]["resourceVersion"], version);
    assert_eq!(stored.pointer("/metadata/managedFields"), None);

    // The guard holds no more: the answer is the object as it is.
    let again = writes.patch("a", guarded).await;
    assert_eq!(again, Err(WriteError::Conflict { current: Some(stored) }));
}

#[tokio::test]
async fn a_patch_that_does_not_fit_is_a_conflict_whatever_in_it_does_not() {
    let (_server, client, _) = with_egress_ip().await;
    let mut writes = Writes::new(client.clone());
    for operation in [
        json!({"op": "test", "path": "/status/items", "value": []}),
        json!({"op": "test", "path": "/spec/egressIPs", "value": ["172.18.0.101"]}),
        json!({"op": "remove", "path": "/metadata/annotations/none"}),
        json!({"op": "replace", "path": "/status/items/3", "value": {}}),
        json!({"op": "add", "path": "/metadata/annotations/k8s.ovn.org~1egressip-mark", "value": "50000"}),
    ] {
        let result = writes.patch("a", json!([operation])).await;
        let Err(WriteError::Conflict { current: Some(current) }) = result else { panic!("{operation}: {result:?}") };
        assert_eq!(current["metadata"]["name"], "a");
    }
}

#[tokio::test]
async fn what_the_schema_or_the_server_forbids_is_invalid() {
    let (_server, client, _) = with_egress_ip().await;
    let mut writes = Writes::new(client.clone());
    for operation in [
        json!({"op": "add", "path": "/status", "value": {"items": "none"}}),
        json!({"op": "add", "path": "/metadata/labels", "value": {"a": "not/legal"}}),
    ] {
        let result = writes.patch("a", json!([operation])).await;
        assert!(matches!(result, Err(WriteError::Invalid { .. })), "{operation}: {result:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_gone() {
    let server = Server::take().await.unwrap();
    let client = admin(&server);
    let mut writes = Writes::new(client.clone());
    let patch = json!([{"op": "add", "path": "/status", "value": status("n")}]);
    assert_eq!(writes.patch("a", patch.clone()).await, Err(WriteError::Gone), "no such kind");
    server.install_crds(false).await.unwrap();
    assert_eq!(writes.patch("a", patch).await, Err(WriteError::Gone), "no such object");
}

#[tokio::test]
async fn no_right_of_access_and_an_admission_policy_are_denials() {
    let (server, client, _) = with_egress_ip().await;
    let mut nobodys = Writes::new(egret_controller::client(server.config_as("nobody")).unwrap());
    let patch = |mark: &str| json!([{"op": "add", "path": "/metadata/annotations", "value": {"mark": mark}}]);
    let refused = nobodys.patch("a", patch("1")).await;
    assert!(matches!(refused, Err(WriteError::Denied { .. })), "{refused:?}");

    for (name, reason) in [("no-a", None), ("no-b", Some("Forbidden")), ("no-c", Some("RequestEntityTooLarge"))] {
        let mut rule = json!({"expression": "false", "message": "not this mark"});
        rule["reason"] = json!(reason.unwrap_or("Invalid"));
        let rules = [json!({
            "apiGroups": ["k8s.ovn.org"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["egressips"],
        })];
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {"matchConstraints": {"resourceRules": rules}, "validations": [rule]},
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        });
        create(&client, &policy).await;
        create(&client, &binding).await;
        server.settle_admission().await.unwrap();
        let refused = Writes::new(client.clone()).patch("a", patch(name)).await;
        let Err(WriteError::Denied { message }) = refused else { panic!("{name}: {refused:?}") };
        assert!(message.contains("not this mark"), "{message}");
        delete(&client, &binding).await;
        delete(&client, &policy).await;
        server.settle_admission().await.unwrap();
    }
}

fn config(node: &str) -> Value {
    json!({
        "apiVersion": "cloud.network.openshift.io/v1",
        "kind": "CloudPrivateIPConfig",
        "metadata": {"name": "172.18.0.100", "annotations": {"k8s.ovn.org/egressip-owner-ref": "a"}},
        "spec": {"node": node},
    })
}

fn delete_of(object: &Value) -> Action {
    let text = |key: &str| object["metadata"][key].as_str().unwrap().to_owned();
    Action::Delete { uid: text("uid"), resource_version: text("resourceVersion") }
}

#[tokio::test]
async fn an_object_is_created_once_and_deleted_only_as_it_was_seen() {
    let (_server, client, _) = with_egress_ip().await;
    let mut writes = Writes::new(client.clone());
    let key = ObjectKey::cluster(Kind::CloudPrivateIpConfig, "172.18.0.100");
    let created = writes.write(key.clone(), Action::Create(config("n"))).await.unwrap().unwrap();
    assert_eq!(created["spec"]["node"], "n");
    let again = writes.write(key.clone(), Action::Create(config("m"))).await;
    assert_eq!(again, Err(WriteError::Conflict { current: Some(created.clone()) }));

    merge(&client, &config("n"), json!({"metadata": {"finalizers": ["example.com/cloud"]}})).await;
    let outdated = writes.write(key.clone(), delete_of(&created)).await;
    let Err(WriteError::Conflict { current: Some(current) }) = outdated else { panic!("{outdated:?}") };

    // With a finalizer it is still there, on its way.
    let going = writes.write(key.clone(), delete_of(&current)).await.unwrap().unwrap();
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    merge(&client, &config("n"), json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(get(&client, &config("n")).await, None);
    assert_eq!(writes.write(key.clone(), delete_of(&going)).await, Err(WriteError::Gone));

    let created = writes.write(key.clone(), Action::Create(config("n"))).await.unwrap().unwrap();
    assert_eq!(writes.write(key, delete_of(&created)).await, Ok(None));
}

#[tokio::test]
async fn a_service_has_its_host_in_the_subresource_and_a_node_its_label() {
    let (_server, client, _) = with_egress_ip().await;
    create(&client, &egress_service("default", "svc")).await;
    create(&client, &node("n", 1)).await;
    let mut writes = Writes::new(client.clone());
    let operations = vec![json!({"op": "add", "path": "/status", "value": {"host": "n"}})];
    let action = Action::Patch { subresource: Some("status"), operations };
    let stored = writes.write(ObjectKey::namespaced(Kind::EgressService, "default", "svc"), action).await;
    assert_eq!(stored.unwrap().unwrap()["status"]["host"], "n");

    let operations =
        vec![json!({"op": "add", "path": "/metadata/labels/egress-service.k8s.ovn.org~1default-svc", "value": ""})];
    let action = Action::Patch { subresource: None, operations };
    let stored = writes.write(ObjectKey::cluster(Kind::Node, "n"), action).await.unwrap().unwrap();
    assert_eq!(stored["metadata"]["labels"]["egress-service.k8s.ovn.org/default-svc"], "");
    // Cut like what the watch brings.
    assert_eq!(stored["metadata"]["annotations"].as_object().unwrap().len(), 3);
}

#[tokio::test]
async fn nothing_is_written_without_a_right_that_lasts() {
    let (server, client, object) = with_egress_ip().await;
    let mut writes = Writes::new(client.clone());
    let patch = json!([{"op": "add", "path": "/status", "value": status("n")}]);
    for standing in [Standing::default(), right(Duration::ZERO), right(Duration::from_millis(100))] {
        writes.standing.send_replace(standing);
        let refused = writes.patch("a", patch.clone()).await;
        assert!(matches!(refused, Err(WriteError::Transient { .. })), "{refused:?}");
    }
    assert_eq!(
        get(&client, &object).await.unwrap()["metadata"]["resourceVersion"],
        object["metadata"]["resourceVersion"]
    );

    // A write does not outlast the right, however slow the API server is.
    server.pause_etcd().unwrap();
    writes.standing.send_replace(right(Duration::from_millis(600)));
    let began = Instant::now();
    let refused = writes.patch("a", patch).await;
    assert!(matches!(refused, Err(WriteError::Transient { .. })), "{refused:?}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    server.resume_etcd().unwrap();
}

#[tokio::test]
async fn what_an_earlier_leadership_decided_is_not_written_in_a_later_one() {
    let (_server, client, object) = with_egress_ip().await;
    let patch = json!([{"op": "add", "path": "/status", "value": status("n")}]);
    let mut writes = Writes::new(client.clone());
    // Lost and won again before the write had its turn.
    writes.standing.send_replace(right_of(2, PATIENCE));
    let refused = writes.patch("a", patch.clone()).await;
    assert!(matches!(refused, Err(WriteError::Transient { .. })), "{refused:?}");
    assert_eq!(get(&client, &object).await.unwrap(), object);
    writes.standing.send_replace(right(PATIENCE));
    assert!(writes.patch("a", patch).await.is_ok());
}

#[tokio::test]
async fn an_api_server_that_is_away_is_tried_again() {
    let (server, client, object) = with_egress_ip().await;
    let patch = json!([{"op": "add", "path": "/status", "value": status("n")}]);
    let mut writes = Writes::new(client.clone());
    server.kill_api();
    let away = writes.patch("a", patch.clone()).await;
    assert!(matches!(away, Err(WriteError::Transient { retry_after: None, .. })), "{away:?}");
    server.start_api().await.unwrap();
    assert!(writes.patch("a", patch).await.is_ok());
    assert_eq!(get(&client, &object).await.unwrap()["status"], status("n"));
}

/// Lets a user have one request under way, and gives him all rights.
async fn throttle(client: &Client, user: &str) -> Value {
    let subject = json!({"kind": "User", "user": {"name": user}});
    let limited = json!({
        "nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"},
    });
    let rules = json!([{
        "subjects": [subject],
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true}],
    }]);
    let flow = |kind: &str, spec: Value| {
        let api_version = "flowcontrol.apiserver.k8s.io/v1";
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": user}, "spec": spec})
    };
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    create(client, &binding).await;
    create(client, &flow("PriorityLevelConfiguration", json!({"type": "Limited", "limited": limited}))).await;
    let spec = json!({"priorityLevelConfiguration": {"name": user}, "matchingPrecedence": 2, "rules": rules});
    create(client, &flow("FlowSchema", spec)).await
}

#[tokio::test]
async fn an_overloaded_api_server_is_left_alone_for_as_long_as_it_says() {
    let (server, client, _) = with_egress_ip().await;
    let schema = throttle(&client, "throttled").await;
    let throttled = egret_controller::client(server.config_as("throttled")).unwrap();
    eventually("the limit to be in effect", async || {
        let request = http::Request::get("/apis/k8s.ovn.org/v1/egressips").body(kube::client::Body::empty()).unwrap();
        let answer = throttled.send(request).await.unwrap();
        let uid = answer.headers().get("x-kubernetes-pf-flowschema-uid")?.to_str().ok()?;
        (answer.status().is_success() && uid == schema["metadata"]["uid"]).then_some(())
    })
    .await;
    let mut writes = Writes::new(throttled);
    // One is under way, and hangs.
    server.pause_etcd().unwrap();
    let operations = vec![json!({"op": "add", "path": "/status", "value": status("n")})];
    let first = Action::Patch { subresource: None, operations };
    writes.orders.send(order(1, ObjectKey::cluster(Kind::EgressIp, "a"), first)).unwrap();
    let refused = eventually("a refusal", async || {
        let second = writes.patch("a", json!([{"op": "add", "path": "/status", "value": status("m")}])).await;
        matches!(second, Err(WriteError::Transient { retry_after: Some(_), .. })).then_some(second)
    });
    let Err(WriteError::Transient { retry_after, .. }) = refused.await else { unreachable!("it matched") };
    assert_eq!(retry_after, Some(Duration::from_secs(1)));
    server.resume_etcd().unwrap();
}

#[tokio::test]
async fn no_more_than_so_many_are_under_way_and_those_end_when_it_stops() {
    // A server that never answers; each request needs a connection of its own.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = egret_controller::client(kube::Config::new(url.parse().unwrap())).unwrap();
    let (results_in, mut results) = mpsc::unbounded_channel();
    let (orders, ordered) = mpsc::unbounded_channel();
    let (_standing, standing_out) = watch::channel(right(Duration::from_secs(2)));
    let stop = CancellationToken::new();
    let writer = Writer::new(client, standing_out, results_in, Arc::new(Metrics::new()), 2);
    let running = tokio::spawn(writer.run(ordered, stop.clone()));
    for id in 0..5 {
        let action = Action::Patch { subresource: None, operations: Vec::new() };
        orders.send(order(id, ObjectKey::cluster(Kind::EgressIp, "a"), action)).unwrap();
    }
    let two = [listener.accept().await.unwrap(), listener.accept().await.unwrap()];
    assert!(timeout(Duration::from_millis(500), listener.accept()).await.is_err(), "there is no third");
    stop.cancel();
    timeout(PATIENCE, running).await.expect("it ends").unwrap();
    let mut ended = Vec::new();
    while let Some(Input::Written { id: WriteId(id), result: Err(WriteError::Transient { .. }) }) = results.recv().await
    {
        ended.push(id);
    }
    ended.sort_unstable();
    assert_eq!(ended, [0, 1]);
    drop(two);
}
