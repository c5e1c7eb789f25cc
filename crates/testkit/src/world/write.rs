//! How a decision becomes stored state.

use std::collections::{BTreeMap, BTreeSet};

use egret_api::cloud_private_ip_config::object_name;
use egret_api::{Kind, ObjectKey};
use egret_core::{Address, EgressIpName, Host, NodeName, Reachability, Snapshot};
use egret_placement::{Decision, SERVICE_LABEL_PREFIX, service_labels};
use serde_json::{Map, Value, json};

use super::{Cloud, Items, World, node_key, object};

impl World {
    /// Writes what differs and returns a line about each write.
    pub(super) fn write(&mut self, snapshot: &Snapshot, decision: &Decision) -> Vec<String> {
        let mut writes = Vec::new();
        if self.cloud != Cloud::Waits {
            self.write_assignments(decision, &mut writes);
            self.remember_departures(snapshot, decision);
        }
        if self.cloud == Cloud::Confirms {
            self.write_cloud(decision, &mut writes);
        }
        self.remember_drained(snapshot, decision);
        self.write_hosts(decision, &mut writes);
        self.write_labels(snapshot, decision, &mut writes);
        writes
    }

    fn write_assignments(&mut self, decision: &Decision, writes: &mut Vec<String>) {
        for (name, outcomes) in &decision.egress_ips {
            let placed = outcomes.iter().filter_map(|(address, outcome)| Some((address, outcome.node()?)));
            let mut wanted: Items = placed.map(|(address, node)| (address.to_string(), node.to_string())).collect();
            wanted.sort_unstable();
            let key = ObjectKey::cluster(Kind::EgressIp, name.as_str());
            let Some(stored) = self.manifests.get_mut(&key) else { continue };
            let found = object::items(stored);
            self.journal.note_status(name.as_str(), &wanted);
            if found == wanted {
                continue;
            }
            writes.push(format!("EgressIP {name}: {found:?} -> {wanted:?}"));
            let items = wanted.iter().map(|(address, node)| json!({ "egressIP": address, "node": node }));
            let items = Value::Array(items.collect());
            object::entry(stored, &["status"]).insert("items".to_owned(), items);
        }
    }

    /// A node that lists an address it just lost will list it until it reports its addresses again (rule A2).
    fn remember_departures(&mut self, snapshot: &Snapshot, decision: &Decision) {
        let recorded = snapshot.egress_ips.values().flat_map(|egress_ip| &egress_ip.recorded);
        self.held.extend(recorded.map(|item| (item.address, item.node.clone())));
        let holds = holders(decision).into_iter().map(|(address, (node, _))| (address, node)).collect();
        for pair in std::mem::replace(&mut self.held, holds) {
            let lists = snapshot.nodes.get(&pair.1).is_some_and(|node| node.host_addresses.contains(&pair.0));
            if lists && !self.held.contains(&pair) {
                let then = self.host_cidrs(&pair.1).unwrap_or_default().to_owned();
                self.departed.insert(pair, then);
            }
        }
    }

    fn write_cloud(&mut self, decision: &Decision, writes: &mut Vec<String>) {
        let wanted = holders(decision).into_iter().map(|(address, holder)| (object_name(address), holder));
        let wanted: BTreeMap<String, _> = wanted.collect();
        let owned = |config: &Value| config["metadata"]["annotations"][object::OWNER].is_string();
        let stale = self.cloud_configs().filter(|(name, config)| owned(config) && !wanted.contains_key(*name));
        for name in stale.map(|(name, _)| name.to_owned()).collect::<Vec<_>>() {
            self.manifests.remove(&cloud_key(&name));
            writes.push(format!("CloudPrivateIPConfig {name}: deleted"));
        }
        for (name, (node, owner)) in wanted {
            let config = confirmed(&name, &node, &owner);
            match self.manifests.get_mut(&cloud_key(&name)) {
                Some(stored) => {
                    if is_confirmed(stored, &node, &owner) {
                        continue;
                    }
                    for part in ["spec", "status"] {
                        stored[part] = config[part].clone();
                    }
                    object::entry(stored, &["metadata", "annotations"])
                        .insert(object::OWNER.to_owned(), json!(owner.as_str()));
                }
                None => self.insert(config).expect("a well-formed object is stored"),
            }
            writes.push(format!("CloudPrivateIPConfig {name}: {node} for {owner}"));
        }
    }

