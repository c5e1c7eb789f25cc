//! The use cases, one test named after each.

use egret_netlab::{
    Family, FlowKind, Host, Lab, Need, Network, PORT, Packet, Profile, Transport, alone, test_name, until,
};

use crate::objects::{Exit, other, web};
use crate::world::{PATIENCE, World, from_both, goes, rules, table, two};

#[test]
fn node_local_egress_with_a_stable_source_address() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            world.lab.add_pod("n1", "a").unwrap();
            let exit = Exit { network: None, ..web(&["a"]) };
            world.expose(&exit, "n1");
            world.start("n1");
            world.put(&exit);
            world.serves("n1", &["a"]);
            // Symmetry: outside knows the application by one address, whoever begins.
            let client = world.lab.outside(Network::Red);
            for family in Family::BOTH {
                for transport in [Transport::Tcp, Transport::Udp] {
                    let reply = client.ask_from(family.destination(), transport, exit.address(family), PORT);
                    assert_eq!(reply.server(), Some("a"), "{reply}");
                }
            }
            goes(&world, "a", "ext", &exit.external);
            // Stable: it outlives the pod, and the agent.
            world.lab.remove_pod("a").unwrap();
            world.lab.add_pod("n1", "b").unwrap();
            world.put(&Exit { pods: vec!["b".to_owned()], ..exit.clone() });
            world.serves("n1", &["b"]);
            goes(&world, "b", "ext", &exit.external);
            world.kill("n1");
            goes(&world, "b", "ext", &exit.external);
            world.start("n1");
            world.serves("n1", &["b"]);
            goes(&world, "b", "ext", &exit.external);
        })
    });
}

/// What an administrator of such a network has done: a VRF `blue` with table 1234, and the second interface in it.
pub(crate) fn enslave(node: &Host) {
    let number = node.name().trim_start_matches('n');
    node.ip([
        "link add blue type vrf table 1234",
        "link set blue up",
        "link set eth1 master blue",
        // Enslaved, a link forgets what IPv6 it had.
        &format!("addr add fe80::1{number}/64 dev eth1 nodad"),
        &format!("addr add fd00:60::1{number}/64 dev eth1 nodad"),
        "route add default via 192.168.60.200 table 1234",
        "-6 route add default via fd00:60::200 dev eth1 table 1234",
    ])
    .unwrap();
}

#[test]
fn vrf_based_egress_isolation_per_node() {
    alone(test_name!(), &[Need::Vrf], || {
        for profile in Profile::BOTH {
            let world = World::new(Lab::builder().nodes(2).blue(&[1, 2]).profile(profile).build().unwrap());
            for node in ["n1", "n2"] {
                enslave(&world.lab.node(node));
            }
            isolated(world, "blue");
        }
        Ok(())
    });
}

/// The same use case names secondary interfaces, too.
#[test]
fn secondary_interface_egress_isolation_per_node() {
    alone(test_name!(), &[], || {
        from_both(2, |world| {
            for node in ["n1", "n2"] {
                let node = world.lab.node(node);
                node.ip([
                    "route add default via 192.168.60.200 dev eth1 metric 500",
                    "-6 route add default via fd00:60::200 dev eth1 metric 2048",
                ])
                .unwrap();
            }
            isolated(world, "eth1");
        })
    });
}

/// On each node the service's endpoints leave by the network of that name, and nobody else does.
fn isolated(mut world: World, network: &'static str) {
    for (node, pod) in [("n1", "a"), ("n1", "f"), ("n2", "c"), ("n2", "g")] {
        world.lab.add_pod(node, pod).unwrap();
    }
    let exit = Exit { by: "Network", host: "ALL", network: Some(network), ..web(&["a", "c"]) };
    world.expose(&exit, "n1");
    world.start("n1");
    world.start("n2");
    world.put(&exit);
    let address =
        |world: &World, node, network| Family::BOTH.map(|family| world.lab.node_address(node, network, family));
    for (node, pod, foreign) in [("n1", "a", "f"), ("n2", "c", "g")] {
        world.serves(node, &[pod]);
        goes(&world, pod, "blue", &address(&world, node, Network::Blue));
        goes(&world, foreign, "ext", &address(&world, node, Network::Red));
        // Inside the cluster the network is no matter.
        for family in Family::BOTH {
            for peer in ["f", "g"] {
                let reply = world.lab.pod(pod).tcp(world.lab.pod(peer).address(family), PORT);
                assert_eq!(reply.source(), Some(world.lab.pod(pod).address(family)), "{pod} to {peer}: {reply}");
            }
        }
    }
    // A client on that network reaches the service, whichever endpoint it gets.
    let client = world.lab.outside(Network::Blue);
    for family in Family::BOTH {
        for _ in 0..4 {
            let reply = client.ask_from(family.destination(), Transport::Tcp, exit.address(family), PORT);
            assert!(reply.is_answer(), "{family:?}: {reply}\n{}", world.said("n1"));
        }
    }
    world.clean_up("n1");
    world.clean_up("n2");
}

