//! Building a lab.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

use crate::address::{self, Family, Network, OUTSIDE};
use crate::alone::anybody_inside;
use crate::error::LabError;
use crate::host::{Host, LOGS, Traffic};
use crate::lab::{Lab, Node, add_address, default, link_up};
use crate::namespace::Namespace;
use crate::profile::Profile;
use crate::traffic::respond::Responder;
use crate::traffic::{PORT, Pacer};
use crate::{masquerade, ovn};

/// What a lab is to consist of.
#[derive(Clone, Debug)]
#[must_use]
pub struct LabBuilder {
    nodes: u8,
    blue: Vec<u8>,
    profile: Profile,
    ovn: bool,
    bare: bool,
}

impl LabBuilder {
    pub(crate) fn new() -> Self {
        Self { nodes: 1, blue: Vec::new(), profile: Profile::Stock, ovn: false, bare: false }
    }

    /// So many nodes, `n1` and so on. At most 9, without being told one.
    pub fn nodes(mut self, count: u8) -> Self {
        self.nodes = count.clamp(1, 9);
        self
    }

    /// There is a second network, and the nodes with these numbers have `eth1` on it.
    pub fn blue(mut self, nodes: &[u8]) -> Self {
        self.blue = nodes.to_vec();
        self
    }

    /// The kernel parameters of the nodes.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Pods are behind a stand-in for OVN: a host of its own beside each node, reached by `ovn-k8s-mp0`. It sends what
    /// is for a service's cluster address to a pod; the node itself only knows the way from the load balancer's address
    /// to the cluster's.
    pub fn ovn(mut self) -> Self {
        self.ovn = true;
        self
    }

    /// Without what a CNI plugin does on a node: pods are attached by somebody else, who masquerades too. See
    /// [`Lab::attach_pod`].
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    /// Builds it.
    ///
    /// # Errors
    ///
    /// The process has the machine's own network, or a namespace, a link or an address cannot be made.
    pub fn build(self) -> Result<Lab, LabError> {
        if !anybody_inside() {
            return Err(LabError::NotAlone);
        }
        let socket = |source| LabError::Socket { place: "the lab".to_owned(), source };
        fs::create_dir_all(LOGS).map_err(socket)?;
        let responder = Arc::new(Responder::start().map_err(socket)?);
        let traffic = Traffic { responder, pacer: Arc::new(Pacer::start().map_err(socket)?) };
        let mut lab = Lab {
            nodes: Vec::new(),
            outside: BTreeMap::new(),
            switches: BTreeMap::new(),
            profile: self.profile,
            traffic,
            pods: Mutex::default(),
            services: Mutex::default(),
        };
        lab.add_network(Network::Red, "ext")?;
        if !self.blue.is_empty() {
            lab.add_network(Network::Blue, "blue")?;
        }
        if self.ovn {
            lab.switches.insert(Network::Tunnel, switch(Network::Tunnel)?);
        }
        for number in 1..=self.nodes {
            lab.add_node(number, self.blue.contains(&number))?;
        }
        lab.connect_nodes()?;
        if !self.bare {
            lab.nodes.iter().try_for_each(|node| masquerade::add(node, &lab.nodes))?;
        }
        lab.settle()?;
        Ok(lab)
    }
}

impl Lab {
    /// A network with its outside server.
    fn add_network(&mut self, network: Network, name: &str) -> Result<(), LabError> {
        self.switches.insert(network, switch(network)?);
        let own = Family::BOTH.map(|family| network.address(family, OUTSIDE));
        let mut addresses = own.to_vec();
        addresses.extend(Family::BOTH.map(Family::destination));
        let outside = Host::new(name, addresses, self.traffic.clone())?;
        // Those of the machine would count otherwise.
        outside.namespace().set_sysctls(&[("ipv4/conf/all/rp_filter", "0"), ("ipv4/conf/default/rp_filter", "0")])?;
        self.plug(network, &outside, "eth0")?;
        let mut lines = vec!["link set lo up".to_owned()];
        lines.extend(link_up("eth0", OUTSIDE));
        for family in Family::BOTH {
            lines.push(add_address(network.address(family, OUTSIDE), address::subnet_bits(family), "eth0"));
            lines.push(add_address(family.destination(), family.bits(), "lo"));
        }
        outside.namespace().ip(&lines)?;
        outside.answer(PORT)?;
        self.outside.insert(network, Arc::new(outside));
        Ok(())
    }

