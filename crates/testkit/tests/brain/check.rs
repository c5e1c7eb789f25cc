//! What must hold of every write of the controller.

use std::collections::{BTreeMap, BTreeSet};

use egret_api::{Kind, ObjectKey};
use egret_testkit::world::items;
use serde_json::Value;

use crate::cluster::confirms;
use crate::store::{MARK, Store};

/// What others did that is not our doing.
#[derive(Default)]
pub(crate) struct Hands {
    /// Whose status they wrote.
    pub(crate) statuses: BTreeSet<ObjectKey>,
    /// Which requests to the cloud they changed or removed, and the last change that had been before.
    pub(crate) requests: BTreeMap<ObjectKey, usize>,
}

impl Hands {
    /// Whoever had been told so many changes of requests cannot know that this one is another now.
    fn are_secret(&self, address: &str, told: usize) -> bool {
        let key = ObjectKey::cluster(Kind::CloudPrivateIpConfig, address);
        self.requests.get(&key).is_some_and(|changed| *changed >= told)
    }
}

/// An EgressIP before and after a write of ours, which was decided when so many changes of requests had been told.
pub(crate) fn egress_ip(
    store: &Store,
    key: &ObjectKey,
    before: &Value,
    after: &Value,
    hands: &Hands,
    cloud: Option<usize>,
) {
    let (had, has) = (items(before), items(after));
    for (address, node) in has.iter().filter(|item| !had.contains(item)) {
        let others = store.of(Kind::EgressIp).filter(|(other, _)| *other != key && !hands.statuses.contains(other));
        for (other, object) in others {
            let theirs = items(object).into_iter().any(|(held, _)| held == *address);
            assert!(!theirs, "{address} is given to {key} on {node} while {other} has it");
        }
        let said = |told| confirms(store, address, node, &key.name) || hands.are_secret(address, told);
        assert!(cloud.is_none_or(said), "{address} on {node}: not the cloud's word");
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
pub(crate) fn request(store: &Store, key: &ObjectKey, hands: &Hands) {
    for (holder, object) in store.of(Kind::EgressIp).filter(|(holder, _)| !hands.statuses.contains(*holder)) {
        let shown = items(object).into_iter().any(|(address, _)| address == key.name);
        assert!(!shown, "the request for {} changes while {holder} shows it", key.name);
    }
}
