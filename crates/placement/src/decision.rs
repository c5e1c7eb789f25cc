//! The decision: which node holds which address, which node hosts which service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use egret_core::{Address, CloudPrivateIpConfig, CloudState, EgressIp, EgressIpName, EgressService, Host, NodeName};
use egret_core::{Platform, RecordedItem, ServiceKey, Snapshot};

use crate::service_label::{SERVICE_LABEL_PREFIX, service_labels};
use crate::{AddressReason, NoHostReason};

/// What was decided of one address of one EgressIP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The recorded assignment is valid: it does not move.
    Kept(NodeName),
    /// The address gets this node now.
    Placed(NodeName),
    /// The address itself is refused (A2 to A4).
    Refused(AddressReason),
    /// No node can host the address now (N1 to N9).
    Unplaced,
}

impl Outcome {
    /// The node that holds the address.
    #[must_use]
    pub fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Kept(node) | Self::Placed(node) => Some(node),
            Self::Refused(_) | Self::Unplaced => None,
        }
    }
}

/// What was decided of one EgressService.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceOutcome {
    /// The recorded host is valid: it does not change.
    Kept(NodeName),
    /// The service gets this host now.
    Elected(NodeName),
    /// Every node hosts it (`sourceIPBy: Network`).
    All,
    /// No node hosts it.
    None(NoHostReason),
}

impl ServiceOutcome {
    /// The value for `status.host`.
    #[must_use]
    pub fn host(&self) -> Host {
        match self {
            Self::Kept(node) | Self::Elected(node) => Host::Node(node.clone()),
            Self::All => Host::All,
            Self::None(_) => Host::None,
        }
    }
}

/// A decision about every EgressIP and EgressService of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// For every EgressIP: its distinct valid addresses, ascending, and what was decided of each.
    pub egress_ips: BTreeMap<EgressIpName, Vec<(Address, Outcome)>>,
    /// For every EgressService.
    pub egress_services: BTreeMap<ServiceKey, ServiceOutcome>,
}

impl Decision {
    /// The recorded state of `snapshot` in the form of a decision: what is, not what should be.
    #[must_use]
    pub fn recorded(snapshot: &Snapshot) -> Self {
        let addresses = |object: &EgressIp| {
            let items = snapshot.present(object);
            let outcome = |address: &Address| {
                let item = items.iter().find(|item| item.address == *address);
                (*address, item.map_or(Outcome::Unplaced, |item| Outcome::Kept(item.node.clone())))
            };
            (object.name.clone(), object.requested.iter().map(outcome).collect())
        };
        let host = |service: &EgressService| {
            let outcome = match &service.recorded {
                Host::Node(node) => ServiceOutcome::Kept(node.clone()),
                Host::All => ServiceOutcome::All,
                Host::None => ServiceOutcome::None(NoHostReason::NoEligibleNode),
            };
            (service.key.clone(), outcome)
        };
        Self {
            egress_ips: snapshot.egress_ips.values().map(addresses).collect(),
            egress_services: snapshot.egress_services.values().map(host).collect(),
        }
    }

    /// The (address, node) pairs of one EgressIP, ascending: what its status should say.
    #[must_use]
    pub fn items(&self, name: &EgressIpName) -> Vec<RecordedItem> {
        let outcomes = self.egress_ips.get(name).map_or(&[][..], Vec::as_slice);
        let item = |(address, outcome): &(Address, Outcome)| {
            Some(RecordedItem { address: *address, node: outcome.node()?.clone() })
        };
        outcomes.iter().filter_map(item).collect()
    }

    /// What was decided of one address.
    #[must_use]
    pub fn outcome(&self, name: &EgressIpName, address: Address) -> Option<&Outcome> {
        let outcomes = self.egress_ips.get(name)?;
        outcomes.iter().find(|(other, _)| *other == address).map(|(_, outcome)| outcome)
    }

    /// How many addresses each node holds; a node that holds none is not in it.
    #[must_use]
    pub fn loads(&self) -> BTreeMap<&NodeName, u32> {
        let mut loads = BTreeMap::new();
        for node in self.egress_ips.values().flatten().filter_map(|(_, outcome)| outcome.node()) {
            *loads.entry(node).or_default() += 1;
        }
        loads
    }

    /// Makes the decision the recorded state of `snapshot`, as if it had been written and, on a cloud, confirmed.
    ///
    /// Of objects that `snapshot` does not have only the departure is remembered, objects that the decision does not have
    /// are left alone.
    pub fn record(&self, snapshot: &mut Snapshot) {
        // All of it before anything is written: one object's request to the cloud is another's loss.
        let old: Vec<Vec<RecordedItem>> = self.egress_ips.keys().map(|name| self.left(snapshot, name)).collect();
        for ((name, outcomes), old) in self.egress_ips.iter().zip(old) {
            self.record_egress_ip(snapshot, name, old);
            if snapshot.options.platform == Platform::Cloud {
                record_cloud(snapshot, name, outcomes);
            }
        }
        for (key, outcome) in &self.egress_services {
            if let Some(service) = snapshot.egress_services.get_mut(key) {
                service.recorded = outcome.host();
            }
        }
        self.record_labels(snapshot);
    }

    /// Where the addresses of an object are now: by `snapshot`, or, if that does not have it any more, by this decision.
    fn left(&self, snapshot: &Snapshot, name: &EgressIpName) -> Vec<RecordedItem> {
        let Some(object) = snapshot.egress_ips.get(name) else { return self.items(name) };
        let mut items = snapshot.present(object);
        items.extend(object.recorded.iter().cloned());
        items
    }

    fn record_egress_ip(&self, snapshot: &mut Snapshot, name: &EgressIpName, old: Vec<RecordedItem>) {
        let new = if let Some(object) = snapshot.egress_ips.get_mut(name) {
            object.recorded = self.items(name);
            object.recorded.clone()
        } else {
            Vec::new()
        };
        for item in &new {
            snapshot.departed.remove(&(item.address, item.node.clone()));
        }
        for item in old {
            let listed = snapshot.nodes.get(&item.node).is_some_and(|node| node.host_addresses.contains(&item.address));
            if listed && !new.contains(&item) {
                snapshot.departed.insert((item.address, item.node));
            }
        }
    }

    fn record_labels(&self, snapshot: &mut Snapshot) {
        let wanted = service_labels(snapshot, self);
        for node in snapshot.nodes.values_mut() {
            let wanted = wanted.get(&node.name).cloned().unwrap_or_default();
            let ours = |key: &&String| key.starts_with(SERVICE_LABEL_PREFIX);
            let found: BTreeSet<String> = node.labels.keys().filter(ours).cloned().collect();
            if found != wanted {
                let labels = Arc::make_mut(&mut node.labels);
                labels.retain(|key, _| !key.starts_with(SERVICE_LABEL_PREFIX));
                labels.extend(wanted.into_iter().map(|key| (key, String::new())));
            }
        }
    }
}

fn record_cloud(snapshot: &mut Snapshot, name: &EgressIpName, outcomes: &[(Address, Outcome)]) {
    let placed: BTreeMap<Address, &NodeName> =
        outcomes.iter().filter_map(|(address, outcome)| Some((*address, outcome.node()?))).collect();
    snapshot.cloud.retain(|address, config| {
        let ours = config.owner.as_ref() == Some(name);
        !ours || placed.contains_key(address) || config.state == CloudState::Refused
    });
    for (address, node) in placed {
        let owner = Some(name.clone());
        let config = CloudPrivateIpConfig { address, owner, node: node.clone(), state: CloudState::Confirmed };
        snapshot.cloud.insert(address, config);
    }
}
