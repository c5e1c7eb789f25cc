//! EgressIP on secondary interfaces: what the reference describes, without its defects. Their numbers are in the names'
//! comments.

use std::net::IpAddr;

use egret_netlab::{Family, Host, Need, Network, PORT, alone, test_name, until};
use serde_json::Value;

use crate::nonfunctional::walk;
use crate::objects::{Way, namespace, parse, pod, way, web};
use crate::walk::ADDRESS_WALK;
use crate::world::{PATIENCE, World, from_both, goes, rules, stays_in};

/// The EgressIPs, and the pods of app `web` that run, in a namespace that they select.
pub(crate) fn put(world: &mut World, ways: &[&Way], pods: &[&str]) {
    let mut objects: Vec<Value> = ways.iter().map(|way| way.object()).collect();
    objects.extend(pods.iter().map(|name| pod(&world.lab, name, "web", "Running")));
    objects.push(namespace("yes"));
    world.more(objects);
}

/// What a second network's DHCP tells a node: a router there, after that of the primary one.
pub(crate) fn router(node: &Host, link: &str, last: u16) {
    let v4 = format!("route replace default via 192.168.60.{last} dev {link} metric 500");
    let v6 = format!("-6 route replace default via fd00:60::{last} dev {link} metric 2048");
    node.ip([v4.as_str(), &v6]).unwrap();
}

/// Both addresses of a node on the primary network.
fn own(world: &World, node: &str) -> [IpAddr; 2] {
    Family::BOTH.map(|family| world.lab.node_address(node, Network::Red, family))
}

/// Whether these addresses are on a link.
fn on(node: &Host, link: &str, ips: &[IpAddr]) -> bool {
    let shown = node.output(["ip", "-o", "address", "show", "dev", link]).unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    ips.iter().all(|ip| shown.contains(&format!(" {ip}/")))
}

/// The table of a link.
fn table_of(node: &Host, link: &str) -> String {
    let shown = node.run(["ip", "-o", "link", "show", "dev", link]).unwrap();
    let index: u32 = shown.split(':').next().unwrap().trim().parse().unwrap();
    (1000 + index).to_string()
}

/// The routes of a table, without what tells where they are from.
fn routes(node: &Host, table: &str, link: &str) -> Vec<String> {
    let shown = ["-4", "-6"].map(|family| node.run(["ip", family, "route", "show", "table", table]).unwrap());
    let of_link = |line: &&str| line.contains(&format!("dev {link} ")) && !line.starts_with("fe80");
    let mut routes: Vec<String> = shown.iter().flat_map(|text| text.lines()).filter(of_link).map(bare).collect();
    routes.sort();
    routes
}

fn bare(line: &str) -> String {
    let mut bare = Vec::new();
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "proto" | "src" | "scope" | "pref" => drop(words.next()),
            other => bare.push(other),
        }
    }
    bare.join(" ")
}

/// One node with the pods `a` and `b`, a router on the second network, and the EgressIP for `a`.
fn served(mut world: World, way: &Way) -> World {
    for pod in ["a", "b"] {
        world.lab.add_pod("n1", pod).unwrap();
    }
    router(&world.lab.node("n1"), "eth1", 200);
    world.start("n1");
    put(&mut world, &[way], &["a"]);
    world.serves("n1", &["a"]);
    world.shows("n1", |view| finds(view, "EgressIP exit", &["active"]));
    world
}

#[test]
fn pods_leave_with_the_address_on_the_link_of_its_network() {
    alone(test_name!(), &[], || {
        from_both(1, |world| {
            let way = way();
            let mut world = served(world, &way);
            let node = world.lab.node("n1");
            assert!(on(&node, "eth1", &way.ips) && !on(&node, "eth0", &way.ips));
            let table = table_of(&node, "eth1");
            assert_eq!(routes(&node, &table, "eth1"), routes(&node, "main", "eth1"));
            let mut asked: Vec<String> =
                rules(&world, "n1").into_iter().filter(|rule| rule.starts_with("6000:")).collect();
            asked.sort();
            let sources = world.lab.pod("a").addresses().to_vec();
            let mut expected: Vec<String> =
                sources.iter().map(|ip| format!("6000: from {ip} lookup {table} proto 68")).collect();
            expected.sort();
            assert_eq!(asked, expected);
            walk(&node, ADDRESS_WALK);
            goes(&world, "a", "blue", &way.ips);
            goes(&world, "b", "ext", &own(&world, "n1"));
            // Inside the cluster nothing is different.
            let to = own(&world, "n1");
            assert_eq!(world.lab.pod("a").tcp(to[0], PORT).source(), Some(world.lab.pod("a").address(Family::V4)));
            put(&mut world, &[], &["a"]);
            world.serves("n1", &[]);
            goes(&world, "a", "ext", &to);
            world.is_as_before("n1");
            world.clean_up("n1");
        })
    });
}

