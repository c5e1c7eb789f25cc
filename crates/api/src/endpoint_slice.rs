//! EndpointSlice: the endpoints of a Service.

use std::sync::LazyLock;

use egret_core::{Address, Endpoint, ServiceKey};
use serde_json::{Value, json};

use crate::{Converted, Fault, FieldPath, metadata, schema};

/// The label that names the Service of a slice. Mirrored slices of user-defined networks do not carry it.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let truth = json!({"type": "boolean"});
    json!({
        "type": "object",
        "additionalProperties": true,
        // An API server shows a slice without endpoints as `endpoints: null`.
        "required": ["addressType"],
        "properties": {
            "metadata": metadata::schema(),
            "addressType": text,
            "endpoints": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": true,
                    "required": ["addresses"],
                    "properties": {
                        "addresses": {"type": "array", "items": text},
                        "nodeName": text,
                        "conditions": {
                            "type": "object",
                            "additionalProperties": true,
                            "properties": {"ready": truth, "serving": truth, "terminating": truth},
                        },
                    },
                },
            },
        },
    })
});

/// What one EndpointSlice says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The Service it belongs to.
    pub service: ServiceKey,
    /// Its addresses, in the order of the slice.
    pub endpoints: Vec<Endpoint>,
}

/// Reads an EndpointSlice.
///
/// There is no object, and no fault either, for a slice of names (`addressType: FQDN`) and for one of no Service.
pub fn from_value(value: &Value) -> Converted<Slice> {
    if metadata::text(value, "/addressType") == Some("FQDN") {
        return Converted::new(None, Vec::new());
    }
    let mut faults = schema::check(&SCHEMA, value);
    let service = metadata::labels(value).remove(SERVICE_NAME).filter(|service| !service.is_empty());
    let slice = service.map(|service| Slice {
        service: ServiceKey::new(metadata::namespace(value), &service),
        endpoints: endpoints(value, &mut faults),
    });
    Converted::new(slice, faults)
}

fn endpoints(value: &Value, faults: &mut Vec<Fault>) -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    for (i, endpoint) in metadata::list(value, "/endpoints").iter().enumerate() {
        let node = metadata::text(endpoint, "/nodeName").map(Into::into);
        let serving = is_serving(endpoint);
        for (j, address) in metadata::list(endpoint, "/addresses").iter().enumerate() {
            let Some(text) = address.as_str() else { continue };
            match Address::parse(text) {
                Ok(address) => endpoints.push(Endpoint { address, node: node.clone(), serving }),
                Err(fault) => {
                    let path = FieldPath::of(&["endpoints"]).index(i).key("addresses").index(j);
                    faults.push(Fault::new(path, format!("{text:?}: {fault}")));
                }
            }
        }
    }
    endpoints
}

/// `serving` where it is set; older writers set only `ready`, which a terminating endpoint never is.
fn is_serving(endpoint: &Value) -> bool {
    let condition = |name| endpoint.get("conditions").and_then(|conditions| conditions.get(name)?.as_bool());
    let ready = || condition("ready").filter(|_| condition("terminating") != Some(true));
    condition("serving").or_else(ready).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(endpoints: &Value) -> Value {
        json!({
            "metadata": {"name": "svc-x", "namespace": "ns", "labels": {"kubernetes.io/service-name": "svc"}},
            "addressType": "IPv4",
            "endpoints": endpoints,
        })
    }

    #[test]
    fn every_address_is_an_endpoint() {
        let converted = from_value(&slice(&json!([{"addresses": ["10.0.0.1", "10.0.0.2"], "nodeName": "a"}])));
        let endpoint =
            |text: &str| Endpoint { address: Address::parse(text).unwrap(), node: Some("a".into()), serving: true };
        let endpoints = vec![endpoint("10.0.0.1"), endpoint("10.0.0.2")];
        assert_eq!(converted.object, Some(Slice { service: ServiceKey::new("ns", "svc"), endpoints }));
        assert_eq!(converted.faults, []);
    }

    #[test]
    fn serving_counts_before_ready_and_missing_means_true() {
        for (conditions, serving) in [
            (json!({}), true),
            (Value::Null, true),
            (json!({"serving": true, "ready": false, "terminating": true}), true),
            (json!({"serving": false, "ready": true}), false),
            (json!({"serving": null, "ready": false}), false),
            (json!({"ready": true}), true),
            (json!({"ready": false, "terminating": true}), true),
        ] {
            let converted = from_value(&slice(&json!([{"addresses": ["10.0.0.1"], "conditions": conditions}])));
            let object = converted.object.unwrap();
            assert_eq!(object.endpoints[0].serving, serving, "{conditions}");
        }
    }

    #[test]
    fn a_bad_address_costs_only_itself() {
        let converted = from_value(&slice(&json!([{"addresses": ["garbage", 7, "10.0.0.2"]}])));
        assert_eq!(converted.object.unwrap().endpoints.len(), 1);
        let paths: Vec<_> = converted.faults.iter().map(|fault| fault.path.to_string()).collect();
        assert_eq!(paths, ["endpoints[0].addresses[0]", "endpoints[0].addresses[1]"]);
    }

    #[test]
    fn a_slice_of_names_or_of_no_service_says_nothing() {
        let mut names = slice(&json!([{"addresses": ["example.com"]}]));
        names["addressType"] = json!("FQDN");
        let mut mirrored = slice(&json!([]));
        mirrored["metadata"]["labels"] = json!({"k8s.ovn.org/service-name": "svc"});
        for value in [names, mirrored] {
            assert_eq!(from_value(&value), Converted::new(None, Vec::new()));
        }
    }

    #[test]
    fn no_endpoints_are_no_fault() {
        assert_eq!(from_value(&slice(&Value::Null)).faults, []);
    }
}
