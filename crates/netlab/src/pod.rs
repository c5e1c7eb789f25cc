//! Pods, one by one or many at once.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use crate::address::{self, Family};
use crate::error::LabError;
use crate::host::Host;
use crate::lab::{Lab, Node, add_address, default, link_up, unknown};
use crate::namespace::Namespace;
use crate::ovn::ROUTER;
use crate::traffic::PORT;

/// The host numbers that pods get.
const FIRST: u8 = 11;
const LAST: u8 = 250;

/// The group of links that are to go, all at once.
const GONE: u32 = 4242;

/// The address of the gateway on every pod's link.
const GATEWAY6: &str = "fe80::1";

/// A pod, and where it is.
#[derive(Debug)]
pub(crate) struct Pod {
    host: Arc<Host>,
    node: u8,
    /// Of its address and its link. A pod that somebody else has attached has none.
    number: Option<u8>,
}

impl Lab {
    /// A pod on a node, with a server.
    ///
    /// # Errors
    ///
    /// The node is unknown or full, or the pod cannot be made.
    pub fn add_pod(&self, node: &str, name: &str) -> Result<Arc<Host>, LabError> {
        let mut added = self.add_pods(&[(node, name)])?;
        Ok(added.pop().expect("one was asked for"))
    }

    /// Pods on nodes, given as (node, pod), each with a server. Faster than one by one.
    ///
    /// # Errors
    ///
    /// A node is unknown or full, or a pod cannot be made.
    pub fn add_pods<S: AsRef<str>>(&self, pods: &[(S, S)]) -> Result<Vec<Arc<Host>>, LabError> {
        let mut known = self.locked_pods();
        let mut added = Vec::new();
        let mut links: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        for (node, name) in pods {
            let node = self.find_node(node.as_ref())?;
            let number = free(&known, node)?;
            let addresses = Family::BOTH.map(|family| address::pod(family, node.number, number)).to_vec();
            let host = Arc::new(Host::new(name.as_ref(), addresses, self.traffic.clone())?);
            known.insert(
                name.as_ref().to_owned(),
                Pod { host: Arc::clone(&host), node: node.number, number: Some(number) },
            );
            links.entry(node.number).or_default().push(number);
            added.push((host, node.number));
        }
        for (number, new) in &links {
            self.attach(self.find_number(*number), new, &known)?;
        }
        for (host, node) in &added {
            host.namespace().ip(&inside_lines(*node, host))?;
            host.answer(PORT)?;
        }
        for (number, new) in &links {
            let links: Vec<String> = new.iter().map(|number| link(*number)).collect();
            self.nodes[usize::from(*number) - 1].gateway().namespace().settle(&links)?;
        }
        added.iter().try_for_each(|(host, _)| host.namespace().settle(&["eth0"]))?;
        Ok(added.into_iter().map(|(host, _)| host).collect())
    }

