//! The cluster: nodes and objects of the fixture on a real API server.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use egret_core::Platform;
use egret_testkit::fixture;
use egret_testkit::server::Server;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

pub(crate) const NODES: usize = 500;
pub(crate) const OBJECTS: usize = 1_000;
/// What every object asks for.
pub(crate) const ADDRESSES: usize = 2;

/// Where the controller's Lease is.
const NAMESPACE: &str = "egret-system";
const LEASE: &str = "egret-controller";

/// So many requests of ours are under way at once.
const CLIENTS: usize = 16;

pub(crate) struct Cluster {
    server: Server,
    /// What is probed of each node.
    probed: BTreeMap<String, IpAddr>,
    objects: Vec<DynamicObject>,
}

impl Cluster {
    /// With all its nodes, and without an object.
    pub(crate) async fn new() -> anyhow::Result<Self> {
        let server = Server::take().await?;
        server.install_crds(false).await?;
        let namespaces: Api<Namespace> = Api::all(server.client());
        let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
        let (mut nodes, mut objects, mut probed) = (Vec::new(), Vec::new(), BTreeMap::new());
        for mut value in fixture::objects(NODES, OBJECTS) {
            make_new(&mut value);
            if value["kind"] != "Node" {
                objects.push(serde_json::from_value(value)?);
                continue;
            }
            make_ready(&mut value);
            let node =
                egret_api::node::from_value(&value, Platform::BareMetal).object.context("a node of the fixture")?;
            let address = node.management_addresses().first().copied().context("an address to probe")?;
            probed.insert(node.name.to_string(), address);
            nodes.push(serde_json::from_value(value)?);
        }
        create(&Api::<Node>::all(server.client()), &nodes).await?;
        Ok(Self { server, probed, objects })
    }

    pub(crate) fn kubeconfig(&self) -> anyhow::Result<PathBuf> {
        Ok(self.server.kubeconfig()?)
    }

    pub(crate) fn egress_ips(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("k8s.ovn.org", "v1", "EgressIP");
        Api::all_with(self.server.client(), &ApiResource::from_gvk_with_plural(&kind, "egressips"))
    }

    /// Whether a controller has the Lease.
    pub(crate) async fn is_led(&self) -> anyhow::Result<bool> {
        let leases: Api<Lease> = Api::namespaced(self.server.client(), NAMESPACE);
        let lease = leases.get_opt(LEASE).await?;
        let holder = lease.and_then(|lease| lease.spec?.holder_identity);
        Ok(holder.is_some_and(|holder| !holder.is_empty()))
    }

    /// Returns when the last one is stored.
    pub(crate) async fn create_objects(&self) -> anyhow::Result<()> {
        create(&self.egress_ips(), &self.objects).await
    }

    /// All at once. Returns when the last node is stored.
    pub(crate) async fn set_ready(&self, nodes: &[String], ready: bool) -> anyhow::Result<()> {
        let status = if ready { "True" } else { "Unknown" };
        let change = json!({"status": {"conditions": [{"type": "Ready", "status": status, "reason": "Benchmark"}]}});
        let api: Api<Node> = Api::all(self.server.client());
        let (patch, parameters) = (Patch::Strategic(change), PatchParams::default());
        let patches = nodes.iter().map(|node| api.patch_status(node, &parameters, &patch));
        futures::future::try_join_all(patches).await?;
        Ok(())
    }

    /// Where these nodes are probed.
    pub(crate) fn probed(&self, nodes: &[String]) -> Vec<IpAddr> {
        nodes.iter().filter_map(|node| self.probed.get(node)).copied().collect()
    }

    /// How often somebody has written to an EgressIP after it was created: nobody does but the controller.
    pub(crate) fn writes_to_objects(&self) -> anyhow::Result<usize> {
        let writes = self.server.audit()?;
        Ok(writes.iter().filter(|write| write.resource == "egressips" && write.verb != "create").count())
    }
}

/// As if nobody had ever seen it.
fn make_new(object: &mut Value) {
    let is_node = object["kind"] == "Node";
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    for key in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove(key);
    }
    if !is_node {
        // The mark is the controller's to give.
        metadata.remove("annotations");
    }
}

fn make_ready(node: &mut Value) {
    for condition in node["status"]["conditions"].as_array_mut().into_iter().flatten() {
        if condition["type"] == "Ready" {
            condition["status"] = "True".into();
        }
    }
}

async fn create<K>(api: &Api<K>, objects: &[K]) -> anyhow::Result<()>
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let parameters = PostParams::default();
    let creations = objects.iter().map(|object| api.create(&parameters, object));
    stream::iter(creations).buffer_unordered(CLIENTS).try_for_each(|_| async { Ok(()) }).await?;
    Ok(())
}
