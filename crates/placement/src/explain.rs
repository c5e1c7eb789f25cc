//! The reason for every (object, address, node), found when asked for.
//!
//! Reasons are not stored by the decision: for ten thousand addresses on five thousand nodes that would be fifty million.
//! They are found here by reading the rules in their order over the snapshot and the decision.

use std::collections::{BTreeMap, BTreeSet};

use egret_core::{Address, CloudState, EgressIp, EgressIpName, Family, NetworkKind, Node, NodeName, Platform};
use egret_core::{EgressService, Options, ServiceKey, Snapshot};

use crate::decision::Decision;
use crate::rules::{n1, n2, n2_drained, n3, n4, n5, takes_services, unfit_for_services};
use crate::{NoHostReason, NodeReason, ServiceOutcome};

/// What a node is to one address of one object, or to one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds the address, or hosts the service.
    Holds,
    /// It could. `load` is what it holds now: addresses, or services.
    Eligible {
        /// Addresses (or services) that the node holds by this decision.
        load: u32,
    },
    /// It cannot: the first rule that fails.
    Excluded(NodeReason),
}

/// Reads reasons out of one snapshot and the decision about it.
#[derive(Debug)]
pub struct Explainer<'a> {
    snapshot: &'a Snapshot,
    decision: &'a Decision,
    /// Addresses by family that each node holds; foreign ones of the cloud included.
    used: BTreeMap<&'a NodeName, [u32; 2]>,
    loads: BTreeMap<&'a NodeName, u32>,
    services: BTreeMap<&'a NodeName, u32>,
}

fn slot(family: Family) -> usize {
    usize::from(family == Family::V6)
}

impl<'a> Explainer<'a> {
    /// An explainer of `decision`, which was made from `snapshot`.
    #[must_use]
    pub fn new(snapshot: &'a Snapshot, decision: &'a Decision) -> Self {
        let mut used: BTreeMap<&NodeName, [u32; 2]> = BTreeMap::new();
        let held = decision.egress_ips.values().flatten();
        let held = held.filter_map(|(address, outcome)| Some((outcome.node()?, *address)));
        let foreign = snapshot.cloud.values().filter(|config| config.owner.is_none());
        let foreign = foreign.map(|config| (&config.node, config.address));
        for (node, address) in held.chain(foreign.filter(|_| snapshot.options.platform == Platform::Cloud)) {
            used.entry(node).or_default()[slot(address.family())] += 1;
        }
        let mut services = BTreeMap::new();
        for outcome in decision.egress_services.values() {
            if let ServiceOutcome::Kept(node) | ServiceOutcome::Elected(node) = outcome {
                *services.entry(node).or_default() += 1;
            }
        }
        Self { snapshot, decision, used, loads: decision.loads(), services }
    }

    /// How many addresses `node` holds by the decision.
    #[must_use]
    pub fn load(&self, node: &NodeName) -> u32 {
        self.loads.get(node).copied().unwrap_or_default()
    }

    /// How many services `node` hosts by the decision.
    #[must_use]
    pub fn services(&self, node: &NodeName) -> u32 {
        self.services.get(node).copied().unwrap_or_default()
    }

    /// How many more egress IPs the cloud lets `node` take: of IPv4, of IPv6; `None` is no limit.
    #[must_use]
    pub fn free(&self, node: &Node) -> [Option<u32>; 2] {
        let used = self.used.get(&node.name).copied().unwrap_or_default();
        let total = node.capacity.total.map(|limit| limit.saturating_sub(used[0] + used[1]));
        [Family::V4, Family::V6].map(|family| {
            let own = node.capacity.family(family).map(|limit| limit.saturating_sub(used[slot(family)]));
            [own, total].into_iter().flatten().min()
        })
    }

    /// What every node is to `address` of `object`, in name order.
    #[must_use]
    pub fn address(&self, object: &EgressIp, address: Address) -> Vec<(&'a NodeName, Verdict)> {
        let only_secondary = self.only_secondary(object, address);
        let verdict = |node: &'a Node| (&node.name, self.verdict(object, address, node, || only_secondary));
        self.snapshot.nodes.values().map(verdict).collect()
    }

    /// What one node is to `address` of `object`.
    #[must_use]
    pub fn node(&self, object: &EgressIp, address: Address, node: &Node) -> Verdict {
        self.verdict(object, address, node, || self.only_secondary(object, address))
    }

