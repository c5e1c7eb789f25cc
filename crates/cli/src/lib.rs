//! The commands of `egret`.
//!
//! A command reads sources, has `egret-placement` decide, and tells what came of it; no judgement is made here. Data
//! goes to standard output, written once when it is complete; talk goes to standard error.
//!
//! ```text
//!   args ──> input ──> cluster ──> (change) ──> command ──> report ──> Output
//! ```

pub mod args;
mod change;
mod cluster;
mod command;
pub mod input;
mod live;
mod nearest;
mod program;
mod report;
mod selector_text;

use std::fmt::Write as _;

use clap::CommandFactory;

use crate::args::{Cli, Command, InputArgs, StatusArgs};
use crate::cluster::{Cluster, Refusal};
use crate::command::Answer;
use crate::input::{Progress, Style as DiagnosticStyle, printable};

pub use crate::program::Program;
pub use crate::report::Style;

/// Everything went well.
pub const SUCCESS: u8 = 0;
/// Something was wrong with the input, or an invariant is broken.
pub const FAILURE: u8 = 1;
/// Something moves (`plan --detailed-exitcode`).
pub const MOVES: u8 = 2;
/// The command line makes no sense (`EX_USAGE` of sysexits.h).
pub const USAGE: u8 = 64;

/// What a run of the program comes to.
#[derive(Debug)]
pub struct Output {
    /// For standard output.
    pub stdout: String,
    /// For standard error.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
}

/// How the two streams want it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streams {
    /// Standard output.
    pub stdout: Style,
    /// Standard error.
    pub stderr: Style,
}

/// Runs a command.
#[must_use]
pub fn run(cli: &Cli, program: Program, streams: Streams, progress: &dyn Progress) -> Output {
    match &cli.command {
        Command::Plan(args) => answer(&args.input, streams, progress, |cluster| {
            let answer = command::plan::run(cluster, args, streams.stdout, progress)?;
            let code = if answer.positive && args.detailed_exitcode { MOVES } else { SUCCESS };
            Ok((answer, code))
        }),
        Command::Explain(args) => answer(&args.input, streams, progress, |cluster| {
            Ok((command::explain::run(cluster, args, streams.stdout)?, SUCCESS))
        }),
        Command::Status(args) if args.watch => watch(args, streams),
        Command::Status(args) => answer(&args.read.input, streams, progress, |cluster| {
            Ok((command::status::run(cluster, &args.read, streams.stdout)?, SUCCESS))
        }),
        Command::Audit(args) if args.node.is_some() => audit_node(args, streams),
        Command::Audit(args) => answer(&args.read.input, streams, progress, |cluster| {
            let answer = command::audit::run(cluster, &args.read, streams.stdout)?;
            let code = if answer.positive { FAILURE } else { SUCCESS };
            Ok((answer, code))
        }),
        Command::Controller(args) => command::controller::run(args),
        Command::Agent(args) => command::agent::run(args),
        Command::Crds(args) => crds(args.all),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), program.executable(), &mut script);
            Output { stdout: String::from_utf8_lossy(&script).into_owned(), stderr: String::new(), code: SUCCESS }
        }
    }
}

fn audit_node(args: &args::AuditArgs, streams: Streams) -> Output {
    let name = args.node.as_deref().unwrap_or_default();
    let config = match command::agent::reading::looking(name, &args.kernel) {
        Ok(config) => config,
        Err(faults) => {
            let stderr = format!("error: {}\n", faults.join("\nerror: "));
            return Output { stdout: String::new(), stderr, code: USAGE };
        }
    };
    match command::audit_node::run(&config, args, streams.stdout) {
        Ok(answer) => {
            let code = if answer.positive { FAILURE } else { SUCCESS };
            Output { stdout: answer.text, stderr: String::new(), code }
        }
        Err(error) => refused(&error, ""),
    }
}

/// Reads the cluster, asks `ask`, and puts what is wrong with the input on standard error.
fn answer(
    input: &InputArgs,
    streams: Streams,
    progress: &dyn Progress,
    ask: impl FnOnce(&mut Cluster) -> anyhow::Result<(Answer, u8)>,
) -> Output {
    let mut cluster = match Cluster::read(input, progress) {
        Ok(cluster) => cluster,
        Err(error) => return refused(&error, ""),
    };
    let answered = if cluster.manifests.is_empty() {
        Err(Refusal::Nothing { what: "the input has" }.into())
    } else {
        ask(&mut cluster)
    };
    let talk = talk(&cluster, streams.stderr);
    match answered {
        Ok((answer, code)) => {
            let code = if cluster.has_errors() { FAILURE } else { code };
            Output { stdout: answer.text, stderr: talk, code }
        }
        Err(error) => refused(&error, &talk),
    }
}

/// Shows the status until it is ended; what it shows is written as it comes, so there is nothing left to print.
fn watch(args: &StatusArgs, streams: Streams) -> Output {
    match live::watch::run(args, streams.stdout) {
        Ok(()) => Output { stdout: String::new(), stderr: String::new(), code: SUCCESS },
        Err(error) => refused(&error, ""),
    }
}

fn refused(error: &anyhow::Error, talk: &str) -> Output {
    let code = match error.downcast_ref() {
        Some(Refusal::BadText { .. } | Refusal::UnreadPipe) => USAGE,
        _ => FAILURE,
    };
    Output { stdout: String::new(), stderr: format!("{talk}error: {}\n", printable(&format!("{error:#}"))), code }
}

fn talk(cluster: &Cluster, style: Style) -> String {
    let mut text = String::new();
    let width = style.width.map_or(100, usize::from);
    for diagnostic in &cluster.diagnostics {
        text.push_str(&diagnostic.render(DiagnosticStyle { colour: style.colour, width }));
        text.push_str("\n\n");
    }
    if cluster.untold > 0 {
        let _ = writeln!(text, "note: {} more faults are not shown; correct these first\n", cluster.untold);
    }
    if !cluster.ignored.is_empty() {
        let kinds: Vec<String> = cluster.ignored.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let _ = writeln!(text, "note: left out objects of other kinds: {}", kinds.join(", "));
    }
    for note in &cluster.notes {
        let _ = writeln!(text, "note: {}", printable(note));
    }
    if cluster.snapshot.nodes.is_empty() {
        text.push_str("note: the input has no node, so nothing can be placed; add `kubectl get nodes -o yaml`\n");
    }
    text
}

fn crds(all: bool) -> Output {
    let mut text = String::new();
    for definition in egret_api::crd::definitions(all) {
        match command::yaml(&definition) {
            Ok(yaml) => {
                text.push_str("---\n");
                text.push_str(&yaml);
            }
            Err(error) => return refused(&error, ""),
        }
    }
    Output { stdout: text, stderr: String::new(), code: SUCCESS }
}
