//! The choice (rules C1 to C3): as many open addresses as possible get a node, oldest object first.
//!
//! The open addresses, the (object, node) pairs and the nodes with their limits form a flow network. An address that
//! finds no free node looks for an augmenting path: it takes the place of an address *placed in the same decision*,
//! which takes another's, until one moves to a free node. What has been placed once stays placed, so a younger object
//! never costs an older one an address. A search that fails leaves behind a set that nothing can leave; it is marked
//! dead, which keeps the whole run linear in the pairs looked at.
//!
//! Nothing here depends on numbers given to nodes and objects, only on ages, names, addresses and loads.

use std::collections::VecDeque;
use std::sync::Arc;

use egret_core::{Address, Family, NetworkKind};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::nodes::{Counts, Hosting, NodeId, Nodes};
use crate::hash;

/// An address that needs a node.
struct Open {
    address: Address,
    hash: u64,
    group: usize,
    node: Option<NodeId>,
}

/// The open addresses of one object: neighbours in the list.
struct Group {
    /// The nodes that may take something new for the object (N1 to N5).
    candidates: Arc<[NodeId]>,
    /// The nodes that hold an address of the object which does not move, and that address.
    kept: SmallVec<[NodeId; 2]>,
    first: usize,
    end: usize,
}

/// A limit of a node (N7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Limit {
    Family(Family),
    Total,
}

/// Why an address cannot simply go to a node.
enum Block {
    /// Something that does not move is in the way.
    Firm,
    /// This address of the same object is in the way.
    Sibling(usize),
    /// The node is full.
    Full(Limit),
}

/// One run of the choice.
pub(super) struct Matching<'a> {
    nodes: &'a Nodes,
    refused: &'a FxHashSet<(Address, NodeId)>,
    counts: Vec<Counts>,
    open: Vec<Open>,
    groups: Vec<Group>,
    placed_at: FxHashMap<NodeId, Vec<usize>>,
    hosting: Hosting,
    /// Addresses from which no free node can be reached any more.
    dead: FxHashSet<usize>,
    /// Limits behind which no free node can be reached any more.
    dead_limits: FxHashSet<(NodeId, Limit)>,
}

impl<'a> Matching<'a> {
    pub(super) fn new(nodes: &'a Nodes, refused: &'a FxHashSet<(Address, NodeId)>) -> Self {
        let counts = nodes.kept();
        Self {
            nodes,
            refused,
            counts,
            open: Vec::new(),
            groups: Vec::new(),
            placed_at: FxHashMap::default(),
            hosting: Hosting::default(),
            dead: FxHashSet::default(),
            dead_limits: FxHashSet::default(),
        }
    }

    /// Adds the open addresses of the next object; objects come in the order in which they are served.
    pub(super) fn add_object(
        &mut self,
        candidates: Arc<[NodeId]>,
        kept: SmallVec<[NodeId; 2]>,
        addresses: impl Iterator<Item = (Address, u64)>,
    ) {
        let (group, first) = (self.groups.len(), self.open.len());
        self.open.extend(addresses.map(|(address, hash)| Open { address, hash, group, node: None }));
        self.groups.push(Group { candidates, kept, first, end: self.open.len() });
    }

    /// Places what can be placed and returns each address' node, in the order they were added.
    pub(super) fn run(mut self) -> Vec<Option<NodeId>> {
        for i in 0..self.open.len() {
            self.serve(i);
        }
        // Where one object has both families and nodes limit each, a swap of siblings can free a slot behind a dead
        // mark. Then what is left tries again for as long as that places something more.
        while self.mixed_limits() {
            self.dead.clear();
            self.dead_limits.clear();
            let left: Vec<usize> = (0..self.open.len()).filter(|i| self.open[*i].node.is_none()).collect();
            let placed = left.into_iter().filter(|i| self.serve(*i)).count();
            if placed == 0 {
                break;
            }
        }
        self.open.into_iter().map(|open| open.node).collect()
    }

    fn serve(&mut self, i: usize) -> bool {
        if self.groups[self.open[i].group].candidates.is_empty() {
            return false;
        }
        if let Some(node) = self.best_free(i) {
            self.put(i, node);
            return true;
        }
        self.augment(i)
    }

