//! The cause of every move.

use egret_core::{CloudState, Snapshot};
use egret_placement::{Cause, Decision, Move, Subject, decide, moves, pending};
use egret_testkit::builders::{
    EgressIpBuilder, NodeBuilder, SnapshotBuilder, address, egress_ip, egress_service, faulty_selector, node,
    service_key, snapshot,
};

use crate::{A, B, one, pooled, settled, worker};

/// `e 10.0.0.100: n1 -> n2 (N4 NotReady)` for every move; without a rule only the name.
fn lines(moves: &[Move]) -> Vec<String> {
    let line = |one: &Move| {
        let subject = match &one.subject {
            Subject::Address(name, address) => format!("{name} {address}"),
            Subject::Service(key) => key.to_string(),
        };
        let verb = match one.cause {
            Cause::NodeGained(_) | Cause::Freed(_) | Cause::HostFound(_) => "no longer ",
            _ => "",
        };
        let cause = one.cause.rule().map_or_else(String::new, |rule| format!("{rule} "));
        format!("{subject}: {} -> {} ({verb}{cause}{})", one.from, one.to, one.cause.name())
    };
    moves.iter().map(line).collect()
}

/// What `change` moves, once everything has come to rest.
fn changed(before: SnapshotBuilder, change: impl FnOnce(&mut Snapshot)) -> Vec<String> {
    let before = before.build();
    let first = decide(&before);
    let mut after = settled(before.clone());
    change(&mut after);
    lines(&moves((&before, &first), (&after, &decide(&after))))
}

/// What the controller would do about what is recorded.
fn due(cluster: SnapshotBuilder) -> Vec<String> {
    let snapshot = cluster.build();
    lines(&pending(&snapshot, &decide(&snapshot)))
}

fn put(snapshot: &mut Snapshot, node: NodeBuilder) {
    node.put(snapshot);
}

fn apply(snapshot: &mut Snapshot, object: EgressIpBuilder) {
    let mut object = object.build();
    if let Some(stored) = snapshot.egress_ips.get(&object.name) {
        object.recorded.clone_from(&stored.recorded);
    }
    snapshot.egress_ips.insert(object.name.clone(), object);
}

/// `e` holds [`A`] on `n1` of pool a; `n2` of pool b is idle.
fn held() -> SnapshotBuilder {
    let cluster = snapshot().ignoring("os=windows").node(pooled("n1", 1, "a")).node(pooled("n2", 2, "b"));
    cluster.egress_ip(one().selector("pool").recorded(A, "n1"))
}

#[test]
fn cause_of_a_move_is_the_first_rule_that_the_old_node_fails() {
    let n1 = || pooled("n1", 1, "a");
    for (node, cause) in [
        (n1().label("os", "windows"), "N1 Ignored"),
        (worker("n1", 1), "N2 SelectorMismatch"),
        (n1().drained(), "N2 Drained"),
        (n1().drained().not_ready(), "N2 Drained"),
        (n1().missing("k8s.ovn.org/host-cidrs"), "N3 NotInfrastructureReady"),
        (n1().not_ready().unreachable(), "N4 NotReady"),
        (n1().unreachable(), "N5 Unreachable"),
        (node("n1").label("pool", "a").primary("10.0.1.1/24"), "N6 NoNetwork"),
    ] {
        let line = format!("e {A}: n1 -> n2 ({cause})");
        assert_eq!(changed(held(), |after| put(after, node)), [line]);
    }
    let gone = changed(held(), |after| drop(after.nodes.remove(&"n1".into())));
    assert_eq!(gone, [format!("e {A}: n1 -> n2 (NodeGone)")]);
    assert_eq!(changed(held(), |after| put(after, n1().not_probed())), [""; 0]);
}

#[test]
fn cause_of_what_the_object_does_itself() {
    let same = |text: &str| egress_ip("e").selector("pool").address(text);
    assert_eq!(
        changed(held(), |after| apply(after, one().selector("pool=b"))),
        [format!("e {A}: n1 -> n2 (N2 SelectorMismatch)")]
    );
    let [gone, new] = &changed(held(), |after| apply(after, same(B)))[..] else { panic!("two moves") };
    assert_eq!(gone, &format!("e {A}: n1 ->  (NotRequested)"));
    assert!(new.starts_with(&format!("e {B}:  -> ")) && new.ends_with("(Requested)"), "{new}");
    let deleted = changed(held(), |after| drop(after.egress_ips.remove(&"e".into())));
    assert_eq!(deleted, [format!("e {A}: n1 ->  (ObjectDeleted)")]);
    assert_eq!(changed(held(), |after| apply(after, one().faulty())), [""; 0]);
    let faulty = |after: &mut Snapshot| {
        apply(after, one().faulty());
        put(after, pooled("n1", 1, "a").not_ready());
    };
    assert_eq!(changed(held(), faulty), [format!("e {A}: n1 ->  (N4 NotReady)")]);
}

