//! Clippy keeps clocks, the environment, files, processes and threads out of pure crates; each has the same list.

use std::collections::BTreeSet;
use std::fs;

use crate::none;
use crate::purity::PURE;
use crate::repository::root;

/// One of each at least; the lists may name more.
const REQUIRED: &[&str] = &[
    "std::env::args",
    "std::env::var",
    "std::env::var_os",
    "std::fs::File",
    "std::fs::read",
    "std::fs::read_to_string",
    "std::fs::write",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::process::Command",
    "std::process::exit",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::time::Instant",
    "std::time::SystemTime",
];

/// The paths that a `clippy.toml` bans, as types or as methods.
fn banned(toml: &str) -> BTreeSet<&str> {
    let mut banned = BTreeSet::new();
    let mut inside = false;
    for line in toml.lines().map(str::trim) {
        match line {
            "disallowed-types = [" | "disallowed-methods = [" => inside = true,
            "]" => inside = false,
            _ if inside => banned.extend(line.strip_prefix("{ path = \"").and_then(|rest| rest.split('"').next())),
            _ => {}
        }
    }
    banned
}

fn lax(name: &str, toml: &str, common: &BTreeSet<&str>) -> Vec<String> {
    let banned = banned(toml);
    let missing = REQUIRED.iter().filter(|path| !banned.contains(*path));
    let mut complaints: Vec<String> = missing.map(|path| format!("{name} does not ban {path}")).collect();
    if banned != *common {
        complaints.push(format!("{name} does not ban the same as {}", PURE[0]));
    }
    complaints
}

#[test]
fn pure_crates_ban_the_same_and_everything_required() {
    let read = |name: &&str| {
        let folder = name.strip_prefix("egret-").expect("every crate is named so");
        fs::read_to_string(root().join("crates").join(folder).join("clippy.toml")).expect("each has a clippy.toml")
    };
    let files: Vec<String> = PURE.iter().map(read).collect();
    let common = banned(&files[0]);
    none(&PURE.iter().zip(&files).flat_map(|(name, toml)| lax(name, toml, &common)).collect::<Vec<_>>());
}

#[test]
fn a_list_that_lacks_one_or_differs_is_refused() {
    let list = |paths: &[&str]| {
        let lines: Vec<String> =
            paths.iter().map(|path| format!("  {{ path = \"{path}\", reason = \"-\" }},")).collect();
        format!("# {{ path = \"std::env::home_dir\" }}\ndisallowed-methods = [\n{}\n]\n", lines.join("\n"))
    };
    let whole = list(REQUIRED);
    let common = banned(&whole);
    assert_eq!(lax("a", &whole, &common), [""; 0]);
    let complaints = ["a does not ban std::env::args", "a does not ban the same as egret-core"];
    assert_eq!(lax("a", &list(&REQUIRED[1..]), &common), complaints);
    let commented = whole.replace("  { path = \"std::env::args\"", "  # { path = \"std::env::args\"");
    assert_eq!(lax("a", &commented, &common), complaints);
}
