//! With the stand-in for OVN, which leads pods to the node that lets them out.
//!
//! Nobody tells an agent when OVN has changed where it leads pods, and nobody tells OVN when an agent is ready. A packet
//! that OVN leads to a node that has nothing for it, not yet or not any more, leaves there like any other of that node: a
//! limit that `docs/node.md` tells of, for no side can close it alone. So the pods that such a moment is about are silent
//! from before the change until OVN leads them and the agent there says that it serves them. All others send all the
//! time, those of a dead node's service and address included: OVN leads them into nothing, and to the next node once that
//! serves them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Instant;

use egret_netlab::{Family, FlowKind, Network, Outcome, Transport, difference, test_name, until};
use egret_testkit::cluster::{Cluster, alone};
use egret_testkit::server::hand;
use serde_json::{Value, json};

use crate::objects::{egress_ip, endpoints, exit, label, service};
use crate::ovnkube::cluster_ips;
use crate::traffic::{self, Sender, Wires};
use crate::whole::{NODES, SOON, Whole, whole};

const WEB: [&str; 3] = ["web-1", "web-2", "web-3"];
const TEAM: [&str; 3] = ["team-1", "team-2", "team-3"];
const FOREIGN: [&str; 3] = ["foreign-1", "foreign-2", "foreign-3"];
/// What the agents call the two objects.
const SERVICE: &str = "EgressService default/web";
const ADDRESS: &str = "EgressIP team";

#[test]
fn what_ovn_leads_to_another_node_leaves_from_there_with_the_same_source() {
    alone(test_name!(), &[], async || {
        let mut story = Story::begin().await?;
        story.a_service_leaves_from_its_host().await?;
        story.it_leaves_from_another_when_its_host_loses_the_label().await?;
        story.an_address_is_held_and_moves_with_a_label().await?;
        story.both_leave_a_node_that_dies().await?;
        story.nothing_is_left().await
    });
}

/// The cluster, and what is sent in it.
struct Story {
    whole: Whole,
    /// Those that Kubernetes reaches.
    nodes: Vec<&'static str>,
    /// The Service, as it is stored.
    service: Value,
    exit: Value,
    address: Value,
    wires: Wires,
    senders: BTreeMap<&'static str, Sender>,
    /// What the kernels of the nodes held before there was anything to do for the agents.
    before: BTreeMap<&'static str, String>,
}

impl Story {
    async fn begin() -> Result<Self, Box<dyn std::error::Error>> {
        // The agents are not told that there is OVN.
        let whole = whole(Cluster::builder().ovn(), &[]).await;
        let cluster = &whole.cluster;
        for node in NODES {
            // What the second network's DHCP tells, after the primary one's router.
            let routers = ["192.168.60.200 dev eth1 metric 500", "fd00:60::200 dev eth1 metric 2048"];
            let lines = routers.map(|router| format!("route add default via {router}"));
            cluster.lab().node(node).ip(lines.each_ref().map(String::as_str))?;
        }
        for (app, pods) in [("web", WEB), ("team", TEAM), ("foreign", FOREIGN)] {
            for (node, pod) in NODES.into_iter().zip(pods) {
                cluster.add_pod(node, pod, &[("app", app)]).await?;
            }
        }
        let external: Vec<IpAddr> = vec!["192.168.70.10".parse()?, "fd00:70::10".parse()?];
        let service = hand::create(&cluster.client(), &service()).await;
        cluster.balance("default", "web", &external, "n1").await?;
        whole.program(&service, &external, &WEB);
        endpoints(cluster, 6).await;
        let before = NODES.map(|node| {
            whole.shows(node, |view| view["datapath"] == "ovn" && view["reports"] == json!([]));
            (node, cluster.lab().node(node).dump().unwrap())
        });
        let spec = json!({
            "sourceIPBy": "LoadBalancerIP", "network": "1234", "nodeSelector": {"matchLabels": {"exit": "yes"}},
        });
        let wires = Wires::watch(cluster.lab(), &external, "192.168.60.50".parse()?);
        let mut story = Self {
            exit: exit(&spec),
            address: egress_ip("192.168.60.50"),
            senders: BTreeMap::new(),
            before: before.into(),
            nodes: NODES.to_vec(),
            whole,
            service,
            wires,
        };
        for (node, pod) in NODES.into_iter().zip(FOREIGN) {
            let own = Family::BOTH.map(|family| story.whole.cluster.lab().node_address(node, Network::Red, family));
            // One connection is to last through everything.
            story.sends(pod, [FlowKind::Udp, FlowKind::Tcp], "ext", &own);
        }
        Ok(story)
    }

