//! What must hold after every step, whatever the step expects.

use std::collections::{BTreeMap, BTreeSet};

use egret_core::Address;

use super::super::tally::Tally;
use crate::world::Items;

/// No address is held twice, and no node holds two addresses of one object.
pub(super) fn check(statuses: &BTreeMap<String, Items>, tally: &mut Tally) {
    let mut holders: BTreeMap<String, &str> = BTreeMap::new();
    for (name, items) in statuses {
        let mut nodes = BTreeSet::new();
        for (address, node) in items {
            let canonical = Address::parse(address).map_or_else(|_| address.clone(), |address| address.to_string());
            if let Some(other) = holders.insert(canonical, name) {
                tally.fail(format!("invariant: one owner of {address}"), other.to_owned(), format!("also {name}"));
            }
            if !nodes.insert(node) {
                let what = format!("invariant: one address of {name} on {node}");
                tally.fail(what, "distinct nodes".to_owned(), format!("{items:?}"));
            }
        }
    }
}
