//! A scenario as it is written down (`scenarios/README.md` is the format).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::op::Step;

/// One file of scenarios.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// The scenarios, each still as it was read so that a fault in one names that one.
    pub scenarios: Vec<Value>,
}

/// One behaviour, step by step.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The name, unique in its folder.
    pub id: String,
    /// What it shows, in a sentence.
    pub title: String,
    /// The part of the product it belongs to.
    #[serde(default)]
    pub area: String,
    /// Where its expectations come from.
    #[serde(default)]
    pub origin: Origin,
    /// The text or test it restates.
    #[serde(default)]
    pub source: Value,
    /// What happened when a peer was asked to do it.
    #[serde(default)]
    pub peer_run: String,
    /// What a reader should know.
    #[serde(default)]
    pub note: String,
    /// The world around the objects.
    #[serde(default)]
    pub settings: Settings,
    /// The nodes at the start.
    #[serde(default)]
    pub nodes: Vec<NodeSpec>,
    /// The objects at the start, oldest first, as an API server stores them.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// What happens, and what is expected after it.
    pub steps: Vec<Step>,
}

/// Where the expectations of a scenario come from.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A peer's test asserts it.
    Peer,
    /// It follows from the rules.
    #[default]
    Derived,
    /// The design text of egressNodeSelector demands it: binding.
    Seed,
}

/// The world around the objects.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Bare metal or a cloud.
    #[serde(default)]
    pub platform: PlatformName,
    /// The gateway mode of nodes that do not say one.
    #[serde(default)]
    pub gateway_mode: GatewayModeName,
    /// The time a probe may take; 0 switches probing off; absent means 1.
    pub reachability_total_timeout_seconds: Option<u32>,
    /// Nodes that carry all these labels are ignored (rule N1).
    pub no_host_subnet_selector: Option<BTreeMap<String, String>>,
    /// The outcome depends on creation order against name order.
    #[serde(default)]
    pub age_matters: bool,
    /// Who confirms cloud requests.
    #[serde(default)]
    pub cloud_ack: CloudAck,
    /// Whether the API server fills in an absent `egressNodeSelector`; absent means yes.
    pub apply_crd_default: Option<bool>,
}

/// `settings.platform`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum PlatformName {
    /// Bare metal.
    #[default]
    #[serde(rename = "none")]
    BareMetal,
    /// A cloud.
    #[serde(rename = "AWS")]
    Aws,
    /// A cloud.
    #[serde(rename = "GCP")]
    Gcp,
    /// A cloud.
    Azure,
    /// A cloud.
    OpenStack,
}

/// `settings.gateway_mode`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum GatewayModeName {
    /// Egress traffic leaves through the host's kernel.
    #[default]
    Local,
    /// Egress traffic leaves through the OVN gateway router.
    Shared,
}

/// `settings.cloud_ack`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum CloudAck {
    /// Every request is confirmed at once.
    #[default]
    Auto,
    /// Only `set_cpic_status` confirms or refuses.
    Manual,
}

/// A node as a scenario gives it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.labels`.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// The Ready condition.
    #[serde(default = "yes")]
    pub ready: bool,
    /// What a probe of it returns.
    #[serde(default = "yes")]
    pub reachable: bool,
    /// For the reader only: the node matches `settings.no_host_subnet_selector`.
    #[serde(default)]
    pub no_host_subnet: bool,
}

fn yes() -> bool {
    true
}
