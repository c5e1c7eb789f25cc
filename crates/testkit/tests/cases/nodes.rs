//! Nodes come and go, and say strange things of themselves.

use egret_api::annotation::host_cidrs;
use egret_testkit::objects::egress_ip;
use egret_testkit::scenario::{Op, Settings};
use egret_testkit::world::Memory;

use crate::bed::{
    after, annotate, at_rest, path, place, places, reachable, ready, reason, restarted, worker, workers, wrote,
};

/// An address returns to its old node when that comes back: a second needless break.
#[test]
fn case_11_an_ip_does_not_return_when_its_old_node_comes_back() {
    type Change = fn(&str) -> Op;
    let failures: [(&str, Change, Change); 2] = [
        ("it is not Ready", |node| ready(node, false), |node| ready(node, true)),
        ("it is silent", |node| reachable(node, false), |node| reachable(node, true)),
    ];
    for (what, fail, recover) in failures {
        let mut stage = Memory::new();
        let object = egress_ip("a", &["10.0.0.100"]);
        let mut world = at_rest(&mut stage, &Settings::default(), &workers(3), [object]);
        let first = place(&world, "a");
        let history = after(&mut world, [fail(&first)]);
        let second = place(&world, "a");
        assert_eq!(path(&history, "a", "10.0.0.100"), [second.as_str()], "{what}: exactly one change");
        assert!(second != first && !second.is_empty(), "{what}");
        assert!(!wrote(&after(&mut world, [recover(&first)])), "{what}");
        assert!(!wrote(&restarted(&mut world, [])), "{what}");
        assert_eq!(place(&world, "a"), second, "{what}");
    }
}

#[test]
fn case_11_nor_when_it_is_deleted_and_joins_again() {
    let mut stage = Memory::new();
    let mut world = at_rest(&mut stage, &Settings::default(), &workers(3), [egress_ip("a", &["10.0.0.100"])]);
    let first = place(&world, "a");
    after(&mut world, [Op::DeleteNode { node: first.clone() }]);
    let second = place(&world, "a");
    let last = first[1..].parse().unwrap();
    let history = after(&mut world, [Op::AddNode { node: worker(&first, last) }]);
    assert!(!wrote(&history));
    assert_eq!(place(&world, "a"), second);
}

/// The check over all nodes fails for one, and everything is given up.
#[test]
fn case_13_a_node_with_a_broken_annotation_is_left_out_alone() {
    for broken in [Some("no list of networks"), Some("[\"10.0.0.4\"]"), Some("{}"), None] {
        let objects = (0..20).map(|number| egress_ip(&format!("e{number}"), &[&format!("10.0.0.{}", 100 + number)]));
        let mut stage = Memory::new();
        let mut world = at_rest(&mut stage, &Settings::default(), &workers(4), objects);
        let before = world.state().statuses();
        let history = restarted(&mut world, [annotate("n4", host_cidrs::KEY, broken)]);
        for (name, items) in world.state().statuses() {
            let [(_, node)] = &items[..] else { panic!("{broken:?}: {name} has {items:?}") };
            let was = &before[&name][0].1;
            if was == "n4" {
                assert_ne!(node, "n4", "{broken:?}: {name} moves");
            } else {
                assert_eq!(node, was, "{broken:?}: {name} stays");
            }
        }
        assert!(before.values().any(|items| items[0].1 == "n4"), "it held something");
        let told: Vec<_> = history.raised.iter().map(|event| (event.kind.as_str(), event.name.as_str())).collect();
        // An annotation that is not there yet is no fault: the node's own agent is about to write it.
        let expected: &[_] = if broken.is_some() { &[("Node", "n4")] } else { &[] };
        assert_eq!(told, expected, "{broken:?}");
    }
}

/// A just-assigned address is taken for a host address and then refused as a conflict.
#[test]
fn case_14_an_own_address_that_a_node_lists_is_no_conflict() {
    let mut stage = Memory::new();
    let addresses = ["10.0.0.100", "10.0.0.101", "10.0.0.102"];
    let mut world = at_rest(&mut stage, &Settings::default(), &workers(5), [egress_ip("a", &addresses)]);
    let before = places(&world, "a");
    assert_eq!(before.len(), 3);
    let first = before["10.0.0.100"].clone();
    let listed = format!(r#"["10.0.0.{}/24","10.0.0.100/32"]"#, &first[1..]);
    // The node's scan takes it for its own.
    assert!(!wrote(&after(&mut world, [annotate(&first, host_cidrs::KEY, Some(&listed))])));
    assert!(!wrote(&restarted(&mut world, [])), "nor for a controller that starts");
    // It leaves while the node still lists it.
    after(&mut world, [ready(&first, false)]);
    let now = places(&world, "a");
    assert_eq!(reason(&world, "a"), "");
    assert!(now["10.0.0.100"] != first, "{now:?}");
    for address in &addresses[1..] {
        assert_eq!(now[*address], before[*address], "the others stay");
    }
}

/// The loop ended at the first conflict and left later addresses unassigned.
#[test]
fn case_14_one_conflict_does_not_stop_the_other_addresses() {
    let mut nodes = workers(4);
    nodes[3].annotations.insert(host_cidrs::KEY.to_owned(), r#"["10.0.0.4/24","10.0.0.100/24"]"#.to_owned());
    let mut stage = Memory::new();
    let object = egress_ip("a", &["10.0.0.100", "10.0.0.101", "10.0.0.102"]);
    let world = at_rest(&mut stage, &Settings::default(), &nodes, [object]);
    let placed: Vec<String> = places(&world, "a").into_keys().collect();
    assert_eq!(placed, ["10.0.0.101", "10.0.0.102"]);
    assert_eq!(reason(&world, "a"), "EgressIPConflict");
}