    /// A node that lost a service because it is silent is probed until it answers: else it could never come back.
    fn remember_drained(&mut self, snapshot: &Snapshot, decision: &Decision) {
        for (key, service) in &snapshot.egress_services {
            let Host::Node(node) = &service.recorded else { continue };
            let moved = decision.egress_services.get(key).is_none_or(|outcome| outcome.host() != service.recorded);
            if moved && self.knowledge.get(node) == Some(&Reachability::Unreachable) {
                self.drained.insert(node.clone());
            }
        }
    }

    fn write_hosts(&mut self, decision: &Decision, writes: &mut Vec<String>) {
        for (key, outcome) in &decision.egress_services {
            let object = ObjectKey::namespaced(Kind::EgressService, &key.namespace, &key.name);
            let Some(stored) = self.manifests.get_mut(&object) else { continue };
            let host = outcome.host();
            if stored["status"]["host"].as_str().unwrap_or_default() != host.as_str() {
                writes.push(format!("EgressService {key}: {} -> {host:?}", stored["status"]["host"]));
                object::entry(stored, &["status"]).insert("host".to_owned(), json!(host.as_str()));
            }
        }
    }

    fn write_labels(&mut self, snapshot: &Snapshot, decision: &Decision, writes: &mut Vec<String>) {
        let wanted = service_labels(snapshot, decision);
        for name in snapshot.nodes.keys() {
            let Some(node) = self.manifests.get_mut(&node_key(name.as_str())) else { continue };
            let labels = object::entry(node, &["metadata", "labels"]);
            let ours = |labels: &Map<String, Value>| {
                labels.keys().filter(|key| key.starts_with(SERVICE_LABEL_PREFIX)).cloned().collect::<BTreeSet<_>>()
            };
            let (found, wanted) = (ours(labels), wanted.get(name).cloned().unwrap_or_default());
            if found == wanted {
                continue;
            }
            labels.retain(|key, _| !found.contains(key));
            labels.extend(wanted.iter().map(|key| (key.clone(), json!(""))));
            writes.push(format!("Node {name}: labels {found:?} -> {wanted:?}"));
        }
    }
}

fn holders(decision: &Decision) -> BTreeMap<Address, (NodeName, EgressIpName)> {
    let outcomes = decision.egress_ips.iter().flat_map(|(name, outcomes)| outcomes.iter().map(move |o| (name, o)));
    outcomes
        .filter_map(|(name, (address, outcome))| Some((*address, (outcome.node()?.clone(), name.clone()))))
        .collect()
}

fn cloud_key(name: &str) -> ObjectKey {
    ObjectKey::cluster(Kind::CloudPrivateIpConfig, name)
}

/// A request and the cloud's consent in one.
fn confirmed(name: &str, node: &NodeName, owner: &EgressIpName) -> Value {
    json!({
        "apiVersion": "cloud.network.openshift.io/v1",
        "kind": "CloudPrivateIPConfig",
        "metadata": { "name": name, "annotations": { object::OWNER: owner.as_str() } },
        "spec": { "node": node.as_str() },
        "status": { "node": node.as_str(), "conditions": [{ "type": "Assigned", "status": "True" }] },
    })
}

fn is_confirmed(config: &Value, node: &NodeName, owner: &EgressIpName) -> bool {
    config["metadata"]["annotations"][object::OWNER] == owner.as_str()
        && config["spec"]["node"] == node.as_str()
        && config["status"]["node"] == node.as_str()
        && config["status"]["conditions"][0]["status"] == "True"
}
