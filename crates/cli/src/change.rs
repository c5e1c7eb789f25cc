//! The changes of a plan: from the cluster that is to the cluster that would be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use egret_api::{Inserted, Kind, Manifests, ObjectKey};
use egret_core::{Node, NodeName, Reachability, Selector, Snapshot};
use egret_placement::Decision;

use crate::args::ChangeArgs;
use crate::cluster::{Cluster, Refusal, find_node};
use crate::input::{Origin, Progress, Source, load};
use crate::nearest::did_you_mean;

/// One label to set or to remove.
struct Label {
    node: NodeName,
    key: String,
    value: Option<String>,
}

/// The snapshot after all `changes`, with `settled` as its recorded state, and a line for each change.
///
/// # Errors
/// If a change names what is not there, or does not say what it should. Faulty files become diagnostics of `cluster`.
pub(crate) fn change(
    cluster: &mut Cluster,
    changes: &ChangeArgs,
    settled: &Decision,
    progress: &dyn Progress,
) -> Result<(Snapshot, Vec<String>), Refusal> {
    let mut told = Vec::new();
    let mut manifests = cluster.manifests.clone();
    let origins = apply(cluster, changes, &mut manifests, &mut told, progress)?;
    refuse_contradictions(changes)?;
    delete(changes, &mut manifests, &mut told)?;
    let mut snapshot = cluster.observe(&manifests, &origins);
    settled.record(&mut snapshot);
    for label in labels(&snapshot, &changes.label)? {
        told.push(match &label.value {
            Some(value) => format!("label node/{} {}={value}", label.node, label.key),
            None => format!("label node/{} {}-", label.node, label.key),
        });
        if let Some(node) = snapshot.nodes.get_mut(&label.node) {
            let labels = Arc::make_mut(&mut node.labels);
            match label.value {
                Some(value) => labels.insert(label.key, value),
                None => labels.remove(&label.key),
            };
        }
    }
    on_nodes(&mut snapshot, &mut told, "drained", &changes.drain, |node| node.drained = true)?;
    on_nodes(&mut snapshot, &mut told, "not Ready", &changes.not_ready, |node| node.ready = false)?;
    on_nodes(&mut snapshot, &mut told, "unreachable", &changes.unreachable, |node| {
        node.reachability = Reachability::Unreachable;
    })?;
    Ok((snapshot, told))
}

fn on_nodes(
    snapshot: &mut Snapshot,
    told: &mut Vec<String>,
    word: &str,
    names: &[String],
    effect: impl Fn(&mut Node),
) -> Result<(), Refusal> {
    for name in names.iter().collect::<BTreeSet<_>>() {
        let name = find_node(snapshot, name)?;
        if let Some(node) = snapshot.nodes.get_mut(&name) {
            effect(node);
        }
        told.push(format!("node/{name} {word}"));
    }
    Ok(())
}

fn apply(
    cluster: &mut Cluster,
    changes: &ChangeArgs,
    manifests: &mut Manifests,
    told: &mut Vec<String>,
    progress: &dyn Progress,
) -> Result<BTreeMap<ObjectKey, Origin>, Refusal> {
    if changes.apply.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sources: Vec<Source> = changes.apply.iter().cloned().map(Source::from).collect();
    let loaded = load(&sources, progress);
    let unreadable = loaded.has_errors() && loaded.manifests.is_empty();
    cluster.diagnostics.extend(loaded.diagnostics);
    if unreadable {
        return Err(Refusal::Nothing { what: "what is to be applied has" });
    }
    for (kind, count) in loaded.ignored {
        *cluster.ignored.entry(kind).or_default() += count;
    }
    for (key, value) in loaded.manifests.iter() {
        let before = manifests.get(key).cloned();
        // What was loaded says what it is, so it can be stored.
        if !matches!(manifests.apply(value.clone()), Ok(Inserted::Known(_))) {
            continue;
        }
        if makes_sense(cluster, manifests, key, &loaded.origins) {
            told.push(format!("{} {key}", if before.is_some() { "apply" } else { "create" }));
            continue;
        }
        // An API server would refuse it and keep what it has.
        manifests.remove(key);
        if let Some(before) = before {
            let kept = manifests.insert(before);
            debug_assert!(kept.is_ok(), "it was stored before");
        }
    }
    Ok(loaded.origins)
}

/// A node that is deleted cannot be changed as well.
fn refuse_contradictions(changes: &ChangeArgs) -> Result<(), Refusal> {
    let nodes = changes.label.iter().step_by(2).chain(&changes.drain).chain(&changes.not_ready);
    for name in nodes.chain(&changes.unreachable) {
        let node = ObjectKey::cluster(Kind::Node, name.strip_prefix("node/").unwrap_or(name));
        if changes.delete.iter().any(|deleted| object_key(deleted).is_ok_and(|key| key == node)) {
            let why = "the same plan deletes it; leave one of the two away".to_owned();
            return Err(Refusal::BadText { text: node.to_string(), why });
        }
    }
    Ok(())
}

