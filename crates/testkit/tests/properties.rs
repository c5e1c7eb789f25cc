//! What holds for every cluster: the decision against the audit, against itself, and against brute force.

use std::collections::{BTreeMap, BTreeSet};

use egret_core::{Address, EgressIp, EgressIpName, Family, NodeName, Snapshot};
use egret_placement::audit::{Check, Finding, State, audit, needless_moves};
use egret_placement::{Decision, Explainer, Outcome, Placer, Touched, Verdict, decide, moves, pending};
use egret_testkit::builders::{egress_ip, node, snapshot};
use egret_testkit::random::{cluster, history};
use proptest::prelude::*;
use proptest::sample::Index;

/// Random clusters for each property: enough that what is rare happens, few enough for a laptop.
const CASES: u32 = 3_000;

/// `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let cases = ProptestConfig::default().cases.max(CASES);
    ProptestConfig { cases, max_global_rejects: cases * 4, failure_persistence: None, ..ProptestConfig::default() }
}

fn recorded(snapshot: &Snapshot, decision: &Decision) -> Snapshot {
    let mut snapshot = snapshot.clone();
    decision.record(&mut snapshot);
    snapshot
}

fn outcomes(decision: &Decision) -> impl Iterator<Item = (&EgressIpName, Address, &Outcome)> {
    decision
        .egress_ips
        .iter()
        .flat_map(|(name, list)| list.iter().map(move |(address, outcome)| (name, *address, outcome)))
}

/// What differs between two snapshots.
fn touched(old: &Snapshot, new: &Snapshot) -> Vec<Touched> {
    fn keys<K: Ord + Clone, V: PartialEq>(old: &BTreeMap<K, V>, new: &BTreeMap<K, V>) -> Vec<K> {
        let all: BTreeSet<&K> = old.keys().chain(new.keys()).collect();
        all.into_iter().filter(|key| old.get(*key) != new.get(*key)).cloned().collect()
    }
    let mut services = keys(&old.egress_services, &new.egress_services);
    services.extend(keys(&old.services, &new.services));
    services.extend(keys(&old.endpoints, &new.endpoints));
    let departed = old.departed.symmetric_difference(&new.departed).map(|(address, _)| Touched::Departed(*address));
    let nodes = keys(&old.nodes, &new.nodes).into_iter().map(Touched::Node);
    let egress_ips = keys(&old.egress_ips, &new.egress_ips).into_iter().map(Touched::EgressIp);
    let cloud = keys(&old.cloud, &new.cloud).into_iter().map(Touched::Cloud);
    nodes.chain(egress_ips).chain(services.into_iter().map(Touched::Service)).chain(cloud).chain(departed).collect()
}

/// A node whose capacity shrank keeps what it has, and the audit says so; a node that was given something new is within
/// the limits that concern it (N7).
fn unexcused(snapshot: &Snapshot, decision: &Decision, findings: Vec<Finding>) -> Vec<Finding> {
    let used = used(snapshot, decision);
    for (name, address, outcome) in outcomes(decision) {
        let Outcome::Placed(node) = outcome else { continue };
        let fits = fits(snapshot, node, address.family(), used[node]);
        assert!(fits, "{address} of {name} was placed on {node}, which is full");
    }
    findings.into_iter().filter(|finding| finding.check != Check::Capacity).collect()
}

/// Whether so many addresses are within the limits of the node that concern `family`.
fn fits(snapshot: &Snapshot, node: &NodeName, family: Family, [v4, v6]: [u32; 2]) -> bool {
    let capacity = snapshot.nodes[node].capacity;
    let within = |count, limit: Option<u32>| limit.is_none_or(|limit| count <= limit);
    within(if family == Family::V4 { v4 } else { v6 }, capacity.family(family)) && within(v4 + v6, capacity.total)
}

