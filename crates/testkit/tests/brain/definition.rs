//! A definition is upgraded while a watch goes on by the old one.

use std::time::Duration;

use egret_api::Kind;
use egret_brain::{Action, Answer, Brain, Config, Input, Now, Write};
use egret_core::Timestamp;
use serde_json::{Value, json};

pub(crate) fn now() -> Now {
    Now { elapsed: Duration::from_secs(1), wall: Timestamp(1_767_355_200) }
}

pub(crate) fn node(name: &str, pool: &str) -> Value {
    let last = &name[1..];
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": name, "resourceVersion": "1",
            "labels": {"k8s.ovn.org/egress-assignable": "", "pool": pool},
            "annotations": {
                "k8s.ovn.org/node-primary-ifaddr": format!(r#"{{"ipv4":"10.0.0.{last}/24"}}"#),
                "k8s.ovn.org/host-cidrs": format!(r#"["10.0.0.{last}/24"]"#),
                "k8s.ovn.org/node-subnets": format!(r#"{{"default":"10.128.{last}.0/24"}}"#),
            },
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

pub(crate) fn object(version: u32, selector: Option<Value>) -> Value {
    let mut object = json!({
        "apiVersion": "k8s.ovn.org/v1", "kind": "EgressIP",
        "metadata": {"name": "a", "uid": "a", "resourceVersion": version.to_string()},
        "spec": {"egressIPs": ["10.0.0.100"], "namespaceSelector": {}},
    });
    if let Some(selector) = selector {
        object["spec"]["egressNodeSelector"] = selector;
    }
    object
}

/// A brain that has decided about this object, and the write that came of it.
pub(crate) fn decided(object: &Value) -> (Brain, Write) {
    let mut brain = Brain::new(Config::default());
    for kind in brain.kinds() {
        let objects = match kind {
            Kind::Node => vec![node("n1", "a"), node("n2", "b")],
            Kind::EgressIp => vec![object.clone()],
            _ => Vec::new(),
        };
        brain.take(Input::Listed { kind, objects }, now());
    }
    brain.take(Input::Leading(true), now());
    for node in brain.pass(now()).targets.keys().cloned() {
        brain.take(Input::Probed { node, answer: Answer::Alive }, now());
    }
    let [write] = <[Write; 1]>::try_from(brain.pass(now()).writes).unwrap();
    (brain, write)
}

pub(crate) fn written(object: &Value, write: &Write) -> Value {
    let Action::Patch { operations, .. } = &write.action else { panic!("{write:?}") };
    let mut object = object.clone();
    let patch: json_patch::Patch = serde_json::from_value(json!(operations)).unwrap();
    json_patch::patch(&mut object, &patch).unwrap();
    object["metadata"]["resourceVersion"] = json!("9");
    object
}

/// The watch told of the write before its answer came, without the condition that it did not know; the controller took
/// that for what is stored and wrote the condition again and again (seen: four times and more for each object).
#[test]
fn the_answer_to_a_write_counts_more_than_a_watch_that_cuts() {
    let stored = object(2, None);
    let (mut brain, write) = decided(&stored);
    let answer = written(&stored, &write);
    let mut cut = answer.clone();
    cut["status"].as_object_mut().unwrap().remove("conditions");
    brain.take(Input::Seen { kind: Kind::EgressIp, object: cut.clone() }, now());
    brain.take(Input::Written { id: write.id, result: Ok(Some(answer)) }, now());
    assert_eq!(brain.pass(now()).writes, []);
    brain.take(Input::Seen { kind: Kind::EgressIp, object: cut }, now());
    assert_eq!(brain.pass(now()).writes, []);
}

/// The watch told of a change without the selector in it, and no later event would have brought that.
#[test]
fn a_list_says_what_a_watch_has_cut_from_the_same_version() {
    let stored = object(2, None);
    let (mut brain, write) = decided(&stored);
    let answer = written(&stored, &write);
    let host = answer["status"]["items"][0]["node"].clone();
    brain.take(Input::Written { id: write.id, result: Ok(Some(answer.clone())) }, now());
    let mut cut = answer;
    cut["metadata"]["resourceVersion"] = json!("10");
    brain.take(Input::Seen { kind: Kind::EgressIp, object: cut.clone() }, now());
    assert_eq!(brain.pass(now()).writes, []);
    let mut whole = cut;
    let other = if host == "n1" { "b" } else { "a" };
    whole["spec"]["egressNodeSelector"] = json!({"matchLabels": {"pool": other}});
    brain.take(Input::Listed { kind: Kind::EgressIp, objects: vec![whole] }, now());
    assert_eq!(brain.pass(now()).writes.len(), 1, "the selector is followed");
}
