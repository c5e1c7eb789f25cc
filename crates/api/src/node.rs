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
        let gateway_mode =
            says.decode(l3_gateway_config::KEY, l3_gateway_config::EXAMPLE, l3_gateway_config::mode).ok();
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
        example: &str,
        decode: fn(&str) -> Result<T, DecodeFault>,
    ) -> Result<T, InfrastructureFault> {
        let fault = |kind| InfrastructureFault { annotation: key, kind };
        match metadata::annotations(self.object).and_then(|annotations| annotations.get(key)) {
            None | Some(Value::Null) => Err(fault(InfrastructureFaultKind::Missing)),
            Some(Value::String(text)) => decode(text).map_err(|error| {
                let fault_at = Fault::new(metadata::annotation_path(key), error.to_string());
                self.faults.push(fault_at.help(format!("it should look like {example}")));
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
        let primary = says.decode(node_primary_ifaddr::KEY, node_primary_ifaddr::EXAMPLE, node_primary_ifaddr::decode);
        let host = says.decode(host_cidrs::KEY, host_cidrs::EXAMPLE, host_cidrs::decode);
        let primary_addresses = primary.iter().flat_map(|primary| primary.addresses()).collect();
        let cloud = match platform {
            Platform::BareMetal => None,
            Platform::Cloud => {
                Some(says.decode(egress_ipconfig::KEY, egress_ipconfig::EXAMPLE, egress_ipconfig::decode))
            }
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

/// The addresses in `status.addresses`.
#[must_use]
pub fn addresses(value: &Value) -> Vec<Address> {
    let addresses = metadata::list(value, "/status/addresses").iter();
    addresses.filter_map(|entry| Address::parse(entry.get("address")?.as_str()?).ok()).collect()
}

fn own_egress_addresses(says: &mut Annotations<'_>) -> Vec<Address> {
    let secondary = says.decode(
        secondary_host_egress_ips::KEY,
        secondary_host_egress_ips::EXAMPLE,
        secondary_host_egress_ips::decode,
    );
    let bridge = says.decode(bridge_egress_ips::KEY, bridge_egress_ips::EXAMPLE, bridge_egress_ips::decode);
    let addresses: BTreeSet<_> = secondary.into_iter().chain(bridge).flatten().collect();
    addresses.into_iter().collect()
}

/// The pod subnets as OVN-Kubernetes says them, else as the other CNIs take them from the node's spec.
fn pod_subnets(says: &mut Annotations<'_>) -> Vec<IpNet> {
    let networks: BTreeMap<_, _> =
        says.decode(node_subnets::KEY, node_subnets::EXAMPLE, node_subnets::decode).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use egret_core::GatewayMode;

    use super::*;

    const PRIMARY: &str = r#"{"ipv4":"192.168.126.12/24","ipv6":""}"#;
    const HOST: &str = r#"["10.10.10.5/24","169.254.1.1/16","192.168.126.12/24"]"#;
    const CLOUD: &str = r#"[{"interface":"a","ifaddr":{"ipv4":"10.0.128.0/18"},"capacity":{"ip":0}}]"#;

    fn node(annotations: &[(&str, &str)]) -> Value {
        let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
        json!({"metadata": {"name": "a", "annotations": annotations}})
    }

    fn texts<T: ToString>(values: &[T]) -> Vec<String> {
        values.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn networks_on_bare_metal_are_the_nodes_own_and_the_hosts_others() {
        let value = node(&[(node_primary_ifaddr::KEY, PRIMARY), (host_cidrs::KEY, HOST)]);
        let converted = from_value(&value, Platform::BareMetal);
        assert_eq!(converted.faults, []);
        let node = converted.object.unwrap();
        let network = node.network.unwrap();
        assert_eq!(texts(network.primary()), ["192.168.126.0/24"]);
        assert_eq!(texts(network.secondary()), ["10.10.10.0/24"], "link-local is no network");
        assert_eq!(texts(&node.primary_addresses), ["192.168.126.12"]);
        assert_eq!(texts(&node.host_addresses), ["10.10.10.5", "169.254.1.1", "192.168.126.12"]);
        assert_eq!(node.capacity, Capacity::default());
    }

    #[test]
    fn networks_on_a_cloud_are_the_clouds_alone() {
        let annotations = [(node_primary_ifaddr::KEY, PRIMARY), (host_cidrs::KEY, HOST), (egress_ipconfig::KEY, CLOUD)];
        let node = from_value(&node(&annotations), Platform::Cloud).object.unwrap();
        let network = node.network.unwrap();
        assert_eq!(texts(network.primary()), ["10.0.128.0/18"]);
        assert_eq!(texts(network.secondary()), [""; 0]);
        assert_eq!(node.capacity.total, Some(0));
        assert_eq!(texts(&node.primary_addresses), ["192.168.126.12"]);
    }

    #[test]
    fn each_platform_needs_its_annotations() {
        let all = [(node_primary_ifaddr::KEY, PRIMARY), (host_cidrs::KEY, HOST), (egress_ipconfig::KEY, CLOUD)];
        for (platform, needed) in [(Platform::BareMetal, 2), (Platform::Cloud, 3)] {
            for (annotation, _) in &all[..needed] {
                let rest: Vec<_> = all.iter().copied().filter(|(key, _)| key != annotation).collect();
                let missing = from_value(&node(&rest), platform);
                assert_eq!(missing.faults, [], "a missing annotation is no fault of the input");
                let kind = InfrastructureFaultKind::Missing;
                assert_eq!(missing.object.unwrap().network, Err(InfrastructureFault { annotation, kind }));

                let with = [rest.as_slice(), &[(annotation, "garbage")]].concat();
                let unparsable = from_value(&node(&with), platform);
                assert_eq!(unparsable.faults[0].path, metadata::annotation_path(annotation));
                let kind = InfrastructureFaultKind::Unparsable;
                assert_eq!(unparsable.object.unwrap().network, Err(InfrastructureFault { annotation, kind }));
            }
        }
    }

    #[test]
    fn one_bad_host_address_makes_the_node_unusable_and_leaves_its_others_taken() {
        let value = node(&[(node_primary_ifaddr::KEY, PRIMARY), (host_cidrs::KEY, r#"["garbage","10.10.10.5/24"]"#)]);
        let node = from_value(&value, Platform::BareMetal).object.unwrap();
        assert!(node.network.is_err());
        assert_eq!(texts(&node.host_addresses), ["10.10.10.5"]);
    }

    #[test]
    fn an_annotation_that_is_no_text_is_unparsable_and_one_fault() {
        let mut value = node(&[(node_primary_ifaddr::KEY, PRIMARY)]);
        value["metadata"]["annotations"][host_cidrs::KEY] = json!(["10.0.0.1/8"]);
        let converted = from_value(&value, Platform::BareMetal);
        assert_eq!(converted.faults.len(), 1);
        let kind = InfrastructureFaultKind::Unparsable;
        let fault = InfrastructureFault { annotation: host_cidrs::KEY, kind };
        assert_eq!(converted.object.unwrap().network, Err(fault));
    }

    #[test]
    fn own_egress_addresses_are_those_of_both_lists() {
        let lists = [(secondary_host_egress_ips::KEY, r#"["10.0.0.2"]"#), (bridge_egress_ips::KEY, r#"["10.0.0.1"]"#)];
        let node_of = |lists: &[_]| from_value(&node(lists), Platform::BareMetal);
        assert_eq!(texts(&node_of(&lists).object.unwrap().own_egress_addresses), ["10.0.0.1", "10.0.0.2"]);
        let faulty = node_of(&[lists[0], (bridge_egress_ips::KEY, "[7]")]);
        assert_eq!(faulty.faults.len(), 1);
        assert_eq!(texts(&faulty.object.unwrap().own_egress_addresses), ["10.0.0.2"]);
    }

    #[test]
    fn pod_subnets_are_the_default_networks_else_those_of_the_spec() {
        let subnets = |mut value: Value, spec: Value| {
            value["spec"] = spec;
            texts(&from_value(&value, Platform::BareMetal).object.unwrap().pod_subnets)
        };
        let ovn = node(&[(node_subnets::KEY, r#"{"default":"10.128.0.0/23","blue":["10.9.0.0/24"]}"#)]);
        assert_eq!(subnets(ovn, json!({"podCIDR": "10.0.0.0/24"})), ["10.128.0.0/23"]);
        let both = json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"]});
        assert_eq!(subnets(node(&[]), both), ["10.0.0.0/24", "fd00::/64"]);
        assert_eq!(subnets(node(&[]), json!({"podCIDR": "10.0.0.0/24"})), ["10.0.0.0/24"]);
    }

    #[test]
    fn a_nodes_addresses_are_those_of_its_status_that_are_addresses() {
        let status = json!({"addresses": [
            {"type": "InternalIP", "address": "192.0.2.1"},
            {"type": "Hostname", "address": "a"},
            {"type": "InternalIP", "address": "fd00::1"},
        ]});
        assert_eq!(texts(&addresses(&json!({"status": status}))), ["192.0.2.1", "fd00::1"]);
    }

    #[test]
    fn a_bad_pod_subnet_costs_only_itself() {
        let value = json!({"metadata": {"name": "a"}, "spec": {"podCIDRs": ["garbage", "10.0.0.0/24"]}});
        let converted = from_value(&value, Platform::BareMetal);
        assert_eq!(texts(&converted.faults), ["spec.podCIDRs[0]: \"garbage\" is not a prefix"]);
        assert_eq!(texts(&converted.object.unwrap().pod_subnets), ["10.0.0.0/24"]);
    }

    #[test]
    fn a_node_is_ready_only_if_its_condition_is_true() {
        let ready = |conditions: Value| {
            let value = json!({"metadata": {"name": "a"}, "status": {"conditions": conditions}});
            from_value(&value, Platform::BareMetal).object.unwrap().ready
        };
        assert!(ready(json!([{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}])));
        for status in ["False", "Unknown", "true"] {
            assert!(!ready(json!([{"type": "Ready", "status": status}])), "{status}");
        }
        assert!(!ready(Value::Null));
    }

    #[test]
    fn labels_cordon_and_gateway_mode_are_read() {
        let mut value = node(&[(l3_gateway_config::KEY, r#"{"default":{"mode":"shared"}}"#)]);
        value["metadata"]["labels"] = json!({"good": "", "bad": 1});
        value["spec"] = json!({"unschedulable": true});
        let converted = from_value(&value, Platform::BareMetal);
        assert_eq!(texts(&converted.faults), ["metadata.labels.bad: must be a string, not a number"]);
        let node = converted.object.unwrap();
        assert!(node.cordoned);
        assert_eq!(node.gateway_mode, Some(GatewayMode::Shared));
        assert_eq!(node.labels.len(), 1);
    }
}
