//! The Kubernetes side of the controller against a real API server.

mod fixture;
mod lease;
mod proxy;
mod run;
mod watch;
mod write;
