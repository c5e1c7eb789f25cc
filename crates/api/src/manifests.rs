//! The objects of a cluster as their JSON, each once.

use std::collections::BTreeMap;
use std::sync::Arc;

use egret_core::Platform;
use serde_json::Value;

use crate::annotation::egress_ipconfig;
use crate::{Fault, FieldPath, Kind, ObjectKey, metadata};

/// Parts that no decision reads and that make up most of a big cluster's dump.
const UNREAD: [(&str, &[&str]); 2] =
    [("/metadata", &["managedFields"]), ("/status", &["images", "volumesInUse", "volumesAttached", "nodeInfo"])];

/// The objects of a cluster as their JSON, each once, in the order of their keys. A clone shares the objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifests {
    objects: BTreeMap<ObjectKey, Arc<Value>>,
}

/// What became of an object that was put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is stored under this key.
    Known(ObjectKey),
    /// It is of a kind that no decision is made from.
    Ignored {
        /// `kind` of the object.
        kind: String,
    },
}

impl Manifests {
    /// Stores an object; one that has the same key goes.
    ///
    /// # Errors
    /// A fault if the object does not say what it is: `apiVersion`, `kind`, `metadata.name`.
    pub fn insert(&mut self, mut value: Value) -> Result<Inserted, Fault> {
        let Some(key) = key(&value)? else { return Ok(ignored(&value)) };
        drop_unread(&mut value);
        self.objects.insert(key.clone(), Arc::new(value));
        Ok(Inserted::Known(key))
    }

    /// The object of a key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(key).map(AsRef::as_ref)
    }

    /// The object of a key, to be changed in place. What it says of its own key must stay.
    pub fn get_mut(&mut self, key: &ObjectKey) -> Option<&mut Value> {
        self.objects.get_mut(key).map(Arc::make_mut)
    }

    /// Takes an object out.
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Value> {
        self.objects.remove(key).map(Arc::unwrap_or_clone)
    }

    /// The keys, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.objects.keys()
    }

    /// The objects, by ascending key.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.objects.iter().map(|(key, value)| (key, value.as_ref()))
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Where the cluster seems to run: on a cloud if any node has the cloud's annotation or any CloudPrivateIPConfig
    /// exists.
    #[must_use]
    pub fn platform_hint(&self) -> Platform {
        let cloud = self.iter().any(|(key, value)| match key.kind {
            Kind::CloudPrivateIpConfig => true,
            Kind::Node => metadata::annotations(value).is_some_and(|all| all.contains_key(egress_ipconfig::KEY)),
            _ => false,
        });
        if cloud { Platform::Cloud } else { Platform::BareMetal }
    }
}

/// The key of an object; `None` if its kind is not ours.
pub(crate) fn key(value: &Value) -> Result<Option<ObjectKey>, Fault> {
    if !value.is_object() {
        return Err(Fault::new(FieldPath::default(), "an object must be a map"));
    }
    let api_version = required(value, &["apiVersion"]).map_err(|fault| {
        let ours = Kind::ALL.into_iter().find(|ours| value.get("kind").is_some_and(|kind| kind == ours.name()));
        match ours {
            Some(ours) => fault.help(format!("write apiVersion: {}", ours.api_version())),
            None => fault,
        }
    })?;
    let name = required(value, &["kind"])?;
    let Some(kind) = Kind::of(api_version, name) else { return foreign(api_version, name) };
    let object = required(value, &["metadata", "name"])?;
    Ok(Some(if kind.namespaced() {
        ObjectKey::namespaced(kind, metadata::namespace(value), object)
    } else {
        ObjectKey::cluster(kind, object)
    }))
}

/// Another version of a kind of ours is a fault, and so is one that is misspelled in its case or has lost its group: to
/// leave such an object out silently would plan for another cluster.
fn foreign(api_version: &str, kind: &str) -> Result<Option<ObjectKey>, Fault> {
    let group = |api_version: &str| api_version.rsplit_once('/').map_or(String::new(), |(group, _)| group.to_owned());
    let Some(ours) = Kind::ALL.into_iter().find(|ours| ours.name().eq_ignore_ascii_case(kind)) else {
        return Ok(None);
    };
    if group(ours.api_version()) == group(api_version) && ours.name() != kind {
        let fault = Fault::new(FieldPath::of(&["kind"]), format!("{kind:?} is not a kind of {api_version}"));
        return Err(fault.help(format!("did you mean {}?", ours.name())));
    }
    // Others may have a Service or a Node of their own; nobody adds kinds to the group without a name.
    if ours.name() != kind || !["", &group(ours.api_version())].contains(&group(api_version).as_str()) {
        return Ok(None);
    }
    let fault =
        Fault::new(FieldPath::of(&["apiVersion"]), format!("{api_version:?} is not a version of {kind} we know"));
    Err(fault.help(format!("use {}", ours.api_version())))
}

fn required<'a>(value: &'a Value, path: &[&str]) -> Result<&'a str, Fault> {
    let found = path.iter().try_fold(value, |value, key| value.get(*key));
    match found {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        None | Some(Value::Null) => Err(Fault::new(FieldPath::of(path), "required, but missing")),
        Some(Value::String(_)) => Err(Fault::new(FieldPath::of(path), "must not be empty")),
        Some(other) => {
            let fault = Fault::new(FieldPath::of(path), "must be a string");
            Err(if other.is_number() || other.is_boolean() {
                fault.help(format!("quote it: \"{other}\""))
            } else {
                fault
            })
        }
    }
}

