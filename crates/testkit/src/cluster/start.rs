//! Starting a cluster, and what it consists of.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use egret_netlab::{Family, Lab, LabBuilder, Network, Process, Profile};
use kube::{Client, Config};

use super::error::ClusterError;
use super::heart::{self, Heart};
use super::{node, proxy};
use crate::server::{ControlPlane, ControlPlaneError, Part, Place};

/// The addresses of services.
const SERVICES: &str = "10.96.0.0/16,fd00:10:96::/112";

/// Those whose work a test sees.
const CONTROLLERS: [&str; 5] = [
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",
];

/// What a cluster is to consist of.
#[derive(Clone, Debug)]
#[must_use]
pub struct ClusterBuilder {
    lab: LabBuilder,
    ovn: bool,
}

/// Nodes, their network, and a control plane that knows them. All of it is gone when it is dropped.
pub struct Cluster {
    // In this order: who talks is gone before whom it talks to.
    heart: Heart,
    proxies: Mutex<BTreeMap<String, Process>>,
    client: Client,
    plane: ControlPlane,
    ovn: bool,
    lab: Lab,
}

impl ClusterBuilder {
    /// So many nodes; see [`LabBuilder::nodes`].
    pub fn nodes(mut self, count: u8) -> Self {
        self.lab = self.lab.nodes(count);
        self
    }

    /// There is a second network, and these nodes are on it; see [`LabBuilder::blue`].
    pub fn blue(mut self, nodes: &[u8]) -> Self {
        self.lab = self.lab.blue(nodes);
        self
    }

    /// The kernel parameters of the nodes. The `bridge` plugin turns on forwarding whatever they are.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.lab = self.lab.profile(profile);
        self
    }

    /// The lab's stand-in for OVN in place of kube-proxy and CNI plugins; services are told to the lab by
    /// [`Lab::service`].
    pub fn ovn(mut self) -> Self {
        self.ovn = true;
        self
    }

    /// Starts everything, and waits until it works.
    ///
    /// # Errors
    ///
    /// Something does not.
    pub async fn start(self) -> Result<Cluster, ClusterError> {
        let lab = if self.ovn { self.lab.ovn() } else { self.lab.bare() }.build()?;
        let IpAddr::V4(address) = lab.join()?.address(Family::V4) else { unreachable!("the first family is IPv4") };
        let plane = ControlPlane::start_at(Place { address, services: SERVICES }).await?;
        let client = Client::try_from(plane.config().clone());
        let client = client.map_err(|source| ControlPlaneError::Client { source })?;
        let arguments = [heart::GRACE, heart::LOOK];
        plane.start_manager(&CONTROLLERS, &arguments).await?;
        let nodes = lab.nodes();
        for host in &nodes {
            node::register(&client, &lab, host).await?;
        }
        let names = nodes.iter().map(|host| host.name().to_owned()).collect();
        let heart = Heart::start(client.clone(), names);
        let cluster = Cluster { heart, proxies: Mutex::default(), client, plane, ovn: self.ovn, lab };
        if !self.ovn {
            cluster.start_proxies().await?;
        }
        Ok(cluster)
    }
}

impl Cluster {
    /// A cluster of one node on one network, unless more is asked for.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder { lab: Lab::builder(), ovn: false }
    }

    /// Nodes, outside servers, networks. Pods are added by [`Cluster::add_pod`].
    #[must_use]
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// A client of an administrator, whom nothing is forbidden.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// What that was made from.
    #[must_use]
    pub fn config(&self) -> Config {
        self.plane.config().clone()
    }

    /// A kubeconfig for an administrator, or for somebody else, such as `system:serviceaccount:NAMESPACE:NAME`, that works
    /// on every node.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn kubeconfig(&self, user: Option<&str>) -> Result<PathBuf, ClusterError> {
        Ok(self.plane.kubeconfig(user)?)
    }

    /// The file with all that a program of the control plane has ever said.
    #[must_use]
    pub fn log(&self, part: Part) -> PathBuf {
        self.plane.log(part)
    }

    /// What kube-proxy of a node has said so far.
    #[must_use]
    pub fn proxy_said(&self, node: &str) -> String {
        let proxies = self.proxies.lock().unwrap_or_else(PoisonError::into_inner);
        proxies.get(node).map(Process::said).unwrap_or_default()
    }

    /// The node's kubelet tells nothing any more: after five seconds the node is not Ready.
    pub fn silence(&self, node: &str) {
        self.heart.silence(node);
    }

    /// It does again, and says that the node is Ready.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn revive(&self, node: &str) -> Result<(), ClusterError> {
        self.heart.revive(node);
        node::ready(&self.client, &self.lab.node(node)).await
    }

    /// The node is gone from every network, and nobody there says anything. What runs on it does not know.
    ///
    /// # Errors
    ///
    /// There is no such node.
    pub fn cut(&self, node: &str) -> Result<(), ClusterError> {
        self.silence(node);
        self.lab.cut(node, Network::Red)?;
        if self.lab.node(node).addresses().len() > Family::BOTH.len() {
            self.lab.cut(node, Network::Blue)?;
        }
        if self.ovn {
            self.lab.cut(self.lab.ovn(node).name(), Network::Tunnel)?;
        }
        Ok(())
    }

    /// Stops the API server as an update of it would.
    ///
    /// # Errors
    ///
    /// It cannot be told.
    pub async fn stop_api(&self) -> Result<(), ClusterError> {
        Ok(self.plane.stop_api().await?)
    }

    /// Starts it again, at the same address, and waits until it serves.
    ///
    /// # Errors
    ///
    /// It does not.
    pub async fn start_api(&self) -> Result<(), ClusterError> {
        Ok(self.plane.start_api().await?)
    }

    pub(crate) fn has_ovn(&self) -> bool {
        self.ovn
    }

    async fn start_proxies(&self) -> Result<(), ClusterError> {
        let kubeconfig = self.plane.kubeconfig(None)?;
        let mut started = Vec::new();
        for host in self.lab.nodes() {
            started.push((proxy::start(&host, &kubeconfig)?, host));
        }
        for (mut process, host) in started {
            proxy::ready(&host, &mut process).await?;
            let mut proxies = self.proxies.lock().unwrap_or_else(PoisonError::into_inner);
            proxies.insert(host.name().to_owned(), process);
        }
        Ok(())
    }
}
