//! A real API server for tests: kube-apiserver before etcd, as processes of this test's own.
//!
//! ```text
//!   parts ──> processes ──> control plane (etcd, kube-apiserver, on demand kube-controller-manager)
//!                             │
//!             pool ──> Server::take() ──> a test ──> dropped: emptied when it is taken again
//! ```
//!
//! Decided here: where the programs come from, how they are started, what "empty" means. Not known here: what Egret
//! does. Nothing is imitated: what a test sees is what Kubernetes answers.
//!
//! Invariants: a [`Server`] is its test's alone until it is dropped. What a test finds is what a new server would hold.
//! No process and no file outlives the test process, however that ends.

mod admission;
mod audit;
mod control_plane;
mod crds;
mod credentials;
mod empty;
mod folder;
pub mod hand;
mod parts;
mod pool;
mod port;
mod store;
mod taken;
mod wait;
mod wire;

pub use audit::{AuditError, Write};
pub(crate) use control_plane::{ControlPlane, Place};

pub use control_plane::ControlPlaneError;
pub use crds::CrdError;
pub use empty::EmptyError;
pub use parts::{Part, PartsError};
pub use store::StoreError;
pub use taken::{Server, ServerError};
pub use wire::Wire;
