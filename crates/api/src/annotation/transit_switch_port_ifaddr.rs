//! `k8s.ovn.org/node-transit-switch-port-ifaddr`

use super::{DecodeFault, Ifaddr};

/// The node's address on the transit switch.
pub const KEY: &str = "k8s.ovn.org/node-transit-switch-port-ifaddr";
/// What it looks like.
pub const EXAMPLE: &str = r#"{"ipv4":"100.88.0.4/16","ipv6":"fd97::4/64"}"#;

/// Reads `{"ipv4":"192.0.2.1/24","ipv6":"2001:db8::1/64"}`; either family may be absent or empty.
///
/// # Errors
/// [`DecodeFault`], also if there is no address of either family.
pub fn decode(text: &str) -> Result<Ifaddr, DecodeFault> {
    Ifaddr::decode(text)
}

/// Writes what [`decode`] reads.
#[must_use]
pub fn encode(value: Ifaddr) -> String {
    value.encode()
}
