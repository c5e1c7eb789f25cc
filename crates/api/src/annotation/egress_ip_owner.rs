//! `k8s.ovn.org/egressip-owner-ref`, on a CloudPrivateIPConfig

use egret_core::EgressIpName;

/// The name of the EgressIP that the address belongs to.
pub const KEY: &str = "k8s.ovn.org/egressip-owner-ref";

/// The text is empty and names no EgressIP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an empty text names no EgressIP")]
pub struct NoOwner;

/// Reads the name.
///
/// # Errors
/// [`NoOwner`] if the text is empty.
pub fn decode(text: &str) -> Result<EgressIpName, NoOwner> {
    if text.is_empty() { Err(NoOwner) } else { Ok(text.into()) }
}

/// Writes what [`decode`] reads.
#[must_use]
pub fn encode(owner: &EgressIpName) -> String {
    owner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_back_and_nothing_names_nobody() {
        assert_eq!(decode("egress").map(|owner| encode(&owner)), Ok("egress".to_owned()));
        assert_eq!(decode(""), Err(NoOwner));
    }
}
