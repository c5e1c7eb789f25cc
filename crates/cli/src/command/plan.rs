//! `egret plan`: what a change would move.

use std::collections::BTreeSet;

use egret_core::{Host, NodeName, Snapshot};
use egret_placement::{Decision, Explainer, Move, Subject, decide, event_reasons, moves, pending};
use serde::Serialize;

use super::{Answer, Reason, Unassigned, assumed_section, json, unassigned, yaml};
use crate::args::{PlanArgs, PlanFormat};
use crate::change::change;
use crate::cluster::{Cluster, Refusal};
use crate::input::Progress;
use crate::report::{self, Grid, Section, Style, Tone, cell, count, toned};

/// The plan, as machines read it.
#[derive(Debug, Serialize)]
struct Plan {
    /// The changes that were planned.
    changes: Vec<String>,
    /// What they move.
    moves: Vec<MoveLine>,
    /// What has no node after them.
    unassigned: Vec<Unassigned>,
    /// Services without a host after them.
    unhosted: Vec<Unhosted>,
    /// What the controller would change in the recorded state without them.
    pending: Vec<MoveLine>,
    /// What each node holds before and after; nodes that hold nothing at both times are left out.
    load: Vec<Load>,
    /// What was assumed.
    assumed: Vec<String>,
}

#[derive(Debug, Serialize)]
struct MoveLine {
    object: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    from: Option<String>,
    to: Option<String>,
    cause: Reason,
}

#[derive(Debug, Serialize)]
struct Unhosted {
    object: String,
    #[serde(flatten)]
    reason: Reason,
}

#[derive(Debug, Serialize)]
struct Load {
    node: String,
    addresses_before: u32,
    addresses_after: u32,
    services_before: u32,
    services_after: u32,
}

/// Plans the changes.
pub(crate) fn run(
    cluster: &mut Cluster,
    args: &PlanArgs,
    style: Style,
    progress: &dyn Progress,
) -> anyhow::Result<Answer> {
    let plan = plan(cluster, args, progress)?;
    let asked = !args.changes.is_none();
    let text = match args.output {
        PlanFormat::Json => json(&plan)?,
        PlanFormat::Yaml => yaml(&plan)?,
        PlanFormat::Table => report::terminal(&sections(&plan, asked), style),
        PlanFormat::Markdown => report::markdown(title(asked), &sections(&plan, asked)),
    };
    // Without changes the pending part is the answer.
    let told = if args.changes.is_none() { &plan.pending } else { &plan.moves };
    Ok(Answer { text, positive: !told.is_empty() })
}

fn plan(cluster: &mut Cluster, args: &PlanArgs, progress: &dyn Progress) -> Result<Plan, Refusal> {
    let now = cluster.snapshot.clone();
    let settled = decide(&now);
    let (then, changes) = change(cluster, &args.changes, &settled, progress)?;
    let after = decide(&then);
    let explainer = Explainer::new(&then, &after);
    let mut unplaced = Vec::new();
    for object in then.egress_ips.values() {
        let outcomes = after.egress_ips.get(&object.name).map_or(&[][..], Vec::as_slice);
        let reasons = event_reasons(&then, &after, &object.name);
        unplaced.extend(unassigned(&explainer, object, outcomes, &reasons));
    }
    // Without a change it is the recorded state that becomes another.
    let recorded = Decision::recorded(&now);
    let before = if args.changes.is_none() { &recorded } else { &settled };
    let unhosted = after.egress_services.keys().filter_map(|key| {
        let reason = explainer.no_host(key)?;
        let reason = Reason { name: reason.name(), rule: Some(reason.rule()), text: reason.to_string() };
        Some(Unhosted { object: format!("egressservice/{key}"), reason })
    });
    Ok(Plan {
        changes,
        moves: moves((&now, &settled), (&then, &after)).iter().map(MoveLine::from).collect(),
        unassigned: unplaced,
        unhosted: unhosted.collect(),
        pending: pending(&now, &settled).iter().map(MoveLine::from).collect(),
        load: loads((&now, before), (&then, &after)),
        assumed: cluster.assumed.clone(),
    })
}

impl From<&Move> for MoveLine {
    fn from(moved: &Move) -> Self {
        let (object, address) = match &moved.subject {
            Subject::Address(name, address) => (format!("egressip/{name}"), Some(address.to_string())),
            Subject::Service(key) => (format!("egressservice/{key}"), None),
        };
        let host = |host: &Host| (*host != Host::None).then(|| host.to_string());
        let cause = Reason { name: moved.cause.name(), rule: moved.cause.rule(), text: moved.to_string() };
        Self { object, address, from: host(&moved.from), to: host(&moved.to), cause }
    }
}

