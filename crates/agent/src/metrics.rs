//! What the agent counts and measures. All times are in seconds.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use egret_hostmodel::Report;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::Kind;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByFinding {
    finding: &'static str,
}

/// What the agent counts and measures; every instance has a registry of its own.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    passes: Family<ByResult, Counter>,
    pass: Histogram,
    steps: Counter,
    heals: Counter,
    sources: Gauge,
    findings: Family<ByFinding, Gauge>,
    settled: Gauge,
    watch_errors: Family<ByKind, Counter>,
    heartbeat_age: Gauge<f64, AtomicU64>,
    health_checks: Family<ByResult, Counter>,
    health_failures: Family<ByReason, Counter>,
    health_listeners: Gauge,
    draining: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            passes: Family::default(),
            pass: Histogram::new(exponential_buckets(0.001, 2.0, 13)),
            steps: Counter::default(),
            heals: Counter::default(),
            sources: Gauge::default(),
            findings: Family::default(),
            settled: Gauge::default(),
            watch_errors: Family::default(),
            heartbeat_age: Gauge::default(),
            health_checks: Family::default(),
            health_failures: Family::default(),
            health_listeners: Gauge::default(),
            draining: Gauge::default(),
        };
        metrics.register();
        metrics.begin();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        self.registry.register("egret_agent_build", "What runs", version);
        let registry = self.registry.sub_registry_with_prefix("egret_agent");
        registry.register("passes", "Passes over the node's kernel, by result", self.passes.clone());
        registry.register("pass_duration_seconds", "Time that a pass takes", self.pass.clone());
        registry.register("steps", "Changes made in the kernel", self.steps.clone());
        registry.register("heals", "Passes that found what somebody else had changed", self.heals.clone());
        registry.register("sources", "Sources that have their way out here or are kept in", self.sources.clone());
        registry.register("findings", "What there is to know of objects, by finding", self.findings.clone());
        registry.register("settled", "1 while the kernel is as it should be", self.settled.clone());
        registry.register("watch_errors", "Failures of watches, by kind", self.watch_errors.clone());
        let age = self.heartbeat_age.clone();
        registry.register("heartbeat_age_seconds", "Time since the loop turned", age);
        let (checks, failures) = (self.health_checks.clone(), self.health_failures.clone());
        registry.register("health_checks", "Questions whether the node serves, by answer", checks);
        registry.register("health_failures", "What went wrong with the health service, by reason", failures);
        let listeners = self.health_listeners.clone();
        registry.register("health_listeners", "Addresses that the health service listens on", listeners);
        registry.register("draining", "1 while the node says that it does not serve", self.draining.clone());
    }

    /// Every label that is known in advance begins with 0, so that its first step is seen.
    fn begin(&self) {
        for result in ["ok", "failed"] {
            drop(self.passes.get_or_create(&ByResult { result }));
        }
        for result in ["serving", "not-serving"] {
            drop(self.health_checks.get_or_create(&ByResult { result }));
        }
        for reason in crate::health::FAILURES {
            drop(self.health_failures.get_or_create(&ByReason { reason }));
        }
        for kind in Kind::ALL {
            drop(self.watch_errors.get_or_create(&ByKind { kind: kind.resource().kind }));
        }
        self.shows(0, &[]);
    }

    pub(crate) fn passed(&self, took: Duration, steps: usize, failed: bool, healed: bool) {
        let result = if failed { "failed" } else { "ok" };
        self.passes.get_or_create(&ByResult { result }).inc();
        self.pass.observe(took.as_secs_f64());
        self.steps.inc_by(u64::try_from(steps).unwrap_or(u64::MAX));
        self.settled.set(i64::from(!failed));
        if healed {
            self.heals.inc();
        }
    }

    pub(crate) fn shows(&self, sources: usize, reports: &[Report]) {
        self.sources.set(i64::try_from(sources).unwrap_or(i64::MAX));
        let mut counts: BTreeMap<&'static str, i64> = egret_hostmodel::Finding::NAMES.map(|name| (name, 0)).into();
        for report in reports {
            *counts.entry(report.finding.name()).or_default() += 1;
        }
        for (finding, count) in counts {
            self.findings.get_or_create(&ByFinding { finding }).set(count);
        }
    }

    pub(crate) fn watch_failed(&self, kind: Kind) {
        self.watch_errors.get_or_create(&ByKind { kind: kind.resource().kind }).inc();
    }

    pub(crate) fn heartbeat_age(&self, age: Duration) {
        self.heartbeat_age.set(age.as_secs_f64());
    }

    pub(crate) fn health_checked(&self, serving: bool) {
        let result = if serving { "serving" } else { "not-serving" };
        self.health_checks.get_or_create(&ByResult { result }).inc();
    }

    pub(crate) fn health_failed(&self, reason: &'static str) {
        self.health_failures.get_or_create(&ByReason { reason }).inc();
    }

    pub(crate) fn health_listens(&self, more: i64) {
        self.health_listeners.inc_by(more);
    }

    pub(crate) fn draining(&self, draining: bool) {
        self.draining.set(i64::from(draining));
    }

    /// All of them, as `OpenMetrics` text.
    #[must_use]
    pub fn exposition(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("text takes everything");
        text
    }
}
