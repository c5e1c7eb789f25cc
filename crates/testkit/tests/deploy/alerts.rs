//! Alerts: Prometheus' own tool reads and tries them, each says what to do, and each is about metrics that exist.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::dashboard::unknown_metrics;
use crate::manifests::parse;
use crate::none;
use crate::tool::{printed, read, run};

/// The spec of the `PrometheusRule`, which is what Prometheus itself reads from a file.
fn groups() -> Value {
    let manifests = parse(&read("deploy/components/monitoring/rules.yaml"));
    manifests.get("PrometheusRule", "egret")["spec"].clone()
}

fn rules(groups: &Value) -> Vec<Value> {
    groups["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .flat_map(|group| group["rules"].as_array().cloned().expect("rules"))
        .collect()
}

fn text<'a>(rule: &'a Value, pointer: &str) -> &'a str {
    rule.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn write_rules(folder: &Path, groups: &Value) {
    std::fs::write(folder.join("rules.yaml"), groups.to_string()).expect("a file");
}

/// Plays the cases of `rules.test.yaml` with these rules.
fn tried(groups: &Value) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    write_rules(folder.path(), groups);
    let cases = read("deploy/components/monitoring/rules.test.yaml");
    std::fs::write(folder.path().join("rules.test.yaml"), cases).expect("a file");
    run("promtool", folder.path(), &["test", "rules", "rules.test.yaml"])
}

#[test]
fn prometheus_takes_the_rules() {
    let folder = tempfile::tempdir().expect("a folder");
    write_rules(folder.path(), &groups());
    let said = printed("promtool", folder.path(), &["check", "rules", "rules.yaml"]);
    assert!(said.contains(&format!("{} rules found", rules(&groups()).len())), "{said}");
}

#[test]
fn alerts_fire_when_they_should_and_only_then() {
    let output = tried(&groups());
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn no_alert_could_be_missing_or_always_there_without_a_case_that_notices() {
    for index in 0..rules(&groups()).len() {
        for expression in ["vector(0) > 1", "vector(1)"] {
            let mut changed = groups();
            changed["groups"][0]["rules"][index]["expr"] = expression.into();
            let name = text(&changed, &format!("/groups/0/rules/{index}/alert")).to_owned();
            assert!(!tried(&changed).status.success(), "{name} may as well be {expression}");
        }
    }
}

/// An alert without a way to act on it only wakes people up.
fn helpless(rule: &Value, page: &str) -> Vec<String> {
    let name = text(rule, "/alert");
    let description = text(rule, "/annotations/description");
    // Every second part stands between backquotes.
    let mut commands = description.split('`').skip(1).step_by(2);
    let anchor = format!("docs/operations/alerts.md#{}", name.to_lowercase());
    let rules = [
        (name.starts_with("Egret"), "has our name"),
        (["critical", "warning"].contains(&text(rule, "/labels/severity")), "says how bad it is"),
        (!text(rule, "/annotations/summary").is_empty(), "says what is wrong"),
        (commands.any(|command| command.starts_with("egret ") || command.starts_with("kubectl ")), "names a command"),
        (text(rule, "/annotations/runbook") == anchor, "leads to its paragraph"),
        (
            page.lines().any(|line| line.trim_start_matches('#').trim() == name && line.starts_with('#')),
            "is in docs/operations/alerts.md",
        ),
    ];
    rules.iter().filter(|(kept, _)| !kept).map(|(_, rule)| format!("not so: {name} {rule}")).collect()
}

#[test]
fn every_alert_names_what_to_do() {
    let page = read("docs/operations/alerts.md");
    none(&rules(&groups()).iter().flat_map(|rule| helpless(rule, &page)).collect::<Vec<_>>());
}

#[test]
fn an_alert_that_names_nothing_is_refused() {
    assert_eq!(helpless(&json!({"alert": "Other"}), "").len(), 6);
    let rule = json!({
        "alert": "EgretA",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "a",
            "description": "Run `egret status`.",
            "runbook": "docs/operations/alerts.md#egreta",
        },
    });
    assert_eq!(helpless(&rule, "# Alerts\n\n## EgretA\n"), [""; 0]);
    assert_eq!(helpless(&rule, "# Alerts\n\n## EgretAbc\n"), ["not so: EgretA is in docs/operations/alerts.md"]);
}

#[test]
fn alerts_and_their_cases_are_about_metrics_that_exist() {
    let expressions = rules(&groups());
    none(&expressions.iter().flat_map(|rule| unknown_metrics(text(rule, "/expr"))).collect::<Vec<_>>());
    none(&unknown_metrics(&read("deploy/components/monitoring/rules.test.yaml")));
}
