//! `egret audit --node`: a node's kernel against what it should hold.

use std::path::PathBuf;

use anyhow::Context;
use egret_agent::{Checked, Config, Kind, Objects, check};
use egret_hostmodel::{Drift, Report};
use egret_hostnet::{Foreign, Kernel};
use serde::Serialize;

use super::{Answer, agent, daemon, write};
use crate::args::AuditArgs;
use crate::live::connection;
use crate::report::{Grid, Section, Style, Tone, cell, count, toned};

/// The look at a node, as machines read it.
#[derive(Debug, Serialize)]
struct NodeAudit {
    node: String,
    /// What differs; after a repair, what still does.
    drifts: Vec<Drift>,
    /// What was done to repair it.
    repaired: Vec<String>,
    /// What is in our places and not ours.
    foreign: Vec<String>,
    /// What there is to know of the objects.
    reports: Vec<Report>,
}

/// Looks at the kernel of the node that this runs on, and repairs it if that is asked for.
pub(crate) fn run(config: &Config, args: &AuditArgs, style: Style) -> anyhow::Result<Answer> {
    let audit = daemon::runtime(1)?.block_on(look(config, args))?;
    let text = write(&audit, args.read.output, style, || sections(&audit))?;
    Ok(Answer { text, positive: !audit.drifts.is_empty() })
}

async fn look(config: &Config, args: &AuditArgs) -> anyhow::Result<NodeAudit> {
    let objects = objects(args).await?;
    let kernel = Kernel::open(config.settings(), &config.files)?;
    let options = &config.options;
    let mut checked = check(&kernel, &objects, options).await?;
    let mut repaired = Vec::new();
    if args.repair && !checked.steps.is_empty() {
        let applied = kernel.apply(&checked.steps).await;
        repaired.extend(checked.steps.iter().take(applied.done).map(ToString::to_string));
        applied.failed.map_or(Ok(()), Err).context("failed to repair the node")?;
        checked = check(&kernel, &objects, options).await?;
    }
    let Checked { observed, wanted, drifts, .. } = checked;
    Ok(NodeAudit {
        node: options.node.to_string(),
        drifts,
        repaired,
        foreign: observed.foreign.iter().map(foreign).collect(),
        reports: wanted.reports,
    })
}

/// The objects of the files that are named, or of the cluster.
async fn objects(args: &AuditArgs) -> anyhow::Result<Objects> {
    let input = &args.read.input;
    if input.sources.is_empty() {
        let live = &input.live;
        let connection = connection::find(live.kubeconfig.as_deref(), live.context.as_deref()).await?;
        let client = egret_daemon::client(connection.config)?;
        return egret_agent::list(&client).await.context("failed to list what the node should do");
    }
    let paths: Vec<PathBuf> = input.sources.iter().map(PathBuf::from).collect();
    let all = agent::files::objects(&paths)?;
    let mut objects = Objects::default();
    for kind in Kind::ALL {
        let of_kind: Vec<_> = all.iter().filter(|object| agent::files::is(object, kind)).cloned().collect();
        objects.listed(kind, &of_kind);
    }
    Ok(objects)
}

fn foreign(foreign: &Foreign) -> String {
    match foreign {
        Foreign::Rule { rule: Some(rule), protocol, .. } => format!("rule {rule} proto {protocol}"),
        Foreign::Rule { priority, protocol, .. } => format!("rule of priority {priority} proto {protocol}"),
        Foreign::Route(route) => format!("route {route}"),
        Foreign::Address(address) => format!("address {} on {}", address.ip, address.link),
    }
}

fn sections(audit: &NodeAudit) -> Vec<Section> {
    let title = match audit.drifts.len() {
        0 => Section::new(format!("NODE {}", audit.node)).note("the kernel is as it should be"),
        some => Section::new(format!("NODE {} ({})", audit.node, count(some, "difference"))),
    };
    let mut differences = Grid::new(&["HOW", "WHAT", "WHICH"]);
    for drift in &audit.drifts {
        let line = drift.to_string();
        let mut words = line.splitn(2, ' ');
        let (how, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().trim_start());
        let (what, which) = rest.split_at(rest.len() - drift.text.len());
        differences.row([toned(how, Tone::Bad), cell(what.trim()), cell(which)]);
    }
    let mut objects = Grid::new(&["OBJECT", "ON THIS NODE"]);
    for report in &audit.reports {
        let tone = if report.finding.is_fine() { Tone::Good } else { Tone::Bad };
        objects.row([cell(report.about.to_string()), toned(report.finding.to_string(), tone)]);
    }
    let mut sections = vec![title.grid(differences)];
    if !audit.repaired.is_empty() {
        sections.push(Section::new("REPAIRED").notes(audit.repaired.iter().cloned()));
    }
    if !audit.reports.is_empty() {
        sections.push(Section::new("OBJECTS").grid(objects));
    }
    if !audit.foreign.is_empty() {
        sections.push(Section::new("NOT EGRET'S, IN ITS PLACES").notes(audit.foreign.iter().cloned()));
    }
    sections
}
