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
        "required": ["addressType", "endpoints"],
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
