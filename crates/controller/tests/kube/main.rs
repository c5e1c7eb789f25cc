//! The Kubernetes side of the controller against a real API server.

// All of it is tests.
#![allow(clippy::panic, clippy::unwrap_used)]

mod fixture;
mod lease;
mod proxy;
mod run;
mod watch;
mod write;
