//! Reading scenarios from files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::model::{Scenario, ScenarioFile};
use super::op::Op;

/// Why scenarios cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The folder or a file cannot be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// What cannot be read.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is nothing to play.
    #[error("no scenario in {}", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// The one that was asked for is not there.
    #[error("no scenario {id} in {}", path.display())]
    NoSuchScenario {
        /// The folder.
        path: PathBuf,
        /// The id that was asked for.
        id: String,
    },
    /// A file is not a list of scenarios.
    #[error("{} is not a file of scenarios: {reason}", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A scenario is not what the format says.
    #[error("{}: scenario {id}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Its `id`, or its place in the file.
        id: String,
        /// What is wrong.
        reason: String,
    },
}

/// Reads every `*.yaml` of a folder, files in order of their names, scenarios in order of the file.
///
/// # Errors
/// The first thing that is wrong; also where there is no scenario at all, or two have one id.
pub fn load(folder: &Path) -> Result<Vec<Scenario>, LoadError> {
    let read = |path: &Path, source| LoadError::Read { path: path.to_owned(), source };
    let mut paths = Vec::new();
    for entry in folder.read_dir().map_err(|error| read(folder, error))? {
        paths.push(entry.map_err(|error| read(folder, error))?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let mut scenarios = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).map_err(|error| read(path, error))?;
        scenarios.extend(parse(path, &text)?);
    }
    if scenarios.is_empty() {
        return Err(LoadError::Empty { path: folder.to_owned() });
    }
    let mut ids = BTreeSet::new();
    if let Some(twice) = scenarios.iter().find(|scenario| !ids.insert(&scenario.id)) {
        let reason = "two scenarios have this id".to_owned();
        return Err(LoadError::Malformed { path: folder.to_owned(), id: twice.id.clone(), reason });
    }
    Ok(scenarios)
}

/// Reads the scenarios of one file.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Scenario>, LoadError> {
    let not_a_file =
        |error: serde_saphyr::Error| LoadError::NotAFile { path: path.to_owned(), reason: error.to_string() };
    let file: ScenarioFile = serde_saphyr::from_str(text).map_err(not_a_file)?;
    let scenario = |(i, value): (usize, serde_json::Value)| {
        let id = value["id"].as_str().map_or_else(|| format!("number {}", i + 1), str::to_owned);
        let malformed = |reason| LoadError::Malformed { path: path.to_owned(), id, reason };
        let scenario = match serde_json::from_value::<Scenario>(value) {
            Ok(scenario) => scenario,
            Err(error) => return Err(malformed(error.to_string())),
        };
        match fault(&scenario) {
            Some(reason) => Err(malformed(reason)),
            None => Ok(scenario),
        }
    };
    file.scenarios.into_iter().enumerate().map(scenario).collect()
}

/// What the format forbids and its types allow.
fn fault(scenario: &Scenario) -> Option<String> {
    let starts = scenario.steps.iter().map(|step| matches!(step.op, Op::Start {}));
    if !starts.eq((0..scenario.steps.len().max(1)).map(|i| i == 0)) {
        return Some("the first step is start, and no other is".to_owned());
    }
    scenario.steps.iter().enumerate().find_map(|(i, step)| {
        let fault = if let Some(part) = step.op.parts().iter().find(|part| !part.is_change()) {
            format!("{} cannot be a part of {}", part.name(), step.op.name())
        } else if step.expect.cluster.per_node_max_minus_min.is_some() != step.expect.cluster.among.is_some() {
            "per_node_max_minus_min and among go together".to_owned()
        } else {
            let events = step.expect.events.include.iter().chain(&step.expect.events.exclude);
            let kind = events.map(|event| &event.kind).find(|kind| *kind != "EgressIP")?;
            format!("no event on a {kind} is known")
        };
        Some(format!("step {} {}: {fault}", i + 1, step.op.name()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(steps: &str) -> String {
        let text = format!("scenarios:\n- {{id: X, title: t, steps: {steps}}}\n");
        match parse(Path::new("x.yaml"), &text) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_the_format_does_not_know_is_an_error() {
        for (steps, word) in [
            ("[{op: start}]", ""),
            ("[]", "first step"),
            ("[{op: health_tick}]", "first step"),
            ("[{op: start}, {op: start}]", "first step"),
            ("[{op: start, expects: {}}]", "expects"),
            ("[{op: begin}]", "begin"),
            ("[{op: start, settle: never}]", "never"),
            ("[{op: start, expect: {egressip: {}}}]", "egressip"),
            ("[{op: start, expect: {egressips: {a: {assignment: {}}}}}]", "assignment"),
            ("[{op: start, expect: {egressips: {a: {mark: {is: 1}}}}}]", "is"),
            ("[{op: start, expect: {cloud_private_ip_configs: {name: []}}}]", "name"),
            ("[{op: start, expect: {cluster: {per_node_max_minus_min: 1}}}]", "among"),
            ("[{op: start, expect: {events: {include: [{kind: Node, name: n1, reason: r}]}}}]", "Node"),
            ("[{op: start}, {op: batch, steps: [{op: restart}]}]", "restart"),
            ("[{op: start}, {op: set_ready, node: n1, ready: true, reachable: true}]", "reachable"),
        ] {
            let reason = reason(steps);
            assert!(reason.contains(word) && reason.is_empty() == word.is_empty(), "{steps}: {reason:?}");
            assert!(word.is_empty() || reason.contains("scenario X"), "{steps}: {reason:?}");
        }
    }

    #[test]
    fn a_folder_without_scenarios_is_an_error() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert!(matches!(load(&folder), Err(LoadError::Empty { .. })));
        assert!(matches!(load(&folder.join("nothing")), Err(LoadError::Read { .. })));
    }
}
