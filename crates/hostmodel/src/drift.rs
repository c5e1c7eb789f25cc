//! What differs between a node and what it should be, for people: one line a thing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Element, Key, Set, State};

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Drift {
    /// How.
    pub kind: DriftKind,
    /// What kind of thing.
    pub thing: Thing,
    /// Which one, as the tools of iproute2 and nft write it.
    pub text: String,
}

/// How a thing differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriftKind {
    /// It should be there and is not.
    Missing,
    /// It is there and should not be.
    Extra,
    /// It is there and says something else.
    Changed,
}

/// What kind of thing differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Thing {
    /// A rule of policy routing.
    Rule,
    /// A route in a table of ours.
    Route,
    /// An egress address.
    Address,
    /// The nftables table, its chains and declarations.
    Table,
    /// An element of a set or map.
    Element,
    /// A kernel parameter.
    Sysctl,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            DriftKind::Missing => "missing",
            DriftKind::Extra => "extra",
            DriftKind::Changed => "changed",
        };
        let thing = match self.thing {
            Thing::Rule => "rule",
            Thing::Route => "route",
            Thing::Address => "address",
            Thing::Table => "nft table",
            Thing::Element => "nft element",
            Thing::Sysctl => "sysctl",
        };
        write!(f, "{kind:8} {thing:12} {}", self.text)
    }
}

/// Everything that differs between what was found and what is wanted; nothing if they are equal.
#[must_use]
pub fn drift(found: &State, wanted: &State) -> Vec<Drift> {
    let mut drifts = Vec::new();
    sets(&found.rules, &wanted.rules, Thing::Rule, &mut drifts);
    sets(&found.routes, &wanted.routes, Thing::Route, &mut drifts);
    let text = |addresses: &BTreeSet<crate::EgressAddress>| {
        addresses.iter().map(|address| format!("{} on {}", address.ip, address.link)).collect::<BTreeSet<_>>()
    };
    sets(&text(&found.addresses), &text(&wanted.addresses), Thing::Address, &mut drifts);
    let sysctls = |state: &State| state.sysctls.iter().map(|(path, value)| (path.clone(), value.clone())).collect();
    maps(&sysctls(found), &sysctls(wanted), Thing::Sysctl, &mut drifts);
    tables(found, wanted, &mut drifts);
    maps(&elements(found), &elements(wanted), Thing::Element, &mut drifts);
    drifts.sort();
    drifts
}

fn sets<T: Ord + fmt::Display>(found: &BTreeSet<T>, wanted: &BTreeSet<T>, thing: Thing, drifts: &mut Vec<Drift>) {
    let told = |kind, items: Vec<&T>| {
        items.into_iter().map(move |item| Drift { kind, thing, text: item.to_string() }).collect::<Vec<_>>()
    };
    drifts.extend(told(DriftKind::Missing, wanted.difference(found).collect()));
    drifts.extend(told(DriftKind::Extra, found.difference(wanted).collect()));
}

fn maps(found: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>, thing: Thing, drifts: &mut Vec<Drift>) {
    for (key, value) in wanted {
        let (kind, text) = match found.get(key) {
            Some(present) if present == value => continue,
            Some(present) => (DriftKind::Changed, format!("{key} is {present}, should be {value}")),
            None => (DriftKind::Missing, format!("{key} {value}")),
        };
        drifts.push(Drift { kind, thing, text: text.trim_end().to_owned() });
    }
    for (key, value) in found.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
        drifts.push(Drift { kind: DriftKind::Extra, thing, text: format!("{key} {value}").trim_end().to_owned() });
    }
}

fn tables(found: &State, wanted: &State, drifts: &mut Vec<Drift>) {
    let told = |kind| Drift { kind, thing: Thing::Table, text: format!("inet {}", crate::TABLE) };
    match (&found.table, &wanted.table) {
        (None, Some(_)) => drifts.push(told(DriftKind::Missing)),
        (Some(_), None) => drifts.push(told(DriftKind::Extra)),
        (Some(found), Some(wanted)) if found.shape != wanted.shape => drifts.push(told(DriftKind::Changed)),
        _ => {}
    }
}

/// Elements as text. Comments do not decide about packets, and do not count.
fn elements(state: &State) -> BTreeMap<String, String> {
    let sets = state.table.iter().flat_map(|table| &table.elements);
    let text = |set: &Set, key: &Key, element: &Element| {
        let value = element.value.as_ref().map(ToString::to_string).unwrap_or_default();
        (format!("{set} {key}"), value)
    };
    sets.flat_map(|(set, keys)| keys.iter().map(|(key, element)| text(set, key, element)).collect::<Vec<_>>()).collect()
}
