//! Nodes, pods and outside servers as network namespaces of a test's own, and what is seen of the traffic between them.
//!
//! ```text
//!   alone ──> unshare ──> Lab: networks, nodes, pods, outside servers ──> Host: run, inside, spawn, dump
//!                          │                                               │
//!                          └─ Wire: all that crosses a network             └─ ask (Reply), flow (Report)
//! ```
//!
//! Decided here: which addresses everything has, what a stock node and a restricted one are, what a CNI plugin,
//! kube-proxy and OVN leave behind on a node (stand-ins for them; the real ones are in the testkit). Not known here:
//! Egret. What is measured is what servers and wires saw.
//!
//! Invariants: nothing is done outside the namespaces of the test. No process, link or file outlives the test process,
//! however that ends. Clients wait for half a second, unless told otherwise, and nothing sleeps for a time that could
//! wait for a condition.

mod address;
mod alone;
mod build;
mod dump;
mod error;
mod host;
mod lab;
mod masquerade;
mod namespace;
mod need;
mod ovn;
mod pod;
mod process;
mod profile;
mod service;
mod settle;
mod traffic;
mod until;

pub use address::{Family, Network};
pub use alone::{Alone, Outcome, alone};
pub use build::LabBuilder;
pub use dump::difference;
pub use error::LabError;
pub use host::{Host, PATIENCE};
pub use lab::Lab;
pub use need::Need;
pub use process::{Process, Signal};
pub use profile::Profile;
pub use service::{Policy, Service};
pub use traffic::PORT;
pub use traffic::ask::Transport;
pub use traffic::flow::{Change, Flow, Kind as FlowKind, Report};
pub use traffic::reply::{Reply, Silence};
pub use traffic::wire::{Packet, Protocol, Seen, Wire};
pub use until::until;
