//! What makes services reachable: a stand-in for kube-proxy, and for the part that OVN has in it.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::PoisonError;

use crate::address::Family;
use crate::error::LabError;
use crate::lab::Lab;
use crate::traffic::PORT;

/// Whether any node passes on what comes from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Any node does, to any endpoint, with its own address as the source, or with that of its OVN.
    #[default]
    Cluster,
    /// Only to endpoints on the same node, and the source stays.
    Local,
}

/// A service of type `LoadBalancer`, over TCP and UDP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// The load balancer's addresses.
    pub external: Vec<IpAddr>,
    /// The addresses inside the cluster.
    pub cluster: Vec<IpAddr>,
    /// The port of both.
    pub port: u16,
    /// The node port, which OVN-Kubernetes uses for the `Local` policy.
    pub node_port: u16,
    /// The names of the pods behind it. One that is not there yet, or any more, is passed over.
    pub pods: Vec<String>,
    /// `externalTrafficPolicy`.
    pub policy: Policy,
}

/// A pod behind a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) port: u16,
    /// The node that it is on.
    pub(crate) node: String,
}

/// Where a node sends what it passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage<'a> {
    /// From the load balancer's address to a pod, and from the cluster's address to a pod, in one step.
    Direct(&'a str),
    /// The node's half of two steps: from the load balancer's address to the cluster's.
    ToClusterIp,
    /// OVN's half, on that node: from the cluster's address to a pod.
    FromClusterIp(&'a str),
}

/// Marks a packet as one that is to get the address of whoever passes it on, as kube-proxy does.
const MASQUERADE: &str = "meta mark set meta mark | 0x4000";

/// The address that OVN-Kubernetes sends external traffic of `Local` services to, with the node port.
fn masquerade(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([169, 254, 169, 3]),
        Family::V6 => IpAddr::from([0xfd69, 0, 0, 0, 0, 0, 0, 3]),
    }
}

/// The host routes that a node needs towards its OVN beside that of the services.
pub(crate) fn masquerade_route(family: Family) -> String {
    format!("{}/{}", masquerade(family), family.bits())
}

/// The whole table of a family, which replaces the one that is there.
pub(crate) fn render(family: Family, services: &[(Service, Vec<Endpoint>)], stage: Stage<'_>) -> String {
    let nft = family.nft();
    let mut text = format!("table {nft} kube-proxy\ndelete table {nft} kube-proxy\ntable {nft} kube-proxy {{\n");
    let mut rules = Vec::new();
    for (number, (service, endpoints)) in services.iter().enumerate() {
        let all: Vec<&Endpoint> = endpoints.iter().collect();
        let chains = Chains { family, number, service };
        let node = match stage {
            Stage::Direct(node) | Stage::FromClusterIp(node) => node,
            Stage::ToClusterIp => "",
        };
        let local: Vec<&Endpoint> = all.iter().copied().filter(|endpoint| endpoint.node == node).collect();
        match stage {
            Stage::ToClusterIp => chains.to_cluster_ip(&mut text, &mut rules),
            Stage::Direct(_) => {
                chains.inside(&mut text, &mut rules, &all, "");
                match service.policy {
                    Policy::Cluster => chains.outside(&mut text, &mut rules, &all, MASQUERADE),
                    Policy::Local => chains.outside(&mut text, &mut rules, &local, ""),
                }
            }
            Stage::FromClusterIp(_) => {
                // Else the replies of another node's pod would leave there.
                chains.inside(&mut text, &mut rules, &all, &format!("iifname mp0 {MASQUERADE}"));
                chains.node_port(&mut text, &mut rules, &local);
            }
        }
    }
    let rules = rules.join("\n    ");
    let _ = write!(
        text,
        "  chain services {{\n    {rules}\n  }}
  chain prerouting {{\n    type nat hook prerouting priority dstnat; policy accept;\n    jump services\n  }}
  chain output {{\n    type nat hook output priority -100; policy accept;\n    jump services\n  }}
  chain postrouting {{\n    type nat hook postrouting priority srcnat; policy accept;
    meta mark & 0x4000 != 0x4000 return\n    meta mark set meta mark ^ 0x4000\n    masquerade fully-random\n  }}\n}}\n"
    );
    text
}

impl Lab {
    /// Every node knows the service from now on, instead of the one of that name if there is one.
    ///
    /// # Errors
    ///
    /// nft refuses.
    pub fn service(&self, service: Service) -> Result<(), LabError> {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        services.retain(|other| other.name != service.name);
        services.push(service);
        self.program(&services)
    }

