//! The program `nft`.

use std::io::{self, Write as _};
use std::process::{Command, Output, Stdio};
use std::thread;

use egret_hostmodel::TABLE;
use serde_json::Value;

use super::Nftables;
use crate::Class;
use crate::netlink::Fault;

/// What comes of nftables.
#[derive(Debug, thiserror::Error)]
pub enum NftError {
    /// The program does not run.
    #[error("failed to run nft")]
    Start(#[source] io::Error),
    /// It refuses, or the kernel does; nothing was changed.
    #[error("nft refuses: {}", complaint.lines().next().unwrap_or_default())]
    Refused {
        /// What it says.
        complaint: String,
    },
    /// Its JSON is none.
    #[error("failed to read what nft lists")]
    Listing(#[source] serde_json::Error),
    /// The kernel does not tell what is in the sets.
    #[error("failed to list elements")]
    Elements(#[source] Fault),
    /// The memory of how the table looked cannot be kept.
    #[error("failed to remember how the table looks")]
    Memory(#[source] io::Error),
    /// A table without chains was asked for.
    #[error("there is no telling how the table should look")]
    Shapeless,
}

impl NftError {
    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Start(error) | Self::Memory(error) => Class::of_io(error),
            // The texts are the C library's, in its own language: the program is told to speak it.
            Self::Refused { complaint } if complaint.contains("Operation not permitted") => Class::Denied,
            Self::Refused { complaint } => {
                let changed = ["No such file or directory", "File exists", "Device or resource busy"];
                if changed.iter().any(|text| complaint.contains(text)) { Class::Conflict } else { Class::Invalid }
            }
            Self::Elements(fault) => Class::of_fault(*fault),
            Self::Listing(_) | Self::Shapeless => Class::Bug,
        }
    }
}

/// The program, found by the search path; it acts in the network namespace of the thread that calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program;

impl Program {
    fn output(arguments: &[&str], input: &str) -> Result<Output, NftError> {
        let mut command = Command::new("nft");
        command.args(arguments).env("LC_ALL", "C");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(NftError::Start)?;
        let mut stdin = child.stdin.take().expect("it was asked for");
        let output = thread::scope(|scope| {
            // It may complain before it has read everything.
            scope.spawn(move || stdin.write_all(input.as_bytes()));
            child.wait_with_output()
        });
        let output = output.map_err(NftError::Start)?;
        if output.status.success() {
            return Ok(output);
        }
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(NftError::Refused { complaint })
    }
}

impl Nftables for Program {
    fn list(&mut self) -> Result<Value, NftError> {
        let output = Self::output(&["--json", "--stateless", "--terse", "list", "table", "inet", TABLE], "")?;
        serde_json::from_slice(&output.stdout).map_err(NftError::Listing)
    }

    fn run(&mut self, commands: &str) -> Result<(), NftError> {
        Self::output(&["--file", "-"], commands).map(drop)
    }
}
