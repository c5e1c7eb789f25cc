//! The nodes of a [`Placer`](super::Placer): numbered, filed under their selectors and networks.

use egret_core::{Address, Capacity, Family, IpNet, Labels, NetworkKind, Node, NodeName, NodeNetwork, Options};
use egret_core::{SelectorId, SelectorIndex};
use prefix_trie::joint::map::JointPrefixMap;
use rustc_hash::FxHashMap;

use super::objects::ObjectId;
use crate::election::NodeTable;
use crate::hash;
use crate::rules::{Gate, gate};

/// A node's number. A name keeps its number for ever, so that what refers to a node outlives the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeId(pub(super) u32);

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// How many addresses a node holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) v4: u32,
    pub(super) v6: u32,
}

impl Counts {
    pub(super) fn total(self) -> u32 {
        self.v4 + self.v6
    }

    pub(super) fn family_mut(&mut self, family: Family) -> &mut u32 {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }
}

/// What the choice reads of every candidate of every address: kept apart from the rest, and small, for that loop is
/// where a full decision spends its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hot {
    pub(super) hash: u64,
    profile: u32,
    pub(super) gate: Gate,
    /// The addresses that valid assignments put here.
    pub(super) kept: Counts,
}

/// What is known of one name.
#[derive(Debug)]
pub(super) struct NodeSlot {
    pub(super) name: NodeName,
    pub(super) capacity: Capacity,
    /// The addresses that the cloud has put here and nobody we know owns.
    pub(super) foreign: Counts,
    /// The objects whose status names this node, each as often as it does.
    pub(super) recorded_by: Vec<ObjectId>,
    labels: Labels,
    primary: Vec<Address>,
    host: Vec<Address>,
    own: Vec<Address>,
}

/// Nodes in the same networks share a profile; number 0 is that of a node without networks.
#[derive(Debug, Default)]
struct Profiles {
    ids: FxHashMap<NodeNetwork, u32>,
    by_network: JointPrefixMap<IpNet, Vec<(u32, NetworkKind)>>,
    networks: Vec<NodeNetwork>,
}

/// All nodes that are there, or that something refers to.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    slots: Vec<NodeSlot>,
    hot: Vec<Hot>,
    ids: FxHashMap<NodeName, NodeId>,
    profiles: Profiles,
    by_host_address: FxHashMap<Address, Vec<NodeId>>,
    pub(super) index: SelectorIndex,
}

/// What a change of a node can have changed elsewhere.
#[derive(Debug, Default)]
pub(super) struct NodeChange {
    /// Selectors whose candidates may be others now.
    pub(super) selectors: Vec<SelectorId>,
    /// Addresses that may be, or no longer be, host addresses.
    pub(super) addresses: Vec<Address>,
}

