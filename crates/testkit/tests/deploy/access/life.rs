//! A short life of a controller, in which it does everything that it can do.

use egret_controller::Config;
use egret_testkit::controller::Controller;
use egret_testkit::objects::{egress_service, endpoint_slice, not_ready};
use egret_testkit::patience::eventually;
use egret_testkit::server::Server;
use egret_testkit::server::hand::{create, delete, get, merge, merge_status};
use kube::Client;
use serde_json::{Value, json};

use super::objects::{egress_ip, node, service};
use super::rights::{ACCOUNT, Right, rights};
use super::tap::{Asked, Listing, Tap};
use crate::install::install;
use crate::manifests::Manifests;

const OBJECTS: &str = "/apis/k8s.ovn.org/v1/egressips";
const SERVICE: &str = "/apis/k8s.ovn.org/v1/namespaces/shop/egressservices/web";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/egret-system/leases/egret-controller";
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

/// Who there is, and what each may do.
pub(super) fn accounts(manifests: &Manifests) -> Manifests {
    let kept = ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
    let given = manifests.0.iter().filter(|object| kept.iter().any(|kind| object["kind"] == *kind)).cloned();
    Manifests(given.collect())
}

/// Waits until the API server knows of these rights.
pub(super) async fn in_effect(server: &Server, rights: &[Right]) {
    for right in rights {
        let in_effect = async || right.in_effect(&server.client()).await.then_some(());
        eventually(&format!("{right} to be in effect"), in_effect).await;
    }
}

/// A controller that runs as its service account.
struct Running {
    tap: Tap,
    controller: Controller,
}

impl Life {
    /// A cluster with the rights that these manifests give, and three nodes.
    pub(super) async fn with(manifests: &Manifests, platform: Platform) -> Self {
        let server = Server::take().await.expect("a server");
        server.install_crds(true).await.expect("definitions");
        install(&server, &accounts(manifests)).await;
        in_effect(&server, &rights(manifests, ACCOUNT)).await;
        let life = Self { server, platform };
        for number in 1..=3 {
            create(&life.client(), &node(number, platform)).await;
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
        running.controller.end().await;
        lived?;
        running.tap.denied().map_or(Ok(()), Err)?;
        let lease = self.get(LEASE).await.expect("the lease is there");
        assert_eq!(lease["spec"]["holderIdentity"], "", "it has given the lease up");
        Ok(())
    }

    fn run(&self, listing: Listing) -> Running {
        let tap = Tap::new(listing, self.server.client(), request("n1"));
        let client = tap.between(self.server.client_as(ACCOUNT));
        let mut config = Config::new("egret-system", "pod_1");
        if self.platform == Platform::Cloud {
            config.options.platform = egret_core::Platform::Cloud;
        }
        Running { tap, controller: Controller::start(client, config) }
    }

    /// Assigns an address, marks the object, elects a host for a service, labels the host.
    async fn placed(&self, running: &Running) -> Result<(), Asked> {
        let client = self.client();
        create(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await;
        create(&client, &egress_ip("a", ADDRESS)).await;
        create(&client, &service()).await;
        create(&client, &endpoint_slice("shop", "web", "n1", "10.130.1.5")).await;
        create(&client, &egress_service("shop", "web")).await;
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
        let b = create(&self.client(), &egress_ip("b", "no address")).await;
        self.until(running, "an event", async || self.events(1).await).await?;
        merge(&self.client(), &b, json!({"spec": {"egressIPs": ["192.168.126.101"]}})).await;
        self.assigned(running, "b", None).await?;
        merge(&self.client(), &b, json!({"spec": {"egressIPs": ["no address"]}})).await;
        self.until(running, "a series of events", async || self.events(2).await).await
    }

    /// Asks for an address, moves it and gives it back, while the cloud agrees to everything.
    async fn cloud(&self, running: &Running) -> Result<(), Asked> {
        let stored = async || get(&self.client(), &request("")).await;
        let asked = async |other: Option<&str>| {
            let node = text(&stored().await?, "/spec/node")?;
            (Some(node.as_str()) != other).then_some(node)
        };
        let node = self.until(running, "a request", async || asked(None).await).await?;
        self.agree(&node).await;
        self.assigned(running, "a", None).await?;
        self.not_ready(&node).await;
        let next = self.until(running, "another request", async || asked(Some(&node)).await).await?;
        self.agree(&next).await;
        self.assigned(running, "a", Some(&node)).await?;
        delete(&self.client(), &egress_ip("a", ADDRESS)).await;
        let given_back = async || stored().await.is_none().then_some(());
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
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}});
        merge_status(&self.client(), &node, &not_ready()).await;
    }

    /// What the cloud's own controller does.
    async fn agree(&self, node: &str) {
        let condition = json!({
            "type": "Assigned",
            "status": "True",
            "reason": "CloudResponseSuccess",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        merge_status(&self.client(), &request(node), &json!({"node": node, "conditions": [condition]})).await;
    }

    /// Waits for it, or for something to be denied.
    async fn until<T>(&self, running: &Running, what: &str, there: impl AsyncFn() -> Option<T>) -> Result<T, Asked> {
        eventually(what, async || {
            if let Some(denied) = running.tap.denied() {
                return Some(Err(denied));
            }
            assert!(!running.controller.has_ended(), "the controller has ended");
            there().await.map(Ok)
        })
        .await
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
}

/// What is asked of the cloud for the address.
fn request(node: &str) -> Value {
    json!({
        "apiVersion": "cloud.network.openshift.io/v1",
        "kind": "CloudPrivateIPConfig",
        "metadata": {"name": ADDRESS, "annotations": {"k8s.ovn.org/egressip-owner-ref": "a"}},
        "spec": {"node": node},
    })
}

fn text(object: &Value, pointer: &str) -> Option<String> {
    // An unlabelled node has no such label; a label of ours has an empty value.
    let text = object.pointer(pointer)?.as_str()?;
    (!text.is_empty() || pointer.contains("labels")).then(|| text.to_owned())
}
