//! A small node, and random policies for it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use egret_core::{Host, ServiceKey, SourceIpBy, Timestamp};
use egret_hostmodel::{
    AddressExit, Datapath, Hop, Link, LinkAddress, MAIN, Others, Policy, Port, Route, ServiceExit, Settings,
    Surroundings, Transport,
};
use proptest::prelude::*;

pub(crate) const OUTSIDE: [&str; 2] = ["172.31.0.9", "fd00:31::9"];
pub(crate) const INSIDE: [&str; 2] = ["10.244.2.11", "fd00:10:244:2::11"];
pub(crate) const PODS: [&str; 6] =
    ["10.244.1.11", "10.244.1.12", "10.244.1.13", "10.244.2.21", "fd00:10:244:1::11", "fd00:10:244:1::12"];
const LOAD_BALANCERS: [&str; 4] = ["192.168.70.10", "192.168.70.11", "fd00:70::10", "fd00:70::11"];
const NETWORKS: [Option<&str>; 5] = [None, Some("1234"), Some("eth1"), Some("nowhere"), Some("eth2")];

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The address of the outside in the family of `source`.
pub(crate) fn of_family(two: [&str; 2], source: IpAddr) -> IpAddr {
    ip(two[usize::from(source.is_ipv6())])
}

/// A node with `eth0` to the default network, `eth1` (which table 1234 uses too) and `eth2` to two others.
pub(crate) fn node() -> Surroundings {
    let link = |index: u32, name: &str| Link {
        index,
        name: name.to_owned(),
        up: true,
        master: None,
        vrf_table: None,
        addresses: [format!("192.168.{index}0.11/24"), format!("fd00:{index}0::11/64")]
            .map(|net| LinkAddress { net: net.parse().unwrap(), label: None, second_rank: false, protocol: 0 })
            .into(),
    };
    let route = |table, destination: &str, link: &str, gateway: Option<&str>, metric| Route {
        table,
        destination: destination.parse().unwrap(),
        metric,
        hops: vec![Hop { link: link.to_owned(), gateway: gateway.map(ip), onlink: false, weight: 1 }],
        protocol: 3,
    };
    let mut routes = vec![
        route(MAIN, "0.0.0.0/0", "eth0", Some("192.168.50.200"), 0),
        route(MAIN, "::/0", "eth0", Some("fd00:50::200"), 1024),
        route(MAIN, "0.0.0.0/0", "eth2", Some("192.168.70.200"), 100),
        route(1234, "0.0.0.0/0", "eth1", Some("192.168.60.200"), 0),
        route(1234, "::/0", "eth1", Some("fd00:60::200"), 1024),
    ];
    for index in [5, 6, 7] {
        routes.push(route(MAIN, &format!("192.168.{index}0.0/24"), &format!("eth{}", index - 5), None, 0));
        routes.push(route(MAIN, &format!("fd00:{index}0::/64"), &format!("eth{}", index - 5), None, 256));
    }
    let sysctls = [("all", "1"), ("eth0", "1"), ("eth1", "1"), ("eth2", "0")];
    Surroundings {
        links: vec![link(5, "eth0"), link(6, "eth1"), link(7, "eth2")],
        routes,
        table_names: BTreeMap::new(),
        sysctls: sysctls.map(|(link, value)| (format!("net/ipv4/conf/{link}/rp_filter"), value.to_owned())).into(),
    }
}

fn other_marks() -> Settings {
    Settings { mark_flag: 0x2000, ..Settings::default() }
}

/// A policy with nothing in it.
pub(crate) fn nothing(datapath: Datapath) -> Policy {
    let nets = |nets: &[&str]| nets.iter().map(|net| net.parse().unwrap()).collect::<BTreeSet<_>>();
    Policy {
        node: "n1".into(),
        settings: Settings::default(),
        datapath,
        others: Others::default(),
        cluster: nets(&["10.244.0.0/16", "fd00:10:244::/48", "192.168.50.11/32", "192.168.50.12/32", "10.96.0.0/16"]),
        inner: nets(&["10.244.0.0/16", "fd00:10:244::/48"]),
        local_policy_sources: [ip("169.254.169.3"), ip("fd69::3")].into(),
        services: Vec::new(),
        addresses: Vec::new(),
        contested: BTreeSet::new(),
        unconfirmed: BTreeSet::new(),
    }
}

