//! What comes of nodes that do not answer.

use std::time::Duration;

use egret_api::Kind;
use egret_brain::{Action, Answer, Brain, Config, Input, Now};
use egret_core::Timestamp;
use serde_json::{Value, json};

use crate::definition::node;

fn object(last: usize) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": { "name": format!("e{last}"), "uid": format!("e{last}"), "resourceVersion": "1" },
        "spec": { "egressIPs": [format!("10.0.0.{}", 100 + last)], "namespaceSelector": {} },
    })
}

const NODES: usize = 10;

struct Test {
    brain: Brain,
    now: Now,
    stored: Vec<Value>,
}

impl Test {
    /// Ten nodes, and as many objects, each with its address on one of them.
    fn new() -> Self {
        let now = Now { elapsed: Duration::ZERO, wall: Timestamp(1_767_355_200) };
        let mut test = Self { brain: Brain::new(Config::default()), now, stored: (1..=NODES).map(object).collect() };
        test.brain.take(Input::Leading(true), now);
        for kind in test.brain.kinds() {
            let objects = match kind {
                Kind::Node => (1..=NODES).map(|last| node(&format!("n{last}"), "a")).collect(),
                Kind::EgressIp => test.stored.clone(),
                _ => Vec::new(),
            };
            test.brain.take(Input::Listed { kind, objects }, now);
        }
        assert_eq!(test.pass(), 0);
        test.say(1..=NODES, Answer::Alive);
        assert_eq!(test.pass(), NODES);
        assert_eq!(test.pass(), 0);
        test
    }

    fn say(&mut self, nodes: impl IntoIterator<Item = usize>, answer: Answer) {
        for node in nodes {
            let node = format!("n{node}").as_str().into();
            self.brain.take(Input::Probed { node, answer }, self.now);
        }
    }

    fn after(&mut self, milliseconds: u64) {
        self.now.elapsed += Duration::from_millis(milliseconds);
    }

    /// A pass, and the answers to what it writes. How many statuses were written.
    fn pass(&mut self) -> usize {
        let writes = self.brain.pass(self.now).writes;
        for write in &writes {
            let Action::Patch { operations, .. } = &write.action else { panic!("{write:?}") };
            let stored = self.stored.iter_mut().find(|object| object["metadata"]["name"] == write.object.name).unwrap();
            let patch: json_patch::Patch = serde_json::from_value(json!(operations)).unwrap();
            json_patch::patch(stored, &patch).unwrap();
            let version: u32 = stored["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            stored["metadata"]["resourceVersion"] = json!((version + 1).to_string());
            self.brain.take(Input::Written { id: write.id, result: Ok(Some(stored.clone())) }, self.now);
        }
        writes.len()
    }

    fn hosts(&self, node: usize) -> bool {
        let node = format!("n{node}");
        self.stored.iter().any(|object| object["status"]["items"][0]["node"] == node.as_str())
    }

    /// The nodes' probes end, none with anything new.
    fn round(&mut self, silent: std::ops::RangeInclusive<usize>) {
        self.after(400);
        for node in 1..=NODES {
            if silent.contains(&node) {
                self.say([node], Answer::Late);
                self.say([node], Answer::Silent);
            } else {
                self.say([node], Answer::Alive);
            }
        }
    }
}

/// Each answer of each node started a pass as long as one of them was silent.
#[test]
fn what_a_silent_node_and_the_others_say_again_starts_no_pass() {
    let mut test = Test::new();
    test.round(1..=2);
    assert!(test.brain.due(test.now));
    assert!(test.pass() > 0, "they lose what they had");
    while test.brain.due(test.now) {
        test.pass();
    }
    for _ in 0..10 {
        test.round(1..=2);
        assert!(!test.brain.due(test.now));
        let output = test.brain.pass(test.now);
        assert_eq!((output.writes.len(), output.targets.len()), (0, NODES), "nor is a pass in vain an empty one");
    }
    test.say([3], Answer::Late);
    assert!(test.brain.due(test.now), "of who was alive it is news");
    test.pass();
    test.say([3], Answer::Alive);
    assert!(test.brain.due(test.now));
    test.pass();
    test.say([1], Answer::Alive);
    assert!(test.brain.due(test.now), "and who is back may serve again");
}

#[test]
fn during_mass_silence_every_answer_counts() {
    let mut test = Test::new();
    test.round(1..=6);
    assert_eq!(test.pass(), 0, "nothing moves");
    for node in [1, 6, 10] {
        let answer = if node == 10 { Answer::Alive } else { Answer::Silent };
        test.say([node], answer);
        assert!(test.brain.due(test.now), "{node}");
        assert_eq!(test.pass(), 0);
    }
}

#[test]
fn a_roll_out_whose_nodes_come_back_one_by_one_moves_nothing() {
    let mut test = Test::new();
    for back in 1..=9 {
        for _ in 0..8 {
            test.round(back..=9);
            assert_eq!(test.pass(), 0, "{back}");
        }
    }
    test.round(11..=11);
    assert_eq!(test.pass(), 0);
    assert!((1..=NODES).all(|node| test.hosts(node)));
}

/// The grace has an end of its own: nobody needs to say anything for it.
#[test]
fn who_stays_silent_after_the_grace_loses_what_it_has() {
    let mut test = Test::new();
    test.round(1..=6);
    test.pass();
    test.round(1..=5);
    assert_eq!(test.pass(), 0);
    let end = test.now.elapsed + Duration::from_secs(5);
    assert_eq!(test.brain.pass(test.now).wake, Some(end));
    for _ in 0..12 {
        test.round(1..=5);
        assert!(!test.brain.due(test.now), "{:?}", test.now);
        assert_eq!(test.pass(), 0);
    }
    test.now.elapsed = end;
    assert!(test.brain.due(test.now));
    assert_eq!(test.pass(), 5);
    assert!((1..=5).all(|node| !test.hosts(node)));
}

/// A node that falls silent by itself is given up with its probe, also while others have their grace.
#[test]
fn normal_silence_has_no_grace() {
    let mut test = Test::new();
    test.round(1..=6);
    test.pass();
    test.round(1..=4);
    assert_eq!(test.pass(), 0);
    test.round(1..=4);
    test.say([10], Answer::Silent);
    assert_eq!(test.pass(), 1);
    assert!(!test.hosts(10) && (1..=4).all(|node| test.hosts(node)));
}
