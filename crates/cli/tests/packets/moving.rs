//! Addresses of EgressIPs that move from one node to another: who answers for them, and what packets have meanwhile.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use egret_netlab::{
    Family, FlowKind, Host, Lab, Network, PORT, Packet, Profile, Protocol, Wire, alone, test_name, until,
};

use crate::egress_ip::{finds, put, router};
use crate::objects::{Way, way};
use crate::world::{PATIENCE, World, from_both, goes, stays_in};

/// N15: a neighbour that keeps the old place for half a minute would send all replies there.
#[test]
fn neighbours_are_told_where_an_address_is_now() {
    alone(test_name!(), &[], || {
        from_both(2, |mut world| {
            for (node, pod) in [("n1", "a"), ("n2", "c")] {
                world.lab.add_pod(node, pod).unwrap();
                router(&world.lab.node(node), "eth1", 200);
            }
            world.start("n1");
            world.start("n2");
            let way = way();
            put(&mut world, &[&way], &["a", "c"]);
            world.serves("n1", &["a"]);
            goes(&world, "a", "blue", &way.ips);
            world.says("n2", "EgressIP exit", "elsewhere");
            stays_in(&world, "c");
            for (holder, pod, other) in [("n2", "c", "a"), ("n1", "a", "c"), ("n2", "c", "a")] {
                put(&mut world, &[&Way { node: holder, ..way.clone() }], &["a", "c"]);
                world.shows(holder, |view| finds(view, "EgressIP exit", &["active"]));
                // Before anything is sent: who still knows the old place learns the new one.
                let mac = mac(&world.lab.node(holder));
                for ip in &way.ips {
                    // Who knows none any more asks anew.
                    let shown = || neighbour(&world.lab.outside(Network::Blue), *ip);
                    let known = || shown().contains(&mac) || !shown().contains("lladdr");
                    assert!(until(PATIENCE, known), "{ip} is not {mac}\n{}", world.said(holder));
                }
                goes(&world, pod, "blue", &way.ips);
                stays_in(&world, other);
            }
            world.clean_up("n1");
            world.clean_up("n2");
        })
    });
}

/// Whoever claims an address that is a node's by right is heard, and everybody is told where it is.
#[test]
fn an_address_is_defended() {
    alone(test_name!(), &[], || {
        from_both(2, |mut world| {
            let [n1, n2] = ["n1", "n2"].map(|name| world.lab.node(name));
            router(&n1, "eth1", 200);
            world.lab.add_pod("n1", "a").unwrap();
            world.start("n1");
            let way = way();
            put(&mut world, &[&way], &["a"]);
            world.serves("n1", &["a"]);
            goes(&world, "a", "blue", &way.ips);
            // What is said again after an address was taken has been said.
            thread::sleep(Duration::from_secs(4));
            let (blue, ip) = (world.lab.outside(Network::Blue), way.ips[0]);
            let stale = format!("neigh replace {ip} lladdr {} dev eth0 nud stale", mac(&n2));
            blue.ip([stale.as_str()]).unwrap();
            // Sends with it, and asks everybody for whom it sends to.
            n2.ip([&format!("addr add {ip}/32 dev eth1"), "neigh flush dev eth1"]).unwrap();
            n2.inside(|| UdpSocket::bind((ip, 0)).unwrap().send_to(b"x", (blue.addresses()[0], 9)).unwrap());
            let known = || neighbour(&blue, ip).contains(&mac(&n1));
            assert!(until(PATIENCE, known), "{}\n{}", neighbour(&blue, ip), world.said("n1"));
            n2.ip([format!("addr del {ip}/32 dev eth1").as_str()]).unwrap();
            goes(&world, "a", "blue", &way.ips);
            world.clean_up("n1");
        })
    });
}

/// The hardware address of a node on the second network.
fn mac(node: &Host) -> String {
    let shown = node.run(["ip", "-o", "link", "show", "dev", "eth1"]).unwrap();
    shown.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap().to_owned()
}

/// Where a host thinks that a neighbour is.
fn neighbour(host: &Host, ip: IpAddr) -> String {
    host.run(["ip", "neighbour", "show", &ip.to_string()]).unwrap()
}

