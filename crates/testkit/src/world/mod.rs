//! A cluster in memory: the stored objects, what probes would find, and a controller reduced to its decisions.
//!
//! ```text
//!   change ──> settle: observe ─> decide ─> write ──┐
//!                         ^                         │ until nothing changes
//!                         └── reachability round <──┘
//! ```
//!
//! Only the decision code is real. Everything around it (the store, the prober, the cloud) is the simplest thing that
//! behaves as `scenarios/README.md` says. No clock: the age of an object is its place in the order of creation.

mod journal;
mod object;
mod read;
mod settle;
mod write;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use egret_api::annotation::node_subnets;
use egret_api::{Kind, Manifests, ObjectKey};
use egret_core::{Address, NodeName, Options, Platform, Reachability, Selector, Snapshot};
use serde_json::{Value, json};

pub use journal::Journal;
pub use read::CloudConfig;
pub use settle::{Loop, MassSilence};

use crate::scenario::{CloudAck, GatewayModeName, NodeSpec, Op, PlatformName, Settings};

/// The items of one status, as text and sorted: address, node.
pub type Items = Vec<(String, String)>;

const HOST_CIDRS: &str = "k8s.ovn.org/host-cidrs";
const GATEWAY_CONFIG: &str = "k8s.ovn.org/l3-gateway-config";
const EGRESS_ASSIGNABLE: &str = "k8s.ovn.org/egress-assignable";

/// Why a change cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// There is no such node.
    #[error("there is no node {0}")]
    NoSuchNode(String),
    /// There is no such object.
    #[error("there is no {0}")]
    NoSuchObject(String),
    /// There is a node of this name already.
    #[error("there is a node {0} already")]
    Exists(String),
    /// The store refuses the object.
    #[error("{0}")]
    Refused(String),
    /// It needs a controller that waits for the cloud.
    #[error("nothing waits for the cloud yet")]
    NeedsCloudConfirmation,
}

/// Who plays the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cloud {
    /// There is none.
    None,
    /// Every request is confirmed at once.
    Confirms,
    /// Requests would wait for an answer; a decision alone cannot become a status.
    Waits,
}

/// A cluster in memory.
pub struct World {
    manifests: Manifests,
    options: Options,
    cloud: Cloud,
    gateway_mode: GatewayModeName,
    selector_default: bool,
    probing: bool,
    /// What a probe of each node returns.
    truth: BTreeMap<NodeName, bool>,
    /// What probes have told. A node that is not in it is not probed yet.
    knowledge: BTreeMap<NodeName, Reachability>,
    /// Nodes that lost an EgressService because they are silent.
    drained: BTreeSet<NodeName>,
    /// Every pair of the last decision.
    held: BTreeSet<(Address, NodeName)>,
    /// Pairs that ended while the node listed the address, with its `host-cidrs` of that moment.
    departed: BTreeMap<(Address, NodeName), String>,
    /// How many objects were created: the seconds since the first.
    created: u32,
    journal: Journal,
}

impl World {
    /// An empty cluster.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] if the no-host-subnet selector does not compile.
    pub fn new(settings: &Settings) -> Result<Self, ChangeError> {
        let no_host_subnet = settings.no_host_subnet_selector.as_ref().map(|labels| {
            Selector::compile(labels.iter().map(|(k, v)| (k.as_str(), v.as_str())), [])
                .map_err(|faults| ChangeError::Refused(format!("no_host_subnet_selector: {}", faults[0])))
        });
        let (platform, cloud) = match (settings.platform, settings.cloud_ack) {
            (PlatformName::BareMetal, _) => (Platform::BareMetal, Cloud::None),
            (_, CloudAck::Auto) => (Platform::Cloud, Cloud::Confirms),
            (_, CloudAck::Manual) => (Platform::Cloud, Cloud::Waits),
        };
        Ok(Self {
            manifests: Manifests::default(),
            options: Options { platform, no_host_subnet: no_host_subnet.transpose()?, ..Options::default() },
            cloud,
            gateway_mode: settings.gateway_mode,
            selector_default: settings.apply_crd_default.unwrap_or(true),
            probing: settings.reachability_total_timeout_seconds != Some(0),
            truth: BTreeMap::new(),
            knowledge: BTreeMap::new(),
            drained: BTreeSet::new(),
            held: BTreeSet::new(),
            departed: BTreeMap::new(),
            created: 0,
            journal: Journal::default(),
        })
    }

