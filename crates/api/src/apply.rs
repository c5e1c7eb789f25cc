//! What is stored of an object that a user applies over another.

use serde_json::Value;

use crate::manifests::key;
use crate::{Fault, Inserted, Kind, Manifests};

/// Metadata that only the API server gives.
const SERVER_OWNED: [&str; 3] = ["creationTimestamp", "uid", "resourceVersion"];

impl Manifests {
    /// Stores an object as an API server would take it from a user who may not write status.
    ///
    /// Over a stored object: labels and annotations are merged (null removes), age and uid stay, spec is replaced, status
    /// stays. A Service's status is replaced as well, and so is everything of an EndpointSlice but its metadata, for
    /// these two are what a test or a plan says of the world. A Node that is given without spec keeps the one it has.
    ///
    /// # Errors
    /// As [`Manifests::insert`].
    pub fn apply(&mut self, mut value: Value) -> Result<Inserted, Fault> {
        if let Some(key) = key(&value)?
            && let Some(stored) = self.get(&key)
        {
            merge(key.kind, &mut value, stored);
        }
        self.insert(value)
    }
}

/// Makes of the `applied` object what is stored of it after the `stored` one.
fn merge(kind: Kind, applied: &mut Value, stored: &Value) {
    for map in ["labels", "annotations"] {
        merge_map(applied, stored, map);
    }
    let Some(object) = applied.as_object_mut() else { return };
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(known) = stored.get("metadata").and_then(Value::as_object)
    {
        for (key, value) in known {
            let server_owned = SERVER_OWNED.contains(&key.as_str());
            if server_owned || !metadata.contains_key(key) {
                metadata.insert(key.clone(), value.clone());
            }
        }
    }
    let keeps_spec = kind == Kind::Node && object.get("spec").is_none_or(Value::is_null);
    let keeps_status = !matches!(kind, Kind::Service | Kind::EndpointSlice);
    for (key, _) in [("spec", keeps_spec), ("status", keeps_status)].into_iter().filter(|(_, keeps)| *keeps) {
        object.remove(key);
        object.extend(stored.get(key).map(|value| (key.to_owned(), value.clone())));
    }
}

fn merge_map(applied: &mut Value, stored: &Value, map: &str) {
    let Some(known) = stored.pointer("/metadata").and_then(|metadata| metadata.get(map)?.as_object()) else { return };
    let Some(metadata) = applied.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let mut merged = known.clone();
    match metadata.get(map) {
        None | Some(Value::Null) => {}
        Some(Value::Object(new)) => merged.extend(new.clone()),
        // Of a wrong type: stays as it is, for the fault to be found.
        Some(_) => return,
    }
    merged.retain(|_, value| !value.is_null());
    metadata.insert(map.to_owned(), Value::Object(merged));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied(stored: Value, value: Value) -> Value {
        let mut manifests = Manifests::default();
        manifests.insert(stored).unwrap();
        let Ok(Inserted::Known(key)) = manifests.apply(value) else { panic!("a known kind") };
        assert_eq!(manifests.len(), 1);
        manifests.remove(&key).unwrap()
    }

    #[test]
    fn a_new_object_is_stored_with_its_status() {
        let mut manifests = Manifests::default();
        let value = json!({
            "apiVersion": "k8s.ovn.org/v1",
            "kind": "EgressIP",
            "metadata": {"name": "a"},
            "status": {"items": []},
        });
        manifests.apply(value.clone()).unwrap();
        assert_eq!(manifests.iter().map(|(_, stored)| stored).collect::<Vec<_>>(), [&value]);
    }

    #[test]
    fn labels_are_merged_spec_is_replaced_age_and_status_stay() {
        let object = |metadata: Value, spec: Value, status: Value| {
            let mut metadata = metadata;
            metadata["name"] = json!("a");
            json!({"apiVersion": "k8s.ovn.org/v1", "kind": "EgressIP", "metadata": metadata, "spec": spec, "status": status})
        };
        let stored = object(
            json!({"labels": {"a": "1", "b": "1", "c": "1"}, "annotations": {"m": "1"}, "creationTimestamp": "old", "uid": "u"}),
            json!({"egressIPs": ["10.0.0.1"], "egressNodeSelector": {}}),
            json!({"items": ["old"]}),
        );
        let value = object(
            json!({"labels": {"b": "2", "c": null, "d": "2"}, "creationTimestamp": "new"}),
            json!({"egressIPs": ["10.0.0.2"]}),
            json!({"items": ["new"]}),
        );
        let expected = object(
            json!({"labels": {"a": "1", "b": "2", "d": "2"}, "annotations": {"m": "1"}, "creationTimestamp": "old", "uid": "u"}),
            json!({"egressIPs": ["10.0.0.2"]}),
            json!({"items": ["old"]}),
        );
        assert_eq!(applied(stored, value), expected);
    }

    #[test]
    fn a_service_that_is_applied_without_status_has_none() {
        let service = |status: Value| {
            let mut value = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {}});
            value.as_object_mut().unwrap().extend((!status.is_null()).then(|| ("status".to_owned(), status)));
            value
        };
        assert_eq!(applied(service(json!({"old": 1})), service(Value::Null)), service(Value::Null));
        assert_eq!(applied(service(Value::Null), service(json!({"new": 1}))), service(json!({"new": 1})));
    }

    #[test]
    fn an_endpoint_slice_is_replaced_but_for_its_metadata() {
        let slice = |labels: Value, rest: &str| {
            json!({
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": "a", "labels": labels},
                rest: "IPv4",
            })
        };
        let value = applied(slice(json!({"a": "1"}), "addressType"), slice(json!({"b": "2"}), "other"));
        assert_eq!(value, slice(json!({"a": "1", "b": "2"}), "other"));
    }

    #[test]
    fn a_node_that_is_given_without_spec_keeps_its_spec() {
        let stored = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "a"},
            "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {"conditions": []},
        });
        let value = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"pool": "x"}}});
        let mut expected = stored.clone();
        expected["metadata"]["labels"] = json!({"pool": "x"});
        assert_eq!(applied(stored, value), expected);
    }
}
