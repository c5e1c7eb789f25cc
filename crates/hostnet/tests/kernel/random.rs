//! Any state that can be wanted is the state that is found once its steps are done.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use egret_core::Family;
use egret_hostmodel::{
    Business, EgressAddress, Element, Elements, Hop, Key, Mark, PartKind, ROLES, Route, Rule, RuleAction, Set,
    Settings, Shape, State, Table, Transport, Value, ValueKind, Way,
};
use egret_netlab::test_name;
use ipnet::IpNet;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};

use crate::namespace::{alone, dump, same};
use crate::node::Node;

fn ip(v6: bool) -> impl Strategy<Value = IpAddr> {
    (0..6u8).prop_map(move |last| match v6 {
        false => IpAddr::V4(Ipv4Addr::new(10, 244, 1, last)),
        // One that is written with an IPv4 address in it, and one with a run of zeros to be left out.
        true if last == 0 => "::ffff:10.1.2.3".parse().unwrap(),
        true => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, last.into())),
    })
}

fn family(v6: bool) -> Family {
    if v6 { Family::V6 } else { Family::V4 }
}

/// Prefixes that do not overlap, neighbours among them, and single addresses.
fn prefix(v6: bool) -> impl Strategy<Value = IpNet> {
    let texts = if v6 {
        ["fd00::/64", "fd00:0:0:1::/64", "fd01::1/128", "fd01::2/128", "fe80::/10", "ff00::/8"]
    } else {
        ["10.0.0.0/16", "10.1.0.0/16", "10.3.0.0/32", "10.3.0.1/32", "224.0.0.0/4", "255.255.255.255/32"]
    };
    prop::sample::select(texts.map(|text| text.parse().unwrap()).to_vec())
}

fn part(set: Set) -> BoxedStrategy<Key> {
    use PartKind::{Address, Link, Port, Prefix, Protocol};
    let transport = prop::sample::select(vec![Transport::Tcp, Transport::Udp, Transport::Sctp]);
    let link = prop::sample::select(vec!["eth1", "a.b", "tcp", "v-p@x", "0"]);
    match set.role.key() {
        [Address] => ip(set.v6).prop_map(Key::Source).boxed(),
        [Prefix] => prefix(set.v6).prop_map(Key::Prefix).boxed(),
        [Address, Address] => (ip(set.v6), ip(set.v6)).prop_map(|(a, b)| Key::Pair(a, b)).boxed(),
        [Address, Link] => (ip(set.v6), link).prop_map(|(a, link)| Key::Exit(a, link.to_owned())).boxed(),
        [Address, Protocol, Port] => (ip(set.v6), transport, prop_oneof![Just(22), Just(80), 0..=u16::MAX])
            .prop_map(|(a, b, c)| Key::Entry(a, b, c))
            .boxed(),
        other => panic!("{other:?}"),
    }
}

fn element(set: Set, paths: Vec<u8>) -> BoxedStrategy<Element> {
    let value = match set.role.value() {
        None => Just(None).boxed(),
        Some(ValueKind::Address) => ip(set.v6).prop_map(|ip| Some(Value::Address(ip))).boxed(),
        Some(ValueKind::Way) => {
            let ways: Vec<Way> = paths.into_iter().map(Way::Path).chain([Way::Source, Way::Lost]).collect();
            prop::sample::select(ways).prop_map(|way| Some(Value::Way(way))).boxed()
        }
    };
    let long = "x/".repeat(100);
    let comments = ["", "default/web", "it's 100 % \\n #1; {}", "äöü", &long].map(str::to_owned).to_vec();
    // nft 1.0.6 loses the comments of intervals now and then; we give them none.
    let comments = if set.role.key() == [PartKind::Prefix] { vec![String::new()] } else { comments };
    (value, prop::sample::select(comments))
        .prop_map(|(value, comment)| Element { value, ..Element::of(&comment) })
        .boxed()
}

fn table() -> impl Strategy<Value = Table> {
    let paths = btree_map(1..=125u8, "[a-z0-9.-]{1,15}", 0..3);
    paths.prop_flat_map(|paths| {
        let numbers: Vec<u8> = paths.keys().copied().collect();
        let sets = ROLES.into_iter().flat_map(|role| [false, true].map(|v6| Set { role, v6 }));
        let contents: Vec<_> = sets
            .map(|set| {
                btree_map(part(set), element(set, numbers.clone()), 0..4).prop_map(move |elements| (set, elements))
            })
            .collect();
        contents.prop_map(move |contents| Table {
            shape: Some(Shape { settings: Settings::default(), paths: paths.clone() }),
            elements: contents.into_iter().filter(|(_, elements)| !elements.is_empty()).collect::<Elements>(),
        })
    })
}

