//! No committed file mentions the machine that it was written on, or where that machine gets its packages.

use std::fs;

use crate::none;
use crate::repository::{root, tracked_files};

/// What must not be mentioned. Put together at run time, so that this file does not mention it either.
fn patterns() -> Vec<String> {
    let place = |name: &str| format!("/{name}/");
    let host = |labels: &[&str]| labels.join(".");
    vec![
        place("work"),
        place("root"),
        ["..", "shared"].join("/"),
        host(&["index", "crates", "io"]),
        host(&["static", "crates", "io"]),
        ["crates.io", "index"].join("-"),
        host(&["pypi", "org"]),
        host(&["files", "pythonhosted", "org"]),
        host(&["registry", "npmjs", "org"]),
        host(&["proxy", "golang", "org"]),
        host(&["deb", "debian", "org"]),
        // Another registry, or a mirror of one, is named in cargo's configuration.
        ["replace", "with"].join("-"),
    ]
}

/// The only source that a lock file may name.
fn lock_source() -> String {
    let registry = ["https://github.com/rust-lang/crates.io", "index"].join("-");
    format!("source = \"registry+{registry}\"")
}

fn mentions(path: &str, text: &str) -> Vec<String> {
    let (patterns, source) = (patterns(), lock_source());
    let lock = path.rsplit('/').next() == Some("Cargo.lock");
    let mut complaints = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if lock && line == source {
            continue;
        }
        if lock && line.starts_with("source = ") {
            complaints.push(format!("{path}:{number} names another source"));
        }
        let found = patterns.iter().filter(|pattern| line.contains(pattern.as_str()));
        complaints.extend(found.map(|pattern| format!("{path}:{number} mentions {pattern}")));
    }
    complaints
}

#[test]
fn no_file_mentions_a_machine_or_a_registry() {
    let files = tracked_files();
    assert!(files.iter().any(|path| path == "Cargo.lock"), "the list is of the whole repository");
    let complaints = files.iter().flat_map(|path| {
        // A file that is deleted but not yet committed is nobody's concern, and neither is a link to nowhere.
        let bytes = fs::read(root().join(path)).unwrap_or_default();
        String::from_utf8(bytes).map_or_else(|_| Vec::new(), |text| mentions(path, &text))
    });
    none(&complaints.collect::<Vec<_>>());
}

#[test]
fn every_pattern_is_found_where_it_stands() {
    for pattern in patterns() {
        let text = format!("good\n see x{pattern}y\n");
        assert!(mentions("a.md", &text).contains(&format!("a.md:2 mentions {pattern}")), "{pattern}");
    }
    assert_eq!(mentions("a.md", "a network, a route, homework/1, shared/ and ../crates\n"), [""; 0]);
}

#[test]
fn a_lock_file_names_one_source_only() {
    let standard = format!("{}\n", lock_source());
    assert_eq!(mentions("fuzz/Cargo.lock", &standard), [""; 0]);
    assert_eq!(
        mentions("a/Cargo.lock", "source = \"git+https://a.example/b\"\n"),
        ["a/Cargo.lock:1 names another source"]
    );
    assert_ne!(mentions("a.md", &standard), [""; 0]);
}
