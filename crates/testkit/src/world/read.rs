//! What is stored now, for those who check it.

use std::collections::{BTreeMap, BTreeSet};

use egret_api::{Kind, ObjectKey};
use serde_json::Value;

use super::{Items, World, node_key, object};

/// A stored CloudPrivateIPConfig, as far as expectations speak of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloudConfig {
    /// `spec.node`.
    pub node: String,
    /// The owner annotation, empty if there is none.
    pub owner: String,
}

impl World {
    /// The status items of every EgressIP.
    #[must_use]
    pub fn statuses(&self) -> BTreeMap<String, Items> {
        self.stored(Kind::EgressIp).map(|(key, value)| (key.name.clone(), object::items(value))).collect()
    }

    /// `status.host` of every EgressService, by `namespace/name`; empty if there is none.
    #[must_use]
    pub fn hosts(&self) -> BTreeMap<String, String> {
        let name = |key: &ObjectKey| format!("{}/{}", key.namespace.as_deref().unwrap_or_default(), key.name);
        self.stored(Kind::EgressService).map(|(key, value)| (name(key), text(&value["status"]["host"]))).collect()
    }

    /// The label keys of a node, if there is such a node.
    #[must_use]
    pub fn label_keys(&self, node: &str) -> Option<BTreeSet<String>> {
        let labels = self.manifests.get(&node_key(node))?["metadata"]["labels"].as_object();
        Some(labels.map(|labels| labels.keys().cloned().collect()).unwrap_or_default())
    }

    /// Every CloudPrivateIPConfig by name.
    #[must_use]
    pub fn cloud_requests(&self) -> BTreeMap<String, CloudConfig> {
        let config = |value: &Value| CloudConfig {
            node: text(&value["spec"]["node"]),
            owner: text(&value["metadata"]["annotations"][object::OWNER]),
        };
        self.cloud_configs().map(|(name, value)| (name.to_owned(), config(value))).collect()
    }

    pub(super) fn cloud_configs(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.stored(Kind::CloudPrivateIpConfig).map(|(key, value)| (key.name.as_str(), value))
    }

    fn stored(&self, kind: Kind) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.manifests.iter().filter(move |(key, _)| key.kind == kind)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
