//! An EgressIP as it is stored, and what we are about to make of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use egret_api::Converted;
use egret_api::annotation::egress_ip_mark;
use egret_core::{Address, EgressIp, EgressIpName, EventReason, RecordedItem, Timestamp};
use serde_json::Value;

use crate::condition::Condition;
use crate::meta::Meta;

/// An EgressIP as it is stored, and what is under way.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) meta: Meta,
    /// As converted; its `recorded` is what is stored, never what is under way.
    pub(crate) object: EgressIp,
    /// The items of the status as they are written there, sorted.
    pub(crate) items: Vec<(String, String)>,
    pub(crate) has_status: bool,
    pub(crate) has_annotations: bool,
    /// The mark annotation as written there.
    pub(crate) mark: Option<String>,
    pub(crate) conditions: Vec<Value>,
    /// What the write under way, or one whose outcome is unknown, makes the status.
    pub(crate) attempt: Option<Vec<RecordedItem>>,
    /// A newer version was seen while the write was under way: it is in that one, or will be in none.
    pub(crate) overtaken: bool,
    /// Addresses that a write whose outcome is unknown may have put into the status of a version that we have not seen.
    pub(crate) doubtful: BTreeSet<Address>,
    /// Faults of the object that no reason speaks of.
    pub(crate) faults: String,
    /// What still holds of what was told; `None` until this leadership has looked at the object.
    pub(crate) told: Option<BTreeSet<(EventReason, String)>>,
    pub(crate) told_faults: String,
    /// How many addresses have no node, by why.
    pub(crate) missing: BTreeMap<&'static str, usize>,
    /// The mark was refused: not again before this moment, and how often.
    pub(crate) mark_denied: Option<(Duration, u32)>,
}

impl Entry {
    /// `None` for an object that makes no sense at all.
    pub(crate) fn read(value: &Value, converted: Converted<EgressIp>) -> Option<Self> {
        let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
        let items = value["status"]["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut items: Vec<_> = items.iter().map(|item| (text(item, "egressIP"), text(item, "node"))).collect();
        items.sort_unstable();
        let annotations = value["metadata"]["annotations"].as_object();
        let mark = annotations.and_then(|annotations| annotations.get(egress_ip_mark::KEY));
        let spoken_of = ["spec.egressIPs", "spec.egressNodeSelector", "status"];
        let faults = converted.faults.iter().map(ToString::to_string);
        let faults: Vec<_> = faults.filter(|fault| !spoken_of.iter().any(|path| fault.starts_with(path))).collect();
        Some(Self {
            meta: Meta::of(value),
            object: converted.object?,
            items,
            has_status: value["status"].is_object(),
            has_annotations: annotations.is_some(),
            mark: mark.map(|mark| mark.as_str().map_or_else(|| mark.to_string(), str::to_owned)),
            conditions: value["status"]["conditions"].as_array().cloned().unwrap_or_default(),
            attempt: None,
            overtaken: false,
            doubtful: BTreeSet::new(),
            faults: faults.join("; "),
            told: None,
            told_faults: String::new(),
            missing: BTreeMap::new(),
            mark_denied: None,
        })
    }

    /// Takes over from what was known of the same object before what an API server does not store.
    pub(crate) fn inherit(&mut self, old: Self) {
        if old.meta.uid == self.meta.uid {
            self.attempt = old.attempt;
            self.overtaken = old.overtaken;
            self.told = old.told;
            self.told_faults = old.told_faults;
            self.missing = old.missing;
            self.mark_denied = old.mark_denied;
        }
    }

    /// Where its addresses are as far as the decision is concerned: what is under way is done.
    pub(crate) fn recorded(&self) -> &[RecordedItem] {
        self.attempt.as_deref().unwrap_or(&self.object.recorded)
    }

    /// Nobody knows whether what was attempted has happened; something else may be attempted next.
    pub(crate) fn doubt(&mut self) {
        self.doubtful.extend(self.attempt.iter().flatten().map(|item| item.address));
    }

    /// Whether there is anything that nobody knows the outcome of, where nothing is under way.
    pub(crate) fn in_doubt(&self) -> bool {
        self.attempt.is_some() || !self.doubtful.is_empty()
    }

    /// The addresses that some version of its status has, now or soon, or may have.
    pub(crate) fn claims(&self) -> BTreeSet<Address> {
        let attempt = self.attempt.iter().flatten();
        let items = self.object.recorded.iter().chain(attempt);
        items.map(|item| item.address).chain(self.doubtful.iter().copied()).collect()
    }

    pub(crate) fn condition(&self) -> Option<Condition> {
        Condition::find(&self.conditions)
    }

    /// Whether the status says exactly `items`, and in canonical text.
    pub(crate) fn says(&self, items: &[RecordedItem]) -> bool {
        let mut texts: Vec<_> = items.iter().map(|item| (item.address.to_string(), item.node.to_string())).collect();
        texts.sort_unstable();
        texts == self.items
    }
}

/// Which EgressIPs have an address in their status, now or soon: an address must leave one before it enters another.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    of: BTreeMap<EgressIpName, BTreeSet<Address>>,
    by: BTreeMap<Address, BTreeSet<EgressIpName>>,
}

impl Claims {
    /// The claims of `name` are these now. Returns the addresses that it let go of.
    pub(crate) fn set(&mut self, name: &EgressIpName, new: BTreeSet<Address>) -> Vec<Address> {
        let old = self.of.remove(name).unwrap_or_default();
        let gone: Vec<Address> = old.difference(&new).copied().collect();
        for address in &gone {
            let mut names = self.by.remove(address).unwrap_or_default();
            names.remove(name);
            if !names.is_empty() {
                self.by.insert(*address, names);
            }
        }
        for address in new.difference(&old) {
            self.by.entry(*address).or_default().insert(name.clone());
        }
        if !new.is_empty() {
            self.of.insert(name.clone(), new);
        }
        gone
    }

    /// Whether the address is in anybody's status.
    pub(crate) fn any(&self, address: Address) -> bool {
        self.by.contains_key(&address)
    }

    /// Whether the address is in the status of anybody but `name`.
    pub(crate) fn by_another(&self, address: Address, name: &EgressIpName) -> bool {
        self.by.get(&address).is_some_and(|names| names.iter().any(|other| other != name))
    }
}

/// A status to write.
#[derive(Debug)]
pub(crate) struct Status {
    pub(crate) items: Vec<RecordedItem>,
    pub(crate) condition: Condition,
}

impl Status {
    /// The value of `/status`: the items, our condition, and everybody else's conditions.
    pub(crate) fn render(&self, entry: &Entry, wall: Timestamp) -> Value {
        let item = |item: &RecordedItem| serde_json::json!({ "egressIP": item.address.to_string(), "node": item.node.as_str() });
        let items: Vec<Value> = self.items.iter().map(item).collect();
        let mut conditions: Vec<Value> =
            entry.conditions.iter().filter(|condition| !Condition::is_ours(condition)).cloned().collect();
        conditions.push(self.condition.render(entry.condition().as_ref(), wall));
        serde_json::json!({ "items": items, "conditions": conditions })
    }
}
