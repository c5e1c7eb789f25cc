//! The non-functional requirements, one test named after each.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use egret_netlab::{
    Family, Flow, FlowKind, Host, Lab, Network, PORT, Packet, Policy, Profile, Protocol, Service, Transport, Wire,
    alone, test_name, until,
};

use crate::objects::{Exit, other, parse, web};
use crate::walk::{SERVICE_WALK, Stop};
use crate::world::{PATIENCE, World, from_both, goes, rules, stays_in, table, two};

#[test]
fn nothing_has_to_be_configured_on_a_node_by_hand() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            world.lab.add_pod("n1", "a").unwrap();
            let exit = web(&["a"]);
            world.expose(&exit, "n1");
            let node = world.lab.node("n1");
            no_table(&node);
            // The agent starts on a node that has no such network yet. It comes, goes and comes again.
            world.start("n1");
            world.put(&exit);
            world.says("n1", "EgressService default/web", "no-route");
            stays_in(&world, "a");
            table(&node, "1234");
            leads(&world, &exit);
            no_table(&node);
            world.says("n1", "EgressService default/web", "no-route");
            stays_in(&world, "a");
            table(&node, "1234");
            leads(&world, &exit);
            // The interface fails: nothing takes the default network instead. When it is back, and whoever configures
            // the node's networks has said again what IPv6 forgets, everything is as before.
            node.run(["ip", "link", "set", "eth1", "down"]).unwrap();
            world.says("n1", "EgressService default/web", "no-route");
            stays_in(&world, "a");
            up_again(&node);
            leads(&world, &exit);
            no_table(&node);
            world.clean_up("n1");
        })
    });
}

fn no_table(node: &Host) {
    for family in ["-4", "-6"] {
        node.run(["ip", family, "route", "flush", "table", "1234"]).unwrap();
    }
}

/// What a network configuration does to a link that it has taken down.
pub(crate) fn up_again(node: &Host) {
    let number = node.name().trim_start_matches('n');
    let (link_local, address) =
        (format!("addr add fe80::1{number}/64 dev eth1 nodad"), format!("fd00:60::1{number}/64"));
    let address = format!("addr add {address} dev eth1 nodad");
    node.ip(["link set eth1 up", &link_local, &address]).unwrap();
    table(node, "1234");
}

/// The network leads the pod outside, as soon as the agent has seen it.
fn leads(world: &World, exit: &Exit) {
    world.shows("n1", |view| {
        let reports = view["reports"].as_array().into_iter().flatten();
        let findings: Vec<&serde_json::Value> = reports.map(|report| &report["finding"]["finding"]).collect();
        view["settled"] == true && findings == ["active"]
    });
    goes(world, "a", "blue", &exit.external);
}

#[test]
fn local_gateway_mode_is_preserved() {
    alone(test_name!(), &[], || {
        from_both(2, |mut world| {
            table(&world.lab.node("n2"), "1234");
            for (node, pod) in [("n1", "a"), ("n2", "c")] {
                world.lab.add_pod(node, pod).unwrap();
            }
            let exit = Exit { by: "Network", host: "ALL", local_policy: true, ..web(&["a", "c"]) };
            world.expose(&exit, "n1");
            world.start("n1");
            world.start("n2");
            world.put(&exit);
            world.serves("n1", &["a"]);
            world.serves("n2", &["c"]);
            let wires = [Network::Red, Network::Blue].map(|network| world.lab.wire(network).unwrap());
            for (node, pod) in [("n1", "a"), ("n2", "c")] {
                once(&world, pod, node, [&wires[0], &wires[1]]);
            }
            world.clean_up("n1");
            world.clean_up("n2");
        })
    });
}

