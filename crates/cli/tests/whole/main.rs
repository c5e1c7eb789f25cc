//! Everything together: the shipped binaries under their own rights on a real control plane, with kube-proxy and CNI
//! plugins, and what is seen on the wire while services, addresses and nodes come and go.

// A test has nowhere else to say what it saw.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use egret_netlab::{Family, Network, PORT, Packet, Process, Transport, test_name, until};
use egret_testkit::cluster::{Cluster, alone};
use egret_testkit::server::{Part, hand};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

/// Longer than anything takes on a busy machine.
const SOON: Duration = Duration::from_mins(1);
const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// What the manifests grant.
const RIGHTS: [&str; 2] =
    [include_str!("../../../../deploy/base/rbac.yaml"), include_str!("../../../../deploy/base/agent-rbac.yaml")];

struct Whole {
    cluster: Cluster,
    controllers: Vec<Process>,
    agents: BTreeMap<&'static str, Process>,
    /// Of the controllers' and of the agents' accounts; each is written once, for a process may be reading it.
    kubeconfigs: [PathBuf; 2],
}

/// A cluster of three nodes on two networks, with Egret on it.
async fn whole() -> Whole {
    let cluster = Cluster::builder().nodes(3).blue(&[1, 2, 3]).start().await.unwrap();
    let client = cluster.client();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "egret-system"}});
    hand::create(&client, &namespace).await;
    let definitions = Command::new(env!("CARGO_BIN_EXE_egret")).args(["crds"]).output().unwrap();
    let definitions = String::from_utf8(definitions.stdout).unwrap();
    for text in RIGHTS.into_iter().chain([definitions.as_str()]) {
        for object in serde_saphyr::from_multiple::<Value>(text).unwrap() {
            hand::create(&client, &object).await;
        }
    }
    for name in NODES {
        table(&cluster, name);
    }
    let account = |name| cluster.kubeconfig(Some(&format!("system:serviceaccount:egret-system:{name}"))).unwrap();
    let kubeconfigs = ["egret-controller", "egret-agent"].map(account);
    let mut whole = Whole { cluster, controllers: Vec::new(), agents: BTreeMap::new(), kubeconfigs };
    whole.controller(9420);
    whole.controller(9421);
    for name in NODES {
        whole.agent(name);
    }
    whole
}

/// The table of the second network, which an administrator has made.
fn table(cluster: &Cluster, name: &str) {
    for line in [
        "route add 192.168.60.0/24 dev eth1 table 1234",
        "route add default via 192.168.60.200 table 1234",
        "-6 route add fd00:60::/64 dev eth1 table 1234",
        "-6 route add default via fd00:60::200 table 1234",
    ] {
        cluster.lab().node(name).run(std::iter::once("ip").chain(line.split(' ')).collect::<Vec<_>>()).unwrap();
    }
}

