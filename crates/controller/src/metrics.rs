//! What the controller counts and measures.
//!
//! Names that OVN-Kubernetes' cluster manager has are kept, so that dashboards and alerts go on working. All times are in
//! seconds. Every instance has its own registry, so that two controllers in one process do not share counts.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use egret_api::Kind;
use egret_brain::{Answer, Numbers};
use egret_core::EventReason;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// The kinds that are written.
const WRITTEN: [Kind; 4] = [Kind::EgressIp, Kind::EgressService, Kind::Node, Kind::CloudPrivateIpConfig];
/// Why an address can be without a node; others are counted when they come.
const REASONS: [EventReason; 7] = [
    EventReason::InvalidEgressNodeSelector,
    EventReason::NoMatchingNodeFound,
    EventReason::MatchingNodesUnavailable,
    EventReason::UnassignedRequest,
    EventReason::EgressIpConflict,
    EventReason::UnsupportedRequest,
    EventReason::InvalidEgressIp,
];
/// How a write can end; see `WriteError::class`.
const RESULTS: [&str; 6] = ["ok", "conflict", "gone", "denied", "invalid", "transient"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKindAndResult {
    kind: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCause {
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReachability {
    reachability: &'static str,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// What the controller counts and measures.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    egress_ips: Gauge,
    node_unreachable: Counter,
    rebalance: Counter,
    decision: Histogram,
    write: Histograms<ByKind>,
    writes: Family<ByKindAndResult, Counter>,
    unassigned: Levels<ByReason>,
    moves: Family<ByCause, Counter>,
    probe: Histograms<ByOutcome>,
    nodes: Levels<ByReachability>,
    mass_silence: Gauge,
    leading: Gauge,
    watch_errors: Family<ByKind, Counter>,
    events: Family<ByResult, Counter>,
    faults: Levels<ByKind>,
    cloud_refusals: Counter,
    marks_denied: Counter,
    heartbeat_age: Gauge<f64, AtomicU64>,
}

/// Gauges of one name that are always set together: a label that is not given any more counts 0, and its series stays,
/// for one that goes away looks to an alert like one that cannot be read.
#[derive(Debug)]
struct Levels<L> {
    family: Family<L, Gauge>,
    label: fn(&'static str) -> L,
    known: Mutex<BTreeSet<&'static str>>,
}

impl<L: Clone + Hash + Eq> Levels<L> {
    fn new(label: fn(&'static str) -> L, known: &[&'static str]) -> Self {
        let family: Family<L, Gauge> = Family::default();
        for name in known {
            drop(family.get_or_create(&label(name)));
        }
        Self { family, label, known: Mutex::new(known.iter().copied().collect()) }
    }

    fn set(&self, levels: &BTreeMap<&'static str, usize>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(levels.keys());
        for name in &*known {
            let level = levels.get(name).copied().unwrap_or_default();
            self.family.get_or_create(&(self.label)(name)).set(signed(level));
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All at zero, in a registry of their own.
    #[must_use]
    pub fn new() -> Self {
        let kinds = Kind::ALL.map(Kind::name);
        let metrics = Self {
            registry: Registry::default(),
            egress_ips: Gauge::default(),
            node_unreachable: Counter::default(),
            rebalance: Counter::default(),
            decision: Histogram::new(exponential_buckets(0.000_1, 2.0, 14)),
            write: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 14))),
            writes: Family::default(),
            unassigned: Levels::new(|reason| ByReason { reason }, &REASONS.map(EventReason::as_str)),
            moves: Family::default(),
            probe: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.000_5, 2.0, 13))),
            nodes: Levels::new(
                |reachability| ByReachability { reachability },
                &["reachable", "unreachable", "not_probed", "in_doubt"],
            ),
            mass_silence: Gauge::default(),
            leading: Gauge::default(),
            watch_errors: Family::default(),
            events: Family::default(),
            faults: Levels::new(|kind| ByKind { kind }, &kinds),
            cloud_refusals: Counter::default(),
            marks_denied: Counter::default(),
            heartbeat_age: Gauge::default(),
        };
        metrics.begin().register()
    }

    /// Lets every series that can be known in advance exist from the start: `increase()` does not see the step from no
    /// series to 1.
    fn begin(self) -> Self {
        for kind in WRITTEN.map(Kind::name) {
            drop(self.write.get_or_create(&ByKind { kind }));
            for result in RESULTS {
                drop(self.writes.get_or_create(&ByKindAndResult { kind, result }));
            }
        }
        for kind in Kind::ALL.map(Kind::name) {
            drop(self.watch_errors.get_or_create(&ByKind { kind }));
        }
        for outcome in [Answer::Alive, Answer::Silent].map(outcome) {
            drop(self.probe.get_or_create(&ByOutcome { outcome }));
        }
        for result in RESULTS {
            drop(self.events.get_or_create(&ByResult { result }));
        }
        self
    }

    /// A full stop is added to every help text, and `_total` to the name of every counter.
    fn register(mut self) -> Self {
        let r = &mut self.registry;
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        r.register("egret_build", "The version of this binary", version);
        r.register(
            "ovnkube_clustermanager_num_egress_ips",
            "Addresses of EgressIPs that have a node",
            self.egress_ips.clone(),
        );
        r.register(
            "ovnkube_clustermanager_egress_ips_node_unreachable",
            "How often a node that answered probes fell silent",
            self.node_unreachable.clone(),
        );
        r.register(
            "ovnkube_clustermanager_egress_ips_rebalance",
            "Assignments that ended although their address was still asked for",
            self.rebalance.clone(),
        );
        r.register(
            "egret_controller_decision_duration_seconds",
            "How long a decision took, from the last change taken in to what is to be written",
            self.decision.clone(),
        );
        r.register(
            "egret_controller_write_duration_seconds",
            "How long a write took until the API server answered",
            self.write.clone(),
        );
        r.register("egret_controller_writes", "Writes by how they ended: ok, or what went wrong", self.writes.clone());
        r.register(
            "egret_controller_unassigned_addresses",
            "Addresses without a node, by the reason",
            self.unassigned.family.clone(),
        );
        r.register("egret_controller_moves", "Assignments of addresses that ended, by the cause", self.moves.clone());
        r.register(
            "egret_controller_probe_duration_seconds",
            "How long a probe of a node took until its outcome was known",
            self.probe.clone(),
        );
        r.register("egret_controller_nodes", "Nodes by what probing says of them", self.nodes.family.clone());
        r.register(
            "egret_controller_mass_silence",
            "1 while so many nodes are silent at once that nothing is moved for it",
            self.mass_silence.clone(),
        );
        r.register(
            "egret_controller_leading",
            "1 while this instance holds the lease and writes",
            self.leading.clone(),
        );
        r.register(
            "egret_controller_watch_errors",
            "Failures of listing or watching a kind; each is tried again",
            self.watch_errors.clone(),
        );
        r.register(
            "egret_controller_events",
            "Warning events raised, by how it ended: ok, or what went wrong",
            self.events.clone(),
        );
        r.register(
            "egret_controller_object_faults",
            "What is wrong with objects as they are stored now, by their kind",
            self.faults.family.clone(),
        );
        r.register(
            "egret_controller_cloud_refusals",
            "How often the cloud refused an address on a node",
            self.cloud_refusals.clone(),
        );
        r.register(
            "egret_controller_marks_denied",
            "How often the API server refused a mark, so that the rest was written without it",
            self.marks_denied.clone(),
        );
        r.register(
            "egret_controller_heartbeat_age_seconds",
            "Time since the loop last turned; above 30 the liveness probe fails",
            self.heartbeat_age.clone(),
        );
        self
    }

    /// All of them in the text format of `OpenMetrics`.
    #[must_use]
    pub fn exposition(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }

    /// A decision took so long.
    pub fn decided(&self, took: Duration) {
        self.decision.observe(took.as_secs_f64());
    }

    /// A write to an object of this kind ended: `ok` or a class of `WriteError`.
    pub fn wrote(&self, kind: Kind, result: &'static str, took: Duration) {
        let kind = kind.name();
        self.write.get_or_create(&ByKind { kind }).observe(took.as_secs_f64());
        self.writes.get_or_create(&ByKindAndResult { kind, result }).inc();
    }

    /// A probe ended.
    pub fn probed(&self, answer: Answer, took: Duration) {
        self.probe.get_or_create(&ByOutcome { outcome: outcome(answer) }).observe(took.as_secs_f64());
    }

    /// The leadership is taken or lost.
    pub fn leading(&self, leading: bool) {
        self.leading.set(leading.into());
    }

    /// Listing or watching a kind failed once.
    pub fn watch_failed(&self, kind: Kind) {
        self.watch_errors.get_or_create(&ByKind { kind: kind.name() }).inc();
    }

    /// An event was raised, or could not be: `ok` or a class of `WriteError`.
    pub fn event(&self, result: &'static str) {
        self.events.get_or_create(&ByResult { result }).inc();
    }

    /// Takes over what the brain counts.
    pub fn record(&self, numbers: &Numbers) {
        self.egress_ips.set(signed(numbers.assigned));
        raise(&self.node_unreachable, numbers.losses);
        raise(&self.rebalance, numbers.rebalanced);
        raise(&self.cloud_refusals, numbers.refusals);
        raise(&self.marks_denied, numbers.marks_denied);
        for (cause, count) in &numbers.moves {
            raise(&self.moves.get_or_create(&ByCause { cause }), *count);
        }
        self.unassigned.set(&numbers.unassigned);
        self.nodes.set(&numbers.nodes);
        let faulty = numbers.faulty.iter().filter_map(|(kind, count)| Some((Kind::parse(kind)?.name(), *count)));
        self.faults.set(&faulty.collect());
        self.mass_silence.set((numbers.in_doubt > 0).into());
    }

    /// The loop turned so long ago.
    pub fn heartbeat_age(&self, age: Duration) {
        self.heartbeat_age.set(age.as_secs_f64());
    }
}

