//! CloudPrivateIPConfig: its name is an address.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use egret_core::{Address, CloudPrivateIpConfig, CloudState, EgressIpName};
use serde_json::Value;

use crate::annotation::egress_ip_owner;
use crate::{Converted, Fault, FieldPath, crd, metadata, schema};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| crd::object_schema(&crd::cloud_private_ip_config_definition()));

/// The condition in which the cloud answers.
const ASSIGNED: &str = "Assigned";
/// Groups of an IPv6 address, and hexadecimal digits of a group.
const GROUPS: usize = 8;
const DIGITS: usize = 4;

/// The name of an address's object: IPv4 text; IPv6 as 8 groups of 4 digits with dots for colons, because a colon is no
/// legal character of a name.
#[must_use]
pub fn object_name(address: Address) -> String {
    match address.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => ip.segments().map(|group| format!("{group:04x}")).join("."),
    }
}

/// The address that a name stands for.
#[must_use]
pub fn address_of(name: &str) -> Option<Address> {
    let groups: Vec<&str> = name.split('.').collect();
    if groups.len() != GROUPS {
        return Address::parse(name).ok().filter(|address| address.ip().is_ipv4());
    }
    let mut segments = [0; GROUPS];
    for (segment, group) in segments.iter_mut().zip(groups) {
        if group.len() != DIGITS || !group.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        *segment = u16::from_str_radix(group, 16).ok()?;
    }
    Some(IpAddr::V6(Ipv6Addr::from(segments)).into())
}

/// Reads a CloudPrivateIPConfig.
///
/// There is no object whose name is no address, and none that asks for no node.
pub fn from_value(value: &Value) -> Converted<CloudPrivateIpConfig> {
    let mut faults = schema::check(&SCHEMA, value);
    let name = metadata::name(value);
    let address = name.and_then(address_of);
    if let (Some(name), None) = (name, address) {
        let fault = Fault::new(FieldPath::of(&["metadata", "name"]), format!("{name:?} stands for no address"));
        let help = "write IPv4 as it is, IPv6 as 8 groups of 4 hexadecimal digits with dots for colons";
        faults.push(fault.help(help));
    }
    let node = metadata::text(value, "/spec/node");
    let path = FieldPath::of(&["spec", "node"]);
    // A fault there, or above it, says already why there is no node.
    if node.is_none() && faults.iter().all(|fault| !path.starts_with(&fault.path)) {
        faults.push(Fault::new(path, "the object asks for no node"));
    }
    let owner = owner(value, &mut faults);
    let object = address.zip(node).map(|(address, node)| CloudPrivateIpConfig {
        address,
        owner,
        node: node.into(),
        state: state(value, node),
    });
    Converted::new(object, faults)
}

fn owner(value: &Value, faults: &mut Vec<Fault>) -> Option<EgressIpName> {
    let text = metadata::annotations(value)?.get(egress_ip_owner::KEY)?.as_str()?;
    egress_ip_owner::decode(text)
        .map_err(|fault| faults.push(Fault::new(metadata::annotation_path(egress_ip_owner::KEY), fault.to_string())))
        .ok()
}

/// The cloud's answer counts only if it is about the node that is asked for now.
fn state(value: &Value, node: &str) -> CloudState {
    if metadata::text(value, "/status/node") != Some(node) {
        return CloudState::Requested;
    }
    let text = |condition: &Value, key| condition.get(key).and_then(Value::as_str).map(str::to_owned);
    let assigned = metadata::list(value, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "type").as_deref() == Some(ASSIGNED));
    match assigned.and_then(|condition| text(condition, "status")).as_deref() {
        Some("True") => CloudState::Confirmed,
        Some("False") => CloudState::Refused,
        _ => CloudState::Requested,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_an_address_without_colons() {
        for (name, address) in [
            ("192.168.126.101", "192.168.126.101"),
            ("fc00.f853.0ccd.e793.0000.0000.0000.0054", "fc00:f853:ccd:e793::54"),
        ] {
            let address = Address::parse(address).unwrap();
            assert_eq!(address_of(name), Some(address));
            assert_eq!(object_name(address), name);
        }
        for name in ["", "fc00::54", "1.2.3", "1.2.3.4.5.6.7.8", "fc00.f853.0ccd.e793.0000.0000.0000.+054"] {
            assert_eq!(address_of(name), None, "{name}");
        }
    }

    fn config(status: &Value) -> Converted<CloudPrivateIpConfig> {
        from_value(&json!({
            "metadata": {"name": "10.0.0.1", "annotations": {"k8s.ovn.org/egressip-owner-ref": "egress"}},
            "spec": {"node": "a"},
            "status": status,
        }))
    }

    #[test]
    fn the_clouds_answer_counts_only_for_the_node_asked_for() {
        let assigned = |node: &str, status: &str| {
            let conditions = json!([{"type": "Other", "status": "True"}, {"type": "Assigned", "status": status}]);
            config(&json!({"node": node, "conditions": conditions})).object.unwrap().state
        };
        assert_eq!(assigned("a", "True"), CloudState::Confirmed);
        assert_eq!(assigned("a", "False"), CloudState::Refused);
        assert_eq!(assigned("a", "Unknown"), CloudState::Requested);
        assert_eq!(assigned("b", "True"), CloudState::Requested);
        assert_eq!(assigned("b", "False"), CloudState::Requested);
        assert_eq!(config(&Value::Null).object.unwrap().state, CloudState::Requested);
    }

    #[test]
    fn the_owner_is_in_the_annotation() {
        let converted = config(&Value::Null);
        assert_eq!(converted.faults, []);
        assert_eq!(converted.object.unwrap().owner, Some("egress".into()));
    }

    #[test]
    fn without_address_or_node_there_is_no_object() {
        for (value, path) in [
            (json!({"metadata": {"name": "garbage"}, "spec": {"node": "a"}}), "metadata.name"),
            (json!({"metadata": {"name": "10.0.0.1"}, "spec": {}}), "spec.node"),
            (json!({"metadata": {"name": "10.0.0.1"}}), "spec"),
        ] {
            let converted = from_value(&value);
            assert_eq!(converted.object, None);
            assert_eq!(converted.faults.iter().map(|fault| fault.path.to_string()).collect::<Vec<_>>(), [path]);
        }
    }
}