#[test]
fn traffic_of_local_endpoints_crosses_no_tunnel() {
    alone(test_name!(), &[], || {
        for profile in Profile::BOTH {
            let mut world = two(Lab::builder().nodes(2).blue(&[1]).profile(profile).ovn());
            world.options(&["--datapath", "ovn"]);
            for (node, pod) in [("n1", "a"), ("n2", "c")] {
                world.lab.add_pod(node, pod).unwrap();
            }
            let exit = web(&["a", "c"]);
            world.expose(&exit, "n1");
            world.lab.reroute("c", "n1").unwrap();
            world.start("n1");
            world.put(&exit);
            world.serves("n1", &["a", "c"]);
            let wires = [Network::Tunnel, Network::Red, Network::Blue].map(|network| world.lab.wire(network).unwrap());
            once(&world, "a", "n1", [&wires[1], &wires[2]]);
            assert!(!wires[0].has(|packet| packet.client.as_deref() == Some("a")), "{:?}", wires[0].seen());
            // That of others must: it is seen there, so the silence above means something.
            goes(&world, "c", "blue", &exit.external);
            assert!(until(PATIENCE, || wires[0].has(|packet| packet.client.as_deref() == Some("c"))));
            world.clean_up("n1");
        }
        Ok(())
    });
}

/// A question of `pod` is on the second network once, from its own node, and on the default network never.
fn once(world: &World, pod: &str, node: &str, [red, blue]: [&Wire; 2]) {
    for family in Family::BOTH {
        for transport in [Transport::Udp, Transport::Icmp] {
            red.clear();
            blue.clear();
            let reply = world.lab.pod(pod).ask(transport, family.destination(), PORT, PATIENCE);
            assert_eq!(reply.server(), Some("blue"), "{reply}\n{}", world.said(node));
            let question =
                |packet: &Packet| packet.client.as_deref() == Some(pod) && packet.destination == family.destination();
            assert!(until(PATIENCE, || blue.has(question)), "{:?}", blue.seen());
            let seen: Vec<_> = blue.seen().into_iter().filter(|seen| question(&seen.packet)).collect();
            assert_eq!(seen.len(), 1, "{seen:?}");
            assert_eq!((seen[0].packet.from.as_str(), seen[0].count), (node, 1), "{seen:?}");
            assert!(!red.has(|packet| packet.client.as_deref() == Some(pod)), "{:?}", red.seen());
            assert_eq!((red.lost(), blue.lost()), (0, 0));
        }
    }
}

#[test]
fn standard_tools_lead_from_a_rule_to_its_service() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            let exit = world.with_web();
            walk(&world.lab.node("n1"), SERVICE_WALK);
            // Whatever it is that leads somewhere has a name on it: there is no rule that a person could not explain.
            for rule in rules(&world, "n1").iter().filter(|rule| rule.starts_with("5000:")) {
                let source = rule.split(' ').nth(2).unwrap().to_owned();
                let named = world.lab.node("n1").run(["nft", "list", "table", "inet", "egret"]).unwrap();
                let endpoint = named.lines().any(|line| line.contains(&format!("{source} comment \"default/web\"")));
                let cluster = exit.cluster.iter().any(|ip| ip.to_string() == source);
                assert!(endpoint || cluster, "{rule}");
            }
            world.clean_up("n1");
        })
    });
}

/// Every command says what the guide promises.
pub(crate) fn walk(node: &Host, stops: &[Stop]) {
    for stop in stops {
        let said = node.run(stop.command.split(' ').collect::<Vec<_>>()).unwrap();
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for shown in stop.shows {
            assert!(said.contains(shown), "`{}` does not show {shown:?} but\n{said}", stop.command);
        }
    }
}

/// A flow that must not notice anything.
struct Foreign {
    what: String,
    flow: Flow,
}

