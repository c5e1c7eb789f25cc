//! What the tests of every other crate are made with: builders, random clusters, scenarios played in memory, and a real
//! API server.
//!
//! ```text
//!   builders ──> random (clusters, changes) ──> decide against audit
//!   scenarios/*.yaml ──> scenario ──> world ──> decide, again and again
//! ```
//!
//! It judges nothing that the scenarios do not judge, beyond the invariants that hold in every world: one owner of an
//! address, one address of an object on a node.

pub mod builders;
pub mod fixture;
pub mod random;
pub mod scenario;
pub mod server;
pub mod world;
