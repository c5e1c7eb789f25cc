//! The words of the domain, and the one snapshot that everything is decided from.
//!
//! This crate knows what a node, an address, a selector and an egress object *are*. It does not know Kubernetes' JSON
//! (that is `egret-api`), nor which node should hold which address (that is `egret-placement`). It does no I/O, reads
//! no clock and draws no random number; every value here can be built in a test by hand.
//!
//! ```text
//!   name, address, network ─┐
//!   selector ───────────────┼─> node, egress_ip, egress_service, cloud ──> snapshot ──> (egret-placement)
//!   selector ── index: who matches what, cached both ways ──> (egret-placement)
//! ```
//!
//! Invariants: an [`Address`] is canonical (an IPv4-mapped IPv6 address is IPv4); a [`Selector`] is one that Kubernetes
//! would accept; a [`Snapshot`] iterates in name order, whatever the order of its input.

mod address;
mod cloud;
mod egress_ip;
mod egress_service;
mod event;
mod index;
mod name;
mod network;
mod node;
mod selector;
mod snapshot;

pub use address::{Address, AddressFault, Family};
pub use cloud::{CloudPrivateIpConfig, CloudState};
pub use egress_ip::{EgressIp, InvalidRequest, NodeSelector, RecordedItem};
pub use egress_service::{EgressService, Endpoint, Host, Service, SourceIpBy};
pub use event::EventReason;
pub use index::{Labels, SelectorId, SelectorIndex};
pub use ipnet::IpNet;
pub use name::{EgressIpName, NodeName, ServiceKey, Timestamp};
pub use network::{Capacity, NetworkKind, NodeNetwork};
pub use node::{GatewayMode, InfrastructureFault, InfrastructureFaultKind, Node, Reachability};
pub use selector::{Operator, Requirement, Selector, SelectorFault, SelectorPart};
pub use snapshot::{Options, Platform, Snapshot};
