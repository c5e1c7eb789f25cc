//! Writes whose outcome nobody knows.

use std::time::Duration;

use egret_api::Kind;
use egret_brain::{Action, Answer, Brain, Config, Input, Now, Write, WriteError};
use egret_core::{Options, Platform};
use serde_json::{Value, json};

use crate::definition::{decided, node, now, object, written};

/// When every rest is over.
fn later() -> Now {
    Now { elapsed: Duration::from_secs(20), ..now() }
}

fn unknown(write: &Write) -> Input {
    let error = WriteError::Transient { message: "no answer in time".to_owned(), retry_after: None };
    Input::Written { id: write.id, result: Err(error) }
}

fn seen(kind: Kind, object: &Value) -> Input {
    Input::Seen { kind, object: object.clone() }
}

fn not_ready(name: &str) -> Value {
    let mut node = node(name, "a");
    node["metadata"]["resourceVersion"] = json!("20");
    node["status"]["conditions"][0]["status"] = json!("False");
    node
}

fn only(writes: Vec<Write>) -> Write {
    let [write] = <[Write; 1]>::try_from(writes).unwrap();
    write
}

fn heir() -> Value {
    let mut heir = object(11, None);
    heir["metadata"] = json!({"name": "heir", "uid": "heir", "resourceVersion": "11"});
    heir
}

/// The move had not happened, and was not wanted any more: nothing was left to write, and what had been attempted counted
/// as done until somebody changed the object.
#[test]
fn where_nothing_is_left_to_write_the_object_is_looked_at() {
    let (mut brain, write) = decided(&object(2, None));
    let stored = written(&object(2, None), &write);
    brain.take(Input::Written { id: write.id, result: Ok(Some(stored.clone())) }, now());
    let host = stored["status"]["items"][0]["node"].as_str().unwrap();
    let other = if host == "n1" { "n2" } else { "n1" };
    brain.take(seen(Kind::Node, &not_ready(host)), now());
    let moved = only(brain.pass(now()).writes);
    let mut back = node(host, "a");
    back["metadata"]["resourceVersion"] = json!("21");
    brain.take(seen(Kind::Node, &back), now());
    brain.take(seen(Kind::Node, &not_ready(other)), now());
    brain.take(unknown(&moved), now());
    assert_eq!(brain.pass(now()).writes, [], "it rests");
    brain.take(Input::Probed { node: host.into(), answer: Answer::Alive }, now());
    // Were it a list that says that nothing has happened, it could be from before.
    brain.take(Input::Listed { kind: Kind::EgressIp, objects: vec![stored.clone()] }, later());
    let look = only(brain.pass(later()).writes);
    let Action::Patch { operations, .. } = &look.action else { panic!("{look:?}") };
    assert!(operations.iter().all(|operation| operation["op"] == "test"), "{operations:?}");
    brain.take(Input::Written { id: look.id, result: Ok(Some(stored.clone())) }, later());
    assert_eq!(brain.pass(later()).writes, [], "it is as it should be");
}

/// The write could not have happened, for the object had changed before; its address was nobody's for ever.
#[test]
fn what_was_overtaken_is_in_no_doubt() {
    let (mut brain, write) = decided(&object(2, None));
    let mut changed = object(3, None);
    changed["spec"]["egressIPs"] = json!([]);
    brain.take(seen(Kind::EgressIp, &changed), now());
    brain.take(unknown(&write), now());
    brain.take(seen(Kind::EgressIp, &heir()), later());
    let writes = brain.pass(later()).writes;
    let theirs = writes.iter().find(|write| write.object.name == "heir").unwrap();
    assert_eq!(written(&heir(), theirs)["status"]["items"][0]["egressIP"], "10.0.0.100");
}

fn request(node: &str, version: u32, confirmed: bool) -> Value {
    let status = if confirmed { "True" } else { "Unknown" };
    json!({
        "apiVersion": "cloud.network.openshift.io/v1", "kind": "CloudPrivateIPConfig",
        "metadata": {
            "name": "10.0.0.100", "uid": "request", "resourceVersion": version.to_string(),
            "annotations": {"k8s.ovn.org/egressip-owner-ref": "a"},
        },
        "spec": {"node": node},
        "status": {"node": node, "conditions": [{"type": "Assigned", "status": status, "reason": "", "message": ""}]},
    })
}

