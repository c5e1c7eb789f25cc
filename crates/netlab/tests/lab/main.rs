//! The lab itself: what it promises about the traffic in it is what is seen.

// All of it is tests, and some measure.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod paths;
mod state;
mod watching;
