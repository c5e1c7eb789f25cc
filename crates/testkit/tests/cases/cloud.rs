//! Clouds: how many addresses a node takes, and what is asked for.

use egret_api::annotation::egress_ipconfig;
use egret_core::Capacity;
use egret_testkit::objects::egress_ip;
use egret_testkit::scenario::{CloudAck, Op, Settings};
use egret_testkit::world::{Memory, Version};

use crate::bed::{after, annotate, at_rest, in_cloud, on_cloud, place, reachable, reason};

fn objects(count: u8) -> impl Iterator<Item = serde_json::Value> {
    (0..count).map(|number| egress_ip(&format!("e{number}"), &[&format!("10.0.0.{}", 100 + number)]))
}

/// A full node has capacity 0, the field is omitted, and 0 is read as no limit.
#[test]
fn case_15_a_capacity_of_0_is_none_and_an_absent_one_is_no_limit() {
    let mut stage = Memory::new();
    let nodes = [in_cloud("n1", 1, r#"{"ipv4":0}"#), in_cloud("n2", 2, r#"{"ipv4":5}"#)];
    let mut world = at_rest(&mut stage, &on_cloud(), &nodes, objects(6));
    for number in 0..5 {
        assert_eq!(place(&world, &format!("e{number}")), "n2", "e{number}");
    }
    assert_eq!((place(&world, "e5").as_str(), reason(&world, "e5").as_str()), ("", "UnassignedRequest"));
    let unlimited = in_cloud("n1", 1, "{}").annotations[egress_ipconfig::KEY].clone();
    after(&mut world, [annotate("n1", egress_ipconfig::KEY, Some(&unlimited))]);
    assert_eq!(place(&world, "e5"), "n1");
}

#[test]
fn case_15_absent_0_and_n_come_back_as_they_were() {
    for capacity in [None, Some(0), Some(5)] {
        let text = r#"[{"interface":"eth0","ifaddr":{"ipv4":"10.0.0.0/24"}}]"#;
        let mut config = egress_ipconfig::decode(text).unwrap();
        config.capacity = Capacity { v4: capacity, v6: None, total: capacity };
        assert_eq!(egress_ipconfig::decode(&egress_ipconfig::encode(&config)).unwrap().capacity, config.capacity);
    }
}

/// The event that would help who waits is seen by a handler that does not care.
#[test]
fn case_60_capacity_that_gets_free_is_used() {
    let mut stage = Memory::new();
    let nodes = [in_cloud("n1", 1, r#"{"ipv4":2}"#)];
    let mut world = at_rest(&mut stage, &on_cloud(), &nodes, objects(3));
    assert_eq!((place(&world, "e2").as_str(), reason(&world, "e2").as_str()), ("", "UnassignedRequest"));
    after(&mut world, [Op::Delete { kind: "EgressIP".to_owned(), name: "e0".to_owned(), namespace: None }]);
    assert_eq!((place(&world, "e2").as_str(), reason(&world, "e2").as_str()), ("n1", ""));
    // And capacity that grows.
    after(&mut world, [Op::Apply { object: egress_ip("e3", &["10.0.0.109"]) }]);
    assert_eq!(place(&world, "e3"), "");
    let more = in_cloud("n1", 1, r#"{"ipv4":3}"#).annotations[egress_ipconfig::KEY].clone();
    after(&mut world, [annotate("n1", egress_ipconfig::KEY, Some(&more))]);
    assert_eq!(place(&world, "e3"), "n1");
}

/// The agent of the old node is back while the cloud is taking the address away from it.
#[test]
fn case_40_a_node_that_is_back_while_the_cloud_removes_gets_nothing_back() {
    let settings = Settings { cloud_ack: CloudAck::Manual, ..on_cloud() };
    let nodes = [in_cloud("n1", 1, r#"{"ipv4":5}"#), in_cloud("n2", 2, r#"{"ipv4":5}"#)];
    let mut stage = Memory::new();
    let mut world = at_rest(&mut stage, &settings, &nodes, objects(1));
    let answer =
        |node: &str| Op::SetCpicStatus { name: "10.0.0.100".to_owned(), node: node.to_owned(), assigned: true };
    let asked = |world: &egret_testkit::world::World<'_>| world.state().cloud_requests()["10.0.0.100"].node.clone();
    let first = asked(&world);
    let other = if first == "n1" { "n2" } else { "n1" };
    after(&mut world, [answer(&first)]);
    assert_eq!(place(&world, "e0"), first);

    let mut history = after(&mut world, [reachable(&first, false)]);
    assert_eq!((place(&world, "e0").as_str(), asked(&world).as_str()), ("", other), "it left, and is asked for anew");
    history.extend(after(&mut world, [reachable(&first, true)]));
    assert_eq!((place(&world, "e0").as_str(), asked(&world).as_str()), ("", other), "who is back changes nothing");
    history.extend(after(&mut world, [answer(other)]));
    assert_eq!(place(&world, "e0"), other);
    let is_status = |version: &&Version| version.key.name == "e0";
    let path: Vec<_> = history.versions.iter().filter(is_status).collect();
    assert!(path.len() <= 4, "no detours: {}", path.len());
    assert_eq!(crate::bed::path(&history, "e0", "10.0.0.100"), ["", other]);
}
