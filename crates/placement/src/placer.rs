//! Full and incremental deciding, by one and the same code.
//!
//! A [`Placer`] keeps, for what it has seen, everything that does not depend on the choice: who matches what, which
//! node is fit, how each address stands. [`Placer::update`] takes over what has changed and marks the objects whose
//! standing that can touch; [`Placer::decide`] judges those again and then chooses for *all* open addresses, starting
//! from what is kept. A full decision is an update with everything in it, so the two cannot differ in their rules; that
//! they do not differ in their marks either is a property test.

mod matching;
mod nodes;
mod objects;
mod standing;

use std::sync::Arc;

use egret_core::Snapshot;
use egret_core::{Address, CloudState, EgressIp, EgressIpName, NodeName, Options, Platform, SelectorId, ServiceKey};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use self::matching::Matching;
use self::nodes::{NodeId, Nodes};
use self::objects::{AddressSlot, ObjectId, ObjectSlot, Objects, Standing};
use crate::AddressReason;
use crate::decision::{Decision, Outcome};
use crate::election::Election;
use crate::rules::Gate;

/// Something of a [`Snapshot`] that was added, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Touched {
    /// The node of this name.
    Node(NodeName),
    /// The EgressIP of this name.
    EgressIp(EgressIpName),
    /// The EgressService, the Service or the endpoints of this name.
    Service(ServiceKey),
    /// The CloudPrivateIPConfig of this address, or what the cloud has refused of it.
    Cloud(Address),
    /// What is remembered of this address' departure from a node.
    Departed(Address),
}

/// Decides, and remembers what it can use for the next decision.
#[derive(Debug)]
pub struct Placer {
    options: Options,
    nodes: Nodes,
    objects: Objects,
    election: Election,
    /// By address, the node of a CloudPrivateIPConfig that nobody we know owns.
    foreign: FxHashMap<Address, NodeId>,
    refused: FxHashSet<(Address, NodeId)>,
    departed: FxHashSet<(Address, NodeId)>,
    /// By selector: the nodes that may take something new; absent when that must be found again.
    candidates: FxHashMap<SelectorId, Arc<[NodeId]>>,
    dirty: FxHashSet<ObjectId>,
    /// Objects with an address that needs a node.
    open: FxHashSet<ObjectId>,
    /// Addresses that more than one object asks for.
    contested: FxHashSet<Address>,
    /// Holders of a contested address that lost their node and found no other in this decision: they hold no more (A3).
    let_go: FxHashSet<(ObjectId, Address)>,
    /// Whose outcomes were written into the decision last time.
    told: Vec<EgressIpName>,
    decision: Decision,
}

/// Decides about the whole of `snapshot`. The same snapshot gives the same decision, on any machine.
#[must_use]
pub fn decide(snapshot: &Snapshot) -> Decision {
    let mut placer = Placer::new(snapshot);
    placer.decide();
    placer.decision
}

impl Placer {
    /// Takes over the whole of `snapshot`.
    #[must_use]
    pub fn new(snapshot: &Snapshot) -> Self {
        let mut placer = Self {
            options: snapshot.options.clone(),
            nodes: Nodes::default(),
            objects: Objects::default(),
            election: Election::new(&snapshot.options),
            foreign: FxHashMap::default(),
            refused: FxHashSet::default(),
            departed: FxHashSet::default(),
            candidates: FxHashMap::default(),
            dirty: FxHashSet::default(),
            open: FxHashSet::default(),
            contested: FxHashSet::default(),
            let_go: FxHashSet::default(),
            told: Vec::new(),
            decision: Decision::default(),
        };
        // Selectors first: a node is then filed once, under all keys that matter.
        for object in snapshot.egress_ips.keys() {
            placer.put_egress_ip(snapshot, object);
        }
        for key in snapshot.egress_services.keys() {
            placer.update_service(snapshot, key);
        }
        for name in snapshot.nodes.keys() {
            placer.update_node(snapshot, name);
        }
        for address in snapshot.cloud.keys().chain(snapshot.refused.iter().map(|(address, _)| address)) {
            placer.mark_cloud(snapshot, *address);
        }
        for (address, _) in &snapshot.departed {
            placer.update_departed(snapshot, *address);
        }
        placer
    }