#[test]
fn who_did_not_opt_in_is_untouched() {
    alone(test_name!(), &[], || {
        from_both(2, |mut world| {
            for (node, pod) in [("n1", "a"), ("n1", "b"), ("n1", "f"), ("n2", "g"), ("n2", "h"), ("n2", "i")] {
                world.lab.add_pod(node, pod).unwrap();
            }
            let (exit, younger) = (web(&["a"]), Exit { network: None, ..other(&["b"]) });
            world.expose(&exit, "n1");
            world.expose(&younger, "n1");
            let foreign = foreign_services(&world, &exit);
            world.start("n1");
            let wires = [Network::Red, Network::Blue].map(|network| world.lab.wire(network).unwrap());
            let flows = foreign_flows(&world, &exit, &foreign);
            // Of `b` the network stays what it is, and only the source changes.
            let [own, with] = ["a", "b"].map(|pod| {
                let flow = |family: Family| world.lab.pod(pod).flow(FlowKind::Udp, family.destination(), PORT, 20);
                Family::BOTH.map(|family| (family, flow(family)))
            });
            for (_, flow) in own.iter().chain(&with) {
                assert!(flow.answers(2, PATIENCE));
            }
            world.put(&exit);
            world.serves("n1", &["a"]);
            // What is under way gets the right source with its next packet.
            for (family, flow) in &own {
                assert!(flow.source_becomes(exit.address(*family), PATIENCE), "{:?}", flow.report());
            }
            let served = Instant::now();
            world.put(&younger);
            for (family, flow) in &with {
                assert!(flow.source_becomes(younger.address(*family), PATIENCE), "{:?}", flow.report());
            }
            come_move_and_go(&mut world, &exit, &younger);
            for Foreign { what, flow } in flows {
                assert!(flow.answers(2, PATIENCE), "{what}: {:?}", flow.report());
                let report = flow.stop();
                assert_eq!(report.sources().len(), 1, "{what}: {report:?}\n{}", world.said("n1"));
                assert_eq!((report.unanswered(), report.errors), (0, 0), "{what}: {report:?}\n{}", world.said("n1"));
            }
            never_wrong(&world, &exit, &younger, [&wires[0], &wires[1]], served);
            drop((own, with));
            world.clean_up("n1");
        })
    });
}

/// Services come, move and go, and the agent is killed and started again. `web` has its pod and its place at the end.
fn come_move_and_go(world: &mut World, exit: &Exit, younger: &Exit) {
    world.put(younger);
    world.serves("n1", &["a", "b"]);
    world.put(&Exit { host: "n2", ..exit.clone() });
    world.says("n1", "EgressService default/web", "elsewhere");
    world.put(exit);
    world.says("n1", "EgressService default/web", "active");
    world.kill("n1");
    world.remove("other");
    world.start("n1");
    world.serves("n1", &["a"]);
    world.put(&Exit { network: None, ..exit.clone() });
    world.shows("n1", |view| view["settled"] == true);
    world.put(exit);
    world.says("n1", "EgressService default/web", "active");
    world.serves("n1", &["a"]);
}

/// Beside the service that opted in: another port of its load balancer's address, a port of the node, a cluster address.
fn foreign_services(world: &World, exit: &Exit) -> [Service; 3] {
    let nodes = Family::BOTH.map(|family| world.lab.node_address("n1", Network::Red, family)).to_vec();
    let service = |name: &str, external: Vec<IpAddr>, port, pods: &[&str], cluster: Vec<IpAddr>| Service {
        name: name.to_owned(),
        external,
        cluster,
        port,
        node_port: 0,
        pods: pods.iter().map(|pod| (*pod).to_owned()).collect(),
        policy: Policy::Cluster,
    };
    let services = [
        service("another-port", exit.external.clone(), 9090, &["f"], parse(&["10.96.0.20", "fd00:10:96::14"])),
        service("node-port", nodes, 30090, &["a"], parse(&["10.96.0.21", "fd00:10:96::15"])),
        // Of several endpoints, so that a connection that is forgotten is led to another one.
        service("inside", Vec::new(), PORT, &["g", "h", "i"], parse(&["10.96.0.22", "fd00:10:96::16"])),
    ];
    for service in &services {
        world.lab.service(service.clone()).unwrap();
    }
    services
}

