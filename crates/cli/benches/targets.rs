//! What must be fast, on clusters of real size, each with its target; `make bench` prints which are missed.
//!
//! One thread, release profile. Times are Criterion's medians, so other work on the machine shows; for a comparison run
//! before and after in one go. `docs/performance.md` has the results and how to read them.

#![allow(clippy::print_stdout, missing_docs)]

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use criterion::{BatchSize, Criterion};
use egret_api::Manifests;
use egret_cli::input::{Silent, Source, load};
use egret_core::{Labels, NodeName, Options, Snapshot};
use egret_placement::{Placer, Touched, decide};
use egret_testkit::fixture;

/// Name of the measurement, target, and how the target is written.
const TARGETS: [(&str, Duration, &str); 4] = [
    ("decide from empty, 1000 objects on 500 nodes", Duration::from_millis(10), "10 ms"),
    ("decide from empty, 10000 objects on 5000 nodes", Duration::from_millis(250), "250 ms"),
    ("label change of one node, 1000 objects on 500 nodes", Duration::from_micros(100), "100 us"),
    ("load a YAML dump, 1000 objects and 500 nodes", Duration::from_secs(1), "1 s"),
];

/// Peak memory of deciding the large case, in MB.
const MEMORY_TARGET: u64 = 150;

fn main() {
    if std::env::args().any(|argument| argument == "--memory") {
        let decision = decide(&snapshot(5_000, 10_000));
        println!("{}", peak_memory());
        drop(decision);
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    from_empty(&mut criterion);
    label_change(&mut criterion);
    loading(&mut criterion);
    criterion.final_summary();
    report();
}

/// Object by object, so that the JSON of the whole cluster is never in memory.
fn snapshot(nodes: usize, egress_ips: usize) -> Snapshot {
    let options = Options::default();
    let mut snapshot = Snapshot { options: options.clone(), ..Snapshot::default() };
    for object in fixture::objects(nodes, egress_ips) {
        let mut one = Manifests::default();
        one.insert(object).expect("the fixture is good");
        let part = one.observe(&options).snapshot;
        snapshot.nodes.extend(part.nodes);
        snapshot.egress_ips.extend(part.egress_ips);
    }
    snapshot
}

fn from_empty(criterion: &mut Criterion) {
    for ((name, ..), (nodes, objects)) in TARGETS.iter().zip([(500, 1_000), (5_000, 10_000)]) {
        let snapshot = snapshot(nodes, objects);
        let mut group = criterion.benchmark_group("egret");
        group.sample_size(if nodes > 1_000 { 20 } else { 100 });
        group.bench_function(*name, |bencher| bencher.iter(|| decide(black_box(&snapshot))));
        group.finish();
    }
}

/// A node leaves its pool, and comes back: what it held moves, and then nothing does.
fn label_change(criterion: &mut Criterion) {
    let mut with = snapshot(500, 1_000);
    decide(&with).record(&mut with);
    let name = NodeName::from(fixture::node_name(44).as_str());
    let mut without = with.clone();
    let node = without.nodes.get_mut(&name).expect("the fixture has it");
    let mut labels = (*node.labels).clone();
    labels.remove("egress-pool");
    node.labels = Labels::new(labels);
    let touched = [Touched::Node(name)];
    let mut placer = Placer::new(&with);
    placer.decide();
    let mut group = criterion.benchmark_group("egret");
    group.bench_function(TARGETS[2].0, |bencher| {
        bencher.iter_batched(
            || (),
            |()| {
                placer.update(&without, &touched);
                black_box(placer.decide());
                placer.update(&with, &touched);
                black_box(placer.decide());
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn loading(criterion: &mut Criterion) {
    let text = serde_saphyr::to_string(&fixture::list(500, 1_000)).expect("JSON is YAML");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("cluster.yaml");
    std::fs::write(&path, text).expect("a file in it");
    let sources = [Source::Path(path)];
    let mut group = criterion.benchmark_group("egret");
    group.sample_size(20);
    group.bench_function(TARGETS[3].0, |bencher| {
        bencher.iter(|| load(black_box(&sources), &Silent).manifests.observe(&Options::default()));
    });
    group.finish();
}

/// `VmHWM` of this process in kB: what the kernel says was its greatest resident size.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn report() {
    println!("\n{:<55} {:>12} {:>10}", "what", "median", "target");
    for (name, target, text) in TARGETS {
        // The label benchmark makes two changes.
        let per = if name.starts_with("label") { 2 } else { 1 };
        let Some(median) = median(name) else { continue };
        let median = median / per;
        let verdict = if median <= target { "" } else { "  MISSED" };
        println!("{name:<55} {:>12} {text:>10}{verdict}", format!("{median:.1?}"));
    }
    let output = std::env::current_exe().and_then(|exe| Command::new(exe).arg("--memory").output());
    let peak = output.ok().and_then(|output| String::from_utf8(output.stdout).ok()?.trim().parse::<u64>().ok());
    if let Some(megabytes) = peak.map(|kilobytes| kilobytes / 1_000) {
        let verdict = if megabytes <= MEMORY_TARGET { "" } else { "  MISSED" };
        let (median, target) = (format!("{megabytes} MB"), format!("{MEMORY_TARGET} MB"));
        println!("{:<55} {median:>12} {target:>10}{verdict}", "peak memory, 10000 objects on 5000 nodes");
    }
}

/// The median that Criterion has just written for a benchmark.
fn median(name: &str) -> Option<Duration> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "../../target".into(), std::path::PathBuf::from);
    let file = target.join("criterion/egret").join(directory(name)).join("new/estimates.json");
    let text = std::fs::read_to_string(Path::new(&file)).ok()?;
    let estimates: serde_json::Value = serde_json::from_str(&text).ok()?;
    estimates["median"]["point_estimate"].as_f64().map(|nanoseconds| Duration::from_secs_f64(nanoseconds / 1e9))
}

/// Criterion's name of the folder of a benchmark.
fn directory(name: &str) -> String {
    name.replace(['?', '"', '/', '\\', '*', '<', '>', ':', '|', '^'], "_")
}
