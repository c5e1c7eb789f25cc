//! A short life of a controller, in which it does everything that it can do.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use egret_brain::Answer;
use egret_controller::probe::Probes;
use egret_controller::{Config, Metrics, RunError, Shared, Surroundings};
use egret_core::NodeName;
use egret_testkit::server::Server;
use kube::Client;
use kube::client::ClientBuilder;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::objects::{egress_ip, endpoints, node, service};
use super::rights::{ACCOUNT, rights};
use super::tap::{Asked, Listing, Tap};
use crate::install::install;
use crate::manifests::Manifests;

const LIMIT: Duration = Duration::from_mins(1);
const OBJECTS: &str = "/apis/k8s.ovn.org/v1/egressips";
const SERVICE: &str = "/apis/k8s.ovn.org/v1/namespaces/shop/egressservices/web";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/egret-system/leases/egret-controller";
const REQUESTS: &str = "/apis/cloud.network.openshift.io/v1/cloudprivateipconfigs";
const ADDRESS: &str = "192.168.126.100";

/// Where the cluster runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Platform {
    BareMetal,
    Cloud,
}

/// A cluster for one life.
pub(super) struct Life {
    server: Server,
    platform: Platform,
}

/// All nodes answer.
struct Answering(UnboundedSender<(NodeName, Answer)>);

impl Probes for Answering {
    fn set_targets(&mut self, targets: BTreeMap<NodeName, Vec<IpAddr>>) {
        for node in targets.into_keys() {
            // Whoever listens may have ended.
            let _ = self.0.send((node, Answer::Alive));
        }
    }
}

/// A controller that runs as its service account.
struct Running {
    tap: Tap,
    stop: CancellationToken,
    ended: JoinHandle<Result<(), RunError>>,
}

