//! What the tests of every other crate are made with: builders, random clusters, scenarios played in memory and
//! through a real API server, and that server.
//!
//! ```text
//!   builders ──> random (clusters, changes) ──> decide against audit
//!   scenarios/*.yaml ──> scenario ──> world ──> stage: the brain in memory, or the controller and a server
//! ```
//!
//! It judges nothing that the scenarios do not judge, beyond the invariants that `scenarios/README.md` lists.

pub mod builders;
pub mod fixture;
pub mod random;
pub mod scenario;
pub mod server;
pub mod world;
