//! Faults that were found in the decision code, each as the smallest cluster that showed it.

use egret_core::{CloudState, NodeSelector, Snapshot};
use egret_placement::audit::{State, audit};
use egret_placement::{Cause, Explainer, NodeReason, decide, moves};
use egret_testkit::builders::{
    NodeBuilder, address, egress_ip, egress_service, faulty_selector, node, service_key, snapshot,
};

const A: &str = "10.0.0.100";

fn worker(name: &str, last: u8) -> NodeBuilder {
    node(name).assignable().primary(&format!("10.0.0.{last}/24"))
}

fn outcome(snapshot: &Snapshot, object: &str, text: &str) -> String {
    format!("{:?}", decide(snapshot).outcome(&object.into(), address(text)).expect("it is requested"))
}

fn causes(before: &Snapshot, change: impl FnOnce(&mut Snapshot)) -> Vec<Cause> {
    let decision = decide(before);
    let mut after = before.clone();
    decision.record(&mut after);
    change(&mut after);
    let then = decide(&after);
    moves((before, &decision), (&after, &then)).into_iter().map(|moved| moved.cause).collect()
}

/// A kept address over a shrunken limit of the other family undid a legal path.
#[test]
fn c3_a_limit_of_the_other_family_does_not_undo_a_path() {
    let snapshot = snapshot()
        .cloud()
        .node(worker("n1", 1).primary("fd00::1/64").capacities(None, Some(0)))
        .node(worker("n2", 2).label("pool", "b").capacity(1))
        .egress_ip(egress_ip("kept").address("fd00::100").recorded("fd00::100", "n1"))
        .egress_ip(egress_ip("old").address(A).created(1))
        .egress_ip(egress_ip("young").address("10.0.0.200").selector("pool=b").created(2))
        .build();
    assert_eq!(outcome(&snapshot, "young", "10.0.0.200"), r#"Placed("n2")"#);
}

/// The excuse of A2 looked at the cloud's node alone, while the address was still on the status' node.
#[test]
fn a2_the_status_excuses_also_where_the_cloud_has_moved_on() {
    let snapshot = snapshot()
        .cloud()
        .node(worker("n1", 1).host_address(A))
        .node(worker("n2", 2))
        .egress_ip(egress_ip("e").address(A).recorded(A, "n1"))
        .request(A, "e", "n2", CloudState::Confirmed)
        .build();
    assert_eq!(outcome(&snapshot, "e", A), r#"Kept("n2")"#);
}

/// A stale status won over what the cloud has confirmed for another object; recording the decision forgot a departure.
#[test]
fn a3_the_holder_is_who_the_cloud_has_it_for() {
    for listed in [false, true] {
        let second = worker("n2", 2);
        let second = if listed { second.host_address(A) } else { second };
        let mut snapshot = snapshot()
            .cloud()
            .node(worker("n1", 1))
            .node(second)
            .egress_ip(egress_ip("a").address(A).recorded(A, "n1"))
            .egress_ip(egress_ip("b").address(A))
            .request(A, "b", "n2", CloudState::Confirmed)
            .build();
        assert_eq!(outcome(&snapshot, "b", A), r#"Kept("n2")"#);
        let decision = decide(&snapshot);
        decision.record(&mut snapshot);
        assert_eq!(State::decided(&decide(&snapshot)), State::decided(&decision));
    }
}

#[test]
fn cause_of_what_the_cloud_does_is_the_cloud() {
    let snapshot = snapshot()
        .cloud()
        .node(worker("n1", 1))
        .node(worker("n2", 2).not_ready())
        .egress_ip(egress_ip("e").address(A))
        .build();
    let refused = causes(&snapshot, |after| {
        worker("n2", 2).put(after);
        after.cloud.get_mut(&address(A)).expect("it was asked for").state = CloudState::Refused;
    });
    assert_eq!(refused, [Cause::CloudRefused]);
    let elsewhere = causes(&snapshot, |after| {
        worker("n2", 2).put(after);
        after.cloud.get_mut(&address(A)).expect("it was asked for").node = "n2".into();
    });
    assert_eq!(elsewhere, [Cause::CloudDisagrees]);
}

#[test]
fn cause_of_a_place_on_a_new_node_is_the_node() {
    let snapshot = snapshot().node(worker("n1", 1).not_ready()).egress_ip(egress_ip("e").address(A)).build();
    assert_eq!(causes(&snapshot, |after| worker("n2", 2).put(after)), [Cause::NodeJoined]);
}

#[test]
fn cause_of_a_lost_host_is_the_node_even_under_a_faulty_selector() {
    let mut snapshot = snapshot()
        .node(node("n1"))
        .egress_service(egress_service("ns/s").endpoint("192.0.2.1", "n1").recorded("n1"))
        .build();
    let faulty: NodeSelector = faulty_selector();
    snapshot.egress_services.get_mut(&service_key("ns/s")).expect("it was put").selector = faulty;
    let lost = causes(&snapshot, |after| node("n1").not_ready().put(after));
    assert_eq!(lost, [Cause::NodeLost(NodeReason::NotReady)]);
}

/// A deleted object's address was taken for a host address, for its node still lists it.
#[test]
fn a2_an_address_that_left_with_its_object_is_excused() {
    let snapshot = snapshot()
        .node(worker("n1", 1).host_address(A))
        .egress_ip(egress_ip("holder").address(A).recorded(A, "n1").created(1))
        .egress_ip(egress_ip("waiter").address(A).created(2))
        .build();
    let both = causes(&snapshot, |after| {
        after.egress_ips.remove(&"holder".into());
        let decision = decide(&snapshot);
        decision.record(after);
    });
    assert_eq!(both.len(), 2, "{both:?}");
}

#[test]
fn audit_sees_a_request_for_another_object() {
    let snapshot = snapshot()
        .cloud()
        .node(worker("n1", 1))
        .egress_ip(egress_ip("e").address(A).recorded(A, "n1"))
        .request(A, "f", "n1", CloudState::Confirmed)
        .build();
    assert!(!audit(&snapshot, &State::recorded(&snapshot)).is_empty());
}

#[test]
fn s4_the_selector_is_told_before_readiness() {
    let snapshot = snapshot()
        .node(node("n1").label("pool", "b").not_ready())
        .egress_service(egress_service("ns/s").selector("pool=a").endpoint("192.0.2.1", "n1"))
        .build();
    let decision = decide(&snapshot);
    let verdicts = Explainer::new(&snapshot, &decision).service(&snapshot.egress_services[&service_key("ns/s")]);
    assert!(format!("{:?}", verdicts[0].1).contains("SelectorMismatch"));
}
