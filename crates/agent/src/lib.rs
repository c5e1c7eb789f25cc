//! The node daemon: it keeps one node's kernel as Kubernetes says it should be.
//!
//! Decided here: what must be watched, what of the objects is this node's policy, when to look at the kernel. Not decided
//! here: what the kernel should hold and in which order it gets there (`egret-hostmodel`), how it is told
//! (`egret-hostnet`).
//!
//! ```text
//!   API server ──> watches ──> Objects ──> Policy ──┐
//!                                                   ├──> wanted ──> diff ──> apply ──> verify ──> View
//!   kernel <───────────── observe ──────────────────┘                                   │
//!      └── notifications: something has changed ──────────────> another pass <──────────┘ failed
//! ```
//!
//! Invariants: nothing is touched before the desired state has been read once; while the API server is away everything
//! stays as it is; what the kernel holds is read anew in every pass, so that a restart needs no repair; whoever changes
//! what is ours is healed; nothing that is not ours is changed.

mod admin;
mod annotation;
mod check;
mod config;
pub mod health;
mod metrics;
mod objects;
mod pass;
mod rights;
mod run;
mod shared;
mod told;
mod view;
mod watches;

pub use admin::Admin;
pub use annotation::AnnotationError;
pub use check::{Checked, check, list};
pub use config::{ADMIN_PORT, Config, ConfigFault, ConfigFaults};
pub use metrics::Metrics;
pub use objects::{Kind, Objects};
pub use pass::{PassError, clean_up};
pub use run::{RunError, run};
pub use shared::Shared;
pub use told::{Options, needs_pods, policy};
pub use view::View;
pub use watches::{Source, Told};
