//! `EgressIP` of `k8s.ovn.org/v1`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// EgressIPSpec is the desired state of an EgressIP.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "k8s.ovn.org",
    version = "v1",
    kind = "EgressIP",
    plural = "egressips",
    singular = "egressip",
    shortname = "eip",
    status = "EgressIPStatus",
    doc = "EgressIP gives the traffic of selected pods a fixed source address outside of the cluster.",
    derive = "PartialEq",
    printcolumn = r#"{"name":"EgressIPs","type":"string","jsonPath":".spec.egressIPs[*]"}"#,
    printcolumn = r#"{"name":"Assigned Node","type":"string","jsonPath":".status.items[*].node"}"#,
    printcolumn = r#"{"name":"Assigned EgressIPs","type":"string","jsonPath":".status.items[*].egressIP"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct EgressIPSpec {
    /// The requested egress IP addresses, IPv4 and/or IPv6. This field is mandatory.
    #[serde(rename = "egressIPs")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub egress_ips: Vec<String>,

    /// Applies the egress IPs only to the namespaces whose labels match. This field is mandatory.
    pub namespace_selector: LabelSelector,

    /// Applies the egress IPs only to the pods whose labels match. This field is optional; if it is not set, the egress
    /// IPs apply to all pods of the namespaces that namespaceSelector matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LabelSelector")]
    pub pod_selector: Option<LabelSelector>,

    /// Limits the nodes that can host these egress IPs: only nodes whose labels match are eligible. This field is
    /// optional. When it is not specified, the default {matchExpressions: [{key: k8s.ovn.org/egress-assignable,
    /// operator: Exists}]} is applied. An empty selector ({}) matches all nodes: use it with caution, it widens the
    /// eligible pool and the health checks to the entire cluster. The field restricts only where the addresses of this
    /// object are placed; it does not reserve the matched nodes, other EgressIPs can still consume capacity on them.
    // `with` keeps the schema from being nullable: the API server keeps an explicit null in a nullable field and then
    // does not default it. Absent is read as None, not as the default, so that writing an object back adds nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LabelSelector")]
    pub egress_node_selector: Option<LabelSelector>,
}

/// EgressIPStatus is the observed state of an EgressIP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EgressIPStatus {
    /// The egress IPs that are assigned, and the nodes that host them.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub items: Vec<EgressIPStatusItem>,

    /// Why this EgressIP is served in full, in part or not at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// EgressIPStatusItem is one egress IP and the node that hosts it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EgressIPStatusItem {
    /// The name of the node.
    pub node: String,

    /// The address.
    #[serde(rename = "egressIP")]
    pub egress_ip: String,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn there_and_back(spec: &Value) -> Value {
        let object = json!({
            "apiVersion": "k8s.ovn.org/v1",
            "kind": "EgressIP",
            "metadata": {"name": "eip"},
            "spec": spec,
        });
        let typed: EgressIP = serde_json::from_value(object).unwrap();
        serde_json::to_value(typed).unwrap()["spec"].clone()
    }

    #[test]
    fn an_absent_node_selector_is_never_written() {
        let spec = json!({"egressIPs": ["10.0.0.1"], "namespaceSelector": {}});
        assert_eq!(there_and_back(&spec), spec);
        let null = json!({"egressIPs": ["10.0.0.1"], "namespaceSelector": {}, "egressNodeSelector": null});
        assert_eq!(there_and_back(&null), spec);
    }

    #[test]
    fn an_empty_node_selector_survives() {
        let spec = json!({"egressIPs": [], "namespaceSelector": {}, "egressNodeSelector": {}});
        assert_eq!(there_and_back(&spec), spec);
    }

    #[test]
    fn status_is_written_without_conditions_if_there_are_none() {
        let item = EgressIPStatusItem { node: "a".to_owned(), egress_ip: "10.0.0.1".to_owned() };
        let status = EgressIPStatus { items: vec![item], conditions: Vec::new() };
        assert_eq!(serde_json::to_value(status).unwrap(), json!({"items": [{"egressIP": "10.0.0.1", "node": "a"}]}));
    }
}