/// The longest prefix wins, and addresses that say nothing of a network do not count (reference 5.1.2).
#[test]
fn the_link_with_the_longest_prefix_has_the_address() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            world.lab.add_pod("n1", "a").unwrap();
            let node = world.lab.node("n1");
            node.ip([
                "link add eth2 type veth peer name void",
                "link set void addrgenmode none",
                "link set eth2 addrgenmode none",
                "link set void up",
                "link set eth2 up",
            ])
            .unwrap();
            // Wider, or no network of the node's own but keepalived's.
            node.ip([
                "addr add 192.168.0.9/16 dev eth2",
                "addr add 192.168.60.48/28 dev eth2 label eth2:vip",
                "addr add fd00::9/16 dev eth2 nodad",
            ])
            .unwrap();
            router(&node, "eth1", 200);
            world.start("n1");
            let way = way();
            put(&mut world, &[&way], &["a"]);
            world.serves("n1", &["a"]);
            assert!(on(&node, "eth1", &way.ips), "{}", node.run(["ip", "address"]).unwrap());
            goes(&world, "a", "blue", &way.ips);
            world.clean_up("n1");
        })
    });
}

/// N16: what DHCP or a routing daemon changes later is followed.
#[test]
fn copied_routes_follow_the_main_table() {
    alone(test_name!(), &[], || {
        from_both(1, |world| {
            let way = way();
            let mut world = served(world, &way);
            let node = world.lab.node("n1");
            let table = table_of(&node, "eth1");
            let blue = world.lab.outside(Network::Blue);
            blue.ip(["addr add 192.168.60.201/24 dev eth0", "addr add fd00:60::201/64 dev eth0 nodad"]).unwrap();
            router(&node, "eth1", 201);
            node.ip(["route add 203.0.113.0/24 via 192.168.60.200 dev eth1"]).unwrap();
            let follows = || routes(&node, &table, "eth1") == routes(&node, "main", "eth1");
            assert!(until(PATIENCE, follows), "{:?}\n{}", routes(&node, &table, "eth1"), world.said("n1"));
            let shown = routes(&node, &table, "eth1").join("\n");
            assert!(
                shown.contains("default via 192.168.60.201") && shown.contains("default via fd00:60::201"),
                "{shown}"
            );
            assert!(!shown.contains(".200 dev eth1 metric") && shown.contains("203.0.113.0/24"), "{shown}");
            goes(&world, "a", "blue", &way.ips);
            // Without a router none is made up, and the primary network's is not taken instead.
            node.ip(["route del default dev eth1", "-6 route del default dev eth1"]).unwrap();
            assert!(
                until(PATIENCE, || !routes(&node, &table, "eth1").concat().contains("default")),
                "{}",
                world.said("n1")
            );
            stays_in(&world, "a");
            router(&node, "eth1", 200);
            assert!(until(PATIENCE, follows), "{}", world.said("n1"));
            goes(&world, "a", "blue", &way.ips);
            node.ip(["route del 203.0.113.0/24"]).unwrap();
            world.clean_up("n1");
        })
    });
}

/// Whether exactly these things are said of an object, of either family.
pub(crate) fn finds(view: &Value, about: &str, findings: &[&str]) -> bool {
    let reports = view["reports"].as_array().into_iter().flatten().filter(|report| report["about"] == about);
    let mut said: Vec<&str> = reports.filter_map(|report| report["finding"]["finding"].as_str()).collect();
    said.dedup();
    view["settled"] == true && said == findings
}

#[test]
fn a_link_that_fails_keeps_its_pods_in() {
    alone(test_name!(), &[], || {
        from_both(1, |world| {
            let way = way();
            let mut world = served(world, &way);
            let node = world.lab.node("n1");
            node.run(["ip", "link", "set", "eth1", "down"]).unwrap();
            world.says("n1", "EgressIP exit", "no-link");
            stays_in(&world, "a");
            goes(&world, "b", "ext", &own(&world, "n1"));
            crate::nonfunctional::up_again(&node);
            router(&node, "eth1", 200);
            world.shows("n1", |view| finds(view, "EgressIP exit", &["active"]));
            // It was so before the router was there, too.
            world.leaves_as("a", &way.ips);
            goes(&world, "a", "blue", &way.ips);
            world.clean_up("n1");
        })
    });
}

