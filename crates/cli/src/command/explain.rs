//! `egret explain`: why here, and why not elsewhere.

use egret_api::{Kind, ObjectKey};
use egret_core::{Address, EgressIp, EgressService, NodeName, ServiceKey, Snapshot, SourceIpBy};
use egret_placement::{Decision, Explainer, Outcome, ServiceOutcome, Verdict, decide, event_reasons};
use serde::Serialize;

use super::{Answer, Reason, assumed_section, explain_node, unassigned, write};
use crate::args::ExplainArgs;
use crate::change::{name_of, object_key};
use crate::cluster::{Cluster, Refusal};
use crate::nearest::did_you_mean;
use crate::report::{Grid, Section, Style, Tone, cell, count, few, toned};

/// The explanation of an EgressIP or an EgressService, as machines read it.
#[derive(Debug, Serialize)]
struct Explanation {
    /// The object.
    object: String,
    /// What it asks of nodes.
    selector: String,
    /// The source of a service's traffic, and the network it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    way_out: Option<String>,
    /// One entry an address; for a service one entry.
    items: Vec<Item>,
    /// What was assumed.
    assumed: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Item {
    /// The address; absent for a service.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// The node that the status names.
    recorded: Option<String>,
    /// The node by the decision.
    node: Option<String>,
    /// Why it is so.
    reason: Reason,
    /// What every other node is to it: nodes with the same answer together.
    others: Vec<Group>,
}

#[derive(Debug, Serialize)]
struct Group {
    /// How many nodes.
    count: usize,
    /// Whether they could take it.
    eligible: bool,
    /// Why they cannot, or why they were not chosen.
    #[serde(flatten)]
    reason: Reason,
    /// Their names.
    nodes: Vec<String>,
}

/// Explains what the command line names.
pub(crate) fn run(cluster: &Cluster, args: &ExplainArgs, style: Style) -> anyhow::Result<Answer> {
    let key = object_key(&args.object)?;
    if let Some(ip) = args.ip.as_ref().filter(|_| key.kind != Kind::EgressIp) {
        let why = "only an EgressIP has addresses to choose from".to_owned();
        return Err(Refusal::BadText { text: format!("--ip {ip}"), why }.into());
    }
    if key.kind == Kind::Node {
        return explain_node::run(cluster, &key.name, args.output, style);
    }
    let decision = decide(&cluster.snapshot);
    let explanation = explain(cluster, &decision, &key, args.ip.as_deref())?;
    let text = write(&explanation, args.output, style, || sections(&explanation))?;
    Ok(Answer { text, positive: false })
}

fn explain(cluster: &Cluster, decision: &Decision, key: &ObjectKey, ip: Option<&str>) -> Result<Explanation, Refusal> {
    let snapshot = &cluster.snapshot;
    let explainer = Explainer::new(snapshot, decision);
    let bad = |text: &str, why: &str| Refusal::BadText { text: text.to_owned(), why: why.to_owned() };
    let (selector, way_out, items) = match key.kind {
        Kind::EgressIp => {
            let object = snapshot.egress_ips.get(&key.name.as_str().into()).ok_or_else(|| not_found(snapshot, key))?;
            let only = ip.map(|ip| Address::parse(ip).map_err(|fault| bad(ip, &fault.to_string()))).transpose()?;
            if let Some(only) = only
                && !object.requested.contains(&only)
            {
                let asked: Vec<String> = object.requested.iter().map(ToString::to_string).collect();
                let (object, address) = (key.to_string(), only.to_string());
                return Err(Refusal::NotAsked { object, address, asked: asked.join(", ") });
            }
            (object.selector.to_string(), None, addresses(snapshot, decision, &explainer, object, only))
        }
        Kind::EgressService => {
            let service = ServiceKey::new(key.namespace.as_deref().unwrap_or_default(), &key.name);
            let object = snapshot.egress_services.get(&service).ok_or_else(|| not_found(snapshot, key))?;
            (object.selector.to_string(), Some(way_out(object)), vec![service_item(decision, &explainer, object)])
        }
        _ => return Err(bad(&key.to_string(), "explain an egressip, an egressservice or a node")),
    };
    Ok(Explanation { object: key.to_string(), selector, way_out, items, assumed: cluster.assumed.clone() })
}

fn not_found(snapshot: &Snapshot, key: &ObjectKey) -> Refusal {
    let names: Vec<String> = match key.kind {
        Kind::EgressIp => snapshot.egress_ips.keys().map(ToString::to_string).collect(),
        _ => snapshot.egress_services.keys().map(ToString::to_string).collect(),
    };
    let hint = did_you_mean(&name_of(key), names.iter().map(String::as_str));
    Refusal::NotFound { kind: key.kind.to_string(), name: name_of(key), hint }
}

fn addresses(
    snapshot: &Snapshot,
    decision: &Decision,
    explainer: &Explainer<'_>,
    object: &EgressIp,
    only: Option<Address>,
) -> Vec<Item> {
    let outcomes = decision.egress_ips.get(&object.name).map_or(&[][..], Vec::as_slice);
    let reasons = event_reasons(snapshot, decision, &object.name);
    let unassigned = unassigned(explainer, object, outcomes, &reasons);
    let why = |text: &str| unassigned.iter().find(|line| line.address == text).map(|line| line.reason.clone());
    let mut items = Vec::new();
    for invalid in object.invalid.iter().filter(|_| only.is_none()) {
        let reason = why(&invalid.text).unwrap_or_else(|| placed_reason(&[], None, 0));
        items.push(Item {
            address: Some(invalid.text.clone()),
            recorded: None,
            node: None,
            reason,
            others: Vec::new(),
        });
    }
    for (address, outcome) in outcomes.iter().filter(|(address, _)| only.is_none_or(|only| only == *address)) {
        // What is refused for itself no node could take.
        let refused = matches!(outcome, Outcome::Refused(_));
        let verdicts = if refused { Vec::new() } else { explainer.address(object, *address) };
        let node = outcome.node();
        let recorded: Vec<&str> =
            object.recorded.iter().filter(|item| item.address == *address).map(|item| item.node.as_str()).collect();
        let reason = match outcome {
            Outcome::Kept(_) => kept_reason(),
            Outcome::Placed(node) => placed_reason(&verdicts, Some(node), explainer.load(node)),
            Outcome::Refused(_) | Outcome::Unplaced => {
                why(&address.to_string()).unwrap_or_else(|| placed_reason(&[], None, 0))
            }
        };
        items.push(Item {
            address: Some(address.to_string()),
            recorded: (!recorded.is_empty()).then(|| recorded.join(", ")),
            node: node.map(ToString::to_string),
            reason,
            others: groups(verdicts, "addresses", matches!(outcome, Outcome::Kept(_)), node.is_some()),
        });
    }
    items
}

fn kept_reason() -> Reason {
    let text = "the recorded assignment is valid, and a valid assignment never moves".to_owned();
    Reason { name: "Kept", rule: Some("C1"), text }
}

fn placed_reason(verdicts: &[(&NodeName, Verdict)], node: Option<&NodeName>, load: u32) -> Reason {
    let eligible = verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Eligible { .. })).count();
    let text = match (node, eligible) {
        (None, _) => "it has no node".to_owned(),
        (Some(_), 0) => "the only node that can take it".to_owned(),
        (Some(_), others) => format!(
            "the least loaded of {} when it was placed, or the winner of the stable hash among equals; it holds {load} then",
            count(others + 1, "eligible node")
        ),
    };
    Reason { name: "Placed", rule: Some("C2"), text }
}

