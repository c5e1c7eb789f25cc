//! Node: labels, readiness, and what the node says of its networks in annotations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use egret_core::{
    Address, Capacity, InfrastructureFault, InfrastructureFaultKind, Node, NodeNetwork, Platform, Reachability,
};
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::annotation::{
    DecodeFault, Ifaddr, bridge_egress_ips, egress_ipconfig, host_cidrs, l3_gateway_config, node_primary_ifaddr,
    node_subnets, secondary_host_egress_ips,
};
use crate::{Converted, Fault, FieldPath, metadata, schema};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let condition = json!({
        "type": "object",
        "additionalProperties": true,
        "required": ["type", "status"],
        "properties": {"type": text, "status": text},
    });
    json!({
        "type": "object",
        "additionalProperties": true,
        "properties": {
            "metadata": metadata::schema(),
            "spec": {
                "type": "object",
                "additionalProperties": true,
                "properties": {
                    "unschedulable": {"type": "boolean"},
                    "podCIDR": text,
                    "podCIDRs": {"type": "array", "items": text},
                },
            },
            "status": {
                "type": "object",
                "additionalProperties": true,
                "properties": {"conditions": {"type": "array", "items": condition}},
            },
        },
    })
});

/// Reads a Node; it counts as reachable.
///
/// There is no object without a name. An annotation that is missing is no fault of the input, the node is then not
/// infrastructure-ready (rule N3); one that cannot be read is both.
pub fn from_value(value: &Value, platform: Platform) -> Converted<Node> {
    let mut faults = schema::check(&SCHEMA, value);
    let node = metadata::name(value).map(|name| {
        let mut says = Annotations { object: value, faults: &mut faults };
        let networks = Networks::read(&mut says, platform);
        let gateway_mode = says.decode(l3_gateway_config::KEY, l3_gateway_config::mode).ok();
        Node {
            name: name.into(),
            labels: metadata::labels(value).into(),
            ready: is_ready(value),
            cordoned: value.pointer("/spec/unschedulable").and_then(Value::as_bool).unwrap_or_default(),
            drained: false,
            reachability: Reachability::Reachable,
            own_egress_addresses: own_egress_addresses(&mut says),
            host_addresses: host_addresses(value),
            gateway_mode,
            pod_subnets: pod_subnets(&mut says),
            primary_addresses: networks.primary_addresses,
            capacity: networks.capacity,
            network: networks.network,
        }
    });
    Converted::new(node, faults)
}

/// The annotations of one node, and where their faults go.
struct Annotations<'a> {
    object: &'a Value,
    faults: &'a mut Vec<Fault>,
}

impl Annotations<'_> {
    /// Decodes one annotation; what cannot be read becomes a fault.
    fn decode<T>(
        &mut self,
        key: &'static str,
        decode: fn(&str) -> Result<T, DecodeFault>,
    ) -> Result<T, InfrastructureFault> {
        let fault = |kind| InfrastructureFault { annotation: key, kind };
        match metadata::annotations(self.object).and_then(|annotations| annotations.get(key)) {
            None | Some(Value::Null) => Err(fault(InfrastructureFaultKind::Missing)),
            Some(Value::String(text)) => decode(text).map_err(|error| {
                self.faults.push(Fault::new(metadata::annotation_path(key), error.to_string()));
                fault(InfrastructureFaultKind::Unparsable)
            }),
            // The schema check has said what is wrong with it.
            Some(_) => Err(fault(InfrastructureFaultKind::Unparsable)),
        }
    }
}

/// What the node's network annotations come to (rules N3, N6, N7).
struct Networks {
    network: Result<NodeNetwork, InfrastructureFault>,
    capacity: Capacity,
    primary_addresses: Vec<Address>,
}

impl Networks {
    fn read(says: &mut Annotations<'_>, platform: Platform) -> Self {
        // All are decoded before the first that is missing ends it, so that every fault is found.
        let primary = says.decode(node_primary_ifaddr::KEY, node_primary_ifaddr::decode);
        let host = says.decode(host_cidrs::KEY, host_cidrs::decode);
        let primary_addresses = primary.iter().flat_map(|primary| primary.addresses()).collect();
        let cloud = match platform {
            Platform::BareMetal => None,
            Platform::Cloud => Some(says.decode(egress_ipconfig::KEY, egress_ipconfig::decode)),
        };
        let capacity = cloud.iter().flatten().map(|config| config.capacity).next().unwrap_or_default();
        let network = (|| {
            let (primary, host) = (primary?, host?);
            Ok(match cloud.transpose()? {
                Some(config) => NodeNetwork::new(config.networks.prefixes(), []),
                None => NodeNetwork::new(primary.prefixes(), secondary(primary, &host)),
            })
        })();
        Self { network, capacity, primary_addresses }
    }
}

/// The host's other networks: its addresses but the node's own, as far as they can carry traffic of their own.
///
/// OVN-Kubernetes leaves out what is *textually* equal to the node's own address. Equal once parsed decides the same:
/// the two differ only in spellings of one prefix, and that prefix is the primary network, which goes first.
fn secondary(primary: Ifaddr, host: &[IpNet]) -> impl Iterator<Item = IpNet> {
    host.iter()
        .copied()
        .filter(move |net| primary.prefixes().all(|own| own != *net))
        .filter(|net| Address::from(net.addr()).is_global_unicast())
}

fn is_ready(value: &Value) -> bool {
    metadata::list(value, "/status/conditions").iter().any(|condition| {
        let is = |key, text| condition.get(key).and_then(Value::as_str) == Some(text);
        is("type", "Ready") && is("status", "True")
    })
}

fn host_addresses(value: &Value) -> Vec<Address> {
    let text = metadata::annotations(value).and_then(|annotations| annotations.get(host_cidrs::KEY)?.as_str());
    let addresses: BTreeSet<_> = text.into_iter().flat_map(host_cidrs::readable_addresses).collect();
    addresses.into_iter().collect()
}

fn own_egress_addresses(says: &mut Annotations<'_>) -> Vec<Address> {
    let secondary = says.decode(secondary_host_egress_ips::KEY, secondary_host_egress_ips::decode);
    let bridge = says.decode(bridge_egress_ips::KEY, bridge_egress_ips::decode);
    let addresses: BTreeSet<_> = secondary.into_iter().chain(bridge).flatten().collect();
    addresses.into_iter().collect()
}

/// The pod subnets as OVN-Kubernetes says them, else as the other CNIs take them from the node's spec.
fn pod_subnets(says: &mut Annotations<'_>) -> Vec<IpNet> {
    let networks: BTreeMap<_, _> = says.decode(node_subnets::KEY, node_subnets::decode).unwrap_or_default();
    if let Some(subnets) = networks.get(node_subnets::DEFAULT_NETWORK) {
        return subnets.clone();
    }
    let list = metadata::list(says.object, "/spec/podCIDRs").iter().enumerate();
    let mut texts: Vec<_> =
        list.filter_map(|(i, text)| Some((FieldPath::of(&["spec", "podCIDRs"]).index(i), text.as_str()?))).collect();
    if texts.is_empty() {
        texts.extend(
            metadata::text(says.object, "/spec/podCIDR").map(|text| (FieldPath::of(&["spec", "podCIDR"]), text)),
        );
    }
    let mut subnets = Vec::new();
    for (path, text) in texts {
        match text.parse() {
            Ok(subnet) => subnets.push(subnet),
            Err(_) => says.faults.push(Fault::new(path, format!("{text:?} is not a prefix"))),
        }
    }
    subnets
}
