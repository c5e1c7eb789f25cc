//! An object as the API server sends it: any JSON object, without what nobody here reads.
//!
//! A Node of a busy cluster is mostly names of images, managed fields and other people's annotations; they are dropped
//! while it is read, so that they never take memory. What is read back of an object must be exact in the parts that are
//! written by patches, so nothing is cut from labels, and an annotation map that was there stays there.

use std::borrow::Cow;
use std::fmt;

use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::Resource as Served;

/// The prefixes of the annotations of a Node that mean something.
const NODE_ANNOTATIONS: [&str; 2] = ["k8s.ovn.org/", "cloud.network.openshift.io/"];

/// An object of any kind.
#[derive(Clone, Debug)]
pub struct Stored {
    value: Value,
    /// What kube reads: where the watch goes on.
    meta: ObjectMeta,
}

impl Stored {
    /// The object, complete with what the API server leaves out within lists.
    #[must_use]
    pub fn into_value(self, resource: Served) -> Value {
        let mut value = self.value;
        if resource.kind == "Node"
            && let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
        {
            annotations.retain(|key, _| NODE_ANNOTATIONS.iter().any(|prefix| key.starts_with(prefix)));
        }
        value["apiVersion"] = json!(resource.api_version);
        value["kind"] = json!(resource.kind);
        value
    }

    fn new(value: Value) -> Self {
        let text = |key: &str| value.get("metadata")?.get(key)?.as_str().map(str::to_owned);
        let meta =
            ObjectMeta { name: text("name"), resource_version: text("resourceVersion"), ..ObjectMeta::default() };
        Self { value, meta }
    }
}

impl From<Value> for Stored {
    fn from(value: Value) -> Self {
        Self::new(value)
    }
}

impl Resource for Stored {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

impl Serialize for Stored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Stored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Cutting(&OBJECT).deserialize(deserializer)?;
        if value.is_object() { Ok(Self::new(value)) } else { Err(D::Error::custom("not an object")) }
    }
}

/// What stays of the value at a place.
enum Keep {
    /// Nothing.
    None,
    /// These keys only.
    Only(&'static [&'static str]),
    /// Everything, but of these keys that.
    But(&'static [(&'static str, Keep)]),
}

/// One tree for all kinds: no key here means something else in another kind.
static OBJECT: Keep = Keep::But(&[
    (
        "metadata",
        Keep::Only(&[
            "name",
            "namespace",
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "labels",
            "annotations",
        ]),
    ),
    (
        "spec",
        Keep::But(&[
            // Service
            ("selector", Keep::None),
            // Node
            ("taints", Keep::None),
            // Pod
            ("affinity", Keep::None),
            ("containers", Keep::None),
            ("ephemeralContainers", Keep::None),
            ("imagePullSecrets", Keep::None),
            ("initContainers", Keep::None),
            ("resources", Keep::None),
            ("securityContext", Keep::None),
            ("tolerations", Keep::None),
            ("topologySpreadConstraints", Keep::None),
            ("volumes", Keep::None),
        ]),
    ),
    // Node, and Pod
    (
        "status",
        Keep::But(&[
            ("allocatable", Keep::None),
            ("capacity", Keep::None),
            ("conditions", Keep::But(&[("lastHeartbeatTime", Keep::None)])),
            ("config", Keep::None),
            ("containerStatuses", Keep::None),
            ("daemonEndpoints", Keep::None),
            ("features", Keep::None),
            ("images", Keep::None),
            ("initContainerStatuses", Keep::None),
            ("nodeInfo", Keep::None),
            ("runtimeHandlers", Keep::None),
            ("volumesAttached", Keep::None),
            ("volumesInUse", Keep::None),
        ]),
    ),
    // EndpointSlice
    ("ports", Keep::None),
    (
        "endpoints",
        Keep::But(&[
            ("deprecatedTopology", Keep::None),
            ("hints", Keep::None),
            ("hostname", Keep::None),
            ("targetRef", Keep::None),
            ("zone", Keep::None),
        ]),
    ),
]);

