//! Others change what is ours, the agent is killed at any moment, files are not to be read, ovnkube-node comes and goes.

use std::thread::sleep;
use std::time::{Duration, Instant};

use egret_netlab::{Family, Host, Network, alone, difference, test_name, until};
use serde_json::Value;

use crate::objects::{Exit, Way, namespace, other, parse, pod, way, web};
use crate::world::{PATIENCE, World, from_both, goes, rules, stays_in};

/// A node with `a` behind an EgressService and `b` behind an EgressIP.
fn busy(mut world: World) -> World {
    let node = world.lab.node("n1");
    for pod in ["a", "b", "f"] {
        world.lab.add_pod("n1", pod).unwrap();
    }
    node.ip([
        "route add default via 192.168.60.200 dev eth1 metric 500",
        "-6 route add default via fd00:60::200 dev eth1 metric 2048",
    ])
    .unwrap();
    let exit = web(&["a"]);
    world.expose(&exit, "n1");
    foreign(&node);
    world.start("n1");
    world.put(&exit);
    wanted(&mut world, &way());
    world.serves("n1", &["a", "b"]);
    world
}

fn wanted(world: &mut World, way: &Way) {
    let pod = pod(&world.lab, "b", "web", "Running");
    world.more(vec![way.object(), pod, namespace("yes")]);
}

/// What others have right beside ours: in our priorities, in our tables, on our link, in the table of our family.
fn foreign(node: &Host) {
    let table = egress_table(node);
    node.ip([
        "rule add pref 5000 from 10.9.9.9 lookup 1234",
        "rule add pref 6000 from 10.9.9.9 lookup main protocol 186",
        "-6 rule add pref 5000 from fd09::9 lookup 1234",
        &format!("route add 203.0.113.0/24 via 192.168.60.200 dev eth1 table {table} proto static"),
        "addr add 192.168.60.77/32 dev eth1",
        "addr add fd00:60::77/128 dev eth1 nodad",
    ])
    .unwrap();
    node.nft("table inet other {\nset service-source-v4 {\ntype ipv4_addr; elements = { 10.9.9.9 };\n}\n}\n").unwrap();
}

/// The table of EgressIPs on `eth1`.
fn egress_table(node: &Host) -> String {
    let shown = node.run(["ip", "-o", "link", "show", "dev", "eth1"]).unwrap();
    (1000 + shown.split(':').next().unwrap().trim().parse::<u32>().unwrap()).to_string()
}

/// How often the agent has healed something.
fn healed(world: &World) -> usize {
    world.said("n1").lines().filter(|line| line.contains("healed=true")).count()
}

/// Does that to the kernel, and waits until it is undone, long before the agent looks by itself. How long that takes is
/// measured in `timing.rs`.
fn heals(world: &World, what: &str, hand: &dyn Fn(&Host)) {
    let node = world.lab.node("n1");
    let whole = node.dump().unwrap();
    world.rests("n1");
    let before = healed(world);
    let start = Instant::now();
    hand(&node);
    assert!(until(PATIENCE, || healed(world) > before), "{what} is not healed\n{}", world.said("n1"));
    println!("{what}: healed after {:?}", start.elapsed());
    world.shows("n1", |view| view["settled"] == true);
    let left = difference(&ours(&whole), &ours(&node.dump().unwrap()));
    assert!(left.is_empty(), "{what} left\n{left}");
}