    fn mixed_limits(&self) -> bool {
        let per_family = |node: &NodeId| {
            let capacity = self.nodes.slot(*node).capacity;
            capacity.v4.is_some() || capacity.v6.is_some()
        };
        self.groups.iter().any(|group| {
            let members = &self.open[group.first..group.end];
            let families = |family| members.iter().any(|open| open.address.family() == family);
            families(Family::V4)
                && families(Family::V6)
                && members.iter().any(|open| open.node.is_none())
                && group.candidates.iter().any(per_family)
        })
    }

    /// Marks the profiles that host address `i`.
    fn hosting(&mut self, i: usize) -> Hosting {
        let mut hosting = std::mem::take(&mut self.hosting);
        self.nodes.hosting(self.open[i].address, &mut hosting);
        hosting
    }

    /// The candidates that pass N6 for address `i`, its second sentence included.
    fn hosts<'s>(&'s self, i: usize, hosting: &'s Hosting) -> impl Iterator<Item = NodeId> + 's {
        let candidates = &self.groups[self.open[i].group].candidates;
        let kind = |node: NodeId| hosting.of(self.nodes.profile(node));
        let secondary = Some(NetworkKind::Secondary);
        let only_secondary = hosting.any_secondary && candidates.iter().any(|node| kind(*node) == secondary);
        candidates.iter().copied().filter(move |node| match kind(*node) {
            None => false,
            Some(NetworkKind::Primary) => !only_secondary,
            Some(NetworkKind::Secondary) => true,
        })
    }

    /// C2: the least loaded free node, then the stable hash; the name decides between equal hashes.
    fn best_free(&mut self, i: usize) -> Option<NodeId> {
        let hosting = self.hosting(i);
        let hash = self.open[i].hash;
        let mut best: Option<(u32, u64, NodeId)> = None;
        for node in self.hosts(i, &hosting) {
            let load = self.counts[node.index()].total();
            if best.is_some_and(|(least, ..)| load > least) {
                continue;
            }
            let key = (load, hash::pair(hash, self.nodes.hot(node).hash));
            let name = |node| &self.nodes.slot(node).name;
            let better = best.is_none_or(|(load, hash, other)| {
                key < (load, hash) || (key == (load, hash) && name(node) < name(other))
            });
            if better && self.block(i, node).is_none() {
                best = Some((key.0, key.1, node));
            }
        }
        self.hosting = hosting;
        best.map(|(.., node)| node)
    }

    /// What keeps address `i` from going to `node`, which passes N1 to N6.
    fn block(&self, i: usize, node: NodeId) -> Option<Block> {
        let open = &self.open[i];
        let group = &self.groups[open.group];
        if open.node == Some(node) || group.kept.contains(&node) || self.refused.contains(&(open.address, node)) {
            return Some(Block::Firm);
        }
        let mut siblings = group.first..group.end;
        if let Some(sibling) = siblings.find(|j| *j != i && self.open[*j].node == Some(node)) {
            return Some(Block::Sibling(sibling));
        }
        self.full_for(node, open.address.family(), None).map(Block::Full)
    }

    /// N7: which limit one more address of `family` would break, once an address of family `less` has gone.
    fn full_for(&self, node: NodeId, family: Family, less: Option<Family>) -> Option<Limit> {
        let slot = self.nodes.slot(node);
        let mut counts = self.counts[node.index()];
        counts.v4 += slot.foreign.v4;
        counts.v6 += slot.foreign.v6;
        if let Some(less) = less {
            *counts.family_mut(less) -= 1;
        }
        *counts.family_mut(family) += 1;
        let over = |count: u32, limit: Option<u32>| limit.is_some_and(|limit| count > limit);
        if over(*counts.family_mut(family), slot.capacity.family(family)) {
            return Some(Limit::Family(family));
        }
        over(counts.total(), slot.capacity.total).then_some(Limit::Total)
    }

