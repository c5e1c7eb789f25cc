//! `cloud.network.openshift.io/egress-ipconfig`

use egret_core::Capacity;
use serde::{Deserialize, Serialize};

use super::ifaddr::{Ifaddr, Wire};
use super::{DecodeFault, to_json};

/// What the cloud says of the node: in which network it takes egress IPs, and how many.
pub const KEY: &str = "cloud.network.openshift.io/egress-ipconfig";
/// What it looks like.
pub const EXAMPLE: &str = r#"[{"interface":"nic0","ifaddr":{"ipv4":"10.0.128.0/18"},"capacity":{"ip":10}}]"#;

/// The interface of a node that takes egress IPs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressIpConfig {
    /// The cloud's name of the interface.
    pub interface: String,
    /// The networks in which it takes egress IPs.
    pub networks: Ifaddr,
    /// How many it takes: AWS says it per family, the other clouds for both together.
    pub capacity: Capacity,
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "an interface as a map")]
struct InterfaceWire {
    #[serde(default)]
    interface: String,
    #[serde(default)]
    ifaddr: Wire,
    #[serde(default)]
    capacity: CapacityWire,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(expecting = "a map of limits")]
struct CapacityWire {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ipv4: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ipv6: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ip: Option<u32>,
}

/// Reads the first interface of the list; the others are not used. An absent limit is none, 0 is 0.
///
/// # Errors
/// [`DecodeFault`], also if the list is empty or the interface has no network.
pub fn decode(text: &str) -> Result<EgressIpConfig, DecodeFault> {
    let interfaces: Vec<serde_json::Value> = serde_json::from_str(text)?;
    let first = interfaces.into_iter().next().ok_or(DecodeFault::Missing { what: "interface" })?;
    let wire: InterfaceWire = serde_json::from_value(first)?;
    let CapacityWire { ipv4: v4, ipv6: v6, ip: total } = wire.capacity;
    let networks = Ifaddr::of_wire(&wire.ifaddr)?;
    Ok(EgressIpConfig { interface: wire.interface, networks, capacity: Capacity { v4, v6, total } })
}

/// Writes what [`decode`] reads.
#[must_use]
pub fn encode(config: &EgressIpConfig) -> String {
    let Capacity { v4: ipv4, v6: ipv6, total: ip } = config.capacity;
    let capacity = CapacityWire { ipv4, ipv6, ip };
    to_json(&[InterfaceWire { interface: config.interface.clone(), ifaddr: config.networks.wire(), capacity }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cloud_comes_back() {
        for text in [
            r#"[{"interface":"eni-0a","ifaddr":{"ipv4":"10.0.128.0/18"},"capacity":{"ipv4":14,"ipv6":15}}]"#,
            r#"[{"interface":"nic0","ifaddr":{"ipv4":"10.0.128.0/18"},"capacity":{"ip":10}}]"#,
            r#"[{"interface":"az-nic","ifaddr":{"ipv4":"10.0.0.0/16","ipv6":"fd00::/64"},"capacity":{"ip":255}}]"#,
            r#"[{"interface":"2b30d0d7","ifaddr":{"ipv6":"fd00::/64"},"capacity":{"ip":64}}]"#,
        ] {
            assert_eq!(encode(&decode(text).expect("a config")), text);
        }
    }

    #[test]
    fn capacity_zero_is_not_capacity_absent() {
        let capacity = |limits: &str| {
            let text = format!(r#"[{{"interface":"a","ifaddr":{{"ipv4":"10.0.0.0/8"}}{limits}}}]"#);
            decode(&text).expect("a config").capacity
        };
        assert_eq!(capacity(r#","capacity":{"ip":0}"#), Capacity { total: Some(0), ..Capacity::default() });
        assert_eq!(capacity(r#","capacity":{"ipv4":0}"#), Capacity { v4: Some(0), ..Capacity::default() });
        assert_eq!(capacity(r#","capacity":{}"#), Capacity::default());
        assert_eq!(capacity(""), Capacity::default());
    }

    #[test]
    fn only_the_first_interface_is_read() {
        let text = r#"[{"interface":"a","ifaddr":{"ipv4":"10.0.0.0/8"}},{"ifaddr":7}]"#;
        assert_eq!(decode(text).expect("a config").interface, "a");
    }

    #[test]
    fn nothing_to_place_an_address_in_is_a_fault() {
        for text in ["[]", r#"[{"interface":"a"}]"#, r#"[{"interface":"a","ifaddr":{"ipv4":""}}]"#] {
            assert!(matches!(decode(text), Err(DecodeFault::Missing { .. })), "{text}");
        }
        for text in ["", "{}", "[7]", r#"[{"ifaddr":{"ipv4":"10.0.0.0/8"},"capacity":{"ip":-1}}]"#] {
            assert!(matches!(decode(text), Err(DecodeFault::Json { .. })), "{text}");
        }
    }
}