fn ignored(value: &Value) -> Inserted {
    Inserted::Ignored { kind: metadata::text(value, "/kind").unwrap_or_default().to_owned() }
}

fn drop_unread(value: &mut Value) {
    for (parent, keys) in UNREAD {
        if let Some(parent) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.retain(|key, _| !keys.contains(&key.as_str()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(value: Value) -> String {
        Manifests::default().insert(value).unwrap_err().to_string()
    }

    #[test]
    fn the_last_of_two_objects_with_one_key_wins() {
        let mut manifests = Manifests::default();
        for host in ["a", "b"] {
            let value = json!({
                "apiVersion": "k8s.ovn.org/v1",
                "kind": "EgressService",
                "metadata": {"name": "svc"},
                "status": {"host": host},
            });
            let key = ObjectKey::namespaced(Kind::EgressService, "default", "svc");
            assert_eq!(manifests.insert(value), Ok(Inserted::Known(key)));
        }
        assert_eq!(manifests.len(), 1);
        assert_eq!(manifests.iter().map(|(_, value)| &value["status"]["host"]).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn a_kind_of_somebody_else_is_ignored_and_a_version_unknown_is_a_fault() {
        let value = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind});
        let ignored = Manifests::default().insert(value("serving.knative.dev/v1", "Service"));
        assert_eq!(ignored, Ok(Inserted::Ignored { kind: "Service".to_owned() }));
        let unknown = Manifests::default().insert(value("k8s.ovn.org/v1beta1", "EgressIP")).unwrap_err();
        assert_eq!(unknown.path.to_string(), "apiVersion");
        assert_eq!(unknown.help.as_deref(), Some("use k8s.ovn.org/v1"));
    }

    #[test]
    fn a_kind_that_lost_its_group_or_its_capitals_is_a_fault() {
        for (api_version, kind, path, help) in [
            ("v1", "EgressIP", "apiVersion", "use k8s.ovn.org/v1"),
            ("v1", "EndpointSlice", "apiVersion", "use discovery.k8s.io/v1"),
            ("k8s.ovn.org/v1", "egressip", "kind", "did you mean EgressIP?"),
            ("v1", "node", "kind", "did you mean Node?"),
        ] {
            let value = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
            let fault = Manifests::default().insert(value).unwrap_err();
            assert_eq!((fault.path.to_string().as_str(), fault.help.as_deref()), (path, Some(help)));
        }
        for (api_version, kind) in
            [("example.com/v1", "EgressIP"), ("config.openshift.io/v1", "Node"), ("k8s.ovn.org/v1", "EgressFirewall")]
        {
            let value = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
            assert!(matches!(Manifests::default().insert(value), Ok(Inserted::Ignored { .. })), "{api_version} {kind}");
        }
    }

    #[test]
    fn a_missing_version_of_a_kind_of_ours_is_told() {
        let fault = Manifests::default().insert(json!({"kind": "EgressIP", "metadata": {"name": "a"}})).unwrap_err();
        assert_eq!(fault.help.as_deref(), Some("write apiVersion: k8s.ovn.org/v1"));
    }

    #[test]
    fn an_object_must_say_what_it_is() {
        assert_eq!(fault(json!(7)), "an object must be a map");
        assert_eq!(fault(json!({"kind": "Node"})), "apiVersion: required, but missing");
        assert_eq!(fault(json!({"apiVersion": "v1"})), "kind: required, but missing");
        assert_eq!(fault(json!({"apiVersion": "v1", "kind": "Node"})), "metadata.name: required, but missing");
        let number = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": 1}});
        assert_eq!(fault(number), "metadata.name: must be a string");
    }

    #[test]
    fn what_no_decision_reads_is_not_kept() {
        let mut manifests = Manifests::default();
        let value = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "a", "managedFields": []},
            "status": {"images": [], "nodeInfo": {}, "volumesInUse": [], "conditions": []},
        });
        manifests.insert(value).unwrap();
        let node = manifests.get(&ObjectKey::cluster(Kind::Node, "a")).unwrap();
        assert_eq!(node["metadata"], json!({"name": "a"}));
        assert_eq!(node["status"], json!({"conditions": []}));
    }

    #[test]
    fn a_change_of_a_clone_is_its_own() {
        let mut manifests = Manifests::default();
        manifests.insert(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}})).unwrap();
        let mut clone = manifests.clone();
        let key = ObjectKey::cluster(Kind::Node, "a");
        clone.get_mut(&key).unwrap()["spec"] = json!({"unschedulable": true});
        assert_ne!(manifests, clone);
        assert!(manifests.remove(&key).is_some_and(|node| node.get("spec").is_none()));
    }

    #[test]
    fn a_cloud_is_recognised() {
        let hint = |value| {
            let mut manifests = Manifests::default();
            manifests.insert(value).unwrap();
            manifests.platform_hint()
        };
        let node = |annotations: Value| {
            hint(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "annotations": annotations}}))
        };
        assert_eq!(node(json!({})), Platform::BareMetal);
        assert_eq!(node(json!({egress_ipconfig::KEY: "[]"})), Platform::Cloud);
        let config = json!({
            "apiVersion": "cloud.network.openshift.io/v1",
            "kind": "CloudPrivateIPConfig",
            "metadata": {"name": "10.0.0.1"},
        });
        assert_eq!(hint(config), Platform::Cloud);
    }
}