#[test]
fn cause_of_a_refusal_is_the_refusal() {
    let host = changed(held(), |after| put(after, node("h").host_address(A)));
    assert_eq!(host, [format!("e {A}: n1 ->  (A2 ConflictsWithHost)")]);
    let back = snapshot().node(worker("n1", 1)).node(node("h").host_address(A)).egress_ip(one());
    let back = changed(back, |after| drop(after.nodes.remove(&"h".into())));
    assert_eq!(back, [format!("e {A}:  -> n1 (no longer A2 ConflictsWithHost)")]);
}

#[test]
fn cause_of_a_waiters_place_is_what_stood_against_it() {
    let full = || {
        let cluster = snapshot().cloud().node(worker("n1", 1).capacity(1));
        cluster.egress_ip(egress_ip("f").address(B).created(1)).egress_ip(one().created(2))
    };
    let freed = format!("e {A}:  -> n1 (no longer N7 CapacityFull)");
    let deleted = changed(full(), |after| {
        after.egress_ips.remove(&"f".into());
        after.cloud.clear();
    });
    assert_eq!(deleted, [freed.clone(), format!("f {B}: n1 ->  (ObjectDeleted)")]);
    assert_eq!(changed(full(), |after| put(after, worker("n1", 1).capacity(2))), [freed]);
    for (node, cause) in [
        (worker("n1", 1).not_ready(), "N4 NotReady"),
        (worker("n1", 1).not_probed(), "N5 NotProbed"),
        (node("n1").primary("10.0.0.1/24"), "N2 SelectorMismatch"),
    ] {
        let found = changed(snapshot().node(node).egress_ip(one()), |after| put(after, worker("n1", 1)));
        assert_eq!(found, [format!("e {A}:  -> n1 (no longer {cause})")]);
    }
    let sibling = snapshot().node(worker("n1", 1)).egress_ip(one().address(B));
    let sibling = changed(sibling, |after| apply(after, egress_ip("e").address(B)));
    assert_eq!(sibling, [format!("e {A}: n1 ->  (NotRequested)"), format!("e {B}:  -> n1 (no longer N8 CoLocated)")]);
    let faulty = changed(snapshot().node(worker("n1", 1)).egress_ip(one().faulty()), |after| apply(after, one()));
    assert_eq!(faulty, [format!("e {A}:  -> n1 (no longer N2 SelectorFaulty)")]);
    let waits = snapshot().node(worker("n1", 1)).egress_ip(egress_ip("f").address(A).created(0));
    let waits = changed(waits.egress_ip(one().created(1)), |after| drop(after.egress_ips.remove(&"f".into())));
    let expected = [format!("e {A}:  -> n1 (no longer A3 HeldByAnother)"), format!("f {A}: n1 ->  (ObjectDeleted)")];
    assert_eq!(waits, expected);
}

#[test]
fn pending_is_what_the_record_lacks() {
    let cluster = || snapshot().node(worker("n1", 1)).node(worker("n2", 2).not_ready());
    assert_eq!(due(cluster().egress_ip(one().recorded(A, "n1"))), [""; 0]);
    assert_eq!(due(cluster().egress_ip(one())), [format!("e {A}:  -> n1 (Requested)")]);
    assert_eq!(due(cluster().egress_ip(one().recorded(A, "n2"))), [format!("e {A}: n2 -> n1 (N4 NotReady)")]);
    assert_eq!(due(cluster().egress_ip(one().recorded(A, "gone"))), [format!("e {A}: gone -> n1 (NodeGone)")]);
    for second in [worker("n2", 2), worker("n2", 2).not_probed()] {
        let twice = snapshot().node(worker("n1", 1)).node(second);
        let twice = due(twice.egress_ip(one().recorded(A, "n1").recorded(A, "n2")));
        assert_eq!(twice, [format!("e {A}: n2 ->  (N8 RecordedTwice)")]);
    }
    let stale = due(cluster().egress_ip(egress_ip("e").recorded(A, "n1")));
    assert_eq!(stale, [format!("e {A}: n1 ->  (NotRequested)")]);
}

#[test]
fn pending_follows_the_cloud() {
    let cluster = || snapshot().cloud().node(worker("n1", 1)).node(worker("n2", 2));
    let asked = || cluster().request(A, "e", "n2", CloudState::Confirmed);
    assert_eq!(due(asked().egress_ip(one().recorded(A, "n1"))), [format!("e {A}: n1 -> n2 (CloudDisagrees)")]);
    assert_eq!(due(asked().egress_ip(one())), [format!("e {A}:  -> n2 (CloudDisagrees)")]);
    assert_eq!(due(asked().egress_ip(one().recorded(A, "n2"))), [""; 0]);
}