/// D2, and N1, N19: one key, one rule, two objects.
#[test]
fn of_two_egress_ips_the_older_has_the_pod_and_the_younger_stands_by() {
    alone(test_name!(), &[], || {
        from_both(1, |world| {
            let older = way();
            let younger = Way { name: "later", created: 2, ips: parse(&["192.168.60.51", "fd00:60::51"]), ..way() };
            let mut world = served(world, &older);
            put(&mut world, &[&older, &younger], &["a"]);
            world.says("n1", "EgressIP later", "standby");
            goes(&world, "a", "blue", &older.ips);
            put(&mut world, &[&younger], &["a"]);
            world.shows("n1", |view| finds(view, "EgressIP later", &["active"]));
            goes(&world, "a", "blue", &younger.ips);
            assert!(!on(&world.lab.node("n1"), "eth1", &older.ips));
            // What comes back is the older one again.
            put(&mut world, &[&older, &younger], &["a"]);
            world.says("n1", "EgressIP later", "standby");
            goes(&world, "a", "blue", &older.ips);
            world.clean_up("n1");
        })
    });
}

/// D1.
#[test]
fn an_egress_service_comes_before_an_egress_ip() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            let (exit, way) = (web(&["a"]), way());
            world.lab.add_pod("n1", "a").unwrap();
            router(&world.lab.node("n1"), "eth1", 200);
            world.expose(&exit, "n1");
            world.start("n1");
            put(&mut world, &[&way], &["a"]);
            world.shows("n1", |view| finds(view, "EgressIP exit", &["active"]));
            goes(&world, "a", "blue", &way.ips);
            world.put(&exit);
            world.says("n1", "EgressIP exit", "standby");
            goes(&world, "a", "blue", &exit.external);
            world.remove("web");
            world.shows("n1", |view| finds(view, "EgressIP exit", &["active"]));
            goes(&world, "a", "blue", &way.ips);
            world.clean_up("n1");
        })
    });
}

/// N9: a pod that has ended may have given its address to another.
#[test]
fn pods_that_end_or_are_not_selected_any_more_are_let_go() {
    alone(test_name!(), &[], || {
        from_both(1, |world| {
            let way = way();
            let mut world = served(world, &way);
            let node = own(&world, "n1");
            let states = |world: &World| {
                [
                    ("the pod has ended", pod(&world.lab, "a", "web", "Succeeded"), namespace("yes")),
                    ("its label is another", pod(&world.lab, "a", "other", "Running"), namespace("yes")),
                    ("its namespace's label is another", pod(&world.lab, "a", "web", "Running"), namespace("no")),
                ]
            };
            for (what, pod, namespace) in states(&world) {
                println!("{what}");
                world.more(vec![way.object(), pod, namespace]);
                world.serves("n1", &[]);
                assert!(!rules(&world, "n1").iter().any(|rule| rule.starts_with("6000:")));
                goes(&world, "a", "ext", &node);
                put(&mut world, &[&way], &["a"]);
                world.serves("n1", &["a"]);
                goes(&world, "a", "blue", &way.ips);
            }
            world.clean_up("n1");
        })
    });
}

/// Another link of a node on the second network.
fn plug(node: &Host, link: &str) {
    let port = format!("{}-{link}", node.name());
    let add = ["ip", "-n", "sw-blue", "link", "add", &port, "type", "veth", "peer", "name", link, "netns", node.name()];
    node.run(add).unwrap();
    node.run(["ip", "-n", "sw-blue", "link", "set", &port, "master", "br0", "up"]).unwrap();
    node.ip([&format!("link set {link} addrgenmode none"), format!("link set {link} up").as_str()]).unwrap();
    // It carries packets a moment later, and has its route to groups by then.
    let up = || node.run(["ip", "-6", "route", "show", "table", "local", "dev", link]).unwrap().contains("multicast");
    assert!(until(PATIENCE, up));
}

/// Gives a link the addresses of `n1` on the second network.
fn address(node: &Host, link: &str) {
    node.ip([
        format!("addr add 192.168.60.11/24 dev {link}").as_str(),
        &format!("addr add fd00:60::11/64 dev {link} nodad"),
        &format!("addr add fe80::11/64 dev {link} nodad"),
    ])
    .unwrap();
}

/// Takes them away again.
fn no_address(node: &Host, link: &str) {
    let addresses = ["192.168.60.11/24", "fd00:60::11/64", "fe80::11/64"];
    let lines = addresses.map(|address| format!("addr del {address} dev {link}"));
    node.ip(lines.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
}

/// N2.
#[test]
fn a_link_that_appears_later_is_used() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            world.lab.add_pod("n1", "a").unwrap();
            let node = world.lab.node("n1");
            node.run(["ip", "link", "del", "eth1"]).unwrap();
            world.start("n1");
            let way = way();
            put(&mut world, &[&way], &["a"]);
            world.says("n1", "EgressIP exit", "no-link");
            stays_in(&world, "a");
            plug(&node, "eth9");
            address(&node, "eth9");
            router(&node, "eth9", 200);
            world.shows("n1", |view| finds(view, "EgressIP exit", &["active"]));
            world.leaves_as("a", &way.ips);
            assert!(on(&node, "eth9", &way.ips));
            goes(&world, "a", "blue", &way.ips);
            // It goes again, with everything on it.
            node.run(["ip", "link", "del", "eth9"]).unwrap();
            world.says("n1", "EgressIP exit", "no-link");
            stays_in(&world, "a");
            world.clean_up("n1");
        })
    });
}

