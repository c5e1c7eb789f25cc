//! Reading and writing stored objects, which are plain JSON.

use serde_json::{Map, Value};

use super::Items;

/// The annotation with the name of the EgressIP that a CloudPrivateIPConfig belongs to.
pub(super) const OWNER: &str = "k8s.ovn.org/egressip-owner-ref";

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
pub(super) fn items(object: &Value) -> Items {
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let items = object["status"]["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut items: Items = items.iter().map(|item| (text(item, "egressIP"), text(item, "node"))).collect();
    items.sort_unstable();
    items
}
