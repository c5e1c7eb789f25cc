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
