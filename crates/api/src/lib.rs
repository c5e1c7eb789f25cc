//! The Kubernetes API that Egret speaks.

mod fault;

pub use fault::{Fault, FieldPath, Segment};
