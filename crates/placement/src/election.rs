//! Which node hosts which EgressService (rules S1 to S6).
//!
//! A service needs no place beside the others, so there is nothing to match: each unhosted one takes the best node in
//! turn. Anything that can change a host elects again from the recorded hosts; that is one pass over the services.

use std::collections::BTreeMap;

use egret_core::{Address, Endpoint, GatewayMode, Host, IpNet, Node, NodeName, Options, SelectorId, SelectorIndex};
use egret_core::{Service, ServiceKey, Snapshot, SourceIpBy, Timestamp};
use prefix_trie::joint::map::JointPrefixMap;
use rustc_hash::FxHashMap;

use crate::decision::ServiceOutcome;
use crate::hash;
use crate::reason::NoHostReason;
use crate::rules::{takes_services, unfit_for_services};

/// What an election asks the table of nodes.
pub(crate) trait NodeTable {
    /// The number of the node of that name, if it was ever seen.
    fn number(&self, name: &NodeName) -> Option<u32>;
    /// The name of a node.
    fn name(&self, node: u32) -> &NodeName;
    /// The stable hash of the name.
    fn hash(&self, node: u32) -> u64;
    /// Whether `address` is a host address of some node.
    fn is_host_address(&self, address: Address) -> bool;
    /// Who matches what.
    fn index(&self) -> &SelectorIndex;
}

#[derive(Debug)]
struct Slot {
    created: Timestamp,
    source_ip_by: SourceIpBy,
    /// `None` when the selector does not compile.
    selector: Option<SelectorId>,
    recorded: Host,
    service: Option<Service>,
    endpoints: Vec<Endpoint>,
}

/// What counts of a node; of one that is not there, nothing does.
#[derive(Debug, Default)]
struct Fitness {
    fit: bool,
    /// It may be elected, and not only keep what it hosts.
    electable: bool,
    shared_gateway: bool,
    pod_subnets: Vec<IpNet>,
}

/// How a service stands before anything new is elected.
enum Standing {
    /// Its recorded host is valid.
    Kept(u32),
    /// Every node hosts it.
    All,
    /// Nothing can host it.
    None(NoHostReason),
    /// It needs one of these nodes.
    Open(Vec<u32>),
}

/// The EgressServices, and what their elections depend on.
#[derive(Debug, Default)]
pub(crate) struct Election {
    services: BTreeMap<ServiceKey, Slot>,
    nodes: Vec<Fitness>,
    /// Each pod subnet, and how many nodes (and the options) have it.
    pod_subnets: JointPrefixMap<IpNet, u32>,
    stale: bool,
}

impl Election {
    pub(crate) fn new(options: &Options) -> Self {
        let mut election = Self::default();
        for net in &options.cluster_subnets {
            *election.pod_subnets.entry(*net).or_default() += 1;
        }
        election
    }

    /// Takes over what has changed; returns a selector that is nobody's now, whose number may come to mean another.
    pub(crate) fn update_service(
        &mut self,
        snapshot: &Snapshot,
        key: &ServiceKey,
        index: &mut SelectorIndex,
    ) -> Option<SelectorId> {
        self.stale = true;
        let object = snapshot.egress_services.get(key);
        let selector = object.and_then(|object| object.selector.compiled()).map(|selector| index.acquire(selector));
        let new = object.map(|object| Slot {
            created: object.created,
            source_ip_by: object.source_ip_by,
            selector,
            recorded: object.recorded.clone(),
            service: snapshot.services.get(key).copied(),
            endpoints: snapshot.endpoints.get(key).cloned().unwrap_or_default(),
        });
        let old = match new {
            Some(slot) => self.services.insert(key.clone(), slot),
            None => self.services.remove(key),
        };
        old.and_then(|slot| slot.selector).filter(|selector| index.release(*selector))
    }

    pub(crate) fn update_node(&mut self, number: usize, node: Option<&Node>, options: &Options) {
        self.stale = true;
        if self.nodes.len() <= number {
            self.nodes.resize_with(number + 1, Fitness::default);
        }
        let new = node.map_or_else(Fitness::default, |node| Fitness {
            fit: unfit_for_services(node, options).is_none(),
            electable: takes_services(node).is_ok(),
            shared_gateway: node.gateway_mode == Some(GatewayMode::Shared),
            pod_subnets: node.pod_subnets.clone(),
        });
        for net in &new.pod_subnets {
            *self.pod_subnets.entry(*net).or_default() += 1;
        }
        let old = std::mem::replace(&mut self.nodes[number], new);
        for net in old.pod_subnets {
            if let Some(users) = self.pod_subnets.get_mut(&net) {
                *users -= 1;
                if *users == 0 {
                    self.pod_subnets.remove(&net);
                }
            }
        }
    }