/// What each node holds, foreign addresses of the cloud included: IPv4, IPv6.
fn used(snapshot: &Snapshot, decision: &Decision) -> BTreeMap<NodeName, [u32; 2]> {
    let mut used: BTreeMap<NodeName, [u32; 2]> = BTreeMap::new();
    let held = outcomes(decision).filter_map(|(_, address, outcome)| Some((outcome.node()?.clone(), address)));
    let foreign = snapshot.cloud.values().filter(|config| config.owner.is_none());
    for (node, address) in held.chain(foreign.map(|config| (config.node.clone(), config.address))) {
        used.entry(node).or_default()[usize::from(address.family() == Family::V6)] += 1;
    }
    used
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_decision_passes_the_audit(snapshot in cluster()) {
        let decision = decide(&snapshot);
        let after = recorded(&snapshot, &decision);
        let findings = unexcused(&after, &decision, audit(&after, &State::recorded(&after)));
        prop_assert!(findings.is_empty(), "{:#?}\n{:#?}", findings, decision);
    }

    #[test]
    fn a_valid_assignment_never_moves(snapshot in cluster()) {
        let decision = decide(&snapshot);
        let findings = needless_moves(&snapshot, &State::decided(&decision));
        prop_assert!(findings.is_empty(), "{:#?}\n{:#?}", findings, decision);
    }

    #[test]
    fn a_second_decision_moves_nothing(snapshot in cluster()) {
        let decision = decide(&snapshot);
        let after = recorded(&snapshot, &decision);
        let again = decide(&after);
        prop_assert_eq!(State::decided(&again), State::decided(&decision));
        prop_assert_eq!(moves((&snapshot, &decision), (&after, &again)), vec![]);
        prop_assert_eq!(pending(&after, &again), vec![]);
    }

    #[test]
    fn an_incremental_decision_equals_the_full_one((start, history) in history(), writes in any::<u32>()) {
        let mut snapshot = start;
        let mut placer = Placer::new(&snapshot);
        prop_assert_eq!(placer.decide(), &decide(&snapshot));
        for (i, change) in history.iter().enumerate() {
            let before = snapshot.clone();
            if writes >> i & 1 == 1 {
                placer.decision().record(&mut snapshot);
            }
            change.apply(&mut snapshot);
            placer.update(&snapshot, &touched(&before, &snapshot));
            prop_assert_eq!(placer.decide(), &decide(&snapshot), "after {:?}", change);
        }
    }

    #[test]
    fn the_order_of_what_was_seen_does_not_matter(snapshot in cluster(), order in any::<[Index; 8]>()) {
        let empty = Snapshot { options: snapshot.options.clone(), ..Snapshot::default() };
        let mut all = touched(&empty, &snapshot);
        for (i, index) in order.iter().cycle().take(all.len()).enumerate() {
            let j = index.index(all.len());
            all.swap(i, j);
        }
        let mut placer = Placer::new(&empty);
        placer.update(&snapshot, &all);
        prop_assert_eq!(placer.decide(), &decide(&snapshot));
    }

    #[test]
    fn reasons_agree_with_the_decision(snapshot in cluster()) {
        let decision = decide(&snapshot);
        let explainer = Explainer::new(&snapshot, &decision);
        for (name, address, outcome) in outcomes(&decision) {
            let verdicts = explainer.address(&snapshot.egress_ips[name], address);
            let holders: Vec<&NodeName> =
                verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Holds).map(|(node, _)| *node).collect();
            prop_assert_eq!(holders, outcome.node().into_iter().collect::<Vec<_>>());
            let eligible = verdicts.iter().any(|(_, verdict)| matches!(verdict, Verdict::Eligible { .. }));
            prop_assert!(*outcome != Outcome::Unplaced || !eligible, "{} {}: {:?}", name, address, verdicts);
        }
    }

    #[test]
    fn as_many_as_possible_are_placed_oldest_object_first(snapshot in cluster()) {
        let snapshot = small(snapshot);
        let decision = decide(&snapshot);
        let case = Small::new(&snapshot, &decision);
        prop_assume!(case.is_exact() && case.open.len() <= 7);
        let found: Vec<usize> = case.objects.iter().map(|name| placed(&decision, name)).collect();
        prop_assert_eq!(found, case.best(), "{:#?}", decision);
    }

    #[test]
    fn where_room_is_scarce_as_many_as_possible_are_placed_too(snapshot in scarce()) {
        let decision = decide(&snapshot);
        let after = recorded(&snapshot, &decision);
        prop_assert_eq!(unexcused(&after, &decision, audit(&after, &State::recorded(&after))), vec![]);
        let case = Small::new(&snapshot, &decision);
        if case.is_exact() {
            let found: Vec<usize> = case.objects.iter().map(|name| placed(&decision, name)).collect();
            prop_assert_eq!(found, case.best(), "{:#?}", decision);
        }
    }
}

/// Nodes that are all fit, each in some of three networks and with little room, and objects that ask for about as much
/// as there is: first fit fails here in every fourth case.
fn scarce() -> impl Strategy<Value = Snapshot> {
    let room = || proptest::option::weighted(0.7, 0..=2u32);
    let nodes = prop::collection::vec((1..8usize, room(), proptest::option::weighted(0.2, (room(), room()))), 2..=4);
    let address = (0..3usize, any::<bool>());
    let objects = prop::collection::vec(prop::collection::vec(address, 1..=3), 1..=3);
    (nodes, objects).prop_map(|(nodes, objects)| {
        let networks = [("10.0.0", "fd00"), ("10.0.1", "fd01"), ("10.0.2", "fd02")];
        let mut result = snapshot().cloud();
        for (i, (set, total, families)) in nodes.into_iter().enumerate() {
            let within = (0..3).filter(|bit| set >> bit & 1 == 1).map(|bit| networks[bit]);
            let own = within.flat_map(|(v4, v6)| [format!("{v4}.{}/24", i + 1), format!("{v6}::{}/64", i + 1)]);
            let fit = own.fold(node(&format!("n{i}")).assignable(), |node, cidr| node.primary(&cidr));
            result = result.node(fit.adjust(|node| {
                node.capacity.total = total;
                (node.capacity.v4, node.capacity.v6) = families.unwrap_or_default();
            }));
        }
        for (i, addresses) in objects.into_iter().enumerate() {
            let text = |(j, (net, v6)): (usize, (usize, bool))| {
                let (four, six) = networks[net];
                if v6 { format!("{six}::{}", 100 + 10 * i + j) } else { format!("{four}.{}", 100 + 10 * i + j) }
            };
            let object = egress_ip(&format!("e{i}")).created(i64::try_from(i).expect("small"));
            let object = addresses.into_iter().enumerate().map(text).fold(object, |object, text| object.address(&text));
            result = result.egress_ip(object);
        }
        result.build()
    })
}

