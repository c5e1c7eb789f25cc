//! The shipped agent on nodes of network namespaces, and where packets really go.
//!
//! Every test is in namespaces of its own, starts the agent with the objects in files, and starts from stock kernel
//! parameters as well as from restricted ones. Starting the agent is the only thing that is done to a node.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod audit;
mod churn;
mod egress_ip;
mod functional;
mod healing;
mod moving;
mod nonfunctional;
mod objects;
mod stray;
mod timing;
mod use_cases;
mod walk;
mod world;