    /// Gives a host a link on a network.
    pub(crate) fn plug(&self, network: Network, host: &Host, link: &str) -> Result<(), LabError> {
        let name = host.name();
        self.switch(network)?.ip(&[
            format!("link add {name} type veth peer name {link} netns {name}"),
            format!("link set {name} master br0 up"),
        ])
    }

    fn add_node(&mut self, number: u8, blue: bool) -> Result<(), LabError> {
        let networks: &[(Network, &str)] =
            if blue { &[(Network::Red, "eth0"), (Network::Blue, "eth1")] } else { &[(Network::Red, "eth0")] };
        let own =
            |(network, _): &(Network, &str)| Family::BOTH.map(|it| network.address(it, address::node_host(number)));
        let addresses = networks.iter().flat_map(own).collect();
        let host = Host::new(&format!("n{number}"), addresses, self.traffic.clone())?;
        self.profile.prepare(host.namespace())?;
        let mut lines = vec!["link set lo up".to_owned()];
        for (network, link) in networks {
            self.plug(*network, &host, link)?;
            lines.extend(link_up(link, address::node_host(number)));
            for family in Family::BOTH {
                let address = network.address(family, address::node_host(number));
                lines.push(add_address(address, address::subnet_bits(family), link));
            }
        }
        lines.extend(Family::BOTH.map(|family| {
            format!("route add {} via {} dev eth0", default(family), Network::Red.address(family, OUTSIDE))
        }));
        host.namespace().ip(&lines)?;
        self.profile.link(host.namespace(), &["eth0".to_owned()])?;
        let host = Arc::new(host);
        let ovn =
            if self.switches.contains_key(&Network::Tunnel) { Some(ovn::add(self, number, &host)?) } else { None };
        host.answer(PORT)?;
        self.nodes.push(Node { number, host, ovn, blue });
        Ok(())
    }

    /// What each node must know of the others.
    fn connect_nodes(&self) -> Result<(), LabError> {
        for node in &self.nodes {
            if let Some(host) = &node.ovn {
                ovn::connect(host, node, &self.nodes)?;
            } else {
                let others = self.nodes.iter().filter(|other| other.number != node.number);
                let lines = others.flat_map(|other| Family::BOTH.map(|family| pods_of(family, other.number)));
                node.host.namespace().ip(&lines.collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    /// Waits for all links between hosts and networks.
    fn settle(&self) -> Result<(), LabError> {
        for (network, switch) in &self.switches {
            let mut ports: Vec<&str> = self.outside.get(network).iter().map(|host| host.name()).collect();
            for node in &self.nodes {
                match network {
                    Network::Red => ports.push(node.host.name()),
                    Network::Blue if node.blue => ports.push(node.host.name()),
                    Network::Tunnel => ports.extend(node.ovn.as_ref().map(|ovn| ovn.name())),
                    Network::Blue => {}
                }
            }
            switch.settle(&ports)?;
        }
        self.outside.values().try_for_each(|host| host.namespace().settle(&["eth0"]))?;
        self.nodes.iter().try_for_each(|node| {
            let second = if node.blue { "eth1" } else { "eth0" };
            node.host.namespace().settle(&["eth0", second, if node.ovn.is_some() { ovn::PORT } else { "eth0" }])?;
            node.ovn.iter().try_for_each(|ovn| ovn.namespace().settle(&["mp0", "geneve"]))
        })
    }
}

/// The route to another node's pods.
fn pods_of(family: Family, node: u8) -> String {
    let via = Network::Red.address(family, address::node_host(node));
    format!("route add {} via {via} dev eth0", address::pod_subnet(family, node))
}

/// A bridge in a namespace of its own: in another, that one's filters would see the frames.
fn switch(network: Network) -> Result<Namespace, LabError> {
    let namespace = Namespace::new(network.switch())?;
    // The bridge must not talk itself.
    namespace.set_sysctls(&[("ipv6/conf/all/disable_ipv6", "1"), ("ipv6/conf/default/disable_ipv6", "1")])?;
    // Nor must this namespace's filters; a kernel without br_netfilter has none for bridges.
    for name in ["bridge/bridge-nf-call-iptables", "bridge/bridge-nf-call-ip6tables"] {
        if namespace.sysctl(name).is_ok() {
            namespace.set_sysctls(&[(name, "0")])?;
        }
    }
    namespace.ip(&[
        "link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0".to_owned(),
        "link set br0 up".to_owned(),
    ])?;
    Ok(namespace)
}