    /// No node knows the service any more.
    ///
    /// # Errors
    ///
    /// nft refuses.
    pub fn remove_service(&self, name: &str) -> Result<(), LabError> {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        services.retain(|service| service.name != name);
        self.program(&services)
    }

    fn program(&self, services: &[Service]) -> Result<(), LabError> {
        let known: Vec<_> = services.iter().map(|service| (service.clone(), self.endpoints(service))).collect();
        for node in &self.nodes {
            let name = node.host.name();
            let tables = |stage| Family::BOTH.map(|family| render(family, &known, stage)).concat();
            match &node.ovn {
                None => node.host.nft(&tables(Stage::Direct(name)))?,
                Some(ovn) => {
                    node.host.nft(&tables(Stage::ToClusterIp))?;
                    ovn.nft(&tables(Stage::FromClusterIp(name)))?;
                }
            }
        }
        Ok(())
    }

    fn endpoints(&self, service: &Service) -> Vec<Endpoint> {
        let places = service.pods.iter().filter_map(|pod| self.place(pod).ok());
        places.map(|(node, addresses)| Endpoint { addresses, port: PORT, node: node.host.name().to_owned() }).collect()
    }
}

/// The chains of one service in one family.
struct Chains<'a> {
    family: Family,
    number: usize,
    service: &'a Service,
}

impl Chains<'_> {
    fn of(&self, addresses: &[IpAddr]) -> Option<IpAddr> {
        addresses.iter().copied().find(|address| Family::of(*address) == self.family)
    }

    fn rule(&self, address: IpAddr, port: u16, chain: &str) -> String {
        let Self { family, number, .. } = self;
        format!("{} daddr {address} meta l4proto {{ tcp, udp }} th dport {port} goto {chain}-{number}", family.nft())
    }

    /// A chain that chooses one of the endpoints.
    fn choose(&self, text: &mut String, chain: &str, endpoints: &[&Endpoint], mark: &str) {
        let targets: Vec<(IpAddr, u16)> =
            endpoints.iter().filter_map(|it| Some((self.of(&it.addresses)?, it.port))).collect();
        let chain = format!("{chain}-{}", self.number);
        for (index, (address, port)) in targets.iter().enumerate() {
            let to = SocketAddr::new(*address, *port);
            let _ = writeln!(text, "  chain {chain}-{index} {{\n    meta l4proto {{ tcp, udp }} dnat to {to}\n  }}");
        }
        let _ = writeln!(text, "  chain {chain} {{");
        let _ = writeln!(text, "    {mark}");
        let choices: Vec<String> = (0..targets.len()).map(|index| format!("{index} : goto {chain}-{index}")).collect();
        let _ = match targets.len() {
            0 => writeln!(text, "    drop"),
            1 => writeln!(text, "    goto {chain}-0"),
            many => writeln!(text, "    numgen random mod {many} vmap {{ {} }}", choices.join(", ")),
        };
        text.push_str("  }\n");
    }

    fn inside(&self, text: &mut String, rules: &mut Vec<String>, endpoints: &[&Endpoint], mark: &str) {
        let Some(address) = self.of(&self.service.cluster) else { return };
        self.choose(text, "inside", endpoints, mark);
        rules.push(self.rule(address, self.service.port, "inside"));
    }

    fn outside(&self, text: &mut String, rules: &mut Vec<String>, endpoints: &[&Endpoint], mark: &str) {
        let Some(address) = self.of(&self.service.external) else { return };
        self.choose(text, "outside", endpoints, mark);
        rules.push(self.rule(address, self.service.port, "outside"));
    }

    fn node_port(&self, text: &mut String, rules: &mut Vec<String>, endpoints: &[&Endpoint]) {
        if self.service.node_port != 0 {
            self.choose(text, "port", endpoints, "");
            rules.push(self.rule(masquerade(self.family), self.service.node_port, "port"));
        }
    }

    fn to_cluster_ip(&self, text: &mut String, rules: &mut Vec<String>) {
        let (Some(external), Some(cluster)) = (self.of(&self.service.external), self.of(&self.service.cluster)) else {
            return;
        };
        let (address, port) = match self.service.policy {
            Policy::Cluster => (cluster, self.service.port),
            Policy::Local => (masquerade(self.family), self.service.node_port),
        };
        let endpoint = Endpoint { addresses: vec![address], port, node: String::new() };
        self.choose(text, "outside", &[&endpoint], "");
        rules.push(self.rule(external, self.service.port, "outside"));
    }
}
