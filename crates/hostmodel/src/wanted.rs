//! From what a node is told to what its kernel should hold.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use egret_core::{Family, Host, SourceIpBy};
use ipnet::IpNet;

use crate::claim::Claims;
use crate::link_choice;
use crate::network::{self, Network};
use crate::nft::{Element, Elements, Key, Role, Shape, Table, Value, Way};
use crate::route::{family, family_of, host};
use crate::{
    AddressExit, Business, Datapath, EgressAddress, Finding, Link, MAIN, NetworkFault, Owner, Policy, Report, Rule,
    RuleAction, ServiceExit, Settings, State, Surroundings,
};

/// What a node should hold, and what it says of its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What should be ours in the kernel.
    pub state: State,
    /// What to know, ordered by object.
    pub reports: Vec<Report>,
}

/// What `policy` makes of this node. `found` only says which numbers are in use, so that they are kept.
#[must_use]
pub fn wanted(policy: &Policy, surroundings: &Surroundings, found: &State) -> Wanted {
    let mut work = Work::new(policy, surroundings, found);
    let mut services: Vec<&ServiceExit> = policy.services.iter().collect();
    services.sort_by(|a, b| (a.created, &a.key).cmp(&(b.created, &b.key)));
    for service in services {
        work.service(service);
    }
    let mut addresses: Vec<&AddressExit> = policy.addresses.iter().collect();
    addresses.sort_by(|a, b| (a.created, &a.name, a.ip).cmp(&(b.created, &b.name, b.ip)));
    for address in addresses {
        work.address(address);
    }
    work.finish()
}

/// What this node does for a service.
enum Part<'a> {
    /// Nothing.
    None,
    /// Its sources are kept in.
    Refuse,
    /// It is a way out for these endpoints.
    Exit(Vec<&'a IpAddr>),
}

struct Work<'a> {
    policy: &'a Policy,
    surroundings: &'a Surroundings,
    networks: BTreeMap<&'a str, Result<Network, NetworkFault>>,
    paths: BTreeMap<u32, u8>,
    claims: Claims,
    shape: Shape,
    /// The chains of networks that are there, if they put on the marks of now.
    present: BTreeMap<u8, String>,
    elements: Elements,
    state: State,
    reports: Vec<Report>,
}

impl<'a> Work<'a> {
    fn new(policy: &'a Policy, surroundings: &'a Surroundings, found: &State) -> Self {
        let settings = &policy.settings;
        let names = policy.services.iter().filter_map(|service| service.network.as_deref());
        let networks: BTreeMap<_, _> =
            names.map(|name| (name, network::resolve(name, surroundings, settings))).collect();
        let tables = networks.values().flatten().map(|network| network.table).collect();
        let paths = network::number_paths(&tables, &present_paths(found, settings));
        Self {
            policy,
            surroundings,
            networks,
            paths,
            claims: Claims::default(),
            shape: Shape { settings: *settings, paths: BTreeMap::new() },
            present: present_chains(found, settings),
            elements: Elements::new(),
            state: State::default(),
            reports: Vec::new(),
        }
    }

    fn report(&mut self, about: &Owner, finding: Finding) {
        self.reports.push(Report { about: about.clone(), finding });
    }

    fn service(&mut self, service: &'a ServiceExit) {
        let owner = Owner::Service(service.key.clone());
        if self.policy.others.services {
            return self.report(&owner, Finding::LeftToOvn);
        }
        if service.load_balancer.is_empty() {
            return self.report(&owner, Finding::NoLoadBalancer);
        }
        match self.part(service) {
            Part::None => {}
            Part::Refuse => self.refuse(service, &owner),
            Part::Exit(endpoints) => self.exit(service, &owner, &endpoints),
        }
    }