    fn verdict(
        &self,
        object: &EgressIp,
        address: Address,
        node: &Node,
        only_secondary: impl FnOnce() -> bool,
    ) -> Verdict {
        let holder = self.decision.outcome(&object.name, address).and_then(|outcome| outcome.node());
        if holder == Some(&node.name) {
            return Verdict::Holds;
        }
        match self.exclusion(object, address, node, only_secondary) {
            Err(reason) => Verdict::Excluded(reason),
            Ok(()) => Verdict::Eligible { load: self.load(&node.name) },
        }
    }

    /// N6, second sentence: some candidate hosts `address` on a secondary network.
    fn only_secondary(&self, object: &EgressIp, address: Address) -> bool {
        self.snapshot
            .nodes
            .values()
            .any(|node| hosting(node, address) == Some(NetworkKind::Secondary) && self.new_here(object, node).is_ok())
    }

    /// Why `node` takes no new address, whatever the object and the address: N1, N3 to N5, or that it is drained.
    #[must_use]
    pub fn fitness(&self, node: &Node) -> Option<NodeReason> {
        let options = &self.snapshot.options;
        let fit = n1(node, options).and(n2_drained(node)).and(n3(node)).and(n4(node, options)).and(n5(node));
        fit.err()
    }

    /// N1 to N5 for something new.
    fn new_here(&self, object: &EgressIp, node: &Node) -> Result<(), NodeReason> {
        let options = &self.snapshot.options;
        n1(node, options).and_then(|()| n2(node, &object.selector)).and_then(|()| n3(node))?;
        n4(node, options).and_then(|()| n5(node))
    }

    fn exclusion(
        &self,
        object: &EgressIp,
        address: Address,
        node: &Node,
        only_secondary: impl FnOnce() -> bool,
    ) -> Result<(), NodeReason> {
        self.new_here(object, node)?;
        match hosting(node, address) {
            None => return Err(NodeReason::NoNetwork),
            Some(NetworkKind::Primary) if only_secondary() => return Err(NodeReason::SecondaryPreferred),
            Some(_) => {}
        }
        self.n7(node, address.family())?;
        self.n8(object, node)?;
        self.n9(node, address)
    }

    fn n7(&self, node: &Node, family: Family) -> Result<(), NodeReason> {
        let used = self.used.get(&node.name).copied().unwrap_or_default();
        let full = |limit: Option<u32>, used: u32| limit.filter(|limit| used >= *limit);
        if let Some(limit) = full(node.capacity.family(family), used[slot(family)]) {
            return Err(NodeReason::CapacityFull { limit, family: Some(family) });
        }
        match full(node.capacity.total, used[0] + used[1]) {
            Some(limit) => Err(NodeReason::CapacityFull { limit, family: None }),
            None => Ok(()),
        }
    }

    fn n8(&self, object: &EgressIp, node: &Node) -> Result<(), NodeReason> {
        let outcomes = self.decision.egress_ips.get(&object.name).map_or(&[][..], Vec::as_slice);
        match outcomes.iter().find(|(_, outcome)| outcome.node() == Some(&node.name)) {
            Some((address, _)) => Err(NodeReason::CoLocated(*address)),
            None => Ok(()),
        }
    }

    fn n9(&self, node: &Node, address: Address) -> Result<(), NodeReason> {
        let config = self.snapshot.cloud.get(&address).filter(|_| self.snapshot.options.platform == Platform::Cloud);
        let refused = config.is_some_and(|config| {
            config.state == CloudState::Refused && config.owner.is_some() && config.node == node.name
        });
        let refused = refused || self.snapshot.refused.contains(&(address, node.name.clone()));
        if refused { Err(NodeReason::RefusedByCloud) } else { Ok(()) }
    }

    /// See [`lost`].
    pub(crate) fn lost(&self, object: &EgressIp, address: Address, node: &Node) -> Result<(), NodeReason> {
        lost(&self.snapshot.options, object, address, node)
    }

