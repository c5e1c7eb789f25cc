//! The input of the commands: what an administrator has in files.
//!
//! It decides which texts are objects of Kubernetes and where each of them stands; it does not know what the objects
//! mean (that is `egret-api`). Nothing here stops at the first fault: whatever is wrong becomes a [`Diagnostic`] that
//! points at the text, and everything else is loaded.
//!
//! ```text
//!   Source ──> File ──split──> Document ──parse──> Value ──flatten──> object ──> Manifests
//!                                 └─ Tree ──locate──> Place ──> Diagnostic   (only when something is wrong)
//! ```
//!
//! Invariants: the order of files and objects is that of the sources, then of paths, then of the text; no input
//! panics, recurses without bound or grows without bound; text from the input reaches a terminal without control
//! characters.

mod diagnostic;
mod file;
mod json;
mod load;
mod locate;
mod object;
mod progress;
mod render;
mod scalar;
mod source;
mod tree;
mod yaml;

pub use diagnostic::{Diagnostic, Origin, Severity};
pub use load::{Loaded, load, load_from};
pub use progress::{Progress, Silent, Spinner};
pub use render::Style;
pub(crate) use render::printable;
pub use source::Source;

#[cfg(test)]
mod tests;
