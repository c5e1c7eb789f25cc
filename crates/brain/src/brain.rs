//! The brain: what it knows, and one pass over it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use egret_api::cloud_private_ip_config::address_of;
use egret_api::{Kind, ObjectKey};
use egret_core::{
    Address, CloudPrivateIpConfig, EgressIpName, Endpoint, NodeName, Platform, Reachability, ServiceKey, Snapshot,
};
use egret_placement::{Decision, Placer, Touched, probe_targets};

use crate::cloud::CoolDowns;
use crate::egress_ip::Claims;
use crate::flight::Flights;
use crate::learn::Source;
use crate::mark::Marks;
use crate::reach::Reach;
use crate::selector::Selectors;
use crate::{Config, Input, Now, Output, WriteError, cloud, egress_ip, host, label};

/// Decides what the cluster manager does next.
///
/// Feed it with [`Brain::take`], then ask with [`Brain::pass`]; the same inputs give the same outputs.
#[derive(Debug)]
pub struct Brain {
    pub(crate) config: Config,
    /// What decisions are made from: what is stored, with what is under way already done.
    pub(crate) snapshot: Snapshot,
    pub(crate) placer: Option<Placer>,
    pub(crate) touched: Vec<Touched>,
    pub(crate) listed: BTreeSet<Kind>,
    pub(crate) leading: bool,

    pub(crate) nodes: BTreeMap<NodeName, label::Entry>,
    pub(crate) egress_ips: BTreeMap<EgressIpName, egress_ip::Entry>,
    pub(crate) services: BTreeMap<ServiceKey, host::Entry>,
    /// By namespace and name of the slice.
    pub(crate) slices: BTreeMap<(String, String), (ServiceKey, Vec<Endpoint>)>,
    pub(crate) slices_of: BTreeMap<ServiceKey, BTreeSet<String>>,
    pub(crate) cloud: BTreeMap<Address, cloud::Entry>,
    /// What the writes under way make of requests to the cloud.
    pub(crate) requests: BTreeMap<Address, CloudPrivateIpConfig>,
    /// The `uid` of requests that are gone by the word of an answer: a watch may tell late what they were.
    pub(crate) buried: BTreeSet<String>,
    pub(crate) faults: BTreeMap<ObjectKey, usize>,

    pub(crate) claims: Claims,
    pub(crate) selectors: Selectors,
    pub(crate) marks: Marks,
    pub(crate) reach: Reach,
    pub(crate) cool_downs: CoolDowns,
    pub(crate) flights: Flights,

    /// By address, who has it in the last decision and where.
    pub(crate) placed: BTreeMap<Address, (EgressIpName, NodeName)>,
    /// Pairs that ended while the node listed the address, with its `host-cidrs` of that moment (rule A2).
    pub(crate) departed: BTreeMap<(Address, NodeName), String>,
    /// Nodes that lost an EgressService because they are silent.
    pub(crate) drained: BTreeSet<NodeName>,
    pub(crate) targets: Arc<BTreeMap<NodeName, Vec<IpAddr>>>,
    pub(crate) targets_stale: bool,

    /// Objects whose status is to be looked at.
    pub(crate) dirty: BTreeSet<EgressIpName>,
    /// Requests to the cloud that are to be looked at.
    pub(crate) dirty_addresses: BTreeSet<Address>,
    pub(crate) services_dirty: bool,
    pub(crate) dirty_nodes: BTreeSet<NodeName>,
    /// The API server drops conditions, so they are not written.
    pub(crate) pruned: Option<Pruned>,
    pub(crate) counters: Counters,
    /// When the next pass is due: at once if anything has come in that could make a difference.
    next: Option<Duration>,
}

/// The API server drops what its old definition of a kind does not know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pruned {
    /// Until then it is not tried again.
    pub(crate) until: Duration,
    /// In this pass one object tries for all.
    pub(crate) trial: bool,
}

/// What only ever grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) rebalanced: u64,
    pub(crate) moves: BTreeMap<&'static str, u64>,
    pub(crate) marks_denied: u64,
}