/// In a cloud, where "a" has its address on n1, which both say, and n2 can take nothing.
fn in_a_cloud() -> (Brain, Value) {
    let options = Options { platform: Platform::Cloud, ..Options::default() };
    let mut brain = Brain::new(Config { options, probing: false, ..Config::default() });
    let mut shown = object(2, None);
    shown["metadata"]["annotations"] = json!({"k8s.ovn.org/egressip-mark": "50000"});
    shown["status"] = json!({"items": [{"egressIP": "10.0.0.100", "node": "n1"}]});
    for kind in brain.kinds() {
        let objects = match kind {
            Kind::Node => vec![cloud_node("n1", 2)],
            Kind::EgressIp => vec![shown.clone()],
            Kind::CloudPrivateIpConfig => vec![request("n1", 3, true)],
            _ => Vec::new(),
        };
        brain.take(Input::Listed { kind, objects }, now());
    }
    brain.take(Input::Leading(true), now());
    let write = only(brain.pass(now()).writes);
    let told = written(&shown, &write);
    brain.take(Input::Written { id: write.id, result: Ok(Some(told.clone())) }, now());
    assert_eq!(brain.pass(now()).writes, []);
    (brain, told)
}

fn cloud_node(name: &str, capacity: u32) -> Value {
    let mut node = node(name, "a");
    node["metadata"]["annotations"]["cloud.network.openshift.io/egress-ipconfig"] =
        json!(format!(r#"[{{"interface":"i","ifaddr":{{"ipv4":"10.0.0.0/24"}},"capacity":{{"ipv4":{capacity}}}}}]"#));
    node
}

/// Nobody asks for the address, and its request is withdrawn.
fn withdrawn(brain: &mut Brain, told: &Value) -> (Value, Write) {
    let mut idle = told.clone();
    idle["metadata"]["resourceVersion"] = json!("30");
    idle["spec"]["egressIPs"] = json!([]);
    brain.take(seen(Kind::EgressIp, &idle), now());
    let down = only(brain.pass(now()).writes);
    let mut down_answer = written(&idle, &down);
    down_answer["metadata"]["resourceVersion"] = json!("31");
    brain.take(Input::Written { id: down.id, result: Ok(Some(down_answer.clone())) }, now());
    let withdrawal = only(brain.pass(now()).writes);
    assert!(matches!(withdrawal.action, Action::Delete { .. }));
    (down_answer, withdrawal)
}

fn asks_again(brain: &mut Brain, idle: &Value) -> Vec<Write> {
    let mut again = idle.clone();
    again["metadata"]["resourceVersion"] = json!("32");
    again["spec"]["egressIPs"] = json!(["10.0.0.100"]);
    brain.take(seen(Kind::EgressIp, &again), later());
    brain.pass(later()).writes
}

fn shows_an_address(write: &Write) -> bool {
    let Action::Patch { operations, .. } = &write.action else { return false };
    operations.iter().any(|operation| operation["value"]["items"].as_array().is_some_and(|items| !items.is_empty()))
}

/// The request was withdrawn, perhaps, and wanted again: a confirmation from before was shown (K2).
#[test]
fn a_request_that_was_perhaps_withdrawn_confirms_nothing_until_it_was_looked_at() {
    for flap in [false, true] {
        let (mut brain, told) = in_a_cloud();
        let (idle, withdrawal) = withdrawn(&mut brain, &told);
        brain.take(unknown(&withdrawal), now());
        if flap {
            brain.take(Input::Leading(false), now());
            brain.take(Input::Leading(true), now());
        }
        let writes = asks_again(&mut brain, &idle);
        assert!(!writes.iter().any(shows_an_address), "flap {flap}: {writes:?}");
        let look = writes.into_iter().find(|write| write.object.kind == Kind::CloudPrivateIpConfig).unwrap();
        assert!(matches!(look.action, Action::Patch { .. }), "flap {flap}: {look:?}");
        brain.take(Input::Written { id: look.id, result: Err(WriteError::Gone) }, later());
        let end = Now { elapsed: later().elapsed * 2, ..now() };
        let writes = brain.pass(end).writes;
        assert!(writes.iter().any(|write| matches!(write.action, Action::Create(_))), "flap {flap}: {writes:?}");
    }
}

/// The watch told late what the request had been before it was withdrawn, and that was shown (K2).
#[test]
fn a_request_that_is_gone_is_not_revived_by_a_late_watch() {
    let (mut brain, told) = in_a_cloud();
    let (idle, withdrawal) = withdrawn(&mut brain, &told);
    brain.take(Input::Written { id: withdrawal.id, result: Ok(None) }, now());
    brain.take(seen(Kind::CloudPrivateIpConfig, &request("n1", 3, true)), now());
    let writes = asks_again(&mut brain, &idle);
    assert!(!writes.iter().any(shows_an_address), "{writes:?}");
    let create = writes.into_iter().find(|write| write.object.kind == Kind::CloudPrivateIpConfig).unwrap();
    let mut made = request("n1", 40, false);
    made["metadata"]["uid"] = json!("made");
    brain.take(Input::Written { id: create.id, result: Ok(Some(made)) }, later());
    brain.take(seen(Kind::CloudPrivateIpConfig, &request("n1", 3, true)), later());
    let gone = request("n1", 3, true);
    brain.take(Input::Gone { kind: Kind::CloudPrivateIpConfig, object: gone }, later());
    assert!(!brain.pass(later()).writes.iter().any(shows_an_address), "of another object of this name");
}
