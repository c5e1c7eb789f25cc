//! What must hold of every write of the controller.

use std::collections::BTreeSet;

use egret_api::{Kind, ObjectKey};
use egret_testkit::world::items;
use serde_json::Value;

use crate::cluster::confirms;
use crate::store::{MARK, Store};

/// An EgressIP before and after a write of ours. What others wrote into statuses is not our doing.
pub(crate) fn egress_ip(
    store: &Store,
    key: &ObjectKey,
    before: &Value,
    after: &Value,
    by_hand: &BTreeSet<ObjectKey>,
    cloud: bool,
) {
    let (had, has) = (items(before), items(after));
    for (address, node) in has.iter().filter(|item| !had.contains(item)) {
        for (other, object) in store.of(Kind::EgressIp).filter(|(other, _)| *other != key && !by_hand.contains(other)) {
            let theirs = items(object).into_iter().any(|(held, _)| held == *address);
            assert!(!theirs, "{address} is given to {key} on {node} while {other} has it");
        }
        assert!(!cloud || confirms(store, address, node, &key.name), "{address} on {node}: not the cloud's word");
    }
    if has != had {
        let addresses: BTreeSet<_> = has.iter().map(|(address, _)| address).collect();
        let nodes: BTreeSet<_> = has.iter().map(|(_, node)| node).collect();
        assert_eq!((addresses.len(), nodes.len()), (has.len(), has.len()), "{key}: {has:?}");
    }
    let others = |object: &Value| {
        let mut object = object.clone();
        object.as_object_mut().unwrap().remove("status");
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.remove("resourceVersion");
        metadata.get_mut("annotations").and_then(Value::as_object_mut).map(|annotations| annotations.remove(MARK));
        object
    };
    assert_eq!(others(before), others(after), "{key}: nothing else is touched");
    let mark = |object: &Value| object["metadata"]["annotations"][MARK].as_str().and_then(|mark| mark.parse().ok());
    let legal = |mark: &u32| (50_000..55_000).contains(mark);
    if let Some(mark) = mark(after).filter(|_| mark(before) != mark(after)) {
        assert!(legal(&mark), "{key}: {mark}");
    }
}

/// A request to the cloud that is about to be changed or withdrawn.
pub(crate) fn request(store: &Store, key: &ObjectKey, by_hand: &BTreeSet<ObjectKey>) {
    for (holder, object) in store.of(Kind::EgressIp).filter(|(holder, _)| !by_hand.contains(*holder)) {
        let shown = items(object).into_iter().any(|(address, _)| address == key.name);
        assert!(!shown, "the request for {} changes while {holder} shows it", key.name);
    }
}
