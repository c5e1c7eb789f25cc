//! EgressIP: from the object as stored.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use egret_core::{Address, AddressFault, EgressIp, InvalidRequest, NodeSelector, RecordedItem, Selector};
use serde_json::Value;

use crate::{Converted, Fault, FieldPath, crd, metadata, schema, selector};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| crd::object_schema(&crd::egress_ip_definition()));

/// Reads an EgressIP.
///
/// There is no object without a name, and none whose `spec.egressIPs` is not a list.
pub fn from_value(value: &Value) -> Converted<EgressIp> {
    let structural = schema::check(&SCHEMA, value);
    let mut faults = Vec::new();
    let object = object(value, &structural, &mut faults);
    faults.extend(structural);
    Converted::new(object, faults)
}

fn object(value: &Value, structural: &[Fault], faults: &mut Vec<Fault>) -> Option<EgressIp> {
    let created = metadata::created(value, faults);
    let selector = node_selector(value, structural, faults);
    for key in ["namespaceSelector", "podSelector"] {
        if let Some(pods) = value.pointer("/spec").and_then(|spec| spec.get(key)).filter(|pods| !pods.is_null()) {
            selector::compile(pods, &FieldPath::of(&["spec", key]), structural, faults);
        }
    }
    let recorded = recorded(value, faults);
    let entries = value.pointer("/spec/egressIPs").and_then(Value::as_array);
    let (requested, invalid) = requested(entries?, faults);
    Some(EgressIp { name: metadata::name(value)?.into(), created, requested, invalid, selector, recorded })
}

/// The pods that an EgressIP is about: by their namespace's labels and by their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pods {
    /// `spec.namespaceSelector`.
    pub namespaces: Selector,
    /// `spec.podSelector`; absent selects every pod.
    pub pods: Selector,
}

/// The pods that an EgressIP is about; `None` if a selector does not compile, which selects nothing.
#[must_use]
pub fn pods(value: &Value) -> Option<Pods> {
    let selector = |key| match value.pointer("/spec").and_then(|spec| spec.get(key)).filter(|pods| !pods.is_null()) {
        Some(pods) => {
            let compiled = selector::compile(pods, &FieldPath::of(&["spec", key]), &[], &mut Vec::new());
            compiled.compiled().cloned()
        }
        None => Some(Selector::everything()),
    };
    Some(Pods { namespaces: selector("namespaceSelector")?, pods: selector("podSelector")? })
}

fn node_selector(value: &Value, structural: &[Fault], faults: &mut Vec<Fault>) -> NodeSelector {
    match value.pointer("/spec/egressNodeSelector") {
        None | Some(Value::Null) => NodeSelector::egress_assignable(),
        Some(nodes) => selector::compile(nodes, &FieldPath::of(&["spec", "egressNodeSelector"]), structural, faults),
    }
}

/// The distinct addresses, ascending, and the texts that are none. An entry that is no text has its fault already.
fn requested(entries: &[Value], faults: &mut Vec<Fault>) -> (Vec<Address>, Vec<InvalidRequest>) {
    let path = FieldPath::of(&["spec", "egressIPs"]);
    let mut requested = BTreeSet::new();
    let mut invalid = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let Some(text) = entry.as_str() else {
            let text = if entry.is_null() { String::new() } else { entry.to_string() };
            invalid.push(InvalidRequest { text, fault: AddressFault::NotAnAddress });
            continue;
        };
        match Address::parse(text) {
            Ok(address) => {
                requested.insert(address);
            }
            Err(fault) => {
                faults.push(not_an_address(path.index(i), text, fault));
                invalid.push(InvalidRequest { text: text.to_owned(), fault });
            }
        }
    }
    (requested.into_iter().collect(), invalid)
}

fn not_an_address(path: FieldPath, text: &str, fault: AddressFault) -> Fault {
    let message = if text.is_empty() { fault.to_string() } else { format!("{text:?}: {fault}") };
    Fault::new(path, message).help("write one IPv4 or IPv6 address, such as 192.0.2.10 or 2001:db8::10")
}

