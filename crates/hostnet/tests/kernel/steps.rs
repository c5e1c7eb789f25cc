//! Every step does what it says, and undoes what another did.

use std::fs;

use egret_hostmodel::{Hop, Rule, Settings, State, Step};
use egret_hostnet::{Class, StepError};
use egret_netlab::test_name;
use futures::FutureExt as _;

use crate::namespace::{alone, dump, inside, run, same};
use crate::node::{Node, default_route, egress, everything, ip, lookup};

#[test]
fn everything_that_can_be_wanted_comes_and_goes_without_a_trace() {
    alone(test_name!(), || async {
        fs::write("/run/rt_tables", "1234 blue\n").unwrap();
        let (node, before) = (Node::open(), dump());
        let wanted = everything();
        node.become_like(&wanted).await;
        let observed = node.observe().await;
        assert_eq!(observed.foreign, []);
        assert_eq!(observed.surroundings.table_names["blue"], 1234);
        assert!(run("ip address show dev eth1").contains("192.168.60.50/32 scope global eth1"));
        let v6 = run("ip -6 -d address show dev eth1 to fd00:60::50");
        for text in ["fd00:60::50/128 scope global", "nodad", "noprefixroute", "preferred_lft 0sec"] {
            assert!(v6.contains(text), "{v6}");
        }
        // A second agent knows what the first one did.
        drop(node);
        let node = Node::open();
        assert_eq!(node.found().await, wanted);
        node.become_like(&State::default()).await;
        same(&before, &dump());
    });
}

#[test]
fn what_is_there_already_or_gone_already_is_no_error() {
    alone(test_name!(), || async {
        let node = Node::open();
        let (route, rule, address) = (default_route("192.168.60.200"), lookup("10.244.1.7"), egress("192.168.60.50"));
        let steps = [
            Step::AddRoute { route: route.clone() },
            Step::TakeAddress { address: address.clone() },
            Step::AddRule { rule: rule.clone() },
            Step::SetSysctl { path: "net/ipv4/conf/eth1/rp_filter".to_owned(), value: "2".to_owned() },
        ];
        node.apply(&steps).await;
        node.apply(&steps).await;
        let steps = [
            Step::DeleteRule { rule },
            Step::DropAddress { address },
            Step::DeleteRoute { route },
            Step::DeleteTable,
            Step::RestoreSysctl { path: "net/ipv4/conf/eth1/rp_filter".to_owned() },
            Step::ForgetConnections { source: ip("10.244.1.7") },
            Step::ForgetConnections { source: ip("fd00:10::7") },
        ];
        node.apply(&steps).await;
        node.apply(&steps).await;
        assert_eq!(node.found().await, State::default());
    });
}

#[test]
fn a_route_is_replaced_by_another_with_its_table_destination_and_metric() {
    alone(test_name!(), || async {
        let node = Node::open();
        for (one, other) in [("192.168.60.200", "192.168.60.201"), ("fd00:60::200", "fd00:60::201")] {
            let hop = |gateway: &str, weight| Hop {
                link: "eth1".to_owned(),
                gateway: Some(ip(gateway)),
                onlink: false,
                weight,
            };
            let several = [vec![hop(one, 1)], vec![hop(one, 2), hop(other, 5)], vec![hop(other, 1)]];
            for hops in several {
                let route = egret_hostmodel::Route { hops, ..default_route(one) };
                node.apply(&[Step::AddRoute { route: route.clone() }]).await;
                assert_eq!(node.found().await.routes, [route].into());
            }
            node.become_like(&State::default()).await;
        }
    });
}

#[test]
fn a_rule_goes_and_not_one_that_says_more_and_comes_before_it() {
    alone(test_name!(), || async {
        let node = Node::open();
        let foreign = Settings::default().foreign();
        let all = Rule { from: None, ..lookup("10.244.1.7") };
        let rules = [
            lookup("10.244.1.7").source_port(80),
            lookup("10.244.1.7").mark(foreign),
            lookup("10.244.1.7").to("10.0.0.0/8".parse().unwrap()),
            lookup("10.244.1.7"),
            all.clone().mark(foreign),
            all,
        ];
        for rule in &rules {
            let steps = rules.clone().map(|rule| Step::AddRule { rule });
            node.apply(&steps).await;
            node.apply(&[Step::DeleteRule { rule: rule.clone() }]).await;
            let left = rules.iter().filter(|other| *other != rule).cloned().collect();
            assert_eq!(node.found().await.rules, left, "without {rule}");
            node.become_like(&State::default()).await;
        }
    });
}

#[test]
fn steps_end_at_the_first_that_fails() {
    alone(test_name!(), || async {
        let node = Node::open();
        let unreachable = default_route("192.168.99.1");
        let steps = [
            Step::AddRule { rule: lookup("10.244.1.7") },
            Step::AddRoute { route: unreachable },
            Step::AddRule { rule: lookup("10.244.1.8") },
        ];
        let applied = node.kernel.apply(&steps).await;
        assert_eq!(applied.done, 1);
        let error = applied.failed.unwrap();
        assert!(matches!(error, StepError::Route { .. }), "{error}");
        assert_eq!(error.class(), Class::Conflict);
        assert_eq!(node.found().await.rules, [lookup("10.244.1.7")].into());
    });
}