    async fn a_service_leaves_from_its_host(&mut self) -> Outcome {
        label(&self.whole.cluster, "n1", "exit", Some("yes")).await;
        hand::create(&self.whole.cluster.client(), &self.exit).await;
        self.hosted("n1", &WEB).await?;
        for node in ["n2", "n3"] {
            self.is_as_before(node);
        }
        // Another node that would do changes nothing.
        label(&self.whole.cluster, "n2", "exit", Some("yes")).await;
        self.all_is_right();
        Ok(())
    }

    async fn it_leaves_from_another_when_its_host_loses_the_label(&mut self) -> Outcome {
        assert_eq!(self.whole.status(&self.exit).await["host"], "n1");
        self.are_silent(&WEB);
        label(&self.whole.cluster, "n1", "exit", None).await;
        self.hosted("n2", &WEB).await?;
        for node in ["n1", "n3"] {
            self.is_as_before(node);
        }
        self.all_is_right();
        Ok(())
    }

    async fn an_address_is_held_and_moves_with_a_label(&mut self) -> Outcome {
        label(&self.whole.cluster, "n3", "pool", Some("egress")).await;
        hand::create(&self.whole.cluster.client(), &self.address).await;
        self.whole.holder(&self.address, "/items/0/node", &["n3"]).await;
        // OVN may be there before the agent.
        self.whole.lead(&TEAM, "n3");
        self.holds("n3");
        self.address_is_used_by(&TEAM);
        label(&self.whole.cluster, "n2", "pool", Some("egress")).await;
        self.all_is_right();

        // The pod on the node that loses the address is kept in there until OVN leads it to the next one.
        self.are_silent(&TEAM[..2]);
        label(&self.whole.cluster, "n3", "pool", None).await;
        self.whole.holder(&self.address, "/items/0/node", &["n2"]).await;
        self.holds("n2");
        let since = Instant::now();
        self.whole.lead(&TEAM, "n2");
        self.address_is_used_by(&TEAM[..2]);
        self.all_is_right();
        assert!(!self.whole.cluster.lab().node("n3").run(["ip", "-4", "address"])?.contains("192.168.60.50"));
        let elsewhere = self.wires.elsewhere("n2", &[self.wires.team], since);
        assert!(elsewhere.is_empty(), "{elsewhere:?}\n{}", self.whole.said());
        Ok(())
    }

    async fn both_leave_a_node_that_dies(&mut self) -> Outcome {
        label(&self.whole.cluster, "n1", "exit", Some("yes")).await;
        label(&self.whole.cluster, "n3", "pool", Some("egress")).await;
        self.are_silent(&["web-2", "team-2", "foreign-2"]);
        self.whole.cluster.cut("n2")?;
        // What is there stays there, for its agent is not told either.
        self.nodes.retain(|node| *node != "n2");
        let left = ["web-1", "web-3"];
        self.whole.program(&self.service, &self.wires.web, &left);
        self.whole.holder(&self.address, "/items/0/node", &["n3"]).await;
        self.holds("n3");
        self.whole.lead(&["team-1", "team-3"], "n3");
        self.hosted("n1", &left).await?;
        self.all_is_right();
        Ok(())
    }

    /// What was given goes, and what the pods send then is nobody's business.
    async fn nothing_is_left(mut self) -> Outcome {
        let all: Vec<&str> = self.senders.keys().copied().collect();
        self.are_silent(&all);
        self.all_is_right();
        println!("{} packets seen on both networks", self.wires.packets());
        let left = ["web-1", "web-3", "team-1", "team-3"];
        for object in [&self.exit, &self.address] {
            hand::delete(&self.whole.cluster.client(), object).await;
        }
        self.whole.release(&left);
        for node in &self.nodes {
            self.is_as_before(node);
        }
        let lab = self.whole.cluster.lab();
        for pod in left {
            for family in Family::BOTH {
                let node = lab.node_of(pod).unwrap();
                self.whole.leaves(pod, "ext", lab.node_address(&node, Network::Red, family));
            }
        }
        Ok(())
    }