/// A probe that is late has not ended, so that is no outcome.
fn outcome(answer: Answer) -> &'static str {
    match answer {
        Answer::Alive => "alive",
        Answer::Late | Answer::Silent => "silent",
    }
}

/// Raises a counter to a count that is kept elsewhere. One that begins again, as after a change of the leader, does not
/// lower it.
fn raise(counter: &Counter, count: u64) {
    counter.inc_by(count.saturating_sub(counter.get()));
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a series.
    fn value(text: &str, series: &str) -> Option<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok())
    }

    #[test]
    fn names_types_and_help_are_as_reviewed() {
        let metrics = Metrics::new();
        metrics.record(&Numbers { moves: BTreeMap::from([("NotReady", 1)]), ..Numbers::default() });
        let text = metrics.exposition();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
        assert_eq!(lines.join("\n") + "\n", include_str!("metrics/reviewed.txt"));
    }

    #[test]
    fn what_can_be_known_in_advance_is_there_from_the_start() {
        let text = Metrics::new().exposition();
        for series in [
            "ovnkube_clustermanager_num_egress_ips",
            "ovnkube_clustermanager_egress_ips_node_unreachable_total",
            "ovnkube_clustermanager_egress_ips_rebalance_total",
            "egret_controller_writes_total{kind=\"EgressIP\",result=\"denied\"}",
            "egret_controller_write_duration_seconds_count{kind=\"Node\"}",
            "egret_controller_watch_errors_total{kind=\"CloudPrivateIPConfig\"}",
            "egret_controller_nodes{reachability=\"in_doubt\"}",
            "egret_controller_events_total{result=\"ok\"}",
        ] {
            assert_eq!(value(&text, series), Some(0.0), "{series}");
        }
    }

    #[test]
    fn a_reason_that_is_gone_counts_nothing_and_stays() {
        let metrics = Metrics::new();
        let unassigned = BTreeMap::from([("NoMatchingNodeFound", 2)]);
        metrics.record(&Numbers { unassigned, ..Numbers::default() });
        let series = "egret_controller_unassigned_addresses{reason=\"NoMatchingNodeFound\"}";
        assert_eq!(value(&metrics.exposition(), series), Some(2.0));
        metrics.record(&Numbers::default());
        assert_eq!(value(&metrics.exposition(), series), Some(0.0));
    }

    #[test]
    fn faults_have_the_kinds_as_people_write_them() {
        let metrics = Metrics::new();
        metrics.record(&Numbers { faulty: BTreeMap::from([("egressip", 3)]), ..Numbers::default() });
        let text = metrics.exposition();
        assert_eq!(value(&text, "egret_controller_object_faults{kind=\"EgressIP\"}"), Some(3.0));
        assert_eq!(value(&text, "egret_controller_object_faults{kind=\"Node\"}"), Some(0.0));
    }

    #[test]
    fn counters_follow_the_brain_and_never_fall() {
        let metrics = Metrics::new();
        let numbers = |losses| Numbers { losses, moves: BTreeMap::from([("N4", losses)]), ..Numbers::default() };
        for (losses, expected) in [(3, 3.0), (5, 5.0), (1, 5.0)] {
            metrics.record(&numbers(losses));
            let text = metrics.exposition();
            assert_eq!(value(&text, "ovnkube_clustermanager_egress_ips_node_unreachable_total"), Some(expected));
            assert_eq!(value(&text, "egret_controller_moves_total{cause=\"N4\"}"), Some(expected));
        }
    }

    #[test]
    fn a_write_counts_by_kind_and_result() {
        let metrics = Metrics::new();
        metrics.wrote(Kind::EgressIp, "conflict", Duration::from_millis(3));
        metrics.probed(Answer::Silent, Duration::from_secs(1));
        let text = metrics.exposition();
        assert_eq!(value(&text, "egret_controller_writes_total{kind=\"EgressIP\",result=\"conflict\"}"), Some(1.0));
        assert_eq!(value(&text, "egret_controller_write_duration_seconds_count{kind=\"EgressIP\"}"), Some(1.0));
        assert_eq!(value(&text, "egret_controller_probe_duration_seconds_sum{outcome=\"silent\"}"), Some(1.0));
    }
}