#[test]
fn what_needs_a_link_that_is_not_there_says_so() {
    alone(test_name!(), || async {
        let node = Node::open();
        let mut route = default_route("192.168.60.200");
        route.hops[0].link = "eth7".to_owned();
        let mut address = egress("192.168.60.50");
        address.link = "eth7".to_owned();
        let path = "net/ipv4/conf/eth7/rp_filter".to_owned();
        for step in [
            Step::AddRoute { route },
            Step::TakeAddress { address: address.clone() },
            Step::SetSysctl { path, value: "2".to_owned() },
        ] {
            let error = node.refused(step).await;
            let missing = matches!(&error, StepError::NoLink { link } if link == "eth7");
            assert!(missing || matches!(error, StepError::Sysctl { .. }), "{error}");
        }
        // Its addresses went with it.
        node.apply(&[Step::DropAddress { address }]).await;
        assert_eq!(node.found().await, State::default());
    });
}

#[test]
fn a_parameter_goes_back_to_what_it_was_unless_somebody_has_said_it_for_all_links() {
    alone(test_name!(), || async {
        let node = Node::open();
        let (path, file) = ("net/ipv4/conf/eth1/forwarding", "/proc/sys/net/ipv4/conf/eth1/forwarding");
        let set = |value: &str| Step::SetSysctl { path: path.to_owned(), value: value.to_owned() };
        let restore = Step::RestoreSysctl { path: path.to_owned() };
        let now = || fs::read_to_string(file).unwrap().trim().to_owned();
        run("sysctl -qw net.ipv4.ip_forward=0");
        node.apply(&[set("1"), set("1")]).await;
        let observed = node.observe().await;
        assert_eq!(observed.surroundings.sysctls[path], "0", "as it was before us");
        assert_eq!(observed.found.sysctls[path], "1");
        node.apply(std::slice::from_ref(&restore)).await;
        assert_eq!(now(), "0");
        node.apply(&[set("1")]).await;
        run("sysctl -qw net.ipv4.ip_forward=1");
        node.apply(&[restore]).await;
        assert_eq!(now(), "1", "all links forward now");
        assert_eq!(node.found().await, State::default());
    });
}

#[test]
fn a_parameter_is_forgotten_with_its_link() {
    alone(test_name!(), || async {
        let node = Node::open();
        run("ip link add eth2 type veth peer name peer2");
        let path = "net/ipv4/conf/eth2/rp_filter".to_owned();
        node.apply(&[Step::SetSysctl { path, value: "2".to_owned() }]).await;
        assert_eq!(node.found().await.sysctls.len(), 1);
        run("ip link delete eth2");
        assert_eq!(node.found().await, State::default());
    });
}

#[test]
fn the_namespace_is_that_of_the_thread_that_opened_it() {
    alone(test_name!(), || async {
        let node = inside("outside", Node::open);
        node.apply(&[
            Step::AddRule { rule: lookup("10.244.1.7") },
            Step::ReplaceTable { table: everything().table.unwrap() },
            Step::SetSysctl { path: "net/ipv4/conf/peer/rp_filter".to_owned(), value: "2".to_owned() },
        ])
        .await;
        assert!(!run("ip rule").contains("10.244.1.7"));
        assert_eq!(run("nft list tables"), "");
        let there = inside("outside", || run("ip rule") + &run("nft list tables") + &run("sysctl net.ipv4.conf.peer"));
        for text in ["10.244.1.7", "table inet egret", "conf.peer.rp_filter = 2"] {
            assert!(there.contains(text), "{there}");
        }
        let observed = node.observe().await;
        assert_eq!(observed.surroundings.links.iter().map(|link| &link.name).collect::<Vec<_>>(), ["lo", "peer"]);
        assert_eq!(observed.found.table, everything().table);
    });
}

#[test]
fn steps_go_on_to_their_end_when_nobody_waits_for_them() {
    alone(test_name!(), || async {
        let node = Node::open();
        let sources = (0..2000).map(|number| format!("10.244.{}.{}", number / 250, number % 250));
        let steps: Vec<Step> = sources.map(|source| Step::AddRule { rule: lookup(&source) }).collect();
        assert!(node.kernel.apply(&steps).now_or_never().is_none(), "it takes longer than that");
        assert_eq!(node.found().await.rules.len(), steps.len());
    });
}

#[test]
fn a_kernel_that_was_told_to_have_no_ipv6_is_observed_all_the_same() {
    alone(test_name!(), || async {
        run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
        let node = Node::open();
        let mut wanted = everything();
        wanted.addresses.retain(|address| address.ip.is_ipv4());
        wanted.routes.retain(|route| route.destination.addr().is_ipv4());
        node.become_like(&wanted).await;
        node.become_like(&State::default()).await;
    });
}
