//! What holds for the workspace as a whole: licences, who may depend on whom, what pure crates are kept away from, and
//! what no committed file may mention.
//!
//! Each check is a function from plain data to a list of complaints. It is first shown to complain about a made-up
//! workspace that breaks the rule, then run on this one.

mod bans;
mod edges;
mod goldens;
mod licences;
mod purity;
mod repository;
mod spdx;
mod texts;

use std::fmt::Display;

/// Fails with everything that is wrong, not only with the first.
#[track_caller]
fn none<C: Display>(complaints: &[C]) {
    let list: Vec<String> = complaints.iter().map(|complaint| format!("  {complaint}")).collect();
    assert!(list.is_empty(), "\n{}", list.join("\n"));
}