    /// Writes who hosts what into `decided`, if anything can have changed.
    pub(crate) fn decide(&mut self, table: &impl NodeTable, decided: &mut BTreeMap<ServiceKey, ServiceOutcome>) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        decided.clear();
        let mut hosted: FxHashMap<u32, u32> = FxHashMap::default();
        let mut unhosted: Vec<(Timestamp, &ServiceKey, Vec<u32>)> = Vec::new();
        for (key, slot) in &self.services {
            let outcome = match self.standing(table, slot) {
                Standing::Kept(node) => {
                    *hosted.entry(node).or_default() += 1;
                    ServiceOutcome::Kept(table.name(node).clone())
                }
                Standing::All => ServiceOutcome::All,
                Standing::None(reason) => ServiceOutcome::None(reason),
                Standing::Open(nodes) => {
                    unhosted.push((slot.created, key, nodes));
                    continue;
                }
            };
            decided.insert(key.clone(), outcome);
        }
        unhosted.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        for (_, key, nodes) in unhosted {
            let service = hash::stable(key.to_string().as_bytes());
            let order = |node: &u32| {
                let load = hosted.get(node).copied().unwrap_or_default();
                (load, hash::pair(service, table.hash(*node)), table.name(*node))
            };
            let outcome = match nodes.iter().min_by_key(|node| order(node)) {
                Some(node) => {
                    let outcome = ServiceOutcome::Elected(table.name(*node).clone());
                    *hosted.entry(*node).or_default() += 1;
                    outcome
                }
                None => ServiceOutcome::None(NoHostReason::NoEligibleNode),
            };
            decided.insert(key.clone(), outcome);
        }
    }

    /// S1 to S5 of one service.
    fn standing(&self, table: &impl NodeTable, slot: &Slot) -> Standing {
        let Some(service) = slot.service else { return Standing::None(NoHostReason::ServiceMissing) };
        if slot.source_ip_by == SourceIpBy::Network {
            return self.shared_gateway(table).map_or(Standing::All, Standing::None);
        }
        if !service.has_ingress {
            return Standing::None(NoHostReason::NoIngress);
        }
        let pods: Vec<&Endpoint> = slot.endpoints.iter().filter(|endpoint| self.is_pod(table, endpoint)).collect();
        if pods.is_empty() {
            return Standing::None(NoHostReason::NoEndpoints);
        }
        let serves = |node: u32| {
            !service.traffic_policy_local
                || pods.iter().any(|pod| pod.serving && pod.node.as_ref() == Some(table.name(node)))
        };
        let fit = |node: &u32| self.nodes.get(*node as usize).is_some_and(|fitness| fitness.fit) && serves(*node);
        if let Host::Node(host) = &slot.recorded
            && let Some(node) = table.number(host).filter(fit)
            && slot.selector.is_none_or(|selector| table.index().matches(selector, node))
        {
            return Standing::Kept(node);
        }
        match slot.selector {
            Some(selector) => {
                let electable = |node: &u32| self.nodes[*node as usize].electable;
                Standing::Open(table.index().nodes(selector).filter(fit).filter(electable).collect())
            }
            None => Standing::None(NoHostReason::SelectorFaulty),
        }
    }

    /// S2: the first node, by name, that is in shared gateway mode.
    fn shared_gateway(&self, table: &impl NodeTable) -> Option<NoHostReason> {
        let shared = (0..).zip(&self.nodes).filter(|(_, fitness)| fitness.shared_gateway);
        shared.map(|(node, _)| table.name(node)).min().cloned().map(NoHostReason::SharedGateway)
    }

    /// S3: an endpoint inside the cluster's pod subnets; where none are known, one that is no node's own address.
    fn is_pod(&self, table: &impl NodeTable, endpoint: &Endpoint) -> bool {
        let net = IpNet::from(endpoint.address.ip());
        (self.pod_subnets.is_empty() || self.pod_subnets.get_lpm(&net).is_some())
            && !table.is_host_address(endpoint.address)
    }
}

#[cfg(test)]
mod tests {
    use egret_core::{EgressService, InfrastructureFault, InfrastructureFaultKind, NodeSelector};

    use super::*;
    use crate::decide;

    #[test]
    fn s3_pod_networks_of_the_options_count_beside_those_of_the_nodes() {
        let key = ServiceKey::new("ns", "web");
        let fault = InfrastructureFault { annotation: "none needed", kind: InfrastructureFaultKind::Missing };
        let mut node = Node::new("n1", Err(fault));
        node.pod_subnets = vec!["10.128.1.0/24".parse().expect("a network")];
        let address = Address::parse("10.128.9.5").expect("an address");
        let mut snapshot = Snapshot::default();
        snapshot.nodes.insert(node.name.clone(), node);
        snapshot.services.insert(key.clone(), Service { has_ingress: true, traffic_policy_local: false });
        snapshot.endpoints.insert(key.clone(), vec![Endpoint { address, node: None, serving: true }]);
        snapshot.egress_services.insert(
            key.clone(),
            EgressService {
                key: key.clone(),
                created: Timestamp(0),
                source_ip_by: SourceIpBy::LoadBalancerIp,
                selector: NodeSelector::everything(),
                network: None,
                recorded: Host::None,
            },
        );
        assert_eq!(decide(&snapshot).egress_services[&key], ServiceOutcome::None(NoHostReason::NoEndpoints));
        snapshot.options.cluster_subnets = vec!["10.128.0.0/14".parse().expect("a network")];
        assert_eq!(decide(&snapshot).egress_services[&key], ServiceOutcome::Elected("n1".into()));
    }
}
