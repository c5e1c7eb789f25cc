//! Which nodes an object may use, and how it is spread over them.

use egret_api::Manifests;
use egret_core::Options;
use egret_placement::{Explainer, decide};
use egret_testkit::objects::egress_ip;
use egret_testkit::scenario::Settings;
use egret_testkit::world::{Memory, World};

use crate::bed::{
    ASSIGNABLE, after, at_rest, bare, in_pool, label, place, reachable, reason, with_label, workers, wrote,
};

/// How many addresses each node holds, as `egret status` shows it.
fn loads(world: &World<'_>, nodes: &[&str]) -> Vec<u32> {
    let mut manifests = Manifests::default();
    for (_, object) in world.state().iter() {
        manifests.insert(object.clone()).unwrap();
    }
    let observation = manifests.observe(&Options::default());
    let decision = decide(&observation.snapshot);
    let explainer = Explainer::new(&observation.snapshot, &decision);
    nodes.iter().map(|node| explainer.load(&(*node).into())).collect()
}

/// Objects created before nodes are labelled: everything lands on the first labelled node and stays. That is the price
/// of never moving what is valid, and it can be seen.
#[test]
fn case_10_nodes_that_are_labelled_later_attract_nothing_and_the_skew_is_seen() {
    let nodes: Vec<_> = (1..=4).map(|last| bare(&format!("n{last}"), last)).collect();
    let objects = (0..100).map(|number| egress_ip(&format!("e{number}"), &[&format!("10.0.0.{}", 100 + number)]));
    let mut stage = Memory::new();
    let mut world = at_rest(&mut stage, &Settings::default(), &nodes, objects);
    after(&mut world, [label("n1", ASSIGNABLE, Some(""))]);
    for node in ["n2", "n3", "n4"] {
        let history = after(&mut world, [label(node, ASSIGNABLE, Some(""))]);
        assert!(!wrote(&history), "{node} attracts nothing");
    }
    assert_eq!(loads(&world, &["n1", "n2", "n3", "n4"]), [100, 0, 0, 0]);
}

/// Labelled first, they share: the skew is the order's, not the rule's.
#[test]
fn case_10_nodes_that_are_labelled_first_share_evenly() {
    let objects = (0..100).map(|number| egress_ip(&format!("e{number}"), &[&format!("10.0.0.{}", 100 + number)]));
    let mut stage = Memory::new();
    let world = at_rest(&mut stage, &Settings::default(), &workers(4), objects);
    assert_eq!(loads(&world, &["n1", "n2", "n3", "n4"]), [25; 4]);
}

/// `n1` and `n2` are pool a and nothing else, `n3` and `n4` pool b and assignable; `a` selects pool a, `b` nothing.
fn two_pools(stage: &mut Memory) -> World<'_> {
    let pooled = |name, last, pool| with_label(bare(name, last), "pool", pool);
    let nodes = [
        pooled("n1", 1, "a"),
        pooled("n2", 2, "a"),
        with_label(pooled("n3", 3, "b"), ASSIGNABLE, ""),
        with_label(pooled("n4", 4, "b"), ASSIGNABLE, ""),
    ];
    let objects = [in_pool("a", &["10.0.0.100"], "a"), egress_ip("b", &["10.0.0.101"])];
    at_rest(stage, &Settings::default(), &nodes, objects)
}

fn other_of_pool_a(node: &str) -> &'static str {
    if node == "n1" { "n2" } else { "n1" }
}

#[test]
fn case_12_step_1_an_object_moves_within_its_pool_and_concerns_nobody_else() {
    let mut stage = Memory::new();
    let mut world = two_pools(&mut stage);
    let (first, b) = (place(&world, "a"), place(&world, "b"));
    assert!(["n1", "n2"].contains(&first.as_str()), "the selector replaces the label, it does not add to it: {first}");
    assert!(["n3", "n4"].contains(&b.as_str()), "without a selector the label is asked for: {b}");
    let history = after(&mut world, [label(&first, "pool", None)]);
    assert_eq!(place(&world, "a"), other_of_pool_a(&first));
    assert_eq!(place(&world, "b"), b);
    assert!(history.attempts.iter().all(|key| key.name == "a"), "{:?}", history.attempts);
}

#[test]
fn case_12_step_2_a_pool_without_a_node_has_a_reason() {
    let mut stage = Memory::new();
    let mut world = two_pools(&mut stage);
    let history = after(&mut world, [label("n1", "pool", None), label("n2", "pool", None)]);
    assert_eq!((place(&world, "a").as_str(), reason(&world, "a").as_str()), ("", "NoMatchingNodeFound"));
    assert_eq!(history.raised.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["NoMatchingNodeFound"]);
    assert_eq!(reason(&world, "b"), "");
}

#[test]
fn case_12_step_3_a_pool_without_a_usable_node_has_another_reason() {
    let mut stage = Memory::new();
    let mut world = two_pools(&mut stage);
    let first = place(&world, "a");
    after(&mut world, [label(&first, "pool", None)]);
    let history = after(&mut world, [reachable(other_of_pool_a(&first), false)]);
    assert_eq!((place(&world, "a").as_str(), reason(&world, "a").as_str()), ("", "MatchingNodesUnavailable"));
    let raised: Vec<_> = history.raised.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(raised, ["MatchingNodesUnavailable"]);
}

#[test]
fn case_12_step_4_a_node_that_joins_the_pool_gets_what_waits_and_one_that_returns_gets_nothing() {
    let mut stage = Memory::new();
    let mut world = two_pools(&mut stage);
    after(&mut world, [label("n1", "pool", None), label("n2", "pool", None)]);
    after(&mut world, [label("n3", "pool", Some("a"))]);
    assert_eq!((place(&world, "a").as_str(), reason(&world, "a").as_str()), ("n3", ""));
    let history = after(&mut world, [label("n1", "pool", Some("a")), label("n2", "pool", Some("a"))]);
    assert!(!wrote(&history), "what is valid does not move");
    assert_eq!(place(&world, "a"), "n3");
}