impl Nodes {
    /// The number of `name`, given now if it has none.
    pub(super) fn id(&mut self, name: &NodeName) -> NodeId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = NodeId(u32::try_from(self.slots.len()).expect("fewer than 2^32 nodes"));
        self.ids.insert(name.clone(), id);
        let hash = hash::stable(name.as_str().as_bytes());
        self.hot.push(Hot { hash, profile: 0, gate: Gate::Closed, kept: Counts::default() });
        self.slots.push(NodeSlot {
            name: name.clone(),
            capacity: Capacity::default(),
            foreign: Counts::default(),
            recorded_by: Vec::new(),
            labels: Labels::default(),
            primary: Vec::new(),
            host: Vec::new(),
            own: Vec::new(),
        });
        id
    }

    pub(super) fn slot(&self, id: NodeId) -> &NodeSlot {
        &self.slots[id.index()]
    }

    pub(super) fn slot_mut(&mut self, id: NodeId) -> &mut NodeSlot {
        &mut self.slots[id.index()]
    }

    pub(super) fn hot(&self, id: NodeId) -> &Hot {
        &self.hot[id.index()]
    }

    /// The count of what a node keeps of one family.
    pub(super) fn kept_mut(&mut self, id: NodeId, family: Family) -> &mut u32 {
        self.hot[id.index()].kept.family_mut(family)
    }

    /// What each node keeps, by number.
    pub(super) fn kept(&self) -> Vec<Counts> {
        self.hot.iter().map(|hot| hot.kept).collect()
    }

    /// Takes over what `node` says now; `None` when the node is gone.
    pub(super) fn set(&mut self, id: NodeId, node: Option<&Node>, options: &Options) -> NodeChange {
        let mut selectors = self.index.selectors(id.0).to_vec();
        match node {
            Some(node) if node.labels != self.slot(id).labels || selectors.is_empty() => {
                self.index.set_node(id.0, &node.labels);
                selectors.extend_from_slice(self.index.selectors(id.0));
            }
            Some(_) => {}
            None => self.index.remove_node(id.0),
        }
        let profile = node.and_then(|node| node.network.as_ref().ok()).map_or(0, |network| self.profiles.id(network));
        let hot = &mut self.hot[id.index()];
        hot.gate = node.map_or(Gate::Closed, |node| gate(node, options));
        hot.profile = profile;
        let slot = &mut self.slots[id.index()];
        slot.capacity = node.map_or_else(Capacity::default, |node| node.capacity);
        slot.labels = node.map(|node| node.labels.clone()).unwrap_or_default();
        let addresses = self.set_host_addresses(id, node);
        NodeChange { selectors, addresses }
    }

    fn set_host_addresses(&mut self, id: NodeId, node: Option<&Node>) -> Vec<Address> {
        let slot = &mut self.slots[id.index()];
        let list = |of: fn(&Node) -> &[Address]| node.map(|node| of(node).to_vec()).unwrap_or_default();
        let primary = list(|node| &node.primary_addresses);
        let host = list(|node| &node.host_addresses);
        let own = list(|node| &node.own_egress_addresses);
        if (&primary, &host, &own) == (&slot.primary, &slot.host, &slot.own) {
            return Vec::new();
        }
        let mut changed = Vec::new();
        for address in slot.primary.iter().chain(&slot.host) {
            changed.push(*address);
            if let Some(nodes) = self.by_host_address.get_mut(address) {
                nodes.retain(|other| *other != id);
                if nodes.is_empty() {
                    self.by_host_address.remove(address);
                }
            }
        }
        (slot.primary, slot.host, slot.own) = (primary, host, own);
        for address in slot.primary.iter().chain(&slot.host) {
            changed.push(*address);
            let nodes = self.by_host_address.entry(*address).or_default();
            if !nodes.contains(&id) {
                nodes.push(id);
            }
        }
        changed
    }

    /// The nodes that say `address` is theirs.
    pub(super) fn hosts_of(&self, address: Address) -> &[NodeId] {
        self.by_host_address.get(&address).map_or(&[], Vec::as_slice)
    }

    /// Whether `address` is the node's own address by its primary interface.
    pub(super) fn is_primary_address(&self, id: NodeId, address: Address) -> bool {
        self.slot(id).primary.contains(&address)
    }

    /// Whether the node lists `address` as an egress IP it has put on a link.
    pub(super) fn is_own_egress_address(&self, id: NodeId, address: Address) -> bool {
        self.slot(id).own.contains(&address)
    }

    /// Whether one of the node's networks hosts `address` (N6, first sentence).
    pub(super) fn hosts_network(&self, id: NodeId, address: Address) -> bool {
        let profile = self.hot(id).profile as usize;
        self.profiles.networks.get(profile).is_some_and(|network| network.hosting(address).is_some())
    }

    /// Fills `hosting` with the kind of network in which each profile hosts `address`.
    pub(super) fn hosting(&self, address: Address, hosting: &mut Hosting) {
        hosting.begin(self.profiles.networks.len());
        for (_, users) in self.profiles.by_network.cover(&IpNet::from(address.ip())) {
            for (profile, kind) in users {
                hosting.add(*profile as usize, *kind);
            }
        }
    }

    pub(super) fn profile(&self, id: NodeId) -> usize {
        self.hot(id).profile as usize
    }
}

impl Profiles {
    fn id(&mut self, network: &NodeNetwork) -> u32 {
        if let Some(id) = self.ids.get(network) {
            return *id;
        }
        if self.networks.is_empty() {
            self.networks.push(NodeNetwork::default());
            self.ids.insert(NodeNetwork::default(), 0);
        }
        let id = u32::try_from(self.networks.len()).expect("fewer than 2^32 networks");
        self.networks.push(network.clone());
        self.ids.insert(network.clone(), id);
        let kinds = [(network.primary(), NetworkKind::Primary), (network.secondary(), NetworkKind::Secondary)];
        for (nets, kind) in kinds {
            for net in nets {
                self.by_network.entry(*net).or_default().push((id, kind));
            }
        }
        id
    }
}

/// By profile, the kind of network that hosts the address at hand. Emptied by raising the round, not by clearing.
#[derive(Debug, Default)]
pub(super) struct Hosting {
    round: u32,
    marks: Vec<(u32, NetworkKind)>,
    /// Some profile hosts the address in a secondary network.
    pub(super) any_secondary: bool,
}

impl Hosting {
    fn begin(&mut self, profiles: usize) {
        self.round += 1;
        self.any_secondary = false;
        self.marks.resize(profiles.max(1), (0, NetworkKind::Primary));
    }

    /// Containment in the primary network wins, whatever more specific secondary network there is.
    fn add(&mut self, profile: usize, kind: NetworkKind) {
        let mark = &mut self.marks[profile];
        if *mark == (self.round, NetworkKind::Primary) {
            return;
        }
        *mark = (self.round, kind);
        self.any_secondary |= kind == NetworkKind::Secondary;
    }

    pub(super) fn of(&self, profile: usize) -> Option<NetworkKind> {
        let (round, kind) = self.marks[profile];
        (round == self.round).then_some(kind)
    }
}

impl NodeTable for Nodes {
    fn number(&self, name: &NodeName) -> Option<u32> {
        self.ids.get(name).map(|id| id.0)
    }

    fn name(&self, node: u32) -> &NodeName {
        &self.slot(NodeId(node)).name
    }

    fn hash(&self, node: u32) -> u64 {
        self.hot(NodeId(node)).hash
    }

    fn is_host_address(&self, address: Address) -> bool {
        !self.hosts_of(address).is_empty()
    }

    fn index(&self) -> &SelectorIndex {
        &self.index
    }
}