/// A dump without the tables of others, which nobody puts back.
fn ours(dump: &str) -> String {
    let keep = |line: &&str| !line.starts_with("nft ") || line.starts_with("nft table inet egret");
    dump.lines().filter(keep).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_somebody_takes_away_is_healed_at_once_and_what_is_theirs_stays() {
    alone(test_name!(), &[], || {
        from_both(1, |world| {
            let mut world = busy(world);
            let node = world.lab.node("n1");
            let table = egress_table(&node);
            let pod = |name: &str, family| world.lab.pod(name).address(family).to_string();
            let (a4, a6, b4) = (pod("a", Family::V4), pod("a", Family::V6), pod("b", Family::V4));
            let ip = |words: String| move |node: &Host| node.ip([words.as_str()]).unwrap();
            let nft = |text: String| move |node: &Host| node.nft(&text).unwrap();
            heals(&world, "a rule of an endpoint", &ip(format!("rule del pref 5000 from {a4} lookup 1234")));
            heals(&world, "a rule of an endpoint, IPv6", &ip(format!("-6 rule del pref 5000 from {a6} lookup 1234")));
            heals(&world, "a rule of a pod", &ip(format!("rule del pref 6000 from {b4} lookup {table}")));
            heals(&world, "the rule past the block", &ip("rule del pref 4996".to_owned()));
            heals(&world, "the rule that ends the block", &ip("rule del pref 5001".to_owned()));
            heals(&world, "an element", &nft(format!("delete element inet egret service-snat-v4 {{ {a4} }}")));
            heals(&world, "all elements", &nft("flush set inet egret service-source-v6".to_owned()));
            heals(&world, "another element", &nft("add element inet egret refuse-v4 { 10.244.1.99 }".to_owned()));
            heals(&world, "what is in a chain", &nft("flush chain inet egret guard".to_owned()));
            heals(&world, "another rule in a chain", &nft("add rule inet egret forward counter".to_owned()));
            heals(&world, "the table", &nft("delete table inet egret".to_owned()));
            heals(&world, "an address", &ip("addr del 192.168.60.50/32 dev eth1".to_owned()));
            heals(&world, "an address, IPv6", &ip("addr del fd00:60::50/128 dev eth1".to_owned()));
            heals(&world, "a copied route", &ip(format!("route del default dev eth1 table {table}")));
            heals(&world, "a copied route, IPv6", &ip(format!("-6 route del default dev eth1 table {table}")));
            if node.sysctl("ipv4/conf/all/rp_filter").unwrap() == "1" {
                let set =
                    |name: &'static str, value: &'static str| move |node: &Host| node.set_sysctl(name, value).unwrap();
                heals(&world, "a strict filter", &set("ipv4/conf/eth1/rp_filter", "1"));
                heals(&world, "forwarding", &set("ipv4/conf/eth1/forwarding", "0"));
            }
            goes(&world, "a", "blue", &web(&["a"]).external);
            goes(&world, "b", "blue", &way().ips);
            world.clean_up("n1");
        })
    });
}

/// Firewall tools do that when they start. What others had is theirs to put back.
#[test]
fn a_flush_of_the_whole_ruleset_is_healed() {
    alone(test_name!(), &[], || {
        from_both(1, |world| {
            let mut world = busy(world);
            let node = world.lab.node("n1");
            let all = node.run(["nft", "list", "ruleset"]).unwrap();
            heals(&world, "the whole ruleset", &|node| node.nft("flush ruleset").unwrap());
            // Without what others masquerade, ours still leaves with its addresses.
            goes(&world, "a", "blue", &web(&["a"]).external);
            goes(&world, "b", "blue", &way().ips);
            world.kill("n1");
            node.nft(&format!("flush ruleset\n{all}")).unwrap();
            world.clean_up("n1");
        })
    });
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// One of so many.
    pub(crate) fn throw(&mut self, sides: usize) -> usize {
        // The constants of Knuth's MMIX; the upper bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

#[test]
fn an_agent_that_is_killed_at_any_moment_leaves_nothing_that_the_next_one_or_the_clean_up_stumbles_over() {
    alone(test_name!(), &[], || {
        from_both(1, |world| {
            let mut world = busy(world);
            let mut dice = Dice(20_261_129);
            let networks = [Some("1234"), Some("eth1"), None, Some("4321")];
            for round in 0..16 {
                let pods: &[&str] = [&["a"][..], &["a", "f"], &["f"], &[]][dice.throw(4)];
                let host = ["n1", "n1", "n9"][dice.throw(3)];
                let network = networks[dice.throw(4)];
                world.put(&Exit { network, host, ..web(pods) });
                let ips = [["192.168.60.50", "fd00:60::50"], ["192.168.60.51", "fd00:60::51"]][dice.throw(2)];
                wanted(&mut world, &Way { ips: parse(&ips), ..way() });
                // Within a pass, before one, after one: that is what is to be random, so nothing is waited for.
                sleep(Duration::from_millis(dice.throw(400) as u64));
                world.kill("n1");
                if round % 4 == 3 {
                    println!("{}", world.clean_up("n1").trim_end());
                    let again = world.clean_up("n1");
                    assert_eq!(again, "nothing of Egret's is in this node's kernel\n");
                }
                world.start("n1");
            }
            world.put(&web(&["a"]));
            wanted(&mut world, &way());
            world.serves("n1", &["a", "b"]);
            goes(&world, "a", "blue", &web(&["a"]).external);
            goes(&world, "b", "blue", &way().ips);
            world.clean_up("n1");
        })
    });
}

#[test]
fn an_agent_that_cannot_read_what_is_wanted_touches_nothing() {
    alone(test_name!(), &[], || {
        from_both(1, |world| {
            let mut world = busy(world);
            let node = world.lab.node("n1");
            let whole = node.dump().unwrap();
            let objects = std::fs::read_to_string("/run/objects.json").unwrap();
            // While it runs, what it cannot read changes nothing.
            std::fs::write("/run/objects.json", "kind: [").unwrap();
            let told = || world.said("n1").contains("the objects stay what they were");
            assert!(until(PATIENCE, told), "{}", world.said("n1"));
            std::fs::remove_file("/run/objects.json").unwrap();
            assert_eq!(difference(&whole, &node.dump().unwrap()), "");
            // Nor does it when it is started.
            world.kill("n1");
            for text in [None, Some("kind: [")] {
                if let Some(text) = text {
                    std::fs::write("/run/objects.json", text).unwrap();
                }
                world.start("n1");
                let (said, fine) = world.ends("n1");
                assert!(!fine && said.contains("error:") && said.contains("/run/objects.json"), "{said}");
                assert_eq!(difference(&whole, &node.dump().unwrap()), "");
            }
            goes(&world, "a", "blue", &web(&["a"]).external);
            std::fs::write("/run/objects.json", objects).unwrap();
            world.start("n1");
            world.serves("n1", &["a", "b"]);
            assert_eq!(difference(&whole, &node.dump().unwrap()), "");
            world.clean_up("n1");
        })
    });
}

/// What is said of an object.
fn findings(view: &Value, about: &str) -> Vec<String> {
    let reports = view["reports"].as_array().into_iter().flatten().filter(|report| report["about"] == about);
    let mut said: Vec<String> =
        reports.filter_map(|report| report["finding"]["finding"].as_str().map(str::to_owned)).collect();
    said.dedup();
    said
}

#[test]
fn it_stands_back_for_ovnkube_node_at_once_and_takes_over_after_it() {
    alone(test_name!(), &[], || {
        from_both(1, |world| {
            let mut world = busy(world);
            let node = world.lab.node("n1");
            let (service, address) = ("EgressService default/web", "EgressIP exit");
            node.nft("add table inet ovn-kubernetes").unwrap();
            let says = |service_says: &str, address_says: &str| {
                let start = Instant::now();
                world.shows("n1", |view| {
                    let found = (findings(view, service), findings(view, address));
                    view["settled"] == true && found == (vec![service_says.to_owned()], vec![address_says.to_owned()])
                });
                println!("{service_says} and {address_says} after {:?}", start.elapsed());
            };
            for (chain, service_says, address_says) in
                [("egress-services", "left-to-ovn", "active"), ("egress-ip-snat", "active", "left-to-ovn")]
            {
                world.rests("n1");
                node.nft(&format!("add chain inet ovn-kubernetes {chain}")).unwrap();
                says(service_says, address_says);
                let own: Vec<String> = rules(&world, "n1");
                let of = |priority: &str| own.iter().any(|rule| rule.starts_with(priority) && rule.contains("from 10"));
                assert_eq!((of("5000:"), of("6000:")), (service_says == "active", address_says == "active"), "{own:?}");
                if chain == "egress-services" {
                    goes(&world, "a", "ext", &Family::BOTH.map(|it| world.lab.node_address("n1", Network::Red, it)));
                    goes(&world, "b", "blue", &way().ips);
                } else {
                    goes(&world, "a", "blue", &web(&["a"]).external);
                    // The address may be ovnkube-node's: it stays where it is.
                    assert!(node.run(["ip", "address", "show", "dev", "eth1"]).unwrap().contains("192.168.60.50/32"));
                }
                world.rests("n1");
                node.nft(&format!("delete chain inet ovn-kubernetes {chain}")).unwrap();
                says("active", "active");
                goes(&world, "a", "blue", &web(&["a"]).external);
                goes(&world, "b", "blue", &way().ips);
            }
            node.nft("delete table inet ovn-kubernetes").unwrap();
            world.clean_up("n1");
        })
    });
}

/// What is in the place of an address of ours and not ours is not taken for ours, and stops nothing else.
#[test]
fn an_address_that_somebody_else_put_on_the_link_stays_theirs() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            for pod in ["b", "f"] {
                world.lab.add_pod("n1", pod).unwrap();
            }
            let (node, plain) = (world.lab.node("n1"), Exit { network: None, ..other(&["f"]) });
            world.expose(&plain, "n1");
            node.ip(["addr add 192.168.60.50/32 dev eth1", "addr add fd00:60::50/128 dev eth1 nodad"]).unwrap();
            world.start("n1");
            wanted(&mut world, &way());
            world.shows("n1", |view| view["settled"] == true && findings(view, "EgressIP exit") == ["contested"]);
            stays_in(&world, "b");
            world.put(&plain);
            world.serves("n1", &["b", "f"]);
            goes(&world, "f", "ext", &plain.external);
            world.clean_up("n1");
            // Once they take it away it is ours.
            world.start("n1");
            node.ip(["addr del 192.168.60.50/32 dev eth1", "addr del fd00:60::50/128 dev eth1"]).unwrap();
            world.shows("n1", |view| view["settled"] == true && findings(view, "EgressIP exit") == ["active"]);
            world.remove("other");
            world.more(Vec::new());
            world.serves("n1", &[]);
            node.ip(["addr add 192.168.60.50/32 dev eth1", "addr add fd00:60::50/128 dev eth1 nodad"]).unwrap();
            world.clean_up("n1");
        })
    });
}
