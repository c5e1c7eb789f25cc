//! What is stored in the API server of a test.

use std::net::SocketAddr;

use egret_api::Kind;
use egret_testkit::objects::node_at;
use egret_testkit::patience::eventually;
use egret_testkit::server::Server;
use egret_testkit::server::hand::{create, delete};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) fn node(name: &str, host: u8) -> Value {
    node_at(name, &format!("192.168.50.{host}/24"))
}

/// Creates an object, with its status.
pub(crate) async fn store(server: &Server, object: Value) {
    create(&server.client(), &object).await;
}

/// Everything as one file, as kubectl would write it.
pub(crate) async fn as_file(server: &Server) -> (String, TempDir) {
    let mut items = Vec::new();
    for kind in Kind::ALL {
        let (group, version) = kind.api_version().split_once('/').unwrap_or(("", kind.api_version()));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind.name()));
        let api: Api<DynamicObject> = Api::all_with(server.client(), &resource);
        for object in api.list(&ListParams::default()).await.expect("it is installed") {
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
    let metadata = json!({"name": name});
    let definition =
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata});
    delete(&server.client(), &definition).await;
    let (plural, group) = name.split_once('.').expect("a name is PLURAL.GROUP");
    let path = format!("/apis/{group}/v1/{plural}");
    eventually(&format!("{name} to be served no more"), async || {
        let request = http::Request::get(path.as_str()).body(Vec::new()).expect("a request");
        server.client().request_text(request).await.is_err().then_some(())
    })
    .await;
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
    let nodes: Api<DynamicObject> =
        Api::all_with(server.client_as(user), &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node")));
    let may = async || nodes.list(&ListParams::default()).await.is_ok().then_some(());
    eventually(&format!("{user} to be allowed to list nodes"), may).await;
}
