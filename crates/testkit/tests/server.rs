//! The test server itself: it is real, it is empty, it is gone afterwards.

// Helpers of tests are no production code.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::env;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use egret_testkit::objects;
use egret_testkit::patience::eventually;
use egret_testkit::server::{Part, Server};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

const SERVICE_ACCOUNT: &str = "system:serviceaccount:egret:egret";

/// Where the process that is to be killed tells what it has started.
const TELL: &str = "EGRET_TEST_TELL";

async fn create<K>(client: &Client, object: Value) -> K
where
    K: Resource<Scope = ClusterResourceScope, DynamicType = ()> + Clone + Serialize + DeserializeOwned + Debug,
{
    let object = serde_json::from_value(object).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &object).await.unwrap()
}

async fn create_in<K>(client: &Client, namespace: &str, object: Value) -> K
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Serialize + DeserializeOwned + Debug,
{
    let object = serde_json::from_value(object).unwrap();
    Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &object).await.unwrap()
}

async fn names<K>(client: &Client) -> BTreeSet<String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let list = Api::<K>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    list.iter().map(kube::ResourceExt::name_any).collect()
}

fn egress_ips(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("k8s.ovn.org", "v1", "EgressIP");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

fn egress_ip(name: &str) -> DynamicObject {
    serde_json::from_value(objects::egress_ip(name, &["192.0.2.1"])).unwrap()
}

/// Forbids everybody to make a configuration map.
async fn forbid_config_maps(client: &Client) {
    create::<ValidatingAdmissionPolicy>(
        client,
        json!({"metadata": {"name": "no"}, "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]},
            ]},
            "validations": [{"expression": "false"}],
        }}),
    )
    .await;
    let binding = json!({"metadata": {"name": "no"}, "spec": {"policyName": "no", "validationActions": ["Deny"]}});
    create::<ValidatingAdmissionPolicyBinding>(client, binding).await;
}

/// Makes one of everything that tests make, and changes what was there.
async fn make_a_mess(server: &Server) {
    let client = server.client();
    server.install_crds(true).await.unwrap();
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.org/never"]}});
    create::<Namespace>(&client, held.clone()).await;
    create_in::<ConfigMap>(&client, "held", held.clone()).await;
    create::<Node>(&client, held).await;
    egress_ips(&client).create(&PostParams::default(), &egress_ip("a")).await.unwrap();
    let port = json!({"port": 80, "nodePort": 30080});
    create_in::<Service>(
        &client,
        "default",
        json!({"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [port]}}),
    )
    .await;
    create::<ClusterRole>(&client, json!({"metadata": {"name": "all"}, "rules": []})).await;
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": SERVICE_ACCOUNT});
    create::<ClusterRoleBinding>(&client, json!({"metadata": {"name": "all"}, "roleRef": role, "subjects": [subject]}))
        .await;
    let namespaces = Api::<Namespace>::all(client.clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"changed": "yes"}}}));
    namespaces.patch("default", &PatchParams::default(), &label).await.unwrap();
    forbid_config_maps(&client).await;
    server.settle_admission().await.unwrap();
    let config_map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "b"}})).unwrap();
    let refused = Api::namespaced(client, "default").create(&PostParams::default(), &config_map).await.unwrap_err();
    assert!(refused.to_string().contains("ValidatingAdmissionPolicy 'no'"), "{refused}");
}

/// Waits for its turn with just this one.
async fn take_again(address: &http::Uri) -> Server {
    for _ in 0..20 {
        let server = Server::take().await.unwrap();
        if server.config().cluster_url == *address {
            return server;
        }
    }
    panic!("it could not be emptied, and was replaced");
}

#[tokio::test]
async fn what_one_test_leaves_the_next_does_not_find() {
    let server = Server::take().await.unwrap();
    let address = server.config().cluster_url;
    let client = server.client();
    let untouched = (names::<Namespace>(&client).await, names::<ClusterRole>(&client).await);
    make_a_mess(&server).await;
    drop(server);

    let server = take_again(&address).await;
    let client = server.client();
    assert_eq!((names::<Namespace>(&client).await, names::<ClusterRole>(&client).await), untouched);
    assert_eq!(names::<Node>(&client).await, BTreeSet::new());
    assert_eq!(names::<Service>(&client).await, BTreeSet::from(["kubernetes".to_owned()]));
    let default = Api::<Namespace>::all(client.clone()).get("default").await.unwrap();
    assert!(!default.labels().contains_key("changed"), "{default:?}");
    let unknown = egress_ips(&client).list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&unknown, kube::Error::Api(status) if status.code == 404), "{unknown}");
    assert_eq!(server.audit().unwrap(), []);
    // The same can be made again: names, node ports and definitions are free, and the policy forbids nothing any more.
    create_in::<ConfigMap>(&client, "default", json!({"metadata": {"name": "b"}})).await;
    make_a_mess(&server).await;
}

#[tokio::test]
async fn two_servers_in_use_are_two() {
    let (one, other) = tokio::join!(Server::take(), Server::take());
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_ne!(one.config().cluster_url, other.config().cluster_url);
    create::<Node>(&one.client(), json!({"metadata": {"name": "here"}})).await;
    assert_eq!(names::<Node>(&other.client()).await, BTreeSet::new());
}

