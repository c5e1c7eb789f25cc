//! The API server's objects as plain JSON.

use std::collections::BTreeMap;

use egret_api::{Kind, ObjectKey};
use futures::future::try_join_all;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

/// Only names and versions: the rest of a list is not looked at.
const NAMES_ONLY: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// A client that speaks JSON.
#[derive(Clone)]
pub(super) struct Objects {
    client: Client,
}

/// A part of an object that is written apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Status,
}

impl Objects {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(super) async fn create(&self, key: &ObjectKey, object: &Value) -> kube::Result<Value> {
        self.send(Method::POST, &path(key.kind, key.namespace.as_deref()), Some(object)).await
    }

    /// What an object would be stored as.
    pub(super) async fn rehearse(&self, key: &ObjectKey, object: &Value) -> kube::Result<Value> {
        let path = format!("{}?dryRun=All", path(key.kind, key.namespace.as_deref()));
        self.send(Method::POST, &path, Some(object)).await
    }

    pub(super) async fn get(&self, key: &ObjectKey) -> kube::Result<Value> {
        self.send(Method::GET, &path_of(key), None).await
    }

    pub(super) async fn replace(&self, key: &ObjectKey, part: Part, object: &Value) -> kube::Result<Value> {
        let status = if part == Part::Status { "/status" } else { "" };
        self.send(Method::PUT, &format!("{}{status}", path_of(key)), Some(object)).await
    }

    pub(super) async fn delete(&self, key: &ObjectKey) -> kube::Result<Value> {
        self.send(Method::DELETE, &path_of(key), None).await
    }

    /// A namespace that is there already is as good as a new one.
    pub(super) async fn create_namespace(&self, name: &str) -> kube::Result<()> {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        match self.send(Method::POST, "/api/v1/namespaces", Some(&namespace)).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            result => result.map(drop),
        }
    }

    /// What a controller may do is proven elsewhere.
    pub(super) async fn grant_everything(&self, user: &str) -> kube::Result<()> {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": "egret-stage" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        });
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        self.send(Method::POST, path, Some(&binding)).await.map(drop)
    }

    /// The version of each stored object.
    pub(super) async fn versions(&self, kinds: &[Kind]) -> kube::Result<BTreeMap<ObjectKey, u64>> {
        let lists = kinds.iter().map(|kind| async move {
            let request = Request::get(path(*kind, None)).header("Accept", NAMES_ONLY);
            let list: Value = self.client.request(request.body(Vec::new()).map_err(kube::Error::HttpError)?).await?;
            Ok::<_, kube::Error>((*kind, list))
        });
        let mut versions = BTreeMap::new();
        for (kind, list) in try_join_all(lists).await? {
            for item in list["items"].as_array().into_iter().flatten() {
                let text = |field: &str| item["metadata"][field].as_str().map(str::to_owned);
                let key = ObjectKey { kind, namespace: text("namespace"), name: text("name").unwrap_or_default() };
                if !is_the_servers_own(&key) {
                    versions.insert(key, version_of(item));
                }
            }
        }
        Ok(versions)
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> kube::Result<Value> {
        let request = Request::builder().method(method).uri(path).header("Content-Type", "application/json");
        let body = body.map(serde_json::to_vec).transpose().map_err(kube::Error::SerdeError)?;
        self.client.request(request.body(body.unwrap_or_default()).map_err(kube::Error::HttpError)?).await
    }
}

/// Where the objects of a kind are.
pub(super) fn path(kind: Kind, namespace: Option<&str>) -> String {
    let version = kind.api_version();
    let root = if version.contains('/') { "apis" } else { "api" };
    let namespace = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
    format!("/{root}/{version}/{namespace}{}s", kind.as_str())
}

fn path_of(key: &ObjectKey) -> String {
    format!("{}/{}", path(key.kind, key.namespace.as_deref()), key.name)
}

/// `metadata.resourceVersion`: counts up over all kinds, for one etcd holds them all.
pub(super) fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The Service under which the API server itself can be reached, and its endpoints.
pub(super) fn is_the_servers_own(key: &ObjectKey) -> bool {
    key.namespace.as_deref() == Some("default") && key.name == "kubernetes"
}
