//! `egret explain node/NAME`: what the node holds, and what it could hold.

use egret_core::{Host, Node, Platform};
use egret_placement::{Explainer, Verdict, decide};
use serde::Serialize;

use super::{Answer, Reason, assumed_section, write};
use crate::args::Format;
use crate::cluster::{Cluster, find_node};
use crate::report::{Grid, Section, Style, Tone, cell, count, few, toned};

/// The explanation of a node, as machines read it.
#[derive(Debug, Serialize)]
struct NodeExplanation {
    /// The node.
    node: String,
    /// What is known of it.
    facts: Vec<String>,
    /// What it holds by the decision.
    holds: Vec<Held>,
    /// What it could hold as well.
    could_hold: Vec<Held>,
    /// Why it cannot hold the others.
    cannot_hold: Vec<Barred>,
    /// What was assumed.
    assumed: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Held {
    object: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// Where it is now; absent for what the node itself holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<String>,
}

#[derive(Debug, Serialize)]
struct Barred {
    count: usize,
    #[serde(flatten)]
    reason: Reason,
    objects: Vec<String>,
}

/// Explains one node.
pub(crate) fn run(cluster: &Cluster, name: &str, format: Format, style: Style) -> anyhow::Result<Answer> {
    let name = find_node(&cluster.snapshot, name)?;
    let node = &cluster.snapshot.nodes[&name];
    let explanation = explain(cluster, node);
    let text = write(&explanation, format, style, || sections(&explanation))?;
    Ok(Answer { text, positive: false })
}

fn explain(cluster: &Cluster, node: &Node) -> NodeExplanation {
    let snapshot = &cluster.snapshot;
    let decision = decide(snapshot);
    let explainer = Explainer::new(snapshot, &decision);
    let (mut holds, mut could_hold, mut cannot_hold) = (Vec::new(), Vec::new(), Vec::new());
    let mut sort = |object: String, address: Option<String>, now: Option<String>, verdict| match verdict {
        Verdict::Holds => holds.push(Held { object, address, now: None }),
        Verdict::Eligible { .. } => could_hold.push(Held { object, address, now }),
        Verdict::Excluded(reason) => bar(&mut cannot_hold, (&reason).into(), object),
    };
    for object in snapshot.egress_ips.values() {
        for address in &object.requested {
            let now = decision.outcome(&object.name, *address).and_then(|outcome| outcome.node());
            let verdict = explainer.node(object, *address, node);
            sort(format!("egressip/{}", object.name), Some(address.to_string()), now.map(ToString::to_string), verdict);
        }
    }
    for service in snapshot.egress_services.values() {
        let host = decision.egress_services.get(&service.key).map(egret_placement::ServiceOutcome::host);
        let verdict = match host {
            Some(Host::All) => Some(Verdict::Holds),
            _ => explainer.service(service).into_iter().find(|(name, _)| **name == node.name).map(|(_, v)| v),
        };
        let now = host.filter(|host| *host != Host::None).map(|host| host.to_string());
        if let Some(verdict) = verdict {
            sort(format!("egressservice/{}", service.key), None, now, verdict);
        }
    }
    NodeExplanation {
        node: node.name.to_string(),
        facts: facts(node, &explainer, snapshot.options.platform),
        holds,
        could_hold,
        cannot_hold,
        assumed: cluster.assumed.clone(),
    }
}

fn bar(barred: &mut Vec<Barred>, reason: Reason, object: String) {
    match barred.iter_mut().find(|group| group.reason.text == reason.text) {
        Some(group) => {
            group.count += 1;
            if group.objects.last() != Some(&object) {
                group.objects.push(object);
            }
        }
        None => barred.push(Barred { count: 1, reason, objects: vec![object] }),
    }
}

fn facts(node: &Node, explainer: &Explainer<'_>, platform: Platform) -> Vec<String> {
    let mut facts = vec![explainer.fitness(node).map_or_else(
        || "takes egress IPs".to_owned(),
        |reason| format!("takes no new egress IP: {}", Reason::from(&reason).line()),
    )];
    if let Ok(network) = &node.network {
        let list = |nets: &[egret_core::IpNet]| nets.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        facts.push(format!("primary network {}", list(network.primary())));
        if !network.secondary().is_empty() {
            facts.push(format!("secondary networks {}", list(network.secondary())));
        }
    }
    if platform == Platform::Cloud {
        facts.push(format!("room for {}", free(node, explainer.free(node))));
    }
    facts
}

/// How many more addresses a node may take: `3` of either family, `3 IPv4, no limit IPv6`, or `-` where that is not known.
pub(crate) fn free(node: &Node, free: [Option<u32>; 2]) -> String {
    let text = |free: Option<u32>| free.map_or_else(|| "no limit".to_owned(), |free| free.to_string());
    let joint = node.capacity.v4.is_none() && node.capacity.v6.is_none();
    match free {
        _ if node.network.is_err() => "-".to_owned(),
        [Some(either), _] if joint => either.to_string(),
        [None, None] => "no limit".to_owned(),
        [v4, v6] => format!("{} IPv4, {} IPv6", text(v4), text(v6)),
    }
}

/// More than a screen of what a node holds or could hold helps nobody.
const SHOWN: usize = 40;

fn sections(explanation: &NodeExplanation) -> Vec<Section> {
    let mut sections = vec![Section::new(format!("node/{}", explanation.node)).notes(explanation.facts.clone())];
    let held = |title: &str, list: &[Held], now: bool| {
        let mut grid = Grid::new(&["OBJECT", "ADDRESS", "NOW ON"]);
        for held in list.iter().take(SHOWN) {
            let address = held.address.clone().unwrap_or_default();
            let here = if now { held.now.clone().unwrap_or_else(|| "-".to_owned()) } else { String::new() };
            grid.row([cell(&held.object), toned(address, Tone::Good), cell(here)]);
        }
        let mut section = Section::new(format!("{title} ({})", list.len()));
        if let Some(more) = list.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            section = section.note(format!("the first {SHOWN}; {more} more with -o json"));
        }
        if list.is_empty() { section.note("nothing") } else { section.grid(grid) }
    };
    sections.push(held("HOLDS", &explanation.holds, false));
    sections.push(held("COULD HOLD", &explanation.could_hold, true));
    let mut grid = Grid::new(&["COUNT", "WHY NOT", "OBJECTS"]);
    for barred in &explanation.cannot_hold {
        let objects = few(barred.objects.iter().map(String::as_str));
        grid.row([cell(barred.count.to_string()), cell(barred.reason.line()), cell(objects)]);
    }
    if !explanation.cannot_hold.is_empty() {
        let total = explanation.cannot_hold.iter().map(|barred| barred.count).sum();
        sections.push(Section::new(format!("CANNOT HOLD ({})", count(total, "item"))).grid(grid));
    }
    sections.push(assumed_section(&explanation.assumed));
    sections
}
