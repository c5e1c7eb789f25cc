//! A node that the API server cannot reach any more, and whose neighbours on the second network still can.

use std::net::IpAddr;

use egret_netlab::{Network, PORT, Transport, test_name, until};
use egret_testkit::cluster::{Cluster, alone};
use egret_testkit::server::hand;

use crate::direct::HOLDER;
use crate::objects::{egress_ip, label};
use crate::whole::{SOON, Whole, whole};

#[test]
fn a_node_that_the_api_server_cannot_reach_gives_its_address_up_to_the_next_one() {
    alone(test_name!(), &[], async || {
        let whole = whole(Cluster::builder(), &["--datapath", "direct"]).await;
        let team = |node: &str| node.replace('n', "team-");
        for node in ["n2", "n3"] {
            whole.cluster.add_pod(node, &team(node), &[("app", "team")]).await?;
            label(&whole.cluster, node, "pool", Some("egress")).await;
        }
        let (address, eip) = (egress_ip("192.168.60.50"), "192.168.60.50".parse::<IpAddr>()?);
        hand::create(&whole.cluster.client(), &address).await;
        let first = whole.holder(&address, HOLDER, &["n2", "n3"]).await;
        whole.leaves_as(&team(first), eip);

        // What the node holds and its pods have stays, for nobody else wants it.
        whole.cluster.lab().cut(first, Network::Red)?;
        whole.leaves_as(&team(first), eip);
        // Now the cluster gives its address to the other one, which it does not hear of.
        whole.cluster.silence(first);
        let second = whole.holder(&address, HOLDER, if first == "n2" { &["n3"] } else { &["n2"] }).await;
        whole.leaves_as(&team(second), eip);
        assert!(!holds(&whole, first, eip), "{}", whole.said());
        let ask = || {
            let pod = whole.cluster.lab().pod(&team(first));
            pod.ask(Transport::Tcp, whole.cluster.lab().outside(Network::Blue).addresses()[0], PORT, SOON / 60)
        };
        assert!(!ask().is_answer(), "{}\n{}", ask(), whole.said());

        // It is back, hears whose the address is now, and leaves it there.
        whole.cluster.lab().mend(first, Network::Red)?;
        whole.cluster.revive(first).await?;
        whole.shows(first, |view| {
            let reports = view["reports"].as_array().into_iter().flatten();
            reports.into_iter().any(|report| report["finding"]["finding"] == "elsewhere")
        });
        whole.leaves_as(&team(second), eip);
        assert!(until(SOON, || !holds(&whole, first, eip) && holds(&whole, second, eip)), "{}", whole.said());
        Ok(())
    });
}

fn holds(whole: &Whole, node: &str, ip: IpAddr) -> bool {
    whole.cluster.lab().node(node).run(["ip", "address"]).unwrap().contains(&format!("{ip}/32"))
}
