//! A stand-in for OVN on a node: a router of its own between the node and its pods, with tunnels to those of the others.

use std::net::IpAddr;
use std::sync::Arc;

use crate::address::{self, Family, Network};
use crate::error::LabError;
use crate::host::Host;
use crate::lab::{Lab, Node, add_address, default, link_up};
use crate::profile::Profile;
use crate::service;

/// The host number of OVN's side of the management port, which is the pods' gateway, and of the node's side.
pub(crate) const ROUTER: u8 = 1;
const MANAGEMENT: u8 = 2;

/// The link between a node and its OVN, as OVN-Kubernetes calls it.
pub(crate) const PORT: &str = "ovn-k8s-mp0";

/// OVN beside a node.
pub(crate) fn add(lab: &Lab, number: u8, node: &Host) -> Result<Arc<Host>, LabError> {
    let addresses = Family::BOTH.map(|family| address::pod(family, number, ROUTER)).to_vec();
    let ovn = Host::new(&format!("ovn{number}"), addresses, lab.traffic.clone())?;
    Profile::Stock.prepare(ovn.namespace())?;
    // It routes between pods that share a link, and tells nobody of better ways.
    ovn.namespace().set_sysctls(&[("ipv4/conf/all/send_redirects", "0"), ("ipv4/conf/default/send_redirects", "0")])?;
    lab.plug(Network::Tunnel, &ovn, "geneve")?;
    node.namespace().ip(&node_lines(number, ovn.name()))?;
    ovn.namespace().ip(&ovn_lines(number))?;
    // On the node's link the pods seem to be neighbours, as in a logical switch, and they answer at once.
    ovn.namespace().set_sysctls(&[
        ("ipv4/conf/mp0/proxy_arp", "1"),
        ("ipv6/conf/mp0/proxy_ndp", "1"),
        ("ipv4/neigh/mp0/proxy_delay", "0"),
        ("ipv6/neigh/mp0/proxy_delay", "0"),
    ])?;
    lab.profile.link(node.namespace(), &[PORT.to_owned()])?;
    Ok(Arc::new(ovn))
}

fn node_lines(number: u8, ovn: &str) -> Vec<String> {
    let mut lines = vec![format!("link add {PORT} type veth peer name mp0 netns {ovn}")];
    lines.extend(link_up(PORT, MANAGEMENT));
    for family in Family::BOTH {
        let router = address::pod(family, number, ROUTER);
        lines.push(add_address(address::pod(family, number, MANAGEMENT), address::subnet_bits(family), PORT));
        let prefixes =
            [address::pods(family).to_owned(), address::services(family).to_owned(), service::masquerade_route(family)];
        lines.extend(prefixes.map(|prefix| format!("route add {prefix} via {router} dev {PORT}")));
    }
    lines
}

fn ovn_lines(number: u8) -> Vec<String> {
    let mut lines = vec!["link set lo up".to_owned()];
    lines.extend(link_up("mp0", ROUTER));
    lines.extend(link_up("geneve", number));
    for family in Family::BOTH {
        let bits = address::subnet_bits(family);
        lines.push(add_address(address::pod(family, number, ROUTER), bits, "mp0"));
        lines.push(add_address(Network::Tunnel.address(family, number), bits, "geneve"));
        let node = address::pod(family, number, MANAGEMENT);
        lines.push(format!("route add {} via {node} dev mp0", default(family)));
    }
    lines
}

/// The tunnels to the others.
pub(crate) fn connect(ovn: &Host, node: &Node, all: &[Node]) -> Result<(), LabError> {
    let others = all.iter().filter(|other| other.number != node.number);
    let lines = others.flat_map(|other| {
        Family::BOTH.map(|family| {
            let via = Network::Tunnel.address(family, other.number);
            format!("route add {} via {via} dev geneve", address::pod_subnet(family, other.number))
        })
    });
    ovn.namespace().ip(&lines.collect::<Vec<_>>())
}

impl Lab {
    /// OVN sends what this pod sends out of the cluster to another node, which lets it out: what OVN-Kubernetes does for
    /// the endpoints of an EgressService whose host that node is.
    ///
    /// # Errors
    ///
    /// There is no such pod or node, or no OVN.
    pub fn reroute(&self, pod: &str, to: &str) -> Result<(), LabError> {
        let to = self.find_node(to)?;
        let (node, addresses) = self.place(pod)?;
        let mut lines = Vec::new();
        for address in addresses {
            let family = Family::of(address);
            let option = if family == Family::V6 { "-6" } else { "-4" };
            // A table for each pod, so that one that is led to another node meanwhile does not come out on its own.
            let table = table(address);
            lines.push(format!(
                "route replace {} via {} dev geneve table {table}",
                default(family),
                Network::Tunnel.address(family, to.number)
            ));
            if !node.gateway().run(["ip", option, "rule", "show", "from", &address.to_string()])?.is_empty() {
                continue;
            }
            let option = if family == Family::V6 { "-6 " } else { "" };
            let kept = inside(family, &self.nodes);
            lines.extend(kept.map(|to| format!("{option}rule add pref 99 from {address} to {to} lookup main")));
            lines.push(format!("{option}rule add pref 100 from {address} lookup {table}"));
        }
        node.gateway().namespace().ip(&lines)
    }

    /// OVN lets the pod out on its own node again.
    ///
    /// # Errors
    ///
    /// There is no such pod.
    pub fn unreroute(&self, pod: &str) -> Result<(), LabError> {
        let (node, addresses) = self.place(pod)?;
        for address in addresses {
            let address = address.to_string();
            let option = if address.contains(':') { "-6" } else { "-4" };
            let delete = ["ip", option, "rule", "del", "from", &address];
            // Until there is none.
            while node.gateway().output(delete)?.status.success() {}
        }
        Ok(())
    }
}

/// The table of a pod on its node, where no other's address has the same end.
fn table(pod: IpAddr) -> u32 {
    let end = match pod {
        IpAddr::V4(ip) => ip.octets()[3].into(),
        IpAddr::V6(ip) => ip.segments()[7],
    };
    1000 + u32::from(end)
}

/// What OVN never reroutes.
fn inside(family: Family, nodes: &[Node]) -> impl Iterator<Item = String> {
    let own = nodes.iter().map(move |node| Network::Red.address(family, address::node_host(node.number)).to_string());
    [address::pods(family), address::services(family)].map(str::to_owned).into_iter().chain(own)
}
