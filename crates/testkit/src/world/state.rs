//! What is stored at one moment, for those who check it.

use std::collections::{BTreeMap, BTreeSet};

use egret_api::annotation::{egress_ip_mark, egress_ip_owner};
use egret_api::{Kind, ObjectKey};
use egret_placement::SERVICE_LABEL_PREFIX;
use serde_json::{Value, json};

use super::history::Version;
use super::object::{items, text};

/// The items of one status, as text and sorted: address, node.
pub type Items = Vec<(String, String)>;

/// A stored CloudPrivateIPConfig, as far as expectations speak of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloudConfig {
    /// `spec.node`.
    pub node: String,
    /// The owner annotation, empty if there is none.
    pub owner: String,
    /// The node that the cloud has confirmed, if it is the requested one.
    pub confirmed: bool,
}

/// Every stored object at one moment.
#[derive(Clone, Debug, Default)]
pub struct State {
    objects: BTreeMap<ObjectKey, Value>,
}

impl State {
    /// What the next version makes of it.
    pub fn apply(&mut self, version: &Version) {
        match &version.object {
            Some(object) => drop(self.objects.insert(version.key.clone(), object.clone())),
            None => drop(self.objects.remove(&version.key)),
        }
    }

    /// The object of a key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(key)
    }

    /// Every object.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.objects.iter()
    }

    /// The status items of every EgressIP.
    #[must_use]
    pub fn statuses(&self) -> BTreeMap<String, Items> {
        self.stored(Kind::EgressIp).map(|(key, value)| (key.name.clone(), items(value))).collect()
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
        let labels = self.get(&ObjectKey::cluster(Kind::Node, node))?["metadata"]["labels"].as_object();
        Some(labels.map(|labels| labels.keys().cloned().collect()).unwrap_or_default())
    }

    /// Every CloudPrivateIPConfig by name.
    #[must_use]
    pub fn cloud_requests(&self) -> BTreeMap<String, CloudConfig> {
        self.stored(Kind::CloudPrivateIpConfig).map(|(key, value)| (key.name.clone(), cloud_config(value))).collect()
    }

    /// The mark annotation of every EgressIP that has one.
    #[must_use]
    pub fn marks(&self) -> BTreeMap<String, String> {
        let mark = |value: &Value| value["metadata"]["annotations"][egress_ip_mark::KEY].as_str().map(str::to_owned);
        self.stored(Kind::EgressIp).filter_map(|(key, value)| Some((key.name.clone(), mark(value)?))).collect()
    }

    /// The annotations of an EgressIP, if there is such an object.
    #[must_use]
    pub fn annotations(&self, egress_ip: &str) -> Option<BTreeMap<String, String>> {
        let annotations =
            self.get(&ObjectKey::cluster(Kind::EgressIp, egress_ip))?["metadata"]["annotations"].as_object();
        Some(annotations.into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect())
    }

    fn stored(&self, kind: Kind) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.objects.iter().filter(move |(key, _)| key.kind == kind)
    }
}

/// A CloudPrivateIPConfig, as far as expectations speak of it.
#[must_use]
pub fn cloud_config(value: &Value) -> CloudConfig {
    let condition = |condition: &Value| condition["type"] == "Assigned" && condition["status"] == "True";
    let assigned = value["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(condition));
    CloudConfig {
        node: text(&value["spec"]["node"]),
        owner: text(&value["metadata"]["annotations"][egress_ip_owner::KEY]),
        confirmed: assigned && value["status"]["node"] == value["spec"]["node"],
    }
}

/// The part of an object that is the controller's to write, without the times in it.
#[must_use]
pub fn controllers_part(key: &ObjectKey, object: &Value) -> Value {
    match key.kind {
        Kind::EgressIp => {
            let mut status = object["status"].clone();
            for condition in status["conditions"].as_array_mut().into_iter().flatten() {
                condition.as_object_mut().map(|fields| fields.remove("lastTransitionTime"));
            }
            json!({ "mark": object["metadata"]["annotations"][egress_ip_mark::KEY], "status": status })
        }
        Kind::EgressService => object["status"].clone(),
        Kind::Node => {
            let labels = object["metadata"]["labels"].as_object();
            let ours = labels.into_iter().flatten().filter(|(key, _)| key.starts_with(SERVICE_LABEL_PREFIX));
            ours.map(|(key, value)| (key.clone(), value.clone())).collect()
        }
        Kind::CloudPrivateIpConfig => {
            json!({ "spec": object["spec"], "owner": object["metadata"]["annotations"][egress_ip_owner::KEY] })
        }
        Kind::Service | Kind::EndpointSlice => Value::Null,
    }
}
