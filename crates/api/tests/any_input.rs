//! Outside input never panics, and what codecs write they read back.

use std::collections::BTreeMap;
use std::net::IpAddr;

use egret_api::annotation::l3_gateway_config::Gateway;
use egret_api::annotation::{
    Ifaddr, bridge_egress_ips, egress_ip_mark, egress_ip_owner, egress_ipconfig, host_cidrs, l3_gateway_config,
    network_ids, node_id, node_primary_ifaddr, node_subnets, secondary_host_egress_ips, transit_switch_port_ifaddr,
};
use egret_api::{
    Fault, Kind, Manifests, cloud_private_ip_config, egress_ip, egress_service, endpoint_slice, node, service,
};
use egret_core::{Address, Capacity, GatewayMode, Options, Platform};
use ipnet::IpNet;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

/// Keys and texts that the converters look at: arbitrary ones alone would never get past the first look.
const WORDS: [&str; 40] = [
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "creationTimestamp",
    "spec",
    "status",
    "egressIPs",
    "egressNodeSelector",
    "nodeSelector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "items",
    "egressIP",
    "node",
    "conditions",
    "type",
    "Ready",
    "Assigned",
    "True",
    "endpoints",
    "addresses",
    "addressType",
    "kubernetes.io/service-name",
    "podCIDRs",
    "host",
    "In",
    "Exists",
    "10.0.0.1",
    "fd00::1",
    "10.0.0.1/24",
    "k8s.ovn.org/host-cidrs",
    "k8s.ovn.org/node-primary-ifaddr",
    "[\"10.0.0.1/24\"]",
    "{\"ipv4\":\"10.0.0.1/24\"}",
    "2026-01-01T00:00:00Z",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => select(&WORDS[..]).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(word(), inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// One good object of each kind.
fn good_objects() -> Vec<Value> {
    let selector =
        json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]});
    let object = |kind: Kind, name: &str, rest: Value| {
        let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": {
            "name": name, "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"kubernetes.io/service-name": "svc"},
            "annotations": {
                node_primary_ifaddr::KEY: r#"{"ipv4":"10.0.0.1/24"}"#,
                host_cidrs::KEY: r#"["10.0.0.1/24","10.1.0.1/24"]"#,
                egress_ipconfig::KEY: r#"[{"interface":"a","ifaddr":{"ipv4":"10.0.0.0/24"},"capacity":{"ip":3}}]"#,
                node_subnets::KEY: r#"{"default":["10.2.0.0/24"]}"#,
                l3_gateway_config::KEY: r#"{"default":{"mode":"local"}}"#,
                egress_ip_owner::KEY: "eip",
            },
        }});
        if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
            object.extend(rest);
        }
        object
    };
    vec![
        object(
            Kind::EgressIp,
            "eip",
            json!({
                "spec": {"egressIPs": ["10.0.0.9"], "namespaceSelector": selector, "podSelector": selector, "egressNodeSelector": selector},
                "status": {"items": [{"node": "a", "egressIP": "10.0.0.9"}]},
            }),
        ),
        object(
            Kind::EgressService,
            "svc",
            json!({
                "spec": {"sourceIPBy": "Network", "nodeSelector": selector, "network": "1"}, "status": {"host": "a"},
            }),
        ),
        object(
            Kind::Node,
            "a",
            json!({
                "spec": {"unschedulable": true, "podCIDRs": ["10.2.0.0/24"]},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }),
        ),
        object(
            Kind::Service,
            "svc",
            json!({
                "spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.7"}]}},
            }),
        ),
        object(
            Kind::EndpointSlice,
            "svc-x",
            json!({
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["10.2.0.3"], "nodeName": "a", "conditions": {"serving": true}}],
            }),
        ),
        object(
            Kind::CloudPrivateIpConfig,
            "10.0.0.9",
            json!({
                "spec": {"node": "a"}, "status": {"node": "a", "conditions": [{"type": "Assigned", "status": "True"}]},
            }),
        ),
    ]
}

/// The pointers of all values in `value`.
fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| pointers(value, &format!("{at}/{}", escape(key)), all));
        }
        Value::Array(list) => list.iter().enumerate().for_each(|(i, value)| pointers(value, &format!("{at}/{i}"), all)),
        _ => {}
    }
}

/// A good object with one of its values replaced.
fn spoiled() -> impl Strategy<Value = Value> {
    (select(good_objects()), any::<Index>(), any_json()).prop_map(|(mut object, at, value)| {
        let mut all = Vec::new();
        pointers(&object, "", &mut all);
        if let Some(place) = object.pointer_mut(at.get::<String>(&all)) {
            *place = value;
        }
        object
    })
}

/// The faults of every converter: paths ascending, each fault once, with a message.
fn convert_all(value: &Value) {
    let check = |faults: Vec<Fault>| {
        assert!(faults.is_sorted_by(|a, b| a < b), "{faults:?}");
        assert!(faults.iter().all(|fault| !fault.message.is_empty() && !fault.message.ends_with('.')), "{faults:?}");
    };
    check(egress_ip::from_value(value).faults);
    check(egress_service::from_value(value).faults);
    check(service::from_value(value).faults);
    check(endpoint_slice::from_value(value).faults);
    check(cloud_private_ip_config::from_value(value).faults);
    check(node::from_value(value, Platform::BareMetal).faults);
    check(node::from_value(value, Platform::Cloud).faults);
}

