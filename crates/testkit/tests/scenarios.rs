//! The repository's scenarios hold, and each of their expectations could fail.

use std::path::{Path, PathBuf};

use egret_testkit::scenario::{Report, Scenario, Verdict, load, play};
use egret_testkit::world::{Api, Memory, Stage};
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

#[test]
fn the_repositorys_scenarios_hold() {
    let report = report(&mut Memory::new());
    assert_eq!(report.count(Verdict::Failed), 0, "\n{report}");
    assert_eq!(report.len(), written().len(), "every scenario of the folder is played");
}

/// The whole controller before kube-apiserver and etcd; a minute where the machine has nothing else to do.
#[test]
fn the_repositorys_scenarios_hold_through_a_real_api_server() {
    let report = report(&mut Api::take().expect("an API server"));
    assert_eq!(report.count(Verdict::Failed), 0, "\n{report}");
    assert_eq!(report.len(), written().len(), "every scenario of the folder is played");
}

/// The end of each step, and what may never be on the way, do not depend on what overtakes what, nor on what fails.
#[test]
fn the_repositorys_scenarios_hold_whatever_overtakes_and_fails() {
    for seed in 0..8 {
        let report = report(&mut Memory::disordered(seed));
        assert_eq!(report.count(Verdict::Failed), 0, "seed {seed}\n{report}");
    }
}

fn report(stage: &mut dyn Stage) -> Report {
    let played = load(&folder()).expect("scenarios").iter().map(|scenario| play(scenario, stage)).collect();
    Report::new(stage.name(), played)
}

/// An expectation that is turned into its opposite, one at a time, must fail: else the runner does not look at it.
#[test]
fn every_expectation_that_is_checked_can_fail() {
    let (mutants, survivors) = survivors(&written(), &mut Memory::new());
    assert!(mutants > 1_000, "only {mutants} mutants");
    assert!(survivors.is_empty(), "{} of {mutants} survive:\n{}", survivors.len(), survivors.join("\n"));
}

/// Scenarios that together look at everything a stage has to know: who wrote what and when, events, probes, labels.
const TELLING: &[&str] = &["CL-023", "MK-008", "RE-003", "RE-009", "HA-001", "ES-001"];

#[test]
fn expectations_can_fail_through_a_real_api_server_too() {
    let mut scenarios = written();
    scenarios.retain(|scenario| TELLING.contains(&scenario["id"].as_str().expect("an id")));
    assert_eq!(scenarios.len(), TELLING.len());
    let (mutants, survivors) = survivors(&scenarios, &mut Api::take().expect("an API server"));
    assert!(mutants > 30, "only {mutants} mutants");
    assert!(survivors.is_empty(), "{} of {mutants} survive:\n{}", survivors.len(), survivors.join("\n"));
}

/// How many mutants there are, and those that do not fail.
fn survivors(scenarios: &[Value], stage: &mut dyn Stage) -> (usize, Vec<String>) {
    let (mut mutants, mut survivors) = (0, Vec::new());
    for scenario in scenarios {
        for (path, mutant) in opposites(scenario) {
            let mutant: Scenario = serde_json::from_value(mutant).expect("a mutant is well-formed");
            let played = play(&mutant, stage);
            mutants += 1;
            if played.verdict() != Verdict::Failed {
                survivors.push(format!("{} {path}", played.id));
            }
        }
    }
    (mutants, survivors)
}

/// The scenarios as they are written, read by nothing of the runner's.
fn written() -> Vec<Value> {
    let files = folder().read_dir().expect("a folder").map(|entry| entry.expect("an entry").path());
    let yaml = files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let texts = yaml.map(|path| std::fs::read_to_string(path).expect("a readable file"));
    let files = texts.map(|text| serde_saphyr::from_str::<Value>(&text).expect("YAML"));
    files.flat_map(|file| file["scenarios"].as_array().expect("a list").clone()).collect()
}

/// The scenario with one expectation turned into its opposite, for each that has one.
fn opposites(scenario: &Value) -> Vec<(String, Value)> {
    let mut mutants = Vec::new();
    for (section, pointer) in sections(scenario) {
        let of = map(scenario.pointer(&pointer));
        for key in of.keys() {
            // The expectations about the mark are a map of their own.
            let (section, pointer, keys) = match (key.as_str(), of[key].as_object()) {
                ("mark", Some(mark)) => ("mark", format!("{pointer}/mark"), mark.keys().collect::<Vec<_>>()),
                _ => (section.as_str(), pointer.clone(), vec![key]),
            };
            for key in keys {
                let mut mutant = scenario.clone();
                let holder = mutant.pointer_mut(&pointer).expect("a section");
                if turn(section, key, holder) {
                    mutants.push((format!("{pointer}/{key}"), mutant));
                }
            }
        }
    }
    mutants
}

/// Each map of expectations: its kind, and where it is.
fn sections(scenario: &Value) -> Vec<(String, String)> {
    let mut sections = Vec::new();
    for (i, step) in scenario["steps"].as_array().expect("steps").iter().enumerate() {
        for (section, things) in map(step.get("expect")) {
            let pointer = format!("/steps/{i}/expect/{section}");
            if ["egressips", "egressservices", "node_labels"].contains(&section.as_str()) {
                let names = map(Some(&things)).into_iter().map(|(name, _)| name.replace('/', "~1"));
                sections.extend(names.map(|name| (section.clone(), format!("{pointer}/{name}"))));
            } else {
                sections.push((section, pointer));
            }
        }
    }
    sections
}

fn map(value: Option<&Value>) -> serde_json::Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Turns one expectation into what cannot hold if it held; false where it has no opposite.
fn turn(section: &str, key: &str, holder: &mut Value) -> bool {
    let nowhere = || json!("nowhere");
    // What is not there would have to be there, and the other way round.
    let opposite = match (section, key) {
        ("events", "include") => Some("exclude"),
        ("events", "exclude") => Some("include"),
        ("probes", "not_probed") => Some("probed"),
        ("cloud_private_ip_configs", "absent") => Some("names_include"),
        ("node_labels", "absent") => Some("present"),
        ("mark", "not_equals") => Some("equals"),
        _ => None,
    };
    if let Some(opposite) = opposite {
        let expected = holder.as_object_mut().and_then(|keys| keys.remove(key)).expect("the key");
        let nothing = expected.as_array().is_some_and(Vec::is_empty);
        holder[opposite] = expected;
        return !nothing;
    }
    match (key, &mut holder[key]) {
        ("among", _) => return false,
        ("nodes_subset_of" | "ips_subset_of", value) => *value = json!([]),
        ("nodes" | "owner", Value::Object(values)) => values.values_mut().for_each(|value| *value = nowhere()),
        ("prefixed", Value::Object(counts)) => counts.values_mut().for_each(|count| *count = json!(99)),
        ("assignments" | "includes" | "annotations", Value::Object(pairs)) => {
            drop(pairs.insert("203.0.113.250".into(), nowhere()));
        }
        ("host_one_of", value) => *value = json!(["nowhere"]),
        ("min", Value::Number(_)) if section == "mark" => holder[key] = json!(60_000),
        (_, Value::Array(texts)) => texts.push(nowhere()),
        (_, Value::Bool(value)) => *value = !*value,
        (_, Value::Number(_)) => holder[key] = json!(99),
        (_, value) => *value = nowhere(),
    }
    true
}
