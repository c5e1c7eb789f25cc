//! `egret audit`: the invariants of what is recorded.

use egret_placement::audit::{Finding, State, audit};
use serde::Serialize;

use super::{Answer, assumed_section, write};
use crate::args::ReadArgs;
use crate::cluster::Cluster;
use crate::report::{Grid, Section, Style, Tone, cell, count, toned};

/// The audit, as machines read it.
#[derive(Debug, Serialize)]
struct Audit {
    /// Every broken invariant.
    findings: Vec<Line>,
    /// How many assignments were looked at.
    assignments: usize,
    /// How many services were looked at.
    services: usize,
    /// What was assumed.
    assumed: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Line {
    check: &'static str,
    subject: String,
    message: String,
}

/// Audits what is recorded.
pub(crate) fn run(cluster: &Cluster, args: &ReadArgs, style: Style) -> anyhow::Result<Answer> {
    let state = State::recorded(&cluster.snapshot);
    let findings = audit(&cluster.snapshot, &state);
    let line =
        |finding: Finding| Line { check: finding.check.name(), subject: finding.subject, message: finding.message };
    let audit = Audit {
        findings: findings.into_iter().map(line).collect(),
        assignments: state.egress_ips.values().map(Vec::len).sum(),
        services: state.hosts.len(),
        assumed: cluster.assumed.clone(),
    };
    let text = write(&audit, args.output, style, || sections(&audit))?;
    Ok(Answer { text, positive: !audit.findings.is_empty() })
}

fn sections(audit: &Audit) -> Vec<Section> {
    let seen = format!("looked at {} and {}", count(audit.assignments, "assignment"), count(audit.services, "service"));
    let findings = match audit.findings.len() {
        0 => Section::new("AUDIT").note("every invariant holds").note(seen),
        broken => Section::new(format!("AUDIT ({broken} broken)")).note(seen),
    };
    let mut grid = Grid::new(&["CHECK", "OBJECT", "WHAT IS WRONG"]);
    for line in &audit.findings {
        grid.row([toned(line.check, Tone::Bad), cell(&line.subject), cell(&line.message)]);
    }
    vec![findings.grid(grid), assumed_section(&audit.assumed)]
}
