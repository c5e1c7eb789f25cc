//! EgressIP: from the object as stored.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use egret_core::{Address, AddressFault, EgressIp, InvalidRequest, NodeSelector, RecordedItem};
use serde_json::Value;

use crate::{Converted, Fault, FieldPath, crd, metadata, schema, selector};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| crd::object_schema(&crd::egress_ip_definition()));

/// Reads an EgressIP.
///
/// There is no object without a name, and none whose `spec.egressIPs` is not a list.
pub fn from_value(value: &Value) -> Converted<EgressIp> {
    let structural = schema::check(&SCHEMA, value);
    let mut faults = Vec::new();
    let object = object(value, &structural, &mut faults);
    faults.extend(structural);
    Converted::new(object, faults)
}

fn object(value: &Value, structural: &[Fault], faults: &mut Vec<Fault>) -> Option<EgressIp> {
    let created = metadata::created(value, faults);
    let selector = node_selector(value, structural, faults);
    for key in ["namespaceSelector", "podSelector"] {
        if let Some(pods) = value.pointer("/spec").and_then(|spec| spec.get(key)).filter(|pods| !pods.is_null()) {
            selector::compile(pods, &FieldPath::of(&["spec", key]), structural, faults);
        }
    }
    let recorded = recorded(value, faults);
    let entries = value.pointer("/spec/egressIPs").and_then(Value::as_array);
    let (requested, invalid) = requested(entries?, faults);
    Some(EgressIp { name: metadata::name(value)?.into(), created, requested, invalid, selector, recorded })
}

fn node_selector(value: &Value, structural: &[Fault], faults: &mut Vec<Fault>) -> NodeSelector {
    match value.pointer("/spec/egressNodeSelector") {
        None | Some(Value::Null) => NodeSelector::egress_assignable(),
        Some(nodes) => selector::compile(nodes, &FieldPath::of(&["spec", "egressNodeSelector"]), structural, faults),
    }
}

/// The distinct addresses, ascending, and the texts that are none. An entry that is no text has its fault already.
fn requested(entries: &[Value], faults: &mut Vec<Fault>) -> (Vec<Address>, Vec<InvalidRequest>) {
    let path = FieldPath::of(&["spec", "egressIPs"]);
    let mut requested = BTreeSet::new();
    let mut invalid = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let Some(text) = entry.as_str() else {
            let text = if entry.is_null() { String::new() } else { entry.to_string() };
            invalid.push(InvalidRequest { text, fault: AddressFault::NotAnAddress });
            continue;
        };
        match Address::parse(text) {
            Ok(address) => {
                requested.insert(address);
            }
            Err(fault) => {
                faults.push(not_an_address(path.index(i), text, fault));
                invalid.push(InvalidRequest { text: text.to_owned(), fault });
            }
        }
    }
    (requested.into_iter().collect(), invalid)
}

fn not_an_address(path: FieldPath, text: &str, fault: AddressFault) -> Fault {
    let message = if text.is_empty() { fault.to_string() } else { format!("{text:?}: {fault}") };
    Fault::new(path, message).help("write one IPv4 or IPv6 address, such as 192.0.2.10 or 2001:db8::10")
}

fn recorded(value: &Value, faults: &mut Vec<Fault>) -> Vec<RecordedItem> {
    let path = FieldPath::of(&["status", "items"]);
    let mut recorded = BTreeSet::new();
    for (i, item) in metadata::list(value, "/status/items").iter().enumerate() {
        let text = |key| item.get(key).and_then(Value::as_str);
        let (Some(address), Some(node)) = (text("egressIP"), text("node")) else { continue };
        match Address::parse(address) {
            Ok(_) if node.is_empty() => {
                faults.push(Fault::new(path.index(i), "the item names no node and counts as not there"));
            }
            Ok(address) => {
                recorded.insert(RecordedItem { address, node: node.into() });
            }
            Err(fault) => {
                let message = format!("the item counts as not there, {address:?}: {fault}");
                faults.push(Fault::new(path.index(i), message));
            }
        }
    }
    recorded.into_iter().collect()
}
