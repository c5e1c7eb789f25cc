//! A node's kernel, observed and changed.
//!
//! Done here: what [`egret_hostmodel`] calls a state is read from the kernel, and its steps are done, one after the other.
//! Not decided here: what should be there, in which order, and what to do when a step fails. This is the only crate near
//! the kernel.
//!
//! ```text
//!   rtnetlink ──┐                                        ┌──> rtnetlink    rules, routes, addresses
//!   nft ────────┼──> observe() ──> State, Surroundings   ├──> nft          table, elements
//!   /proc/sys ──┘                                        ├──> ctnetlink    connections
//!                                    apply(steps) ───────┼──> packets      is an address free? it is here now
//!   notifications ──> changes()                          └──> /proc/sys    parameters, with a record of what they were
//! ```
//!
//! Invariants: nothing is changed that is not ours, which is told by protocol numbers, the name of our table and the record
//! of parameters; a step is done as a whole or not at all, but for a parameter whose record is written first; what is asked
//! of the kernel is asked in the network namespace of the thread that opened it.

mod announcements;
mod apply;
mod class;
mod conntrack;
mod file;
mod kernel;
mod link;
mod netlink;
mod nft;
mod observe;
mod route;
mod rule;
mod rule_order;
mod step_error;
mod sysctl;
mod table_names;
mod watch;
mod wire;
mod worker;

pub use apply::Applied;
pub use class::Class;
pub use kernel::{Files, Kernel, OpenError};
pub use netlink::{Fault, Truncated};
pub use nft::NftError;
pub use observe::{Foreign, ObserveError, Observed};
pub use step_error::StepError;
pub use wire::{Claims, Mac};
