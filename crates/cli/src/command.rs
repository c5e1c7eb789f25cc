//! The commands: from a cluster to what is told about it.

pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod audit_node;
pub(crate) mod controller;
mod daemon;
pub(crate) mod explain;
pub(crate) mod explain_node;
pub(crate) mod plan;
mod reading;
pub(crate) mod status;

use std::collections::BTreeSet;

use egret_core::{Address, EgressIp, EventReason};
use egret_placement::{AddressReason, Explainer, NodeReason, Outcome};
use serde::Serialize;

use crate::args::Format;
use crate::report::{self, Section, Style};

/// What a command answers.
#[derive(Debug)]
pub(crate) struct Answer {
    /// For standard output.
    pub(crate) text: String,
    /// Whether something moves, or an invariant is broken.
    pub(crate) positive: bool,
}

/// A reason, as machines read it and as people do.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reason {
    /// The name of the reason.
    pub(crate) name: &'static str,
    /// The number of the rule in docs/placement.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<&'static str>,
    /// The reason in words.
    pub(crate) text: String,
}

impl Reason {
    /// The words, with the rule in front where there is one.
    pub(crate) fn line(&self) -> String {
        match self.rule {
            Some(rule) => format!("{rule} {}", self.text),
            None => self.text.clone(),
        }
    }
}

impl From<&NodeReason> for Reason {
    fn from(reason: &NodeReason) -> Self {
        Self { name: reason.name(), rule: Some(reason.rule()), text: reason.to_string() }
    }
}

/// So many nodes have this reason for not taking an address.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NodesWithReason {
    /// How many.
    pub(crate) count: usize,
    /// The name of the reason.
    pub(crate) name: &'static str,
    /// The number of the rule in docs/placement.md.
    pub(crate) rule: &'static str,
    /// What these nodes are.
    pub(crate) text: &'static str,
}

/// An address that has no node, and why.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Unassigned {
    /// The object.
    pub(crate) object: String,
    /// The address, or the entry that is none.
    pub(crate) address: String,
    /// The reason.
    #[serde(flatten)]
    pub(crate) reason: Reason,
    /// What stands against it on the nodes, most nodes first; empty where the address itself is refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<NodesWithReason>,
}

impl Unassigned {
    /// The reason in one line.
    pub(crate) fn line(&self) -> String {
        if self.nodes.is_empty() {
            return self.reason.line();
        }
        let parts: Vec<String> =
            self.nodes.iter().map(|nodes| format!("{} {} ({})", nodes.count, nodes.text, nodes.rule)).collect();
        format!("{}: {}", self.reason.text, parts.join(", "))
    }
}

/// Every address of `object` that has no node by `outcomes`, and why.
pub(crate) fn unassigned(
    explainer: &Explainer<'_>,
    object: &EgressIp,
    outcomes: &[(Address, Outcome)],
    reasons: &BTreeSet<EventReason>,
) -> Vec<Unassigned> {
    let name = format!("egressip/{}", object.name);
    let mut found = Vec::new();
    for invalid in &object.invalid {
        let reason = Reason { name: "Invalid", rule: Some("A1"), text: invalid.fault.to_string() };
        found.push(Unassigned { object: name.clone(), address: invalid.text.clone(), reason, nodes: Vec::new() });
    }
    for (address, outcome) in outcomes {
        let (reason, nodes) = match outcome {
            Outcome::Kept(_) | Outcome::Placed(_) => continue,
            Outcome::Refused(reason) => (refused(explainer, reason, *address), Vec::new()),
            Outcome::Unplaced => (unplaced(object, reasons), nodes_against(explainer, object, *address)),
        };
        found.push(Unassigned { object: name.clone(), address: address.to_string(), reason, nodes });
    }
    found
}

fn refused(explainer: &Explainer<'_>, reason: &AddressReason, address: Address) -> Reason {
    let holder = match reason {
        AddressReason::HeldByAnother(name) => explainer.holder(name, address).map(|node| (name, node)),
        AddressReason::ConflictsWithHost(_) | AddressReason::HeldInCloud => None,
    };
    let text = match holder {
        Some((name, node)) => format!("it is held by egressip/{name} on {node}"),
        None => reason.to_string(),
    };
    Reason { name: reason.name(), rule: Some(reason.rule()), text }
}

/// What nodes with a reason are, whatever their number.
fn phrase(reason: &NodeReason) -> &'static str {
    match reason {
        NodeReason::Ignored => "without an OVN host subnet",
        NodeReason::SelectorMismatch(_) => "outside the selector",
        NodeReason::SelectorFaulty => "by a selector that does not compile",
        NodeReason::Drained => "drained",
        NodeReason::NotInfrastructureReady(_) => "without readable annotations",
        NodeReason::NotReady => "not Ready",
        NodeReason::Cordoned => "cordoned",
        NodeReason::Unreachable => "unreachable",
        NodeReason::NotProbed => "not yet probed",
        NodeReason::InDoubt => "silent with most others",
        NodeReason::NoNetwork => "outside the address' network",
        NodeReason::SecondaryPreferred => "without the secondary network that another has",
        NodeReason::CapacityFull { .. } => "full",
        NodeReason::CoLocated(_) => "holding another address of the object",
        NodeReason::RefusedByCloud => "refused by the cloud",
        NodeReason::NoLocalEndpoint => "without a serving endpoint",
    }
}

fn nodes_against(explainer: &Explainer<'_>, object: &EgressIp, address: Address) -> Vec<NodesWithReason> {
    let summary = explainer.summary(object, address).into_iter();
    let told = |(reason, count): (NodeReason, usize)| NodesWithReason {
        count,
        name: reason.name(),
        rule: reason.rule(),
        text: phrase(&reason),
    };
    summary.map(told).collect()
}

/// The event reason that tells why no node took an address.
fn unplaced(object: &EgressIp, reasons: &BTreeSet<EventReason>) -> Reason {
    let nobody = format!("no node matches {}", object.selector);
    let (reason, text) = [
        (EventReason::InvalidEgressNodeSelector, "the selector does not compile, so nothing new is placed"),
        (EventReason::NoMatchingNodeFound, &nobody),
        (EventReason::MatchingNodesUnavailable, "no matching node is available"),
        (EventReason::UnassignedRequest, "no node can take it"),
    ]
    .into_iter()
    .find(|(reason, _)| reasons.contains(reason))
    .map_or(("WaitingForProbe", "a matching node waits for its first probe"), |(reason, text)| (reason.as_str(), text));
    Reason { name: reason, rule: None, text: text.to_owned() }
}

/// What a command that only reads answers: `model` for machines, its `sections` for people.
pub(crate) fn write(
    model: &impl Serialize,
    format: Format,
    style: Style,
    sections: impl FnOnce() -> Vec<Section>,
) -> anyhow::Result<String> {
    match format {
        Format::Json => json(model),
        Format::Yaml => yaml(model),
        Format::Table => Ok(report::terminal(&sections(), style)),
    }
}

/// Serialises `model` as JSON, with a line break at the end.
pub(crate) fn json(model: &impl Serialize) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(model)?;
    text.push('\n');
    Ok(text)
}

/// Serialises `model` as YAML.
pub(crate) fn yaml(model: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_saphyr::to_string(model)?)
}

/// The section that every answer ends with.
pub(crate) fn assumed_section(assumed: &[String]) -> Section {
    Section::new("ASSUMED").note(assumed.join("; "))
}
