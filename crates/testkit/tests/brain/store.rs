//! An API server's store, as far as the brain can tell the difference; written apart from the one that scenarios use.

use std::collections::BTreeMap;

use egret_api::{Kind, ObjectKey};
use egret_brain::{Action, Input, Write, WriteError};
use serde_json::{Value, json};

pub(crate) const MARK: &str = "k8s.ovn.org/egressip-mark";

/// Every stored object, and every change there was.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) objects: BTreeMap<ObjectKey, Value>,
    /// What a watch tells, in order.
    pub(crate) told: Vec<(Kind, Input)>,
    pub(crate) version: u64,
    /// The definition of EgressIP is one from before conditions and selectors.
    pub(crate) prunes: bool,
    /// A policy lets nobody write marks.
    pub(crate) denies_marks: bool,
}

impl Store {
    /// Stores what an object has become; a new one gets an identity.
    pub(crate) fn put(&mut self, key: &ObjectKey, mut object: Value) -> Value {
        if self.prunes && key.kind == Kind::EgressIp {
            object["spec"].as_object_mut().unwrap().remove("egressNodeSelector");
            object["status"].as_object_mut().map(|status| status.remove("conditions"));
        }
        let stored = self.objects.get(key);
        if let Some(stored) = stored {
            object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
            if *stored == object {
                return object;
            }
        }
        self.version += 1;
        if stored.is_none() {
            object["metadata"]["uid"] = json!(format!("uid-{}", self.version));
            let time = format!("2026-01-01T{:02}:{:02}:00Z", self.version / 60 % 24, self.version % 60);
            object["metadata"]["creationTimestamp"] = json!(time);
        }
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.told.push((key.kind, Input::Seen { kind: key.kind, object: object.clone() }));
        self.objects.insert(key.clone(), object.clone());
        object
    }

    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        if let Some(object) = self.objects.remove(key) {
            self.version += 1;
            self.told.push((key.kind, Input::Gone { kind: key.kind, object }));
        }
    }

    pub(crate) fn list(&self, kind: Kind) -> Vec<Value> {
        self.of(kind).map(|(_, object)| object.clone()).collect()
    }

    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.objects.iter().filter(move |(key, _)| key.kind == kind)
    }

    /// As the API server answers.
    pub(crate) fn execute(&mut self, write: &Write) -> Result<Option<Value>, WriteError> {
        let key = &write.object;
        let stored = self.objects.get(key).cloned();
        match &write.action {
            Action::Create(_) if stored.is_some() => Err(WriteError::Conflict { current: stored }),
            Action::Create(object) => Ok(Some(self.put(key, object.clone()))),
            Action::Delete { uid, resource_version } => {
                let stored = stored.ok_or(WriteError::Gone)?;
                let metadata = &stored["metadata"];
                if metadata["uid"] != uid.as_str() || metadata["resourceVersion"] != resource_version.as_str() {
                    return Err(WriteError::Conflict { current: Some(stored) });
                }
                self.remove(key);
                Ok(None)
            }
            Action::Patch { operations, .. } => {
                assert_eq!(operations[0]["op"], "test", "every patch is guarded: {operations:?}");
                let mut patched = stored.clone().ok_or(WriteError::Gone)?;
                let patch: json_patch::Patch = serde_json::from_value(json!(operations)).unwrap();
                if json_patch::patch(&mut patched, &patch).is_err() {
                    return Err(WriteError::Conflict { current: stored });
                }
                let mark = |object: &Value| object["metadata"]["annotations"][MARK].clone();
                if self.denies_marks && stored.as_ref().map(&mark) != Some(mark(&patched)) {
                    return Err(WriteError::Denied { message: "marks are protected".to_owned() });
                }
                Ok(Some(self.put(key, patched)))
            }
        }
    }
}