    /// Takes over what has changed: `snapshot` is the new whole, `touched` names everything that differs from the last.
    /// The options must be those of the first snapshot.
    pub fn update(&mut self, snapshot: &Snapshot, touched: &[Touched]) {
        debug_assert_eq!(self.options, snapshot.options);
        for touched in touched {
            match touched {
                Touched::Node(name) => self.update_node(snapshot, name),
                Touched::EgressIp(name) => self.update_egress_ip(snapshot, name),
                Touched::Service(key) => self.update_service(snapshot, key),
                Touched::Cloud(address) => self.update_cloud(snapshot, *address),
                Touched::Departed(address) => self.update_departed(snapshot, *address),
            }
        }
    }

    /// The decision about everything seen so far.
    pub fn decide(&mut self) -> &Decision {
        self.let_go.clear();
        for address in std::mem::take(&mut self.contested) {
            let claimants = self.objects.claimants(address);
            if claimants.len() > 1 {
                self.dirty.extend(claimants);
                self.contested.insert(address);
            }
        }
        let mut changed: FxHashSet<ObjectId> = FxHashSet::default();
        loop {
            changed.extend(self.judge_dirty());
            self.choose();
            if !self.let_go_of_contested() {
                break;
            }
        }
        changed.extend(&self.open);
        self.told.clear();
        for id in changed {
            self.tell(id);
        }
        self.election.decide(&self.nodes, &mut self.decision.egress_services);
        &self.decision
    }

    /// Judges what is dirty again and returns it.
    fn judge_dirty(&mut self) -> Vec<ObjectId> {
        let dirty: Vec<ObjectId> = self.dirty.drain().filter(|id| self.objects.contains(*id)).collect();
        for id in &dirty {
            self.refresh(*id);
            let open = |slot: &AddressSlot| matches!(slot.standing, Standing::Open | Standing::Placed(_));
            if self.objects.slot(*id).addresses.iter().any(open) {
                self.open.insert(*id);
            } else {
                self.open.remove(id);
            }
        }
        dirty
    }

    /// A3: a holder that lost its node and found no other lets go, and the next claimant is served in the same decision.
    fn let_go_of_contested(&mut self) -> bool {
        let mut dirty = Vec::new();
        for address in &self.contested {
            for id in self.objects.claimants(*address) {
                let slot = self.objects.slot(*id);
                let open = |other: &&AddressSlot| other.address == *address && other.standing == Standing::Open;
                if slot.records(*address)
                    && slot.addresses.iter().any(|other| open(&other))
                    && self.let_go.insert((*id, *address))
                {
                    dirty.extend_from_slice(self.objects.claimants(*address));
                }
            }
        }
        self.dirty.extend(&dirty);
        !dirty.is_empty()
    }

    /// The last decision.
    #[must_use]
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// The EgressIPs that the last [`Placer::decide`] looked at: for every other that is there the outcome, and the
    /// reasons for it, are those of the decision before.
    #[must_use]
    pub fn told(&self) -> &[EgressIpName] {
        &self.told
    }

    /// How many (selector, label set) pairs were evaluated so far: what an update cost in matching.
    #[must_use]
    pub fn evaluations(&self) -> u64 {
        self.nodes.index.evaluations()
    }

    /// C1 to C3 for everything that is open.
    fn choose(&mut self) {
        let mut order: Vec<ObjectId> = self.open.iter().copied().collect();
        order.sort_unstable_by(|a, b| self.objects.slot(*a).order(self.objects.slot(*b)));
        let mut served: Vec<(ObjectId, usize)> = Vec::new();
        let mut groups = Vec::with_capacity(order.len());
        for id in order {
            let candidates = match self.objects.slot(id).selector {
                Some(selector) => self.candidates(selector),
                None => Arc::default(),
            };
            let slot = self.objects.slot(id);
            let mut kept = SmallVec::new();
            let first = served.len();
            for (i, address) in slot.addresses.iter().enumerate() {
                match address.standing {
                    Standing::Kept(node) => kept.push(node),
                    Standing::Open | Standing::Placed(_) => served.push((id, i)),
                    Standing::Conflict(_) | Standing::HeldBy(_) | Standing::HeldInCloud => {}
                }
            }
            // C1: within an object first what it held; somebody may be using that.
            served[first..].sort_by_key(|(_, i)| !slot.records(slot.addresses[*i].address));
            groups.push((candidates, kept, first..served.len()));
        }
        let mut matching = Matching::new(&self.nodes, &self.refused);
        for (candidates, kept, range) in groups {
            let address = |(id, i): &(ObjectId, usize)| {
                let slot = &self.objects.slot(*id).addresses[*i];
                (slot.address, slot.hash)
            };
            matching.add_object(candidates, kept, served[range].iter().map(address));
        }
        for ((id, i), node) in served.into_iter().zip(matching.run()) {
            self.set_standing(id, i, node.map_or(Standing::Open, Standing::Placed));
        }
    }

