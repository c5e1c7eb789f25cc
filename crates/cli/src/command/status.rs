//! `egret status`: every address, every service, every node.

use std::collections::{BTreeMap, BTreeSet};

use egret_core::{Address, EgressIp, Host, Node, Platform, Snapshot};
use egret_placement::{Decision, Explainer, Move, Subject, decide, event_reasons, pending};
use serde::Serialize;

use super::explain_node::free;
use super::{Answer, Reason, assumed_section, unassigned, write};
use crate::args::ReadArgs;
use crate::cluster::Cluster;
use crate::report::{Grid, Section, Style, Tone, cell, count, toned};

/// The status, as machines read it.
#[derive(Debug, Serialize)]
struct Status {
    /// Every address, unassigned ones first.
    addresses: Vec<AddressLine>,
    /// Every service, unhosted ones first.
    services: Vec<ServiceLine>,
    /// The nodes that match a selector or hold something.
    nodes: Vec<NodeLine>,
    /// How many nodes neither match nor hold.
    other_nodes: usize,
    /// What was assumed.
    assumed: Vec<String>,
}

#[derive(Debug, Serialize)]
struct AddressLine {
    object: String,
    address: String,
    /// The node that the status names.
    node: Option<String>,
    /// Why it has none, or what the controller would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Debug, Serialize)]
struct ServiceLine {
    object: String,
    /// `status.host`.
    host: Option<String>,
    /// `spec.network`.
    network: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Debug, Serialize)]
struct NodeLine {
    node: String,
    /// Addresses that the status of EgressIPs puts here.
    addresses: u32,
    /// Services that it hosts.
    services: u32,
    /// How many more IPv4 addresses it may take; null is no limit.
    free_ipv4: Option<u32>,
    /// How many more IPv6 addresses it may take; null is no limit.
    free_ipv6: Option<u32>,
    /// The same in words.
    #[serde(skip)]
    free: String,
    /// Why it takes nothing new.
    #[serde(skip_serializing_if = "Option::is_none")]
    takes_nothing: Option<Reason>,
}

/// Shows the status.
pub(crate) fn run(cluster: &Cluster, args: &ReadArgs, style: Style) -> anyhow::Result<Answer> {
    let status = status(cluster);
    let text = write(&status, args.output, style, || sections(&status, cluster.snapshot.options.platform))?;
    Ok(Answer { text, positive: false })
}

fn status(cluster: &Cluster) -> Status {
    let snapshot = &cluster.snapshot;
    let decision = decide(snapshot);
    let mut moves: BTreeMap<Subject, String> = BTreeMap::new();
    for moved in pending(snapshot, &decision) {
        moves.insert(moved.subject.clone(), next(&moved));
    }
    let explainer = Explainer::new(snapshot, &decision);
    let lines = |object| address_lines(&explainer, snapshot, &decision, object, &moves);
    let mut addresses: Vec<AddressLine> = snapshot.egress_ips.values().flat_map(lines).collect();
    addresses.sort_by_key(|line| (line.node.is_some(), line.note.is_none()));
    let service = |service: &egret_core::EgressService| {
        let note = moves.get(&Subject::Service(service.key.clone())).cloned();
        let note = note.or_else(|| explainer.no_host(&service.key).map(|why| format!("{} {why}", why.rule())));
        let host = (service.recorded != Host::None).then(|| service.recorded.to_string());
        let network = service.network.clone();
        ServiceLine { object: format!("egressservice/{}", service.key), host, network, note }
    };
    let mut services: Vec<ServiceLine> = snapshot.egress_services.values().map(service).collect();
    services.sort_by_key(|line| (line.host.is_some(), line.note.is_none()));
    let nodes = node_lines(snapshot);
    Status {
        addresses,
        services,
        other_nodes: snapshot.nodes.len() - nodes.len(),
        nodes,
        assumed: cluster.assumed.clone(),
    }
}

/// What the controller would do with it.
fn next(moved: &Move) -> String {
    let cause = Reason { name: moved.cause.name(), rule: moved.cause.rule(), text: moved.to_string() };
    match &moved.to {
        Host::None => format!("will be withdrawn: {}", cause.line()),
        to => format!("will go to {to}: {}", cause.line()),
    }
}

fn address_lines(
    explainer: &Explainer<'_>,
    snapshot: &Snapshot,
    decision: &Decision,
    object: &EgressIp,
    moves: &BTreeMap<Subject, String>,
) -> Vec<AddressLine> {
    let outcomes = decision.egress_ips.get(&object.name).map_or(&[][..], Vec::as_slice);
    let reasons = event_reasons(snapshot, decision, &object.name);
    let why: BTreeMap<String, String> = unassigned(explainer, object, outcomes, &reasons)
        .into_iter()
        .map(|line| (line.address.clone(), line.line()))
        .collect();
    let recorded = |address: Address| {
        let items = object.recorded.iter().filter(move |item| item.address == address);
        items.map(|item| item.node.to_string()).collect::<Vec<_>>()
    };
    let line = |address: String, node: Vec<String>, note: Option<String>| AddressLine {
        object: format!("egressip/{}", object.name),
        node: (!node.is_empty()).then(|| node.join(", ")),
        address,
        note,
    };
    let mut lines: Vec<AddressLine> = object
        .invalid
        .iter()
        .map(|invalid| line(invalid.text.clone(), Vec::new(), why.get(&invalid.text).cloned()))
        .collect();
    let held: BTreeSet<Address> = object.recorded.iter().map(|item| item.address).collect();
    let all: BTreeSet<Address> = object.requested.iter().copied().chain(held).collect();
    for address in all {
        let next = moves.get(&Subject::Address(object.name.clone(), address)).cloned();
        let note = next.or_else(|| why.get(&address.to_string()).cloned());
        lines.push(line(address.to_string(), recorded(address), note));
    }
    lines
}

