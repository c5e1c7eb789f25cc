//! How what is stored gets into the brain.

use std::time::Duration;

use egret_api::annotation::egress_ip_mark;
use egret_api::cloud_private_ip_config::{self, address_of};
use egret_api::{Converted, Kind, ObjectKey, egress_ip, egress_service, endpoint_slice, node, service};
use egret_core::{Address, CloudState, EgressIpName, NodeName, ServiceKey};
use egret_placement::Touched;
use serde_json::Value;

use crate::brain::Brain;
use crate::meta::Meta;
use crate::{cloud, egress_ip as stored_egress_ip, host, label};

fn key_of(kind: Kind, object: &Value) -> Option<ObjectKey> {
    let name = object["metadata"]["name"].as_str()?;
    Some(match object["metadata"]["namespace"].as_str().filter(|_| kind.namespaced()) {
        Some(namespace) => ObjectKey::namespaced(kind, namespace, name),
        None => ObjectKey::cluster(kind, name),
    })
}

fn service_key(key: &ObjectKey) -> ServiceKey {
    ServiceKey::new(key.namespace.as_deref().unwrap_or_default(), &key.name)
}

/// How an object comes to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// By a watch, which may have begun before the definition of the kind was upgraded. It goes on for a while after that
    /// (Kubernetes 1.36, seen), and leaves out what the old definition did not know.
    Watch,
    /// By a list or the answer to a write: complete as of now, so that the same version may say more than a watch did.
    Answer,
}

impl Brain {
    pub(crate) fn listed(&mut self, kind: Kind, objects: Vec<Value>, now: Duration) {
        let listed: std::collections::BTreeSet<_> = objects.iter().filter_map(|object| key_of(kind, object)).collect();
        for key in self.known(kind).into_iter().filter(|key| !listed.contains(key)) {
            self.vanished(&key);
        }
        let uids: std::collections::BTreeSet<_> = objects.iter().map(|object| Meta::of(object).uid).collect();
        for object in objects {
            self.seen(kind, &object, Source::Answer, now);
        }
        if kind == Kind::CloudPrivateIpConfig {
            self.drop_phantoms();
            // Of what this list does not have a watch that goes on from it tells nothing.
            self.buried.retain(|uid| uids.contains(uid));
        }
        self.listed.insert(kind);
        self.services_dirty = true;
    }

    /// A creation whose outcome is unknown has not happened if a list does not have its object. No watch would say so.
    fn drop_phantoms(&mut self) {
        let phantom =
            |address: &&Address| !self.cloud.contains_key(address) && !self.flights.flies(&cloud::key(**address));
        for address in self.requests.keys().filter(phantom).copied().collect::<Vec<_>>() {
            self.requests.remove(&address);
            self.sync_request(address);
        }
    }

    fn known(&self, kind: Kind) -> Vec<ObjectKey> {
        let namespaced = |key: &ServiceKey| ObjectKey::namespaced(kind, &key.namespace, &key.name);
        match kind {
            Kind::Node => self.nodes.keys().map(|name| ObjectKey::cluster(kind, name.as_str())).collect(),
            Kind::EgressIp => self.egress_ips.keys().map(|name| ObjectKey::cluster(kind, name.as_str())).collect(),
            Kind::EgressService => self.services.keys().map(namespaced).collect(),
            Kind::Service => self.snapshot.services.keys().map(namespaced).collect(),
            Kind::EndpointSlice => {
                self.slices.keys().map(|(namespace, name)| ObjectKey::namespaced(kind, namespace, name)).collect()
            }
            Kind::CloudPrivateIpConfig => self.cloud.keys().map(|address| cloud::key(*address)).collect(),
        }
    }

    pub(crate) fn seen(&mut self, kind: Kind, object: &Value, source: Source, now: Duration) {
        let Some(key) = key_of(kind, object) else { return };
        match kind {
            Kind::Node => self.node_seen(&key, object),
            Kind::EgressIp => self.egress_ip_seen(&key, object, source),
            Kind::EgressService => self.egress_service_seen(&key, object),
            Kind::Service => self.service_seen(&key, object),
            Kind::EndpointSlice => self.slice_seen(&key, object),
            Kind::CloudPrivateIpConfig => self.request_seen(&key, object, now),
        }
    }

    pub(crate) fn gone(&mut self, kind: Kind, object: &Value) {
        let Some(key) = key_of(kind, object) else { return };
        let uid = Meta::of(object).uid;
        self.buried.remove(&uid);
        // A new object of that name may be known already, from the answer to the write that made it.
        if self.meta_of(&key).is_none_or(|known| known.uid == uid) {
            self.vanished(&key);
        }
    }

    fn meta_of(&self, key: &ObjectKey) -> Option<&Meta> {
        match key.kind {
            Kind::Node => self.nodes.get(&NodeName::from(key.name.as_str())).map(|entry| &entry.meta),
            Kind::EgressIp => self.egress_ips.get(&EgressIpName::from(key.name.as_str())).map(|entry| &entry.meta),
            Kind::EgressService => self.services.get(&service_key(key)).map(|entry| &entry.meta),
            Kind::CloudPrivateIpConfig => {
                address_of(&key.name).and_then(|address| self.cloud.get(&address)).map(|entry| &entry.meta)
            }
            Kind::Service | Kind::EndpointSlice => None,
        }
    }