/// Whether an object can be read as what it says it is; its faults become diagnostics in any case.
fn makes_sense(
    cluster: &mut Cluster,
    manifests: &Manifests,
    key: &ObjectKey,
    origins: &BTreeMap<ObjectKey, Origin>,
) -> bool {
    let mut alone = Manifests::default();
    if let Some(value) = manifests.get(key) {
        let stored = alone.insert(value.clone());
        debug_assert!(stored.is_ok(), "it was stored before");
    }
    let Snapshot { nodes, egress_ips, egress_services, services, cloud, .. } = cluster.observe(&alone, origins);
    match key.kind {
        Kind::Node => !nodes.is_empty(),
        Kind::EgressIp => !egress_ips.is_empty(),
        Kind::EgressService => !egress_services.is_empty(),
        Kind::Service => !services.is_empty(),
        Kind::CloudPrivateIpConfig => !cloud.is_empty(),
        // One without endpoints leaves nothing behind in a snapshot.
        Kind::EndpointSlice => true,
    }
}

fn delete(changes: &ChangeArgs, manifests: &mut Manifests, told: &mut Vec<String>) -> Result<(), Refusal> {
    for text in changes.delete.iter().collect::<BTreeSet<_>>() {
        let key = object_key(text)?;
        if manifests.remove(&key).is_none() {
            let (kind, name) = text.split_once('/').unwrap_or(("", text));
            let kinship = |other: &&ObjectKey| other.kind == key.kind;
            let names: Vec<String> = manifests.keys().filter(kinship).map(name_of).collect();
            let hint = did_you_mean(name, names.iter().map(String::as_str));
            return Err(Refusal::NotFound { kind: kind.to_owned(), name: name.to_owned(), hint });
        }
        told.push(format!("delete {key}"));
    }
    Ok(())
}

/// `name`, or `namespace/name`.
pub(crate) fn name_of(key: &ObjectKey) -> String {
    match &key.namespace {
        Some(namespace) => format!("{namespace}/{}", key.name),
        None => key.name.clone(),
    }
}

/// Reads `KIND/NAME` or `KIND/NAMESPACE/NAME`.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn object_key(text: &str) -> Result<ObjectKey, Refusal> {
    let bad = |why: String| Refusal::BadText { text: text.to_owned(), why };
    let Some((kind, name)) = text.split_once('/') else {
        return Err(bad("write KIND/NAME, for example egressip/tenant-a".to_owned()));
    };
    let known = Kind::parse(kind).ok_or_else(|| {
        let hint = did_you_mean(kind, Kind::ALL.into_iter().map(Kind::as_str));
        bad(format!("{kind:?} is no kind that Egret reads{hint}"))
    })?;
    match (known.namespaced(), name.split_once('/')) {
        (true, Some((namespace, name))) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(ObjectKey::namespaced(known, namespace, name))
        }
        (true, _) => Err(bad(format!("a {known} has a namespace; write {known}/NAMESPACE/NAME"))),
        (false, None) if !name.is_empty() => Ok(ObjectKey::cluster(known, name)),
        (false, _) => Err(bad(format!("a {known} has no namespace; write {known}/NAME"))),
    }
}

fn labels(snapshot: &Snapshot, texts: &[String]) -> Result<Vec<Label>, Refusal> {
    texts.chunks(2).map(|pair| label(snapshot, &pair[0], pair.get(1).map_or("", String::as_str))).collect()
}

fn label(snapshot: &Snapshot, node: &str, text: &str) -> Result<Label, Refusal> {
    let bad = |text: &str, why: String| Refusal::BadText { text: text.to_owned(), why };
    let key = object_key(node).ok().filter(|key| key.kind == Kind::Node);
    let Some(key) = key else {
        return Err(bad(node, "only the labels of nodes decide anything; write node/NAME".to_owned()));
    };
    let node = find_node(snapshot, &key.name)?;
    let (key, value) = match (text.split_once('='), text.strip_suffix('-')) {
        (Some((key, value)), _) => (key, Some(value)),
        (None, Some(key)) => (key, None),
        (None, None) => return Err(bad(text, "write KEY=VALUE to set a label or KEY- to remove it".to_owned())),
    };
    if let Err(faults) = Selector::compile([(key, value.unwrap_or_default())], []) {
        return Err(bad(text, faults.into_iter().map(|fault| fault.reason).collect::<Vec<_>>().join("; ")));
    }
    Ok(Label { node, key: key.to_owned(), value: value.map(str::to_owned) })
}
