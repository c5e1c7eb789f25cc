//! The node daemon.
mod objects;
mod told;
pub use objects::{Kind, Objects};
pub use told::{Options, needs_pods, policy};
