//! An API server's store in memory, as far as the controller can tell the difference.
//!
//! What it does as the real one: versions count up over all kinds; a write that changes nothing is no version; the
//! definition's default is filled in and what an old definition does not know is dropped; status has a subresource or
//! not; a patch is applied whole or not at all; a deletion can insist on the version. What it does not do: validate.

use std::collections::BTreeMap;

use egret_api::{Kind, ObjectKey};
use egret_brain::{Action, WriteError};
use serde_json::{Value, json};

use super::history::{Version, Writer};
use super::object::{entry, has_status_subresource, key_of};
use super::stage::Definition;

const EGRESS_ASSIGNABLE: &str = "k8s.ovn.org/egress-assignable";
/// What only the store writes.
const OWN_METADATA: [&str; 6] = ["name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"];

/// The stored objects, and every version there was.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    definition: Definition,
    objects: BTreeMap<ObjectKey, Value>,
    versions: Vec<Version>,
    created: u32,
}

impl Store {
    pub(super) fn new(definition: Definition) -> Self {
        Self { definition, ..Self::default() }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(key)
    }

    /// The objects of a kind.
    pub(super) fn list(&self, kind: Kind) -> Vec<Value> {
        self.objects.iter().filter(|(key, _)| key.kind == kind).map(|(_, object)| object.clone()).collect()
    }

    /// Every version, oldest first.
    pub(super) fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// Stores a new object with everything that is in it.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] if there is one of this name, [`WriteError::Invalid`] if it does not say what it is.
    pub(super) fn create(&mut self, mut object: Value, writer: Writer) -> Result<Value, WriteError> {
        let Some(key) = key_of(&object) else {
            return Err(WriteError::Invalid { message: "it does not say what it is".to_owned() });
        };
        if let Some(current) = self.objects.get(&key) {
            return Err(WriteError::Conflict { current: Some(current.clone()) });
        }
        let metadata = entry(&mut object, &["metadata"]);
        metadata.insert("uid".to_owned(), json!(format!("00000000-0000-4000-8000-{:012x}", self.created)));
        metadata.insert("creationTimestamp".to_owned(), json!(time_of(self.created)));
        metadata.insert("generation".to_owned(), json!(1));
        self.created += 1;
        Ok(self.store(key, object, writer))
    }

