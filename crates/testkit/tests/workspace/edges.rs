//! Arrows between the crates of the workspace point towards `egret-core`.

use crate::none;
use crate::repository::{Metadata, metadata};

/// Who may use whom at run time. A crate that is not listed may not exist.
const ALLOWED: &[(&str, &[&str])] = &[
    ("egret-core", &[]),
    ("egret-api", &["egret-core"]),
    ("egret-placement", &["egret-core"]),
    ("egret-brain", &["egret-core", "egret-api", "egret-placement"]),
    ("egret-hostmodel", &["egret-core"]),
    ("egret-hostnet", &["egret-core", "egret-hostmodel"]),
    ("egret-daemon", &["egret-api", "egret-core"]),
    ("egret-controller", &["egret-core", "egret-api", "egret-placement", "egret-brain", "egret-daemon"]),
    ("egret-agent", &["egret-core", "egret-api", "egret-hostmodel", "egret-hostnet", "egret-daemon"]),
    ("egret-netlab", &[]),
    (
        "egret-testkit",
        &[
            "egret-netlab",
            "egret-core",
            "egret-api",
            "egret-placement",
            "egret-brain",
            "egret-daemon",
            "egret-controller",
        ],
    ),
    (
        "egret-cli",
        &[
            "egret-core",
            "egret-api",
            "egret-placement",
            "egret-brain",
            "egret-daemon",
            "egret-controller",
            "egret-hostmodel",
            "egret-hostnet",
            "egret-agent",
        ],
    ),
];

/// A dependency from one crate of the workspace on another.
#[derive(Clone, Copy, Debug)]
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    /// Not only for tests, and not only for a build script.
    normal: bool,
}

fn forbidden(edges: &[Edge<'_>], allowed: &[(&str, &[&str])]) -> Vec<String> {
    let targets = |from| allowed.iter().find(|(name, _)| *name == from).map_or(&[][..], |(_, targets)| targets);
    let bad = edges.iter().filter(|edge| edge.normal && !targets(edge.from).contains(&edge.to));
    bad.map(|edge| format!("{} must not depend on {}", edge.from, edge.to)).collect()
}

/// The table itself must not let an arrow point back, nor let anything that ships use the testkit.
fn unsound(allowed: &[(&str, &[&str])]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (index, (from, targets)) in allowed.iter().enumerate() {
        for to in *targets {
            if !allowed[..index].iter().any(|(earlier, _)| earlier == to) {
                complaints.push(format!("{from} may use {to}, which is not nearer to the core"));
            }
            if *to == "egret-testkit" {
                complaints.push(format!("{from} may use {to} outside tests"));
            }
        }
    }
    complaints
}

fn edges(metadata: &Metadata) -> Vec<Edge<'_>> {
    let ours: Vec<&str> = metadata.members().map(|member| member.name.as_str()).collect();
    let edges = metadata.members().flat_map(|member| {
        let dependencies = member.dependencies.iter();
        dependencies.map(|to| Edge { from: &member.name, to: &to.name, normal: to.kind.is_none() })
    });
    edges.filter(|edge| ours.contains(&edge.to)).collect()
}

#[test]
fn arrows_point_towards_the_core() {
    let metadata = metadata();
    let edges = edges(&metadata);
    assert!(edges.iter().any(|edge| edge.to == "egret-core"), "somebody uses the core");
    none(&unsound(ALLOWED));
    none(&forbidden(&edges, ALLOWED));
}

#[test]
fn every_crate_of_the_workspace_is_in_the_table_and_the_other_way_round() {
    let metadata = metadata();
    let mut members: Vec<&str> = metadata.members().map(|member| member.name.as_str()).collect();
    let mut listed: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    members.sort_unstable();
    listed.sort_unstable();
    assert_eq!(members, listed);
}

#[test]
fn an_arrow_away_from_the_core_is_refused_unless_only_tests_have_it() {
    let edge = |from, to, normal| Edge { from, to, normal };
    let allowed = edge("egret-api", "egret-core", true);
    let back = edge("egret-core", "egret-api", true);
    let sideways = edge("egret-placement", "egret-api", true);
    let testkit = edge("egret-cli", "egret-testkit", true);
    let unknown = edge("egret-new", "egret-core", true);
    let test_only = edge("egret-placement", "egret-testkit", false);
    assert_eq!(
        forbidden(&[allowed, back, sideways, testkit, unknown, test_only], ALLOWED),
        [
            "egret-core must not depend on egret-api",
            "egret-placement must not depend on egret-api",
            "egret-cli must not depend on egret-testkit",
            "egret-new must not depend on egret-core",
        ]
    );
}

#[test]
fn a_table_that_allows_too_much_is_refused() {
    assert_eq!(unsound(&[("a", &["b"]), ("b", &[])]), ["a may use b, which is not nearer to the core"]);
    let testkit: &[(&str, &[&str])] = &[("egret-testkit", &[]), ("b", &["egret-testkit"])];
    assert_eq!(unsound(testkit), ["b may use egret-testkit outside tests"]);
}
