//! With kube-proxy and CNI plugins, where every pod's packets leave from its own node.

use std::net::IpAddr;

use egret_netlab::{Family, Network, Packet, Transport, test_name, until};
use egret_testkit::cluster::{Cluster, alone};
use egret_testkit::server::hand;
use serde_json::json;

use crate::objects::{egress_ip, endpoints, exit, label, service};
use crate::whole::{NODES, SOON, whole};

/// Where the status has the node of an EgressIP.
pub(crate) const HOLDER: &str = "/items/0/node";

#[test]
fn the_shipped_binaries_lead_a_service_and_an_address_out_through_a_cluster_that_changes() {
    alone(test_name!(), &[], async || {
        // The lab's nodes carry OVN-Kubernetes' annotations, but nobody reroutes.
        let mut whole = whole(Cluster::builder(), &["--datapath", "direct"]).await;
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
        let (web, exit) = (service(), exit(&json!({"sourceIPBy": "Network", "network": "1234"})));
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
        for name in ["n2", "n3"] {
            label(&whole.cluster, name, "pool", Some("egress")).await;
        }
        let address = egress_ip("192.168.60.50");
        hand::create(&client, &address).await;
        let first = whole.holder(&address, HOLDER, &["n2", "n3"]).await;
        let team = |name: &str| name.replace('n', "team-");
        whole.leaves_as(&team(first), eip);

        // Its node loses the label: the address moves within the pool.
        label(&whole.cluster, first, "pool", None).await;
        let second = whole.holder(&address, HOLDER, if first == "n2" { &["n3"] } else { &["n2"] }).await;
        whole.leaves_as(&team(second), eip);
        assert_eq!(whole.cluster.lab().node(first).run(["ip", "-4", "address"])?.matches("192.168.60.50").count(), 0);

        // That node dies: the address comes back to the first, which is labelled again.
        label(&whole.cluster, first, "pool", Some("egress")).await;
        whole.cluster.cut(second)?;
        let third = whole.holder(&address, HOLDER, &[first]).await;
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