impl Whole {
    /// A controller, which runs on a node's network as a pod with the host's would.
    fn controller(&mut self, port: u16) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_egret"));
        command.arg("controller").arg("--kubeconfig").arg(&self.kubeconfigs[0]);
        // There is nobody at OVN-Kubernetes' management addresses here; readiness decides.
        command.args(["--probe-timeout", "0", "--pod-name", &format!("egret-controller-{port}")]);
        command.args(["--admin-address", &format!(":{port}"), "--lease-duration", "5s", "--renew-deadline", "3s"]);
        command.args(["--retry-period", "500ms"]);
        self.controllers.push(self.cluster.lab().node("n1").spawn(&command).unwrap());
    }

    fn agent(&mut self, node: &'static str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_egret"));
        command.arg("agent").arg("--kubeconfig").arg(&self.kubeconfigs[1]);
        command.args(["--node", node, "--state-folder", &format!("/run/egret-{node}")]);
        // The lab's nodes carry OVN-Kubernetes' annotations, but nobody reroutes.
        command.args(["--datapath", "direct"]);
        let agent = self.cluster.lab().node(node).spawn(&command).unwrap();
        self.agents.insert(node, agent);
    }

    fn said(&self) -> String {
        let controllers = self.controllers.iter().map(Process::said);
        let agents = self.agents.iter().map(|(node, agent)| format!("agent of {node}:\n{}", agent.said()));
        controllers.chain(agents).collect::<Vec<_>>().join("\n")
    }

    /// Waits until `pod` is answered by `server` from beyond its network, and it sees `seen`.
    fn leaves(&self, pod: &str, server: &str, seen: IpAddr) {
        self.leaves_to(Family::of(seen).destination(), pod, server, seen);
    }

    /// Waits until `pod` is answered from the second network, where its address is. That has no router in the nodes' main
    /// table, so nobody beyond it is reached from there.
    fn leaves_as(&self, pod: &str, seen: IpAddr) {
        self.leaves_to(self.cluster.lab().outside(Network::Blue).address(Family::of(seen)), pod, "blue", seen);
    }

    fn leaves_to(&self, to: IpAddr, pod: &str, server: &str, seen: IpAddr) {
        let ask = || self.cluster.lab().pod(pod).ask(Transport::Tcp, to, PORT, egret_netlab::PATIENCE);
        let wanted = format!("{server} saw {seen}");
        assert!(until(SOON, || ask() == wanted.as_str()), "{pod}: {}, not {wanted}\n{}", ask(), self.said());
    }

    async fn status(&self, object: &Value) -> Value {
        hand::get(&self.cluster.client(), object).await.unwrap()["status"].clone()
    }

    /// Waits until the address is on one of these nodes, and says on which.
    async fn holder(&self, object: &Value, among: &[&'static str]) -> &'static str {
        let began = Instant::now();
        loop {
            let status = self.status(object).await;
            let holder = status.pointer("/items/0/node").and_then(Value::as_str);
            if let Some(node) = among.iter().find(|node| holder == Some(**node)) {
                return node;
            }
            assert!(began.elapsed() < SOON, "{status}\n{}", self.said());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Waits until Kubernetes says that the service has so many addresses behind it.
async fn endpoints(cluster: &Cluster, count: usize) {
    let slices: Api<EndpointSlice> = Api::default_namespaced(cluster.client());
    let wanted = ListParams::default().labels("kubernetes.io/service-name=web");
    let began = Instant::now();
    while slices.list(&wanted).await.unwrap().iter().flat_map(|slice| &slice.endpoints).count() != count {
        let log = std::fs::read_to_string(cluster.log(Part::ControllerManager)).unwrap_or_default();
        assert!(began.elapsed() < SOON, "no endpoints; the controller manager says\n{log}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn service(network: &str) -> [Value; 2] {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "type": "LoadBalancer", "selector": {"app": "web"}, "ipFamilyPolicy": "RequireDualStack",
            "ports": [{"port": 80, "targetPort": PORT, "protocol": "TCP"}],
        },
    });
    let exit = json!({
        "apiVersion": "k8s.ovn.org/v1", "kind": "EgressService", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"sourceIPBy": "Network", "network": network},
    });
    [service, exit]
}

fn egress_ip(address: &str) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1", "kind": "EgressIP", "metadata": {"name": "team"},
        "spec": {
            "egressIPs": [address],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            "podSelector": {"matchLabels": {"app": "team"}},
            "egressNodeSelector": {"matchLabels": {"pool": "egress"}},
        },
    })
}

