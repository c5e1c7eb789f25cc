//! A kernel that holds what is ours, and says where a packet goes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use egret_hostmodel::{
    Element, Key, MAIN, Mark, Role, Rule, RuleAction, Settings, State, Step, Surroundings, Table, Value, Way,
};

/// A kernel.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) state: State,
    surroundings: Surroundings,
    settings: Settings,
    /// Rules of one priority are asked in the order in which they came.
    order: Vec<Rule>,
    /// Connections that sources opened: source, and the source address that they are bound to.
    connections: BTreeSet<(IpAddr, Seen)>,
}

/// With what source address a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    /// With this one.
    As(IpAddr),
    /// With whatever the cluster's own masquerading gives it on this link.
    Masqueraded,
}

/// What becomes of a packet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// It goes nowhere.
    Dropped,
    /// It leaves by this link.
    Leaves { link: String, seen: Seen },
}

impl Kernel {
    pub(crate) fn new(surroundings: &Surroundings, settings: Settings) -> Self {
        Self {
            state: State::default(),
            surroundings: surroundings.clone(),
            settings,
            order: Vec::new(),
            connections: BTreeSet::new(),
        }
    }

    /// Becomes a kernel in which `state` stands.
    pub(crate) fn put(&mut self, state: State) {
        self.order = state.rules.iter().cloned().collect();
        self.state = state;
    }

    pub(crate) fn apply(&mut self, step: &Step) {
        match step.clone() {
            Step::SetSysctl { path, value } => drop(self.state.sysctls.insert(path, value)),
            Step::RestoreSysctl { path } => assert!(self.state.sysctls.remove(&path).is_some(), "{step}"),
            Step::ReplaceTable { table } => self.state.table = Some(sane(table)),
            Step::DeleteTable => assert!(self.state.table.take().is_some(), "{step}"),
            Step::ChangeElements { remove, add } => {
                let table = self.state.table.as_mut().expect("elements of a table");
                for (set, keys) in &remove {
                    let present = table.elements.get_mut(set).expect("a set that holds what is removed");
                    for (key, element) in keys {
                        assert_eq!(present.remove(key).as_ref(), Some(element), "removed as it was found");
                    }
                }
                for (set, keys) in add {
                    let present = table.elements.entry(set).or_default();
                    for (key, element) in keys {
                        let before = present.insert(key.clone(), element);
                        assert_eq!(before, None, "{key} is added where it is not yet");
                    }
                }
                table.elements.retain(|_, keys| !keys.is_empty());
                *table = sane(table.clone());
            }
            Step::AddRule { rule } => {
                assert!(self.state.rules.insert(rule.clone()), "{step}");
                self.order.push(rule);
            }
            Step::DeleteRule { rule } => {
                assert!(self.state.rules.remove(&rule), "{step}");
                self.order.retain(|other| *other != rule);
            }
            Step::AddRoute { route } => {
                let key = |route: &egret_hostmodel::Route| (route.table, route.destination, route.metric);
                self.state.routes.retain(|other| key(other) != key(&route));
                self.state.routes.insert(route);
            }
            Step::DeleteRoute { route } => assert!(self.state.routes.remove(&route), "{step}"),
            Step::TakeAddress { address } => assert!(self.state.addresses.insert(address), "{step}"),
            Step::DropAddress { address } => assert!(self.state.addresses.remove(&address), "{step}"),
            Step::Announce { address } => assert!(self.state.addresses.contains(&address), "{step}"),
            Step::ForgetConnections { source } => self.connections.retain(|(other, _)| *other != source),
        }
    }

    /// The marks that the table puts on.
    fn settings(&self) -> Settings {
        let shape = self.state.table.as_ref().and_then(|table| table.shape.as_ref());
        shape.map_or(self.settings, |shape| shape.settings)
    }

    fn elements(&self, role: Role, ip: IpAddr) -> Option<&BTreeMap<Key, Element>> {
        self.state.table.as_ref()?.elements.get(&role.of(ip))
    }

    fn has(&self, role: Role, ip: IpAddr, key: &Key) -> bool {
        self.elements(role, ip).is_some_and(|keys| keys.contains_key(key))
    }

    fn mapped(&self, role: Role, ip: IpAddr, key: &Key) -> Option<&Value> {
        self.elements(role, ip)?.get(key)?.value.as_ref()
    }

    fn is_inside(&self, to: IpAddr) -> bool {
        let keys = self.elements(Role::Cluster, to).into_iter().flatten();
        keys.into_iter().any(|(key, _)| matches!(key, Key::Prefix(net) if net.contains(&to)))
    }

