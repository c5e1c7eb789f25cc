//! The label that tells users which node hosts an EgressService.
//!
//! OVN-Kubernetes' form is `egress-service.k8s.ovn.org/<namespace>-<service>`, which two services can share (`a-b/c` and
//! `a/b-c`) and which can be longer than a label key may be. Users put the plain form into selectors, so it stays where
//! it is legal and unshared; among services that would share it the oldest keeps it, and every other service gets a form
//! with a hash of its full name (rule S7).

use std::collections::{BTreeMap, BTreeSet};

use egret_core::{EgressService, NodeName, ServiceKey, Snapshot};

use crate::decision::{Decision, ServiceOutcome};
use crate::hash;

/// Every label of this prefix is the controller's: what no hosted service wants is removed.
pub const SERVICE_LABEL_PREFIX: &str = "egress-service.k8s.ovn.org/";

/// Longest name part of a label key.
const NAME_MAX: usize = 63;

/// The label key of every EgressService of `snapshot`.
#[must_use]
pub fn service_label_keys(snapshot: &Snapshot) -> BTreeMap<ServiceKey, String> {
    let mut by_age: Vec<&EgressService> = snapshot.egress_services.values().collect();
    by_age.sort_by(|a, b| (a.created, &a.key).cmp(&(b.created, &b.key)));
    let mut taken = BTreeSet::new();
    let mut keys = BTreeMap::new();
    for service in by_age {
        let plain = format!("{}-{}", service.key.namespace, service.key.name);
        let name =
            if plain.len() <= NAME_MAX && !taken.contains(&plain) { plain } else { hashed(&service.key, &plain) };
        keys.insert(service.key.clone(), format!("{SERVICE_LABEL_PREFIX}{name}"));
        taken.insert(name);
    }
    keys
}

fn hashed(key: &ServiceKey, plain: &str) -> String {
    let hash = format!("{:016x}", hash::stable(key.to_string().as_bytes()));
    let room = NAME_MAX - hash.len() - 1;
    // Names are DNS labels: ASCII, so any byte is a character boundary; anything else is cut at one.
    let cut = (0..=room.min(plain.len())).rev().find(|end| plain.is_char_boundary(*end)).unwrap_or_default();
    format!("{}-{hash}", &plain[..cut])
}

/// The label keys that each node should carry for the services it hosts; a node without any is not in it.
#[must_use]
pub fn service_labels(snapshot: &Snapshot, decision: &Decision) -> BTreeMap<NodeName, BTreeSet<String>> {
    let keys = service_label_keys(snapshot);
    let mut labels: BTreeMap<NodeName, BTreeSet<String>> = BTreeMap::new();
    for (key, outcome) in &decision.egress_services {
        if let ServiceOutcome::Kept(node) | ServiceOutcome::Elected(node) = outcome
            && let Some(label) = keys.get(key)
        {
            labels.entry(node.clone()).or_default().insert(label.clone());
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use egret_core::{Host, NodeSelector, SourceIpBy, Timestamp};

    use super::*;

    fn snapshot(keys: &[(&str, &str, i64)]) -> Snapshot {
        let service = |(namespace, name, age): &(&str, &str, i64)| {
            let key = ServiceKey::new(namespace, name);
            let service = EgressService {
                key: key.clone(),
                created: Timestamp(*age),
                source_ip_by: SourceIpBy::LoadBalancerIp,
                selector: NodeSelector::everything(),
                network: None,
                recorded: Host::None,
            };
            (key, service)
        };
        Snapshot { egress_services: keys.iter().map(service).collect(), ..Snapshot::default() }
    }

    #[test]
    fn s7_every_service_has_a_legal_label_of_its_own() {
        let long = "n".repeat(40);
        let snapshot = snapshot(&[("a-b", "c", 2), ("a", "b-c", 1), (&long, &long, 3), ("ns", "web", 4)]);
        let keys = service_label_keys(&snapshot);
        assert_eq!(keys[&ServiceKey::new("a", "b-c")], "egress-service.k8s.ovn.org/a-b-c");
        assert_eq!(keys[&ServiceKey::new("ns", "web")], "egress-service.k8s.ovn.org/ns-web");
        let distinct: BTreeSet<&String> = keys.values().collect();
        assert_eq!(distinct.len(), 4);
        for key in keys.values() {
            assert!(egret_core::Selector::compile([(key.as_str(), "")], []).is_ok(), "{key}");
        }
    }
}
