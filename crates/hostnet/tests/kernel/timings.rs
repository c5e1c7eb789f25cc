//! How long it takes. Printed, not judged: the machine may be busy.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Instant;

use egret_core::Family;
use egret_hostmodel::{
    Element, Elements, Key, Role, Rule, RuleAction, Settings, Shape, State, Step, Table, Value, diff,
};
use egret_netlab::test_name;
use ipnet::IpNet;

use crate::namespace::alone;
use crate::node::{Node, ip};

/// What a service with so many endpoints makes of a node.
fn endpoints(count: u32) -> State {
    let (mut elements, mut state) = (Elements::new(), State::default());
    let mut put = |role: Role, key: Key, element: Element| {
        elements.entry(role.of(ip("10.0.0.1"))).or_default().insert(key, element);
    };
    let with = ip("192.168.60.50");
    for number in 0..count {
        let source = Ipv4Addr::from_bits(Ipv4Addr::new(10, 244, 0, 0).to_bits() + number).into();
        put(Role::ServiceSource, Key::Source(source), Element::of("default/web"));
        put(Role::ServiceSnat, Key::Source(source), Element::mapping(Value::Address(with), "default/web"));
        put(Role::Bound, Key::Source(source), Element::of("default/web"));
        put(Role::Allow, Key::Pair(source, with), Element::of("default/web"));
        state.rules.insert(Rule::new(Family::V4, 5000, RuleAction::Lookup(1005)).from(IpNet::from(source)));
    }
    put(Role::Cluster, Key::Prefix("10.0.0.0/8".parse().unwrap()), Element::default());
    let shape = Shape { settings: Settings::default(), paths: BTreeMap::new() };
    state.table = Some(Table { shape: Some(shape), elements });
    state
}

async fn timed(node: &Node, what: &str, wanted: &State) {
    let found = node.found().await;
    let began = Instant::now();
    let steps = diff(&found, wanted);
    let decided = began.elapsed();
    let began = Instant::now();
    node.apply(&steps).await;
    let applied = began.elapsed();
    let began = Instant::now();
    let left = diff(&node.found().await, wanted);
    let observed = began.elapsed();
    assert_eq!(left, []);
    eprintln!("{what}: {} steps, decided {decided:?}, applied {applied:?}, observed {observed:?}", steps.len());
}

#[test]
fn so_long_takes_a_thousand_endpoints_and_so_long_ten_thousand() {
    alone(test_name!(), || async {
        let node = Node::open();
        for count in [1_000, 10_000] {
            let rules: Vec<Step> = endpoints(count).rules.into_iter().map(|rule| Step::AddRule { rule }).collect();
            let began = Instant::now();
            node.apply(&rules).await;
            eprintln!("{count} rules alone: {:?}", began.elapsed());
            let began = Instant::now();
            node.apply(&diff(&node.found().await, &State::default())).await;
            eprintln!("{count} rules gone: {:?}", began.elapsed());
            timed(&node, &format!("{count} endpoints from scratch"), &endpoints(count)).await;
            timed(&node, &format!("one more than {count}"), &endpoints(count + 1)).await;
            timed(&node, &format!("{count} endpoints gone"), &State::default()).await;
        }
    });
}