    /// Replaces all of a stored object but what only the store writes.
    ///
    /// # Errors
    /// [`WriteError::Gone`] if there is none.
    pub(super) fn replace(&mut self, key: &ObjectKey, object: Value, writer: Writer) -> Result<Value, WriteError> {
        let Some(stored) = self.objects.get(key) else { return Err(WriteError::Gone) };
        let object = update(stored, object);
        Ok(self.store(key.clone(), object, writer))
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// [`WriteError::Gone`] if there is none.
    pub(super) fn delete(&mut self, key: &ObjectKey, writer: Writer) -> Result<(), WriteError> {
        if self.objects.remove(key).is_none() {
            return Err(WriteError::Gone);
        }
        self.versions.push(Version { key: key.clone(), object: None, writer });
        Ok(())
    }

    /// Does what the controller asks for.
    ///
    /// # Errors
    /// As the API server would answer.
    pub(super) fn execute(&mut self, key: &ObjectKey, action: &Action) -> Result<Option<Value>, WriteError> {
        match action {
            Action::Create(object) => {
                let mut object = object.clone();
                if has_status_subresource(key.kind) && key.kind != Kind::Node {
                    object.as_object_mut().map(|fields| fields.remove("status"));
                }
                self.create(object, Writer::Controller).map(Some)
            }
            Action::Patch { subresource, operations } => self.patch(key, *subresource, operations).map(Some),
            Action::Delete { uid, resource_version } => {
                let Some(stored) = self.objects.get(key) else { return Err(WriteError::Gone) };
                let metadata = &stored["metadata"];
                if metadata["uid"] != uid.as_str() || metadata["resourceVersion"] != resource_version.as_str() {
                    return Err(WriteError::Conflict { current: Some(stored.clone()) });
                }
                self.delete(key, Writer::Controller).map(|()| None)
            }
        }
    }

    fn patch(&mut self, key: &ObjectKey, subresource: Option<&str>, operations: &[Value]) -> Result<Value, WriteError> {
        let Some(stored) = self.objects.get(key) else { return Err(WriteError::Gone) };
        if subresource.is_some_and(|name| name != "status" || !has_status_subresource(key.kind)) {
            return Err(WriteError::Gone);
        }
        let invalid = |message: String| WriteError::Invalid { message };
        let operations: json_patch::Patch =
            serde_json::from_value(Value::Array(operations.to_vec())).map_err(|error| invalid(error.to_string()))?;
        let mut patched = stored.clone();
        if let Err(error) = json_patch::patch(&mut patched, &operations) {
            return Err(match error.kind {
                json_patch::PatchErrorKind::TestFailed => WriteError::Conflict { current: Some(stored.clone()) },
                _ => invalid(error.to_string()),
            });
        }
        let patched = narrowed(key.kind, subresource.is_some(), stored, patched);
        let object = update(stored, patched);
        Ok(self.store(key.clone(), object, Writer::Controller))
    }

    /// Stores what an object has become, unless that is what it was.
    fn store(&mut self, key: ObjectKey, mut object: Value, writer: Writer) -> Value {
        self.define(key.kind, &mut object);
        let stored = self.objects.get(&key);
        if let Some(stored) = stored {
            let version = |part: &Value| part["metadata"]["resourceVersion"].clone();
            entry(&mut object, &["metadata"]).insert("resourceVersion".to_owned(), version(stored));
            if *stored == object {
                return object;
            }
            if raises_generation(key.kind, stored, &object) {
                let generation = stored["metadata"]["generation"].as_u64().unwrap_or(1) + 1;
                entry(&mut object, &["metadata"]).insert("generation".to_owned(), json!(generation));
            }
        }
        let version = (self.versions.len() + 1).to_string();
        entry(&mut object, &["metadata"]).insert("resourceVersion".to_owned(), json!(version));
        self.versions.push(Version { key: key.clone(), object: Some(object.clone()), writer });
        self.objects.insert(key, object.clone());
        object
    }

    /// What the definition of the kind makes of an object.
    fn define(&self, kind: Kind, object: &mut Value) {
        if kind != Kind::EgressIp {
            return;
        }
        match self.definition {
            Definition::Current if object["spec"]["egressNodeSelector"].is_null() => {
                let default = json!({ "matchExpressions": [{ "key": EGRESS_ASSIGNABLE, "operator": "Exists" }] });
                entry(object, &["spec"]).insert("egressNodeSelector".to_owned(), default);
            }
            Definition::Current => {}
            Definition::Old => {
                for (part, field) in [("spec", "egressNodeSelector"), ("status", "conditions")] {
                    object[part].as_object_mut().map(|fields| fields.remove(field));
                }
            }
        }
    }
}

/// What a write through the main resource, or through the status, can change.
fn narrowed(kind: Kind, status: bool, stored: &Value, mut patched: Value) -> Value {
    if !has_status_subresource(kind) {
        return patched;
    }
    // The status of built-in kinds takes metadata along, that of custom resources does not.
    let kept: &[&str] = match (status, kind) {
        (false, _) => &["status"],
        (true, Kind::Node | Kind::Service) => &["spec"],
        (true, _) => &["spec", "metadata"],
    };
    for part in kept {
        match stored.get(*part) {
            Some(value) => patched[*part] = value.clone(),
            None => drop(patched.as_object_mut().map(|fields| fields.remove(*part))),
        }
    }
    patched
}

/// The new object with what only the store writes taken from the stored one.
fn update(stored: &Value, mut object: Value) -> Value {
    for field in OWN_METADATA {
        let metadata = entry(&mut object, &["metadata"]);
        match stored["metadata"].get(field) {
            Some(value) => drop(metadata.insert(field.to_owned(), value.clone())),
            None => drop(metadata.remove(field)),
        }
    }
    object
}

fn raises_generation(kind: Kind, before: &Value, after: &Value) -> bool {
    before["spec"] != after["spec"] || (!has_status_subresource(kind) && before["status"] != after["status"])
}

/// Objects are created a second apart, so that the order of creation is always known.
fn time_of(second: u32) -> String {
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    format!("2026-01-01T{hours:02}:{minutes:02}:{seconds:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn egress_ip() -> Value {
        json!({
            "apiVersion": "k8s.ovn.org/v1",
            "kind": "EgressIP",
            "metadata": { "name": "a", "annotations": { "mine": "1" } },
            "spec": { "egressIPs": ["10.0.0.1"], "namespaceSelector": {} },
        })
    }

    fn service() -> Value {
        json!({
            "apiVersion": "k8s.ovn.org/v1",
            "kind": "EgressService",
            "metadata": { "name": "a", "namespace": "n" },
            "spec": {},
        })
    }

    fn stored(object: Value) -> (Store, ObjectKey) {
        let key = key_of(&object).expect("a known kind");
        let mut store = Store::new(Definition::Current);
        store.create(object, Writer::Other).expect("a new object");
        (store, key)
    }

    fn patch(
        store: &mut Store,
        key: &ObjectKey,
        subresource: Option<&'static str>,
        operations: Value,
    ) -> Result<Option<Value>, WriteError> {
        let Value::Array(operations) = operations else { panic!("a list") };
        store.execute(key, &Action::Patch { subresource, operations })
    }

    #[test]
    fn a_failed_test_is_a_conflict_and_nothing_of_the_patch_is_stored() {
        let (mut store, key) = stored(egress_ip());
        let before = store.get(&key).cloned();
        let operations = json!([
            { "op": "add", "path": "/status", "value": { "items": [] } },
            { "op": "test", "path": "/metadata/annotations/mine", "value": "2" },
        ]);
        let result = patch(&mut store, &key, None, operations);
        assert_eq!(result, Err(WriteError::Conflict { current: before.clone() }));
        assert_eq!(store.get(&key).cloned(), before);
    }

    #[test]
    fn a_write_that_changes_nothing_is_no_version() {
        let (mut store, key) = stored(egress_ip());
        let write = json!([{ "op": "add", "path": "/status", "value": { "items": [] } }]);
        patch(&mut store, &key, None, write.clone()).expect("a write");
        assert_eq!(store.versions().len(), 2);
        patch(&mut store, &key, None, write).expect("a write");
        assert_eq!(store.versions().len(), 2);
        assert_eq!(store.get(&key).expect("the object")["metadata"]["generation"], 2);
    }

    #[test]
    fn a_status_with_a_subresource_is_written_through_it_only() {
        let (mut store, key) = stored(service());
        let write = json!([
            { "op": "add", "path": "/status", "value": { "host": "n1" } },
            { "op": "add", "path": "/metadata/labels", "value": { "a": "b" } },
        ]);
        let main = patch(&mut store, &key, None, write.clone()).expect("a write").expect("the object");
        assert!(main.get("status").is_none() && main["metadata"]["labels"]["a"] == "b");
        let (mut store, key) = stored(service());
        let status = patch(&mut store, &key, Some("status"), write).expect("a write").expect("the object");
        assert!(status["status"]["host"] == "n1" && status["metadata"].get("labels").is_none());
        assert_eq!(status["metadata"]["generation"], 1);
        let (mut store, key) = stored(egress_ip());
        assert_eq!(patch(&mut store, &key, Some("status"), json!([])), Err(WriteError::Gone));
    }

    #[test]
    fn a_deletion_insists_on_the_version() {
        let (mut store, key) = stored(egress_ip());
        let metadata = store.get(&key).expect("the object")["metadata"].clone();
        let delete = |resource_version: &str| Action::Delete {
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            resource_version: resource_version.to_owned(),
        };
        assert!(matches!(store.execute(&key, &delete("9")), Err(WriteError::Conflict { .. })));
        assert_eq!(store.execute(&key, &delete("1")), Ok(None));
        assert_eq!(store.execute(&key, &delete("1")), Err(WriteError::Gone));
    }

    #[test]
    fn each_definition_makes_its_own_of_an_object() {
        let mut object = egress_ip();
        object["status"] = json!({ "items": [], "conditions": [] });
        let mut current = Store::new(Definition::Current);
        let kept = current.create(object.clone(), Writer::Other).expect("a new object");
        assert_eq!(kept["spec"]["egressNodeSelector"]["matchExpressions"][0]["operator"], "Exists");
        assert!(kept["status"]["conditions"].is_array());
        object["spec"]["egressNodeSelector"] = json!({});
        let mut old = Store::new(Definition::Old);
        let dropped = old.create(object, Writer::Other).expect("a new object");
        assert!(dropped["spec"].get("egressNodeSelector").is_none() && dropped["status"].get("conditions").is_none());
    }

    #[test]
    fn each_object_is_a_second_younger_and_one_that_is_replaced_keeps_its_age() {
        let (mut store, key) = stored(egress_ip());
        let mut second = egress_ip();
        second["metadata"]["name"] = json!("b");
        let second = store.create(second, Writer::Other).expect("a new object");
        let mut object = egress_ip();
        object["metadata"]["creationTimestamp"] = json!("2030-01-01T00:00:00Z");
        let first = store.replace(&key, object, Writer::Other).expect("the object");
        let times = [&first, &second].map(|object| object["metadata"]["creationTimestamp"].clone());
        assert_eq!(times, ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]);
    }
}
