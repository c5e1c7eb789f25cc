//! `k8s.ovn.org/secondary-host-egress-ips`

use egret_core::Address;

use super::{DecodeFault, addresses};

/// The egress IPs the node has put on its secondary links.
pub const KEY: &str = "k8s.ovn.org/secondary-host-egress-ips";
/// What it looks like.
pub const EXAMPLE: &str = r#"["10.10.10.50"]"#;

/// Reads `["10.10.10.50"]`, in the order of the text.
///
/// # Errors
/// [`DecodeFault`] of the first entry that is no address.
pub fn decode(text: &str) -> Result<Vec<Address>, DecodeFault> {
    addresses::decode(text)
}

/// Writes what [`decode`] reads.
#[must_use]
pub fn encode(addresses: &[Address]) -> String {
    addresses::encode(addresses)
}
