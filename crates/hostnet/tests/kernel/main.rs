//! The kernel, observed and changed, each test in network namespaces of its own.

// All of it is tests, and some measure.
#![allow(clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod changes;
mod connections;
mod foreign;
mod namespace;
mod neighbours;
mod node;
mod random;
mod steps;
mod timings;
mod vrf;
