//! What a lab consists of.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::address::{self, Family, Network, SELF};
use crate::build::LabBuilder;
use crate::error::LabError;
use crate::host::{Host, Traffic};
use crate::namespace::Namespace;
use crate::pod::Pod;
use crate::profile::Profile;
use crate::service::Service;
use crate::traffic::wire::Wire;

/// Nodes, pods, outside servers and the networks between them, without Kubernetes. All of it is gone when it is dropped,
/// but for what a test still holds.
/// A process has one at a time.
#[derive(Debug)]
pub struct Lab {
    pub(crate) nodes: Vec<Node>,
    pub(crate) outside: BTreeMap<Network, Arc<Host>>,
    pub(crate) switches: BTreeMap<Network, Namespace>,
    pub(crate) profile: Profile,
    pub(crate) traffic: Traffic,
    pub(crate) pods: Mutex<BTreeMap<String, Pod>>,
    pub(crate) services: Mutex<Vec<Service>>,
}

/// A node, and what its pods are attached to.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) number: u8,
    pub(crate) host: Arc<Host>,
    /// What plays OVN on this node, if the lab has it.
    pub(crate) ovn: Option<Arc<Host>>,
    pub(crate) blue: bool,
}

impl Node {
    /// The host whose links lead to the pods.
    pub(crate) fn gateway(&self) -> &Arc<Host> {
        self.ovn.as_ref().unwrap_or(&self.host)
    }
}

impl Lab {
    /// A lab of one node on one network, unless more is asked for.
    pub fn builder() -> LabBuilder {
        LabBuilder::new()
    }

    /// The node of that name: `n1`, `n2` and so on.
    ///
    /// # Panics
    ///
    /// There is none.
    #[must_use]
    pub fn node(&self, name: &str) -> Arc<Host> {
        Arc::clone(&self.find_node(name).expect("the lab has a node of this name").host)
    }

    /// All nodes, in order.
    #[must_use]
    pub fn nodes(&self) -> Vec<Arc<Host>> {
        self.nodes.iter().map(|node| Arc::clone(&node.host)).collect()
    }

    /// The stand-in for OVN beside a node.
    ///
    /// # Panics
    ///
    /// There is none.
    #[must_use]
    pub fn ovn(&self, node: &str) -> Arc<Host> {
        let ovn = self.find_node(node).ok().and_then(|node| node.ovn.as_ref());
        Arc::clone(ovn.expect("the lab has OVN beside this node"))
    }

    /// What the links of a node's pods lead to: the node, or its OVN.
    ///
    /// # Panics
    ///
    /// There is no such node.
    #[must_use]
    pub fn gateway(&self, node: &str) -> Arc<Host> {
        Arc::clone(self.find_node(node).expect("the lab has a node of this name").gateway())
    }

    /// The outside server of a network: `ext` on red, `blue` on blue.
    ///
    /// # Panics
    ///
    /// The lab does not have that network, or nobody is outside there.
    #[must_use]
    pub fn outside(&self, network: Network) -> Arc<Host> {
        Arc::clone(self.outside.get(&network).expect("the lab has this network"))
    }

    /// Gives the namespace that the test itself runs in, and what it starts there, a link on the primary network, for
    /// what the nodes must reach but the lab does not know, such as an API server.
    ///
    /// # Errors
    ///
    /// It has one already, or the link cannot be made.
    pub fn join(&self) -> Result<Arc<Host>, LabError> {
        let addresses = Family::BOTH.map(|family| Network::Red.address(family, SELF));
        let own = Namespace::own("self")?;
        self.switch(Network::Red)?.ip(&[
            format!("link add self type veth peer name red netns /proc/{}/ns/net", process::id()),
            "link set self master br0 up".to_owned(),
        ])?;
        let mut lines = link_up("red", SELF).to_vec();
        lines.extend(addresses.map(|address| add_address(address, address::subnet_bits(Family::of(address)), "red")));
        own.ip(&lines)?;
        self.switch(Network::Red)?.settle(&["self"])?;
        own.settle(&["red"])?;
        Ok(Arc::new(Host::within(own, addresses.to_vec(), self.traffic.clone())))
    }

