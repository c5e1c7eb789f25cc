//! Any text as every annotation: it is read or refused, and what was read survives being written and read again.

#![no_main]

use egret_api::annotation::{
    bridge_egress_ips, egress_ip_mark, egress_ip_owner, egress_ipconfig, host_cidrs, l3_gateway_config, network_ids,
    node_id, node_primary_ifaddr, node_subnets, secondary_host_egress_ips, transit_switch_port_ifaddr,
};
use libfuzzer_sys::fuzz_target;

/// Decode, encode, decode: the same value.
macro_rules! round_trip {
    ($text:expr, $codec:ident, |$value:ident| $encoded:expr) => {
        if let Ok($value) = $codec::decode($text) {
            let encoded = $encoded;
            let again = $codec::decode(&encoded).ok();
            assert_eq!(again.as_ref(), Some(&$value), "{}: {encoded}", stringify!($codec));
        }
    };
}

fuzz_target!(|text: &str| {
    round_trip!(text, bridge_egress_ips, |value| bridge_egress_ips::encode(&value));
    round_trip!(text, egress_ip_mark, |value| egress_ip_mark::encode(value));
    round_trip!(text, egress_ip_owner, |value| egress_ip_owner::encode(&value));
    round_trip!(text, egress_ipconfig, |value| egress_ipconfig::encode(&value));
    round_trip!(text, host_cidrs, |value| host_cidrs::encode(&value));
    round_trip!(text, l3_gateway_config, |value| l3_gateway_config::encode(&value));
    round_trip!(text, network_ids, |value| network_ids::encode(&value));
    round_trip!(text, node_id, |value| node_id::encode(value));
    round_trip!(text, node_primary_ifaddr, |value| node_primary_ifaddr::encode(value));
    round_trip!(text, node_subnets, |value| node_subnets::encode(&value));
    round_trip!(text, secondary_host_egress_ips, |value| secondary_host_egress_ips::encode(&value));
    round_trip!(text, transit_switch_port_ifaddr, |value| transit_switch_port_ifaddr::encode(value));
    let _ = host_cidrs::readable_addresses(text);
    let _ = l3_gateway_config::mode(text);
});