fn recorded(value: &Value, faults: &mut Vec<Fault>) -> Vec<RecordedItem> {
    let path = FieldPath::of(&["status", "items"]);
    let mut recorded = BTreeSet::new();
    for (i, item) in metadata::list(value, "/status/items").iter().enumerate() {
        let text = |key| item.get(key).and_then(Value::as_str);
        let (Some(address), Some(node)) = (text("egressIP"), text("node")) else { continue };
        match Address::parse(address) {
            Ok(_) if node.is_empty() => {
                faults.push(Fault::new(path.index(i), "the item names no node and counts as not there"));
            }
            Ok(address) => {
                recorded.insert(RecordedItem { address, node: node.into() });
            }
            Err(fault) => {
                let message = format!("the item counts as not there, {address:?}: {fault}");
                faults.push(Fault::new(path.index(i), message));
            }
        }
    }
    recorded.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use egret_core::{SelectorPart, Timestamp};
    use serde_json::json;

    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    fn read(spec: &Value) -> Converted<EgressIp> {
        let mut spec = spec.clone();
        spec["namespaceSelector"] = json!({});
        from_value(&json!({"metadata": {"name": "eip"}, "spec": spec}))
    }

    fn faults(converted: &Converted<EgressIp>) -> Vec<String> {
        converted.faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn everything_is_read_sorted_and_distinct() {
        let converted = from_value(&json!({
            "apiVersion": "k8s.ovn.org/v1",
            "kind": "EgressIP",
            "metadata": {"name": "eip", "creationTimestamp": "1970-01-01T00:00:07Z", "generation": 3},
            "spec": {
                "egressIPs": ["FC00::54", "10.0.0.2", "fc00:0::54", "10.0.0.1"],
                "namespaceSelector": {"matchLabels": {"a": "b"}},
                "egressNodeSelector": {"matchLabels": {"pool": "x"}},
            },
            "status": {"items": [{"egressIP": "10.0.0.2", "node": "b"}, {"egressIP": "10.0.0.1", "node": "a"}]},
        }));
        assert_eq!(converted.faults, []);
        let item = |text, node: &str| RecordedItem { address: address(text), node: node.into() };
        let object = EgressIp {
            name: "eip".into(),
            created: Timestamp(7),
            requested: vec![address("10.0.0.1"), address("10.0.0.2"), address("fc00::54")],
            invalid: Vec::new(),
            selector: NodeSelector::Compiled(Selector::compile([("pool", "x")], []).unwrap()),
            recorded: vec![item("10.0.0.1", "a"), item("10.0.0.2", "b")],
        };
        assert_eq!(converted.object, Some(object));
    }

    #[test]
    fn pods_are_selected_by_both_selectors_and_by_none_that_does_not_compile() {
        let select = |spec: &Value| pods(&json!({"metadata": {"name": "eip"}, "spec": spec}));
        let found = select(&json!({"namespaceSelector": {"matchLabels": {"team": "a"}}})).unwrap();
        assert_eq!(found.namespaces.to_string(), "team=a");
        assert_eq!(found.pods, Selector::everything());
        assert_eq!(select(&json!({"namespaceSelector": {}, "podSelector": {"matchLabels": {"-": "x"}}})), None);
    }

    #[test]
    fn an_entry_that_is_no_address_costs_only_itself() {
        let converted = read(&json!({"egressIPs": ["10.0.0.1", "10.0.0.0/24", 7]}));
        assert_eq!(
            faults(&converted),
            [
                "spec.egressIPs[1]: \"10.0.0.0/24\": a CIDR is not an IP address; leave the prefix length away",
                "spec.egressIPs[2]: must be a string, not a number",
            ]
        );
        let object = converted.object.unwrap();
        assert_eq!(object.requested, [address("10.0.0.1")]);
        let invalid: Vec<_> = object.invalid.iter().map(|entry| (entry.text.as_str(), entry.fault)).collect();
        assert_eq!(invalid, [("10.0.0.0/24", AddressFault::Cidr), ("7", AddressFault::NotAnAddress)]);
    }

    #[test]
    fn absent_and_null_are_the_default_and_an_empty_selector_is_every_node() {
        for (selector, expected) in [
            (json!({"egressIPs": []}), NodeSelector::egress_assignable()),
            (json!({"egressIPs": [], "egressNodeSelector": null}), NodeSelector::egress_assignable()),
            (json!({"egressIPs": [], "egressNodeSelector": {}}), NodeSelector::everything()),
        ] {
            let converted = read(&selector);
            assert_eq!(converted.faults, []);
            assert_eq!(converted.object.unwrap().selector, expected, "{selector}");
        }
    }

    #[test]
    fn a_faulty_selector_keeps_the_rest_and_says_where() {
        let converted = read(&json!({
            "egressIPs": ["10.0.0.1"],
            "egressNodeSelector": {
                "matchLabels": {"pool": 1},
                "matchExpressions": [
                    {"key": "a", "operator": "In"},
                    {"operator": "Is", "values": [true, "?"]},
                    {"key": "a", "operator": "In", "values": [1]},
                ],
            },
        }));
        let paths: Vec<_> = converted.faults.iter().map(|fault| fault.path.to_string()).collect();
        let expected = [
            "matchExpressions[0].values",
            "matchExpressions[1].key",
            "matchExpressions[1].operator",
            "matchExpressions[1].values[0]",
            "matchExpressions[1].values[1]",
            "matchExpressions[2].values[0]",
            "matchLabels.pool",
        ];
        assert_eq!(paths, expected.map(|path| format!("spec.egressNodeSelector.{path}")));
        let object = converted.object.unwrap();
        assert_eq!(object.requested.len(), 1);
        let NodeSelector::Faulty(found) = object.selector else { panic!("a faulty selector") };
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().any(|fault| fault.part == SelectorPart::MatchLabel("pool".to_owned())));
    }

    #[test]
    fn a_misspelled_field_of_the_selector_never_selects_every_node() {
        let converted = read(&json!({"egressIPs": [], "egressNodeSelector": {"matchLabel": {"pool": "x"}}}));
        assert_eq!(converted.faults[0].help.as_deref(), Some("did you mean \"matchLabels\"?"));
        assert!(converted.object.unwrap().selector.compiled().is_none());
        let converted = read(&json!({"egressIPs": [], "egressNodeSelectors": {}}));
        assert_eq!(converted.faults[0].path.to_string(), "spec.egressNodeSelectors");
    }

    #[test]
    fn a_selector_that_is_no_map_places_nothing_new() {
        for selector in [json!("pool=x"), json!([]), json!({"matchLabels": "pool=x"}), json!({"matchExpressions": [7]})]
        {
            let converted = read(&json!({"egressIPs": [], "egressNodeSelector": selector}));
            assert_eq!(converted.faults.len(), 1, "{selector}");
            assert!(converted.object.unwrap().selector.compiled().is_none(), "{selector}");
        }
    }

    #[test]
    fn a_faulty_pod_selector_is_only_a_fault() {
        let converted =
            read(&json!({"egressIPs": [], "podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}));
        assert_eq!(faults(&converted), ["spec.podSelector.matchExpressions[0].values: In needs at least one value"]);
        assert!(converted.object.is_some());
    }

    #[test]
    fn an_unreadable_item_of_status_counts_as_not_there() {
        let items = json!([{"egressIP": "10.0.0.1", "node": ""}, {"egressIP": "x", "node": "a"}, {"node": "a"}, 7]);
        let converted = from_value(&json!({
            "metadata": {"name": "eip"},
            "spec": {"egressIPs": [], "namespaceSelector": {}},
            "status": {"items": items},
        }));
        assert_eq!(converted.object.as_ref().unwrap().recorded, []);
        let paths: Vec<_> = converted.faults.iter().map(|fault| fault.path.to_string()).collect();
        assert_eq!(paths, ["status.items[0]", "status.items[1]", "status.items[2].egressIP", "status.items[3]"]);
    }

    #[test]
    fn without_a_list_of_addresses_there_is_no_object() {
        let no_spec = from_value(&json!({"metadata": {"name": "eip"}}));
        assert_eq!(
            (no_spec.object.is_none(), faults(&no_spec)),
            (true, vec!["spec: required, but missing".to_owned()])
        );
        let text = read(&json!({"egressIPs": "10.0.0.1"}));
        assert!(text.object.is_none());
        assert_eq!(text.faults[0].help.as_deref(), Some("write it as a list of one element"));
    }

    #[test]
    fn labels_that_yaml_took_for_something_else_are_to_be_quoted() {
        let value = json!({
            "metadata": {"name": "eip", "labels": {"a": true}, "annotations": {"k8s.ovn.org/egressip-mark": 50000}},
            "spec": {"egressIPs": [], "namespaceSelector": {}},
        });
        let help: Vec<_> = from_value(&value).faults.into_iter().map(|fault| fault.help.unwrap()).collect();
        assert_eq!(help, ["quote it: \"50000\"", "quote it: \"true\""]);
    }
}
