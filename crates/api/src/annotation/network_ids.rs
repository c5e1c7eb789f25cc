//! `k8s.ovn.org/network-ids`

use std::collections::BTreeMap;

use super::{DecodeFault, parse_number, to_json};

/// The number of each network.
pub const KEY: &str = "k8s.ovn.org/network-ids";
/// What it looks like.
pub const EXAMPLE: &str = r#"{"default":"0","netA":"1"}"#;

/// Reads `{"default":"0","netA":"1"}`.
///
/// # Errors
/// [`DecodeFault`] of the first text that is no number.
pub fn decode(text: &str) -> Result<BTreeMap<String, u32>, DecodeFault> {
    let networks: BTreeMap<String, String> = serde_json::from_str(text)?;
    networks.into_iter().map(|(network, id)| Ok((network, parse_number(&id)?))).collect()
}

/// Writes what [`decode`] reads.
#[must_use]
pub fn encode(networks: &BTreeMap<String, u32>) -> String {
    to_json(&networks.iter().map(|(network, id)| (network, id.to_string())).collect::<BTreeMap<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_texts_and_come_back() {
        let text = r#"{"default":"0","netA":"1"}"#;
        assert_eq!(encode(&decode(text).expect("ids")), text);
        assert!(matches!(decode(r#"{"default":"x"}"#), Err(DecodeFault::Number { .. })));
        assert!(matches!(decode(r#"{"default":0}"#), Err(DecodeFault::Json { .. })));
    }
}