    fn part(&self, service: &'a ServiceExit) -> Part<'a> {
        let here = |node: &Option<_>| node.as_ref() == Some(&self.policy.node);
        let local = || service.endpoints.iter().filter(|(_, node)| here(node)).map(|(ip, _)| ip).collect::<Vec<_>>();
        let hosted = match (service.source_ip_by, &service.host) {
            (SourceIpBy::Network, _) => {
                // Connections from outside enter anywhere with `Cluster`, and their replies come back here.
                let serves = !local().is_empty() || !service.local_policy;
                return if serves && service.network.is_some() { Part::Exit(local()) } else { Part::None };
            }
            (SourceIpBy::LoadBalancerIp, Host::Node(node)) => *node == self.policy.node,
            (SourceIpBy::LoadBalancerIp, Host::None | Host::All) => false,
        };
        match self.policy.datapath {
            _ if hosted => Part::Exit(service.endpoints.keys().collect()),
            Datapath::Ovn => Part::None,
            Datapath::Direct => Part::Refuse,
        }
    }

    /// Nothing leads to the node that has the service's address; out of here its sources would have another.
    fn refuse(&mut self, service: &ServiceExit, owner: &Owner) {
        let mut refused = 0;
        for (ip, node) in &service.endpoints {
            let has_address = service.load_balancer.iter().any(|address| family_of(*address) == family_of(*ip));
            if node.as_ref() == Some(&self.policy.node) && has_address && self.claims.claim(*ip, owner) {
                self.put(Role::Refuse, *ip, Key::Source(*ip), Element::of(&service.key.to_string()));
                refused += 1;
            }
        }
        let host = match &service.host {
            Host::Node(node) => Some(node),
            Host::None | Host::All => None,
        };
        if refused > 0 || host.is_none() {
            self.report(owner, Finding::elsewhere(host, refused));
        }
    }

    fn exit(&mut self, service: &'a ServiceExit, owner: &Owner, endpoints: &[&IpAddr]) {
        let network = service.network.as_deref().map(|name| (name, self.networks[name].clone()));
        let mut active = 0;
        for ip in endpoints {
            if self.claims.claim(**ip, owner) {
                self.endpoint(**ip, service, network.as_ref().map(|(_, network)| network));
                active += 1;
            }
        }
        if let Some((name, network)) = &network {
            self.entries(service, owner, name, network);
        }
        self.tell_exit(service, owner, network.as_ref(), endpoints);
        self.report(owner, Finding::Active { sources: active });
    }

    fn endpoint(&mut self, ip: IpAddr, service: &ServiceExit, network: Option<&Result<Network, NetworkFault>>) {
        let comment = service.key.to_string();
        let with = service.load_balancer.iter().find(|address| family_of(**address) == family_of(ip));
        if let Some(with) = with.filter(|_| service.source_ip_by == SourceIpBy::LoadBalancerIp) {
            self.bind(ip, *with, &comment);
            self.put(Role::ServiceSnat, ip, Key::Source(ip), Element::mapping(Value::Address(*with), &comment));
        }
        if let Some(network) = network {
            self.put(Role::ServiceSource, ip, Key::Source(ip), Element::of(&comment));
            self.lookup(ip, network, None);
        }
    }

    /// What connections from outside need for their replies.
    fn entries(&mut self, service: &ServiceExit, owner: &Owner, name: &str, network: &Result<Network, NetworkFault>) {
        let comment = service.key.to_string();
        let way = match (self.policy.datapath, network) {
            (Datapath::Ovn, _) => Some(Way::Source),
            (Datapath::Direct, Err(_)) => Some(Way::Lost),
            (Datapath::Direct, Ok(network)) => self.paths.get(&network.table).map(|number| Way::Path(*number)),
        };
        let families: BTreeSet<Family> = service.load_balancer.iter().map(|ip| family_of(*ip)).collect();
        for ip in service.cluster_ips.iter().filter(|ip| families.contains(&family_of(**ip))) {
            self.lookup(*ip, network, None);
        }
        if self.policy.datapath == Datapath::Ovn && service.local_policy {
            let sources = self.policy.local_policy_sources.iter().filter(|ip| families.contains(&family_of(**ip)));
            for (source, port) in sources.flat_map(|ip| service.ports.iter().map(move |port| (*ip, port.node_port))) {
                if port.is_some() {
                    self.lookup(source, network, port);
                }
            }
        }
        let Some(way) = way else { return self.report(owner, Finding::TooManyNetworks) };
        if let Way::Path(number) = way {
            self.shape.paths.insert(number, name.to_owned());
        }
        for ip in &service.load_balancer {
            for port in &service.ports {
                let key = Key::Entry(*ip, port.transport, port.port);
                self.put(Role::Reply, *ip, key, Element::mapping(Value::Way(way), &comment));
                self.path(family_of(*ip), way, network.as_ref().ok().map(|network| network.table));
            }
        }
    }

    fn tell_exit(
        &mut self,
        service: &ServiceExit,
        owner: &Owner,
        network: Option<&(&str, Result<Network, NetworkFault>)>,
        endpoints: &[&IpAddr],
    ) {
        let families: BTreeSet<Family> = endpoints.iter().map(|ip| family_of(**ip)).collect();
        match network {
            Some((_, Err(fault))) => self.report(owner, Finding::Network { fault: fault.clone() }),
            Some((name, Ok(network))) => {
                for family in families.difference(&network.families) {
                    self.report(owner, Finding::no_route(name, *family));
                }
            }
            None => {}
        }
        if service.source_ip_by == SourceIpBy::LoadBalancerIp {
            for family in families {
                if !service.load_balancer.iter().any(|ip| family_of(*ip) == family) {
                    self.report(owner, Finding::NoLoadBalancerAddress { family: family.to_string() });
                }
            }
        }
    }

    fn address(&mut self, exit: &AddressExit) {
        let owner = Owner::Address(exit.name.clone());
        if self.policy.others.addresses {
            return self.report(&owner, Finding::LeftToOvn);
        }
        let pods = exit.pods.iter().filter(|(pod, _)| family_of(**pod) == family_of(exit.ip));
        if exit.node != self.policy.node {
            let refused = self.keep_in(&owner, exit, pods.map(|(pod, _)| *pod));
            // Where OVN leads them there, what still comes out here is a moment between two states, and nothing to tell.
            if refused > 0 && self.policy.datapath == Datapath::Direct {
                self.report(&owner, Finding::elsewhere(Some(&exit.node), refused));
            }
            return;
        }
        let link = match self.link_for(exit.ip) {
            Ok(link) => link,
            Err(finding) => {
                self.keep_in(&owner, exit, pods.map(|(pod, _)| *pod));
                return self.report(&owner, finding);
            }
        };
        let settings = &self.policy.settings;
        let network = network::of_link(link, settings.address_tables, self.surroundings, settings);
        let pods: Vec<(IpAddr, String)> = pods.map(|(pod, name)| (*pod, name.clone())).collect();
        let mut active = 0;
        for (pod, name) in &pods {
            if self.claims.claim(*pod, &owner) {
                self.pod(*pod, exit, &link.name, &network, &format!("{} {name}", exit.name));
                active += 1;
            }
        }
        self.state.addresses.insert(EgressAddress { ip: exit.ip, link: link.name.clone() });
        if !network.families.contains(&family_of(exit.ip)) {
            self.report(&owner, Finding::no_route(&link.name, family_of(exit.ip)));
        }
        self.report(&owner, Finding::Active { sources: active });
        self.use_network(&network);
    }

    /// The link that an address of this node goes to, or why it cannot be had.
    fn link_for(&self, ip: IpAddr) -> Result<&'a Link, Finding> {
        if self.policy.unconfirmed.contains(&ip) {
            return Err(Finding::Unconfirmed { ip });
        }
        if self.policy.contested.contains(&ip) {
            return Err(Finding::Contested { ip });
        }
        let link = link_choice::link_for(ip, self.surroundings, self.policy.settings.address_protocol);
        link.ok_or(Finding::NoLink { ip })
    }

