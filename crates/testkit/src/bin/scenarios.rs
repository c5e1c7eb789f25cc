//! `scenarios [DIR] [--only ID]`: plays every scenario of a folder through the decision code.
//!
//! Exit 0 if none failed, 1 if one did, 2 if the folder cannot be read as scenarios, 64 if the call makes no sense.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use egret_testkit::scenario::{LoadError, Report, Verdict, load, play};

const USAGE: &str = "usage: scenarios [DIR] [--only ID]";
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

struct Call {
    folder: PathBuf,
    only: Option<String>,
}

fn main() -> ExitCode {
    let (code, text) = match call(std::env::args().skip(1)) {
        None => (64, USAGE.to_owned()),
        Some(call) => match run(&call) {
            Ok(report) => {
                let failed = report.count(Verdict::Failed) > 0;
                return said(&writeln!(io::stdout(), "{report}"), u8::from(failed));
            }
            Err(error) => (2, chain(&error)),
        },
    };
    said(&writeln!(io::stderr(), "{text}"), code)
}

fn run(call: &Call) -> Result<Report, LoadError> {
    let mut scenarios = load(&call.folder)?;
    if let Some(only) = &call.only {
        scenarios.retain(|scenario| scenario.id == *only);
        if scenarios.is_empty() {
            return Err(LoadError::NoSuchScenario { path: call.folder.clone(), id: only.clone() });
        }
    }
    Ok(scenarios.iter().map(play).collect())
}

fn call(mut arguments: impl Iterator<Item = String>) -> Option<Call> {
    let (mut folder, mut only) = (None, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" if only.is_none() => only = Some(arguments.next()?),
            _ if argument.starts_with('-') || folder.is_some() => return None,
            _ => folder = Some(PathBuf::from(argument)),
        }
    }
    Some(Call { folder: folder.unwrap_or_else(|| REPOSITORY.into()), only })
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
