//! The steps from one state to another, in a model of the kernel: where packets go after each of them.

#![allow(clippy::unwrap_used, clippy::panic)]

mod arrives;
mod model;
mod nodes;
mod policies;
mod prefixes;
mod properties;
