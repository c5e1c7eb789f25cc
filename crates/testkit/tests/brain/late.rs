//! Answers that come late.

use egret_api::Kind;
use egret_brain::{Answer, Input};
use serde_json::json;

use crate::definition::{decided, now, object, written};

/// The write had landed, then the object was deleted, and the watch told so before the answer to the write came: the
/// object was known again, its address taken for ever, and nobody would have told again that it is gone.
#[test]
fn the_answer_to_a_write_does_not_revive_what_is_gone_since() {
    let stored = object(2, None);
    let (mut brain, write) = decided(&stored);
    let answer = written(&stored, &write);
    brain.take(Input::Gone { kind: Kind::EgressIp, object: answer.clone() }, now());
    brain.take(Input::Written { id: write.id, result: Ok(Some(answer)) }, now());
    assert_eq!(brain.pass(now()).writes, []);
    let mut heir = object(11, None);
    heir["metadata"] = json!({"name": "heir", "uid": "heir", "resourceVersion": "11"});
    brain.take(Input::Seen { kind: Kind::EgressIp, object: heir.clone() }, now());
    // Nobody asked for the nodes in between.
    for node in brain.pass(now()).targets.keys().cloned() {
        brain.take(Input::Probed { node, answer: Answer::Alive }, now());
    }
    let [write] = &brain.pass(now()).writes[..] else { panic!("the address is free") };
    assert_eq!(written(&heir, write)["status"]["items"][0]["egressIP"], "10.0.0.100");
}

/// One of the same name is another object: the answer says nothing about it.
#[test]
fn nor_is_it_taken_for_a_new_one_of_the_same_name() {
    let stored = object(2, None);
    let (mut brain, write) = decided(&stored);
    let answer = written(&stored, &write);
    let mut new = object(11, None);
    new["metadata"]["uid"] = json!("new");
    brain.take(Input::Gone { kind: Kind::EgressIp, object: answer.clone() }, now());
    brain.take(Input::Seen { kind: Kind::EgressIp, object: new.clone() }, now());
    brain.take(Input::Written { id: write.id, result: Ok(Some(answer)) }, now());
    let [write] = &brain.pass(now()).writes[..] else { panic!("it is written") };
    let status = &written(&new, write)["status"];
    assert_eq!(status["items"][0]["egressIP"], "10.0.0.100");
}