    /// The nodes that may take something new under `selector`: N1 to N5.
    fn candidates(&mut self, selector: SelectorId) -> Arc<[NodeId]> {
        if let Some(known) = self.candidates.get(&selector) {
            return known.clone();
        }
        let nodes = self.nodes.index.nodes(selector).map(NodeId);
        let found: Arc<[NodeId]> = nodes.filter(|node| self.nodes.hot(*node).gate == Gate::Open).collect();
        self.candidates.insert(selector, found.clone());
        found
    }

    /// Writes the outcome of one object into the decision.
    fn tell(&mut self, id: ObjectId) {
        let slot = self.objects.slot(id);
        let node = |node: NodeId| self.nodes.slot(node).name.clone();
        let outcomes = slot.addresses.iter().map(|address| {
            let outcome = match address.standing {
                Standing::Kept(id) => Outcome::Kept(node(id)),
                Standing::Placed(id) => Outcome::Placed(node(id)),
                Standing::Open => Outcome::Unplaced,
                Standing::Conflict(id) => Outcome::Refused(AddressReason::ConflictsWithHost(node(id))),
                Standing::HeldInCloud => Outcome::Refused(AddressReason::HeldInCloud),
                Standing::HeldBy(id) => {
                    Outcome::Refused(AddressReason::HeldByAnother(self.objects.slot(id).name.clone()))
                }
            };
            (address.address, outcome)
        });
        self.told.push(slot.name.clone());
        self.decision.egress_ips.insert(slot.name.clone(), outcomes.collect());
    }

    fn update_node(&mut self, snapshot: &Snapshot, name: &NodeName) {
        let id = self.nodes.id(name);
        let node = snapshot.nodes.get(name);
        let change = self.nodes.set(id, node, &self.options);
        for selector in change.selectors {
            self.candidates.remove(&selector);
        }
        self.dirty.extend(&self.nodes.slot(id).recorded_by);
        for address in change.addresses {
            self.dirty.extend(self.objects.claimants(address));
        }
        self.election.update_node(id.index(), node, &self.options);
    }

    fn update_service(&mut self, snapshot: &Snapshot, key: &ServiceKey) {
        if let Some(selector) = self.election.update_service(snapshot, key, &mut self.nodes.index) {
            self.candidates.remove(&selector);
        }
    }

    fn update_egress_ip(&mut self, snapshot: &Snapshot, name: &EgressIpName) {
        let before = self.objects.requested(name);
        self.put_egress_ip(snapshot, name);
        if self.options.platform != Platform::Cloud {
            return;
        }
        // Where an address is for the others depends on whether the object that the cloud has it for still asks for it.
        for address in before.into_iter().chain(self.objects.requested(name)) {
            if snapshot.cloud.contains_key(&address) {
                self.update_claimants(snapshot, address);
            }
        }
    }

    fn update_claimants(&mut self, snapshot: &Snapshot, address: Address) {
        for claimant in self.objects.claimants(address).to_vec() {
            let name = self.objects.slot(claimant).name.clone();
            self.put_egress_ip(snapshot, &name);
        }
    }

