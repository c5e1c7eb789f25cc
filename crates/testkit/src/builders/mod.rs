//! Terse builders for the words of the domain.
//!
//! For tests: text that does not parse is a bug of the test, and panics.

mod egress_ip;
mod egress_service;
mod node;
mod selector;
mod snapshot;

pub use egress_ip::{EgressIpBuilder, egress_ip};
pub use egress_service::{EgressServiceBuilder, egress_service, endpoint, service_key};
pub use node::{NodeBuilder, node};
pub use selector::{faulty_selector, selector};
pub use snapshot::{SnapshotBuilder, snapshot};

use egret_core::{Address, IpNet};

/// The address of this text.
#[must_use]
pub fn address(text: &str) -> Address {
    Address::parse(text).expect("the text of an address")
}

/// The prefix of this text, host bits kept.
#[must_use]
pub fn prefix(text: &str) -> IpNet {
    text.parse().expect("the text of a prefix")
}
