//! What `egret crds` prints is what was reviewed.

use std::collections::BTreeSet;
use std::fs;

use egret_api::crd::definitions;

use crate::none;
use crate::repository::root;

/// The reviewed text of a snapshot file, which has a header of its own above.
fn reviewed(snapshot: &str) -> Option<&str> {
    Some(snapshot.strip_prefix("---\n")?.split_once("\n---\n")?.1.trim_end())
}

fn name(definition: &str) -> &str {
    definition.lines().find_map(|line| line.strip_prefix("  name: ")).unwrap_or("a definition without a name")
}

fn changed(printed: &BTreeSet<String>, reviewed: &BTreeSet<String>) -> Vec<String> {
    let unreviewed = printed.difference(reviewed).map(|text| format!("{} is printed but not as reviewed", name(text)));
    let gone = reviewed.difference(printed).map(|text| format!("{} was reviewed but is not printed so", name(text)));
    unreviewed.chain(gone).collect()
}

#[test]
fn definitions_are_printed_as_reviewed() {
    let yaml = |definition| serde_saphyr::to_string(definition).expect("a definition is YAML").trim_end().to_owned();
    let printed: BTreeSet<String> = definitions(true).iter().map(yaml).collect();
    let folder = root().join("crates/api/src/crd/snapshots").read_dir().expect("the reviewed definitions");
    let paths = folder.map(|entry| entry.expect("an entry").path());
    let snapshots = paths.filter(|path| path.extension().is_some_and(|extension| extension == "snap"));
    let reviewed: BTreeSet<String> = snapshots
        .map(|path| fs::read_to_string(path).expect("a snapshot"))
        .map(|text| reviewed(&text).expect("a snapshot has a header").to_owned())
        .collect();
    assert_eq!(printed.len(), 3, "each definition is printed once");
    none(&changed(&printed, &reviewed));
}

#[test]
fn a_changed_definition_is_found() {
    let old = "kind: CustomResourceDefinition\nmetadata:\n  name: a\n";
    assert_eq!(reviewed(&format!("---\nsource: a.rs\n---\n{old}")), Some(old.trim_end()));
    let set = |text: &str| BTreeSet::from([text.to_owned()]);
    assert_eq!(changed(&set(old), &set(old)), [""; 0]);
    let complaints = ["a is printed but not as reviewed", "a was reviewed but is not printed so"];
    assert_eq!(changed(&set(&format!("{old}spec: {{}}")), &set(old)), complaints);
}