impl Brain {
    /// A brain that knows nothing yet and does not lead.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            snapshot: Snapshot { options: config.options.clone(), ..Snapshot::default() },
            placer: None,
            touched: Vec::new(),
            listed: BTreeSet::new(),
            leading: false,
            nodes: BTreeMap::new(),
            egress_ips: BTreeMap::new(),
            services: BTreeMap::new(),
            slices: BTreeMap::new(),
            slices_of: BTreeMap::new(),
            cloud: BTreeMap::new(),
            requests: BTreeMap::new(),
            buried: BTreeSet::new(),
            faults: BTreeMap::new(),
            claims: Claims::default(),
            selectors: Selectors::default(),
            marks: Marks::default(),
            reach: Reach::new(config.mass_silence),
            cool_downs: CoolDowns::new(config.cool_down),
            flights: Flights::default(),
            placed: BTreeMap::new(),
            departed: BTreeMap::new(),
            drained: BTreeSet::new(),
            targets: Arc::default(),
            targets_stale: true,
            dirty: BTreeSet::new(),
            dirty_addresses: BTreeSet::new(),
            services_dirty: true,
            dirty_nodes: BTreeSet::new(),
            pruned: None,
            counters: Counters::default(),
            next: Some(Duration::ZERO),
            config,
        }
    }

    /// The kinds that must have been listed before anything is decided.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let wanted = |kind: &Kind| *kind != Kind::CloudPrivateIpConfig || self.on_cloud();
        Kind::ALL.into_iter().filter(wanted).collect()
    }

    /// Whether all of [`Brain::kinds`] have been listed.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.kinds().iter().all(|kind| self.listed.contains(kind))
    }

    /// Whether writes are under way.
    #[must_use]
    pub fn writing(&self) -> bool {
        self.flights.len() > 0
    }

    /// Takes in what has happened.
    pub fn take(&mut self, input: Input, now: Now) {
        let mut news = true;
        match input {
            Input::Listed { kind, objects } => self.listed(kind, objects, now.elapsed),
            Input::Seen { kind, object } => self.seen(kind, &object, Source::Watch, now.elapsed),
            Input::Gone { kind, object } => self.gone(kind, &object),
            Input::Probed { node, answer } => {
                let back = answer == crate::Answer::Alive && self.drained.remove(&node);
                self.targets_stale |= back;
                news = self.reach.probed(&node, answer, now.elapsed) || back;
            }
            Input::Written { id, result } => self.written(id, result, now.elapsed),
            Input::Leading(leading) => self.lead(leading, now.elapsed),
            Input::SilenceAccepted(number) => self.reach.accept(number),
        }
        if news {
            self.next = Some(Duration::ZERO);
        }
        if !self.leading {
            // Whoever comes to lead looks at everything; until then nothing piles up.
            self.forget_changes();
        }
    }

    fn forget_changes(&mut self) {
        self.touched.clear();
        self.dirty.clear();
        self.dirty_addresses.clear();
        self.dirty_nodes.clear();
    }

    /// Whether a pass could say anything that the last one has not said: most answers of probes are what was known.
    #[must_use]
    pub fn due(&self, now: Now) -> bool {
        self.next.is_some_and(|next| next <= now.elapsed)
    }

    /// Decides about everything that has come in, and says what is to be done. Nothing, before every kind has been
    /// listed or while another instance leads, and nothing new if it is not due.
    pub fn pass(&mut self, now: Now) -> Output {
        if !self.ready() || !self.leading {
            return Output::default();
        }
        if !self.due(now) {
            return Output { targets: self.targets.clone(), wake: self.next, ..Output::default() };
        }
        self.end_rests(now.elapsed);
        let retargeted = self.retarget();
        self.judge(now, retargeted);
        self.decide();
        let mut output = Output::default();
        self.write_egress_ips(now, &mut output);
        self.write_requests(now.elapsed, &mut output);
        self.write_services(now.elapsed, &mut output);
        self.tell_nodes(&mut output);
        output.targets = self.targets.clone();
        self.next = self.wake(now.elapsed);
        output.wake = self.next;
        output
    }

    pub(crate) fn on_cloud(&self) -> bool {
        self.snapshot.options.platform == Platform::Cloud
    }

    fn lead(&mut self, leading: bool, now: Duration) {
        if leading == self.leading {
            return;
        }
        self.leading = leading;
        if leading {
            self.end_flights();
        }
        self.departed.clear();
        self.drained.clear();
        self.placer = None;
        self.placed.clear();
        self.egress_ips.values_mut().for_each(|entry| entry.told = None);
        for name in self.egress_ips.keys().cloned().collect::<Vec<_>>() {
            self.sync_egress_ip(&name);
        }
        for key in self.services.keys().cloned().collect::<Vec<_>>() {
            self.sync_service(&key);
        }
        self.snapshot.departed.clear();
        let items = self.snapshot.egress_ips.values().flat_map(|object| &object.recorded).map(|item| &item.node);
        self.reach.restart(items, now);
        self.forget_changes();
        self.dirty.extend(self.egress_ips.keys().cloned());
        self.dirty_addresses.extend(self.cloud.keys());
        self.dirty_nodes.extend(self.nodes.keys().cloned());
        (self.services_dirty, self.targets_stale) = (true, true);
    }

    /// Whoever leads anew may not have been told yet of what went out before; the answers came in meanwhile, or never
    /// will. What nobody knows the outcome of stays in doubt, until its object is seen.
    fn end_flights(&mut self) {
        for key in self.flights.clear() {
            if let Some(address) = address_of(&key.name).filter(|_| key.kind == Kind::CloudPrivateIpConfig) {
                self.doubt_request(address);
            }
        }
        for entry in self.egress_ips.values_mut() {
            entry.doubt();
            entry.attempt = None;
        }
        for entry in self.services.values_mut() {
            entry.attempt = None;
        }
    }

    /// What rested after a refusal may be tried again.
    fn end_rests(&mut self, now: Duration) {
        if self.pruned.is_some_and(|pruned| pruned.until <= now) {
            self.pruned = Some(Pruned { until: now + self.config.retrial, trial: true });
            self.dirty.extend(self.egress_ips.keys().cloned());
        }
        let over = |entry: &egress_ip::Entry| entry.mark_denied.is_some_and(|(until, _)| until <= now);
        let marks = self.egress_ips.iter().filter(|(name, entry)| over(entry) && !self.marks.holds(name));
        self.dirty.extend(marks.map(|(name, _)| name.clone()));
        let resting: BTreeSet<_> = self.cool_downs.resting(now).map(|(pair, _)| pair.clone()).collect();
        let changed: Vec<Address> =
            resting.symmetric_difference(&self.snapshot.refused).map(|(address, _)| *address).collect();
        self.snapshot.refused = resting;
        for address in changed {
            self.touched.push(Touched::Cloud(address));
            self.dirty_addresses.insert(address);
        }
        self.cool_downs.forget_old(now);
    }

    /// Whom to probe from now on. Whether that was looked at.
    fn retarget(&mut self) -> bool {
        if !std::mem::take(&mut self.targets_stale) {
            return false;
        }
        let mut targets = BTreeMap::new();
        if self.config.probing {
            for name in probe_targets(&self.snapshot, &self.drained) {
                let addresses = self.snapshot.nodes[&name].management_addresses();
                targets.insert(name, addresses);
            }
            let nowhere: Vec<NodeName> =
                targets.iter().filter(|(_, to)| to.is_empty()).map(|(name, _)| name.clone()).collect();
            targets.retain(|_, to| !to.is_empty());
            self.reach.retarget(&targets, nowhere.iter());
        }
        if targets != *self.targets {
            self.targets = Arc::new(targets);
        }
        true
    }

    /// Puts what probes have told into the snapshot: of every node, or of those about which there is news.
    fn judge(&mut self, now: Now, every: bool) {
        let silence = self.reach.silence().map(|silence| silence.number);
        let news = self.reach.judge(now);
        if let Some(silence) = self.reach.silence().filter(|new| Some(new.number) != silence) {
            self.dirty_nodes.extend(silence.nodes.iter().cloned());
        }
        let names = if every { self.snapshot.nodes.keys().cloned().collect() } else { news };
        for name in names {
            let Some(node) = self.snapshot.nodes.get_mut(&name) else { continue };
            let reachability = if self.config.probing { self.reach.of(&name) } else { Reachability::Reachable };
            if node.reachability != reachability {
                node.reachability = reachability;
                self.touched.push(Touched::Node(name));
                self.services_dirty = true;
            }
        }
    }

    fn decide(&mut self) {
        if self.touched.is_empty() && self.placer.is_some() {
            return;
        }
        let touched = std::mem::take(&mut self.touched);
        match &mut self.placer {
            Some(placer) => placer.update(&self.snapshot, &touched),
            None => self.placer = Some(Placer::new(&self.snapshot)),
        }
        let Some(placer) = &mut self.placer else { return };
        placer.decide();
        let told = placer.told().to_vec();
        self.take_over(&told);
        self.dirty.extend(told);
    }

    /// The places of these objects are those of the decision now; what they left is remembered where the node lists it.
    fn take_over(&mut self, told: &[EgressIpName]) {
        let Some(placer) = &self.placer else { return };
        let mut left: BTreeSet<(Address, NodeName)> = BTreeSet::new();
        for name in told {
            if let Some(object) = self.snapshot.egress_ips.get(name) {
                left.extend(object.recorded.iter().map(|item| (item.address, item.node.clone())));
                for address in &object.requested {
                    if self.placed.get(address).is_some_and(|(owner, _)| owner == name)
                        && let Some((_, node)) = self.placed.remove(address)
                    {
                        left.insert((*address, node));
                    }
                }
            }
        }
        for name in told {
            for (address, outcome) in placer.decision().egress_ips.get(name).into_iter().flatten() {
                self.dirty_addresses.insert(*address);
                if let Some(node) = outcome.node() {
                    self.placed.insert(*address, (name.clone(), node.clone()));
                }
            }
        }
        for pair in left {
            self.dirty_addresses.insert(pair.0);
            self.depart(pair);
        }
    }

    /// A node that lists an address it just lost will list it until it reports its addresses again (rule A2).
    pub(crate) fn depart(&mut self, (address, node): (Address, NodeName)) {
        let stays = self.placed.get(&address).is_some_and(|(_, holder)| *holder == node);
        let lists = self.snapshot.nodes.get(&node).is_some_and(|node| node.host_addresses.contains(&address));
        if stays || !lists || self.departed.contains_key(&(address, node.clone())) {
            return;
        }
        let then = self.nodes.get(&node).map(|entry| entry.host_cidrs.clone()).unwrap_or_default();
        self.snapshot.departed.insert((address, node.clone()));
        self.departed.insert((address, node), then);
        self.touched.push(Touched::Departed(address));
    }

    /// When something is due though nothing comes in.
    fn wake(&self, now: Duration) -> Option<Duration> {
        let departed = self.touched.iter().any(|touched| matches!(touched, Touched::Departed(_)));
        let soon = departed.then_some(now);
        let pruned = self.pruned.map(|pruned| pruned.until).filter(|until| *until > now);
        let marks = self.egress_ips.values().filter_map(|entry| entry.mark_denied).map(|(until, _)| until);
        let marks = marks.filter(|until| *until > now).min();
        [soon, self.flights.wake(now), self.cool_downs.wake(now), self.reach.wake(), pruned, marks]
            .into_iter()
            .flatten()
            .min()
    }

    pub(crate) fn decision(&self) -> Option<&Decision> {
        self.placer.as_ref().map(Placer::decision)
    }

    fn written(&mut self, id: crate::WriteId, result: Result<Option<serde_json::Value>, WriteError>, now: Duration) {
        let Some(key) = self.flights.end(id) else { return };
        let went = self.flights.went(&key);
        match &result {
            Ok(_) => self.flights.succeeded(&key),
            Err(error) => self.flights.failed(&key, error, now),
        }
        match key.kind {
            Kind::EgressIp => self.egress_ip_written(&key.name.as_str().into(), &result, now),
            Kind::CloudPrivateIpConfig => self.request_written(&key, &result),
            Kind::EgressService => self.service_written(&key, &result),
            _ => {}
        }
        match result {
            // A watch has told already that this object is gone; nobody would tell it again.
            Ok(Some(object)) | Err(WriteError::Conflict { current: Some(object) })
                if went.is_some() && object["metadata"]["uid"].as_str() == went.as_deref() => {}
            Ok(Some(object)) | Err(WriteError::Conflict { current: Some(object) }) => {
                self.seen(key.kind, &object, Source::Answer, now);
            }
            Err(WriteError::Gone) => self.vanished(&key),
            Ok(None) | Err(_) => {}
        }
        self.look_again(&key);
    }
}
