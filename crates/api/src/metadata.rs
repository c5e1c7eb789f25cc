//! What every object has: name, namespace, labels, annotations, age.

use std::collections::BTreeMap;

use egret_core::{ServiceKey, Timestamp};
use serde_json::{Map, Value, json};

use crate::{Fault, FieldPath};

/// The namespace of a namespaced object that names none, as kubectl fills it in.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// The schema of an object's metadata, as far as it is read.
pub(crate) fn schema() -> Value {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "additionalProperties": true,
        "required": ["name"],
        "properties": {
            "name": text, "namespace": text, "creationTimestamp": text, "labels": texts, "annotations": texts,
        }
    })
}

/// The text at a JSON pointer; `None` if there is none or it is empty.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The elements of the list at a JSON pointer; none if there is no list.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> Option<&str> {
    text(object, "/metadata/name")
}

/// Namespace and name.
pub(crate) fn key(object: &Value) -> Option<ServiceKey> {
    name(object).map(|name| ServiceKey::new(namespace(object), name))
}

/// `metadata.namespace`.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace").unwrap_or(DEFAULT_NAMESPACE)
}

/// The labels whose values are strings.
pub(crate) fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let text = |(key, value): (&String, &Value)| value.as_str().map(|value| (key.clone(), value.to_owned()));
    labels.into_iter().flatten().filter_map(text).collect()
}

/// The annotations as stored: values may be of any type.
pub(crate) fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object.pointer("/metadata/annotations").and_then(Value::as_object)
}

/// The path of an annotation.
pub(crate) fn annotation_path(key: &str) -> FieldPath {
    FieldPath::of(&["metadata", "annotations", key])
}

/// `metadata.creationTimestamp`; unknown where there is none or it cannot be read.
pub(crate) fn created(object: &Value, faults: &mut Vec<Fault>) -> Timestamp {
    let Some(text) = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str) else {
        return Timestamp::UNKNOWN;
    };
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Timestamp(time.as_second());
    }
    let path = FieldPath::of(&["metadata", "creationTimestamp"]);
    faults.push(Fault::new(path, format!("{text:?} is not a time")).help("write it like 2026-01-31T12:00:00Z"));
    Timestamp::UNKNOWN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_in_seconds_and_unknown_is_youngest() {
        let mut faults = Vec::new();
        let mut at = |time: Value| created(&json!({"metadata": {"creationTimestamp": time}}), &mut faults);
        assert_eq!(at(json!("1970-01-01T00:01:00Z")), Timestamp(60));
        assert_eq!(at(json!("1970-01-01T01:01:00+01:00")), Timestamp(60));
        assert_eq!(at(Value::Null), Timestamp::UNKNOWN);
        assert_eq!(at(json!("yesterday")), Timestamp::UNKNOWN);
        let [fault] = faults.as_slice() else { panic!("one fault, not {faults:?}") };
        assert_eq!(fault.to_string(), "metadata.creationTimestamp: \"yesterday\" is not a time");
    }
}
