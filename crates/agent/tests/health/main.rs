//! The health service of a node before the controller's own prober, each test in a network namespace of its own, where
//! addresses of the loopback interface are those of the node.

// All of it is tests.
#![allow(clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

/// `#[test]` functions that run in a namespace of their own.
macro_rules! alone {
    ($($(#[$attribute:meta])* async fn $name:ident() $body:block)+) => {$(
        $(#[$attribute])*
        #[test]
        fn $name() {
            $crate::node::alone(concat!(module_path!(), "::", stringify!($name)), async $body);
        }
    )+};
}

mod answers;
mod certificates;
mod listens;
mod node;
