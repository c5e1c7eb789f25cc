//! The kernel, observed and changed, each test in a network namespace of its own.

mod namespace;
mod node;
mod random;