/// No gateway is shared: what befalls a node's network is nothing to the others, and no packet goes a longer way.
#[test]
fn high_performance_or_low_latency_environments() {
    alone(test_name!(), &[], || {
        from_both(3, |mut world| {
            let places = [("n1", "a"), ("n2", "c"), ("n3", "e")];
            for (node, pod) in places {
                world.lab.add_pod(node, pod).unwrap();
                if node != "n1" {
                    table(&world.lab.node(node), "1234");
                }
            }
            let exit = Exit { by: "Network", host: "ALL", local_policy: true, ..web(&["a", "c", "e"]) };
            world.expose(&exit, "n1");
            for (node, _) in places {
                world.start(node);
            }
            world.put(&exit);
            for (node, pod) in places {
                world.serves(node, &[pod]);
            }
            let wires = [Network::Red, Network::Blue].map(|network| world.lab.wire(network).unwrap());
            let flows = ["a", "c"].map(|pod| {
                Family::BOTH.map(|family| world.lab.pod(pod).flow(FlowKind::Udp, family.destination(), PORT, 50))
            });
            goes(&world, "e", "blue", &Family::BOTH.map(|family| world.lab.node_address("n3", Network::Blue, family)));
            world.lab.cut("n3", Network::Blue).unwrap();
            world.kill("n3");
            for flow in flows.into_iter().flatten() {
                assert!(flow.answers(20, PATIENCE), "{:?}", flow.report());
                let report = flow.stop();
                assert_eq!((report.unanswered(), report.errors), (0, 0), "{report:?}");
            }
            for (node, pod) in places {
                let detour = |packet: &Packet| packet.client.as_deref() == Some(pod) && packet.from != "blue";
                let wrong = wires[1].wrong(|packet| !detour(packet) || packet.from == node);
                assert!(wrong.is_empty(), "{wrong:?}");
                assert!(!wires[0].has(|packet| packet.client.as_deref() == Some(pod)), "{:?}", wires[0].seen());
            }
            assert_eq!((wires[0].lost(), wires[1].lost()), (0, 0));
            world.lab.mend("n3", Network::Blue).unwrap();
            for (node, _) in places {
                world.clean_up(node);
            }
        })
    });
}

/// The platform team says it once, for the service. Who runs the application adds and takes away pods.
#[test]
fn service_oriented_network_control() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            let all = ["a", "b", "c", "d", "e"];
            world.lab.add_pods(&all.map(|pod| ("n1", pod))).unwrap();
            world.lab.add_pod("n1", "f").unwrap();
            let (exit, plain) = (web(&["a"]), other(&["f"]));
            world.expose(&exit, "n1");
            world.lab.service(plain.service()).unwrap();
            world.start("n1");
            world.put(&exit);
            world.serves("n1", &["a"]);
            for pods in [&all[..], &all[2..4], &all[..1]] {
                world.put(&Exit { pods: pods.iter().map(|pod| (*pod).to_owned()).collect(), ..exit.clone() });
                world.serves("n1", pods);
                // From the first packet on, and although no endpoint says that it is ready.
                for pod in pods {
                    goes(&world, pod, "blue", &exit.external);
                }
            }
            // A service without an EgressService is none of its business.
            goes(&world, "f", "ext", &Family::BOTH.map(|family| world.lab.node_address("n1", Network::Red, family)));
            // Another network for the whole service is one change.
            let elsewhere = Exit { network: None, pods: all.map(str::to_owned).to_vec(), ..exit.clone() };
            world.put(&elsewhere);
            world.serves("n1", &all);
            let settled = || rules(&world, "n1").iter().all(|rule| !rule.starts_with("5000:"));
            assert!(until(PATIENCE, settled), "{:?}", rules(&world, "n1"));
            for pod in all {
                goes(&world, pod, "ext", &exit.external);
            }
            world.clean_up("n1");
        })
    });
}

/// What the seed's picture has in it: one node of several has the service, and everything of it.
#[test]
fn a_node_without_the_network_is_not_used() {
    alone(test_name!(), &[], || {
        for profile in Profile::BOTH {
            let mut world = two(Lab::builder().nodes(2).blue(&[1]).profile(profile));
            for (node, pod) in [("n1", "a"), ("n2", "c")] {
                world.lab.add_pod(node, pod).unwrap();
            }
            let exit = Exit { by: "Network", host: "ALL", local_policy: true, ..web(&["a", "c"]) };
            world.expose(&exit, "n1");
            world.start("n1");
            world.start("n2");
            world.put(&exit);
            world.serves("n1", &["a"]);
            goes(&world, "a", "blue", &Family::BOTH.map(|family| world.lab.node_address("n1", Network::Blue, family)));
            // Placement and networks must fit (the seed's first consideration): where they do not, it is said and nothing
            // takes another way.
            world.says("n2", "EgressService default/web", "no-route");
            crate::world::stays_in(&world, "c");
            world.clean_up("n1");
            world.clean_up("n2");
        }
        Ok(())
    });
}
