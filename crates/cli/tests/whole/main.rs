//! Everything together: the shipped binaries under their own rights on a real control plane, and what is seen on the wire
//! while services, addresses and nodes come and go. Once with kube-proxy and CNI plugins, and once with the stand-in for
//! OVN, which leads pods to the node that lets them out.

// A test has nowhere else to say what it saw.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod direct;
mod objects;
mod ovn;
mod ovnkube;
mod partition;
mod timing;
mod traffic;
mod whole;
