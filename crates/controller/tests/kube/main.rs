//! The Kubernetes side of the controller against a real API server.

// All of it is tests.
#![allow(clippy::panic, clippy::unwrap_used)]

mod lease;
mod run;
mod watch;
mod write;

use egret_controller::client;
use egret_testkit::server::Server;
use kube::Client;

/// The client that the controller has, with an administrator's rights.
fn admin(server: &Server) -> Client {
    client(server.config()).unwrap()
}
