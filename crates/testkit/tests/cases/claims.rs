//! Several objects want the same address.

use egret_testkit::objects::egress_ip;
use egret_testkit::scenario::{Op, Settings};
use egret_testkit::world::Memory;

use crate::bed::{after, at_rest, place, reason, restarted, workers, wrote};

/// Which of several wins is undefined, random, or by order of arrival.
#[test]
fn case_58_the_oldest_of_several_claims_wins_whatever_happens() {
    let settings = Settings { age_matters: true, ..Settings::default() };
    let mut stage = Memory::new();
    let names = ["z", "m", "a"];
    let objects = names.map(|name| egress_ip(name, &["10.0.0.100"]));
    let mut world = at_rest(&mut stage, &settings, &workers(3), objects);
    let host = place(&world, "z");
    assert!(!host.is_empty(), "the oldest has it");
    let losers = ["m", "a"].map(|name| (place(&world, name), reason(&world, name)));
    assert_eq!(losers, [(); 2].map(|()| (String::new(), "UnsupportedRequest".to_owned())));
    // Nothing of this changes it.
    assert!(!wrote(&restarted(&mut world, [])));
    world.relist().unwrap();
    let touched = Op::Apply { object: egress_ip("a", &["10.0.0.100"]) };
    assert!(!wrote(&after(&mut world, [touched])));
    assert_eq!(place(&world, "z"), host);
    // Those who wait come in their order.
    after(&mut world, [Op::Delete { kind: "EgressIP".to_owned(), name: "z".to_owned(), namespace: None }]);
    assert_ne!(place(&world, "m"), "");
    assert_eq!(place(&world, "a"), "");
    // An older one that comes back is a new one.
    after(&mut world, [Op::Apply { object: egress_ip("z", &["10.0.0.100"]) }]);
    assert_ne!(place(&world, "m"), "");
    assert_eq!((place(&world, "a"), place(&world, "z")), (String::new(), String::new()));
}

#[test]
fn case_58_the_same_cluster_is_placed_alike_by_every_controller() {
    let placed = |stage: &mut Memory| {
        let objects =
            (0..30).map(|number| egress_ip(&format!("e{number}"), &[&format!("10.0.0.{}", 100 + number / 2)]));
        at_rest(stage, &Settings::default(), &workers(5), objects).state().statuses()
    };
    let expected = placed(&mut Memory::new());
    assert_eq!(expected.values().filter(|items| !items.is_empty()).count(), 15);
    assert_eq!(placed(&mut Memory::new()), expected);
}
