//! How each address stands before anything new is placed: A2, A3, and whether its recorded assignment is valid.

use egret_core::Address;
use smallvec::SmallVec;

use super::Placer;
use super::nodes::NodeId;
use super::objects::{ObjectId, Standing};
use crate::rules::Gate;

impl Placer {
    /// Judges every address of `id` again, and moves the counts of the nodes along.
    pub(super) fn refresh(&mut self, id: ObjectId) {
        let mut taken: SmallVec<[NodeId; 4]> = SmallVec::new();
        for i in 0..self.objects.slot(id).addresses.len() {
            let address = self.objects.slot(id).addresses[i].address;
            let standing = self.judge(id, address, &taken);
            if let Standing::Kept(node) = standing {
                taken.push(node);
            }
            self.set_standing(id, i, standing);
        }
    }

    /// Replaces a standing; the only place that counts what nodes keep.
    pub(super) fn set_standing(&mut self, id: ObjectId, i: usize, standing: Standing) {
        let slot = &mut self.objects.slot_mut(id).addresses[i];
        let family = slot.address.family();
        if let Standing::Kept(node) = std::mem::replace(&mut slot.standing, standing) {
            *self.nodes.kept_mut(node, family) -= 1;
        }
        if let Standing::Kept(node) = standing {
            *self.nodes.kept_mut(node, family) += 1;
        }
    }

    fn judge(&self, id: ObjectId, address: Address, taken: &[NodeId]) -> Standing {
        if let Some(node) = self.conflict(address) {
            return Standing::Conflict(node);
        }
        if self.foreign.contains_key(&address) {
            return Standing::HeldInCloud;
        }
        if let Some(winner) = self.winner(address)
            && winner != id
        {
            return Standing::HeldBy(winner);
        }
        let valid = self.valid_nodes(id, address).filter(|node| !taken.contains(node));
        valid.min_by_key(|node| &self.nodes.slot(*node).name).map_or(Standing::Open, Standing::Kept)
    }

    /// A2: the node that has `address` as a host address and no excuse; the first by name.
    ///
    /// The excuses: an EgressIP's status puts the address on that node, the node itself lists it as an egress IP, or it
    /// just left the node and the node has not reported since. None of them counts for the address of the node's
    /// primary interface, which no egress IP ever is.
    fn conflict(&self, address: Address) -> Option<NodeId> {
        let excused = |node: NodeId| {
            let recorded = |object: &ObjectId| self.objects.slot(*object).seen.contains(&(address, node));
            !self.nodes.is_primary_address(node, address)
                && (self.nodes.is_own_egress_address(node, address)
                    || self.departed.contains(&(address, node))
                    || self.nodes.slot(node).recorded_by.iter().any(recorded))
        };
        let hosts = self.nodes.hosts_of(address).iter().copied();
        hosts.filter(|node| !excused(*node)).min_by_key(|node| &self.nodes.slot(*node).name)
    }

    /// A3: who of several claimants gets `address`: a present holder, else the oldest, else the first by name; passed
    /// over is who could not have it anywhere.
    fn winner(&self, address: Address) -> Option<ObjectId> {
        let claimants = self.objects.claimants(address);
        if let [only] = claimants {
            return Some(*only);
        }
        let mut claimants: SmallVec<[ObjectId; 4]> = claimants.into();
        let holds = |id: &ObjectId| self.objects.slot(*id).records(address) && !self.let_go.contains(&(*id, address));
        claimants
            .sort_by(|a, b| holds(b).cmp(&holds(a)).then_with(|| self.objects.slot(*a).order(self.objects.slot(*b))));
        claimants.into_iter().find(|claimant| self.could_hold(*claimant, address))
    }

    /// Whether some node passes N1 to N6 for the claimant. One that is not yet probed may still answer, so it counts.
    fn could_hold(&self, id: ObjectId, address: Address) -> bool {
        let anywhere = self.objects.slot(id).selector.is_some_and(|selector| {
            self.nodes
                .index
                .nodes(selector)
                .map(NodeId)
                .any(|node| self.nodes.hot(node).gate != Gate::Closed && self.nodes.hosts_network(node, address))
        });
        anywhere || (!self.let_go.contains(&(id, address)) && self.valid_nodes(id, address).next().is_some())
    }

    /// The recorded nodes of `address` that may keep it: N1 to N5, where not yet probed will do, and the first sentence
    /// of N6. A selector that does not compile (N2) takes nothing away.
    fn valid_nodes(&self, id: ObjectId, address: Address) -> impl Iterator<Item = NodeId> + '_ {
        let object = self.objects.slot(id);
        let recorded = object.recorded.iter().filter(move |(recorded, _)| *recorded == address);
        recorded.map(|(_, node)| *node).filter(move |node| {
            self.nodes.hot(*node).gate != Gate::Closed
                && object.selector.is_none_or(|selector| self.nodes.index.matches(selector, node.0))
                && self.nodes.hosts_network(*node, address)
        })
    }
}
