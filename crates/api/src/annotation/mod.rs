//! The annotations and labels through which OVN-Kubernetes' components talk to each other, each with its codec.
//!
//! Every module has the key, an example, `decode` and `encode`; what `encode` writes, `decode` reads back.

pub mod bridge_egress_ips;
pub mod egress_ip_mark;
pub mod egress_ip_owner;
pub mod egress_ipconfig;
pub mod host_cidrs;
pub mod l3_gateway_config;
pub mod network_ids;
pub mod node_id;
pub mod node_primary_ifaddr;
pub mod node_subnets;
pub mod secondary_host_egress_ips;
pub mod transit_switch_port_ifaddr;

mod addresses;
mod ifaddr;

pub use ifaddr::Ifaddr;

use egret_core::{AddressFault, Family};
use ipnet::IpNet;

/// Why the text of an annotation cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeFault {
    /// It is no JSON, or JSON of another shape.
    #[error("the JSON cannot be read: {source}")]
    Json {
        /// Where and why.
        #[from]
        source: serde_json::Error,
    },
    /// A text should be an address with a prefix length.
    #[error("{text:?} is not an address with a prefix length")]
    Prefix {
        /// The text.
        text: String,
    },
    /// A text should be an address.
    #[error("{text:?}: {source}")]
    Address {
        /// The text.
        text: String,
        /// What it is instead.
        source: AddressFault,
    },
    /// An address stands under the key of the other family.
    #[error("{prefix} is not {family}")]
    Family {
        /// The address.
        prefix: IpNet,
        /// The family it stands for.
        family: Family,
    },
    /// Something that must be there is not.
    #[error("there is no {what}")]
    Missing {
        /// What is missing.
        what: &'static str,
    },
    /// A text should be a number.
    #[error("{text:?} is not a number from 0 to {}", u32::MAX)]
    Number {
        /// The text.
        text: String,
    },
    /// A text should be one of a few words.
    #[error("{text:?} is not a {what}")]
    Word {
        /// The text.
        text: String,
        /// What it should be.
        what: &'static str,
    },
}

fn parse_prefix(text: &str) -> Result<IpNet, DecodeFault> {
    text.parse().map_err(|_| DecodeFault::Prefix { text: text.to_owned() })
}

fn parse_number(text: &str) -> Result<u32, DecodeFault> {
    text.parse().map_err(|_| DecodeFault::Number { text: text.to_owned() })
}

fn to_json(value: &impl serde::Serialize) -> String {
    // Only maps with keys other than strings and failing `Serialize` impls fail; no annotation has either.
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_no_type_of_ours() {
        let faults = [
            node_primary_ifaddr::decode("7").err(),
            egress_ipconfig::decode("[7]").err(),
            egress_ipconfig::decode(r#"[{"ifaddr":7}]"#).err(),
            egress_ipconfig::decode(r#"[{"capacity":7}]"#).err(),
            node_subnets::decode(r#"{"default":7}"#).err(),
            l3_gateway_config::decode("7").err(),
            l3_gateway_config::decode(r#"{"default":7}"#).err(),
            l3_gateway_config::mode("7").err(),
            l3_gateway_config::mode(r#"{"default":7}"#).err(),
        ];
        for fault in faults {
            let message = fault.expect("a fault").to_string();
            assert!(!message.contains("Wire") && !message.contains("struct") && !message.contains("enum"), "{message}");
        }
    }

    #[test]
    fn every_example_can_be_read() {
        assert!(bridge_egress_ips::decode(bridge_egress_ips::EXAMPLE).is_ok());
        assert!(egress_ipconfig::decode(egress_ipconfig::EXAMPLE).is_ok());
        assert!(host_cidrs::decode(host_cidrs::EXAMPLE).is_ok());
        assert!(l3_gateway_config::decode(l3_gateway_config::EXAMPLE).is_ok());
        assert!(network_ids::decode(network_ids::EXAMPLE).is_ok());
        assert!(node_id::decode(node_id::EXAMPLE).is_ok());
        assert!(node_primary_ifaddr::decode(node_primary_ifaddr::EXAMPLE).is_ok());
        assert!(node_subnets::decode(node_subnets::EXAMPLE).is_ok());
        assert!(secondary_host_egress_ips::decode(secondary_host_egress_ips::EXAMPLE).is_ok());
        assert!(transit_switch_port_ifaddr::decode(transit_switch_port_ifaddr::EXAMPLE).is_ok());
    }
}
