//! `deploy/`: that it renders, that a real API server takes it, that its policy and its roles do what they are for, and
//! that its alerts and its dashboard are about metrics that exist.

// A helper of tests ends them as a test does.
#![allow(clippy::panic)]

mod access;
mod agent_policy;
mod alerts;
mod container;
mod dashboard;
mod install;
mod manifests;
mod people;
mod policy;
mod render;
mod tool;

use std::fmt::Display;

/// Fails with everything that is wrong, not only with the first.
#[track_caller]
fn none<C: Display>(complaints: &[C]) {
    let list: Vec<String> = complaints.iter().map(|complaint| format!("  {complaint}")).collect();
    assert!(list.is_empty(), "\n{}", list.join("\n"));
}
