//! `k8s.ovn.org/l3-gateway-config`

use egret_core::{Address, GatewayMode};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{DecodeFault, parse_number, parse_prefix, to_json};

/// How the node's traffic leaves it.
pub const KEY: &str = "k8s.ovn.org/l3-gateway-config";
/// What it looks like.
pub const EXAMPLE: &str = r#"{"default":{"mode":"local"}}"#;

/// The gateway of a node's default network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Whether traffic leaves through the host's kernel.
    pub mode: GatewayMode,
    /// The external bridge.
    pub bridge: String,
    /// The port on that bridge.
    pub interface: String,
    /// The MAC address of the gateway.
    pub mac: String,
    /// The addresses of the gateway.
    pub addresses: Vec<IpNet>,
    /// Its next hops.
    pub next_hops: Vec<Address>,
    /// Whether `NodePort` services are served.
    pub node_port: bool,
    /// The VLAN, 0 for none.
    pub vlan: u32,
}

#[derive(Deserialize, Serialize)]
#[serde(expecting = "a map of networks")]
struct Wire {
    default: Option<GatewayWire>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", default, expecting = "a gateway as a map")]
struct GatewayWire {
    mode: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    bridge_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    interface_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    mac_address: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ip_addresses: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_address: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next_hops: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_hop: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    node_port_enable: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    vlan_id: String,
}

/// The mode alone, whatever the rest of the annotation is like.
///
/// # Errors
/// [`DecodeFault`] if there is no default network or its mode is none of `local`, `shared` and the empty text.
pub fn mode(text: &str) -> Result<GatewayMode, DecodeFault> {
    #[derive(Deserialize)]
    #[serde(expecting = "a gateway as a map")]
    struct ModeWire {
        #[serde(default)]
        mode: String,
    }
    #[derive(Deserialize)]
    #[serde(expecting = "a map of networks")]
    struct Outer {
        default: Option<ModeWire>,
    }
    let wire: Outer = serde_json::from_str(text)?;
    parse_mode(wire.default.ok_or(DecodeFault::Missing { what: "gateway of the default network" })?.mode)
}

/// Reads the gateway of the default network. The singular keys are read where the lists are absent.
///
/// # Errors
/// [`DecodeFault`].
pub fn decode(text: &str) -> Result<Gateway, DecodeFault> {
    let wire: Wire = serde_json::from_str(text)?;
    let wire = wire.default.ok_or(DecodeFault::Missing { what: "gateway of the default network" })?;
    let mode = parse_mode(wire.mode)?;
    // A node without a gateway has nothing else to say, whatever else is written there.
    let wire = if mode == GatewayMode::Disabled {
        GatewayWire::default()
    } else {
        GatewayWire { mode: String::new(), ..wire }
    };
    let list = |list: Vec<String>, one: Option<String>| if list.is_empty() { one.into_iter().collect() } else { list };
    let address =
        |text: String| Address::parse(&text).map_err(|source| DecodeFault::Address { text: text.clone(), source });
    Ok(Gateway {
        mode,
        bridge: wire.bridge_id,
        interface: wire.interface_id,
        mac: wire.mac_address,
        addresses: list(wire.ip_addresses, wire.ip_address)
            .iter()
            .map(|text| parse_prefix(text))
            .collect::<Result<_, _>>()?,
        next_hops: list(wire.next_hops, wire.next_hop).into_iter().map(address).collect::<Result<_, _>>()?,
        node_port: parse_bool(wire.node_port_enable)?,
        vlan: if wire.vlan_id.is_empty() { 0 } else { parse_number(&wire.vlan_id)? },
    })
}

/// Writes what [`decode`] reads: with an empty mode no other key, the singular keys only for lists of one.
#[must_use]
pub fn encode(gateway: &Gateway) -> String {
    let mode = match gateway.mode {
        GatewayMode::Local => "local",
        GatewayMode::Shared => "shared",
        GatewayMode::Disabled => return to_json(&Wire { default: Some(GatewayWire::default()) }),
    };
    let only = |list: &[String]| if let [one] = list { Some(one.clone()) } else { None };
    let ip_addresses: Vec<String> = gateway.addresses.iter().map(IpNet::to_string).collect();
    let next_hops: Vec<String> = gateway.next_hops.iter().map(Address::to_string).collect();
    let wire = GatewayWire {
        mode: mode.to_owned(),
        bridge_id: gateway.bridge.clone(),
        interface_id: gateway.interface.clone(),
        mac_address: gateway.mac.clone(),
        ip_address: only(&ip_addresses),
        ip_addresses,
        next_hop: only(&next_hops),
        next_hops,
        node_port_enable: gateway.node_port.to_string(),
        vlan_id: gateway.vlan.to_string(),
    };
    to_json(&Wire { default: Some(wire) })
}

fn parse_mode(text: String) -> Result<GatewayMode, DecodeFault> {
    match text.as_str() {
        "local" => Ok(GatewayMode::Local),
        "shared" => Ok(GatewayMode::Shared),
        "" => Ok(GatewayMode::Disabled),
        _ => Err(DecodeFault::Word { text, what: "gateway mode (local, shared or empty)" }),
    }
}

fn parse_bool(text: String) -> Result<bool, DecodeFault> {
    match text.as_str() {
        "true" => Ok(true),
        "false" | "" => Ok(false),
        _ => Err(DecodeFault::Word { text, what: "truth value (true or false)" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_comes_back() {
        let text = r#"{"default":{"mode":"local","bridge-id":"breth0","interface-id":"breth0_node1","mac-address":"02:42:ac:12:00:03","ip-addresses":["172.18.0.3/16"],"ip-address":"172.18.0.3/16","next-hops":["172.18.0.1"],"next-hop":"172.18.0.1","node-port-enable":"true","vlan-id":"0"}}"#;
        assert_eq!(encode(&decode(text).expect("a gateway")), text);
    }

    #[test]
    fn a_disabled_gateway_says_only_its_mode() {
        let text = r#"{"default":{"mode":""}}"#;
        assert_eq!(encode(&decode(text).expect("a gateway")), text);
    }

    #[test]
    fn singular_keys_are_read_where_lists_are_absent() {
        let text = r#"{"default":{"mode":"shared","ip-address":"172.18.0.3/16","next-hop":"172.18.0.1"}}"#;
        let gateway = decode(text).expect("a gateway");
        assert_eq!((gateway.addresses.len(), gateway.next_hops.len()), (1, 1));
    }

    #[test]
    fn the_mode_is_read_from_an_annotation_that_is_faulty_elsewhere() {
        let text = r#"{"default":{"mode":"shared","next-hop":"garbage"}}"#;
        assert!(decode(text).is_err());
        assert_eq!(mode(text).expect("a mode"), GatewayMode::Shared);
        assert!(matches!(mode(r#"{"default":{"mode":"both"}}"#), Err(DecodeFault::Word { .. })));
        assert!(matches!(mode("{}"), Err(DecodeFault::Missing { .. })));
    }
}
