//! What can go wrong around the controller goes wrong: on a real API server, with the whole controller.

// Helpers of tests are no production code.
#![allow(clippy::unwrap_used, clippy::panic)]

mod api;
mod definition;
mod frozen;
mod hands;
mod lease;
mod objects;
mod rivals;
mod support;
mod watch;
