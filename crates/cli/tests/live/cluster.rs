//! What is stored in the API server of a test.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use egret_api::Kind;
use egret_testkit::server::Server;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn node(name: &str, host: u8) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"k8s.ovn.org/egress-assignable": "", "kubernetes.io/hostname": name},
            "annotations": {
                "k8s.ovn.org/node-primary-ifaddr": format!(r#"{{"ipv4":"192.168.50.{host}/24"}}"#),
                "k8s.ovn.org/host-cidrs": format!(r#"["192.168.50.{host}/24"]"#),
            },
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// An EgressIP with the default selector; `items` are its recorded (node, address) pairs.
pub(crate) fn egress_ip(name: &str, addresses: &[&str], items: &[(&str, &str)]) -> Value {
    let items: Vec<Value> = items.iter().map(|(node, address)| json!({"node": node, "egressIP": address})).collect();
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": {"name": name},
        "spec": {"egressIPs": addresses, "namespaceSelector": {}},
        "status": {"items": items},
    })
}

fn api(server: &Server, object: &Value) -> Api<DynamicObject> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let api_version = text("/apiVersion").expect("it has one");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, text("/kind").expect("it has one"));
    let resource = ApiResource::from_gvk(&kind);
    match text("/metadata/namespace") {
        Some(namespace) => Api::namespaced_with(server.client(), namespace, &resource),
        None => Api::all_with(server.client(), &resource),
    }
}

/// Creates an object, with its status.
pub(crate) async fn store(server: &Server, object: Value) {
    let api = api(server, &object);
    let created = api.create(&PostParams::default(), &serde_json::from_value(object.clone()).expect("an object")).await;
    created.unwrap_or_else(|error| panic!("{object}: {error}"));
    // An EgressIP has no subresource for it.
    if let Some(status) = object.get("status").filter(|_| object["kind"] != "EgressIP") {
        let name = object["metadata"]["name"].as_str().expect("it has one");
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &patch).await.expect("the status is good");
    }
}

/// Changes an object.
pub(crate) async fn merge(server: &Server, like: &Value, patch: Value) {
    let name = like["metadata"]["name"].as_str().expect("it has one");
    api(server, like).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("it can be changed");
}

/// Everything as one file, as kubectl would write it.
pub(crate) async fn as_file(server: &Server) -> (String, TempDir) {
    let mut items = Vec::new();
    for kind in Kind::ALL {
        let (group, version) = kind.api_version().split_once('/').unwrap_or(("", kind.api_version()));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind.name()));
        let api: Api<DynamicObject> = Api::all_with(server.client(), &resource);
        for object in api.list(&kube::api::ListParams::default()).await.expect("it is installed") {
            let mut value = serde_json::to_value(object).expect("an object is JSON");
            value["apiVersion"] = json!(kind.api_version());
            value["kind"] = json!(kind.name());
            items.push(value);
        }
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("cluster.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    std::fs::write(&path, list.to_string()).expect("a file can be written");
    (path.display().to_string(), folder)
}

/// Uninstalls a kind and waits until it is not served any more.
pub(crate) async fn delete_crd(server: &Server, name: &str) {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"});
    api(server, &crd).delete(name, &DeleteParams::default()).await.expect("it is there");
    let (plural, group) = name.split_once('.').expect("a name is PLURAL.GROUP");
    let path = format!("/apis/{group}/v1/{plural}");
    let start = Instant::now();
    loop {
        let request = http::Request::get(path.as_str()).body(Vec::new()).expect("a request");
        if server.client().request_text(request).await.is_err() {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{name} is still served");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A pod that holds the controller's Lease and has an address.
pub(crate) async fn install_leader(server: &Server, pod: &str, address: SocketAddr) {
    let namespace = "egret-system";
    store(server, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await;
    store(
        server,
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod, "namespace": namespace},
            "spec": {"nodeName": "worker-a", "containers": [{
                "name": "controller", "image": "egret", "ports": [{"name": "admin", "containerPort": address.port()}],
            }]},
            "status": {"phase": "Running", "podIP": address.ip(), "podIPs": [{"ip": address.ip()}]},
        }),
    )
    .await;
    store(
        server,
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "egret-controller", "namespace": namespace},
            "spec": {"holderIdentity": format!("{pod}_0815"), "leaseDurationSeconds": 15},
        }),
    )
    .await;
}

/// Lets somebody list what the commands read, and nothing else.
pub(crate) async fn allow_to_list(server: &Server, user: &str) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": user},
        "rules": [{
            "apiGroups": ["", "discovery.k8s.io", "k8s.ovn.org", "cloud.network.openshift.io"],
            "resources": ["nodes", "services", "endpointslices", "egressips", "egressservices", "cloudprivateipconfigs"],
            "verbs": ["list"],
        }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    store(server, role).await;
    store(server, binding).await;
    // The authorizer hears of it by a watch.
    let start = Instant::now();
    let nodes: Api<DynamicObject> =
        Api::all_with(server.client_as(user), &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node")));
    while nodes.list(&kube::api::ListParams::default()).await.is_err() {
        assert!(start.elapsed() < PATIENCE, "{user} may still not list nodes");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