fn foreign_flows(world: &World, exit: &Exit, [_, _, inside]: &[Service; 3]) -> Vec<Foreign> {
    let (lab, mut flows) = (&world.lab, Vec::new());
    let client = lab.outside(Network::Red);
    for family in Family::BOTH {
        let of = |all: &[IpAddr]| *all.iter().find(|ip| Family::of(**ip) == family).unwrap();
        let node = lab.node_address("n1", Network::Red, family);
        let all: [(&str, Arc<Host>, FlowKind, IpAddr, u16); 12] = [
            ("pod to outside", lab.pod("f"), FlowKind::Udp, family.destination(), PORT),
            ("pod to outside", lab.pod("f"), FlowKind::Tcp, family.destination(), PORT),
            ("pod to pod", lab.pod("f"), FlowKind::Tcp, lab.pod("g").address(family), PORT),
            ("pod to endpoint", lab.pod("f"), FlowKind::Udp, lab.pod("a").address(family), PORT),
            ("endpoint to pod", lab.pod("a"), FlowKind::Tcp, lab.pod("g").address(family), PORT),
            ("pod to node", lab.pod("f"), FlowKind::Udp, lab.node_address("n2", Network::Red, family), PORT),
            ("endpoint to ClusterIP", lab.pod("a"), FlowKind::UdpEach, of(&inside.cluster), PORT),
            ("endpoint to ClusterIP", lab.pod("a"), FlowKind::Tcp, of(&inside.cluster), PORT),
            ("endpoint to ClusterIP", lab.pod("a"), FlowKind::Udp, of(&inside.cluster), PORT),
            ("node to outside", lab.node("n1"), FlowKind::Tcp, family.destination(), PORT),
            ("outside to another port", client.clone(), FlowKind::UdpEach, exit.address(family), 9090),
            ("outside to a node's port", client.clone(), FlowKind::UdpEach, node, 30090),
        ];
        for (what, host, kind, to, port) in all {
            let flow = host.flow(kind, to, port, 20);
            assert!(flow.answers(2, PATIENCE), "{what}, {kind:?} to {to}: {:?}", flow.report());
            flows.push(Foreign { what: format!("{what}, {kind:?} to {to}"), flow });
        }
    }
    flows
}

/// What pods sent out had a source that its network and its service allow, all the time; and what had opted in never left
/// as the node from then on.
fn never_wrong(world: &World, exit: &Exit, younger: &Exit, [red, blue]: [&Wire; 2], served: Instant) {
    let outside = |packet: &Packet| Family::BOTH.iter().any(|family| packet.destination == family.destination());
    let asks = |packet: &Packet, pod: &str| packet.client.as_deref() == Some(pod) && outside(packet);
    let node = Family::BOTH.map(|family| world.lab.node_address("n1", Network::Red, family)).to_vec();
    let pods = [
        ("a", [node.clone(), exit.external.clone()].concat(), exit.external.clone()),
        ("b", [node.clone(), younger.external.clone()].concat(), Vec::new()),
        ("f", node.clone(), Vec::new()),
    ];
    for (pod, on_red, on_blue) in pods {
        let wrong = red.wrong(|packet| !asks(packet, pod) || on_red.contains(&packet.source));
        assert!(wrong.is_empty(), "{wrong:?}");
        let wrong = blue.wrong(|packet| !asks(packet, pod) || on_blue.contains(&packet.source));
        assert!(wrong.is_empty(), "{wrong:?}");
    }
    let wrong = red.wrong_since(served, |packet| !asks(packet, "a") || !node.contains(&packet.source));
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(red.has(|packet| asks(packet, "f") && packet.protocol == Protocol::Tcp));
    assert_eq!((red.lost(), blue.lost()), (0, 0));
}