#[test]
fn cause_of_a_change_of_host() {
    let local = |service: egret_testkit::builders::EgressServiceBuilder| service.endpoint("10.128.1.5", "n1");
    let cluster = || {
        let pods = |name, last: u8, pool| pooled(name, last, pool).pods(&format!("10.128.{last}.0/24"));
        let service = local(egress_service("ns/s")).selector("pool").recorded("n1");
        snapshot().node(pods("n1", 1, "a")).node(pods("n2", 2, "b")).egress_service(service)
    };
    let n1 = || pooled("n1", 1, "a").pods("10.128.1.0/24");
    for (node, cause) in [
        (n1().not_ready(), "N4 NotReady"),
        (n1().unreachable(), "N5 Unreachable"),
        (n1().drained(), "N2 Drained"),
        (worker("n1", 1).pods("10.128.1.0/24"), "N2 SelectorMismatch"),
    ] {
        assert_eq!(changed(cluster(), |after| put(after, node)), [format!("ns/s: n1 -> n2 ({cause})")]);
    }
    let key = || service_key("ns/s");
    let one_line = |change: &dyn Fn(&mut Snapshot)| changed(cluster(), change);
    assert_eq!(one_line(&|after| drop(after.egress_services.remove(&key()))), ["ns/s: n1 ->  (ObjectDeleted)"]);
    assert_eq!(one_line(&|after| after.services.clear()), ["ns/s: n1 ->  (S1 ServiceMissing)"]);
    assert_eq!(one_line(&|after| drop(after.endpoints.remove(&key()))), ["ns/s: n1 ->  (S3 NoEndpoints)"]);
    let by_network = |after: &mut Snapshot| {
        let object = after.egress_services.get_mut(&key()).expect("an object");
        object.source_ip_by = egret_core::SourceIpBy::Network;
    };
    assert_eq!(one_line(&by_network), ["ns/s: n1 -> ALL (SourceChanged)"]);
    let elsewhere = |after: &mut Snapshot| {
        let endpoint = egret_testkit::builders::endpoint("10.128.2.5", Some("n2"));
        after.endpoints.insert(key(), vec![endpoint]);
        after.services.get_mut(&key()).expect("a service").traffic_policy_local = true;
    };
    assert_eq!(one_line(&elsewhere), ["ns/s: n1 -> n2 (S4 NoLocalEndpoint)"]);
    assert_eq!(one_line(&|after| after.nodes.clear()), ["ns/s: n1 ->  (NodeGone)"]);
    let waiting = snapshot().node(worker("n1", 1)).egress_service(egress_service("ns/s"));
    let found = changed(waiting, |after| {
        after.endpoints.insert(key(), vec![egret_testkit::builders::endpoint("192.0.2.1", Some("n1"))]);
    });
    assert_eq!(found, ["ns/s:  -> n1 (no longer S3 NoEndpoints)"]);
    let mut faulty = cluster().build();
    faulty.egress_services.get_mut(&key()).expect("an object").selector = faulty_selector();
    assert_eq!(lines(&pending(&faulty, &decide(&faulty))), [""; 0]);
}

#[test]
fn the_record_of_a_decision_is_what_was_decided() {
    let cluster = snapshot().node(worker("n1", 1).host_address(A)).node(worker("n2", 2).not_ready());
    let mut cluster = cluster.egress_ip(one().recorded(A, "n2")).departed(A, "n1").build();
    decide(&cluster).record(&mut cluster);
    assert_eq!(Decision::recorded(&cluster).items(&"e".into()), one().recorded(A, "n1").build().recorded);
    assert!(cluster.departed.is_empty(), "it is back");
    // What leaves a node that lists it is remembered.
    let mut back = cluster;
    put(&mut back, worker("n1", 1).host_address(A).not_ready());
    put(&mut back, worker("n2", 2));
    decide(&back).record(&mut back);
    assert_eq!(back.departed, [(address(A), "n1".into())].into());
    // A refusal by the cloud outlives the record; a request for what is not placed any more does not.
    for (state, stays) in [(CloudState::Refused, true), (CloudState::Confirmed, false)] {
        let cluster = snapshot().cloud().node(worker("n1", 1).not_ready());
        let mut cluster = cluster.egress_ip(one()).request(A, "e", "n1", state).build();
        decide(&cluster).record(&mut cluster);
        assert_eq!(cluster.cloud.contains_key(&address(A)), stays, "{state:?}");
    }
}
