//! What is not ours is not touched.

use std::collections::BTreeSet;

use egret_hostmodel::{Others, State, Step};
use egret_hostnet::{Foreign, StepError};
use egret_netlab::test_name;

use crate::namespace::{alone, dump, nft, run, same};
use crate::node::{Node, default_route, egress, everything, lookup};

#[test]
fn what_looks_like_ours_and_is_not_survives_everything() {
    alone(test_name!(), || async {
        for command in [
            // The same as a rule of ours but for who made it, and rules in our places that say other things.
            "ip rule add priority 5000 from 10.244.1.7 lookup 1005",
            "ip rule add priority 998 to 10.0.0.0/8 lookup main protocol static",
            "ip -6 rule add priority 6000 from fd00:10::7 lookup 1005",
            "ip rule add priority 5000 from 10.244.1.9 dport 53 lookup 1005 protocol 68",
            "ip rule add priority 100 from 10.244.1.7 lookup 7",
            "ip route add 172.16.0.0/12 via 192.168.60.200 table 1005",
            "ip route add unreachable 172.32.0.0/16 table 1005",
            "ip route add 172.17.0.0/16 via 192.168.60.200 proto 68",
            "ip addr add 192.168.60.70/32 dev eth1",
            "ip addr add fd00:60::70/128 dev eth1 nodad",
            "sysctl -qw net.ipv4.conf.lo.rp_filter=1",
        ] {
            run(command);
        }
        nft("add table ip egret\nadd table inet egret-not\nadd set inet egret-not hold-v4 { type ipv4_addr; }");
        let (node, before) = (Node::open(), dump());
        let wanted = everything();
        node.become_like(&State::default()).await;
        same(&before, &dump());
        node.become_like(&wanted).await;
        let foreign = node.observe().await.foreign;
        let rules: BTreeSet<(u32, u8, bool)> = foreign
            .iter()
            .filter_map(|it| match it {
                Foreign::Rule { priority, protocol, rule, .. } => Some((*priority, *protocol, rule.is_some())),
                _ => None,
            })
            .collect();
        assert_eq!(rules, [(998, 4, true), (5000, 0, true), (5000, 68, false), (6000, 0, true)].into());
        let routes = foreign.iter().filter(|it| matches!(it, Foreign::Route(route) if route.table == 1005));
        assert_eq!(routes.count(), 1);
        node.become_like(&State::default()).await;
        same(&before, &dump());
    });
}

#[test]
fn a_rule_comes_beside_its_twin_and_goes_from_beside_it() {
    alone(test_name!(), || async {
        run("ip rule add priority 5000 from 10.244.1.7 lookup 1005");
        let (node, before) = (Node::open(), dump());
        node.apply(&[Step::AddRule { rule: lookup("10.244.1.7") }]).await;
        assert_eq!(node.found().await.rules, [lookup("10.244.1.7")].into());
        node.apply(&[Step::DeleteRule { rule: lookup("10.244.1.7") }]).await;
        same(&before, &dump());
    });
}

#[test]
fn a_place_that_somebody_else_has_is_not_taken() {
    alone(test_name!(), || async {
        run("ip route add default via 192.168.60.201 table 1005");
        run("ip -6 route add default via fd00:60::201 table 1005");
        run("ip addr add 192.168.60.50/32 dev eth1");
        let (node, before) = (Node::open(), dump());
        for gateway in ["192.168.60.200", "fd00:60::200"] {
            let route = default_route(gateway);
            let error = node.refused(Step::AddRoute { route: route.clone() }).await;
            let there = |route: &egret_hostmodel::Route| route.protocol == 3;
            assert!(matches!(&error, StepError::OccupiedRoute { route } if there(route)), "{error}");
            node.apply(&[Step::DeleteRoute { route }]).await;
        }
        let address = egress("192.168.60.50");
        let error = node.refused(Step::TakeAddress { address: address.clone() }).await;
        assert!(matches!(error, StepError::OccupiedAddress { .. }), "{error}");
        let error = node.refused(Step::Announce { address: address.clone() }).await;
        assert!(matches!(error, StepError::NotOurs { .. }), "{error}");
        node.apply(&[Step::DropAddress { address }]).await;
        same(&before, &dump());
    });
}

#[test]
fn where_ovnkube_node_serves_addresses_those_that_look_like_ours_are_its_own() {
    alone(test_name!(), || async {
        let node = Node::open();
        node.apply(&[Step::TakeAddress { address: egress("192.168.60.50") }]).await;
        assert_eq!(node.observe().await.others, Others::default());
        nft("add table inet ovn-kubernetes\nadd chain inet ovn-kubernetes egress-services");
        let observed = node.observe().await;
        assert_eq!(observed.others, Others { services: true, addresses: false });
        assert_eq!(observed.found.addresses, [egress("192.168.60.50")].into());
        nft("add chain inet ovn-kubernetes egress-ip-snat\ndelete chain inet ovn-kubernetes egress-services");
        let observed = node.observe().await;
        assert_eq!(observed.others, Others { services: false, addresses: true });
        assert_eq!(observed.found, State::default());
        assert_eq!(observed.foreign, [Foreign::Address(egress("192.168.60.50"))]);
        nft("add table ip ovn-kubernetes\nadd chain ip ovn-kubernetes egress-services");
        assert!(!node.observe().await.others.services, "another family's table");
    });
}
