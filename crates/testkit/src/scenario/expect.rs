//! What a step expects. A key that is not here is an error when the scenario is read, never an expectation nobody checks.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Text to text: addresses to nodes, names to owners.
pub type Pairs = BTreeMap<String, String>;

/// Everything that is expected after a step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// By name of the EgressIP.
    pub egressips: BTreeMap<String, EgressIpExpect>,
    /// By `namespace/name` of the EgressService.
    pub egressservices: BTreeMap<String, EgressServiceExpect>,
    /// By name of the node.
    pub node_labels: BTreeMap<String, NodeLabelsExpect>,
    /// About all objects together.
    pub cluster: ClusterExpect,
    /// About the events of the step.
    pub events: EventsExpect,
    /// About the targets of a reachability round.
    pub probes: ProbesExpect,
    /// About the requests to the cloud.
    pub cloud_private_ip_configs: CloudExpect,
}

/// About one EgressIP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EgressIpExpect {
    /// The complete status.
    pub assignments: Option<Pairs>,
    /// The number of items.
    pub count: Option<usize>,
    /// At least so many items.
    pub min_count: Option<usize>,
    /// At most so many items.
    pub max_count: Option<usize>,
    /// Exactly these addresses are placed.
    pub ips_set: Option<Vec<String>>,
    /// No other address is placed.
    pub ips_subset_of: Option<Vec<String>>,
    /// Exactly these nodes host one.
    pub nodes_set: Option<Vec<String>>,
    /// No other node hosts one.
    pub nodes_subset_of: Option<Vec<String>>,
    /// No node hosts two.
    pub distinct_nodes: Option<bool>,
    /// These pairs are among the items.
    pub includes: Option<Pairs>,
    /// The status is the one of the end of the previous step.
    pub unchanged: Option<bool>,
    /// Every pair of the previous step is still there.
    pub previous_kept: Option<bool>,
    /// No address was seen on a node other than its old and its new one.
    pub direct: Option<bool>,
    /// These annotations are there.
    pub annotations: Option<Pairs>,
    /// About the mark.
    pub mark: Option<MarkExpect>,
}

/// About the annotation `k8s.ovn.org/egressip-mark`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MarkExpect {
    /// It is there.
    pub present: Option<bool>,
    /// The least value.
    pub min: Option<u32>,
    /// The greatest value.
    pub max: Option<u32>,
    /// The value.
    pub equals: Option<u32>,
    /// Any other value.
    pub not_equals: Option<u32>,
    /// The value of the previous step.
    pub unchanged: Option<bool>,
}

/// About one EgressService.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EgressServiceExpect {
    /// `status.host`.
    pub host: Option<String>,
    /// `status.host` is one of these.
    pub host_one_of: Option<Vec<String>>,
    /// `status.host` is that of the end of the previous step.
    pub unchanged: Option<bool>,
}

/// About the labels of one node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeLabelsExpect {
    /// Keys it carries.
    pub present: Option<Vec<String>>,
    /// Keys it does not carry.
    pub absent: Option<Vec<String>>,
    /// How many keys begin with a prefix.
    pub prefixed: Option<BTreeMap<String, usize>>,
}

/// About all objects together.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterExpect {
    /// The spread of items over the nodes in `among`.
    pub per_node_max_minus_min: Option<usize>,
    /// The nodes that `per_node_max_minus_min` speaks of.
    pub among: Option<Vec<String>>,
    /// No two objects have the same mark.
    pub marks_distinct: Option<bool>,
    /// No address is in two items.
    pub no_duplicate_ips: Option<bool>,
    /// The number of items of all objects.
    pub total_items: Option<usize>,
    /// These EgressServices have hosts, all different.
    pub egressservice_hosts_distinct: Option<Vec<String>>,
}

/// About the events of the step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventsExpect {
    /// Events that there are.
    pub include: Vec<EventExpect>,
    /// Events that there are not.
    pub exclude: Vec<EventExpect>,
}

/// One event.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventExpect {
    /// The kind of the object it is about.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// About the targets of a reachability round.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProbesExpect {
    /// Nodes that are probed.
    pub probed: Option<Vec<String>>,
    /// Nodes that are not.
    pub not_probed: Option<Vec<String>>,
}

/// About the CloudPrivateIPConfigs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloudExpect {
    /// Exactly these objects exist.
    pub names_exact: Option<Vec<String>>,
    /// These objects exist.
    pub names_include: Option<Vec<String>>,
    /// These objects do not exist.
    pub absent: Option<Vec<String>>,
    /// `spec.node` by name.
    pub nodes: Option<Pairs>,
    /// The owner annotation by name.
    pub owner: Option<Pairs>,
    /// The number of objects.
    pub count: Option<usize>,
    /// No `spec.node` is another.
    pub nodes_subset_of: Option<Vec<String>>,
    /// Every object's `spec.node` is the node of its address in status, and every item has its object.
    pub spec_node_matches_egressip_status: Option<bool>,
    /// An object was changed or deleted only while its address was in no status.
    pub status_first: Option<bool>,
}
