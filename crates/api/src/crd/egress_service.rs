//! `EgressService` of `k8s.ovn.org/v1`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// EgressServiceSpec is the desired state of an EgressService.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "k8s.ovn.org",
    version = "v1",
    kind = "EgressService",
    plural = "egressservices",
    singular = "egressservice",
    namespaced,
    status = "EgressServiceStatus",
    doc = "EgressService chooses the source address and the network of the traffic that leaves the cluster from the \
           endpoints of the Service of the same name.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"Assigned Host","type":"string","jsonPath":".status.host"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct EgressServiceSpec {
    /// Determines the source IP of egress traffic: with "LoadBalancerIP", the default, the ingress IP of the Service;
    /// with "Network" an address of the network the traffic takes.
    #[serde(default, rename = "sourceIPBy", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SourceIPBy")]
    pub source_ip_by: Option<SourceIPBy>,

    /// Limits the nodes that can be selected to handle the Service's traffic when sourceIPBy is "LoadBalancerIP". When
    /// it is not specified, any node can be selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LabelSelector")]
    pub node_selector: Option<LabelSelector>,

    /// The network this Service's traffic leaves through: number or name of a routing table of the host. When it is
    /// not specified, the main routing table is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub network: Option<String>,
}

/// SourceIPBy determines the source IP of egress traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SourceIPBy {
    #[default]
    #[serde(rename = "LoadBalancerIP")]
    #[allow(missing_docs)] // A description of one variant would turn the enum into oneOf, which upstream's is not.
    LoadBalancerIp,
    #[allow(missing_docs)]
    Network,
}

/// EgressServiceStatus is the observed state of an EgressService.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EgressServiceStatus {
    /// The name of the node that handles the Service's traffic: "ALL" for every node, empty for none.
    pub host: String,
}