fn service_item(decision: &Decision, explainer: &Explainer<'_>, object: &EgressService) -> Item {
    let verdicts = explainer.service(object);
    let outcome = decision.egress_services.get(&object.key);
    let reason = match outcome {
        Some(ServiceOutcome::Kept(_)) => Reason {
            name: "Kept",
            rule: Some("S5"),
            text: "the recorded host is valid, and a valid host stays".to_owned(),
        },
        Some(ServiceOutcome::Elected(_)) => Reason {
            name: "Elected",
            rule: Some("S6"),
            text: "the one that hosts the fewest services, or the winner of the stable hash among equals".to_owned(),
        },
        Some(ServiceOutcome::All) => {
            Reason { name: "All", rule: Some("S2"), text: "with sourceIPBy: Network every node hosts it".to_owned() }
        }
        Some(ServiceOutcome::None(reason)) => {
            Reason { name: reason.name(), rule: Some(reason.rule()), text: reason.to_string() }
        }
        None => Reason { name: "Unknown", rule: None, text: "nothing was decided".to_owned() },
    };
    let host = |host: egret_core::Host| (host != egret_core::Host::None).then(|| host.to_string());
    let node = outcome.map(ServiceOutcome::host).and_then(host);
    let judged =
        matches!(outcome, Some(ServiceOutcome::Kept(_) | ServiceOutcome::Elected(_) | ServiceOutcome::None(_)));
    let kept = matches!(outcome, Some(ServiceOutcome::Kept(_)));
    let hosted = node.is_some();
    let others = if judged { groups(verdicts, "services", kept, hosted) } else { Vec::new() };
    Item { address: None, recorded: host(object.recorded.clone()), node, reason, others }
}