    /// Pods that must not leave with the node's address instead; how many.
    fn keep_in(&mut self, owner: &Owner, exit: &AddressExit, pods: impl Iterator<Item = IpAddr>) -> u32 {
        let mut refused = 0;
        for pod in pods {
            if self.claims.claim(pod, owner) {
                self.put(Role::Refuse, pod, Key::Source(pod), Element::of(exit.name.as_str()));
                refused += 1;
            }
        }
        refused
    }

    fn pod(&mut self, pod: IpAddr, exit: &AddressExit, link: &str, network: &Network, comment: &str) {
        self.bind(pod, exit.ip, comment);
        let key = Key::Exit(pod, link.to_owned());
        self.put(Role::AddressSnat, pod, key, Element::mapping(Value::Address(exit.ip), comment));
        self.put(Role::AddressSource, pod, Key::Source(pod), Element::of(comment));
        let priority = self.policy.settings.address_priority;
        let rule = Rule::new(family_of(pod), priority, RuleAction::Lookup(network.table)).from(host(pod));
        self.state.rules.insert(rule);
    }

    fn put(&mut self, role: Role, ip: IpAddr, key: Key, element: Element) {
        self.elements.entry(role.of(ip)).or_default().insert(key, element);
    }

    /// `source` may leave with the address `with` and no other.
    fn bind(&mut self, source: IpAddr, with: IpAddr, comment: &str) {
        self.put(Role::Bound, source, Key::Source(source), Element::of(comment));
        self.put(Role::Allow, source, Key::Pair(source, with), Element::of(comment));
    }

