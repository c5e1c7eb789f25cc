//! What is written, and said, of a new object while its nodes are probed for the first time.

// Helpers of tests are no production code.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use egret_api::Kind;
use egret_brain::{Action, Answer, Brain, Config, Input, Now, Output};
use serde_json::{Value, json};

fn node(name: &str, last: u8) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": name,
            "resourceVersion": "1",
            "labels": { "k8s.ovn.org/egress-assignable": "" },
            "annotations": {
                "k8s.ovn.org/node-primary-ifaddr": format!("{{\"ipv4\":\"10.0.0.{last}/24\"}}"),
                "k8s.ovn.org/host-cidrs": format!("[\"10.0.0.{last}/24\"]"),
                "k8s.ovn.org/node-subnets": format!("{{\"default\":[\"10.128.{last}.0/24\"]}}"),
            },
        },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

fn object() -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": { "name": "a", "uid": "a", "resourceVersion": "1" },
        "spec": { "egressIPs": ["10.0.0.100", "10.0.0.101"], "namespaceSelector": {} },
    })
}

struct Test {
    brain: Brain,
    now: Now,
}

impl Test {
    /// Two nodes, both about to be probed, and an object that needs both.
    fn new() -> Self {
        let mut test = Self { brain: Brain::new(Config::default()), now: Now::default() };
        test.take(Input::Leading(true));
        for kind in test.brain.kinds() {
            let objects = match kind {
                Kind::Node => vec![node("n1", 1), node("n2", 2)],
                Kind::EgressIp => vec![object()],
                _ => Vec::new(),
            };
            test.take(Input::Listed { kind, objects });
        }
        let output = test.pass();
        assert_eq!(output.targets.len(), 2);
        assert_eq!((output.writes.len(), output.events.len()), (0, 0));
        test
    }

    fn take(&mut self, input: Input) {
        self.brain.take(input, self.now);
    }

    fn pass(&mut self) -> Output {
        self.brain.pass(self.now)
    }

    /// What comes of an answer, a moment later.
    fn probed(&mut self, node: &str, answer: Answer) -> Output {
        self.now.elapsed += Duration::from_millis(10);
        self.take(Input::Probed { node: node.into(), answer });
        self.pass()
    }
}

/// The nodes in the status that the only write makes.
fn nodes(output: &Output) -> Vec<String> {
    let [write] = output.writes.as_slice() else { panic!("{} writes", output.writes.len()) };
    let Action::Patch { operations, .. } = &write.action else { panic!("{:?}", write.action) };
    let status = operations.iter().find(|operation| operation["path"] == "/status").unwrap();
    let items = status["value"]["items"].as_array().unwrap();
    let mut nodes: Vec<String> = items.iter().map(|item| item["node"].as_str().unwrap().to_owned()).collect();
    nodes.sort_unstable();
    nodes
}

/// The first node that answered got an address, and the other address was said to have no place, with an event: a write
/// too many for the first object of every pool, and a warning about nothing.
#[test]
fn the_first_status_waits_for_the_first_probes_as_a_whole() {
    let mut test = Test::new();
    let output = test.probed("n1", Answer::Alive);
    assert_eq!((output.writes.len(), output.events.len()), (0, 0));
    let output = test.probed("n2", Answer::Alive);
    assert_eq!(nodes(&output), ["n1", "n2"]);
    assert_eq!(output.events, []);
}

#[test]
fn a_node_that_does_not_answer_holds_the_first_status_no_longer_than_its_probe() {
    let mut test = Test::new();
    assert_eq!(test.probed("n1", Answer::Alive).writes, []);
    assert_eq!(test.probed("n2", Answer::Late).writes, []);
    let output = test.probed("n2", Answer::Silent);
    assert_eq!(nodes(&output), ["n1"]);
    let reasons: Vec<&str> = output.events.iter().map(|event| event.reason).collect();
    assert_eq!(reasons, ["UnassignedRequest"]);
}

#[test]
fn targets_are_the_same_allocation_until_they_change() {
    let mut test = Test::new();
    let before = test.pass().targets;
    assert!(std::sync::Arc::ptr_eq(&before, &test.probed("n1", Answer::Alive).targets));
    let another = object_like("b", json!({ "matchLabels": { "k8s.ovn.org/egress-assignable": "" } }));
    test.take(Input::Seen { kind: Kind::EgressIp, object: another });
    assert!(std::sync::Arc::ptr_eq(&before, &test.pass().targets), "another selector, but the same nodes");
    test.take(Input::Seen { kind: Kind::Node, object: node("n3", 3) });
    assert_eq!(test.pass().targets.len(), 3);
}

fn object_like(name: &str, selector: Value) -> Value {
    let mut object = object();
    object["metadata"]["name"] = name.into();
    object["metadata"]["uid"] = name.into();
    object["spec"]["egressIPs"] = json!([]);
    object["spec"]["egressNodeSelector"] = selector;
    object
}