    /// Makes the links of new pods on a node.
    fn attach(&self, node: &Node, new: &[u8], known: &BTreeMap<String, Pod>) -> Result<(), LabError> {
        let gateway = node.gateway().namespace();
        let of = |number: &u8| known.values().find(|pod| pod.node == node.number && pod.number == Some(*number));
        let mut lines = Vec::new();
        for number in new {
            lines.extend(of(number).into_iter().flat_map(|pod| outside_lines(node, &pod.host, *number)));
        }
        gateway.ip(&lines)?;
        if node.ovn.is_none() {
            self.profile.link(gateway, &new.iter().map(|number| link(*number)).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// A pod with a server that somebody else attaches, such as a CNI plugin: it is given the path of the pod's namespace,
    /// makes `eth0` there, and returns the addresses.
    ///
    /// # Errors
    ///
    /// The node is unknown, or the pod cannot be made or attached.
    pub fn attach_pod<E: From<LabError>>(
        &self,
        node: &str,
        name: &str,
        attach: impl FnOnce(&Path) -> Result<Vec<IpAddr>, E>,
    ) -> Result<Arc<Host>, E> {
        let node = self.find_node(node)?;
        let namespace = Namespace::new(name)?;
        namespace.ip(&["link set lo up".to_owned()])?;
        let addresses = attach(&namespace.path())?;
        namespace.settle(&["eth0"])?;
        let host = Arc::new(Host::within(namespace, addresses, self.traffic.clone()));
        host.answer(PORT)?;
        let pod = Pod { host: Arc::clone(&host), node: node.number, number: None };
        self.locked_pods().insert(name.to_owned(), pod);
        Ok(host)
    }

    /// Takes away a pod that somebody else has attached.
    ///
    /// # Errors
    ///
    /// There is none of that name, or it cannot be detached.
    pub fn detach_pod<E: From<LabError>>(
        &self,
        name: &str,
        detach: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let pod = self.locked_pods().remove(name).ok_or_else(|| unknown("pod", name))?;
        pod.host.fall_silent();
        detach(&pod.host.namespace().path())
    }

    /// Takes a pod away: its link, and with it its routes.
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub fn remove_pod(&self, name: &str) -> Result<(), LabError> {
        self.remove_pods(&[name])
    }

    /// Takes pods away. Faster than one by one: the kernel waits once for each node.
    ///
    /// # Errors
    ///
    /// There is none of one of those names.
    pub fn remove_pods<S: AsRef<str>>(&self, names: &[S]) -> Result<(), LabError> {
        let mut removed: BTreeMap<u8, Vec<Pod>> = BTreeMap::new();
        let mut known = self.locked_pods();
        for name in names {
            let pod = known.remove(name.as_ref()).ok_or_else(|| unknown("pod", name.as_ref()))?;
            pod.host.fall_silent();
            removed.entry(pod.node).or_default().push(pod);
        }
        for (number, pods) in removed {
            let node = self.find_number(number);
            let mut lines: Vec<String> = Vec::new();
            for pod in &pods {
                lines.extend(pod.number.map(|number| format!("link set {} group {GONE}", link(number))));
                if node.ovn.is_some() {
                    lines.push(format!("neigh del proxy {} dev mp0", pod.host.address(Family::V6)));
                }
            }
            lines.push(format!("link del group {GONE}"));
            node.gateway().namespace().ip(&lines)?;
        }
        Ok(())
    }

    /// The pod of that name.
    ///
    /// # Panics
    ///
    /// There is none.
    #[must_use]
    pub fn pod(&self, name: &str) -> Arc<Host> {
        Arc::clone(&self.locked_pods().get(name).expect("the lab has a pod of this name").host)
    }

    /// The name of the node that a pod is on.
    #[must_use]
    pub fn node_of(&self, pod: &str) -> Option<String> {
        let node = self.locked_pods().get(pod)?.node;
        Some(format!("n{node}"))
    }

    /// The subnets that the pods of a node have their addresses from.
    ///
    /// # Panics
    ///
    /// There is no such node.
    #[must_use]
    pub fn pod_subnets(&self, node: &str) -> Vec<String> {
        let number = self.find_node(node).expect("the lab has a node of this name").number;
        Family::BOTH.map(|family| address::pod_subnet(family, number)).to_vec()
    }

    fn find_number(&self, node: u8) -> &Node {
        // They were built in the order of their numbers.
        &self.nodes[usize::from(node) - 1]
    }

    /// A pod's node and addresses.
    pub(crate) fn place(&self, pod: &str) -> Result<(&Node, Vec<IpAddr>), LabError> {
        let pods = self.locked_pods();
        let pod = pods.get(pod).ok_or_else(|| unknown("pod", pod))?;
        Ok((self.find_number(pod.node), pod.host.addresses().to_vec()))
    }
}

/// A number that no pod of the node has.
fn free(known: &BTreeMap<String, Pod>, node: &Node) -> Result<u8, LabError> {
    let taken: Vec<u8> = known.values().filter(|pod| pod.node == node.number).filter_map(|pod| pod.number).collect();
    let number = (FIRST..=LAST).find(|number| !taken.contains(number));
    number.ok_or_else(|| LabError::Full { node: node.host.name().to_owned() })
}

/// The node's, or OVN's, end of a pod's link.
fn link(number: u8) -> String {
    format!("v-{number}")
}

/// On the side of the node, or of OVN: point to point, without a bridge.
fn outside_lines(node: &Node, pod: &Host, number: u8) -> Vec<String> {
    let link = link(number);
    let gateway = address::pod(Family::V4, node.number, ROUTER);
    let [v4, v6] = Family::BOTH.map(|family| pod.address(family));
    let mut lines = vec![format!("link add {link} type veth peer name eth0 netns {}", pod.name())];
    lines.extend(link_up(&link, ROUTER));
    lines.extend([
        format!("addr add {gateway}/32 dev {link}"),
        format!("route add {v4}/32 dev {link} src {gateway}"),
        format!("route add {v6}/128 dev {link}"),
    ]);
    if node.ovn.is_some() {
        lines.push(format!("neigh add proxy {v6} dev mp0"));
    }
    lines
}

/// On the side of the pod.
fn inside_lines(node: u8, pod: &Host) -> Vec<String> {
    let gateway = address::pod(Family::V4, node, ROUTER);
    let mut lines = vec!["link set lo up".to_owned()];
    lines.extend(link_up("eth0", 2));
    lines.extend([
        add_address(pod.address(Family::V4), 32, "eth0"),
        add_address(pod.address(Family::V6), 128, "eth0"),
        format!("route add {gateway}/32 dev eth0"),
        format!("route add {} via {gateway}", default(Family::V4)),
        format!("route add {} via {GATEWAY6} dev eth0", default(Family::V6)),
    ]);
    lines
}
