//! Pure crates stay away from the runtime, the network, the kernel and chance; heavy crates are in the graph once.

use std::collections::{BTreeMap, BTreeSet};

use crate::none;
use crate::repository::{metadata, normal_dependencies};

/// Crates that decide and convert; what they need to know is handed to them.
pub(crate) const PURE: &[&str] = &["egret-core", "egret-api", "egret-placement", "egret-brain", "egret-hostmodel"];

/// What a pure crate must not have in its normal dependencies, nor anything below them. A trailing `*` stands for any
/// ending. `getrandom` needs no exception: nothing that the pure crates use asks for chance.
const IMPURE: &[&str] = &[
    "getrandom",
    "hyper",
    "kube-client",
    "kube-runtime",
    "mio",
    "netlink-*",
    "rand",
    "rand_*",
    "reqwest",
    "rtnetlink",
    "socket2",
    "tokio",
    "tokio-*",
];

/// Never in the graph: a second cryptography provider beside ring, which rustls then refuses to choose between.
const NOWHERE: &[&str] = &["aws-lc*"];

/// Types of two versions do not fit together, and each takes minutes to compile.
const ONCE: &[&str] = &["k8s-openapi", "kube", "kube-core", "kube-derive", "serde-saphyr"];

fn matching<'a>(names: impl IntoIterator<Item = &'a str>, patterns: &[&str]) -> Vec<&'a str> {
    let matches = |name: &str| {
        patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *pattern,
        })
    };
    names.into_iter().filter(|name| matches(name)).collect()
}

fn repeated(versions: &BTreeMap<&str, BTreeSet<&str>>, once: &[&str]) -> Vec<String> {
    let count = |name: &str| versions.get(name).map_or(0, BTreeSet::len);
    once.iter().filter(|name| count(name) != 1).map(|name| format!("{name}: {} versions", count(name))).collect()
}

#[test]
fn pure_crates_have_no_runtime_network_kernel_or_chance_below_them() {
    for package in PURE {
        let dependencies = normal_dependencies(package);
        assert!(dependencies.contains("ipnet"), "the tree of {package} has been read");
        let complaints = matching(dependencies.iter().map(String::as_str), IMPURE);
        none(&complaints.iter().map(|name| format!("{package} depends on {name}")).collect::<Vec<_>>());
    }
}

#[test]
fn there_is_one_cryptography_provider_and_one_version_of_what_is_heavy() {
    let metadata = metadata();
    let versions = metadata.versions();
    none(&matching(versions.keys().copied(), NOWHERE));
    none(&repeated(&versions, ONCE));
}

#[test]
fn an_impure_name_is_found_exactly_or_by_its_beginning() {
    let tree = ["ipnet", "tokio", "tokio-util", "netlink-sys", "rand", "random-looking", "hyperlink", "netlink"];
    assert_eq!(matching(tree, IMPURE), ["tokio", "tokio-util", "netlink-sys", "rand"]);
    assert_eq!(matching(["aws-lc-rs", "aws-lc-sys", "aws-config"], NOWHERE), ["aws-lc-rs", "aws-lc-sys"]);
}

#[test]
fn a_second_version_and_a_misspelt_name_are_found() {
    let versions = BTreeMap::from([("kube", BTreeSet::from(["4.2.0", "5.0.0"])), ("serde", BTreeSet::from(["1.0.0"]))]);
    assert_eq!(repeated(&versions, &["kube", "serde", "kubee"]), ["kube: 2 versions", "kubee: 0 versions"]);
}
