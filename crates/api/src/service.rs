//! Service: what an election of a host needs of it.

use std::sync::LazyLock;

use egret_core::Service;
use serde_json::{Value, json};

use crate::{Converted, metadata, schema};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "additionalProperties": true,
        "properties": {
            "metadata": metadata::schema(),
            "spec": {
                "type": "object",
                "additionalProperties": true,
                "properties": {"type": text, "externalTrafficPolicy": text},
            },
            "status": {
                "type": "object",
                "additionalProperties": true,
                "properties": {
                    "loadBalancer": {
                        "type": "object",
                        "additionalProperties": true,
                        "properties": {"ingress": {"type": "array", "items": {"type": "object"}}},
                    },
                },
            },
        },
    })
});

/// Reads a Service; there is no object without a name.
pub fn from_value(value: &Value) -> Converted<Service> {
    let faults = schema::check(&SCHEMA, value);
    let is = |pointer, text| metadata::text(value, pointer) == Some(text);
    let service = metadata::name(value).map(|_| Service {
        has_ingress: is("/spec/type", "LoadBalancer")
            && !metadata::list(value, "/status/loadBalancer/ingress").is_empty(),
        traffic_policy_local: is("/spec/externalTrafficPolicy", "Local"),
    });
    Converted::new(service, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(spec: &Value, status: &Value) -> Option<Service> {
        let converted = from_value(&json!({"metadata": {"name": "svc"}, "spec": spec, "status": status}));
        assert_eq!(converted.faults, []);
        converted.object
    }

    #[test]
    fn only_a_load_balancer_has_an_ingress() {
        let ingress = json!({"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}});
        for (spec, status, has_ingress) in [
            (json!({"type": "LoadBalancer"}), &ingress, true),
            (json!({"type": "LoadBalancer"}), &json!({"loadBalancer": {"ingress": []}}), false),
            (json!({"type": "LoadBalancer"}), &json!({"loadBalancer": {}}), false),
            (json!({"type": "ClusterIP"}), &ingress, false),
            (json!({}), &ingress, false),
        ] {
            let service = read(&spec, status).unwrap();
            assert_eq!(service.has_ingress, has_ingress, "{spec} {status}");
        }
    }

    #[test]
    fn traffic_policy_is_local_only_if_it_says_so() {
        for (policy, local) in [(json!("Local"), true), (json!("Cluster"), false), (Value::Null, false)] {
            let service = read(&json!({"externalTrafficPolicy": policy}), &Value::Null).unwrap();
            assert_eq!(service.traffic_policy_local, local);
        }
    }
}
