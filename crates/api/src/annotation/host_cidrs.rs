//! `k8s.ovn.org/host-cidrs`

use egret_core::Address;
use ipnet::IpNet;

use super::{DecodeFault, parse_prefix, to_json};

/// Every address of the host with the prefix length of its network.
pub const KEY: &str = "k8s.ovn.org/host-cidrs";
/// What it looks like.
pub const EXAMPLE: &str = r#"["10.10.10.5/24","192.168.126.31/24"]"#;

/// Reads `["10.10.10.5/24","192.168.126.31/24"]`, host bits kept; sorted as text, for the list stands for a set.
///
/// # Errors
/// [`DecodeFault`] of the first entry that is no address with a prefix length.
pub fn decode(text: &str) -> Result<Vec<IpNet>, DecodeFault> {
    let texts: Vec<String> = serde_json::from_str(text)?;
    let mut prefixes = texts.iter().map(|text| parse_prefix(text)).collect::<Result<Vec<IpNet>, _>>()?;
    prefixes.sort_by_cached_key(IpNet::to_string);
    Ok(prefixes)
}

/// Writes what [`decode`] reads, sorted as text, as the node's own component does.
#[must_use]
pub fn encode(prefixes: &[IpNet]) -> String {
    let mut texts: Vec<String> = prefixes.iter().map(IpNet::to_string).collect();
    texts.sort_unstable();
    to_json(&texts)
}

/// The addresses of the entries that can be read, in the order of the text; none if the text is no list.
///
/// A node with one bad entry is not usable (rule N3), but its addresses are still taken (rule A2). So a bare address
/// counts here, too.
#[must_use]
pub fn readable_addresses(text: &str) -> Vec<Address> {
    let entries: Vec<serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
    let address = |text: &str| parse_prefix(text).map(|prefix| prefix.addr().into()).or_else(|_| Address::parse(text));
    entries.iter().filter_map(|entry| address(entry.as_str()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_come_back_sorted_with_their_host_bits() {
        let prefixes = decode(r#"["192.168.126.31/24","10.10.10.5/24"]"#).expect("prefixes");
        assert_eq!(encode(&prefixes), r#"["10.10.10.5/24","192.168.126.31/24"]"#);
    }

    #[test]
    fn one_bad_entry_spoils_the_list_but_not_the_addresses() {
        let text = r#"["10.10.10.5/24","garbage",7,"fd00::1/64","10.0.0.9"]"#;
        assert!(decode(text).is_err());
        let addresses: Vec<String> = readable_addresses(text).iter().map(Address::to_string).collect();
        assert_eq!(addresses, ["10.10.10.5", "fd00::1", "10.0.0.9"]);
        assert!(readable_addresses("garbage").is_empty());
    }
}
