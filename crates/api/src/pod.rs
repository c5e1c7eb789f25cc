//! Pod: what a way out needs of it.

use std::collections::BTreeMap;

use egret_core::{Address, NodeName};
use serde_json::Value;

use crate::metadata;

/// A pod that has addresses of its own and runs, or is about to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `spec.nodeName`.
    pub node: NodeName,
    /// `status.podIPs`, never empty.
    pub addresses: Vec<Address>,
}

/// Reads a Pod. There is none for one that uses its node's network, that has come to its end (its addresses may be another
/// one's by then), or that has no node or no address yet.
#[must_use]
pub fn from_value(value: &Value) -> Option<Pod> {
    let host = value.pointer("/spec/hostNetwork").and_then(Value::as_bool).unwrap_or_default();
    let ended = matches!(metadata::text(value, "/status/phase"), Some("Succeeded" | "Failed"));
    let ips = metadata::list(value, "/status/podIPs").iter().filter_map(|ip| ip.get("ip")?.as_str());
    let mut addresses: Vec<Address> = ips.filter_map(|ip| Address::parse(ip).ok()).collect();
    if addresses.is_empty() {
        addresses.extend(metadata::text(value, "/status/podIP").and_then(|ip| Address::parse(ip).ok()));
    }
    (!host && !ended && !addresses.is_empty()).then_some(())?;
    Some(Pod {
        namespace: metadata::namespace(value).to_owned(),
        name: metadata::name(value)?.to_owned(),
        labels: metadata::labels(value),
        node: metadata::text(value, "/spec/nodeName")?.into(),
        addresses,
    })
}

/// The labels of any object.
#[must_use]
pub fn labels(value: &Value) -> BTreeMap<String, String> {
    metadata::labels(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: &Value, status: &Value) -> Option<Pod> {
        let metadata = json!({"name": "web-0", "namespace": "shop", "labels": {"app": "web"}});
        from_value(&json!({"metadata": metadata, "spec": spec, "status": status}))
    }

    #[test]
    fn a_running_pod_has_its_node_and_its_addresses() {
        let status = json!({"phase": "Running", "podIPs": [{"ip": "10.244.1.11"}, {"ip": "fd00::11"}]});
        let found = pod(&json!({"nodeName": "n1"}), &status).unwrap();
        assert_eq!((found.namespace.as_str(), found.name.as_str(), found.node.as_str()), ("shop", "web-0", "n1"));
        assert_eq!(found.addresses.len(), 2);
        assert_eq!(found.labels["app"], "web");
        let old = pod(&json!({"nodeName": "n1"}), &json!({"phase": "Pending", "podIP": "10.244.1.11"})).unwrap();
        assert_eq!(old.addresses.len(), 1);
    }

    #[test]
    fn a_pod_without_a_way_out_of_its_own_is_none() {
        let running = json!({"phase": "Running", "podIP": "10.244.1.11"});
        for (spec, status) in [
            (json!({"nodeName": "n1", "hostNetwork": true}), running.clone()),
            (json!({}), running),
            (json!({"nodeName": "n1"}), json!({"phase": "Succeeded", "podIP": "10.244.1.11"})),
            (json!({"nodeName": "n1"}), json!({"phase": "Failed", "podIP": "10.244.1.11"})),
            (json!({"nodeName": "n1"}), json!({"phase": "Pending"})),
        ] {
            assert_eq!(pod(&spec, &status), None, "{spec} {status}");
        }
    }
}
