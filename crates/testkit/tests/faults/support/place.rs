//! Addresses, and where they are.

use egret_testkit::objects::egress_ip;
use serde_json::Value;

/// An address that every node can host and none has.
pub(crate) fn address(number: usize) -> String {
    format!("172.18.{}.{}", 1 + number / 200, 1 + number % 200)
}

/// The EgressIP of a number, `e<number>`, with two addresses of its own.
pub(crate) fn egress_ip_of(number: usize) -> Value {
    egress_ip(&format!("e{number}"), &[&address(2 * number), &address(2 * number + 1)])
}

/// The node that a status gives an address to.
pub(crate) fn host_of(object: &Value, address: &str) -> Option<String> {
    let items = egret_testkit::world::items(object);
    items.into_iter().find(|(item, _)| item == address).map(|(_, node)| node)
}
