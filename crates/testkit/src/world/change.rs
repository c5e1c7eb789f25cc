//! What users, nodes and the cloud do to a world.

use std::collections::BTreeMap;

use egret_api::annotation::l3_gateway_config;
use egret_api::{Fault, Kind, Manifests, ObjectKey};
use egret_core::{NodeName, SelectorFault};
use serde_json::{Value, json};

use super::object::{entry, key_of};
use super::stage::StageError;
use super::{World, cloud};
use crate::scenario::{GatewayModeName, NodeSpec, Op};

/// Why a change cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is no such node.
    #[error("there is no node {0}")]
    NoSuchNode(String),
    /// There is no such object.
    #[error("there is no {kind} {name}")]
    NoSuchObject {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// It is no object of a kind that we know.
    #[error("{0}")]
    Object(Fault),
    /// The selector of ignored nodes does not compile.
    #[error("no_host_subnet_selector: {0}")]
    Selector(SelectorFault),
    /// The stage cannot do it.
    #[error(transparent)]
    Stage(#[from] StageError),
}

impl World<'_> {
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
            .entry(l3_gateway_config::KEY.to_owned())
            .or_insert_with(|| json!({ "default": { "mode": mode } }).to_string());
        self.truth.insert(spec.name.as_str().into(), spec.reachable);
        Ok(self.stage.create(json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": spec.name, "labels": spec.labels, "annotations": annotations },
            "status": { "conditions": [ready_condition(spec.ready)] },
        }))?)
    }

    /// Stores a new object, status included.
    ///
    /// # Errors
    /// If the store refuses it.
    pub fn insert(&mut self, object: Value) -> Result<(), ChangeError> {
        Ok(self.stage.create(object)?)
    }

    /// Makes one change.
    ///
    /// # Errors
    /// If it speaks of what is not there, or the store refuses it.
    pub fn change(&mut self, op: &Op) -> Result<(), ChangeError> {
        match op {
            Op::Apply { object } => self.apply(object),
            Op::Delete { kind, name, namespace } => self.delete(kind, name, namespace.as_deref()),
            Op::SetNodeLabel { node, labels } => self.edit_node(node, &|object| merge(object, "labels", labels)),
            Op::SetNodeAnnotation { node, annotations } => {
                self.edit_node(node, &|object| merge(object, "annotations", annotations))
            }
            Op::SetReady { node, ready } => self.edit_node(node, &|object| {
                entry(object, &["status"]).insert("conditions".to_owned(), json!([ready_condition(*ready)]));
            }),
            Op::SetReachable { node, reachable } => {
                let truth = self.truth.get_mut(&NodeName::from(node.as_str()));
                *truth.ok_or_else(|| ChangeError::NoSuchNode(node.clone()))? = *reachable;
                Ok(())
            }
            Op::DeleteNode { node } => {
                self.truth.remove(&NodeName::from(node.as_str()));
                match self.stage.delete(&node_key(node)) {
                    Err(StageError::NoSuchObject(_)) => Err(ChangeError::NoSuchNode(node.clone())),
                    result => Ok(result?),
                }
            }
            Op::AddNode { node } => self.add_node(node),
            Op::SetCpicStatus { name, node, assigned } => {
                let key = ObjectKey::cluster(Kind::CloudPrivateIpConfig, name);
                match self.stage.edit(&key, &|object| cloud::answer(object, node, *assigned)) {
                    Err(StageError::NoSuchObject(key)) => Err(no_such(key.kind.name(), name)),
                    result => Ok(result?),
                }
            }
            Op::Start {} | Op::HealthTick {} | Op::Batch { .. } | Op::Restart { .. } => {
                op.parts().iter().try_for_each(|part| self.change(part))
            }
        }
    }

    /// `kubectl apply` of somebody who may not write status.
    fn apply(&mut self, object: &Value) -> Result<(), ChangeError> {
        let mut manifests = Manifests::default();
        manifests.insert(object.clone()).map_err(ChangeError::Object)?;
        let key = key_of(object).ok_or_else(|| no_such(&object["kind"].to_string(), ""))?;
        let applied = self.stage.edit(&key, &|stored| {
            let mut manifests = Manifests::default();
            let known = manifests.insert(stored.clone()).and_then(|_| manifests.apply(object.clone()));
            known.expect("both are objects of this key");
            *stored = manifests.remove(&key).expect("it was just inserted");
        });
        match applied {
            Err(StageError::NoSuchObject(_)) => self.insert(object.clone()),
            result => Ok(result?),
        }
    }

    fn delete(&mut self, kind: &str, name: &str, namespace: Option<&str>) -> Result<(), ChangeError> {
        let parsed = Kind::parse(kind).ok_or_else(|| no_such(kind, name))?;
        let key = ObjectKey { kind: parsed, namespace: namespace.map(str::to_owned), name: name.to_owned() };
        match self.stage.delete(&key) {
            Err(StageError::NoSuchObject(_)) => Err(no_such(kind, name)),
            result => Ok(result?),
        }
    }

    fn edit_node(&mut self, node: &str, change: &dyn Fn(&mut Value)) -> Result<(), ChangeError> {
        match self.stage.edit(&node_key(node), change) {
            Err(StageError::NoSuchObject(_)) => Err(ChangeError::NoSuchNode(node.to_owned())),
            result => Ok(result?),
        }
    }
}

fn merge(node: &mut Value, what: &str, changes: &BTreeMap<String, Option<String>>) {
    let entries = entry(node, &["metadata", what]);
    for (key, value) in changes {
        match value {
            Some(value) => entries.insert(key.clone(), json!(value)),
            None => entries.remove(key),
        };
    }
}

fn ready_condition(ready: bool) -> Value {
    json!({ "type": "Ready", "status": if ready { "True" } else { "False" } })
}

fn node_key(name: &str) -> ObjectKey {
    ObjectKey::cluster(Kind::Node, name)
}

fn no_such(kind: &str, name: &str) -> ChangeError {
    ChangeError::NoSuchObject { kind: kind.to_owned(), name: name.to_owned() }
}
