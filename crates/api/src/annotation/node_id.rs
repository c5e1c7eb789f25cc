//! `k8s.ovn.org/node-id`

use super::{DecodeFault, parse_number};

/// The number of the node, from which its addresses on internal networks are computed.
pub const KEY: &str = "k8s.ovn.org/node-id";
/// What it looks like.
pub const EXAMPLE: &str = "4";

/// Reads `4`.
///
/// # Errors
/// [`DecodeFault`] if this is no number.
pub fn decode(text: &str) -> Result<u32, DecodeFault> {
    parse_number(text)
}

/// Writes what [`decode`] reads.
#[must_use]
pub fn encode(id: u32) -> String {
    id.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_back() {
        assert_eq!(decode("4").expect("an id"), 4);
        assert_eq!(encode(4), "4");
        assert!(decode("").is_err() && decode("-1").is_err());
    }
}
