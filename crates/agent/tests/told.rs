//! From stored objects to a node's policy.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::net::IpAddr;

use egret_agent::{Kind, Objects, Options, needs_pods, policy};
use egret_hostmodel::{Datapath, Others, Policy};
use serde_json::{Value, json};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A node; with annotations as OVN-Kubernetes writes them if it is told a mode.
fn node(name: &str, number: u8, mode: Option<&str>) -> Value {
    let mut annotations = json!({
        "k8s.ovn.org/node-primary-ifaddr": json!({"ipv4": format!("192.0.2.{number}/24")}).to_string(),
        "k8s.ovn.org/host-cidrs":
            json!([format!("192.0.2.{number}/24"), format!("198.51.100.{number}/24")]).to_string(),
        "k8s.ovn.org/node-subnets": json!({"default": [format!("10.244.{number}.0/24")]}).to_string(),
    });
    if let Some(mode) = mode {
        annotations["k8s.ovn.org/l3-gateway-config"] = json!(json!({"default": {"mode": mode}}).to_string());
    }
    json!({
        "metadata": {"name": name, "annotations": annotations},
        "status": {"addresses": [{"type": "InternalIP", "address": format!("192.0.2.{number}")}]},
    })
}

fn service(policy: &str) -> [(Kind, Value); 2] {
    let metadata = json!({"namespace": "shop", "name": "web", "creationTimestamp": "1970-01-01T00:00:07Z"});
    let exit = json!({"metadata": metadata, "spec": {"network": "blue"}, "status": {"host": "n1"}});
    let service = json!({
        "metadata": metadata,
        "spec": {
            "type": "LoadBalancer", "clusterIPs": ["10.96.0.10"], "externalTrafficPolicy": policy,
            "ports": [{"port": 80, "nodePort": 30080}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}},
    });
    [(Kind::EgressService, exit), (Kind::Service, service)]
}

fn slice(name: &str, endpoints: &Value) -> Value {
    let labels = json!({"kubernetes.io/service-name": "web"});
    json!({
        "metadata": {"namespace": "shop", "name": name, "labels": labels}, "addressType": "IPv4", "endpoints": endpoints,
    })
}

fn told(objects: impl IntoIterator<Item = (Kind, Value)>) -> Objects {
    let mut told = Objects::default();
    for (kind, value) in objects {
        told.seen(kind, &value);
    }
    told
}

fn of(objects: &Objects) -> Policy {
    policy(objects, &Options::new("n1"), Others::default())
}

#[test]
fn endpoints_count_ready_or_not_and_host_networked_ones_never() {
    let endpoints = json!([
        {"addresses": ["10.244.1.11"], "nodeName": "n1", "conditions": {"ready": false, "serving": false}},
        {"addresses": ["192.0.2.1"], "nodeName": "n1", "conditions": {"ready": true}},
    ]);
    let more = json!([{"addresses": ["10.244.2.12"], "nodeName": "n2", "conditions": {"ready": true}}]);
    let mut objects = vec![
        (Kind::Node, node("n1", 1, None)),
        (Kind::Node, node("n2", 2, None)),
        (Kind::EndpointSlice, slice("web-a", &endpoints)),
        (Kind::EndpointSlice, slice("web-b", &more)),
    ];
    objects.extend(service("Local"));
    let exit = of(&told(objects)).services.remove(0);
    let endpoints: Vec<_> = exit.endpoints.iter().map(|(ip, node)| (*ip, node.as_ref().unwrap().as_str())).collect();
    assert_eq!(endpoints, [(ip("10.244.1.11"), "n1"), (ip("10.244.2.12"), "n2")]);
    assert_eq!(exit.load_balancer, [ip("203.0.113.10")]);
    assert_eq!(exit.cluster_ips, [ip("10.96.0.10")]);
    assert_eq!(exit.ports[0].node_port, Some(30080));
    assert!(exit.local_policy);
    assert_eq!(exit.created.0, 7);
}

#[test]
fn the_inside_of_the_cluster_is_pods_services_nodes_and_what_options_say() {
    let cidr = json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}});
    let objects = told([(Kind::Node, node("n1", 1, None)), (Kind::ServiceCidr, cidr)]);
    let mut options = Options::new("n1");
    options.cluster.insert("10.0.0.0/12".parse().unwrap());
    let policy = policy(&objects, &options, Others::default());
    let texts = |nets: &BTreeSet<ipnet::IpNet>| nets.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let all = ["10.0.0.0/12", "10.96.0.0/16", "10.244.1.0/24", "192.0.2.1/32", "198.51.100.1/32"];
    assert_eq!(texts(&policy.cluster), all.map(str::to_owned).into());
    let inner = ["10.0.0.0/12", "10.96.0.0/16", "10.244.1.0/24"];
    assert_eq!(
        texts(&policy.inner),
        inner.map(str::to_owned).into(),
        "nodes' own addresses come by other networks, too"
    );
}