/// A service with these endpoints, those of `10.244.1.0/24` and its IPv6 like on this node.
pub(crate) fn service(name: &str, endpoints: &[&str]) -> ServiceExit {
    let node = |pod: &str| Some(if pod.contains("244.1.") || pod.contains("244:1:") { "n1" } else { "n2" }.into());
    ServiceExit {
        key: ServiceKey::new("default", name),
        created: Timestamp(1),
        source_ip_by: SourceIpBy::LoadBalancerIp,
        network: Some("1234".to_owned()),
        host: Host::Node("n1".into()),
        load_balancer: vec![ip(LOAD_BALANCERS[0]), ip(LOAD_BALANCERS[2])],
        cluster_ips: vec![ip("10.96.0.10"), ip("fd00:10:96::10")],
        ports: vec![Port { transport: Transport::Tcp, port: 80, node_port: Some(30080) }],
        local_policy: false,
        endpoints: endpoints.iter().map(|pod| (ip(pod), node(pod))).collect(),
    }
}

pub(crate) fn any_service(name: &'static str) -> impl Strategy<Value = ServiceExit> {
    let endpoints = proptest::sample::subsequence(PODS.to_vec(), 0..=PODS.len());
    let addresses = proptest::sample::subsequence(LOAD_BALANCERS.to_vec(), 0..=LOAD_BALANCERS.len());
    let hosts = prop_oneof![
        4 => Just(Host::Node("n1".into())),
        1 => Just(Host::Node("n2".into())),
        1 => Just(Host::None),
        1 => Just(Host::All),
    ];
    let network = proptest::sample::select(NETWORKS.to_vec());
    (endpoints, addresses, hosts, network, any::<[bool; 2]>(), 0..3_i64).prop_map(
        move |(endpoints, addresses, host, network, [by_network, local_policy], created)| ServiceExit {
            created: Timestamp(created),
            source_ip_by: if by_network { SourceIpBy::Network } else { SourceIpBy::LoadBalancerIp },
            network: network.map(str::to_owned),
            host,
            load_balancer: addresses.into_iter().map(ip).collect(),
            local_policy,
            // Two services have no ClusterIP in common.
            cluster_ips: vec![ip(if name == "a" { "10.96.0.10" } else { "10.96.0.11" })],
            ports: vec![Port {
                transport: Transport::Tcp,
                port: if name == "a" { 80 } else { 81 },
                node_port: Some(if name == "a" { 30080 } else { 30081 }),
            }],
            ..service(name, &endpoints)
        },
    )
}

fn any_address() -> impl Strategy<Value = AddressExit> {
    let pods = proptest::sample::subsequence(PODS.to_vec(), 0..=PODS.len());
    let address = prop_oneof![Just("192.168.60.50"), Just("192.168.70.50"), Just("fd00:60::50"), Just("203.0.113.9")];
    let node = prop_oneof![4 => Just("n1"), 1 => Just("n2")];
    (pods, address, node).prop_map(|(pods, address, node)| AddressExit {
        name: "eip".into(),
        created: Timestamp(0),
        ip: ip(address),
        node: node.into(),
        pods: pods.into_iter().map(|pod| (ip(pod), format!("ns/{pod}"))).collect(),
    })
}

/// Any policy of the small node.
pub(crate) fn any_policy(datapath: Datapath) -> impl Strategy<Value = Policy> {
    let some = |name| proptest::option::weighted(0.8, any_service(name));
    let addresses = proptest::collection::vec(any_address(), 0..2);
    // Now and then by other marks.
    let settings = prop_oneof![9 => Just(Settings::default()), 1 => Just(other_marks())];
    (some("a"), some("b"), addresses, settings).prop_map(move |(a, b, addresses, settings)| Policy {
        services: a.into_iter().chain(b).collect(),
        addresses,
        settings,
        ..nothing(datapath)
    })
}
