//! Whoever is on call finds every metric, every alert and every option in the pages.

use std::collections::BTreeSet;
use std::fs;

use clap::CommandFactory;
use egret_brain::Numbers;
use egret_cli::args::Cli;
use egret_controller::Metrics;

use crate::none;
use crate::page::split;
use crate::support::root;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("the file is there")
}

/// What is missing on either side.
fn compare(real: &BTreeSet<String>, told: &BTreeSet<String>) -> Vec<String> {
    let untold = real.difference(told).map(|name| format!("{name} is not told of"));
    let gone = told.difference(real).map(|name| format!("{name} is told of, but there is none"));
    untold.chain(gone).collect()
}

/// The names in the first column of a page's tables.
fn first_column(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn every_metric_is_told_of() {
    let metrics = Metrics::new();
    // Those whose labels nobody knows in advance have no series before the first count.
    let numbers = Numbers { unassigned: [("x", 1)].into(), moves: [("x", 1)].into(), ..Numbers::default() };
    metrics.record(&numbers);
    let exposition = metrics.exposition() + &egret_agent::Metrics::default().exposition();
    let types = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let real = types.filter_map(|line| line.split_once(' ')).map(|(name, kind)| match kind {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.to_owned(),
    });
    let told = first_column(&read("docs/operations/metrics.md")).into_iter().filter(|name| !name.starts_with('/'));
    none(&compare(&real.collect(), &told.collect()));
}

#[test]
fn every_alert_has_its_section() {
    let rules = read("deploy/components/monitoring/rules.yaml");
    let real = rules.lines().filter_map(|line| line.trim_start().strip_prefix("- alert: ")).map(str::to_owned);
    let (_, prose) = split(&read("docs/operations/alerts.md"));
    let told = prose.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned);
    let (real, told): (BTreeSet<String>, BTreeSet<String>) = (real.collect(), told.collect());
    none(&compare(&real, &told));
    for line in rules.lines().filter_map(|line| line.trim_start().strip_prefix("runbook: ")) {
        let (page, anchor) = line.split_once('#').expect("a runbook is a section of a page");
        assert_eq!(page, "docs/operations/alerts.md");
        assert!(told.iter().any(|alert| alert.to_lowercase() == anchor), "{anchor} is no section");
    }
}

#[test]
fn every_option_of_the_controller_is_told_of() {
    let command = Cli::command();
    let controller = command.find_subcommand("controller").expect("there is a controller");
    let options: Vec<&str> = controller.get_arguments().filter_map(clap::Arg::get_long).collect();
    assert!(options.contains(&"probe-port"));
    let page = read("docs/operations/tuning.md");
    let untold = options.iter().filter(|option| **option != "help" && !page.contains(&format!("`--{option}")));
    none(&untold.map(|option| format!("docs/operations/tuning.md does not tell of --{option}")).collect::<Vec<_>>());
}

#[test]
fn what_is_missing_or_made_up_is_found() {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(compare(&set(&["a", "b"]), &set(&["b", "c"])), ["a is not told of", "c is told of, but there is none"]);
    assert_eq!(
        first_column("| name | type |\n| --- | --- |\n| `a_total` | counter |\n| other | `b` |\n"),
        set(&["a_total"])
    );
}