    /// What every node is to an EgressService, in name order.
    #[must_use]
    pub fn service(&self, service: &EgressService) -> Vec<(&'a NodeName, Verdict)> {
        let host = self.decision.egress_services.get(&service.key).map(ServiceOutcome::host);
        let serving = self.serving_nodes(&service.key);
        let verdict = |node: &'a Node| {
            let holds = host.as_ref().is_some_and(|host| host.as_str() == node.name.as_str());
            let verdict = match (holds, self.unfit(service, node, serving.as_ref())) {
                (true, _) => Verdict::Holds,
                (false, Err(reason)) => Verdict::Excluded(reason),
                (false, Ok(())) => takes_services(node)
                    .map_or_else(Verdict::Excluded, |()| Verdict::Eligible { load: self.services(&node.name) }),
            };
            (&node.name, verdict)
        };
        self.snapshot.nodes.values().map(verdict).collect()
    }

    /// S4 for one node.
    pub(crate) fn service_exclusion(&self, service: &EgressService, node: &Node) -> Result<(), NodeReason> {
        self.unfit(service, node, self.serving_nodes(&service.key).as_ref())
    }

    fn unfit(
        &self,
        service: &EgressService,
        node: &Node,
        serving: Option<&BTreeSet<&NodeName>>,
    ) -> Result<(), NodeReason> {
        n1(node, &self.snapshot.options)?;
        match n2(node, &service.selector) {
            // What is broken is told after what keeps even the present host from staying.
            Err(NodeReason::SelectorFaulty) => {}
            other => other?,
        }
        if let Some(reason) = unfit_for_services(node, &self.snapshot.options) {
            return Err(reason);
        }
        n2(node, &service.selector)?;
        match serving {
            Some(serving) if !serving.contains(&node.name) => Err(NodeReason::NoLocalEndpoint),
            _ => Ok(()),
        }
    }

    /// The nodes with a serving pod endpoint, where the traffic policy asks for one.
    fn serving_nodes(&self, key: &ServiceKey) -> Option<BTreeSet<&'a NodeName>> {
        self.snapshot.services.get(key).filter(|service| service.traffic_policy_local)?;
        let endpoints = self.snapshot.endpoints.get(key).into_iter().flatten();
        let serving = endpoints.filter(|endpoint| endpoint.serving && self.is_pod(endpoint.address));
        Some(serving.filter_map(|endpoint| endpoint.node.as_ref()).collect())
    }

    /// S3: inside the pod subnets, where any are known, and no node's own address.
    fn is_pod(&self, address: Address) -> bool {
        let mut subnets = self.snapshot.pod_networks().peekable();
        let own = |node: &Node| node.host_addresses.contains(&address) || node.primary_addresses.contains(&address);
        (subnets.peek().is_none() || subnets.any(|subnet| subnet.contains(&address.ip())))
            && !self.snapshot.nodes.values().any(own)
    }

    /// Why the service has no host, if it has none.
    #[must_use]
    pub fn no_host(&self, key: &ServiceKey) -> Option<&'a NoHostReason> {
        match self.decision.egress_services.get(key) {
            Some(ServiceOutcome::None(reason)) => Some(reason),
            _ => None,
        }
    }

    /// The reasons of the nodes that cannot take `address`, one of each name, with how many nodes have it: those first
    /// that stand last in the order of the rules, for such nodes come nearest.
    #[must_use]
    pub fn summary(&self, object: &EgressIp, address: Address) -> Vec<(NodeReason, usize)> {
        let mut counts: Vec<(NodeReason, usize)> = Vec::new();
        for (_, verdict) in self.address(object, address) {
            if let Verdict::Excluded(reason) = verdict {
                match counts.iter_mut().find(|(other, _)| other.name() == reason.name()) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((reason, 1)),
                }
            }
        }
        counts.sort_by(|a, b| b.0.rule().cmp(a.0.rule()).then(b.1.cmp(&a.1)));
        counts
    }

    /// The node on which the object of that name holds `address`.
    #[must_use]
    pub fn holder(&self, name: &EgressIpName, address: Address) -> Option<&'a NodeName> {
        self.decision.outcome(name, address)?.node()
    }
}

/// Why a recorded assignment of `address` to `node` is not valid any more.
///
/// Not yet probed (N5), a shrunken capacity (N7) and a selector that does not compile (N2) take nothing away.
///
/// # Errors
/// The first rule that fails; `Ok` if the node alone is no reason.
pub fn lost(options: &Options, object: &EgressIp, address: Address, node: &Node) -> Result<(), NodeReason> {
    n1(node, options)?;
    match n2(node, &object.selector) {
        Err(NodeReason::SelectorFaulty) => n2_drained(node)?,
        other => other?,
    }
    n3(node).and_then(|()| n4(node, options))?;
    match n5(node) {
        Err(NodeReason::NotProbed | NodeReason::InDoubt) | Ok(()) => {}
        Err(reason) => return Err(reason),
    }
    hosting(node, address).map(|_| ()).ok_or(NodeReason::NoNetwork)
}

fn hosting(node: &Node, address: Address) -> Option<NetworkKind> {
    node.network.as_ref().ok()?.hosting(address).map(|(kind, _)| kind)
}
