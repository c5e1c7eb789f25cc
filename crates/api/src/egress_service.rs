//! EgressService: from the object as stored.

use std::sync::LazyLock;

use egret_core::{EgressService, Host, NodeSelector, SourceIpBy};
use serde_json::Value;

use crate::{Converted, FieldPath, crd, metadata, schema, selector};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| crd::object_schema(&crd::egress_service_definition()));

/// Reads an EgressService; there is no object without a name.
pub fn from_value(value: &Value) -> Converted<EgressService> {
    let structural = schema::check(&SCHEMA, value);
    let mut faults = Vec::new();
    let created = metadata::created(value, &mut faults);
    let selector = match value.pointer("/spec/nodeSelector") {
        None | Some(Value::Null) => NodeSelector::everything(),
        Some(nodes) => selector::compile(nodes, &FieldPath::of(&["spec", "nodeSelector"]), &structural, &mut faults),
    };
    let source_ip_by = match metadata::text(value, "/spec/sourceIPBy") {
        Some("Network") => SourceIpBy::Network,
        _ => SourceIpBy::LoadBalancerIp,
    };
    faults.extend(structural);
    let service = metadata::key(value).map(|key| EgressService {
        key,
        created,
        source_ip_by,
        selector,
        network: metadata::text(value, "/spec/network").map(str::to_owned),
        recorded: Host::from(metadata::text(value, "/status/host").unwrap_or_default()),
    });
    Converted::new(service, faults)
}

#[cfg(test)]
mod tests {
    use egret_core::{ServiceKey, Timestamp};
    use serde_json::json;

    use super::*;

    fn read(spec: &Value) -> Converted<EgressService> {
        from_value(&json!({"metadata": {"name": "svc", "namespace": "ns"}, "spec": spec}))
    }

    #[test]
    fn everything_is_read() {
        let converted = from_value(&json!({
            "metadata": {"name": "svc", "namespace": "ns", "creationTimestamp": "1970-01-01T00:00:07Z"},
            "spec": {"sourceIPBy": "Network", "network": "blue"},
            "status": {"host": "ALL"},
        }));
        assert_eq!(converted.faults, []);
        let service = EgressService {
            key: ServiceKey::new("ns", "svc"),
            created: Timestamp(7),
            source_ip_by: SourceIpBy::Network,
            selector: NodeSelector::everything(),
            network: Some("blue".to_owned()),
            recorded: Host::All,
        };
        assert_eq!(converted.object, Some(service));
    }

    #[test]
    fn no_spec_means_the_load_balancers_address_from_any_node() {
        let converted = from_value(&json!({"metadata": {"name": "svc"}}));
        assert_eq!(converted.faults, []);
        let service = converted.object.unwrap();
        assert_eq!(service.key, ServiceKey::new("default", "svc"));
        assert_eq!(service.source_ip_by, SourceIpBy::LoadBalancerIp);
        assert_eq!(service.selector, NodeSelector::everything());
    }

    #[test]
    fn every_fault_of_the_spec_is_found() {
        let converted = read(&json!({
            "sourceIPBy": "Loadbalancer",
            "network": 100,
            "nodeSelector": {"matchLabels": {"pool": true}},
        }));
        let faults: Vec<_> = converted.faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            faults,
            [
                "spec.network: must be a string, not a number",
                "spec.nodeSelector.matchLabels.pool: must be a string, not a boolean",
                "spec.sourceIPBy: \"Loadbalancer\" is not one of the allowed values",
            ]
        );
        assert!(converted.object.unwrap().selector.compiled().is_none());
    }
}
