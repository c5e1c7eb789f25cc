//! Pods: an object, an interface, and a server.

use std::sync::Arc;

use egret_netlab::Host;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::net::IpAddr;

use super::cni;
use super::error::ClusterError;
use super::start::Cluster;

impl Cluster {
    /// A pod in the namespace `default`, Ready, with these labels. It answers on [`egret_netlab::PORT`].
    ///
    /// # Errors
    ///
    /// It cannot be attached, or the API server refuses it.
    pub async fn add_pod(&self, node: &str, name: &str, labels: &[(&str, &str)]) -> Result<Arc<Host>, ClusterError> {
        self.add_pod_in("default", node, name, labels).await
    }

    /// A pod in another namespace. No two pods have the same name, whatever their namespaces.
    ///
    /// # Errors
    ///
    /// It cannot be attached, or the API server refuses it.
    pub async fn add_pod_in(
        &self,
        namespace: &str,
        node: &str,
        name: &str,
        labels: &[(&str, &str)],
    ) -> Result<Arc<Host>, ClusterError> {
        let labels: serde_json::Map<_, _> =
            labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "server", "image": "none"}]},
        });
        let pod = serde_json::from_value(pod).expect("it is a pod");
        let pods: Api<Pod> = Api::namespaced(self.client(), namespace);
        let created = pods.create(&PostParams::default(), &pod).await;
        created.map_err(ClusterError::api(format!("the pod {name}")))?;
        let host = if self.has_ovn() {
            self.lab().add_pod(node, name)?
        } else {
            let subnets = self.lab().pod_subnets(node);
            let on = self.lab().node(node);
            self.lab().attach_pod(node, name, |path| cni::add(&on, &subnets, name, path))?
        };
        self.tell_pod(namespace, name, host.addresses(), true).await?;
        Ok(host)
    }

    /// Whether a pod says that it is ready.
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub async fn set_ready(&self, namespace: &str, name: &str, ready: bool) -> Result<(), ClusterError> {
        let addresses = self.lab().pod(name).addresses().to_vec();
        self.tell_pod(namespace, name, &addresses, ready).await
    }

    /// Takes a pod away: its object at once, then its interface.
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub async fn delete_pod(&self, namespace: &str, name: &str) -> Result<(), ClusterError> {
        let pods: Api<Pod> = Api::namespaced(self.client(), namespace);
        let deleted = pods.delete(name, &DeleteParams::default().grace_period(0)).await;
        deleted.map_err(ClusterError::api(format!("the end of the pod {name}")))?;
        if self.has_ovn() {
            return Ok(self.lab().remove_pod(name)?);
        }
        let Some(node) = self.lab().node_of(name) else { return Ok(()) };
        let subnets = self.lab().pod_subnets(&node);
        let on = self.lab().node(&node);
        self.lab().detach_pod(name, |path| cni::delete(&on, &subnets, name, path))
    }

    /// Plays the load balancer: the service has these addresses, and what is for them comes to that node.
    ///
    /// # Errors
    ///
    /// There is no such service or node.
    pub async fn balance(&self, namespace: &str, name: &str, to: &[IpAddr], node: &str) -> Result<(), ClusterError> {
        let services: Api<Service> = Api::namespaced(self.client(), namespace);
        let ingress: Vec<_> = to.iter().map(|address| json!({"ip": address})).collect();
        let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
        let patched = services.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await;
        patched.map_err(ClusterError::api(format!("the addresses of the service {name}")))?;
        Ok(to.iter().try_for_each(|address| self.lab().route(*address, node))?)
    }

    async fn tell_pod(
        &self,
        namespace: &str,
        name: &str,
        addresses: &[IpAddr],
        ready: bool,
    ) -> Result<(), ClusterError> {
        let all: Vec<_> = addresses.iter().map(|address| json!({"ip": address})).collect();
        let ready = if ready { "True" } else { "False" };
        let status = json!({"status": {
            "phase": "Running",
            "podIP": addresses.first(),
            "podIPs": all,
            "conditions": [{"type": "Ready", "status": ready}, {"type": "ContainersReady", "status": ready}],
        }});
        let pods: Api<Pod> = Api::namespaced(self.client(), namespace);
        let patched = pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await;
        patched.map(drop).map_err(ClusterError::api(format!("the status of the pod {name}")))
    }
}
