//! The documentation is held to the code: manifests in it pass Egret's own checks, commands in it exist, the API
//! reference is what the types say, and metrics, alerts and options are told of completely.
//!
//! `INSTA_UPDATE=always cargo test -p egret-cli --test docs` writes the API reference anew. With `INSTA_UPDATE=no`, as in
//! CI, nothing is ever written. What is a matter of the site alone, links and anchors, `make docs` checks.

mod commands;
mod manifests;
mod node;
mod operations;
mod page;
mod reference;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "not every test needs all of it")]
mod support;
#[path = "../packets/walk.rs"]
#[allow(dead_code, reason = "what the commands show is looked for by those who run them")]
mod walk;

/// Fails with everything that is wrong, not only with the first.
#[track_caller]
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}