#[test]
fn ovn_kubernetes_is_told_by_the_gateway_mode_of_the_node_unless_an_option_says_otherwise() {
    for (mode, expected) in [(None, Datapath::Direct), (Some("local"), Datapath::Ovn), (Some("shared"), Datapath::Ovn)]
    {
        let objects = told([(Kind::Node, node("n1", 1, mode))]);
        assert_eq!(of(&objects).datapath, expected, "{mode:?}");
        let mut options = Options::new("n1");
        options.datapath = Some(Datapath::Direct);
        assert_eq!(policy(&objects, &options, Others::default()).datapath, Datapath::Direct);
    }
}

fn egress_ip(address: &str) -> Value {
    json!({
        "metadata": {"name": "eip", "creationTimestamp": "1970-01-01T00:00:09Z"},
        "spec": {
            "egressIPs": [address], "namespaceSelector": {"matchLabels": {"team": "a"}},
            "podSelector": {"matchLabels": {"app": "x"}},
        },
        "status": {"items": [{"egressIP": address, "node": "n1"}]},
    })
}

fn pod(namespace: &str, name: &str, node: &str, app: &str, address: &str) -> Value {
    json!({
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": app}}, "spec": {"nodeName": node},
        "status": {"phase": "Running", "podIPs": [{"ip": address}]},
    })
}

fn with_pods(mode: Option<&str>) -> Objects {
    let namespace = |name: &str, team: &str| json!({"metadata": {"name": name, "labels": {"team": team}}});
    told([
        (Kind::Node, node("n1", 1, mode)),
        (Kind::Node, node("n2", 2, mode)),
        (Kind::EgressIp, egress_ip("198.51.100.50")),
        (Kind::Namespace, namespace("a", "a")),
        (Kind::Namespace, namespace("b", "b")),
        (Kind::Pod, pod("a", "mine", "n1", "x", "10.244.1.11")),
        (Kind::Pod, pod("a", "other-app", "n1", "y", "10.244.1.12")),
        (Kind::Pod, pod("a", "remote", "n2", "x", "10.244.2.11")),
        (Kind::Pod, pod("b", "other-team", "n1", "x", "10.244.1.13")),
    ])
}

#[test]
fn an_egress_ip_on_a_secondary_network_is_for_the_selected_pods_whose_packets_come_here() {
    let pods = |mode| {
        let exit = of(&with_pods(mode)).addresses.remove(0);
        assert_eq!(exit.ip, ip("198.51.100.50"));
        exit.pods.into_values().collect::<Vec<_>>()
    };
    assert_eq!(pods(None), ["a/mine"]);
    assert_eq!(pods(Some("local")), ["a/mine", "a/remote"]);
}

#[test]
fn an_egress_ip_on_the_primary_network_is_nobodys_business() {
    let mut objects = with_pods(None);
    assert!(needs_pods(&objects));
    objects.seen(Kind::EgressIp, &egress_ip("192.0.2.50"));
    assert!(!needs_pods(&objects));
    assert_eq!(of(&objects).addresses, []);
}

#[test]
fn of_an_address_that_another_node_has_only_the_pods_here_matter() {
    let other = policy(&with_pods(None), &Options::new("n2"), Others::default());
    let exit = &other.addresses[0];
    assert_eq!(
        (exit.node.as_str(), exit.pods.values().cloned().collect::<Vec<_>>()),
        ("n1", vec!["a/remote".to_owned()])
    );
}

#[test]
fn what_is_gone_or_cannot_be_read_is_not_there() {
    let mut objects = with_pods(None);
    objects.seen(Kind::Pod, &json!({"metadata": {"namespace": "a", "name": "mine"}, "status": {"phase": "Succeeded"}}));
    assert_eq!(of(&objects).addresses[0].pods.len(), 0, "a pod that has ended");
    objects.gone(Kind::EgressIp, &egress_ip("198.51.100.50"));
    assert_eq!(of(&objects).addresses, []);
    objects.listed(Kind::Node, &[]);
    assert!(of(&objects).cluster.is_empty());
    assert!(objects.is_listed(Kind::Node) && !objects.is_listed(Kind::Pod));
    objects.forget(Kind::Node);
    assert!(!objects.is_listed(Kind::Node));
}