/// Reads a value and keeps what is said. Of a list, the same of every element.
struct Cutting(&'static Keep);

impl<'de> DeserializeSeed<'de> for Cutting {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Cutting {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let keep = match self.0 {
                Keep::But(inner) => inner.iter().find(|(name, _)| *name == key).map(|(_, keep)| keep),
                Keep::Only(names) if names.contains(&key.as_str()) => None,
                Keep::Only(_) | Keep::None => Some(&Keep::None),
            };
            let value = match keep {
                Some(Keep::None) => {
                    access.next_value::<IgnoredAny>()?;
                    continue;
                }
                Some(keep) => access.next_value_seed(Cutting(keep))?,
                None => access.next_value()?,
            };
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = access.next_element_seed(Cutting(self.0))? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use egret_api::Kind;

    use super::*;

    fn read(kind: Kind, value: &Value) -> Value {
        serde_json::from_str::<Stored>(&value.to_string()).unwrap().into_value(kind.into())
    }

    #[test]
    fn of_a_node_only_what_is_read_is_kept() {
        let conditions = json!([{"type": "Ready", "status": "True"}]);
        let mut beating = conditions.clone();
        beating[0]["lastHeartbeatTime"] = json!("2026-01-01T00:00:00Z");
        let value = json!({
            "metadata": {
                "name": "a",
                "resourceVersion": "7",
                "managedFields": [{"manager": "kubelet"}],
                "ownerReferences": [],
                "labels": {"pool": "x"},
                "annotations": {"k8s.ovn.org/host-cidrs": "[]", "volumes.kubernetes.io/x": "true"},
            },
            "spec": {"podCIDRs": ["10.0.0.0/24"], "taints": [], "unschedulable": true},
            "status": {"conditions": beating, "images": [{"names": ["x"]}], "nodeInfo": {}, "capacity": {"cpu": "1"}},
        });
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "a",
                "resourceVersion": "7",
                "labels": {"pool": "x"},
                "annotations": {"k8s.ovn.org/host-cidrs": "[]"},
            },
            "spec": {"podCIDRs": ["10.0.0.0/24"], "unschedulable": true},
            "status": {"conditions": conditions},
        });
        assert_eq!(read(Kind::Node, &value), expected);
    }

    #[test]
    fn an_egress_ip_is_kept_but_for_metadata_that_is_nobodys_business() {
        let mut value = json!({
            "apiVersion": "k8s.ovn.org/v1",
            "kind": "EgressIP",
            "metadata": {"name": "a", "uid": "u", "annotations": {"other": "x"}, "labels": {}},
            "spec": {"egressIPs": ["10.0.0.1", 1.5, -1, true, null], "podSelector": {"matchLabels": {"a": "b"}}},
            "status": {"items": [], "conditions": [{"type": "Assigned", "message": "m"}]},
        });
        let expected = value.clone();
        value["metadata"]["managedFields"] = json!([]);
        assert_eq!(read(Kind::EgressIp, &value), expected);
    }

    #[test]
    fn endpoints_lose_what_no_election_asks_for() {
        let value = json!({
            "metadata": {"name": "a", "namespace": "b"},
            "addressType": "IPv4",
            "ports": [{"port": 80}],
            "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": "n", "targetRef": {"kind": "Pod"}, "zone": "z"}],
        });
        let slice = read(Kind::EndpointSlice, &value);
        assert_eq!(slice["endpoints"], json!([{"addresses": ["10.0.0.1"], "nodeName": "n"}]));
        assert_eq!(slice.get("ports"), None);
    }

    #[test]
    fn any_object_can_be_read() {
        for value in [
            json!({}),
            json!({"metadata": null, "spec": [7, {"ports": 1}], "status": "x"}),
            json!({"metadata": {"name": 7, "labels": [null], "annotations": "x"}, "endpoints": {"zone": 1}}),
        ] {
            for kind in Kind::ALL {
                assert_eq!(read(kind, &value)["kind"], kind.name());
            }
        }
        assert!(serde_json::from_str::<Stored>("[]").is_err());
    }

    #[test]
    fn every_kind_is_served_under_its_group_and_plural() {
        let paths = Kind::ALL.map(|kind| Stored::url_path(&Served::from(kind).api(), None));
        let expected = [
            "/api/v1/nodes",
            "/apis/k8s.ovn.org/v1/egressips",
            "/apis/k8s.ovn.org/v1/egressservices",
            "/api/v1/services",
            "/apis/discovery.k8s.io/v1/endpointslices",
            "/apis/cloud.network.openshift.io/v1/cloudprivateipconfigs",
        ];
        assert_eq!(paths, expected);
    }
}
