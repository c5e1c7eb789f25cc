//! What every daemon of ours has around its own business: a client that notices dead connections, watches that never
//! stall, a port that tells how it is, certificates that are replaced, both ends of a health check, logs.
//!
//! Decided here: how an API server is spoken to, how long to wait after a failure, what of an object is kept. Not known
//! here: what a change means.
//!
//! ```text
//!   API server ──> Watch (one a kind) ──> Change ──> whoever decides
//!              ──> list ────────────────> objects, once
//! ```
//!
//! Invariants: no object stalls a watch; no request is repeated behind the back of whoever made it; half a list is never
//! taken for the whole.

pub mod admin;
mod connect;
pub mod grpc;
mod jitter;
mod list;
mod listen;
pub mod log;
mod resource;
mod stored;
pub mod tls;
pub mod watch;

pub use connect::{ConnectError, client};
pub use jitter::Jitter;
pub use list::list;
pub use listen::{BindError, Listen, bind};
pub use resource::Resource;
pub use stored::Stored;

/// An error with its causes, as it is logged.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
