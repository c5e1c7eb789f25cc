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
            && let Some(stored) = self.objects.get(&key)
        {
            merge(key.kind, &mut value, stored);
        }
        self.insert(value)
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
fn key(value: &Value) -> Result<Option<ObjectKey>, Fault> {
    if !value.is_object() {
        return Err(Fault::new(FieldPath::default(), "an object must be a map"));
    }
    let api_version = required(value, &["apiVersion"])?;
    let name = required(value, &["kind"])?;
    let Some(kind) = Kind::of(api_version, name) else { return foreign(api_version, name) };
    let object = required(value, &["metadata", "name"])?;
    Ok(Some(if kind.namespaced() {
        ObjectKey::namespaced(kind, metadata::namespace(value), object)
    } else {
        ObjectKey::cluster(kind, object)
    }))
}

/// Another version of a kind of ours is a fault: to leave such an object out silently would plan for another cluster.
fn foreign(api_version: &str, kind: &str) -> Result<Option<ObjectKey>, Fault> {
    let group = |api_version: &str| api_version.rsplit_once('/').map_or(String::new(), |(group, _)| group.to_owned());
    let ours =
        Kind::ALL.into_iter().find(|ours| ours.name() == kind && group(ours.api_version()) == group(api_version));
    let Some(ours) = ours else { return Ok(None) };
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
            let server_owned = ["creationTimestamp", "uid", "resourceVersion"].contains(&key.as_str());
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