/// Nodes with the same answer together: eligible ones first, then by the order of the rules.
fn groups(verdicts: Vec<(&NodeName, Verdict)>, word: &str, kept: bool, placed: bool) -> Vec<Group> {
    let loads: Vec<u32> = verdicts
        .iter()
        .filter_map(|(_, verdict)| match verdict {
            Verdict::Eligible { load } => Some(*load),
            Verdict::Holds | Verdict::Excluded(_) => None,
        })
        .collect();
    let mut groups: Vec<Group> = Vec::new();
    for (node, verdict) in verdicts {
        let (eligible, reason) = match verdict {
            Verdict::Holds => continue,
            Verdict::Excluded(reason) => (false, (&reason).into()),
            Verdict::Eligible { .. } => (true, eligible(&loads, word, kept, placed)),
        };
        match groups.iter_mut().find(|group| group.eligible == eligible && group.reason.text == reason.text) {
            Some(group) => group.nodes.push(node.to_string()),
            None => groups.push(Group { count: 0, eligible, reason, nodes: vec![node.to_string()] }),
        }
    }
    for group in &mut groups {
        group.count = group.nodes.len();
    }
    groups.sort_by(|a, b| (!a.eligible, a.reason.rule).cmp(&(!b.eligible, b.reason.rule)));
    groups
}

/// Why nodes that could take it, and hold so much each, were not chosen.
fn eligible(loads: &[u32], word: &str, kept: bool, placed: bool) -> Reason {
    let holds = match (loads.iter().min(), loads.iter().max()) {
        (Some(least), Some(most)) if least != most => format!("hold {least} to {most} {word}"),
        (Some(load), _) => format!("hold {load} {word}"),
        (None, _) => String::new(),
    };
    let text = match (kept, placed) {
        (true, _) => format!("could take it ({holds}), but what is valid stays where it is"),
        (false, true) => format!("could take it too ({holds})"),
        (false, false) => format!("could take it by itself ({holds})"),
    };
    Reason { name: "Eligible", rule: None, text }
}

/// Where a service's traffic leaves, and with which source.
fn way_out(object: &EgressService) -> String {
    let source = match object.source_ip_by {
        SourceIpBy::LoadBalancerIp => "the load balancer's address",
        SourceIpBy::Network => "an address of the network it takes",
    };
    match &object.network {
        Some(network) => format!("leaves with {source}, through network {network}"),
        None => format!("leaves with {source}, through the node's own routes"),
    }
}

fn sections(explanation: &Explanation) -> Vec<Section> {
    let wanted = if explanation.selector == "{}" { "any node" } else { &explanation.selector };
    let head = Section::new(&explanation.object).note(format!("nodes wanted: {wanted}"));
    let mut sections = vec![head.notes(explanation.way_out.clone())];
    for item in &explanation.items {
        let place = match (&item.recorded, &item.node) {
            (_, Some(node)) if item.reason.name == "All" => format!("every node ({node})"),
            (Some(recorded), Some(node)) if recorded == node => format!("on {node}"),
            (Some(recorded), Some(node)) => format!("moves from {recorded} to {node}"),
            (None, Some(node)) => format!("goes to {node}"),
            (Some(recorded), None) => format!("leaves {recorded}, and has no node then"),
            (None, None) => "has no node".to_owned(),
        };
        let subject = item.address.as_deref().unwrap_or("host");
        let mut grid = Grid::new(&["NODES", "WHY NOT", "NAMES"]);
        for group in &item.others {
            let tone = if group.eligible { Tone::Good } else { Tone::Plain };
            grid.row([
                toned(group.count.to_string(), tone),
                cell(group.reason.line()),
                cell(few(group.nodes.iter().map(String::as_str))),
            ]);
        }
        sections.push(Section::new(format!("{subject}: {place}")).note(item.reason.line()).grid(grid));
    }
    if explanation.items.is_empty() {
        sections.push(Section::new("ADDRESSES").note("the object asks for none"));
    }
    sections.push(assumed_section(&explanation.assumed));
    sections
}