/// N3.
#[test]
fn a_subnet_that_moves_to_another_link_takes_the_address_along() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            world.lab.add_pod("n1", "a").unwrap();
            let node = world.lab.node("n1");
            plug(&node, "eth2");
            // Else both links answer for what is on either.
            node.set_sysctl("ipv4/conf/all/arp_ignore", "1").unwrap();
            router(&node, "eth1", 200);
            world.start("n1");
            let way = way();
            put(&mut world, &[&way], &["a"]);
            world.serves("n1", &["a"]);
            goes(&world, "a", "blue", &way.ips);
            let (old, new) = (table_of(&node, "eth1"), table_of(&node, "eth2"));
            // There first, so that at no moment the subnet is nowhere, and everything on the old link must be taken away.
            address(&node, "eth2");
            router(&node, "eth2", 200);
            no_address(&node, "eth1");
            assert!(until(PATIENCE, || on(&node, "eth2", &way.ips)), "{}", world.said("n1"));
            world.shows("n1", |view| finds(view, "EgressIP exit", &["active"]));
            let left = || on(&node, "eth1", &way.ips[..1]) || on(&node, "eth1", &way.ips[1..]);
            assert!(until(PATIENCE, || !left()), "{}", world.said("n1"));
            // IPv6 may have moved a moment later.
            assert!(until(PATIENCE, || routes(&node, &old, "eth1").is_empty()), "{:?}", routes(&node, &old, "eth1"));
            assert!(rules(&world, "n1").iter().all(|rule| !rule.contains(&format!("lookup {old} "))));
            assert!(rules(&world, "n1").iter().any(|rule| rule.contains(&format!("lookup {new} "))));
            world.leaves_as("a", &way.ips);
            goes(&world, "a", "blue", &way.ips);
            // Back, so that the node is what it was.
            address(&node, "eth1");
            router(&node, "eth1", 200);
            no_address(&node, "eth2");
            // The routes of IPv4 that a link's last address takes along, in any table.
            node.ip([
                "route add 192.168.60.0/24 dev eth1 table 1234",
                "route add default via 192.168.60.200 table 1234",
            ])
            .unwrap();
            assert!(until(PATIENCE, || on(&node, "eth1", &way.ips)), "{}", world.said("n1"));
            world.clean_up("n1");
        })
    });
}

#[test]
fn an_address_that_somebody_else_has_is_not_taken() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            world.lab.add_pod("n1", "a").unwrap();
            let (node, blue, way) = (world.lab.node("n1"), world.lab.outside(Network::Blue), way());
            router(&node, "eth1", 200);
            blue.ip(["addr add 192.168.60.50/24 dev eth0", "addr add fd00:60::50/64 dev eth0 nodad"]).unwrap();
            world.start("n1");
            put(&mut world, &[&way], &["a"]);
            world.shows("n1", |view| {
                let reports = view["reports"].as_array().into_iter().flatten();
                reports.filter(|report| report["finding"]["finding"] == "contested").count() == 2
            });
            for ip in &way.ips {
                assert!(!on(&node, "eth1", &[*ip]), "{ip}");
            }
            stays_in(&world, "a");
            blue.ip(["addr del 192.168.60.50/24 dev eth0", "addr del fd00:60::50/64 dev eth0"]).unwrap();
            world.shows("n1", |view| finds(view, "EgressIP exit", &["active"]));
            goes(&world, "a", "blue", &way.ips);
            world.clean_up("n1");
        })
    });
}

/// A link of a VRF: its routes are in the VRF's table, and replies come in by the VRF.
#[test]
fn a_link_of_a_vrf_has_the_address_too() {
    alone(test_name!(), &[Need::Vrf], || {
        from_both(1, |mut world| {
            world.lab.add_pod("n1", "a").unwrap();
            let node = world.lab.node("n1");
            crate::use_cases::enslave(&node);
            world.start("n1");
            let way = way();
            put(&mut world, &[&way], &["a"]);
            world.serves("n1", &["a"]);
            assert!(on(&node, "eth1", &way.ips));
            goes(&world, "a", "blue", &way.ips);
            world.clean_up("n1");
        })
    });
}