fn any_address() -> impl Strategy<Value = Address> {
    any::<IpAddr>().prop_map(Address::from)
}

fn any_prefix() -> impl Strategy<Value = IpNet> {
    (any::<IpAddr>(), 0_u8..=128).prop_map(|(ip, length)| {
        IpNet::new(ip, if ip.is_ipv4() { length % 33 } else { length }).expect("a length of the family")
    })
}

fn any_ifaddr() -> impl Strategy<Value = Ifaddr> {
    (option::of(any_prefix()), option::of(any_prefix())).prop_filter_map("no address", |(a, b)| Ifaddr::new(a, b).ok())
}

#[test]
fn good_objects_have_no_faults() {
    let mut manifests = Manifests::default();
    for object in good_objects() {
        manifests.insert(object).expect("a known object");
    }
    let observation = manifests.observe(&Options::default());
    assert_eq!(observation.faults, []);
    assert_eq!(observation.snapshot.cloud.len(), 1);
}

proptest! {
    #[test]
    fn conversion_never_panics(value in prop_oneof![any_json(), spoiled()]) {
        convert_all(&value);
    }

    #[test]
    fn storing_never_panics(values in vec(prop_oneof![any_json(), spoiled()], 0..4)) {
        let mut manifests = Manifests::default();
        for value in good_objects() {
            manifests.insert(value).expect("a known object");
        }
        for value in values {
            let _ = manifests.apply(value.clone());
            let _ = manifests.insert(value);
        }
        let _ = manifests.observe(&Options { platform: manifests.platform_hint(), ..Options::default() });
    }

    #[test]
    fn codecs_never_panic(text in prop_oneof![".*", any_json().prop_map(|value| value.to_string())]) {
        let _ = bridge_egress_ips::decode(&text);
        let _ = cloud_private_ip_config::address_of(&text);
        let _ = egress_ip_mark::decode(&text);
        let _ = egress_ip_owner::decode(&text);
        let _ = egress_ipconfig::decode(&text);
        let _ = host_cidrs::decode(&text);
        let _ = host_cidrs::readable_addresses(&text);
        let _ = l3_gateway_config::decode(&text);
        let _ = l3_gateway_config::mode(&text);
        let _ = network_ids::decode(&text);
        let _ = node_id::decode(&text);
        let _ = node_primary_ifaddr::decode(&text);
        let _ = node_subnets::decode(&text);
        let _ = secondary_host_egress_ips::decode(&text);
        let _ = transit_switch_port_ifaddr::decode(&text);
        let _ = Kind::parse(&text);
    }

    #[test]
    fn lists_of_addresses_come_back(addresses in vec(any_address(), 0..5)) {
        let text = secondary_host_egress_ips::encode(&addresses);
        prop_assert_eq!(secondary_host_egress_ips::decode(&text).expect("addresses"), addresses);
    }

    #[test]
    fn host_cidrs_come_back_sorted_as_text(mut prefixes in vec(any_prefix(), 0..5)) {
        let text = host_cidrs::encode(&prefixes);
        prefixes.sort_by_key(IpNet::to_string);
        prop_assert_eq!(host_cidrs::decode(&text).expect("prefixes"), prefixes);
    }

    #[test]
    fn interface_addresses_come_back(ifaddr in any_ifaddr()) {
        prop_assert_eq!(node_primary_ifaddr::decode(&node_primary_ifaddr::encode(ifaddr)).expect("addresses"), ifaddr);
    }

    #[test]
    fn cloud_configs_come_back(interface in ".*", networks in any_ifaddr(), limits in any::<[Option<u32>; 3]>()) {
        let [v4, v6, total] = limits;
        let config = egress_ipconfig::EgressIpConfig { interface, networks, capacity: Capacity { v4, v6, total } };
        prop_assert_eq!(egress_ipconfig::decode(&egress_ipconfig::encode(&config)).expect("a config"), config);
    }

    #[test]
    fn subnets_and_ids_come_back(subnets in btree_map(".*", vec(any_prefix(), 0..3), 0..3), ids in btree_map(".*", any::<u32>(), 0..3)) {
        prop_assert_eq!(node_subnets::decode(&node_subnets::encode(&subnets)).expect("subnets"), subnets);
        prop_assert_eq!(network_ids::decode(&network_ids::encode(&ids)).expect("ids"), BTreeMap::clone(&ids));
    }

    #[test]
    fn gateways_come_back(addresses in vec(any_prefix(), 0..3), next_hops in vec(any_address(), 0..3), node_port: bool, vlan: u32) {
        let gateway = Gateway {
            mode: GatewayMode::Shared, bridge: "breth0".into(), interface: "breth0_a".into(),
            mac: "02:42:ac:12:00:03".into(), addresses, next_hops, node_port, vlan,
        };
        prop_assert_eq!(l3_gateway_config::decode(&l3_gateway_config::encode(&gateway)).expect("a gateway"), gateway);
    }

    #[test]
    fn names_of_cloud_objects_come_back(address in any_address()) {
        prop_assert_eq!(cloud_private_ip_config::address_of(&cloud_private_ip_config::object_name(address)), Some(address));
    }
}
