//! `k8s.ovn.org/node-subnets`

use std::collections::BTreeMap;

use ipnet::IpNet;
use serde::Deserialize;

use super::{DecodeFault, parse_prefix, to_json};

/// The node's pod subnets per network.
pub const KEY: &str = "k8s.ovn.org/node-subnets";
/// What it looks like.
pub const EXAMPLE: &str = r#"{"default":["10.130.0.0/23","fd01:0:0:2::/64"]}"#;
/// The name of the cluster's default network, here and in `network-ids`.
pub const DEFAULT_NETWORK: &str = "default";

#[derive(Deserialize)]
#[serde(untagged, expecting = "invalid type, expected a prefix or a list of prefixes")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Reads `{"default":["10.130.0.0/23","fd01:0:0:2::/64"]}`; a bare text counts as a list of one.
///
/// # Errors
/// [`DecodeFault`] of the first text that is no prefix.
pub fn decode(text: &str) -> Result<BTreeMap<String, Vec<IpNet>>, DecodeFault> {
    let networks: BTreeMap<String, OneOrMany> = serde_json::from_str(text)?;
    let subnets = |(network, subnets)| {
        let texts = match subnets {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        };
        let subnets = texts.iter().map(|text| parse_prefix(text)).collect::<Result<_, _>>()?;
        Ok((network, subnets))
    };
    networks.into_iter().map(subnets).collect()
}

/// Writes what [`decode`] reads, always as lists.
#[must_use]
pub fn encode(networks: &BTreeMap<String, Vec<IpNet>>) -> String {
    let texts = |(network, subnets): (_, &Vec<IpNet>)| (network, subnets.iter().map(IpNet::to_string).collect());
    to_json(&networks.iter().map(texts).collect::<BTreeMap<&String, Vec<String>>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_text_is_a_list_of_one() {
        let networks = decode(r#"{"default":"10.130.0.0/23","netA":["10.200.1.0/24","fd01::/64"]}"#);
        let text = encode(&networks.expect("networks"));
        assert_eq!(text, r#"{"default":["10.130.0.0/23"],"netA":["10.200.1.0/24","fd01::/64"]}"#);
        assert_eq!(encode(&decode(&text).expect("networks")), text);
    }

    #[test]
    fn what_is_no_prefix_is_a_fault() {
        assert!(matches!(decode(r#"{"default":"10.130.0.0"}"#), Err(DecodeFault::Prefix { .. })));
        assert!(matches!(decode(r#"{"default":7}"#), Err(DecodeFault::Json { .. })));
    }
}
