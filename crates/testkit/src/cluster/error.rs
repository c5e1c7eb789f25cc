//! Why a cluster cannot be started or changed.

use std::io;
use std::path::PathBuf;

use egret_netlab::LabError;
use thiserror::Error;

use crate::server::{ControlPlaneError, Part, PartsError};

/// Why a cluster does not do what it was asked.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// The lab does not.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The control plane does not.
    #[error(transparent)]
    ControlPlane(#[from] ControlPlaneError),
    /// The API server refuses something.
    #[error("failed to write {what} to the API server")]
    Api {
        /// What.
        what: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// A program is not to be had.
    #[error("failed to find {}", part.name())]
    Parts {
        /// The program.
        part: Part,
        /// Why.
        #[source]
        source: PartsError,
    },
    /// The CNI plugins are not to be had.
    #[error("failed to build the CNI plugins with {}", script.display())]
    Plugins {
        /// What builds them.
        script: PathBuf,
        /// Why it could not be started, if it could not.
        #[source]
        source: Option<io::Error>,
    },
    /// A CNI plugin says something else than addresses.
    #[error("the CNI plugin returned no addresses for {pod}: {said}")]
    Addresses {
        /// The pod.
        pod: String,
        /// What it said.
        said: String,
    },
    /// A file of a node could not be written.
    #[error("failed to write {}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// kube-proxy does not begin to work.
    #[error("kube-proxy on {node} is not ready; it says:\n{said}")]
    Proxy {
        /// The node.
        node: String,
        /// All that it has said.
        said: String,
    },
}

impl ClusterError {
    pub(crate) fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Api { what, source: Box::new(source) }
    }
}
