//! The Kubernetes API that Egret speaks, and the way from there into the words of the domain.
//!
//! Decided here: what an object says, down to each annotation; which of it an API server would refuse; what a default or
//! an absent part means. Not known here: where objects come from (files, a watch), which node should hold which address
//! (that is `egret-placement`), whether a node can be reached. No I/O, no clock.
//!
//! ```text
//!                        definitions ──> printed, installed
//!                            │ schema
//!   JSON ──> Manifests ──> check ──> one converter a kind <──> annotation codecs
//!            insert, apply                │
//!                                         └──> Observation { snapshot, faults }
//! ```
//!
//! Invariants: no input panics. A conversion returns *all* faults of the object at once, each with its path, and a faulty
//! part never takes the rest with it unless the object makes no sense without it. The schema that objects are checked
//! against is the one that is installed. The same objects give the same observation, whatever order they came in. What a
//! codec writes it reads back. An absent `egressNodeSelector` is never written, and `{}` stays `{}`.

pub mod annotation;
pub mod cloud_private_ip_config;
pub mod crd;
pub mod egress_ip;
pub mod egress_service;
pub mod endpoint_slice;
pub mod node;
pub mod pod;
pub mod service;
pub mod timestamp;

mod apply;
mod converted;
mod fault;
mod kind;
mod manifests;
mod metadata;
mod observe;
mod schema;
mod selector;

pub use converted::Converted;
pub use fault::{Fault, FieldPath, Segment};
pub use kind::{Kind, ObjectKey};
pub use manifests::{Inserted, Manifests};
pub use observe::Observation;
