//! A whole cluster without containers: a lab of network namespaces, and in it the real etcd, kube-apiserver,
//! kube-controller-manager, kube-proxy and CNI plugins.
//!
//! ```text
//!   alone ──> Cluster: a lab (nodes, networks, outside servers)
//!               ├── control plane, in the namespace of the test itself, on the nodes' primary network
//!               ├── per node: kube-proxy, a Node object as OVN-Kubernetes writes it, a heart that beats
//!               └── per pod: a Pod object, an interface by the `bridge` plugin, a server that tells who it is
//! ```
//!
//! Imitated are the kubelet (node and pod objects, their status, leases), the load balancer (addresses of services), and,
//! where a test asks for it, OVN: then pods and services are the lab's, and there is neither kube-proxy nor CNI.

mod cni;
mod error;
mod heart;
mod node;
mod pod;
mod proxy;
mod start;

use std::time::Duration;

use egret_netlab::{Alone, Need, Outcome};

pub use error::ClusterError;
pub use start::{Cluster, ClusterBuilder};

use crate::server::Part;

/// Starting everything takes ten seconds on an idle machine.
const LIMIT: Duration = Duration::from_mins(8);

/// What would send clients of the API server another way.
const PROXIES: [&str; 8] =
    ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// Runs the body of a test where a [`Cluster`] can be started: see [`egret_netlab::alone`]. The programs are built before,
/// if that has not been done, which takes minutes.
///
/// # Panics
///
/// The body fails, or a program is not to be had.
pub fn alone(name: &str, needs: &[Need], body: impl AsyncFnOnce() -> Outcome) {
    for part in [Part::Etcd, Part::ApiServer, Part::ControllerManager, Part::Proxy] {
        part.find().expect("it is there, or can be built");
    }
    cni::folder().expect("the CNI plugins can be built");
    let test = PROXIES.into_iter().fold(Alone::new(name).needs(needs).limit(LIMIT), Alone::without);
    test.run(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let outcome = runtime.block_on(body());
        // What still waits for a server that is gone is not waited for.
        runtime.shutdown_background();
        outcome
    });
}