/// Whether a host has these addresses, asked without starting anything.
fn holds(host: &Host, ip: IpAddr) -> bool {
    host.inside(|| {
        let file = if ip.is_ipv4() { "fib_trie" } else { "if_inet6" };
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap();
        match ip {
            IpAddr::V4(_) => local(&text, ip),
            IpAddr::V6(ip) => text.contains(&ip.octets().map(|byte| format!("{byte:02x}")).concat()),
        }
    })
}

/// Local, whatever the depth of the trie.
fn local(trie: &str, ip: IpAddr) -> bool {
    let mut lines = trie.lines();
    while let Some(line) = lines.next() {
        if line.trim_start() == format!("|-- {ip}") && lines.next().is_some_and(|next| next.contains("/32 host LOCAL"))
        {
            return true;
        }
    }
    false
}

/// I1 and I2.
#[test]
fn an_address_that_moves_is_never_on_two_nodes_and_no_packet_has_a_wrong_source() {
    alone(test_name!(), &[], || {
        from_both(2, |mut world| {
            for (node, pod) in [("n1", "a"), ("n2", "c")] {
                world.lab.add_pod(node, pod).unwrap();
                router(&world.lab.node(node), "eth1", 200);
            }
            world.start("n1");
            world.start("n2");
            let way = way();
            put(&mut world, &[&way], &["a", "c"]);
            world.serves("n1", &["a"]);
            world.serves("n2", &["c"]);
            let wires = [Network::Red, Network::Blue].map(|network| world.lab.wire(network).unwrap());
            let flows: Vec<_> = [("a", Family::V4), ("a", Family::V6), ("c", Family::V4), ("c", Family::V6)]
                .into_iter()
                .flat_map(|(pod, family)| {
                    let host = world.lab.pod(pod);
                    [FlowKind::Udp, FlowKind::TcpEach].map(|kind| host.flow(kind, family.destination(), PORT, 25))
                })
                .collect();
            let nodes = ["n1", "n2"].map(|name| world.lab.node(name));
            let (over, ips) = (AtomicBool::new(false), way.ips.clone());
            let both = thread::scope(|scope| {
                let watcher = scope.spawn(|| on_both(&nodes, &ips, &over));
                for holder in ["n2", "n1", "n2", "n1", "n2"] {
                    put(&mut world, &[&Way { node: holder, ..way.clone() }], &["a", "c"]);
                    world.shows(holder, |view| finds(view, "EgressIP exit", &["active"]));
                    goes(&world, if holder == "n1" { "a" } else { "c" }, "blue", &way.ips);
                }
                over.store(true, Ordering::Relaxed);
                watcher.join().unwrap()
            });
            assert_eq!(both.0, Vec::<IpAddr>::new(), "on both nodes at once, in {} looks", both.1);
            assert!(both.1 > 20, "{both:?}");
            for flow in flows {
                let report = flow.stop();
                assert!(report.sources().iter().all(|source| way.ips.contains(source)), "{report:?}");
            }
            only_with(&world, &way.ips, [&wires[0], &wires[1]]);
            world.clean_up("n1");
            world.clean_up("n2");
        })
    });
}

/// The addresses that were on both nodes at the same time, and how often it was looked.
fn on_both([n1, n2]: &[Arc<Host>; 2], ips: &[IpAddr], over: &AtomicBool) -> (Vec<IpAddr>, u32) {
    let (mut both, mut looks) = (Vec::new(), 0);
    let start = Instant::now();
    // A test that fails does not say that it is over.
    while !over.load(Ordering::Relaxed) && start.elapsed() < PATIENCE * 4 {
        for ip in ips {
            looks += 1;
            // The second look at the first node tells that it still had it while the other did.
            if holds(n1, *ip) && holds(n2, *ip) && holds(n1, *ip) {
                both.push(*ip);
            }
        }
    }
    (both, looks)
}

