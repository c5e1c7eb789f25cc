//! What tells Kubernetes that a node lives.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinHandle;

/// Where kubelets keep their leases.
const NAMESPACE: &str = "kube-node-lease";

/// Often enough for the grace period that the controllers are started with.
const BEAT: Duration = Duration::from_secs(1);

/// After so long without a beat a node is not Ready any more.
pub(crate) const GRACE: &str = "--node-monitor-grace-period=5s";

/// How often that is looked at.
pub(crate) const LOOK: &str = "--node-monitor-period=500ms";

/// Renews the leases of all nodes but those that are silent, until it is dropped.
#[derive(Debug)]
pub(crate) struct Heart {
    silent: Arc<Mutex<BTreeSet<String>>>,
    task: JoinHandle<()>,
}

impl Heart {
    pub(crate) fn start(client: Client, nodes: Vec<String>) -> Self {
        let silent = Arc::new(Mutex::new(BTreeSet::new()));
        let task = tokio::spawn(beat(client, nodes, Arc::clone(&silent)));
        Self { silent, task }
    }

    pub(crate) fn silence(&self, node: &str) {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner).insert(node.to_owned());
    }

    pub(crate) fn revive(&self, node: &str) {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner).remove(node);
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn beat(client: Client, nodes: Vec<String>, silent: Arc<Mutex<BTreeSet<String>>>) {
    let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
    let mut interval = tokio::time::interval(BEAT);
    loop {
        interval.tick().await;
        for node in &nodes {
            if silent.lock().unwrap_or_else(PoisonError::into_inner).contains(node) {
                continue;
            }
            let now = format!("{:.6}", Timestamp::now());
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": node, "namespace": NAMESPACE},
                "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now},
            });
            // Made by the first beat. One that is lost, while the API server is away, is no beat.
            let _ = leases.patch(node, &PatchParams::apply("kubelet").force(), &Patch::Apply(&lease)).await;
        }
    }
}
