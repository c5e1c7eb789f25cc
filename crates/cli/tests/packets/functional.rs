//! The functional requirements, one test named after each.

use egret_netlab::{Family, Network, PORT, Transport, alone, test_name};

use crate::objects::{Exit, other, web};
use crate::world::{from_both, goes, rules, stays_in, table, two};

#[test]
fn an_egress_service_is_supported_in_local_gateway_mode() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            world.lab.add_pod("n1", "a").unwrap();
            let exit = web(&["a"]);
            world.expose(&exit, "n1");
            world.start("n1");
            world.serves("n1", &[]);
            let node = [Family::V4, Family::V6].map(|family| world.lab.node_address("n1", Network::Red, family));
            goes(&world, "a", "ext", &node);
            world.put(&exit);
            world.serves("n1", &["a"]);
            goes(&world, "a", "blue", &exit.external);
            world.remove("web");
            world.serves("n1", &[]);
            goes(&world, "a", "ext", &node);
            world.kill("n1");
            world.is_as_before("n1");
        })
    });
}

#[test]
fn egress_routing_rules_are_only_on_nodes_that_host_endpoints() {
    alone(test_name!(), &[], || {
        from_both(2, |mut world| {
            table(&world.lab.node("n2"), "1234");
            world.lab.add_pod("n1", "a").unwrap();
            let exit = Exit { by: "Network", host: "ALL", local_policy: true, ..web(&["a"]) };
            world.expose(&exit, "n1");
            world.start("n1");
            world.start("n2");
            world.put(&exit);
            world.serves("n1", &["a"]);
            let blue = [Family::V4, Family::V6].map(|family| world.lab.node_address("n1", Network::Blue, family));
            goes(&world, "a", "blue", &blue);
            world.serves("n2", &[]);
            assert_eq!(rules(&world, "n2"), Vec::<String>::new());
            world.is_as_before("n2");
            world.clean_up("n1");
        })
    });
}

#[test]
fn the_network_field_selects_the_routing_table() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            world.lab.add_pod("n1", "a").unwrap();
            let node = world.lab.node("n1");
            std::fs::create_dir_all("/run/rt_tables.d").unwrap();
            std::fs::write("/run/rt_tables.d/egret.conf", "1234 blue\n").unwrap();
            world.options(&["--table-names", "/run/rt_tables.d"]);
            let exit = web(&["a"]);
            world.expose(&exit, "n1");
            world.start("n1");
            // By number, by name, and a plain interface, which has a default route of its own.
            for line in [
                "route add default via 192.168.60.200 dev eth1 metric 500",
                "-6 route add default via fd00:60::200 dev eth1 metric 2048",
            ] {
                node.run(std::iter::once("ip").chain(line.split(' ')).collect::<Vec<_>>()).unwrap();
            }
            for network in ["1234", "blue", "eth1"] {
                world.put(&Exit { network: Some(network), ..exit.clone() });
                world.serves("n1", &["a"]);
                world.says("n1", "EgressService default/web", "active");
                goes(&world, "a", "blue", &exit.external);
                world.remove("web");
                world.serves("n1", &[]);
            }
            // Not there: nowhere, and never the main table. It works when it appears.
            world.put(&Exit { network: Some("4321"), ..exit.clone() });
            world.says("n1", "EgressService default/web", "no-route");
            stays_in(&world, "a");
            table(&node, "4321");
            goes_soon(&world, "a", &exit);
            world.put(&Exit { network: Some("green"), ..exit.clone() });
            world.says("n1", "EgressService default/web", "network");
            stays_in(&world, "a");
            // No network at all: only the source changes.
            world.put(&Exit { network: None, ..exit.clone() });
            world.says("n1", "EgressService default/web", "active");
            world.shows("n1", |view| view["reports"].as_array().is_some_and(|reports| reports.len() == 1));
            goes(&world, "a", "ext", &exit.external);
            assert_eq!(rules(&world, "n1"), Vec::<String>::new());
        })
    });
}

/// What the kernel tells the agent of is acted on without anything being told by Kubernetes.
fn goes_soon(world: &crate::world::World, pod: &str, exit: &Exit) {
    let asked = || world.lab.pod(pod).tcp(Family::V4.destination(), PORT).server() == Some("blue");
    assert!(egret_netlab::until(crate::world::PATIENCE, asked), "{}", world.said("n1"));
    goes(world, pod, "blue", &exit.external);
}

#[test]
fn ip_rules_are_configured_for_the_cluster_ip_and_every_endpoint() {
    alone(test_name!(), &[], || {
        from_both(2, |mut world| {
            for (node, pod) in [("n1", "a"), ("n1", "b"), ("n2", "c")] {
                world.lab.add_pod(node, pod).unwrap();
            }
            let exit = web(&["a", "b", "c"]);
            world.expose(&exit, "n1");
            world.start("n1");
            world.put(&exit);
            world.serves("n1", &["a", "b", "c"]);
            let mut expected = Vec::new();
            for family in Family::BOTH {
                let pods = ["a", "b", "c"].map(|pod| world.lab.pod(pod).address(family));
                let sources =
                    pods.into_iter().chain(exit.cluster.iter().copied().filter(|ip| Family::of(*ip) == family));
                expected.extend(sources.map(|ip| format!("5000: from {ip} lookup 1234 proto 68")));
            }
            expected.sort();
            let mut found: Vec<String> =
                rules(&world, "n1").into_iter().filter(|rule| rule.starts_with("5000:")).collect();
            found.sort();
            assert_eq!(found, expected);
            world.clean_up("n1");
        })
    });
}

