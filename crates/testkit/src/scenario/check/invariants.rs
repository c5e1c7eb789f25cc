//! What must hold after every step, whatever the step expects.

use std::collections::{BTreeMap, BTreeSet};

use egret_api::{Kind, ObjectKey};
use serde_json::Value;

use super::super::op::Op;
use super::super::tally::Tally;
use super::Scene;
use super::replay::canonical;
use crate::world::{State, controllers_part};

pub(super) fn check(scene: &Scene<'_>, tally: &mut Tally) {
    let mut fail = |what: &str, expected: &str, found: &Vec<String>| {
        if !found.is_empty() {
            tally.fail(format!("invariant: {what}"), expected.to_owned(), found.join("; "));
        }
    };
    fail("one owner of an address, one address of an object on a node", "at the end of the step", &doubled(scene.now));
    fail("one owner of an address, one address of an object on a node", "in every version", &scene.replay.doubled);
    if scene.cloud {
        fail(
            "status goes down before the cloud is asked to move",
            "in every version",
            &scene.replay.changed_while_in_status,
        );
        fail("status goes up when the cloud has confirmed it", "in every version", &scene.replay.unconfirmed);
    }
    // Between several changes the controller may see only some of them.
    if scene.op.parts().len() <= 1 {
        fail("no intermediate node", "each address on its old and its new node only", &detours(scene));
        fail("what need not change is not written", "no write", &needless(scene));
    }
    fail("events name the object's uid", "a uid of the object", &strangers(scene));
    fail("events are not repeated while nothing changes", "one of each", &repeated(scene));
}

/// No address is held twice, and no node holds two addresses of one object.
fn doubled(state: &State) -> Vec<String> {
    let (mut holders, mut faults): (BTreeMap<String, String>, _) = (BTreeMap::new(), Vec::new());
    for (name, items) in state.statuses() {
        let nodes: BTreeSet<&String> = items.iter().map(|(_, node)| node).collect();
        if nodes.len() < items.len() {
            faults.push(format!("{name}: {items:?}"));
        }
        for (address, _) in &items {
            if let Some(other) = holders.insert(canonical(address), name.clone()) {
                faults.push(format!("{address} is held by {other} and {name}"));
            }
        }
    }
    faults
}

/// Addresses that were on a node other than their old and their new one on the way.
fn detours(scene: &Scene<'_>) -> Vec<String> {
    let nodes = |state: &State| {
        let mut nodes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (address, node) in state.statuses().into_values().flatten() {
            nodes.entry(canonical(&address)).or_default().insert(node);
        }
        nodes
    };
    let (before, now) = (nodes(scene.before), nodes(scene.now));
    let known = |address: &str, node: &String| {
        [&before, &now].iter().any(|nodes| nodes.get(address).is_some_and(|nodes| nodes.contains(node)))
    };
    let seen: BTreeSet<(String, String)> =
        scene.replay.pairs.values().flatten().map(|(address, node)| (canonical(address), node.clone())).collect();
    let strays = seen.into_iter().filter(|(address, node)| !known(address, node));
    strays.map(|(address, node)| format!("{address} was on {node}")).collect()
}

/// Objects that the controller wrote, or tried to, though their part of it is the same as before and nobody else touched
/// that part.
fn needless(scene: &Scene<'_>) -> Vec<String> {
    let kept = |key: &ObjectKey| {
        let part = |object: &Value| (object["metadata"]["uid"].clone(), controllers_part(key, object));
        let [before, now] = [scene.before, scene.now].map(|state| state.get(key).map(part));
        before == now && !scene.replay.meddled.contains(key)
    };
    let tried = scene.history.attempts.iter().chain(scene.replay.stored.keys());
    let tried: BTreeSet<&ObjectKey> = tried.filter(|key| kept(key)).collect();
    tried.into_iter().map(ToString::to_string).collect()
}

/// Events whose uid is not that of an object of this name: `kubectl describe` does not find them.
fn strangers(scene: &Scene<'_>) -> Vec<String> {
    let raised = scene.history.raised.iter().filter(|raised| raised.kind == Kind::EgressIp.name());
    let strange = raised.filter(|raised| !scene.replay.uids.contains(&(raised.name.clone(), raised.uid.clone())));
    strange.map(|raised| format!("{raised:?}")).collect()
}

/// Events that were raised twice in a step, and those about an object that is in no respect other than before. A new
/// controller may say again what is wrong.
fn repeated(scene: &Scene<'_>) -> Vec<String> {
    let mut raised = scene.history.raised.clone();
    raised.sort_unstable();
    let mut faults: Vec<String> =
        raised.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| format!("twice {:?}", pair[0])).collect();
    let starts = matches!(scene.op, Op::Start {} | Op::Restart { .. });
    let same = |name: &str| {
        let key = ObjectKey::cluster(Kind::EgressIp, name);
        scene.before.get(&key).is_some() && scene.before.get(&key) == scene.now.get(&key)
    };
    if !starts && scene.op.parts().len() <= 1 {
        let again = raised.iter().filter(|raised| raised.kind == Kind::EgressIp.name() && same(&raised.name));
        faults.extend(again.map(|raised| format!("again {raised:?}")));
    }
    faults
}
