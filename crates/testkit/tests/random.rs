//! Random clusters reach what they are made for.

use std::collections::BTreeMap;

use egret_core::{Reachability, Snapshot};
use egret_placement::{Decision, Outcome, ServiceOutcome, decide, event_reasons};
use egret_testkit::random::{cluster, history};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const CLUSTERS: usize = 2000;

/// What a decision has in it, in words.
fn outcomes(snapshot: &Snapshot, decision: &Decision) -> Vec<String> {
    let address = |outcome: &Outcome| match outcome {
        Outcome::Kept(_) => "address kept".to_owned(),
        Outcome::Placed(_) => "address placed".to_owned(),
        Outcome::Refused(reason) => reason.rule().to_owned(),
        Outcome::Unplaced => "address unplaced".to_owned(),
    };
    let service = |outcome: &ServiceOutcome| match outcome {
        ServiceOutcome::Kept(_) => "service kept".to_owned(),
        ServiceOutcome::Elected(_) => "service elected".to_owned(),
        ServiceOutcome::All => "service on all".to_owned(),
        ServiceOutcome::None(reason) => reason.name().to_owned(),
    };
    let mut all: Vec<String> = decision.egress_ips.values().flatten().map(|(_, outcome)| address(outcome)).collect();
    all.extend(decision.egress_services.values().map(service));
    let names = decision.egress_ips.keys();
    all.extend(names.flat_map(|name| event_reasons(snapshot, decision, name)).map(|reason| reason.to_string()));
    all
}

#[test]
fn every_outcome_comes_up_and_not_only_once() {
    let mut counts = BTreeMap::<String, usize>::new();
    let (mut runner, strategy) = (TestRunner::deterministic(), cluster());
    for _ in 0..CLUSTERS {
        let snapshot = strategy.new_tree(&mut runner).expect("a cluster").current();
        let mut found = outcomes(&snapshot, &decide(&snapshot));
        found.sort();
        found.dedup();
        for outcome in found {
            *counts.entry(outcome).or_default() += 1;
        }
    }
    for outcome in [
        "address kept",
        "address placed",
        "address unplaced",
        "A2",
        "A3",
        "service kept",
        "service elected",
        "service on all",
        "ServiceMissing",
        "SharedGateway",
        "NoIngress",
        "NoEndpoints",
        "SelectorFaulty",
        "NoEligibleNode",
        "InvalidEgressNodeSelector",
        "NoMatchingNodeFound",
        "MatchingNodesUnavailable",
        "UnassignedRequest",
        "EgressIPConflict",
        "UnsupportedRequest",
        "InvalidEgressIP",
    ] {
        let count = counts.get(outcome).copied().unwrap_or_default();
        assert!(count >= CLUSTERS / 100, "{outcome}: in {count} of {CLUSTERS} clusters; {counts:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// What an observation promises of its lists holds for random clusters too, after changes as well.
    #[test]
    fn a_random_cluster_is_one_that_could_be_observed((mut snapshot, changes) in history()) {
        for change in std::iter::once(None).chain(changes.iter().map(Some)) {
            if let Some(change) = change {
                change.apply(&mut snapshot);
            }
            for (name, node) in &snapshot.nodes {
                prop_assert_eq!(name, &node.name);
            }
            for (name, egress_ip) in &snapshot.egress_ips {
                prop_assert_eq!(name, &egress_ip.name);
                prop_assert!(egress_ip.requested.is_sorted_by(|a, b| a < b));
                prop_assert!(egress_ip.recorded.is_sorted_by(|a, b| a < b));
            }
            for (key, service) in &snapshot.egress_services {
                prop_assert_eq!(key, &service.key);
            }
            for endpoints in snapshot.endpoints.values() {
                prop_assert!(endpoints.is_sorted_by(|a, b| a < b));
            }
        }
    }
}

/// A failing case is only read if it is small: what remains of a cluster that must have a silent node is that node.
#[test]
fn a_cluster_shrinks_to_what_matters() {
    let silent = |snapshot: &Snapshot| snapshot.nodes.values().any(|n| n.reachability == Reachability::Unreachable);
    let (mut runner, strategy) = (TestRunner::deterministic(), cluster());
    let mut tree = strategy.new_tree(&mut runner).expect("a cluster");
    while !silent(&tree.current()) {
        tree = strategy.new_tree(&mut runner).expect("a cluster");
    }
    let mut smallest = tree.current();
    for _ in 0..10_000 {
        let smaller = if silent(&tree.current()) { tree.simplify() } else { tree.complicate() };
        if !smaller {
            break;
        }
        if silent(&tree.current()) {
            smallest = tree.current();
        }
    }
    assert_eq!(smallest.nodes.len(), 1, "{smallest:#?}");
    assert!(smallest.egress_ips.is_empty() && smallest.egress_services.is_empty(), "{smallest:#?}");
}
