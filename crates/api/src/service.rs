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
