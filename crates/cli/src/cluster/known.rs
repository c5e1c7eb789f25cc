//! What the controller knows, put where decisions find it: the commands then decide as it does.

use std::collections::BTreeSet;

use egret_brain::View;
use egret_core::{Address, IpNet, NodeName, Reachability, Selector, Snapshot};
use egret_placement::probe_targets;

use crate::live::Known;
use crate::selector_text;

/// The nodes that it ignores.
pub(super) fn ignored(view: Option<&View>) -> Option<Selector> {
    view?.no_host_subnet.as_deref().and_then(|text| selector_text::parse(text).ok())
}

/// The networks of pods that it was told.
pub(super) fn subnets(view: Option<&View>) -> impl Iterator<Item = IpNet> {
    view.into_iter().flat_map(|view| &view.cluster_subnets).filter_map(|text| text.parse().ok())
}

/// Puts it into the snapshot.
///
/// A node that nobody has a reason to probe yet is taken to answer: if a change gives a reason, its first probe comes at
/// once, and what would happen then is what a plan is asked for.
pub(super) fn put_in(view: &View, snapshot: &mut Snapshot) {
    let targets = probe_targets(snapshot, &BTreeSet::new());
    for node in snapshot.nodes.values_mut() {
        let known = view.reachability.get(node.name.as_str()).copied().map(Reachability::from);
        node.reachability = match known {
            Some(Reachability::NotProbed) if !targets.contains(&node.name) => Reachability::Reachable,
            Some(known) => known,
            None => Reachability::Reachable,
        };
    }
    let pair = |address: &str, node: &str| Some((Address::parse(address).ok()?, NodeName::from(node)));
    snapshot.departed = view.departed.iter().filter_map(|gone| pair(&gone.address, &gone.node)).collect();
    snapshot.refused = view.refused.iter().filter_map(|rest| pair(&rest.address, &rest.node)).collect();
}

/// What an answer says of it.
pub(super) fn in_words(known: &Known, but: &str) -> String {
    let Known { from, view } = known;
    let reach = if view.probing {
        format!("nodes{but} answer probes as {from} knows")
    } else {
        format!("every Ready node{but} counts as reachable, for {from} does not probe")
    };
    match &view.mass_silence {
        None => reach,
        Some(silence) => format!(
            "{reach}; {} nodes fell silent at once {} s ago, and nothing is moved for it (mass silence {})",
            silence.nodes.len(),
            silence.seconds,
            silence.number
        ),
    }
}
