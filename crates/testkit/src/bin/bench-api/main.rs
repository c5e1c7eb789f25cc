//! `bench-api EGRET`: how fast the controller is, and what it costs, on a real API server and with real probes.
//!
//! ```text
//!   namespace ──> cluster: 500 nodes on an API server ──> controller: the program EGRET
//!                    │ objects, NotReady, silence             │ CPU, memory
//!                    └────────> sight: what statuses say ─────┴──> figures
//! ```
//!
//! Exit 0 if every target is reached or missed by no more than half, 1 if one is missed by more, 2 if there is nothing
//! to measure, 64 if the call makes no sense.

mod cluster;
mod controller;
mod figure;
mod namespace;
mod run;
mod sight;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use egret_testkit::server::Part;

const USAGE: &str = "usage: bench-api EGRET";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(egret), None) = (arguments.next(), arguments.next()) else { return said(USAGE, 64) };
    let done = if namespace::inside() { measure(Path::new(&egret)) } else { enter() };
    done.unwrap_or_else(|error| said(&format!("bench-api: {error:#}"), 2))
}

/// Inside there is no network to build an API server from.
fn enter() -> anyhow::Result<ExitCode> {
    Part::Etcd.find()?;
    Part::ApiServer.find()?;
    namespace::enter()
}

fn measure(egret: &Path) -> anyhow::Result<ExitCode> {
    namespace::prepare()?;
    // One thread: what is measured has the machine to itself as far as that is possible.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let figures = runtime.block_on(run::run(egret))?;
    writeln!(io::stdout(), "{figures}")?;
    Ok(ExitCode::from(u8::from(figures.failed())))
}

fn said(text: &str, code: u8) -> ExitCode {
    // There is nobody left to tell.
    let _ = writeln!(io::stderr(), "{text}");
    ExitCode::from(code)
}
