//! EgressServices: `status.host`, and the label on the node that hosts one.
//!
//! On a change the status goes first. The label leaves the old node at once, and enters the new one when no other node
//! has it: whoever announces the load-balancer address by the label never does so from two nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use egret_api::{Kind, ObjectKey};
use egret_core::{EgressService, Host, NodeName, Reachability, ServiceKey};
use egret_placement::{SERVICE_LABEL_PREFIX, ServiceOutcome, Touched, service_label_keys};
use serde_json::{Value, json};

use crate::brain::Brain;
use crate::meta::Meta;
use crate::{Action, Event, Output, Write, WriteError, label};

/// An EgressService as it is stored, and what is under way.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) meta: Meta,
    /// As converted; its `recorded` is what is stored, never what is under way.
    pub(crate) object: EgressService,
    pub(crate) has_status: bool,
    /// What the write under way, or one whose outcome is unknown, makes the host.
    pub(crate) attempt: Option<Host>,
    pub(crate) faults: String,
    /// The event that was raised and still holds.
    pub(crate) told: Option<(&'static str, String)>,
}

impl Brain {
    pub(crate) fn sync_service(&mut self, key: &ServiceKey) {
        let new = self.services.get(key).map(|entry| {
            let recorded = entry.attempt.clone().unwrap_or_else(|| entry.object.recorded.clone());
            EgressService { recorded, ..entry.object.clone() }
        });
        self.services_dirty = true;
        if self.snapshot.egress_services.get(key) == new.as_ref() {
            return;
        }
        match new {
            Some(object) => drop(self.snapshot.egress_services.insert(key.clone(), object)),
            None => drop(self.snapshot.egress_services.remove(key)),
        }
        self.touched.push(Touched::Service(key.clone()));
        self.targets_stale = true;
    }

    pub(crate) fn write_services(&mut self, now: Duration, output: &mut Output) {
        if !std::mem::take(&mut self.services_dirty) {
            return;
        }
        let Some(decision) = self.decision() else { return };
        for (key, outcome) in decision.egress_services.clone() {
            self.remember_drained(&key, &outcome);
            self.tell_service(&key, &outcome, output);
            self.write_host(&key, &outcome.host(), now, output);
        }
        self.write_labels(now, output);
    }

    fn write_host(&mut self, service: &ServiceKey, host: &Host, now: Duration, output: &mut Output) {
        let Some(entry) = self.services.get_mut(service) else { return };
        if entry.object.recorded == *host {
            return;
        }
        let key = ObjectKey::namespaced(Kind::EgressService, &service.namespace, &service.name);
        if !self.flights.free(&key, now) {
            self.services_dirty = true;
            return;
        }
        let (path, value) = if entry.has_status {
            ("/status/host", json!(host.as_str()))
        } else {
            ("/status", json!({ "host": host.as_str() }))
        };
        let operations = vec![entry.meta.test(), json!({ "op": "add", "path": path, "value": value })];
        entry.attempt = Some(host.clone());
        self.sync_service(service);
        let id = self.flights.begin(&key);
        output.writes.push(Write {
            id,
            object: key,
            action: Action::Patch { subresource: Some("status"), operations },
        });
    }

    pub(crate) fn service_written(&mut self, key: &ObjectKey, result: &Result<Option<Value>, WriteError>) {
        let service = ServiceKey::new(key.namespace.as_deref().unwrap_or_default(), &key.name);
        if let Some(entry) = self.services.get_mut(&service)
            && !matches!(result, Err(WriteError::Transient { .. }))
        {
            entry.attempt = None;
        }
        self.sync_service(&service);
    }

    /// A node that lost a service because it is silent is probed until it answers: else it could never come back.
    fn remember_drained(&mut self, service: &ServiceKey, outcome: &ServiceOutcome) {
        let Some(Host::Node(node)) = self.snapshot.egress_services.get(service).map(|object| &object.recorded) else {
            return;
        };
        let silent = self.snapshot.nodes.get(node).is_some_and(|node| node.reachability == Reachability::Unreachable);
        if silent && outcome.host() != Host::Node(node.clone()) {
            self.targets_stale |= self.drained.insert(node.clone());
        }
    }

    fn tell_service(&mut self, service: &ServiceKey, outcome: &ServiceOutcome, output: &mut Output) {
        let Some(entry) = self.services.get_mut(service) else { return };
        let told = match outcome {
            ServiceOutcome::None(reason) => Some((reason.name(), reason.to_string())),
            _ if !entry.faults.is_empty() => Some(("InvalidObject", entry.faults.clone())),
            _ => None,
        };
        if entry.told == told {
            return;
        }
        if let Some((reason, message)) = &told {
            let object = ObjectKey::namespaced(Kind::EgressService, &service.namespace, &service.name);
            let (uid, message) = (entry.meta.uid.clone(), message.clone());
            output.events.push(Event { object, uid, reason, message });
        }
        entry.told = told;
    }

    /// The label keys that each node should have: of the services whose status says so already.
    fn wanted_labels(&self) -> BTreeMap<NodeName, BTreeSet<String>> {
        let keys = service_label_keys(&self.snapshot);
        let mut wanted: BTreeMap<NodeName, BTreeSet<String>> = BTreeMap::new();
        for (service, outcome) in self.decision().into_iter().flat_map(|decision| &decision.egress_services) {
            let Host::Node(node) = outcome.host() else { continue };
            let says = self.services.get(service).is_some_and(|entry| entry.object.recorded == outcome.host());
            if let Some(key) = keys.get(service).filter(|_| says) {
                wanted.entry(node).or_default().insert(key.clone());
            }
        }
        wanted
    }

    fn write_labels(&mut self, now: Duration, output: &mut Output) {
        let wanted = self.wanted_labels();
        let nothing = BTreeSet::new();
        let mut found: BTreeMap<&NodeName, BTreeSet<&String>> = BTreeMap::new();
        for (name, node) in &self.snapshot.nodes {
            let ours = node.labels.keys().filter(|key| key.starts_with(SERVICE_LABEL_PREFIX));
            let ours: BTreeSet<&String> = ours.collect();
            if !ours.is_empty() || wanted.contains_key(name) {
                found.insert(name, ours);
            }
        }
        let mut writes = Vec::new();
        for (name, ours) in &found {
            let wanted = wanted.get(*name).unwrap_or(&nothing);
            let surplus: Vec<&String> = ours.iter().filter(|key| !wanted.contains(**key)).copied().collect();
            let elsewhere = |key: &String| found.iter().any(|(other, keys)| other != name && keys.contains(key));
            let missing: Vec<&String> = wanted.iter().filter(|key| !ours.contains(key)).collect();
            let (later, missing): (Vec<&String>, Vec<&String>) = missing.into_iter().partition(|key| elsewhere(key));
            self.services_dirty |= !later.is_empty();
            let Some(entry) = self.nodes.get(*name) else { continue };
            let labels = &self.snapshot.nodes[*name].labels;
            let operations = label::operations(entry, labels, &surplus, &missing);
            if operations.is_empty() {
                continue;
            }
            let key = ObjectKey::cluster(Kind::Node, name.as_str());
            if self.flights.free(&key, now) {
                writes.push((key, operations));
            } else {
                self.services_dirty = true;
            }
        }
        for (key, operations) in writes {
            let id = self.flights.begin(&key);
            output.writes.push(Write { id, object: key, action: Action::Patch { subresource: None, operations } });
        }
    }
}