#[test]
fn the_shipped_binaries_lead_a_service_and_an_address_out_through_a_cluster_that_changes() {
    alone(test_name!(), &[], async || {
        let mut whole = whole().await;
        let client = whole.cluster.client();
        let wire = whole.cluster.lab().wire(Network::Blue)?;
        for (node, pod) in [("n1", "web-1"), ("n2", "web-2"), ("n3", "web-3")] {
            whole.cluster.add_pod(node, pod, &[("app", "web")]).await?;
        }
        for (node, pod) in [("n1", "team-1"), ("n2", "team-2"), ("n3", "team-3")] {
            whole.cluster.add_pod(node, pod, &[("app", "team")]).await?;
        }
        whole.cluster.add_pod("n1", "foreign", &[]).await?;
        let node = |name: &str, network, family| whole.cluster.lab().node_address(name, network, family);

        // A service with its own network: every endpoint leaves by it, from its own node.
        let [web, exit] = service("1234");
        hand::create(&client, &web).await;
        let external: Vec<IpAddr> = vec!["192.168.70.10".parse()?, "fd00:70::10".parse()?];
        whole.cluster.balance("default", "web", &external, "n1").await?;
        endpoints(&whole.cluster, 6).await;
        hand::create(&client, &exit).await;
        for (name, pod) in [("n1", "web-1"), ("n2", "web-2"), ("n3", "web-3")] {
            for family in Family::BOTH {
                whole.leaves(pod, "blue", node(name, Network::Blue, family));
            }
        }
        assert_eq!(whole.status(&exit).await["host"], "ALL");
        // And it is answered over that network, wherever its endpoint is.
        let outside = whole.cluster.lab().outside(Network::Blue);
        for address in &external {
            let from = Family::of(*address).destination();
            let asked = || outside.ask_from(from, Transport::Tcp, *address, 80);
            assert!(until(SOON, || asked().is_answer()), "{}\n{}", asked(), whole.said());
        }
        for family in Family::BOTH {
            whole.leaves("foreign", "ext", node("n1", Network::Red, family));
        }

        // An address on the second network, in a pool of two nodes.
        let eip: IpAddr = "192.168.60.50".parse()?;
        let label = |pool: Value| json!({"metadata": {"labels": {"pool": pool}}});
        let object = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        for name in ["n2", "n3"] {
            hand::merge(&client, &object(name), label(json!("egress"))).await;
        }
        let address = egress_ip("192.168.60.50");
        hand::create(&client, &address).await;
        let first = whole.holder(&address, &["n2", "n3"]).await;
        let team = |name: &str| name.replace('n', "team-");
        whole.leaves_as(&team(first), eip);

        // Its node loses the label: the address moves within the pool.
        hand::merge(&client, &object(first), label(Value::Null)).await;
        let second = whole.holder(&address, if first == "n2" { &["n3"] } else { &["n2"] }).await;
        whole.leaves_as(&team(second), eip);
        assert_eq!(whole.cluster.lab().node(first).run(["ip", "-4", "address"])?.matches("192.168.60.50").count(), 0);

        // That node dies: the address comes back to the first, which is labelled again.
        hand::merge(&client, &object(first), label(json!("egress"))).await;
        whole.cluster.cut(second)?;
        let third = whole.holder(&address, &[first]).await;
        whole.leaves_as(&team(third), eip);

        // A leader that is killed is replaced, and what it has done stays.
        drop(whole.controllers.remove(0));
        whole.cluster.add_pod("n1", "web-4", &[("app", "web")]).await?;
        whole.leaves("web-4", "blue", node("n1", Network::Blue, Family::V4));

        // Nothing but what was allowed has ever been on the second network.
        let mut allowed: Vec<IpAddr> = external.clone();
        allowed.push(eip);
        for family in Family::BOTH {
            allowed.push(family.destination());
            allowed.push(outside.address(family));
            allowed.extend(NODES.map(|name| node(name, Network::Blue, family)));
        }
        let link_local = |ip: IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local() || ip.is_unspecified());
        let wrong = wire.wrong(|packet: &Packet| allowed.contains(&packet.source) || link_local(packet.source));
        assert!(wrong.is_empty(), "{wrong:?}\n{}", whole.said());
        println!("{} packets seen on the second network", wire.packets());
        Ok(())
    });
}
