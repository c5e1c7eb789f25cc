//! Reading and writing stored objects, which are plain JSON.

use egret_api::{Kind, ObjectKey};
use serde_json::{Map, Value};

use super::Items;

/// The map at `path`; what is missing on the way, or is no map, becomes an empty one.
pub(super) fn entry<'a>(object: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut value = object;
    for key in path {
        value = map(value).entry(*key).or_insert(Value::Null);
    }
    map(value)
}

fn map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was just made a map")
}

/// The items of an EgressIP's status, sorted.
#[must_use]
pub fn items(object: &Value) -> Items {
    let items = object["status"]["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut items: Items = items.iter().map(|item| (text(&item["egressIP"]), text(&item["node"]))).collect();
    items.sort_unstable();
    items
}

/// A string; empty if it is none.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The key of an object of a kind that we know.
pub(super) fn key_of(object: &Value) -> Option<ObjectKey> {
    let kind = Kind::of(object["apiVersion"].as_str()?, object["kind"].as_str()?)?;
    let name = object["metadata"]["name"].as_str()?;
    let namespace = kind.namespaced().then(|| object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned());
    Some(ObjectKey { kind, namespace, name: name.to_owned() })
}

/// Whether status is written apart from the rest, and dropped from a write of the rest.
pub(super) fn has_status_subresource(kind: Kind) -> bool {
    match kind {
        Kind::EgressService | Kind::CloudPrivateIpConfig | Kind::Node | Kind::Service => true,
        Kind::EgressIp | Kind::EndpointSlice => false,
    }
}
