//! The cluster manager: everything with I/O around the brain.
//!
//! Decided here: how the API server is watched and written to, who of several instances may write, how nodes are probed,
//! and what a failure of any of that is worth (its class). Not decided here: what is written, whom to probe, what an
//! event says; that is `egret-brain`, which knows no clock and no network.
//!
//! ```text
//!   API server ──> watch ──┐                        ┌──> write ──> API server
//!                          ├──> run: take … pass ──>├──> events ─> API server
//!   nodes <──> probe ──────┤        (brain)         └──> probe
//!   API server <─> lease ──┘            └──> shared ──> admin, metrics
//! ```
//!
//! Invariants: nothing is written without a right that outlasts the write, and the right ends before anybody else can
//! get one. No object stalls a watch. One loop calls the brain; no lock is held across it. A part that panics ends the
//! process; a loop that stands still fails `/healthz`.

mod admin;
mod config;
mod events;
pub mod lease;
mod metrics;
pub mod probe;
mod run;
mod shared;
mod watching;
pub mod write;

pub use admin::Admin;
pub use config::{ADMIN_PORT, Config, ConfigFault, ConfigFaults, LeaderElection};
pub use egret_daemon::{Listen, client, log};
pub use metrics::Metrics;
pub use run::{Part, RunError, Surroundings, run, watched};
pub use shared::{Question, Questions, Shared};
pub use watching::watch;
