//! Everything that is built may be used under a permissive licence; everything here is under Apache-2.0.

use std::fs;

use crate::none;
use crate::repository::{Package, metadata, root};
use crate::spdx::satisfied;

/// Permissive, and nobody has to be asked. What is not on this list may still come in as the other side of an OR.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn refused<'a>(packages: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Vec<String> {
    let bad = packages.filter(|(_, licence)| !licence.is_some_and(|expression| satisfied(expression, ALLOWED)));
    bad.map(|(name, licence)| format!("{name} is under {}", licence.unwrap_or("no licence that it names"))).collect()
}

/// What a manifest of ours must say, whatever else it says.
fn unhoused(package: &Package, manifest: &str) -> Vec<String> {
    let lints = manifest.split("[lints]").nth(1).is_some_and(|rest| rest.trim_start().starts_with("workspace = true"));
    let rules = [
        (package.license.as_deref() == Some("Apache-2.0"), "license = \"Apache-2.0\""),
        (package.publish.as_deref() == Some(&[]), "publish = false"),
        (lints, "[lints] workspace = true"),
    ];
    let broken = rules.into_iter().filter(|(kept, _)| !kept);
    broken.map(|(_, rule)| format!("{} does not say {rule}", package.name)).collect()
}

#[test]
fn every_crate_that_is_built_is_permissively_licensed() {
    let metadata = metadata();
    let built: Vec<_> = metadata.built().map(|package| (package.name.as_str(), package.license.as_deref())).collect();
    assert!(built.len() > 50, "only {} crates: that is not the whole graph", built.len());
    none(&refused(built.into_iter()));
}

#[test]
fn a_copyleft_or_unnamed_licence_is_refused_by_name() {
    let packages = [("good", Some("MIT/Apache-2.0")), ("copyleft", Some("MIT AND GPL-3.0-only")), ("silent", None)];
    let complaints = ["copyleft is under MIT AND GPL-3.0-only", "silent is under no licence that it names"];
    assert_eq!(refused(packages.into_iter()), complaints);
}

#[test]
fn every_crate_here_is_apache_licensed_unpublished_and_linted_like_the_others() {
    let metadata = metadata();
    let complaints = metadata.members().flat_map(|package| {
        let manifest = fs::read_to_string(&package.manifest_path).expect("cargo has just read it");
        unhoused(package, &manifest)
    });
    none(&complaints.collect::<Vec<_>>());
}

#[test]
fn a_manifest_that_says_less_is_refused() {
    let package = |license: &str, publish: &str| -> Package {
        let text = format!(
            r#"{{"id": "a", "name": "a", "version": "0.1.0", "license": {license}, "publish": {publish},
                 "dependencies": [], "manifest_path": "Cargo.toml"}}"#
        );
        serde_json::from_str(&text).expect("a package")
    };
    let linted = "[lints]\nworkspace = true\n";
    assert_eq!(unhoused(&package("\"Apache-2.0\"", "[]"), linted), [""; 0]);
    assert_eq!(unhoused(&package("\"MIT\"", "[]"), linted), ["a does not say license = \"Apache-2.0\""]);
    assert_eq!(unhoused(&package("\"Apache-2.0\"", "null"), linted), ["a does not say publish = false"]);
    assert_eq!(unhoused(&package("\"Apache-2.0\"", "[]"), ""), ["a does not say [lints] workspace = true"]);
    assert_eq!(unhoused(&package("null", "null"), "[lints.rust]\n").len(), 3);
}

#[test]
fn the_licence_text_is_there() {
    let text = fs::read_to_string(root().join("LICENSE")).expect("a LICENSE");
    assert!(text.contains("Apache License") && text.contains("Version 2.0") && text.contains("END OF TERMS"));
}
