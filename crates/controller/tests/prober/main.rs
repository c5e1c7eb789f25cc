//! The prober meets real peers: each test is alone in a network namespace that it makes itself, where addresses of the
//! loopback interface are nodes and nftables is the wire that breaks.
//!
//! A namespace needs root, or the right to make user namespaces, and the tools `unshare`, `ip` and `nft`. Without them
//! the tests say that they are skipped; with `CI` set they fail.

// All of it is tests, and a skipped one has nowhere else to say so.
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

/// `#[test]` functions that run in a namespace of their own.
macro_rules! alone {
    ($($(#[$attribute:meta])* async fn $name:ident() $body:block)+) => {$(
        $(#[$attribute])*
        #[test]
        fn $name() {
            $crate::namespace::alone(concat!(module_path!(), "::", stringify!($name)), async $body);
        }
    )+};
}

mod certificates;
mod health;
mod namespace;
mod peer;
mod scale;
mod targets;
mod tcp;
mod tls;
mod watcher;
mod wire;
