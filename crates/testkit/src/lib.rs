//! What the tests of every other crate are made with: builders, random clusters, scenarios played in memory and
//! through a real API server, that server, and a controller before it.
//!
//! ```text
//!   builders ──> random (clusters, changes) ──> decide against audit
//!   objects ──> server::hand ──> server <── server::Wire ── controller
//!   server + netlab ──> cluster: nodes, kube-proxy, CNI plugins, pods
//!   scenarios/*.yaml ──> scenario ──> world ──> stage: the brain in memory, or the controller and a server
//! ```
//!
//! It judges nothing that the scenarios do not judge, beyond the invariants that `scenarios/README.md` lists.

pub mod builders;
pub mod cluster;
pub mod controller;
pub mod fixture;
pub mod objects;
pub mod patience;
pub mod random;
pub mod scenario;
pub mod server;
pub mod world;