    /// There is no such object any more.
    pub(crate) fn vanished(&mut self, key: &ObjectKey) {
        self.faults.remove(key);
        let uid = self.meta_of(key).map(|meta| meta.uid.clone());
        self.flights.gone(key, uid);
        match key.kind {
            Kind::Node => self.node_vanished(&key.name.as_str().into()),
            Kind::EgressIp => self.egress_ip_vanished(&key.name.as_str().into()),
            Kind::EgressService => {
                let key = service_key(key);
                self.services.remove(&key);
                self.sync_service(&key);
            }
            Kind::Service => {
                let key = service_key(key);
                self.snapshot.services.remove(&key);
                self.touch_service(&key);
            }
            Kind::EndpointSlice => {
                let slice = (key.namespace.clone().unwrap_or_default(), key.name.clone());
                if let Some((service, _)) = self.slices.remove(&slice) {
                    if let Some(slices) = self.slices_of.get_mut(&service) {
                        slices.remove(&slice.1);
                    }
                    self.sync_endpoints(&service);
                }
            }
            Kind::CloudPrivateIpConfig => {
                if let Some(address) = address_of(&key.name) {
                    self.cloud.remove(&address);
                    if !self.flights.flies(key) {
                        self.requests.remove(&address);
                    }
                    self.sync_request(address);
                }
            }
        }
    }

    /// Remembers how many faults an object has, and hands on what could be read of it.
    fn keep<T>(&mut self, key: &ObjectKey, converted: Converted<T>) -> Option<T> {
        if converted.faults.is_empty() {
            self.faults.remove(key);
        } else {
            self.faults.insert(key.clone(), converted.faults.len());
        }
        converted.object
    }

    fn node_seen(&mut self, key: &ObjectKey, value: &Value) {
        let converted = node::from_value(value, self.snapshot.options.platform);
        let entry = label::Entry::read(value, &converted.faults);
        let name = NodeName::from(key.name.as_str());
        if self.nodes.get(&name).is_some_and(|known| entry.meta.is_older_than(&known.meta)) {
            return;
        }
        let Some(mut node) = self.keep(key, converted) else { return };
        let old = self.snapshot.nodes.get(&name);
        node.reachability = old.map_or_else(|| self.reach.of(&name), |old| old.reachability);
        if old != Some(&node) {
            self.snapshot.nodes.insert(name.clone(), node);
            self.touch_node(&name);
        }
        let told = self.nodes.get(&name).map(|entry| entry.told.clone()).unwrap_or_default();
        let entry = label::Entry { told, ..entry };
        self.end_departures(&name, Some(&entry.host_cidrs));
        self.dirty_nodes.insert(name.clone());
        self.nodes.insert(name, entry);
    }

    fn node_vanished(&mut self, name: &NodeName) {
        self.nodes.remove(name);
        self.snapshot.nodes.remove(name);
        self.drained.remove(name);
        self.end_departures(name, None);
        self.touch_node(name);
    }

    fn touch_node(&mut self, name: &NodeName) {
        self.touched.push(Touched::Node(name.clone()));
        (self.targets_stale, self.services_dirty) = (true, true);
    }

    /// The node has reported its addresses anew, or is gone: what it listed out of habit does not count any more.
    fn end_departures(&mut self, name: &NodeName, host_cidrs: Option<&str>) {
        let over = self.departed.iter().filter(|((_, node), then)| node == name && host_cidrs != Some(then.as_str()));
        for pair in over.map(|(pair, _)| pair.clone()).collect::<Vec<_>>() {
            self.departed.remove(&pair);
            self.snapshot.departed.remove(&pair);
            self.touched.push(Touched::Departed(pair.0));
        }
    }

    fn egress_ip_seen(&mut self, key: &ObjectKey, value: &Value, source: Source) {
        let name = EgressIpName::from(key.name.as_str());
        let meta = Meta::of(value);
        let known = self.egress_ips.get(&name);
        let again = known.is_some_and(|known| meta == known.meta);
        if known.is_some_and(|known| meta.is_older_than(&known.meta)) || (again && source == Source::Watch) {
            return;
        }
        if known.is_some_and(|known| known.meta.uid != meta.uid) {
            self.egress_ip_vanished(&name);
        }
        let converted = egress_ip::from_value(value);
        self.faults.remove(key);
        if !converted.faults.is_empty() {
            self.faults.insert(key.clone(), converted.faults.len());
        }
        let Some(mut entry) = stored_egress_ip::Entry::read(value, converted) else {
            self.egress_ip_vanished(&name);
            return;
        };
        if let Some(old) = self.egress_ips.remove(&name) {
            if again {
                // A list may be from before a write that is in doubt; that is settled by an answer.
                entry.doubtful.clone_from(&old.doubtful);
            }
            entry.inherit(old);
        }
        if !again {
            self.flights.changed(key);
            // Whatever was attempted is in this version or will be in none: its guard names an older one.
            entry.overtaken = self.flights.flies(key);
            if !entry.overtaken {
                entry.attempt = None;
            }
        }
        let mark = entry.mark.as_deref().and_then(|text| egress_ip_mark::decode(text).ok());
        let touched = self.marks.set(&name, entry.object.created, mark);
        self.dirty.extend(touched);
        self.egress_ips.insert(name.clone(), entry);
        self.sync_egress_ip(&name);
    }

