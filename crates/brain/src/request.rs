//! What is asked of the cloud, and when.

use std::time::Duration;

use egret_api::cloud_private_ip_config::address_of;
use egret_api::{Kind, ObjectKey};
use egret_core::{Address, CloudPrivateIpConfig, CloudState, EgressIpName};
use egret_placement::Touched;
use serde_json::Value;

use crate::brain::Brain;
use crate::cloud::{self, Step};
use crate::{Action, Output, Write, WriteError};

impl Brain {
    /// Brings the snapshot in line with what is known of the request for an address.
    pub(crate) fn sync_request(&mut self, address: Address) {
        if !self.on_cloud() {
            return;
        }
        let stored = self.cloud.get(&address).map(|entry| &entry.config);
        let new = self.requests.get(&address).or(stored).cloned().and_then(|config| self.as_it_counts(config));
        let owner = self.cloud.get(&address).and_then(|entry| entry.config.owner.clone());
        self.dirty.extend(owner);
        self.dirty.extend(self.placed.get(&address).map(|(owner, _)| owner.clone()));
        self.dirty_addresses.insert(address);
        if self.snapshot.cloud.get(&address) == new.as_ref() {
            return;
        }
        match new {
            Some(config) => drop(self.snapshot.cloud.insert(address, config)),
            None => drop(self.snapshot.cloud.remove(&address)),
        }
        self.touched.push(Touched::Cloud(address));
    }

    /// What a request is to the decision.
    fn as_it_counts(&self, config: CloudPrivateIpConfig) -> Option<CloudPrivateIpConfig> {
        let asked_for = config.owner.as_ref().is_some_and(|owner| self.asks_for(owner, config.address));
        match (asked_for, config.state) {
            // The refusal counts as long as it rests, and that is told by the rests.
            (true, CloudState::Refused) => None,
            (true, _) => Some(config),
            // A left-over: until it is withdrawn it takes its place on the node, and nobody can have the address.
            (false, _) => Some(CloudPrivateIpConfig { owner: None, ..config }),
        }
    }

    fn asks_for(&self, owner: &EgressIpName, address: Address) -> bool {
        self.snapshot.egress_ips.get(owner).is_some_and(|object| object.requested.contains(&address))
    }

    pub(crate) fn write_requests(&mut self, now: Duration, output: &mut Output) {
        let dirty = std::mem::take(&mut self.dirty_addresses);
        if !self.on_cloud() {
            return;
        }
        for address in dirty {
            let key = cloud::key(address);
            let entry = self.cloud.get(&address);
            let config = entry.map(|entry| &entry.config);
            let resting = config.is_some_and(|config| self.cool_downs.rests(address, &config.node, now));
            let owner = config.and_then(|config| config.owner.as_ref());
            let asked_for = owner.is_some_and(|owner| self.asks_for(owner, address));
            let wanted = self.placed.get(&address);
            let step = cloud::step(address, entry, wanted, self.claims.any(address), resting, asked_for);
            let Step::Write(action) = step else { continue };
            if !self.flights.free(&key, now) {
                self.dirty_addresses.insert(address);
                continue;
            }
            let here = config.zip(wanted).is_some_and(|(config, (_, node))| config.node == *node);
            let attempt = match (&action, wanted) {
                (Action::Delete { .. }, _) | (_, None) => None,
                // It was only looked at.
                (Action::Patch { .. }, _) if here => None,
                (_, Some((owner, node))) => {
                    let (owner, node) = (Some(owner.clone()), node.clone());
                    Some(CloudPrivateIpConfig { address, owner, node, state: CloudState::Requested })
                }
            };
            if let Some(attempt) = attempt {
                self.requests.insert(address, attempt);
            }
            self.sync_request(address);
            self.dirty_addresses.remove(&address);
            let id = self.flights.begin(&key);
            output.writes.push(Write { id, object: key, action });
        }
    }

    pub(crate) fn request_written(&mut self, key: &ObjectKey, result: &Result<Option<Value>, WriteError>) {
        let Some(address) = address_of(&key.name) else { return };
        match result {
            // It may have happened; until the object is seen again, or the next try has an answer, it counts as done.
            Err(WriteError::Transient { .. }) => self.doubt_request(address),
            // Withdrawn, unless a finalizer keeps it: then a watch tells when it is gone.
            Ok(None) | Err(WriteError::Gone) => {
                self.requests.remove(&address);
                self.buried.extend(self.cloud.remove(&address).map(|entry| entry.meta.uid));
            }
            Ok(Some(_)) => {
                self.requests.remove(&address);
                // Its guard held: no write before it has happened. A list cannot tell that, it may be from before.
                if let Some(entry) = self.cloud.get_mut(&address) {
                    entry.doubtful = false;
                }
            }
            Err(_) => drop(self.requests.remove(&address)),
        }
        self.sync_request(address);
    }

    /// Nobody knows what has become of the last write of the request. Its guard names the version that is known, so a
    /// newer one settles it.
    pub(crate) fn doubt_request(&mut self, address: Address) {
        if let Some(entry) = self.cloud.get_mut(&address) {
            entry.doubtful = true;
        }
    }

    /// After a write has ended its object is looked at again.
    pub(crate) fn look_again(&mut self, key: &ObjectKey) {
        match key.kind {
            Kind::EgressIp => drop(self.dirty.insert(key.name.as_str().into())),
            Kind::CloudPrivateIpConfig => {
                if let Some(address) = address_of(&key.name) {
                    self.dirty_addresses.insert(address);
                    self.dirty.extend(self.placed.get(&address).map(|(owner, _)| owner.clone()));
                }
            }
            _ => self.services_dirty = true,
        }
    }
}
