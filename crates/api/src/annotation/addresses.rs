//! `["10.10.10.50"]`: a list of addresses, the shape two annotations share.

use egret_core::Address;

use super::{DecodeFault, to_json};

pub(super) fn decode(text: &str) -> Result<Vec<Address>, DecodeFault> {
    let texts: Vec<String> = serde_json::from_str(text)?;
    texts
        .into_iter()
        .map(|text| Address::parse(&text).map_err(|source| DecodeFault::Address { text, source }))
        .collect()
}

pub(super) fn encode(addresses: &[Address]) -> String {
    to_json(&addresses.iter().map(Address::to_string).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_in_their_order() {
        let text = r#"["10.10.10.50","fd00::1","10.10.10.5"]"#;
        assert_eq!(encode(&decode(text).expect("addresses")), text);
    }

    #[test]
    fn a_prefix_is_no_address() {
        assert!(matches!(decode(r#"["10.0.0.1/24"]"#), Err(DecodeFault::Address { .. })));
    }
}