    /// `source` asks the network's table. Without a network it asks none, and finds no way.
    fn lookup(&mut self, source: IpAddr, network: &Result<Network, NetworkFault>, port: Option<u16>) {
        let Ok(network) = network else { return };
        let priority = self.policy.settings.service_priority;
        let rule = Rule::new(family_of(source), priority, RuleAction::Lookup(network.table)).from(host(source));
        self.state.rules.insert(port.map_or(rule.clone(), |port| rule.source_port(port)));
        self.use_network(&network.clone());
    }

    fn path(&mut self, family: Family, way: Way, table: Option<u32>) {
        let settings = self.policy.settings;
        let mark = match way {
            Way::Path(number) => settings.mark(Business::Reply(number)),
            Way::Lost => settings.mark(Business::Lost),
            Way::Source => return,
        };
        let priority = settings.service_priority;
        if let Some(table) = table {
            self.state.rules.insert(Rule::new(family, priority - 2, RuleAction::Lookup(table)).mark(mark));
        }
        self.state.rules.insert(Rule::new(family, priority - 1, RuleAction::Unreachable).mark(mark));
    }

    fn use_network(&mut self, network: &Network) {
        self.state.routes.extend(network.routes.iter().cloned());
        for link in &network.links {
            self.state.sysctls.extend(self.surroundings.needs_of(link));
        }
        // The VRF's own rule would look for pods in the VRF's table. Not only for what came in by the VRF device: the kernel
        // does not take that for the incoming link of a packet that a slave received (6.1, seen).
        for net in self.policy.inner.iter().filter(|_| network.vrf.is_some()) {
            let rule = Rule::new(family(net), self.policy.settings.vrf_priority, RuleAction::Lookup(MAIN));
            self.state.rules.insert(rule.to(*net));
        }
    }

