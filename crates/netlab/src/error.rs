//! Why a lab cannot be built or changed.

use std::io;
use std::process::ExitStatus;

use thiserror::Error;

/// Why a lab does not do what it was asked. What a probe meets is no error: see [`crate::Reply`].
#[derive(Debug, Error)]
pub enum LabError {
    /// The process still has the network of the machine.
    #[error("a lab is built inside `alone` only: here it would change the machine's own network")]
    NotAlone,
    /// A namespace could not be made.
    #[error("failed to make the network namespace {name}")]
    Namespace {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A program could not be started.
    #[error("failed to start {program} in {place}")]
    Start {
        /// The program.
        program: String,
        /// The namespace.
        place: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A program has failed.
    #[error("{program} in {place}: {status}\n{said}\nit was told:\n{told}")]
    Program {
        /// The program and its arguments.
        program: String,
        /// The namespace.
        place: String,
        /// How it ended.
        status: ExitStatus,
        /// Its standard error.
        said: String,
        /// Its standard input.
        told: String,
    },
    /// A kernel parameter could not be read or written.
    #[error("failed to read or write {name} in {place}")]
    Sysctl {
        /// The parameter.
        name: String,
        /// The namespace.
        place: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Links stay down.
    #[error("these links in {place} stay down: {links}")]
    Down {
        /// The namespace.
        place: String,
        /// The links.
        links: String,
    },
    /// A file below `/etc` could not be written.
    #[error("failed to write /etc/{path} of {place}")]
    Etc {
        /// The file.
        path: String,
        /// The namespace.
        place: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A socket of a server, a flow or a capture.
    #[error("failed to open a socket in {place}")]
    Socket {
        /// The namespace.
        place: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A node has as many pods as its subnet has room for.
    #[error("{node} has no address for another pod")]
    Full {
        /// The node.
        node: String,
    },
    /// There is nothing of that name, or not there.
    #[error("the lab has no {what} {name}")]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// Its name.
        name: String,
    },
}
