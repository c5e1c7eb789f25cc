//! `scenarios [--through memory|api] [DIR] [--only ID]`: plays every scenario of a folder through the controller.
//!
//! Exit 0 if none failed, 1 if one did, 2 if the folder cannot be read as scenarios or there is no API server, 64 if the
//! call makes no sense.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use egret_testkit::scenario::{LoadError, Report, Scenario, Verdict, load, play};
use egret_testkit::world::{Api, Memory, Stage};

const USAGE: &str = "usage: scenarios [--through memory|api] [DIR] [--only ID]";
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

struct Call {
    folder: PathBuf,
    only: Option<String>,
    through: Through,
}

/// What scenarios are played on.
#[derive(Clone, Copy)]
enum Through {
    /// The brain and a store in memory.
    Memory,
    /// The controller and a real API server.
    Api,
}

fn main() -> ExitCode {
    let (code, text) = match call(std::env::args().skip(1)) {
        None => (64, USAGE.to_owned()),
        Some(call) => match run(&call) {
            Ok(report) => {
                let failed = report.count(Verdict::Failed) > 0;
                return said(&writeln!(io::stdout(), "{report}"), u8::from(failed));
            }
            Err(error) => (2, chain(&*error)),
        },
    };
    said(&writeln!(io::stderr(), "{text}"), code)
}

fn run(call: &Call) -> Result<Report, Box<dyn Error>> {
    let mut scenarios = load(&call.folder)?;
    if let Some(only) = &call.only {
        scenarios.retain(|scenario| scenario.id == *only);
        if scenarios.is_empty() {
            return Err(LoadError::NoSuchScenario { path: call.folder.clone(), id: only.clone() }.into());
        }
    }
    Ok(match call.through {
        Through::Memory => played(&scenarios, &mut Memory::new()),
        Through::Api => played(&scenarios, &mut Api::take()?),
    })
}

fn played(scenarios: &[Scenario], stage: &mut dyn Stage) -> Report {
    let played = scenarios.iter().map(|scenario| play(scenario, stage)).collect();
    Report::new(stage.name(), played)
}

fn call(mut arguments: impl Iterator<Item = String>) -> Option<Call> {
    let (mut folder, mut only, mut through) = (None, None, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" if only.is_none() => only = Some(arguments.next()?),
            "--through" if through.is_none() => {
                through = Some(match arguments.next()?.as_str() {
                    "memory" => Through::Memory,
                    "api" => Through::Api,
                    _ => return None,
                });
            }
            _ if argument.starts_with('-') || folder.is_some() => return None,
            _ => folder = Some(PathBuf::from(argument)),
        }
    }
    let folder = folder.unwrap_or_else(|| REPOSITORY.into());
    Some(Call { folder, only, through: through.unwrap_or(Through::Memory) })
}

fn chain(error: &dyn Error) -> String {
    let mut text = format!("scenarios: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// A reader that went away is no reason to panic; a result that nobody could read is no success.
fn said(written: &io::Result<()>, code: u8) -> ExitCode {
    ExitCode::from(if written.is_ok() { code } else { 2 })
}
