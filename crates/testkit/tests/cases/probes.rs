//! What the controller makes of probes.

use egret_testkit::objects::egress_ip;
use egret_testkit::scenario::Settings;
use egret_testkit::world::Memory;

use crate::bed::{after, at_rest, place, reachable, reason, workers, wrote};

/// A firewall between controller and nodes drops the probe's port: nodes are well and nobody says why nothing is placed.
#[test]
fn case_33_a_filtered_probe_port_has_a_reason_and_needs_nothing_but_its_opening() {
    let mut stage = Memory::new();
    let mut nodes = workers(3);
    for node in &mut nodes {
        node.reachable = false;
    }
    let mut world = at_rest(&mut stage, &Settings::default(), &nodes, [egress_ip("a", &["10.0.0.100"])]);
    assert_eq!((place(&world, "a").as_str(), reason(&world, "a").as_str()), ("", "MatchingNodesUnavailable"));
    let message = world.state().iter().find(|(key, _)| key.name == "a").unwrap().1["status"]["conditions"][0].clone();
    assert!(message["message"].as_str().unwrap().contains("none is ready and reachable"), "{message}");
    after(&mut world, [reachable("n2", true)]);
    assert_eq!((place(&world, "a").as_str(), reason(&world, "a").as_str()), ("n2", ""));
}

#[test]
fn case_33_without_probes_no_port_matters() {
    let mut stage = Memory::new();
    let mut nodes = workers(3);
    for node in &mut nodes {
        node.reachable = false;
    }
    let settings = Settings { reachability_total_timeout_seconds: Some(0), ..Settings::default() };
    let world = at_rest(&mut stage, &settings, &nodes, [egress_ip("a", &["10.0.0.100"])]);
    assert_ne!(place(&world, "a"), "");
}

/// The agents of all nodes are replaced at once, and with them what answers probes.
#[test]
fn case_37_a_roll_out_that_silences_all_nodes_at_once_moves_nothing() {
    let objects = (0..12).map(|number| egress_ip(&format!("e{number}"), &[&format!("10.0.0.{}", 100 + number)]));
    let mut stage = Memory::new();
    let mut world = at_rest(&mut stage, &Settings::default(), &workers(6), objects);
    let before = world.state().statuses();
    let names: Vec<String> = (1..=6).map(|number| format!("n{number}")).collect();
    let history = after(&mut world, names.iter().map(|node| reachable(node, false)));
    assert!(!wrote(&history), "{:?}", history.attempts);
    assert!(history.raised.iter().any(|event| event.reason == "MassSilence"), "but it is told");
    let history = after(&mut world, names.iter().map(|node| reachable(node, true)));
    assert!(!wrote(&history), "nor when they are back: {:?}", history.attempts);
    assert_eq!(world.state().statuses(), before);
}

/// What is a roll-out for six is an outage for one.
#[test]
fn case_37_a_single_silent_node_is_no_roll_out() {
    let objects = (0..12).map(|number| egress_ip(&format!("e{number}"), &[&format!("10.0.0.{}", 100 + number)]));
    let mut stage = Memory::new();
    let mut world = at_rest(&mut stage, &Settings::default(), &workers(6), objects);
    let history = after(&mut world, [reachable("n1", false)]);
    assert!(wrote(&history));
    assert!(world.state().statuses().values().all(|items| items.len() == 1 && items[0].1 != "n1"));
}
