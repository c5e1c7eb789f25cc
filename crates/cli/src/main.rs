//! The `egret` binary.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use egret_cli::args::Colour;
use egret_cli::input::Spinner;
use egret_cli::{FAILURE, Program, SUCCESS, Streams, Style, USAGE, run};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let program = Program::called(arguments.first().map(OsString::as_os_str));
    let cli = match program.parse(arguments) {
        Ok(cli) => cli,
        Err(usage) => {
            let asked = usage.exit_code() == 0;
            let printed = usage.print().is_ok();
            return ExitCode::from(if asked && printed { SUCCESS } else { USAGE });
        }
    };
    let streams = Streams {
        stdout: style(cli.color, std::io::stdout().is_terminal(), terminal_size::terminal_size_of(std::io::stdout())),
        stderr: style(cli.color, std::io::stderr().is_terminal(), terminal_size::terminal_size_of(std::io::stderr())),
    };
    let output = run(&cli, program, streams, &Spinner::new());
    // A reader that closes its pipe early, as `head` does, is no error worth telling.
    let told = std::io::stderr().write_all(output.stderr.as_bytes());
    let written = std::io::stdout().write_all(output.stdout.as_bytes()).and_then(|()| std::io::stdout().flush());
    ExitCode::from(if told.and(written).is_ok() { output.code } else { FAILURE })
}

fn style(colour: Colour, terminal: bool, size: Option<(terminal_size::Width, terminal_size::Height)>) -> Style {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = match colour {
        Colour::Auto => terminal && !no_color,
        Colour::Always => true,
        Colour::Never => false,
    };
    Style { colour, width: size.map(|(width, _)| width.0) }
}
