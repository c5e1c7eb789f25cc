//! EgressIPs.

use egret_core::{Address, EgressIp, InvalidRequest, NodeSelector, RecordedItem, Timestamp};

use super::{address, faulty_selector, selector};

/// Builds an [`EgressIp`].
#[derive(Clone, Debug)]
#[must_use]
pub struct EgressIpBuilder(EgressIp);

/// An EgressIP with the default selector that asks for nothing and holds nothing.
pub fn egress_ip(name: &str) -> EgressIpBuilder {
    EgressIpBuilder(EgressIp {
        name: name.into(),
        created: Timestamp(0),
        requested: Vec::new(),
        invalid: Vec::new(),
        selector: NodeSelector::egress_assignable(),
        recorded: Vec::new(),
    })
}

impl EgressIpBuilder {
    /// Asking for an entry of `spec.egressIPs`, valid or not.
    pub fn address(mut self, text: &str) -> Self {
        match Address::parse(text) {
            Ok(address) => self.0.requested.push(address),
            Err(fault) => self.0.invalid.push(InvalidRequest { text: text.to_owned(), fault }),
        }
        self
    }

    /// With a selector in kubectl's notation, see [`selector`].
    pub fn selector(mut self, text: &str) -> Self {
        self.0.selector = selector(text);
        self
    }

    /// With a selector that does not compile.
    pub fn faulty(mut self) -> Self {
        self.0.selector = faulty_selector();
        self
    }

    /// Created in this second.
    pub fn created(mut self, second: i64) -> Self {
        self.0.created = Timestamp(second);
        self
    }

    /// With an item in its status.
    pub fn recorded(mut self, text: &str, node: &str) -> Self {
        self.0.recorded.push(RecordedItem { address: address(text), node: node.into() });
        self
    }

    /// The object; lists ascending and distinct, as an observation gives them.
    #[must_use]
    pub fn build(self) -> EgressIp {
        let mut egress_ip = self.0;
        egress_ip.requested.sort_unstable();
        egress_ip.requested.dedup();
        egress_ip.recorded.sort_unstable();
        egress_ip.recorded.dedup();
        egress_ip
    }
}