/// The first four nodes and three objects, three addresses each: what brute force can search.
fn small(mut snapshot: Snapshot) -> Snapshot {
    let nodes: BTreeSet<NodeName> = snapshot.nodes.keys().take(4).cloned().collect();
    let objects: BTreeSet<EgressIpName> = snapshot.egress_ips.keys().take(3).cloned().collect();
    snapshot.nodes.retain(|name, _| nodes.contains(name));
    snapshot.egress_ips.retain(|name, _| objects.contains(name));
    for object in snapshot.egress_ips.values_mut() {
        object.requested.truncate(3);
    }
    snapshot
}

fn placed(decision: &Decision, name: &EgressIpName) -> usize {
    decision.egress_ips[name].iter().filter(|(_, outcome)| matches!(outcome, Outcome::Placed(_))).count()
}

/// The choice as a search problem: the open addresses, where each could go beside what is kept, and the limits.
struct Small<'a> {
    snapshot: &'a Snapshot,
    /// In the order in which they are served.
    objects: Vec<EgressIpName>,
    /// Address, number of its object, nodes.
    open: Vec<(Address, usize, Vec<NodeName>)>,
    /// What is kept or foreign, by node and family.
    used: BTreeMap<NodeName, [u32; 2]>,
}

impl<'a> Small<'a> {
    fn new(snapshot: &'a Snapshot, decision: &Decision) -> Self {
        let mut kept = decision.clone();
        for (_, outcome) in kept.egress_ips.values_mut().flatten() {
            if matches!(outcome, Outcome::Placed(_)) {
                *outcome = Outcome::Unplaced;
            }
        }
        let mut objects: Vec<&EgressIp> = snapshot.egress_ips.values().collect();
        objects.sort_by_key(|object| (object.created, object.name.clone()));
        let explainer = Explainer::new(snapshot, &kept);
        let mut open = Vec::new();
        for (i, object) in objects.iter().enumerate() {
            for (address, outcome) in &kept.egress_ips[&object.name] {
                if *outcome == Outcome::Unplaced {
                    let verdicts = explainer.address(object, *address).into_iter();
                    let nodes = verdicts.filter(|(_, verdict)| matches!(verdict, Verdict::Eligible { .. }));
                    open.push((*address, i, nodes.map(|(node, _)| node.clone()).collect()));
                }
            }
        }
        let used = used(snapshot, &kept);
        Self { snapshot, objects: objects.into_iter().map(|object| object.name.clone()).collect(), open, used }
    }

    /// Rule C3 promises the most only where each object is of one family or capacity is joint.
    fn is_exact(&self) -> bool {
        let joint = |node: &egret_core::Node| node.capacity.v4.is_none() && node.capacity.v6.is_none();
        let one_family = |i: usize| {
            let mut families = self.open.iter().filter(|open| open.1 == i).map(|open| open.0.family());
            let first = families.next();
            families.all(|family| Some(family) == first)
        };
        self.snapshot.nodes.values().all(joint) || (0..self.objects.len()).all(one_family)
    }

    /// The greatest vector of placed addresses by object, oldest first.
    fn best(&self) -> Vec<usize> {
        let mut best = vec![0; self.objects.len()];
        self.search(0, &mut Vec::new(), &mut self.used.clone(), &mut vec![0; self.objects.len()], &mut best);
        best
    }

    fn search(
        &self,
        i: usize,
        taken: &mut Vec<(usize, NodeName)>,
        used: &mut BTreeMap<NodeName, [u32; 2]>,
        counts: &mut Vec<usize>,
        best: &mut Vec<usize>,
    ) {
        let Some((address, object, nodes)) = self.open.get(i) else {
            if *counts > *best {
                best.clone_from(counts);
            }
            return;
        };
        let family = usize::from(address.family() == Family::V6);
        for node in nodes {
            let pair = (*object, node.clone());
            used.entry(node.clone()).or_default()[family] += 1;
            if !taken.contains(&pair) && fits(self.snapshot, node, address.family(), used[node]) {
                taken.push(pair);
                counts[*object] += 1;
                self.search(i + 1, taken, used, counts, best);
                counts[*object] -= 1;
                taken.pop();
            }
            used.entry(node.clone()).or_default()[family] -= 1;
        }
        self.search(i + 1, taken, used, counts, best);
    }
}
