//! The dashboard: Grafana's JSON, with queries that Prometheus understands, about metrics that exist.

use std::collections::{BTreeMap, BTreeSet};

use egret_brain::Numbers;
use egret_controller::Metrics;
use serde_json::{Value, json};

use crate::manifests::rendered;
use crate::none;
use crate::tool::{printed, read};

/// The series that a controller or an agent serves.
fn series() -> BTreeSet<String> {
    let metrics = Metrics::new();
    // What has no label yet has no line either.
    let (unassigned, moves) = (BTreeMap::from([("reason", 1)]), BTreeMap::from([("cause", 1)]));
    metrics.record(&Numbers { unassigned, moves, ..Numbers::default() });
    let exposition = metrics.exposition() + &egret_agent::Metrics::default().exposition();
    let types = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .flat_map(|line| {
            let (name, kind) = line.split_once(' ').expect("a name and a type");
            let endings: &[&str] = match kind {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_sum", "_count"],
                "info" => &["_info"],
                _ => &[""],
            };
            endings.iter().map(move |ending| format!("{name}{ending}"))
        })
        .collect()
}

/// What a query asks for that neither serves.
pub(crate) fn unknown_metrics(text: &str) -> Vec<String> {
    let known = series();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let metrics = words.filter(|word| word.starts_with("egret_") || word.starts_with("ovnkube_"));
    metrics.filter(|word| !known.contains(*word)).map(|word| format!("there is no metric {word}")).collect()
}

fn dashboard() -> Value {
    serde_json::from_str(&read("deploy/components/monitoring/dashboard.json")).expect("JSON")
}

fn panels(dashboard: &Value) -> Vec<&Value> {
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    panels.filter(|panel| panel["type"] != "row").collect()
}

fn queries(dashboard: &Value) -> Vec<String> {
    let targets = panels(dashboard).into_iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    targets.map(|target| target["expr"].as_str().expect("a query").to_owned()).collect()
}

fn bare(panel: &Value) -> Vec<String> {
    let said = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let rules = [
        (said(&panel["title"]), "a title"),
        (said(&panel["description"]), "a description"),
        (said(&panel["fieldConfig"]["defaults"]["unit"]), "a unit"),
        (panel["datasource"]["uid"] == "${datasource}", "a data source that can be chosen"),
        (panel["targets"].as_array().is_some_and(|targets| !targets.is_empty()), "a query"),
    ];
    rules.iter().filter(|(kept, _)| !kept).map(|(_, rule)| format!("{} is without {rule}", panel["title"])).collect()
}

#[test]
fn every_panel_says_what_it_shows_and_in_what_unit() {
    let dashboard = dashboard();
    none(&panels(&dashboard).into_iter().flat_map(bare).collect::<Vec<_>>());
    assert_eq!(bare(&json!({"title": "a"})).len(), 4);
}

#[test]
fn panels_stand_side_by_side() {
    let dashboard = dashboard();
    let all = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<u64> = all.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), all.len(), "each has a number of its own");
    let mut cells = BTreeSet::new();
    for panel in all {
        let at = |key: &str| panel["gridPos"][key].as_u64().expect("a place");
        assert!(at("x") + at("w") <= 24, "{} is too wide", panel["title"]);
        for cell in (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{} covers another", panel["title"]);
        }
    }
}

#[test]
fn prometheus_understands_every_query() {
    let plain = |query: &String| query.replace("$__rate_interval", "5m").replace("$job", ".*");
    let queries = queries(&dashboard());
    let rules: Vec<Value> = queries.iter().map(|query| json!({"record": "a", "expr": plain(query)})).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let file = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    std::fs::write(folder.path().join("queries.yaml"), file.to_string()).expect("a file");
    // Linting would complain that several rules record the same series.
    let said = printed("promtool", folder.path(), &["check", "rules", "--lint=none", "queries.yaml"]);
    assert!(said.contains(&format!("{} rules found", queries.len())), "{said}");
}

#[test]
fn queries_are_about_metrics_that_exist_and_none_is_forgotten() {
    let queries = queries(&dashboard());
    none(&queries.iter().flat_map(|query| unknown_metrics(query)).collect::<Vec<_>>());
    assert_eq!(unknown_metrics("rate(egret_controller_writes[5m])"), ["there is no metric egret_controller_writes"]);
    let shown = queries.join(" ");
    let is_shown = |name: &String| shown.contains(name.as_str()) || name.ends_with("_sum") || name.ends_with("_count");
    let hidden: Vec<String> =
        series().into_iter().filter(|name| !is_shown(name) && !name.ends_with("build_info")).collect();
    none(&hidden);
}

#[test]
fn grafana_is_given_what_is_reviewed() {
    let manifests = rendered("base", &["monitoring"]);
    let given = &manifests.get("ConfigMap", "egret-dashboard")["data"]["egret.json"];
    assert_eq!(given.as_str(), Some(read("deploy/components/monitoring/dashboard.json").as_str()));
}
