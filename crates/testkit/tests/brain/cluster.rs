//! What users, nodes and the cloud do.

use egret_api::annotation::egress_ip_owner;
use egret_api::{Kind, ObjectKey};
use serde_json::{Value, json};

use crate::drawn::Drawn;
use crate::store::{MARK, Store};

const NODES: usize = 5;
const OBJECTS: usize = 6;
const ADDRESSES: usize = 8;
const ASSIGNABLE: &str = "k8s.ovn.org/egress-assignable";

pub(crate) fn node_key(name: &str) -> ObjectKey {
    ObjectKey::cluster(Kind::Node, name)
}

fn any_node(drawn: &mut Drawn) -> String {
    format!("n{}", drawn.below(NODES))
}

fn any_egress_ip(drawn: &mut Drawn) -> ObjectKey {
    ObjectKey::cluster(Kind::EgressIp, &format!("e{}", drawn.below(OBJECTS)))
}

fn any_address(drawn: &mut Drawn) -> String {
    format!("10.0.0.{}", 100 + drawn.below(ADDRESSES))
}

/// A few nodes and objects.
pub(crate) fn populate(store: &mut Store, drawn: &mut Drawn) {
    for number in 0..NODES {
        if !drawn.one_in(5) {
            put_node(store, &format!("n{number}"), drawn);
        }
    }
    for _ in 0..OBJECTS {
        let key = any_egress_ip(drawn);
        put_egress_ip(store, &key, drawn);
    }
}

fn put_node(store: &mut Store, name: &str, drawn: &mut Drawn) {
    let last = 1 + name[1..].parse::<u8>().unwrap();
    let capacity = drawn.of(&[r#"{"ipv4":0}"#, r#"{"ipv4":2}"#, r#"{"ipv4":2}"#, "{}"]);
    let mut labels = json!({"pool": drawn.of(&["a", "b"])});
    if !drawn.one_in(4) {
        labels[ASSIGNABLE] = json!("");
    }
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {
            "k8s.ovn.org/node-primary-ifaddr": format!(r#"{{"ipv4":"10.0.0.{last}/24"}}"#),
            "k8s.ovn.org/host-cidrs": format!(r#"["10.0.0.{last}/24"]"#),
            "k8s.ovn.org/node-subnets": format!(r#"{{"default":"10.128.{last}.0/24"}}"#),
            "cloud.network.openshift.io/egress-ipconfig":
                format!(r#"[{{"interface":"i","ifaddr":{{"ipv4":"10.0.0.0/24"}},"capacity":{capacity}}}]"#),
        }},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    store.put(&node_key(name), node);
}

fn put_egress_ip(store: &mut Store, key: &ObjectKey, drawn: &mut Drawn) {
    let mut addresses: Vec<String> = (0..=drawn.below(3)).map(|_| any_address(drawn)).collect();
    addresses.sort();
    addresses.dedup();
    let spec = json!({"egressIPs": addresses, "namespaceSelector": {}, "egressNodeSelector": selector(drawn)});
    let object = match store.objects.get(key) {
        Some(stored) => {
            let mut object = stored.clone();
            object["spec"] = spec;
            object
        }
        None => json!({
            "apiVersion": "k8s.ovn.org/v1", "kind": "EgressIP",
            "metadata": {"name": key.name, "annotations": {"example.com/mine": "x"}}, "spec": spec,
        }),
    };
    store.put(key, object);
}

fn selector(drawn: &mut Drawn) -> Value {
    match drawn.below(6) {
        0 => json!({"matchLabels": {"pool": "a"}}),
        1 => json!({"matchLabels": {"pool": "b"}}),
        2 => json!({}),
        3 if drawn.one_in(4) => json!({"matchExpressions": [{"key": "pool", "operator": "In"}]}),
        _ => json!({"matchExpressions": [{"key": ASSIGNABLE, "operator": "Exists"}]}),
    }
}

/// Somebody changes something. Returns the EgressIP whose status, or the request to the cloud that is not the controller's
/// any more.
pub(crate) fn change(store: &mut Store, drawn: &mut Drawn, by_hand: bool) -> Option<ObjectKey> {
    match drawn.below(if by_hand { 12 } else { 9 }) {
        0 => {
            let key = any_egress_ip(drawn);
            store.remove(&key);
        }
        1..=3 => {
            let key = any_egress_ip(drawn);
            put_egress_ip(store, &key, drawn);
        }
        4 => {
            let name = any_node(drawn);
            if drawn.one_in(3) { store.remove(&node_key(&name)) } else { put_node(store, &name, drawn) }
        }
        5 | 6 => edit(store, &node_key(&any_node(drawn)), |node| {
            let ready = if drawn.one_in(3) { "False" } else { "True" };
            node["status"]["conditions"][0]["status"] = json!(ready);
        }),
        7 => edit(store, &any_egress_ip(drawn), |object| {
            object["metadata"]["annotations"]["example.com/mine"] = json!(drawn.below(9).to_string());
        }),
        8 => edit(store, &any_egress_ip(drawn), |object| {
            object["metadata"]["annotations"][MARK] = json!(drawn.of(&["50000", "garbage", "50001"]));
        }),
        9 => {
            let key = ObjectKey::cluster(Kind::CloudPrivateIpConfig, &any_address(drawn));
            let node = any_node(drawn);
            if drawn.one_in(3) {
                store.remove(&key);
            } else {
                edit(store, &key, |object| object["spec"]["node"] = json!(node));
            }
            return Some(key);
        }
        _ => {
            let key = any_egress_ip(drawn);
            let items: Vec<Value> =
                (0..drawn.below(3)).map(|_| json!({"egressIP": any_address(drawn), "node": any_node(drawn)})).collect();
            edit(store, &key, |object| object["status"] = json!({"items": items}));
            return Some(key);
        }
    }
    None
}

fn edit(store: &mut Store, key: &ObjectKey, change: impl FnOnce(&mut Value)) {
    if let Some(mut object) = store.objects.get(key).cloned() {
        change(&mut object);
        store.put(key, object);
    }
}

/// The requests that the cloud has not answered.
pub(crate) fn open_requests(store: &Store) -> Vec<ObjectKey> {
    let requests = store.of(Kind::CloudPrivateIpConfig);
    requests
        .filter(|(_, object)| object["status"]["node"] != object["spec"]["node"])
        .map(|(key, _)| key.clone())
        .collect()
}

/// The cloud answers one.
pub(crate) fn answer(store: &mut Store, key: &ObjectKey, assigned: bool) {
    edit(store, key, |object| {
        let status = if assigned { "True" } else { "False" };
        object["status"] = json!({
            "node": object["spec"]["node"],
            "conditions": [{"type": "Assigned", "status": status, "reason": "Cloud", "message": ""}],
        });
    });
}

/// Whether the cloud has confirmed an address on a node for an object.
pub(crate) fn confirms(store: &Store, address: &str, node: &str, owner: &str) -> bool {
    let key = ObjectKey::cluster(Kind::CloudPrivateIpConfig, address);
    store.objects.get(&key).is_some_and(|object| {
        object["spec"]["node"] == node
            && object["status"]["node"] == node
            && object["status"]["conditions"][0]["status"] == "True"
            && object["metadata"]["annotations"][egress_ip_owner::KEY] == owner
    })
}