fn node_lines(snapshot: &Snapshot) -> Vec<NodeLine> {
    let recorded = Decision::recorded(snapshot);
    let explainer = Explainer::new(snapshot, &recorded);
    let ips = snapshot.egress_ips.values().filter_map(|object| object.selector.compiled());
    let services = snapshot.egress_services.values().filter_map(|object| object.selector.compiled());
    let selectors: BTreeSet<_> = ips.chain(services).collect();
    let concerned = |node: &&Node| {
        explainer.load(&node.name) + explainer.services(&node.name) > 0
            || selectors.iter().any(|selector| selector.matches(&node.labels))
    };
    let line = |node: &Node| {
        let [free_ipv4, free_ipv6] = explainer.free(node);
        NodeLine {
            node: node.name.to_string(),
            addresses: explainer.load(&node.name),
            services: explainer.services(&node.name),
            free_ipv4,
            free_ipv6,
            free: free(node, [free_ipv4, free_ipv6]),
            takes_nothing: explainer.fitness(node).map(|reason| (&reason).into()),
        }
    };
    snapshot.nodes.values().filter(concerned).map(line).collect()
}

fn sections(status: &Status, platform: Platform) -> Vec<Section> {
    let mut grid = Grid::new(&["EGRESSIP", "ADDRESS", "NODE", "NOTE"]);
    for line in &status.addresses {
        let tone = match (&line.node, &line.note) {
            (None, _) => Tone::Bad,
            (Some(_), Some(_)) => Tone::Change,
            (Some(_), None) => Tone::Good,
        };
        grid.row([
            cell(line.object.trim_start_matches("egressip/")),
            toned(&line.address, tone),
            cell(line.node.clone().unwrap_or_else(|| "-".to_owned())),
            cell(line.note.clone().unwrap_or_default()),
        ]);
    }
    let unassigned = status.addresses.iter().filter(|line| line.node.is_none()).count();
    let title = format!("ADDRESSES ({}, {unassigned} unassigned)", status.addresses.len());
    let mut sections = Vec::new();
    if !status.addresses.is_empty() {
        sections.push(Section::new(title).grid(grid));
    }
    if !status.services.is_empty() {
        let mut grid = Grid::new(&["EGRESSSERVICE", "HOST", "NETWORK", "NOTE"]);
        for line in &status.services {
            let tone = if line.host.is_some() { Tone::Good } else { Tone::Bad };
            grid.row([
                cell(line.object.trim_start_matches("egressservice/")),
                toned(line.host.clone().unwrap_or_else(|| "-".to_owned()), tone),
                cell(line.network.clone().unwrap_or_default()),
                cell(line.note.clone().unwrap_or_default()),
            ]);
        }
        sections.push(Section::new(format!("SERVICES ({})", status.services.len())).grid(grid));
    }
    sections.push(nodes_section(status, platform));
    sections.push(assumed_section(&status.assumed));
    sections
}

fn nodes_section(status: &Status, platform: Platform) -> Section {
    let services = !status.services.is_empty();
    let limited = platform == Platform::Cloud;
    let mut grid = Grid::new(&["NODE", "ADDRESSES", "SERVICES", "FREE", "NOTE"]);
    for line in &status.nodes {
        let note = line.takes_nothing.as_ref().map(|reason| format!("takes nothing new: {}", reason.line()));
        let tone = if note.is_some() { Tone::Change } else { Tone::Plain };
        grid.row([
            toned(&line.node, tone),
            cell(line.addresses.to_string()),
            cell(if services { line.services.to_string() } else { String::new() }),
            cell(if limited { line.free.clone() } else { String::new() }),
            cell(note.unwrap_or_default()),
        ]);
    }
    let mut section = Section::new(format!("NODES ({})", status.nodes.len()));
    let usable = status.nodes.iter().filter(|line| line.takes_nothing.is_none());
    let loads: Vec<u32> = usable.map(|line| line.addresses).collect();
    match (loads.iter().min(), loads.iter().max()) {
        (Some(least), Some(most)) if least != most => {
            section = section.note(format!("usable ones hold {least} to {most} addresses each"));
        }
        (Some(load), _) => section = section.note(format!("each usable one holds {load}")),
        (None, _) => section = section.note("none is usable"),
    }
    if status.other_nodes > 0 {
        section =
            section.note(format!("{} more match no selector and hold nothing", count(status.other_nodes, "node")));
    }
    if !limited {
        section = section.note("off the cloud nothing limits how many addresses a node may hold");
    }
    section.grid(grid)
}
