//! Which node holds which address, and why.
//!
//! The rules are numbered in `docs/placement.md`: A1 to A4 judge an address, N1 to N9 a node, C1 to C3 are the choice,
//! S1 to S6 elect the host of an EgressService. Code and tests cite the numbers.
//!
//! This crate knows nothing of Kubernetes' JSON, of watches, or of time: a [`Snapshot`](egret_core::Snapshot) goes in,
//! a [`Decision`] comes out, the same on any machine and in whatever order the input came.
//!
//! ```text
//!   snapshot ──> decide / Placer ──> decision ──┬─> plan     what a change would move, and the cause of every move
//!                                               ├─> explain  the reason for every (object, address, node)
//!                                               ├─> events   what the object's events and condition say
//!                                               └─> audit    the invariants again, by code of its own
//! ```
//!
//! Invariants, each held by a property test: a valid assignment never moves; no address is on two nodes; no address is
//! without a node while one could be had by moving only addresses placed in the same decision; an incremental decision
//! equals the full one.

pub mod audit;
mod decision;
mod election;
mod events;
mod explain;
pub mod hash;
mod placer;
mod plan;
mod probing;
mod reason;
mod rules;
mod service_label;

pub use decision::{Decision, Outcome, ServiceOutcome};
pub use events::{Availabilities, Availability, event_reasons};
pub use explain::{Explainer, Verdict, lost};
pub use placer::{Placer, Touched, decide};
pub use plan::{Cause, Move, Subject, moves, pending};
pub use probing::probe_targets;
pub use reason::{AddressReason, NoHostReason, NodeReason};
pub use service_label::{SERVICE_LABEL_PREFIX, service_label_keys, service_labels};
