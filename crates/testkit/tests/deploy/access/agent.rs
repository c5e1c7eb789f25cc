//! A short life of an agent as its service account: it reads everything that it can need, takes an address, says so.
//!
//! Its kernel is that of a network namespace in which nobody else is; the API server is reached from outside of it.

use std::process::Command;
use std::sync::Arc;
use std::thread;

use egret_agent::{Config, Metrics, Shared, Source, run};
use egret_testkit::objects::{egress_service, endpoint_slice, node as usual_node};
use egret_testkit::patience::eventually;
use egret_testkit::server::Server;
use egret_testkit::server::hand::{create, merge_status};
use nix::sched::{CloneFlags, unshare};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::life::{accounts, in_effect};
use super::objects::{egress_ip, service};
use super::rights::{AGENT, rights};
use super::tap::{Asked, Listing, Tap};
use crate::install::install;
use crate::manifests::Manifests;

const ANNOTATION: &str = "k8s.ovn.org/secondary-host-egress-ips";

/// Whether a network namespace can be made here. With `CI` set it must be.
#[allow(clippy::print_stderr)]
pub(super) fn possible() -> bool {
    let made = Command::new("unshare").args(["--net", "nft", "list", "ruleset"]).output();
    let possible = made.is_ok_and(|made| made.status.success());
    assert!(possible || std::env::var_os("CI").is_none(), "needs unshare, ip, nft and to be root");
    if !possible {
        eprintln!("skipped: needs unshare, ip, nft and to be root");
    }
    possible
}

/// A cluster for one life.
pub(super) struct AgentLife {
    server: Server,
}

impl AgentLife {
    /// A cluster with the rights that these manifests give, and what makes an agent look at everything.
    pub(super) async fn with(manifests: &Manifests) -> Self {
        let server = Server::take().await.expect("a server");
        server.install_crds(false).await.expect("definitions");
        install(&server, &accounts(manifests)).await;
        in_effect(&server, &rights(manifests, AGENT)).await;
        let client = server.client();
        create(&client, &node()).await;
        create(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await;
        create(&client, &service()).await;
        create(&client, &endpoint_slice("shop", "web", "n1", "10.130.1.5")).await;
        create(&client, &egress_service("shop", "web")).await;
        let mut held = egress_ip("a", "10.20.0.100");
        held["status"] = json!({"items": [{"node": "n1", "egressIP": "10.20.0.100"}]});
        create(&client, &held).await;
        let elected = json!({"host": "n1"});
        merge_status(&client, &egress_service("shop", "web"), &elected).await;
        Self { server }
    }

    /// Lives it. What is denied first ends it.
    pub(super) async fn lived(self, listing: Listing) -> Result<(), Asked> {
        let tap = Tap::new(listing, self.server.client(), Value::Null);
        let client = tap.between_from(&Handle::current(), self.server.client_as(AGENT));
        let state = tempfile::tempdir().expect("a folder");
        let mut config = Config::new("n1");
        config.files.state = state.path().to_owned();
        let (stop, (ended, end)) = (CancellationToken::new(), oneshot::channel());
        let told = stop.clone();
        // A thread of its own, for it does not come back from the namespace.
        thread::spawn(move || {
            network();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let (metrics, shared) = (Arc::new(Metrics::default()), Arc::new(Shared::default()));
            let running = Box::pin(run(&config, Source::Cluster(client), metrics, shared, told));
            let _ = ended.send(runtime.block_on(running));
        });
        let lived = eventually("the annotation", async || {
            if let Some(denied) = tap.denied() {
                return Some(Err(denied));
            }
            (self.said().await.as_deref() == Some(r#"["10.20.0.100"]"#)).then_some(Ok(()))
        })
        .await;
        stop.cancel();
        end.await.expect("it ends").expect("it ends well");
        lived?;
        tap.denied().map_or(Ok(()), Err)
    }

    async fn said(&self) -> Option<String> {
        let request = http::Request::get("/api/v1/nodes/n1").body(Vec::new()).expect("a legal request");
        let node: Value = self.server.client().request(request).await.expect("the node is there");
        node["metadata"]["annotations"][ANNOTATION].as_str().map(str::to_owned)
    }
}

/// With a secondary network, in which the address is.
fn node() -> Value {
    let mut node = usual_node("n1", 1);
    node["metadata"]["annotations"] = json!({
        "k8s.ovn.org/node-primary-ifaddr": json!({"ipv4": "192.168.126.11/24"}).to_string(),
        "k8s.ovn.org/host-cidrs": json!(["192.168.126.11/24", "10.20.0.11/24"]).to_string(),
        "k8s.ovn.org/node-subnets": json!({"default": ["10.130.1.0/24"]}).to_string(),
    });
    node
}

/// From here on this thread, and what it starts, is in a network that has one interface.
fn network() {
    unshare(CloneFlags::CLONE_NEWNET).expect("it was possible before");
    let wire = "link add eth1 type veth peer name wire1";
    for arguments in
        ["link set lo up", wire, "link set wire1 up", "link set eth1 up", "address add 10.20.0.11/24 dev eth1"]
    {
        let done = Command::new("ip").args(arguments.split(' ')).status().expect("ip runs");
        assert!(done.success(), "ip {arguments}");
    }
}