    /// The service comes to that node, and OVN and the load balancer follow: its pods leave from there, and it is answered.
    async fn hosted(&mut self, node: &'static str, pods: &[&'static str]) -> Outcome {
        self.whole.holder(&self.exit, "/host", &[node]).await;
        if self.senders.contains_key(pods[0]) {
            // Those that send wait for the agent.
            self.whole.serves(node, SERVICE, &self.addresses(&WEB));
        }
        self.whole.lead(pods, node);
        self.whole.cluster.balance("default", "web", &self.wires.web, node).await?;
        self.whole.serves(node, SERVICE, &self.addresses(&WEB));
        self.rules_are_on(node);
        let since = Instant::now();
        for pod in pods {
            if !self.senders.contains_key(pod) {
                let web = self.wires.web.clone();
                self.sends(pod, [FlowKind::Udp, FlowKind::TcpEach], "blue", &web);
            }
        }
        self.is_answered_by(pods);
        traffic::goes_on(pods.iter().map(|pod| &self.senders[pod]), || self.whole.said());
        let elsewhere = self.wires.elsewhere(node, &self.wires.web, since);
        assert!(elsewhere.is_empty(), "{elsewhere:?}\n{}", self.whole.said());
        Ok(())
    }

    /// Connections from beyond the second network reach each of the pods by the service's addresses, and are answered from
    /// those.
    fn is_answered_by(&self, pods: &[&str]) {
        let outside = self.whole.cluster.lab().outside(Network::Blue);
        for address in &self.wires.web {
            let mut servers = BTreeSet::new();
            let all = until(SOON, || {
                let reply = outside.ask_from(Family::of(*address).destination(), Transport::Tcp, *address, 80);
                servers.extend(reply.server().map(str::to_owned));
                pods.iter().all(|pod| servers.contains(*pod))
            });
            assert!(all && servers.len() == pods.len(), "{address}: {servers:?}\n{}", self.whole.said());
        }
    }

    /// The steering of the service is on this node, and none of it on another.
    fn rules_are_on(&self, node: &str) {
        let mut sources = self.addresses(&WEB);
        sources.extend(cluster_ips(&self.service));
        let mut wanted: Vec<String> =
            sources.iter().map(|source| format!("5000: from {source} lookup 1234 proto 68")).collect();
        wanted.sort();
        for name in &self.nodes {
            let wanted = if *name == node { wanted.as_slice() } else { &[] };
            let found = || {
                let host = self.whole.cluster.lab().node(name);
                let all = ["-4", "-6"].map(|family| host.run(["ip", family, "rule"]).unwrap()).concat();
                let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
                let mut found: Vec<String> =
                    all.lines().map(words).filter(|rule| rule.contains("lookup 1234")).collect();
                found.sort();
                found
            };
            assert!(until(SOON, || found() == wanted), "on {name}: {:?}\n{}", found(), self.whole.said());
        }
    }

    fn holds(&self, node: &str) {
        let v4 = self.addresses(&TEAM).into_iter().filter(IpAddr::is_ipv4).collect::<Vec<_>>();
        self.whole.serves(node, ADDRESS, &v4);
    }

    fn address_is_used_by(&mut self, pods: &[&'static str]) {
        for pod in pods {
            self.sends(pod, [FlowKind::Udp, FlowKind::TcpEach], "blue", &[self.wires.team]);
        }
    }

    fn addresses(&self, pods: &[&str]) -> Vec<IpAddr> {
        pods.iter().flat_map(|pod| self.whole.cluster.lab().pod(pod).addresses().to_vec()).collect()
    }

    fn sends(&mut self, pod: &'static str, kinds: [FlowKind; 2], server: &'static str, seen: &[IpAddr]) {
        let sender = Sender::start(self.whole.cluster.lab(), pod, kinds, server, seen);
        self.senders.insert(pod, sender);
    }

    fn are_silent(&mut self, pods: &[&'static str]) {
        let senders = pods.iter().map(|pod| self.senders.remove(pod).unwrap());
        traffic::end(senders.collect(), || self.whole.said());
    }

    /// Whoever sends is answered, and nothing wrong has been on either network.
    fn all_is_right(&self) {
        traffic::goes_on(self.senders.values(), || self.whole.said());
        let wrong = self.wires.wrong(self.whole.cluster.lab());
        assert!(wrong.is_empty(), "{wrong:?}\n{}", self.whole.said());
    }

    /// Nothing of ours is on a node.
    fn is_as_before(&self, node: &str) {
        let now = || difference(&self.before[node], &self.whole.cluster.lab().node(node).dump().unwrap());
        assert!(until(SOON, || now().is_empty()), "on {node} is left:\n{}\n{}", now(), self.whole.said());
    }
}