#[tokio::test]
async fn somebody_else_has_their_own_rights_only_and_the_audit_log_knows_who_wrote() {
    let server = Server::take().await.unwrap();
    let egret = server.client_as(SERVICE_ACCOUNT);
    let nodes = Api::<Node>::all(egret.clone());
    let refused = nodes.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
    // By the group that the server knows a service account to be in.
    let rules = json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "create"]}]);
    create::<ClusterRole>(&server.client(), json!({"metadata": {"name": "nodes"}, "rules": rules})).await;
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "nodes"});
    let group =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts:egret"});
    let binding = json!({"metadata": {"name": "nodes"}, "roleRef": role, "subjects": [group]});
    create::<ClusterRoleBinding>(&server.client(), binding).await;
    eventually("the binding to take effect", async || nodes.list(&ListParams::default()).await.ok()).await;
    create::<Node>(&egret, json!({"metadata": {"name": "mine"}})).await;

    let writes = server.audit().unwrap();
    let told: Vec<_> = writes.iter().map(|w| (w.user.as_str(), w.verb.as_str(), w.name.as_str(), w.code)).collect();
    let expected = [
        ("admin", "create", "nodes", 201),
        ("admin", "create", "nodes", 201),
        (SERVICE_ACCOUNT, "create", "mine", 201),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn an_api_server_that_was_killed_comes_back_with_all_it_had() {
    let server = Server::take().await.unwrap();
    create::<Node>(&server.client(), json!({"metadata": {"name": "kept"}})).await;
    server.kill_api();
    let mut config = server.config();
    config.default_retry = false;
    let nodes = Api::<Node>::all(Client::try_from(config).unwrap());
    assert!(nodes.get("kept").await.is_err());
    server.start_api().await.unwrap();
    nodes.get("kept").await.unwrap();
    server.stop_api().await.unwrap();
    assert!(nodes.get("kept").await.is_err());
    // It is left like this: whoever is next gets a running one.
    let address = server.config().cluster_url;
    drop(server);
    let server = take_again(&address).await;
    assert_eq!(names::<Node>(&server.client()).await, BTreeSet::new());
}

#[tokio::test]
async fn while_the_store_is_frozen_a_write_hangs() {
    let server = Server::take().await.unwrap();
    let client = server.client();
    server.pause_etcd().unwrap();
    let write = create::<Node>(&client, json!({"metadata": {"name": "late"}}));
    tokio::pin!(write);
    assert!(timeout(Duration::from_millis(500), &mut write).await.is_err());
    server.resume_etcd().unwrap();
    assert_eq!(write.await.name_any(), "late");
    // A test that forgets to resume it harms nobody.
    server.pause_etcd().unwrap();
    let address = server.config().cluster_url;
    drop(server);
    assert_eq!(names::<Node>(&take_again(&address).await.client()).await, BTreeSet::new());
}

#[tokio::test]
async fn controllers_of_kubernetes_work_until_the_server_is_given_back() {
    let server = Server::take().await.unwrap();
    server.start_controller_manager(&["endpointslice-controller"]).await.unwrap();
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
    create_in::<Service>(&server.client(), "default", json!({"metadata": {"name": "web"}, "spec": spec})).await;
    let slices = Api::<EndpointSlice>::namespaced(server.client(), "default");
    let of_web = ListParams::default().labels("kubernetes.io/service-name=web");
    eventually("a slice", async || slices.list(&of_web).await.unwrap().items.pop()).await;
    let folder = server.kubeconfig().unwrap().parent().unwrap().to_owned();
    assert_eq!(running(&folder, Part::ControllerManager).len(), 1);
    drop(server);
    assert_eq!(running(&folder, Part::ControllerManager).len(), 0);
}

/// The processes of a program that were told something in this folder.
fn running(folder: &Path, part: Part) -> Vec<PathBuf> {
    let folder = folder.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    processes
        .filter(|process| {
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            let program = line.split('\0').next().unwrap_or_default();
            program.ends_with(part.name()) && line.contains(folder)
        })
        .collect()
}

#[tokio::test]
async fn nothing_is_left_of_a_server_whose_test_was_killed() {
    let told = tempfile::tempdir().unwrap();
    let told = told.path().join("folder");
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", "victim", "--ignored"])
        .env(TELL, &told)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let text = eventually("the victim to have a server", async || {
        assert!(victim.try_wait().unwrap().is_none(), "the victim has ended by itself");
        fs::read_to_string(&told).ok().filter(|text| text.ends_with('\n'))
    })
    .await;
    let folder = PathBuf::from(text.trim_end());
    let parts = [Part::Etcd, Part::ApiServer, Part::ControllerManager];
    for part in parts {
        assert_eq!(running(&folder, part).len(), 1, "{}", part.name());
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    for part in parts {
        eventually(&format!("{} to be gone", part.name()), async || running(&folder, part).is_empty().then_some(()))
            .await;
    }
    eventually("the folder to be gone", async || (!folder.exists()).then_some(())).await;
}

/// Not a test: what the test above starts and kills.
#[tokio::test]
#[ignore = "waits to be killed"]
async fn victim() {
    let told = env::var_os(TELL).expect("started by a test");
    let server = Server::take().await.unwrap();
    server.start_controller_manager(&["namespace-controller"]).await.unwrap();
    // It is the program itself only after the shell that starts it has become it.
    let folder = server.kubeconfig().unwrap().parent().unwrap().to_owned();
    eventually("it to run", async || (running(&folder, Part::ControllerManager).len() == 1).then_some(())).await;
    fs::write(told, format!("{}\n", folder.display())).unwrap();
    std::future::pending::<()>().await;
}
