//! What `nft --json list table` says.

use std::net::IpAddr;

use egret_hostmodel::{Element, Elements, Key, PartKind, Set, Transport, ValueKind, Way};
use ipnet::IpNet;
use serde_json::Value;

/// A table as listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) elements: Elements,
    /// There is something in a set that we put into none.
    pub(crate) strange: bool,
}

impl Listing {
    /// The elements of the sets and maps that have names of ours. A set that is not ours is seen by the table's shape.
    pub(crate) fn read(listing: &Value) -> Self {
        let mut read = Self::default();
        for (_, object) in objects(listing) {
            let Some(set) = object["name"].as_str().and_then(Set::named) else { continue };
            for item in object["elem"].as_array().into_iter().flatten() {
                match element(set, item) {
                    Some((key, element)) => {
                        read.elements.entry(set).or_default().insert(key, element);
                    }
                    None => read.strange = true,
                }
            }
        }
        read
    }

    /// Everything but the elements, and but what changes by itself: handles, counters.
    pub(crate) fn shape_text(listing: &Value) -> String {
        let lines = objects(listing).filter(|(kind, _)| *kind != "metainfo").map(|(kind, object)| {
            let mut object = object.clone();
            strip(&mut object);
            format!("{kind} {object}\n")
        });
        lines.collect()
    }
}

fn objects(listing: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let objects = listing["nftables"].as_array().into_iter().flatten().filter_map(Value::as_object);
    objects.flatten().map(|(kind, object)| (kind.as_str(), object))
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("handle");
            fields.remove("elem");
            for (name, value) in fields {
                if name == "counter" {
                    *value = Value::Null;
                }
                strip(value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(strip),
        _ => {}
    }
}

/// `KEY` or `{"elem": {"val": KEY, "comment": TEXT}}`, in a map followed by a value.
fn element(set: Set, item: &Value) -> Option<(Key, Element)> {
    let (item, value) = match set.role.value() {
        None => (item, None),
        Some(kind) => {
            let [item, value] = item.as_array()?.as_slice() else { return None };
            (item, Some(mapped(kind, value)?))
        }
    };
    let (item, comment) = match item.get("elem") {
        None => (item, None),
        Some(inner) => (&inner["val"], inner["comment"].as_str().map(str::to_owned)),
    };
    Some((key(set, item)?, Element { value, comment }))
}

fn mapped(kind: ValueKind, value: &Value) -> Option<egret_hostmodel::Value> {
    match kind {
        ValueKind::Address => address(value).map(egret_hostmodel::Value::Address),
        ValueKind::Way => Way::named(value["goto"]["target"].as_str()?).map(egret_hostmodel::Value::Way),
    }
}

fn key(set: Set, item: &Value) -> Option<Key> {
    let parts = item["concat"].as_array().map_or(std::slice::from_ref(item), Vec::as_slice);
    match (set.role.key(), parts) {
        ([PartKind::Address], [ip]) => address(ip).map(Key::Source),
        ([PartKind::Prefix], [net]) => prefix(net).map(Key::Prefix),
        ([PartKind::Address, PartKind::Address], [source, with]) => Some(Key::Pair(address(source)?, address(with)?)),
        ([PartKind::Address, PartKind::Link], [source, link]) => {
            Some(Key::Exit(address(source)?, link.as_str()?.to_owned()))
        }
        ([PartKind::Address, PartKind::Protocol, PartKind::Port], [ip, protocol, port]) => {
            Some(Key::Entry(address(ip)?, transport(protocol)?, port.as_u64()?.try_into().ok()?))
        }
        _ => None,
    }
}

fn address(value: &Value) -> Option<IpAddr> {
    value.as_str()?.parse().ok()
}

/// A prefix that is a single address is listed as that.
fn prefix(value: &Value) -> Option<IpNet> {
    let Some(prefix) = value.get("prefix") else { return address(value).map(IpNet::from) };
    IpNet::new(address(&prefix["addr"])?, prefix["len"].as_u64()?.try_into().ok()?).ok()
}

/// A number, which is asked for; or a name, which some releases say all the same.
fn transport(value: &Value) -> Option<Transport> {
    match value.as_u64() {
        Some(6) => Some(Transport::Tcp),
        Some(17) => Some(Transport::Udp),
        Some(132) => Some(Transport::Sctp),
        Some(_) => None,
        None => Transport::named(value.as_str()?),
    }
}
