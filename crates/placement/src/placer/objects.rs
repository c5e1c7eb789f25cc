//! The EgressIPs of a [`Placer`](super::Placer): numbered, with what each of their addresses is worth.

use std::cmp::Ordering;

use egret_core::{Address, EgressIpName, SelectorId, Timestamp};
use rustc_hash::FxHashMap;
use slab::Slab;
use smallvec::SmallVec;

use super::nodes::NodeId;
use crate::hash;

/// An object's number, free for another object once the object is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectId(pub(super) usize);

/// How an address of an object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its recorded assignment is valid.
    Kept(NodeId),
    /// It needs a node and has none.
    Open,
    /// It needed a node and got this one in the last decision.
    Placed(NodeId),
    /// A2: it is a host address of this node.
    Conflict(NodeId),
    /// A3: this object has the better claim.
    HeldBy(ObjectId),
    /// A4: the cloud holds it for somebody unknown.
    HeldInCloud,
}

#[derive(Clone, Debug)]
pub(super) struct AddressSlot {
    pub(super) address: Address,
    pub(super) hash: u64,
    pub(super) standing: Standing,
}

impl AddressSlot {
    pub(super) fn new(address: Address) -> Self {
        let hash = match address.ip() {
            std::net::IpAddr::V4(ip) => hash::stable(&ip.octets()),
            std::net::IpAddr::V6(ip) => hash::stable(&ip.octets()),
        };
        Self { address, hash, standing: Standing::Open }
    }
}

#[derive(Debug)]
pub(super) struct ObjectSlot {
    pub(super) name: EgressIpName,
    pub(super) created: Timestamp,
    /// `None` when the selector does not compile.
    pub(super) selector: Option<SelectorId>,
    /// The requested addresses, ascending.
    pub(super) addresses: Vec<AddressSlot>,
    /// What counts as recorded, addresses that are no longer requested included.
    pub(super) recorded: Vec<(Address, NodeId)>,
    /// That, and what the status says beside it: where the address may still be on a link (A2).
    pub(super) seen: Vec<(Address, NodeId)>,
}

impl ObjectSlot {
    /// The one order in which objects are served (C1): oldest first, then by name.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        self.created.cmp(&other.created).then_with(|| self.name.cmp(&other.name))
    }

    /// Whether the status has `address`, on whatever node.
    pub(super) fn records(&self, address: Address) -> bool {
        self.recorded.iter().any(|(recorded, _)| *recorded == address)
    }
}

/// All EgressIPs, and who asks for which address.
#[derive(Debug, Default)]
pub(super) struct Objects {
    slots: Slab<ObjectSlot>,
    ids: FxHashMap<EgressIpName, ObjectId>,
    claims: FxHashMap<Address, SmallVec<[ObjectId; 1]>>,
}

impl Objects {
    pub(super) fn slot(&self, id: ObjectId) -> &ObjectSlot {
        &self.slots[id.0]
    }

    pub(super) fn slot_mut(&mut self, id: ObjectId) -> &mut ObjectSlot {
        &mut self.slots[id.0]
    }

    /// Whether the number stands for an object now.
    pub(super) fn contains(&self, id: ObjectId) -> bool {
        self.slots.contains(id.0)
    }

    /// What the object of that name asks for.
    pub(super) fn requested(&self, name: &EgressIpName) -> Vec<Address> {
        let addresses = self.ids.get(name).map(|id| &self.slots[id.0].addresses);
        addresses.into_iter().flatten().map(|address| address.address).collect()
    }

    /// The objects that ask for `address`, in no particular order.
    pub(super) fn claimants(&self, address: Address) -> &[ObjectId] {
        self.claims.get(&address).map_or(&[], |claims| claims)
    }

    pub(super) fn insert(&mut self, slot: ObjectSlot) -> ObjectId {
        let id = ObjectId(self.slots.vacant_key());
        self.ids.insert(slot.name.clone(), id);
        for address in &slot.addresses {
            self.claims.entry(address.address).or_default().push(id);
        }
        self.slots.insert(slot);
        id
    }

    pub(super) fn remove(&mut self, name: &EgressIpName) -> Option<(ObjectId, ObjectSlot)> {
        let id = self.ids.remove(name)?;
        let slot = self.slots.remove(id.0);
        for address in &slot.addresses {
            if let Some(claims) = self.claims.get_mut(&address.address) {
                claims.retain(|other| *other != id);
                if claims.is_empty() {
                    self.claims.remove(&address.address);
                }
            }
        }
        Some((id, slot))
    }
}
