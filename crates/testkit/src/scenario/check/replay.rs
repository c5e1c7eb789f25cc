//! The versions of a step, one after the other.

use std::collections::{BTreeMap, BTreeSet};

use egret_api::cloud_private_ip_config::address_of;
use egret_api::{Kind, ObjectKey};
use egret_core::Address;
use serde_json::Value;

use crate::world::{History, Items, State, Version, Writer, cloud_config, controllers_part};

/// What the versions of a step show when each is looked at with all others as they were at that moment.
#[derive(Default)]
pub(super) struct Replay {
    /// Every pair that an EgressIP's status had, the start of the step included.
    pub(super) pairs: BTreeMap<String, BTreeSet<(String, String)>>,
    /// An address was given to a second object, or an object a second address on a node.
    pub(super) doubled: Vec<String>,
    /// A request to the cloud was changed or withdrawn while the address was in a status.
    pub(super) changed_while_in_status: Vec<String>,
    /// An address went into a status without the cloud's word for it.
    pub(super) unconfirmed: Vec<String>,
    /// How often the controller stored each object.
    pub(super) stored: BTreeMap<ObjectKey, usize>,
    /// Objects whose controller's part somebody else changed.
    pub(super) meddled: BTreeSet<ObjectKey>,
    /// Every `metadata.uid` that was seen.
    pub(super) uids: BTreeSet<(String, String)>,
}

impl Replay {
    pub(super) fn of(before: &State, history: &History) -> Self {
        let mut replay = Self::default();
        for (name, items) in before.statuses() {
            replay.pairs.entry(name).or_default().extend(items);
        }
        for (key, object) in before.iter() {
            replay.note_uid(key, object);
        }
        let mut state = before.clone();
        for version in &history.versions {
            let was = state.get(&version.key).cloned();
            state.apply(version);
            replay.note(version, was.as_ref(), &state);
        }
        replay
    }

    fn note_uid(&mut self, key: &ObjectKey, object: &Value) {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        self.uids.insert((key.name.clone(), uid.to_owned()));
    }

    fn note(&mut self, version: &Version, was: Option<&Value>, state: &State) {
        let (key, object) = (&version.key, version.object.as_ref());
        if let Some(object) = object {
            self.note_uid(key, object);
        }
        let part = |object: Option<&Value>| object.map(|object| controllers_part(key, object));
        match version.writer {
            Writer::Other if part(was) != part(object) => drop(self.meddled.insert(key.clone())),
            Writer::Other => {}
            Writer::Controller => *self.stored.entry(key.clone()).or_default() += 1,
        }
        match key.kind {
            Kind::EgressIp => {
                let items = state.statuses().remove(&key.name).unwrap_or_default();
                self.pairs.entry(key.name.clone()).or_default().extend(items.clone());
                if version.writer == Writer::Controller {
                    self.status(key, &items, was, state);
                }
            }
            Kind::CloudPrivateIpConfig if version.writer == Writer::Controller => self.request(key, object, was, state),
            _ => {}
        }
    }

    /// The controller wrote a status.
    fn status(&mut self, key: &ObjectKey, items: &Items, was: Option<&Value>, state: &State) {
        let before = was.map(crate::world::items).unwrap_or_default();
        let configs = state.cloud_requests();
        let statuses = state.statuses();
        for (address, node) in items.iter().filter(|item| !before.contains(item)) {
            let parsed = canonical(address);
            let others = statuses.iter().filter(|(name, _)| **name != key.name);
            for (other, theirs) in others {
                if theirs.iter().any(|(address, _)| canonical(address) == parsed) {
                    self.doubled.push(format!("{address} given to {} while {other} has it", key.name));
                }
            }
            let twice =
                |wanted: &dyn Fn(&(String, String)) -> bool| items.iter().filter(|item| wanted(item)).count() > 1;
            if twice(&|(_, host)| host == node) || twice(&|(other, _)| canonical(other) == parsed) {
                self.doubled.push(format!("{}: {items:?}", key.name));
            }
            let word = configs
                .iter()
                .find(|(name, _)| address_of(name).map(|address| address.to_string()) == Some(parsed.clone()));
            if word.is_none_or(|(_, config)| !config.confirmed || config.node != *node) {
                self.unconfirmed.push(format!("{address} on {node}: the cloud says {word:?}"));
            }
        }
    }

    /// The controller changed a request to the cloud, or withdrew it.
    fn request(&mut self, key: &ObjectKey, object: Option<&Value>, was: Option<&Value>, state: &State) {
        let node = |value: &Value| cloud_config(value).node;
        let Some(was) = was else { return };
        if object.is_some_and(|object| node(object) == node(was)) {
            return;
        }
        let Some(address) = address_of(&key.name).map(|address| address.to_string()) else { return };
        for (name, items) in state.statuses() {
            if let Some((_, host)) = items.iter().find(|(other, _)| canonical(other) == address) {
                let now = object.map(node);
                self.changed_while_in_status
                    .push(format!("{address}: {} -> {now:?} while {name} has it on {host}", node(was)));
            }
        }
    }
}

/// The usual text of an address; any other text as it is.
pub(super) fn canonical(text: &str) -> String {
    Address::parse(text).map_or_else(|_| text.to_owned(), |address| address.to_string())
}
