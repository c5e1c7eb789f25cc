//! A node as it is stored, and how its labels are changed without touching anybody else's.

use std::collections::BTreeMap;

use egret_api::Fault;
use egret_core::Labels;
use serde_json::{Value, json};

use crate::meta::{Meta, escaped};

const HOST_CIDRS: &str = "k8s.ovn.org/host-cidrs";
/// So many faults are told; the rest is their number.
const MOST_FAULTS: usize = 3;

/// What is kept of a stored node beside what decisions are made from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) meta: Meta,
    /// The annotation as it is written.
    pub(crate) host_cidrs: String,
    pub(crate) faults: String,
    /// Events that were raised and still hold, by reason.
    pub(crate) told: BTreeMap<&'static str, String>,
}

impl Entry {
    pub(crate) fn read(value: &Value, faults: &[Fault]) -> Self {
        let mut texts: Vec<String> = faults.iter().take(MOST_FAULTS).map(ToString::to_string).collect();
        if faults.len() > MOST_FAULTS {
            texts.push(format!("and {} more", faults.len() - MOST_FAULTS));
        }
        let host_cidrs = value["metadata"]["annotations"][HOST_CIDRS].as_str().unwrap_or_default().to_owned();
        Self { meta: Meta::of(value), host_cidrs, faults: texts.join("; "), told: BTreeMap::new() }
    }
}

/// The patch that takes labels away and adds others; empty if there is nothing to do.
///
/// Guarded by the node's identity and by every label that goes, not by its version: kubelets write their nodes all the
/// time.
pub(crate) fn operations(entry: &Entry, labels: &Labels, surplus: &[&String], missing: &[&String]) -> Vec<Value> {
    if surplus.is_empty() && missing.is_empty() {
        return Vec::new();
    }
    let path = |key: &str| format!("/metadata/labels/{}", escaped(key));
    if labels.is_empty() {
        let labels: BTreeMap<&String, &str> = missing.iter().map(|key| (*key, "")).collect();
        // There is no map yet; the guard on the version keeps this from replacing one that came in between.
        return vec![entry.meta.test(), json!({ "op": "add", "path": "/metadata/labels", "value": labels })];
    }
    let mut operations = vec![json!({ "op": "test", "path": "/metadata/uid", "value": entry.meta.uid })];
    for key in surplus {
        let value = labels.get(*key).map(String::as_str).unwrap_or_default();
        operations.push(json!({ "op": "test", "path": path(key), "value": value }));
        operations.push(json!({ "op": "remove", "path": path(key) }));
    }
    operations.extend(missing.iter().map(|key| json!({ "op": "add", "path": path(key), "value": "" })));
    operations
}
