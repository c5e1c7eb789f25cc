//! The kernel, observed and changed, each test in network namespaces of its own.

mod changes;
mod connections;
mod foreign;
mod namespace;
mod neighbours;
mod node;
mod random;
mod steps;
mod timings;