    fn egress_ip_vanished(&mut self, name: &EgressIpName) {
        let touched = self.marks.set(name, egret_core::Timestamp(0), None);
        self.dirty.extend(touched);
        self.egress_ips.remove(name);
        self.sync_egress_ip(name);
        self.dirty.remove(name);
    }

    fn egress_service_seen(&mut self, key: &ObjectKey, value: &Value) {
        let name = service_key(key);
        let meta = Meta::of(value);
        if self.services.get(&name).is_some_and(|known| meta.is_older_than(&known.meta) || meta == known.meta) {
            return;
        }
        let converted = egress_service::from_value(value);
        let faults = converted.faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let Some(object) = self.keep(key, converted) else {
            self.services.remove(&name);
            self.sync_service(&name);
            return;
        };
        self.flights.changed(key);
        let old = self.services.remove(&name).filter(|old| old.meta.uid == meta.uid);
        let attempt = old.as_ref().and_then(|old| old.attempt.clone()).filter(|_| self.flights.flies(key));
        let told = old.map(|old| old.told).unwrap_or_default();
        let has_status = value["status"].is_object();
        self.services.insert(name.clone(), host::Entry { meta, object, has_status, attempt, faults, told });
        self.sync_service(&name);
    }

    fn service_seen(&mut self, key: &ObjectKey, value: &Value) {
        let name = service_key(key);
        let converted = service::from_value(value);
        match self.keep(key, converted) {
            Some(service) if self.snapshot.services.get(&name) == Some(&service) => return,
            Some(service) => drop(self.snapshot.services.insert(name.clone(), service)),
            None => drop(self.snapshot.services.remove(&name)),
        }
        self.touch_service(&name);
    }

    fn touch_service(&mut self, key: &ServiceKey) {
        if self.snapshot.egress_services.contains_key(key) {
            self.touched.push(Touched::Service(key.clone()));
            self.services_dirty = true;
        }
    }

    fn slice_seen(&mut self, key: &ObjectKey, value: &Value) {
        let id = (key.namespace.clone().unwrap_or_default(), key.name.clone());
        let converted = endpoint_slice::from_value(value);
        let new = self.keep(key, converted).map(|slice| (slice.service, slice.endpoints));
        let old = match new.clone() {
            Some(new) => self.slices.insert(id.clone(), new),
            None => self.slices.remove(&id),
        };
        if let Some((service, _)) = &old
            && let Some(slices) = self.slices_of.get_mut(service)
        {
            slices.remove(&id.1);
        }
        if let Some((service, _)) = &new {
            self.slices_of.entry(service.clone()).or_default().insert(id.1);
        }
        for service in old.iter().chain(&new).map(|(service, _)| service.clone()).collect::<Vec<_>>() {
            self.sync_endpoints(&service);
        }
    }

    fn sync_endpoints(&mut self, service: &ServiceKey) {
        let names = self.slices_of.get(service).into_iter().flatten();
        let slices = names.filter_map(|name| self.slices.get(&(service.namespace.to_string(), name.clone())));
        let mut endpoints: Vec<_> = slices.flat_map(|(_, endpoints)| endpoints).cloned().collect();
        endpoints.sort_unstable();
        endpoints.dedup();
        if endpoints.is_empty() {
            if self.slices_of.get(service).is_some_and(std::collections::BTreeSet::is_empty) {
                self.slices_of.remove(service);
            }
            self.snapshot.endpoints.remove(service);
        } else if self.snapshot.endpoints.get(service) == Some(&endpoints) {
            return;
        } else {
            self.snapshot.endpoints.insert(service.clone(), endpoints);
        }
        self.touch_service(service);
    }

    fn request_seen(&mut self, key: &ObjectKey, value: &Value, now: Duration) {
        let meta = Meta::of(value);
        let Some(config) = self.keep(key, cloud_private_ip_config::from_value(value)) else { return };
        let address = config.address;
        let old = self.cloud.get(&address);
        let known = old.is_some_and(|old| meta.is_older_than(&old.meta) || meta == old.meta);
        if known || self.buried.contains(&meta.uid) {
            return;
        }
        let entry = cloud::Entry::read(value, config);
        if entry.refuses_anew(old) {
            self.cool_downs.refused(address, &entry.config.node, now);
        } else if entry.config.state == CloudState::Confirmed {
            self.cool_downs.granted(address, &entry.config.node);
        }
        self.flights.changed(key);
        if !self.flights.flies(key) {
            self.requests.remove(&address);
        }
        self.cloud.insert(address, entry);
        self.sync_request(address);
    }
}
