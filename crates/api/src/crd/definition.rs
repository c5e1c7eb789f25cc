//! The definitions as they are printed and installed: what the derive gives, brought in line with upstream's.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Value, json};

use super::{CloudPrivateIPConfig, EgressIP, EgressService};

const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema";

/// The `CustomResourceDefinition` of EgressIP.
///
/// It has no status subresource: upstream's components write status through the main resource.
#[must_use]
pub fn egress_ip() -> Value {
    let mut definition = definition(EgressIP::crd());
    let default = json!({"matchExpressions": [{"key": "k8s.ovn.org/egress-assignable", "operator": "Exists"}]});
    set(&mut definition, "/properties/spec/properties/egressNodeSelector", "default", default);
    // The derive turns the subresource on for every kind with a status.
    if let Some(version) = definition.pointer_mut("/spec/versions/0").and_then(Value::as_object_mut) {
        version.remove("subresources");
    }
    definition
}

/// The `CustomResourceDefinition` of EgressService.
#[must_use]
pub fn egress_service() -> Value {
    let mut definition = definition(EgressService::crd());
    // The derive requires a spec; upstream does not.
    if let Some(schema) = definition.pointer_mut(SCHEMA).and_then(Value::as_object_mut) {
        schema.remove("required");
    }
    definition
}

/// The `CustomResourceDefinition` of CloudPrivateIPConfig, cut down to what an egress IP needs.
///
/// For clusters without the cloud's own operator, which brings a complete one.
#[must_use]
pub fn cloud_private_ip_config() -> Value {
    definition(CloudPrivateIPConfig::crd())
}

/// The schema of the objects that `definition` defines, with that of their metadata.
pub(crate) fn object_schema(definition: &Value) -> Value {
    let mut schema = definition.pointer(SCHEMA).cloned().unwrap_or_default();
    set_in(&mut schema, "/properties", "metadata", crate::metadata::schema());
    schema
}

fn definition(mut crd: CustomResourceDefinition) -> Value {
    let names = &mut crd.spec.names;
    names.list_kind = Some(format!("{}List", names.kind));
    let mut definition = serde_json::to_value(crd).unwrap_or_default();
    if let Some(names) = definition.pointer_mut("/spec/names").and_then(Value::as_object_mut) {
        names.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    }
    if let Some(version) = definition.pointer_mut("/spec/versions/0").and_then(Value::as_object_mut) {
        version.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    }
    if let Some(schema) = definition.pointer_mut(SCHEMA) {
        polish(schema);
        for key in ["apiVersion", "kind"] {
            set_in(schema, "/properties", key, json!({"type": "string"}));
        }
        set_in(schema, "/properties", "metadata", json!({"type": "object"}));
    }
    definition.sort_all_objects();
    definition
}

/// Takes away what the derive adds and upstream does not have, and makes every label selector and its lists atomic:
/// k8s-openapi's schemas leave that out, and it changes how server-side apply merges.
fn polish(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else { return };
    node.remove("title");
    node.remove("nullable");
    let has_default = node.get("default").is_some_and(|default| default.is_null() || default.as_str() == Some(""));
    if has_default {
        node.remove("default");
    }
    if let Some(items) = node.get_mut("items") {
        polish(items);
    }
    if let Some(values) = node.get_mut("additionalProperties") {
        polish(values);
    }
    let Some(properties) = node.get_mut("properties").and_then(Value::as_object_mut) else { return };
    properties.values_mut().for_each(polish);
    if properties.contains_key("matchExpressions") && properties.contains_key("matchLabels") {
        node.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
        for list in ["/properties/matchExpressions", "/properties/matchExpressions/items/properties/values"] {
            set_in(schema, list, "x-kubernetes-list-type", json!("atomic"));
        }
    }
}

fn set(definition: &mut Value, at: &str, key: &str, value: Value) {
    set_in(definition, &format!("{SCHEMA}{at}"), key, value);
}

fn set_in(root: &mut Value, at: &str, key: &str, value: Value) {
    if let Some(node) = root.pointer_mut(at).and_then(Value::as_object_mut) {
        node.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(definition: &Value) -> String {
        serde_saphyr::to_string(definition).expect("YAML")
    }

    #[test]
    fn egress_ip_definition_is_as_reviewed() {
        insta::assert_snapshot!(yaml(&egress_ip()));
    }

    #[test]
    fn egress_service_definition_is_as_reviewed() {
        insta::assert_snapshot!(yaml(&egress_service()));
    }

    #[test]
    fn cloud_private_ip_config_definition_is_as_reviewed() {
        insta::assert_snapshot!(yaml(&cloud_private_ip_config()));
    }

    #[test]
    fn the_default_of_the_definition_is_the_default_of_the_domain() {
        let definition = egress_ip();
        let field = format!("{SCHEMA}/properties/spec/properties/egressNodeSelector");
        let default = definition.pointer(&field).and_then(|field| field.get("default")).unwrap();
        let value = json!({
            "metadata": {"name": "a"},
            "spec": {"egressIPs": [], "namespaceSelector": {}, "egressNodeSelector": default},
        });
        let read = crate::egress_ip::from_value(&value).object.unwrap();
        assert_eq!(read.selector, egret_core::NodeSelector::egress_assignable());
    }

    #[test]
    fn nothing_is_nullable_or_titled() {
        for definition in crate::crd::definitions(true) {
            let text = definition.to_string();
            assert!(!text.contains(r#""nullable""#) && !text.contains(r#""title""#));
        }
    }
}