    fn put(&mut self, i: usize, node: NodeId) {
        let family = self.open[i].address.family();
        *self.counts[node.index()].family_mut(family) += 1;
        self.placed_at.entry(node).or_default().push(i);
        self.open[i].node = Some(node);
    }

    fn take(&mut self, i: usize) -> Option<NodeId> {
        let node = self.open[i].node.take()?;
        let family = self.open[i].address.family();
        *self.counts[node.index()].family_mut(family) -= 1;
        self.placed_at.entry(node).or_default().retain(|other| *other != i);
        Some(node)
    }

    /// C3: makes room for address `root` along a shortest augmenting path.
    fn augment(&mut self, root: usize) -> bool {
        let mut before: FxHashMap<usize, usize> = FxHashMap::default();
        let mut queue = VecDeque::from([root]);
        let mut limits: FxHashSet<(NodeId, Limit)> = FxHashSet::default();
        let mut reached = vec![root];
        while let Some(i) = queue.pop_front() {
            if i != root
                && let Some(node) = self.best_free(i)
            {
                return self.shift(root, i, node, &before);
            }
            for j in self.in_the_way(i, &mut limits) {
                if j != root && !before.contains_key(&j) && !self.dead.contains(&j) {
                    before.insert(j, i);
                    reached.push(j);
                    queue.push_back(j);
                }
            }
        }
        self.dead.extend(reached);
        self.dead_limits.extend(limits);
        false
    }

    /// The placed addresses of which each, if it left its node, would let address `i` have that node.
    fn in_the_way(&mut self, i: usize, limits: &mut FxHashSet<(NodeId, Limit)>) -> Vec<usize> {
        let hosting = self.hosting(i);
        let blocked = self.hosts(i, &hosting).filter_map(|node| Some((node, self.block(i, node)?)));
        let mut blocked: Vec<(NodeId, Block)> = blocked.collect();
        self.hosting = hosting;
        let hash = self.open[i].hash;
        blocked.sort_by_cached_key(|(node, _)| {
            let load = self.counts[node.index()].total();
            (load, hash::pair(hash, self.nodes.hot(*node).hash), self.nodes.slot(*node).name.clone())
        });
        let family = self.open[i].address.family();
        let mut found = Vec::new();
        for (node, block) in blocked {
            let fits = |j: &usize| self.full_for(node, family, Some(self.open[*j].address.family())).is_none();
            match block {
                Block::Firm => {}
                Block::Sibling(j) => found.extend(Some(j).filter(fits)),
                Block::Full(limit) => {
                    let known = self.dead_limits.contains(&(node, limit)) || !limits.insert((node, limit));
                    if !known {
                        found.extend(self.placed_at.get(&node).into_iter().flatten().copied().filter(fits));
                    }
                }
            }
        }
        found
    }

    /// Moves every address on the path from `root` to `last`, which goes to the free node `end`.
    fn shift(&mut self, root: usize, last: usize, end: NodeId, before: &FxHashMap<usize, usize>) -> bool {
        let mut moves: Vec<(usize, Option<NodeId>, NodeId)> = Vec::new();
        let (mut i, mut target) = (last, end);
        loop {
            let left = self.open[i].node;
            moves.push((i, left, target));
            match left {
                Some(node) if i != root => (i, target) = (before[&i], node),
                _ => break,
            }
        }
        for (i, ..) in &moves {
            self.take(*i);
        }
        for (i, _, node) in &moves {
            self.put(*i, *node);
        }
        // A path can only break a rule where an object of both families meets limits for each; then it is undone.
        if moves.iter().all(|(i, _, node)| self.is_legal(*i, *node)) {
            return true;
        }
        for (i, ..) in &moves {
            self.take(*i);
        }
        for (i, left, _) in moves {
            if let Some(node) = left {
                self.put(i, node);
            }
        }
        false
    }

    fn is_legal(&self, i: usize, node: NodeId) -> bool {
        let group = &self.groups[self.open[i].group];
        let alone = !(group.first..group.end).any(|j| j != i && self.open[j].node == Some(node));
        // The address is counted already, so one of its family less is what it was added to.
        let family = self.open[i].address.family();
        alone && self.full_for(node, family, Some(family)).is_none()
    }
}
