//! What has hurt people who run egress IPs, as far as placement, probes and clouds go: each test is named after its case.
//!
//! With the real brain, and made-up time.

// Helpers of tests are no production code.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bed;
mod claims;
mod cloud;
mod nodes;
mod pools;
mod probes;
