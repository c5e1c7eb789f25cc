//! The workspace as cargo and git see it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// What is shipped runs here; crates that only other targets build are not looked at.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// `cargo metadata`, the part of it that is judged.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    resolve: Resolve,
}

/// A crate of the graph, ours or not.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// `None`: anywhere; an empty list: nowhere.
    pub(crate) publish: Option<Vec<String>>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) manifest_path: PathBuf,
}

/// A dependency as a manifest declares it.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency, else "dev" or "build".
    pub(crate) kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
}

impl Metadata {
    /// The crates of this workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// Every crate that is built for [`TARGET`], ours included.
    pub(crate) fn built(&self) -> impl Iterator<Item = &Package> {
        let built: BTreeSet<&str> = self.resolve.nodes.iter().map(|node| node.id.as_str()).collect();
        self.packages.iter().filter(move |package| built.contains(package.id.as_str()))
    }

    /// The versions of every crate that is built, by name.
    pub(crate) fn versions(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut versions = BTreeMap::<_, BTreeSet<_>>::new();
        for package in self.built() {
            versions.entry(package.name.as_str()).or_default().insert(package.version.as_str());
        }
        versions
    }
}

/// The folder that `Cargo.lock` is in.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("this crate is two folders down")
}

/// What cargo says about this workspace.
pub(crate) fn metadata() -> Metadata {
    let text = cargo(&["metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET]);
    serde_json::from_str(&text).expect("cargo metadata is JSON of a documented shape")
}

/// The names of a package's normal dependencies, and theirs, with the features that this package alone asks for.
///
/// Not from the metadata: that unites the features of all members, so one crate that turns on kube's client would make
/// every user of kube's types look as if it had a client too.
pub(crate) fn normal_dependencies(package: &str) -> BTreeSet<String> {
    let tree = ["tree", "--locked", "--target", TARGET, "--edges", "normal", "--prefix", "none", "--package", package];
    let lines = cargo(&tree);
    let names = lines.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned);
    names.filter(|name| name != package).collect()
}

/// The files that git tracks, as paths relative to [`root`].
pub(crate) fn tracked_files() -> Vec<String> {
    // A container's checkout often belongs to somebody else than who runs the tests; reading it is harmless.
    let text = run(Command::new("git").args(["-c", "safe.directory=*", "ls-files", "-z"]));
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn cargo(arguments: &[&str]) -> String {
    run(Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).args(arguments))
}

fn run(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().expect("the command can be started");
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}
