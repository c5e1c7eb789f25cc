//! The Kubernetes API that Egret speaks.

pub mod annotation;
pub mod cloud_private_ip_config;
pub mod crd;
pub mod egress_ip;
pub mod egress_service;
pub mod endpoint_slice;
pub mod node;
pub mod service;

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
