//! `CloudPrivateIPConfig` of `cloud.network.openshift.io/v1`, cut down to what an egress IP needs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CloudPrivateIPConfigSpec is the desired state of a CloudPrivateIPConfig.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cloud.network.openshift.io",
    version = "v1",
    kind = "CloudPrivateIPConfig",
    plural = "cloudprivateipconfigs",
    singular = "cloudprivateipconfig",
    status = "CloudPrivateIPConfigStatus",
    doc = "CloudPrivateIPConfig asks the cloud to attach a private address to a node. Its name is the address: IPv4 as \
           text, IPv6 fully expanded with dots for colons.",
    derive = "PartialEq",
    derive = "Default"
)]
pub struct CloudPrivateIPConfigSpec {
    /// The name of the node the address is to be attached to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
}

/// CloudPrivateIPConfigStatus is what the cloud has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CloudPrivateIPConfigStatus {
    /// The name of the node the address is attached to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,

    /// The cloud's answer: condition Assigned.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<CloudCondition>,
}

/// CloudCondition is a condition; only its type and status are required.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudCondition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub type_: String,

    /// Status of the condition: True, False or Unknown.
    pub status: String,

    /// Reason for its last transition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,

    /// Details of its last transition, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,

    /// Generation of the object that the condition was set for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,

    /// Time of the last transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub last_transition_time: Option<Time>,
}