#[test]
fn outbound_traffic_of_endpoints_is_handled_with_one_service_beside_another() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            for pod in ["a", "shared", "b"] {
                world.lab.add_pod("n1", pod).unwrap();
            }
            let (older, younger) = (web(&["a", "shared"]), Exit { network: None, ..other(&["shared", "b"]) });
            world.expose(&older, "n1");
            world.expose(&younger, "n1");
            world.start("n1");
            world.put(&older);
            world.put(&younger);
            world.serves("n1", &["a", "shared", "b"]);
            goes(&world, "a", "blue", &older.external);
            goes(&world, "shared", "blue", &older.external);
            goes(&world, "b", "ext", &younger.external);
            world.says("n1", "EgressService default/other", "standby");
            world.remove("web");
            world.serves("n1", &["shared", "b"]);
            goes(&world, "shared", "ext", &younger.external);
            world.clean_up("n1");
        })
    });
}

#[test]
fn replies_of_inbound_connections_take_the_network_without_ovn() {
    alone(test_name!(), &[], || {
        from_both(2, |mut world| {
            let exit = world.with_web();
            inbound(&world, &exit, "a");
            // The node's own port is nobody's load balancer: its replies go back by the default network.
            world.clean_up("n1");
        })
    });
}

/// A client on the second network reaches the service: the reply comes back to it, from the service's address.
fn inbound(world: &crate::world::World, exit: &Exit, pod: &str) {
    let client = world.lab.outside(Network::Blue);
    for family in Family::BOTH {
        for transport in [Transport::Tcp, Transport::Udp] {
            let from = family.destination();
            let reply = client.ask_from(from, transport, exit.address(family), PORT);
            assert_eq!(reply.server(), Some(pod), "{transport:?} from {from}: {reply}\n{}", world.said("n1"));
        }
    }
}

#[test]
fn replies_that_traverse_the_cluster_ip_take_the_network_with_ovn() {
    alone(test_name!(), &[], || {
        for profile in egret_netlab::Profile::BOTH {
            let mut world = two(egret_netlab::Lab::builder().nodes(2).blue(&[1]).profile(profile).ovn());
            world.options(&["--datapath", "ovn"]);
            for (node, pod) in [("n1", "a"), ("n2", "c")] {
                world.lab.add_pod(node, pod).unwrap();
            }
            let exit = web(&["a", "c"]);
            world.expose(&exit, "n1");
            world.lab.reroute("c", "n1").unwrap();
            world.start("n1");
            world.start("n2");
            world.put(&exit);
            world.serves("n1", &["a", "c"]);
            world.serves("n2", &[]);
            for pod in ["a", "c"] {
                goes(&world, pod, "blue", &exit.external);
            }
            let client = world.lab.outside(Network::Blue);
            for family in Family::BOTH {
                for _ in 0..6 {
                    let reply = client.ask_from(family.destination(), Transport::Tcp, exit.address(family), PORT);
                    assert!(reply.is_answer(), "{reply}\n{}", world.said("n1"));
                }
            }
            world.clean_up("n1");
            world.is_as_before("n2");
        }
        Ok(())
    });
}

#[test]
fn rules_follow_endpoints_placement_and_configuration() {
    alone(test_name!(), &[], || {
        from_both(2, |mut world| {
            for (node, pod) in [("n1", "a"), ("n1", "b"), ("n2", "c")] {
                world.lab.add_pod(node, pod).unwrap();
            }
            let exit = web(&["a"]);
            world.expose(&exit, "n1");
            world.start("n1");
            world.start("n2");
            world.put(&exit);
            world.serves("n1", &["a"]);
            let node = [Family::V4, Family::V6].map(|family| world.lab.node_address("n1", Network::Red, family));
            goes(&world, "b", "ext", &node);
            // Endpoints change.
            world.put(&Exit { pods: vec!["b".to_owned()], ..exit.clone() });
            world.serves("n1", &["b"]);
            goes(&world, "a", "ext", &node);
            goes(&world, "b", "blue", &exit.external);
            // The placement changes: what another node has must not leave from here with another source.
            world.put(&Exit { host: "n2", ..exit.clone() });
            world.says("n1", "EgressService default/web", "elsewhere");
            // Not of the endpoint before, of which it hears a moment later.
            world.serves("n1", &["a"]);
            stays_in(&world, "a");
            world.put(&exit);
            world.says("n1", "EgressService default/web", "active");
            goes(&world, "a", "blue", &exit.external);
            // The configuration changes: another address, then none of the load balancer's.
            let moved = Exit { external: crate::objects::parse(&["192.168.70.12", "fd00:70::12"]), ..exit.clone() };
            for ip in &moved.external {
                world.lab.route(*ip, "n1").unwrap();
            }
            world.put(&moved);
            world.leaves_as("a", &moved.external);
            world.put(&Exit { external: Vec::new(), ..exit.clone() });
            world.says("n1", "EgressService default/web", "no-load-balancer");
            goes(&world, "a", "ext", &node);
            world.clean_up("n1");
            world.clean_up("n2");
        })
    });
}