    /// The address of a node in a network.
    ///
    /// # Panics
    ///
    /// There is no such node.
    #[must_use]
    pub fn node_address(&self, node: &str, network: Network, family: Family) -> IpAddr {
        let number = self.find_node(node).expect("the lab has a node of this name").number;
        network.address(family, address::node_host(number))
    }

    /// Captures what crosses a network from now on.
    ///
    /// # Errors
    ///
    /// The capture cannot be opened.
    pub fn wire(&self, network: Network) -> Result<Wire, LabError> {
        Wire::start(self.switch(network)?)
    }

    /// Pulls the plug of a host, by its name, out of a network.
    ///
    /// # Errors
    ///
    /// It is not on that network.
    pub fn cut(&self, host: &str, network: Network) -> Result<(), LabError> {
        self.switch(network)?.ip(&[format!("link set {host} down")])
    }

    /// Puts it in again.
    ///
    /// # Errors
    ///
    /// It is not on that network.
    pub fn mend(&self, host: &str, network: Network) -> Result<(), LabError> {
        self.switch(network)?.ip(&[format!("link set {host} up")])
    }

    /// The outside servers of all networks that the node is on send what is for this address to the node.
    ///
    /// # Errors
    ///
    /// There is no such node.
    pub fn route(&self, to: IpAddr, node: &str) -> Result<(), LabError> {
        let node = self.find_node(node)?;
        let family = Family::of(to);
        for (network, outside) in &self.outside {
            if *network == Network::Red || node.blue {
                let via = network.address(family, address::node_host(node.number));
                outside.namespace().ip(&[format!("route replace {to}/{} via {via}", family.bits())])?;
            }
        }
        Ok(())
    }

    /// They know no way to this address any more.
    ///
    /// # Errors
    ///
    /// `ip` fails.
    pub fn unroute(&self, to: IpAddr) -> Result<(), LabError> {
        let prefix = format!("{to}/{}", Family::of(to).bits());
        for outside in self.outside.values() {
            // One of the networks may not have known any.
            outside.output(["ip", "route", "del", &prefix])?;
        }
        Ok(())
    }

    pub(crate) fn find_node(&self, name: &str) -> Result<&Node, LabError> {
        let mut nodes = self.nodes.iter();
        nodes.find(|node| node.host.name() == name).ok_or_else(|| unknown("node", name))
    }

    pub(crate) fn locked_pods(&self) -> MutexGuard<'_, BTreeMap<String, Pod>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn switch(&self, network: Network) -> Result<&Namespace, LabError> {
        self.switches.get(&network).ok_or_else(|| unknown("network", network.switch()))
    }
}

/// `default`, but of one family.
pub(crate) fn default(family: Family) -> &'static str {
    match family {
        Family::V4 => "0.0.0.0/0",
        Family::V6 => "::/0",
    }
}

/// Without the second in which the kernel looks for others that have an IPv6 address.
pub(crate) fn add_address(address: IpAddr, bits: u8, link: &str) -> String {
    let nodad = if address.is_ipv6() { " nodad" } else { "" };
    format!("addr add {address}/{bits} dev {link}{nodad}")
}

/// A link with a link-local address at once: the kernel would take a second to be sure of one that it makes itself, and
/// until then nobody is found over IPv6.
pub(crate) fn link_up(link: &str, host: u8) -> [String; 3] {
    // One after the other: told both at once, Linux 6.1 first takes it up, with an address that it makes.
    [
        format!("link set {link} addrgenmode none"),
        format!("link set {link} up"),
        format!("addr add fe80::{host}/64 dev {link} nodad"),
    ]
}

pub(crate) fn unknown(what: &'static str, name: &str) -> LabError {
    LabError::Unknown { what, name: name.to_owned() }
}
