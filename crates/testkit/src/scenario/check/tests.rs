//! Each thing that must hold after every step is seen not to hold.

use serde_json::{Value, json};

use super::*;
use crate::world::{Raised, Version, Writer};

fn egress_ip(name: &str, items: &[(&str, &str)]) -> Version {
    let items: Vec<Value> = items.iter().map(|(address, node)| json!({ "egressIP": address, "node": node })).collect();
    let object = json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": { "name": name, "uid": format!("uid-{name}") },
        "status": { "items": items },
    });
    let key = egret_api::ObjectKey::cluster(Kind::EgressIp, name);
    Version { key, object: Some(object), writer: Writer::Controller }
}

fn request(node: &str, confirmed: &str) -> Version {
    let object = json!({
        "metadata": { "name": "10.0.0.1", "uid": "uid", "annotations": { "k8s.ovn.org/egressip-owner-ref": "a" } },
        "spec": { "node": node },
        "status": { "node": confirmed, "conditions": [{ "type": "Assigned", "status": "True" }] },
    });
    let key = egret_api::ObjectKey::cluster(Kind::CloudPrivateIpConfig, "10.0.0.1");
    Version { key, object: Some(object), writer: Writer::Controller }
}

fn by_others(version: Version) -> Version {
    Version { writer: Writer::Other, ..version }
}

fn event(name: &str, uid: &str) -> Raised {
    let [kind, reason, message] = ["EgressIP", "NoMatchingNodeFound", "text"].map(str::to_owned);
    Raised { kind, name: name.to_owned(), uid: uid.to_owned(), reason, message }
}

fn ready() -> Op {
    Op::SetReady { node: "n1".to_owned(), ready: true }
}

/// What is found wrong in the versions that follow the first ones.
fn faults(before: &[Version], history: &History, op: &Op, cloud: bool) -> Vec<String> {
    let mut start = State::default();
    for version in before {
        start.apply(version);
    }
    let mut now = start.clone();
    for version in &history.versions {
        now.apply(version);
    }
    let (probed, replay) = (BTreeSet::new(), Replay::of(&start, history));
    let scene = Scene { before: &start, now: &now, probed: &probed, history, op, cloud, replay };
    let mut tally = Tally::default();
    scene.check(&Expect::default(), &mut tally);
    tally.failures.into_iter().map(|failure| format!("{}: {}", failure.what, failure.found)).collect()
}

fn versions(versions: Vec<Version>) -> History {
    History { versions, ..History::default() }
}

#[track_caller]
fn only(faults: &[String], expected: &str) {
    let [fault] = faults else { panic!("one fault, not {faults:?}") };
    assert!(fault.contains(expected), "{fault}");
}

#[test]
fn an_address_with_two_owners_for_a_moment_is_found() {
    let before = [egress_ip("a", &[("10.0.0.1", "n1")]), egress_ip("b", &[])];
    let give = egress_ip("b", &[("10.0.0.1", "n1")]);
    let take = egress_ip("a", &[]);
    let found = faults(&before, &versions(vec![give.clone(), take.clone()]), &ready(), false);
    only(&found, "10.0.0.1 given to b while a has it");
    assert_eq!(faults(&before, &versions(vec![take, give.clone()]), &ready(), false), Vec::<String>::new());
    let found = faults(&before, &versions(vec![by_others(give)]), &ready(), false);
    only(&found, "10.0.0.1 is held by a and b");
}

#[test]
fn two_addresses_on_a_node_for_a_moment_are_found() {
    let before = [egress_ip("a", &[("10.0.0.1", "n1")])];
    let both = egress_ip("a", &[("10.0.0.1", "n1"), ("10.0.0.2", "n1")]);
    let apart = egress_ip("a", &[("10.0.0.1", "n1"), ("10.0.0.2", "n2")]);
    let found = faults(&before, &versions(vec![both, apart]), &ready(), false);
    assert!(
        found.iter().any(|fault| fault.contains("in every version") || fault.contains("10.0.0.2\", \"n1")),
        "{found:?}"
    );
}

#[test]
fn a_detour_is_found_but_where_several_things_change() {
    let before = [egress_ip("a", &[("10.0.0.1", "n1")])];
    let way = versions(vec![egress_ip("a", &[("10.0.0.1", "n2")]), egress_ip("a", &[("10.0.0.1", "n3")])]);
    only(&faults(&before, &way, &ready(), false), "10.0.0.1 was on n2");
    let batch = Op::Batch { steps: vec![ready(), ready()] };
    assert_eq!(faults(&before, &way, &batch, false), Vec::<String>::new());
}

#[test]
fn a_write_that_changes_nothing_in_the_end_is_found() {
    let [there, gone] = [egress_ip("a", &[("10.0.0.1", "n1")]), egress_ip("a", &[])];
    let way = vec![gone.clone(), there.clone()];
    only(&faults(std::slice::from_ref(&there), &versions(way), &ready(), false), "egressip/a");
    let tried = History { attempts: vec![there.key.clone()], ..History::default() };
    only(&faults(std::slice::from_ref(&there), &tried, &ready(), false), "egressip/a");
    let repaired = versions(vec![by_others(gone), there.clone()]);
    assert_eq!(faults(&[there], &repaired, &ready(), false), Vec::<String>::new());
}

#[test]
fn a_request_that_changes_under_a_status_is_found() {
    let before = [egress_ip("a", &[("10.0.0.1", "n1")]), request("n1", "n1")];
    let (down, moved) = (egress_ip("a", &[]), request("n2", "n1"));
    let found = faults(&before, &versions(vec![moved.clone(), down.clone()]), &ready(), true);
    only(&found, "10.0.0.1: n1 -> Some(\"n2\") while a has it on n1");
    let withdrawn = Version { object: None, ..moved.clone() };
    let found = faults(&before, &versions(vec![withdrawn, down.clone()]), &ready(), true);
    only(&found, "10.0.0.1: n1 -> None while a has it on n1");
    assert_eq!(faults(&before, &versions(vec![down, moved]), &ready(), true), Vec::<String>::new());
}

#[test]
fn a_status_that_the_cloud_has_not_confirmed_is_found() {
    let up = versions(vec![egress_ip("a", &[("10.0.0.1", "n2")])]);
    let start = |request| [egress_ip("a", &[]), request];
    only(&faults(&start(request("n2", "n1")), &up, &ready(), true), "10.0.0.1 on n2: the cloud says");
    only(&faults(&start(request("n1", "n1")), &up, &ready(), true), "10.0.0.1 on n2: the cloud says");
    only(&faults(&start(egress_ip("b", &[])), &up, &ready(), true), "10.0.0.1 on n2: the cloud says None");
    assert_eq!(faults(&start(request("n2", "n2")), &up, &ready(), true), Vec::<String>::new());
}

#[test]
fn an_event_of_another_uid_or_told_again_is_found() {
    let before = [egress_ip("a", &[])];
    let told = |raised| History { raised, ..History::default() };
    only(&faults(&before, &told(vec![event("a", "")]), &Op::Start {}, false), "uid");
    let twice = told(vec![event("a", "uid-a"), event("a", "uid-a")]);
    only(&faults(&before, &twice, &Op::Start {}, false), "twice");
    let once = told(vec![event("a", "uid-a")]);
    only(&faults(&before, &once, &ready(), false), "again");
    assert_eq!(faults(&before, &once, &Op::Start {}, false), Vec::<String>::new());
}
