//! The real binary, run as somebody at the root of the repository would.

use std::fmt;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or_else(|| "killed".to_owned(), |code| code.to_string());
        write!(f, "exit code: {code}\n----- stdout -----\n{}----- stderr -----\n{}", self.stdout, self.stderr)
    }
}

/// The binary, without colours and with nothing inherited that changes what it prints.
pub(crate) fn egret<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_egret"));
    command.args(arguments).current_dir(root()).env("NO_COLOR", "1");
    command
}

/// Runs `command` with `input` on its standard input.
pub(crate) fn run_with(mut command: Command, input: &str) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // One that does not read its input closes it; that is no failure.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
    Run { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
}

/// Runs `command` with a standard input that is at its end.
pub(crate) fn run(command: Command) -> Run {
    run_with(command, "")
}
