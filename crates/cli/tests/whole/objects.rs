//! Kubernetes objects, and what Kubernetes itself makes of them.

use std::time::{Duration, Instant};

use egret_netlab::PORT;
use egret_testkit::cluster::Cluster;
use egret_testkit::server::{Part, hand};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::whole::SOON;

/// Waits until Kubernetes says that the service has so many addresses behind it.
pub(crate) async fn endpoints(cluster: &Cluster, count: usize) {
    let slices: Api<EndpointSlice> = Api::default_namespaced(cluster.client());
    let wanted = ListParams::default().labels("kubernetes.io/service-name=web");
    let began = Instant::now();
    while slices.list(&wanted).await.unwrap().iter().flat_map(|slice| &slice.endpoints).count() != count {
        let log = std::fs::read_to_string(cluster.log(Part::ControllerManager)).unwrap_or_default();
        assert!(began.elapsed() < SOON, "no endpoints; the controller manager says\n{log}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A service behind which the pods of app `web` are.
pub(crate) fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "type": "LoadBalancer", "selector": {"app": "web"}, "ipFamilyPolicy": "RequireDualStack",
            "ports": [{"port": 80, "targetPort": PORT, "protocol": "TCP"}],
        },
    })
}

/// Its way out.
pub(crate) fn exit(spec: &Value) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1", "kind": "EgressService", "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    })
}

/// An address for the pods of app `team`, on one of the nodes with the label `pool: egress`.
pub(crate) fn egress_ip(address: &str) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1", "kind": "EgressIP", "metadata": {"name": "team"},
        "spec": {
            "egressIPs": [address],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            "podSelector": {"matchLabels": {"app": "team"}},
            "egressNodeSelector": {"matchLabels": {"pool": "egress"}},
        },
    })
}

/// Gives a node a label, or takes it away.
pub(crate) async fn label(cluster: &Cluster, node: &str, key: &str, value: Option<&str>) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}});
    hand::merge(&cluster.client(), &node, json!({"metadata": {"labels": {key: value}}})).await;
}
