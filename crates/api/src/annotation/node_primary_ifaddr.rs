//! `k8s.ovn.org/node-primary-ifaddr`

use super::{DecodeFault, Ifaddr};

/// The node's own address of each family, with the length of its network's prefix.
pub const KEY: &str = "k8s.ovn.org/node-primary-ifaddr";
/// What it looks like.
pub const EXAMPLE: &str = r#"{"ipv4":"192.0.2.1/24","ipv6":"2001:db8::1/64"}"#;

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
