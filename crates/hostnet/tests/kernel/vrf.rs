//! Real VRF devices, where the kernel has them.

use egret_hostmodel::{Link, State, Step};
use egret_netlab::{Need, test_name};

use crate::namespace::{alone_with, dump, run, same};
use crate::node::{Node, egress};

#[test]
fn a_vrf_device_shows_its_table_and_a_link_in_it_takes_addresses() {
    alone_with(test_name!(), &[Need::Vrf], || async {
        run("ip link add blue type vrf table 1234");
        run("ip link set eth1 master blue");
        run("ip link set blue up");
        run("ip -6 addr replace fd00:60::11/64 dev eth1 nodad");
        run("ip route add default via 192.168.60.200 table 1234");
        run("ip -n outside addr add 192.168.60.51/32 dev peer");
        let (node, before) = (Node::open(), dump());
        let surroundings = node.observe().await.surroundings;
        let link = |name: &str| surroundings.links.iter().find(|link| link.name == name).unwrap();
        let Link { index, vrf_table, .. } = link("blue");
        assert_eq!(*vrf_table, Some(1234));
        assert_eq!(link("eth1").master, Some(*index));
        assert_eq!(link("eth1").vrf_table, None);
        let default = surroundings.routes.iter().find(|it| it.table == 1234 && it.destination.prefix_len() == 0);
        assert_eq!(default.unwrap().hops[0].link, "eth1");
        for ip in ["192.168.60.50", "fd00:60::50"] {
            let address = egress(ip);
            node.apply(&[Step::TakeAddress { address: address.clone() }, Step::Announce { address }]).await;
        }
        node.refused(Step::TakeAddress { address: egress("192.168.60.51") }).await;
        assert_eq!(node.found().await.addresses.len(), 2);
        node.become_like(&State::default()).await;
        same(&before, &dump());
    });
}