fn rule() -> impl Strategy<Value = Rule> {
    any::<bool>().prop_flat_map(|v6| {
        let settings = Settings::default();
        let priority = prop::sample::select(vec![998, 4996, 5000, 5001, 5002, 6000]);
        let marks = vec![settings.foreign(), settings.mark(Business::Service), settings.mark(Business::Reply(3))];
        let mark: BoxedStrategy<Option<Mark>> = option::of(prop::sample::select(marks)).boxed();
        let action = prop_oneof![
            prop::sample::select(vec![7, 254, 1234, 680_005]).prop_map(RuleAction::Lookup),
            Just(RuleAction::Unreachable),
            Just(RuleAction::Nop),
            (1..3u32).prop_map(|further| RuleAction::Goto(7000 + further)),
        ];
        let link = prop::sample::select(vec!["eth1".to_owned(), "not-there".to_owned()]);
        let parts =
            (priority, option::of(ip(v6)), option::of(prefix(v6)), mark, option::of(link), option::of(1..3u16), action);
        parts.prop_map(move |(priority, from, to, mark, incoming, source_port, action)| Rule {
            from: from.map(IpNet::from),
            to,
            mark,
            incoming,
            source_port,
            ..Rule::new(family(v6), priority, action)
        })
    })
}

fn route() -> impl Strategy<Value = Route> {
    any::<bool>().prop_flat_map(|v6| {
        let (near, all, far) = if v6 {
            (["fd00:60::200", "fd00:60::201"], "::/0", "fd09::9")
        } else {
            (["192.168.60.200", "192.168.60.201"], "0.0.0.0/0", "10.9.9.9")
        };
        let hop = |gateway: Option<&str>, onlink, weight| Hop {
            link: "eth1".to_owned(),
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
            onlink,
            weight,
        };
        let hops = vec![
            vec![hop(None, false, 1)],
            vec![hop(Some(near[0]), false, 1)],
            vec![hop(Some(near[1]), false, 1)],
            vec![hop(Some(far), true, 1)],
            vec![hop(Some(near[0]), false, 1), hop(Some(near[1]), false, 7)],
            vec![hop(Some(near[0]), false, 256), hop(Some(near[1]), false, 3)],
        ];
        let destination = prop_oneof![Just(all.parse::<IpNet>().unwrap()), prefix(v6)];
        let metric = if v6 { vec![1, 100, 1024] } else { vec![0, 100, 1024] };
        let table = prop::sample::select(vec![7, 1005, 680_005]);
        (table, destination, prop::sample::select(metric), prop::sample::select(hops)).prop_map(
            |(table, destination, metric, hops)| Route {
                table,
                destination,
                metric,
                hops,
                protocol: Settings::default().protocol,
            },
        )
    })
}

fn address() -> impl Strategy<Value = EgressAddress> {
    let ips = ["192.168.60.50", "192.168.60.51", "fd00:60::50", "fd00:60::51"].map(|ip| ip.parse().unwrap());
    let links = vec!["eth1".to_owned(), "lo".to_owned()];
    (prop::sample::select(ips.to_vec()), prop::sample::select(links)).prop_map(|(ip, link)| EgressAddress { ip, link })
}

fn sysctls() -> impl Strategy<Value = BTreeMap<String, String>> {
    let paths = ["net/ipv4/conf/eth1/rp_filter", "net/ipv4/conf/eth1/forwarding", "net/ipv6/conf/eth1/forwarding"];
    btree_map(prop::sample::select(paths.map(str::to_owned).to_vec()), "[01]", 0..3)
}

fn state() -> impl Strategy<Value = State> {
    // Of one table, destination and metric there is one route.
    let routes = vec(route(), 0..8).prop_map(|routes| {
        let keyed = routes.into_iter().map(|route| ((route.table, route.destination, route.metric), route));
        keyed.collect::<BTreeMap<_, _>>().into_values().collect::<BTreeSet<_>>()
    });
    // An address is on one link.
    let addresses = btree_map(address().prop_map(|it| it.ip), address().prop_map(|it| it.link), 0..3)
        .prop_map(|map| map.into_iter().map(|(ip, link)| EgressAddress { ip, link }).collect());
    let parts = (addresses, routes, btree_set(rule(), 0..12), option::weighted(0.8, table()), sysctls());
    parts.prop_map(|(addresses, routes, rules, table, sysctls)| State { addresses, routes, rules, table, sysctls })
}

#[test]
fn what_is_wanted_is_what_is_found() {
    alone(test_name!(), || async {
        let (node, before) = (Node::open(), dump());
        let mut runner = TestRunner::new_with_rng(
            Config::default(),
            proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
        );
        for _ in 0..60 {
            let wanted = state().new_tree(&mut runner).unwrap().current();
            node.become_like(&wanted).await;
        }
        node.become_like(&State::default()).await;
        same(&before, &dump());
    });
}