/// What the pods `a` and `c` sent outside had one of these sources, and was on the second network.
fn only_with(world: &World, ips: &[IpAddr], [red, blue]: [&Wire; 2]) {
    let nodes: Vec<IpAddr> = world.lab.nodes().iter().flat_map(|node| node.addresses().to_vec()).collect();
    let asks = |packet: &Packet| {
        let outside = Family::BOTH.iter().any(|family| packet.destination == family.destination());
        // That it does not have an address any more a node says itself, and quotes whom the answer is for.
        let own = packet.protocol == Protocol::IcmpError && nodes.contains(&packet.source);
        outside && !own && packet.client.as_deref().is_some_and(|client| ["a", "c"].contains(&client))
    };
    let wrong = red.wrong(|packet| !asks(packet));
    assert!(wrong.is_empty(), "{wrong:?}\n{}", world.said("n1"));
    let wrong = blue.wrong(|packet| !asks(packet) || ips.contains(&packet.source));
    assert!(wrong.is_empty(), "{wrong:?}\n{}", world.said("n1"));
    assert!(blue.has(asks));
    assert_eq!((red.lost(), blue.lost()), (0, 0));
}

/// Agents on both nodes, of which the first holds an address for its pod `a`; with what is on both networks.
fn held_by_n1(world: &mut World) -> (Way, [Wire; 2]) {
    world.lab.add_pod("n1", "a").unwrap();
    for node in ["n1", "n2"] {
        router(&world.lab.node(node), "eth1", 200);
        world.start(node);
    }
    let way = way();
    put(world, &[&way], &["a"]);
    world.serves("n1", &["a"]);
    (way, [Network::Red, Network::Blue].map(|network| world.lab.wire(network).unwrap()))
}

/// The end of a connection that was forgotten belongs to none, so that nobody gives it another source.
#[test]
fn what_is_left_of_its_connections_is_kept_in_with_a_pod() {
    alone(test_name!(), &[], || {
        from_both(2, |mut world| {
            let (way, wires) = held_by_n1(&mut world);
            let pod = world.lab.pod("a");
            let flows = Family::BOTH.map(|family| pod.flow(FlowKind::Tcp, family.destination(), PORT, 25));
            assert!(flows.iter().all(|flow| flow.answers(2, PATIENCE)));
            put(&mut world, &[&Way { node: "n2", ..way.clone() }], &["a"]);
            world.says("n1", "EgressIP exit", "elsewhere");
            for flow in flows {
                let report = flow.stop();
                assert!(report.unanswered() > 0, "{report:?}");
            }
            // Meanwhile its end is said again and again.
            stays_in(&world, "a");
            for wire in wires {
                let wrong = wire.wrong(|packet| !pod.addresses().contains(&packet.source));
                assert!(wrong.is_empty(), "{wrong:?}\n{}", world.said("n1"));
                assert_eq!(wire.lost(), 0);
            }
            world.clean_up("n1");
            world.clean_up("n2");
        })
    });
}

/// With OVN, which leads pods to the node that holds the address, before or after that node has it.
#[test]
fn an_address_moves_under_a_flow_that_ovn_leads_to_it() {
    alone(test_name!(), &[], || {
        for profile in Profile::BOTH {
            let mut world = World::new(Lab::builder().nodes(2).blue(&[1, 2]).profile(profile).ovn().build().unwrap());
            world.options(&["--datapath", "ovn"]);
            let (way, wires) = held_by_n1(&mut world);
            let flows =
                Family::BOTH.map(|family| world.lab.pod("a").flow(FlowKind::Udp, family.destination(), PORT, 25));
            goes(&world, "a", "blue", &way.ips);
            // First the node, then OVN; then the other way round.
            put(&mut world, &[&Way { node: "n2", ..way.clone() }], &["a"]);
            world.shows("n2", |view| finds(view, "EgressIP exit", &["active"]));
            stays_in(&world, "a");
            world.lab.reroute("a", "n2").unwrap();
            goes(&world, "a", "blue", &way.ips);
            world.lab.unreroute("a").unwrap();
            stays_in(&world, "a");
            put(&mut world, &[&way], &["a"]);
            world.shows("n1", |view| finds(view, "EgressIP exit", &["active"]));
            goes(&world, "a", "blue", &way.ips);
            for flow in flows {
                assert!(flow.answers(2, PATIENCE));
                assert_eq!(flow.stop().sources().len(), 1);
            }
            only_with(&world, &way.ips, [&wires[0], &wires[1]]);
            world.clean_up("n1");
            world.clean_up("n2");
        }
        Ok(())
    });
}