    fn put_egress_ip(&mut self, snapshot: &Snapshot, name: &EgressIpName) {
        let object = snapshot.egress_ips.get(name);
        // The new selector is acquired before the old is released: mostly they are the same.
        let selector = object.and_then(|object| object.selector.compiled());
        let selector = selector.map(|selector| self.nodes.index.acquire(selector));
        self.forget(name);
        let Some(object) = object else { return };
        let recorded = self.recorded(snapshot, object);
        let addresses: Vec<AddressSlot> = object.requested.iter().copied().map(AddressSlot::new).collect();
        let status = object.recorded.iter().map(|item| (item.address, self.nodes.id(&item.node)));
        let mut seen: Vec<(Address, NodeId)> = status.collect();
        seen.extend(recorded.iter().filter(|pair| !seen.contains(pair)).copied().collect::<Vec<_>>());
        let slot = ObjectSlot { name: name.clone(), created: object.created, selector, addresses, recorded, seen };
        let touched = touched_addresses(&slot);
        let seen: Vec<NodeId> = slot.seen.iter().map(|(_, node)| *node).collect();
        let id = self.objects.insert(slot);
        for node in seen {
            self.nodes.slot_mut(node).recorded_by.push(id);
        }
        self.dirty.insert(id);
        self.touch(touched);
    }

    /// Takes an object out, with what its addresses counted for.
    fn forget(&mut self, name: &EgressIpName) {
        let Some((id, slot)) = self.objects.remove(name) else { return };
        for address in &slot.addresses {
            if let Standing::Kept(node) = address.standing {
                *self.nodes.kept_mut(node, address.address.family()) -= 1;
            }
        }
        for (_, node) in &slot.seen {
            self.nodes.slot_mut(*node).recorded_by.retain(|other| *other != id);
        }
        if let Some(selector) = slot.selector
            && self.nodes.index.release(selector)
        {
            self.candidates.remove(&selector);
        }
        self.dirty.remove(&id);
        self.open.remove(&id);
        self.decision.egress_ips.remove(name);
        self.touch(touched_addresses(&slot));
    }

    /// Everybody who asks for one of `addresses` is judged again.
    fn touch(&mut self, addresses: Vec<Address>) {
        for address in addresses {
            let claimants = self.objects.claimants(address);
            self.dirty.extend(claimants);
            if claimants.len() > 1 {
                self.contested.insert(address);
            }
        }
    }

    /// Where the addresses of `object` are now: what the cloud has confirmed or was asked for, else the status.
    fn recorded(&mut self, snapshot: &Snapshot, object: &EgressIp) -> Vec<(Address, NodeId)> {
        let recorded = snapshot.present(object);
        recorded.into_iter().map(|item| (item.address, self.nodes.id(&item.node))).collect()
    }

    fn update_cloud(&mut self, snapshot: &Snapshot, address: Address) {
        self.mark_cloud(snapshot, address);
        self.update_claimants(snapshot, address);
    }

    /// What the cloud says of `address` that is not some object's recorded assignment.
    fn mark_cloud(&mut self, snapshot: &Snapshot, address: Address) {
        if self.options.platform != Platform::Cloud {
            return;
        }
        if let Some(node) = self.foreign.remove(&address) {
            *self.nodes.slot_mut(node).foreign.family_mut(address.family()) -= 1;
        }
        self.refused.retain(|(refused, _)| *refused != address);
        if let Some(config) = snapshot.cloud.get(&address) {
            let node = self.nodes.id(&config.node);
            if config.owner.is_none() {
                self.foreign.insert(address, node);
                *self.nodes.slot_mut(node).foreign.family_mut(address.family()) += 1;
            } else if config.state == CloudState::Refused {
                self.refused.insert((address, node));
            }
        }
        // The set is small: what is cooling down.
        for (_, node) in snapshot.refused.iter().filter(|(refused, _)| *refused == address) {
            let node = self.nodes.id(node);
            self.refused.insert((address, node));
        }
    }

    fn update_departed(&mut self, snapshot: &Snapshot, address: Address) {
        self.departed.retain(|(departed, _)| *departed != address);
        // The set is small: what has left a node that has not reported since.
        for (departed, node) in &snapshot.departed {
            if *departed == address {
                let node = self.nodes.id(node);
                self.departed.insert((address, node));
            }
        }
        self.touch(vec![address]);
    }
}

fn touched_addresses(slot: &ObjectSlot) -> Vec<Address> {
    let mut touched: Vec<Address> = slot.addresses.iter().map(|address| address.address).collect();
    touched.extend(slot.seen.iter().map(|(address, _)| *address));
    touched.sort_unstable();
    touched.dedup();
    touched
}
