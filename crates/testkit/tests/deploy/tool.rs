//! The tools that judge the manifests, and the folder that these are in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder that `Cargo.lock` is in.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("this crate is two folders down")
}

/// A file, as a path from the root of the checkout.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("failed to read {path}: {error}"))
}

/// What a tool of `deploy/tool` says; it fetches the tool if need be.
pub(crate) fn run(name: &str, folder: &Path, arguments: &[&str]) -> Output {
    let mut fetch = Command::new(root().join("deploy/tool"));
    let found = fetch.arg(name).stderr(std::process::Stdio::inherit()).output().expect("deploy/tool can be started");
    assert!(found.status.success(), "there is no {name}");
    let path = String::from_utf8(found.stdout).expect("a path");
    let mut tool = Command::new(path.trim_end());
    tool.current_dir(folder).args(arguments).output().unwrap_or_else(|error| panic!("failed to run {name}: {error}"))
}

/// What a tool prints if it has nothing to complain about.
pub(crate) fn printed(name: &str, folder: &Path, arguments: &[&str]) -> String {
    let output = run(name, folder, arguments);
    assert!(output.status.success(), "{name} {arguments:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}
