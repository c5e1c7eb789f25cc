//! The name that this program was called by: `egret`, or `kubectl egret` where it is installed as `kubectl-egret`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Command, CommandFactory, FromArgMatches};

use crate::args::Cli;

/// How this program was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// By its own name, or any other.
    Egret,
    /// As a plugin of kubectl, which hands on everything behind its name.
    KubectlPlugin,
}

impl Program {
    /// By the first of the arguments.
    #[must_use]
    pub fn called(argument: Option<&OsStr>) -> Self {
        let name = argument.and_then(|path| Path::new(path).file_name()).unwrap_or_default();
        // kubectl finds plugins with underscores for dashes too, but there is no dash in our name.
        if name == "kubectl-egret" { Self::KubectlPlugin } else { Self::Egret }
    }

    /// What people type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Egret => "egret",
            Self::KubectlPlugin => "kubectl egret",
        }
    }

    /// What the shell runs, and completes.
    #[must_use]
    pub fn executable(self) -> &'static str {
        match self {
            Self::Egret => "egret",
            Self::KubectlPlugin => "kubectl-egret",
        }
    }

    /// Reads the command line.
    ///
    /// # Errors
    /// What is wrong with it, or the help that it asks for, both in the name that was called.
    pub fn parse(self, arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
        let mut command = self.command();
        let matches = command.try_get_matches_from_mut(arguments)?;
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    fn command(self) -> Command {
        let command = Cli::command();
        if self == Self::Egret {
            return command;
        }
        let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
        let command = self.renamed(command).bin_name(self.name());
        names.into_iter().fold(command, |command, name| command.mut_subcommand(name, |inner| self.renamed(inner)))
    }

    /// With examples that can be typed.
    fn renamed(self, command: Command) -> Command {
        let Some(text) = command.get_after_help().map(StyledStr::to_string) else { return command };
        let renamed = ["  egret ", "| egret ", "`egret "]
            .into_iter()
            .fold(text, |text, call| text.replace(call, &call.replace("egret", self.name())));
        command.after_help(renamed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(program: Program, arguments: &[&str]) -> String {
        let arguments = arguments.iter().map(OsString::from);
        program.parse(arguments).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_plugin_is_told_by_the_name_of_its_file() {
        for (path, program) in [
            ("kubectl-egret", Program::KubectlPlugin),
            ("/usr/local/bin/kubectl-egret", Program::KubectlPlugin),
            ("/usr/bin/egret", Program::Egret),
            ("kubectl-egret-old", Program::Egret),
        ] {
            assert_eq!(Program::called(Some(OsStr::new(path))), program, "{path}");
        }
        assert_eq!(Program::called(None), Program::Egret);
    }

    #[test]
    fn a_plugin_calls_itself_what_people_type() {
        let program = Program::KubectlPlugin;
        for (arguments, call) in [
            (&["kubectl-egret", "--help"][..], "Usage: kubectl egret "),
            (&["kubectl-egret", "plan", "--help"], "Usage: kubectl egret plan "),
            (&["kubectl-egret", "plan", "--help"], "  kubectl egret plan --drain"),
            (&["kubectl-egret", "plan", "--help"], "| kubectl egret plan - "),
            (&["kubectl-egret", "explain"], "Usage: kubectl egret explain "),
        ] {
            let text = told(program, arguments);
            assert!(text.contains(call), "{call}: {text}");
            assert!(!text.contains("  egret ") && !text.contains("| egret "), "{text}");
        }
    }

    #[test]
    fn by_its_own_name_it_is_egret() {
        let text = told(Program::Egret, &["egret", "plan", "--help"]);
        assert!(text.contains("Usage: egret plan ") && text.contains("  egret plan --drain"), "{text}");
        assert!(!text.contains("kubectl egret"), "{text}");
    }
}
