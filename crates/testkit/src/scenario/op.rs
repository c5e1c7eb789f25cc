//! What happens in a scenario, step by step.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{self, Deserializer};
use serde_json::Value;

use super::expect::Expect;
use super::model::NodeSpec;

/// Whether probes may be answered before a step is checked.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Settle {
    /// Events are processed, and at least one reachability round is done.
    #[default]
    Full,
    /// Events are processed and no probe is answered.
    Events,
}

/// One step: what happens, how the world settles, what is expected then.
#[derive(Clone, Debug)]
pub struct Step {
    /// What happens.
    pub op: Op,
    /// How the world settles.
    pub settle: Settle,
    /// What is expected then.
    pub expect: Expect,
}

impl<'de> Deserialize<'de> for Step {
    /// By hand: `op` tags the step, and serde cannot refuse unknown keys beside a flattened tag.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = serde_json::Map::deserialize(deserializer)?;
        let expect = fields.remove("expect").map(serde_json::from_value).transpose();
        let settle = fields.remove("settle").map(serde_json::from_value).transpose();
        Ok(Self {
            expect: expect.map_err(de::Error::custom)?.unwrap_or_default(),
            settle: settle.map_err(de::Error::custom)?.unwrap_or_default(),
            op: serde_json::from_value(Value::Object(fields)).map_err(de::Error::custom)?,
        })
    }
}

/// What can happen.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// The controller starts on what is stored.
    Start {},
    /// `kubectl apply`.
    Apply {
        /// The object.
        object: Value,
    },
    /// An object is deleted.
    Delete {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Its namespace, if it has one.
        namespace: Option<String>,
    },
    /// Labels are merged into a node; null removes one.
    SetNodeLabel {
        /// The node.
        node: String,
        /// The labels.
        labels: BTreeMap<String, Option<String>>,
    },
    /// Annotations are merged into a node; null removes one.
    SetNodeAnnotation {
        /// The node.
        node: String,
        /// The annotations.
        annotations: BTreeMap<String, Option<String>>,
    },
    /// The Ready condition of a node changes.
    SetReady {
        /// The node.
        node: String,
        /// Ready from now on.
        ready: bool,
    },
    /// What later probes of a node return.
    SetReachable {
        /// The node.
        node: String,
        /// Reachable from now on.
        reachable: bool,
    },
    /// A node is deleted.
    DeleteNode {
        /// The node.
        node: String,
    },
    /// A node joins.
    AddNode {
        /// The node.
        node: NodeSpec,
    },
    /// One reachability round.
    HealthTick {},
    /// The cloud answers one request.
    SetCpicStatus {
        /// The CloudPrivateIPConfig.
        name: String,
        /// The node it speaks of.
        node: String,
        /// Assigned, or refused.
        assigned: bool,
    },
    /// Several changes before anything reacts.
    Batch {
        /// The changes.
        steps: Vec<Op>,
    },
    /// The controller stops, things change, a new one starts on the same store.
    Restart {
        /// What changes meanwhile.
        #[serde(default)]
        changes_while_down: Vec<Op>,
    },
}

impl Op {
    /// The name a scenario gives it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start {} => "start",
            Self::Apply { .. } => "apply",
            Self::Delete { .. } => "delete",
            Self::SetNodeLabel { .. } => "set_node_label",
            Self::SetNodeAnnotation { .. } => "set_node_annotation",
            Self::SetReady { .. } => "set_ready",
            Self::SetReachable { .. } => "set_reachable",
            Self::DeleteNode { .. } => "delete_node",
            Self::AddNode { .. } => "add_node",
            Self::HealthTick {} => "health_tick",
            Self::SetCpicStatus { .. } => "set_cpic_status",
            Self::Batch { .. } => "batch",
            Self::Restart { .. } => "restart",
        }
    }

    /// The changes within a batch or while the controller is down.
    #[must_use]
    pub fn parts(&self) -> &[Op] {
        match self {
            Self::Batch { steps } => steps,
            Self::Restart { changes_while_down } => changes_while_down,
            _ => &[],
        }
    }

    /// Whether it changes the world and nothing else, so that it can be a part of another.
    #[must_use]
    pub fn is_change(&self) -> bool {
        !matches!(self, Self::Start {} | Self::HealthTick {} | Self::Batch { .. } | Self::Restart { .. })
    }
}