    /// Adds a node.
    ///
    /// # Errors
    /// If the store refuses it.
    pub fn add_node(&mut self, spec: &NodeSpec) -> Result<(), ChangeError> {
        let mut annotations = spec.annotations.clone();
        let mode = match self.gateway_mode {
            GatewayModeName::Local => "local",
            GatewayModeName::Shared => "shared",
        };
        annotations
            .entry(GATEWAY_CONFIG.to_owned())
            .or_insert_with(|| json!({ "default": { "mode": mode } }).to_string());
        // A node that goes leaves its pod network behind: the README's union is over all nodes that ever appear.
        let subnets = annotations.get(node_subnets::KEY).and_then(|text| node_subnets::decode(text).ok());
        let subnets = subnets.and_then(|mut subnets| subnets.remove(node_subnets::DEFAULT_NETWORK));
        self.options.cluster_subnets.extend(subnets.unwrap_or_default());
        self.truth.insert(spec.name.as_str().into(), spec.reachable);
        self.insert(json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": spec.name, "labels": spec.labels, "annotations": annotations },
            "status": { "conditions": [ready_condition(spec.ready)] },
        }))
    }

    /// Stores a new object, status included.
    ///
    /// # Errors
    /// If the store refuses it.
    pub fn insert(&mut self, mut object: Value) -> Result<(), ChangeError> {
        self.complete(&mut object);
        self.manifests.insert(object).map(drop).map_err(|fault| ChangeError::Refused(fault.to_string()))
    }

    /// Makes one change.
    ///
    /// # Errors
    /// If it speaks of what is not there, or the store refuses it.
    pub fn change(&mut self, op: &Op) -> Result<(), ChangeError> {
        match op {
            Op::Apply { object } => self.apply(object.clone()),
            Op::Delete { kind, name, namespace } => self.delete(kind, name, namespace.as_deref()),
            Op::SetNodeLabel { node, labels } => self.merge(node, "labels", labels),
            Op::SetNodeAnnotation { node, annotations } => self.merge(node, "annotations", annotations),
            Op::SetReady { node, ready } => {
                object::entry(self.node_mut(node)?, &["status"])
                    .insert("conditions".to_owned(), json!([ready_condition(*ready)]));
                Ok(())
            }
            Op::SetReachable { node, reachable } => {
                let truth = self.truth.get_mut(&NodeName::from(node.as_str()));
                *truth.ok_or_else(|| ChangeError::NoSuchNode(node.clone()))? = *reachable;
                Ok(())
            }
            Op::DeleteNode { node } => self.delete_node(node),
            Op::AddNode { node } => match self.manifests.get(&node_key(&node.name)) {
                Some(_) => Err(ChangeError::Exists(node.name.clone())),
                None => self.add_node(node),
            },
            Op::SetCpicStatus { .. } => Err(ChangeError::NeedsCloudConfirmation),
            Op::Start {} | Op::HealthTick {} => Ok(()),
            Op::Batch { .. } | Op::Restart { .. } => op.parts().iter().try_for_each(|part| self.change(part)),
        }
    }

    /// A new controller on the same store: what the old one knew is gone.
    pub fn forget(&mut self) {
        self.knowledge.clear();
        self.drained.clear();
        self.departed.clear();
        self.held.clear();
    }

    /// What is known of the cluster now.
    #[must_use]
    pub fn observe(&self) -> Snapshot {
        let mut snapshot = self.manifests.observe(&self.options).snapshot;
        for (name, node) in &mut snapshot.nodes {
            let unprobed = if self.probing { Reachability::NotProbed } else { Reachability::Reachable };
            node.reachability = self.knowledge.get(name).copied().unwrap_or(unprobed);
        }
        let silent_since = |(_, node): &(Address, NodeName), then: &str| self.host_cidrs(node) == Some(then);
        snapshot.departed = self
            .departed
            .iter()
            .filter(|(pair, then)| silent_since(pair, then))
            .map(|(pair, _)| pair.clone())
            .collect();
        snapshot
    }

    /// What happened since the journal was last taken.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Starts a new journal.
    pub fn turn_page(&mut self) {
        self.journal = Journal::default();
    }

    fn apply(&mut self, mut object: Value) -> Result<(), ChangeError> {
        self.complete(&mut object);
        self.manifests.apply(object).map(drop).map_err(|fault| ChangeError::Refused(fault.to_string()))
    }

    /// What an API server adds: a creation time, and the default of an absent `egressNodeSelector`.
    fn complete(&mut self, object: &mut Value) {
        if self.selector_default && object["kind"] == "EgressIP" && object["spec"]["egressNodeSelector"].is_null() {
            let default = json!({ "matchExpressions": [{ "key": EGRESS_ASSIGNABLE, "operator": "Exists" }] });
            object::entry(object, &["spec"]).insert("egressNodeSelector".to_owned(), default);
        }
        let (hours, minutes, seconds) = (self.created / 3600, self.created / 60 % 60, self.created % 60);
        self.created += 1;
        let time = json!(format!("2026-01-01T{hours:02}:{minutes:02}:{seconds:02}Z"));
        object::entry(object, &["metadata"]).insert("creationTimestamp".to_owned(), time);
    }

    fn delete(&mut self, kind: &str, name: &str, namespace: Option<&str>) -> Result<(), ChangeError> {
        let missing = || ChangeError::NoSuchObject(format!("{kind} {name}"));
        let kind = Kind::parse(kind).ok_or_else(missing)?;
        let key = ObjectKey { kind, namespace: namespace.map(str::to_owned), name: name.to_owned() };
        self.manifests.remove(&key).map(drop).ok_or_else(missing)
    }

    fn delete_node(&mut self, node: &str) -> Result<(), ChangeError> {
        let name = NodeName::from(node);
        self.manifests.remove(&node_key(node)).ok_or_else(|| ChangeError::NoSuchNode(node.to_owned()))?;
        self.truth.remove(&name);
        self.knowledge.remove(&name);
        self.drained.remove(&name);
        self.departed.retain(|(_, left), _| *left != name);
        Ok(())
    }

    fn merge(&mut self, node: &str, what: &str, changes: &BTreeMap<String, Option<String>>) -> Result<(), ChangeError> {
        let entries = object::entry(self.node_mut(node)?, &["metadata", what]);
        for (key, value) in changes {
            match value {
                Some(value) => entries.insert(key.clone(), json!(value)),
                None => entries.remove(key),
            };
        }
        Ok(())
    }

    fn node_mut(&mut self, node: &str) -> Result<&mut Value, ChangeError> {
        self.manifests.get_mut(&node_key(node)).ok_or_else(|| ChangeError::NoSuchNode(node.to_owned()))
    }

    fn host_cidrs(&self, node: &NodeName) -> Option<&str> {
        let node = self.manifests.get(&node_key(node.as_str()))?;
        Some(node["metadata"]["annotations"][HOST_CIDRS].as_str().unwrap_or_default())
    }
}

fn ready_condition(ready: bool) -> Value {
    json!({ "type": "Ready", "status": if ready { "True" } else { "False" } })
}

fn node_key(name: &str) -> ObjectKey {
    ObjectKey::cluster(Kind::Node, name)
}