    fn finish(mut self) -> Wanted {
        for (loser, winner, sources) in std::mem::take(&mut self.claims).standby() {
            self.report(&loser, Finding::Standby { winner, sources });
        }
        if !self.elements.is_empty() {
            self.frame();
            for net in never_touched().into_iter().chain(self.policy.cluster.iter().copied()) {
                let set = Role::Cluster.family(family(&net));
                self.elements.entry(set).or_default().insert(Key::Prefix(net), Element::default());
            }
            aggregate(&mut self.elements);
            // Chains that nobody asks stay: without them the table would have to be replaced, and again when they are back.
            for (number, name) in std::mem::take(&mut self.present) {
                self.shape.paths.entry(number).or_insert(name);
            }
            self.state.table = Some(Table { shape: Some(self.shape), elements: self.elements });
        }
        self.reports.sort();
        Wanted { state: self.state, reports: self.reports }
    }

    /// Around the blocks: who has no business there goes past, who finds no way there gets no further.
    fn frame(&mut self) {
        let settings = self.policy.settings;
        let priority = settings.service_priority;
        for family in [Family::V4, Family::V6] {
            let has = |role: Role| self.elements.contains_key(&role.family(family));
            // The rule of a ClusterIP alone, too: without the jump it would catch what is nobody's business.
            let asked =
                self.state.rules.iter().any(|rule| {
                    rule.v6 == (family == Family::V6) && (priority - 2..=priority).contains(&rule.priority)
                });
            let services = asked || has(Role::ServiceSource) || has(Role::Reply);
            let addresses = has(Role::AddressSource);
            let rule = |priority, action| Rule::new(family, priority, action);
            let mut rules = Vec::new();
            if services {
                let end = priority + 2;
                rules.push(rule(priority - 4, RuleAction::Goto(end)).mark(settings.foreign()));
                rules.push(rule(priority - 3, RuleAction::Goto(end)).mark(settings.mark(Business::Address)));
                rules.push(rule(priority + 1, RuleAction::Unreachable).mark(settings.mark(Business::Service)));
                rules.push(rule(end, RuleAction::Nop));
            }
            if addresses {
                let (priority, end) = (settings.address_priority, settings.address_priority + 2);
                rules.push(rule(priority - 1, RuleAction::Goto(end)).mark(settings.foreign()));
                rules.push(rule(priority + 1, RuleAction::Unreachable).mark(settings.mark(Business::Address)));
                rules.push(rule(end, RuleAction::Nop));
            }
            self.state.rules.extend(rules);
        }
    }
}

/// The numbers that ways of replies have in the kernel.
fn present_chains(found: &State, settings: &Settings) -> BTreeMap<u8, String> {
    let shape = found.table.as_ref().and_then(|table| table.shape.as_ref());
    shape.filter(|shape| shape.settings == *settings).map(|shape| shape.paths.clone()).unwrap_or_default()
}

fn present_paths(found: &State, settings: &Settings) -> BTreeMap<u32, u8> {
    let lookups = found.rules.iter().filter(|rule| rule.priority == settings.service_priority - 2);
    let numbered = lookups.filter_map(|rule| match (rule.action, rule.mark) {
        (RuleAction::Lookup(table), Some(mark)) => {
            let number = (mark.value >> settings.mark_shift & 0x7f) as u8;
            (1..=crate::PATHS).contains(&number).then_some((table, number))
        }
        _ => None,
    });
    numbered.collect()
}

/// What no policy of ours is about, wherever pods and services are.
fn never_touched() -> [IpNet; 6] {
    ["127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32", "fe80::/10", "ff00::/8"]
        .map(|net| net.parse().expect("written here as a prefix"))
}

/// An interval set refuses prefixes that overlap.
fn aggregate(elements: &mut Elements) {
    for v6 in [false, true] {
        let Some(prefixes) = elements.get_mut(&crate::Set { role: Role::Cluster, v6 }) else { continue };
        let nets: Vec<IpNet> = prefixes
            .keys()
            .filter_map(|key| if let Key::Prefix(net) = key { Some(net.trunc()) } else { None })
            .collect();
        *prefixes = IpNet::aggregate(&nets).into_iter().map(|net| (Key::Prefix(net), Element::default())).collect();
    }
}