    /// By which link a packet leaves; `None` if there is no way.
    fn route(&self, from: IpAddr, to: IpAddr, port: Option<u16>, mark: u32) -> Option<String> {
        let matches = |rule: &Rule| {
            rule.v6 == from.is_ipv6()
                && rule.from.is_none_or(|net| net.contains(&from))
                && rule.to.is_none_or(|net| net.contains(&to))
                && rule.mark.is_none_or(|of: Mark| of.matches(mark))
                && rule.source_port.is_none_or(|wanted| port == Some(wanted))
                && rule.incoming.is_none()
        };
        let mut rules: Vec<&Rule> = self.order.iter().collect();
        rules.sort_by_key(|rule| rule.priority);
        let mut at = 0;
        while let Some(rule) = rules.get(at) {
            at += 1;
            match rule.action {
                _ if !matches(rule) => {}
                RuleAction::Unreachable => return None,
                RuleAction::Nop => {}
                // A jump to a rule that is not there is skipped.
                RuleAction::Goto(priority) => {
                    let target = rules.iter().position(|other| other.priority == priority && other.v6 == rule.v6);
                    at = target.unwrap_or(at);
                }
                RuleAction::Lookup(table) => {
                    if let Some(link) = self.by_table(table, to) {
                        return Some(link);
                    }
                }
            }
        }
        self.by_table(MAIN, to)
    }

    fn by_table(&self, table: u32, to: IpAddr) -> Option<String> {
        let routes = self.surroundings.routes.iter().chain(&self.state.routes);
        let fit = routes.filter(|route| route.table == table && route.destination.contains(&to));
        fit.max_by_key(|route| (route.destination.prefix_len(), std::cmp::Reverse(route.metric)))
            .map(|route| route.hops[0].link.clone())
    }

    /// What becomes of a packet that `source` sends; of a connection bound to `bound`, or of a new one.
    fn sent(&self, source: IpAddr, to: IpAddr, bound: Option<Seen>) -> Outcome {
        let inside = self.is_inside(to);
        let key = Key::Source(source);
        let mark = match () {
            () if inside => 0,
            () if self.has(Role::AddressSource, source, &key) => {
                self.settings().mark(egret_hostmodel::Business::Address).put_on(0)
            }
            () if self.has(Role::ServiceSource, source, &key) => {
                self.settings().mark(egret_hostmodel::Business::Service).put_on(0)
            }
            () => 0,
        };
        let Some(link) = self.route(source, to, None, mark) else { return Outcome::Dropped };
        if !inside && (self.has(Role::Hold, source, &key) || self.has(Role::Refuse, source, &key)) {
            return Outcome::Dropped;
        }
        let seen = bound.unwrap_or_else(|| {
            let service = self.mapped(Role::ServiceSnat, source, &key);
            let snat = service.or_else(|| self.mapped(Role::AddressSnat, source, &Key::Exit(source, link.clone())));
            match snat {
                Some(Value::Address(ip)) if !inside => Seen::As(*ip),
                _ => Seen::Masqueraded,
            }
        });
        let allowed = match seen {
            Seen::As(ip) => self.has(Role::Allow, source, &Key::Pair(source, ip)),
            Seen::Masqueraded => false,
        };
        if !inside && self.has(Role::Bound, source, &key) && !allowed {
            return Outcome::Dropped;
        }
        Outcome::Leaves { link, seen }
    }

    /// What becomes of the first packet of a new connection, which stays if it gets out.
    pub(crate) fn open(&mut self, source: IpAddr, to: IpAddr) -> Outcome {
        let outcome = self.sent(source, to, None);
        if let Outcome::Leaves { seen, .. } = outcome {
            self.connections.insert((source, seen));
        }
        outcome
    }

    /// What becomes of the next packets of all connections that `source` has.
    pub(crate) fn go_on(&self, source: IpAddr, to: IpAddr) -> BTreeSet<Outcome> {
        let own = self.connections.iter().filter(|(other, _)| *other == source);
        own.map(|(_, seen)| self.sent(source, to, Some(*seen))).collect()
    }

    /// What becomes of a packet to the outside that belongs to no connection: nobody gives it another source.
    pub(crate) fn stray(&self, source: IpAddr, to: IpAddr) -> Outcome {
        let owners = [Role::Bound, Role::ServiceSource, Role::Hold, Role::Refuse];
        if owners.into_iter().any(|role| self.has(role, source, &Key::Source(source))) {
            return Outcome::Dropped;
        }
        let link = self.route(source, to, None, 0);
        link.map_or(Outcome::Dropped, |link| Outcome::Leaves { link, seen: Seen::As(source) })
    }

    /// By which link the reply of a connection to `entry` leaves, which `source` sends.
    pub(crate) fn reply(&self, source: IpAddr, source_port: u16, entry: &Key, to: IpAddr) -> Option<String> {
        let Key::Entry(address, ..) = entry else { panic!("{entry} is no entry") };
        let business = match self.mapped(Role::Reply, *address, entry) {
            Some(Value::Way(Way::Path(number))) => Some(egret_hostmodel::Business::Reply(*number)),
            Some(Value::Way(Way::Source)) => Some(egret_hostmodel::Business::Service),
            Some(Value::Way(Way::Lost)) => Some(egret_hostmodel::Business::Lost),
            _ => None,
        };
        let mark = business.map_or(0, |business| self.settings().mark(business).put_on(0));
        self.route(source, to, Some(source_port), mark)
    }
}

/// What the kernel would refuse.
fn sane(table: Table) -> Table {
    let shape = table.shape.as_ref().expect("a table that we write");
    for element in table.elements.values().flat_map(BTreeMap::values) {
        if let Some(Value::Way(Way::Path(number))) = element.value {
            assert!(shape.paths.contains_key(&number), "path-{number} has a chain");
        }
    }
    table
}