impl Life {
    /// A cluster with the rights that these manifests give, and three nodes.
    pub(super) async fn with(manifests: &Manifests, platform: Platform) -> Self {
        let server = Server::take().await.expect("a server");
        server.install_crds(true).await.expect("definitions");
        let kept = ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
        let given = manifests.0.iter().filter(|object| kept.iter().any(|kind| object["kind"] == *kind)).cloned();
        install(&server, &Manifests(given.collect())).await;
        let begun = Instant::now();
        for right in rights(manifests) {
            while !right.in_effect(&server.client()).await {
                assert!(begun.elapsed() < LIMIT, "{right} is not in effect");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        let life = Self { server, platform };
        for number in 1..=3 {
            life.post("/api/v1/nodes", &node(number, platform)).await;
        }
        life
    }

    /// Lives it. What is denied first ends it.
    pub(super) async fn lived(self, listing: Listing) -> Result<(), Asked> {
        let running = self.run(listing);
        let lived = match self.placed(&running).await {
            Ok(()) if self.platform == Platform::Cloud => self.cloud(&running).await,
            Ok(()) => self.told(&running).await,
            Err(denied) => Err(denied),
        };
        running.stop.cancel();
        let ended = tokio::time::timeout(LIMIT, running.ended).await.expect("it stops").expect("it does not panic");
        ended.expect("it stops in good order");
        lived?;
        running.tap.denied().map_or(Ok(()), Err)?;
        let lease = self.get(LEASE).await.expect("the lease is there");
        assert_eq!(lease["spec"]["holderIdentity"], "", "it has given the lease up");
        Ok(())
    }

    fn run(&self, listing: Listing) -> Running {
        let rival = json!({
            "apiVersion": "cloud.network.openshift.io/v1",
            "kind": "CloudPrivateIPConfig",
            "metadata": {"name": ADDRESS, "annotations": {"k8s.ovn.org/egressip-owner-ref": "a"}},
            "spec": {"node": "n1"},
        });
        let tap = Tap::new(listing, self.server.client(), rival);
        let builder = ClientBuilder::try_from(self.server.config_as(ACCOUNT)).expect("a configuration");
        let client = builder.with_layer(&tap).build();
        let mut config = Config::new("egret-system", "pod_1");
        if self.platform == Platform::Cloud {
            config.options.platform = egret_core::Platform::Cloud;
        }
        let stop = CancellationToken::new();
        let (shared, questions) = Shared::new();
        let surroundings = Surroundings {
            client,
            metrics: Arc::new(Metrics::new()),
            shared: Arc::new(shared),
            questions,
            stop: stop.clone(),
        };
        let run = async move {
            Box::pin(egret_controller::run(&config, surroundings, |answers| Box::new(Answering(answers)))).await
        };
        Running { tap, stop, ended: tokio::spawn(run) }
    }

    /// Assigns an address, marks the object, elects a host for a service, labels the host.
    async fn placed(&self, running: &Running) -> Result<(), Asked> {
        self.post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await;
        self.post(OBJECTS, &egress_ip("a", ADDRESS)).await;
        self.post("/api/v1/namespaces/shop/services", &service()).await;
        let ingress = json!({"status": {"loadBalancer": {"ingress": [{"ip": "5.5.5.5"}]}}});
        self.patch("/api/v1/namespaces/shop/services/web/status", &ingress).await;
        self.post("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", &endpoints()).await;
        let egress_service = json!({
            "apiVersion": "k8s.ovn.org/v1",
            "kind": "EgressService",
            "metadata": {"name": "web"},
            "spec": {"sourceIPBy": "LoadBalancerIP"},
        });
        self.post("/apis/k8s.ovn.org/v1/namespaces/shop/egressservices", &egress_service).await;
        let host = self.until(running, "a host", async || text(&self.get(SERVICE).await?, "/status/host")).await?;
        let label = "/metadata/labels/egress-service.k8s.ovn.org~1shop-web";
        let labelled = async || text(&self.get(&format!("/api/v1/nodes/{host}")).await?, label);
        self.until(running, "a label", labelled).await?;
        let marked = async || {
            let object = self.get(&format!("{OBJECTS}/a")).await?;
            text(&object, "/metadata/annotations/k8s.ovn.org~1egressip-mark")
        };
        self.until(running, "a mark", marked).await?;
        Ok(())
    }

    /// Moves an address, and says twice of another object what is wrong with it.
    async fn told(&self, running: &Running) -> Result<(), Asked> {
        let node = self.assigned(running, "a", None).await?;
        self.not_ready(&node).await;
        self.assigned(running, "a", Some(&node)).await?;
        self.post(OBJECTS, &egress_ip("b", "no address")).await;
        self.until(running, "an event", async || self.events(1).await).await?;
        self.patch(&format!("{OBJECTS}/b"), &json!({"spec": {"egressIPs": ["192.168.126.101"]}})).await;
        self.assigned(running, "b", None).await?;
        self.patch(&format!("{OBJECTS}/b"), &json!({"spec": {"egressIPs": ["no address"]}})).await;
        self.until(running, "a series of events", async || self.events(2).await).await
    }

    /// Asks for an address, moves it and gives it back, while the cloud agrees to everything.
    async fn cloud(&self, running: &Running) -> Result<(), Asked> {
        let request = format!("{REQUESTS}/{ADDRESS}");
        let asked = async |other: Option<&str>| {
            let node = text(&self.get(&request).await?, "/spec/node")?;
            (Some(node.as_str()) != other).then_some(node)
        };
        let node = self.until(running, "a request", async || asked(None).await).await?;
        self.agree(&request, &node).await;
        self.assigned(running, "a", None).await?;
        self.not_ready(&node).await;
        let next = self.until(running, "another request", async || asked(Some(&node)).await).await?;
        self.agree(&request, &next).await;
        self.assigned(running, "a", Some(&node)).await?;
        self.delete(&format!("{OBJECTS}/a")).await;
        let given_back = async || self.get(&request).await.is_none().then_some(());
        self.until(running, "the address to be given back", given_back).await
    }

    async fn assigned(&self, running: &Running, name: &str, other: Option<&str>) -> Result<String, Asked> {
        let node = async || {
            let node = text(&self.get(&format!("{OBJECTS}/{name}")).await?, "/status/items/0/node")?;
            (Some(node.as_str()) != other).then_some(node)
        };
        self.until(running, "an assignment", node).await
    }

    async fn events(&self, count: i64) -> Option<()> {
        let list = self.get("/apis/events.k8s.io/v1/namespaces/default/events").await?;
        let of = |event: &Value| event["regarding"]["name"] == "b" && event["reason"] == "InvalidEgressIP";
        let seen = |event: &Value| event["series"]["count"].as_i64().unwrap_or(1);
        list["items"].as_array()?.iter().filter(|event| of(event)).any(|event| seen(event) >= count).then_some(())
    }

    async fn not_ready(&self, node: &str) {
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        self.patch(&format!("/api/v1/nodes/{node}/status"), &status).await;
    }

    /// What the cloud's own controller does.
    async fn agree(&self, request: &str, node: &str) {
        let condition = json!({
            "type": "Assigned",
            "status": "True",
            "reason": "CloudResponseSuccess",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status = json!({"status": {"node": node, "conditions": [condition]}});
        self.patch(&format!("{request}/status"), &status).await;
    }

    /// Waits for it, or for something to be denied.
    async fn until<T>(&self, running: &Running, what: &str, there: impl AsyncFn() -> Option<T>) -> Result<T, Asked> {
        let begun = Instant::now();
        loop {
            if let Some(denied) = running.tap.denied() {
                return Err(denied);
            }
            if let Some(found) = there().await {
                return Ok(found);
            }
            assert!(begun.elapsed() < LIMIT, "there is never {what}");
            assert!(!running.ended.is_finished(), "the controller has ended");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn client(&self) -> Client {
        self.server.client()
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let request = http::Request::get(path).body(Vec::new()).expect("a legal request");
        match self.client().request::<Value>(request).await {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    async fn post(&self, path: &str, object: &Value) {
        self.write(http::Request::post(path), "application/json", object).await;
    }

    async fn patch(&self, path: &str, change: &Value) {
        self.write(http::Request::patch(path), "application/merge-patch+json", change).await;
    }

    async fn delete(&self, path: &str) {
        self.write(http::Request::delete(path), "application/json", &json!({})).await;
    }

    async fn write(&self, request: http::request::Builder, content_type: &str, body: &Value) {
        let request = request.header("content-type", content_type).body(body.to_string().into_bytes());
        self.client()
            .request_text(request.expect("a legal request"))
            .await
            .unwrap_or_else(|error| panic!("{body}: {error}"));
    }
}

fn text(object: &Value, pointer: &str) -> Option<String> {
    // An unlabelled node has no such label; a label of ours has an empty value.
    let text = object.pointer(pointer)?.as_str()?;
    (!text.is_empty() || pointer.contains("labels")).then(|| text.to_owned())
}