fn loads(before: (&Snapshot, &Decision), after: (&Snapshot, &Decision)) -> Vec<Load> {
    let (old, new) = (Explainer::new(before.0, before.1), Explainer::new(after.0, after.1));
    let names: BTreeSet<&NodeName> = before.0.nodes.keys().chain(after.0.nodes.keys()).collect();
    let load = |node: &NodeName| Load {
        node: node.to_string(),
        addresses_before: old.load(node),
        addresses_after: new.load(node),
        services_before: old.services(node),
        services_after: new.services(node),
    };
    let holds =
        |load: &Load| load.addresses_before + load.addresses_after + load.services_before + load.services_after > 0;
    names.into_iter().map(load).filter(holds).collect()
}

fn title(asked: bool) -> &'static str {
    if asked { "Egress plan" } else { "Egress plan: as it is" }
}

fn sections(plan: &Plan, asked: bool) -> Vec<Section> {
    let mut sections = Vec::new();
    if asked {
        let change = Section::new("CHANGE").notes(plan.changes.iter().cloned());
        let nothing = "nothing of what was to be applied can be used";
        sections.push(if plan.changes.is_empty() { change.note(nothing) } else { change });
        let moves = match (plan.moves.len(), plan.unassigned.len()) {
            (0, 0) => Section::new("MOVES").note("nothing moves"),
            (0, left) => {
                Section::new("MOVES").note(format!("nothing moves, and {} without a node", count(left, "address")))
            }
            (moves, _) => Section::new(format!("MOVES ({moves})")),
        };
        sections.push(moves.grid(moves_grid(&plan.moves)));
    } else {
        sections.push(pending_section(plan));
    }
    if !plan.unassigned.is_empty() || !plan.unhosted.is_empty() {
        sections.push(unassigned_section(plan, asked));
    }
    if asked && !plan.pending.is_empty() {
        sections.push(pending_section(plan));
    }
    if !plan.load.is_empty() {
        sections.push(load_section(plan));
    }
    sections.push(assumed_section(&plan.assumed));
    sections
}

fn pending_section(plan: &Plan) -> Section {
    match plan.pending.len() {
        0 => Section::new("PENDING").note("nothing: the recorded state is what the controller would decide"),
        pending => Section::new(format!("PENDING ({pending})"))
            .note("the controller changes this in the recorded state anyway")
            .grid(moves_grid(&plan.pending)),
    }
}

fn moves_grid(moves: &[MoveLine]) -> Grid {
    let mut grid = Grid::new(&["OBJECT", "ADDRESS", "FROM", "TO", "WHY"]);
    for line in moves {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let to = if line.to.is_some() { Tone::Change } else { Tone::Bad };
        grid.row([
            cell(&line.object),
            cell(text(&line.address)),
            cell(text(&line.from)),
            toned(text(&line.to), to),
            cell(line.cause.line()),
        ]);
    }
    grid
}

fn unassigned_section(plan: &Plan, asked: bool) -> Section {
    let mut grid = Grid::new(&["OBJECT", "ADDRESS", "WHY"]);
    for line in &plan.unassigned {
        grid.row([cell(&line.object), toned(&line.address, Tone::Bad), cell(line.line())]);
    }
    for line in &plan.unhosted {
        grid.row([cell(&line.object), toned("-", Tone::Bad), cell(line.reason.line())]);
    }
    let when = if asked { "UNASSIGNED AFTERWARDS" } else { "UNASSIGNED" };
    Section::new(format!("{when} ({})", plan.unassigned.len() + plan.unhosted.len())).grid(grid)
}

/// More unchanged nodes than this are only counted: with hundreds of nodes the ones that change would be lost.
const UNCHANGED_SHOWN: usize = 12;

fn load_section(plan: &Plan) -> Section {
    let changed =
        |load: &&Load| (load.addresses_before, load.services_before) != (load.addresses_after, load.services_after);
    let unchanged = plan.load.len() - plan.load.iter().filter(changed).count();
    let all = unchanged <= UNCHANGED_SHOWN;
    let services = plan.load.iter().any(|load| load.services_before + load.services_after > 0);
    let mut grid = Grid::new(&["NODE", "ADDRESSES", "SERVICES"]);
    for load in plan.load.iter().filter(|load| all || changed(load)) {
        let services = if services { shift(load.services_before, load.services_after) } else { cell("") };
        grid.row([cell(&load.node), shift(load.addresses_before, load.addresses_after), services]);
    }
    let mut section = Section::new("LOAD PER NODE");
    if !all {
        section = section.note(format!("{} more hold what they held", count(unchanged, "node")));
    }
    section.grid(grid)
}

/// `2`, or `2 -> 0`.
fn shift(before: u32, after: u32) -> (String, Tone) {
    if before == after { cell(before.to_string()) } else { toned(format!("{before} -> {after}"), Tone::Change) }
}
