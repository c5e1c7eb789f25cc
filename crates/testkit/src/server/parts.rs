//! Where the programs of a control plane are.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

/// A program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controllers that come with Kubernetes.
    ControllerManager,
    /// What makes services reachable on a node.
    Proxy,
}

/// Why a program is not to be had.
#[derive(Debug, Error)]
pub enum PartsError {
    /// `KUBEBUILDER_ASSETS` has one that lacks what Egret relies on.
    #[error("{} in KUBEBUILDER_ASSETS is not known to be {least} or newer", program.display())]
    TooOld {
        /// The program.
        program: PathBuf,
        /// The oldest version that will do.
        least: &'static str,
    },
    /// The script that builds them could not be started.
    #[error("failed to start {}", script.display())]
    Start {
        /// The script.
        script: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The script has failed, and has said why on standard error.
    #[error("failed to build the control plane with {}", script.display())]
    Build {
        /// The script.
        script: PathBuf,
    },
}

impl Part {
    /// What the program is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Etcd => "etcd",
            Part::ApiServer => "kube-apiserver",
            Part::ControllerManager => "kube-controller-manager",
            Part::Proxy => "kube-proxy",
        }
    }

    /// The program: from the folder that `KUBEBUILDER_ASSETS` names, else from `PATH`, else built, which takes minutes
    /// the first time and is told on standard error.
    ///
    /// Blocks. What was found is remembered for as long as the process runs.
    ///
    /// # Errors
    ///
    /// It is there but too old, or it had to be built and could not.
    pub fn find(self) -> Result<PathBuf, PartsError> {
        static FOUND: Mutex<BTreeMap<Part, PathBuf>> = Mutex::new(BTreeMap::new());
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = found.get(&self) {
            return Ok(program.clone());
        }
        let assets = env::var_os("KUBEBUILDER_ASSETS");
        let program = match self.chosen(assets.as_deref(), env::var_os("PATH").as_deref())? {
            Some(program) => program,
            None => build()?.join(self.name()),
        };
        found.insert(self, program.clone());
        Ok(program)
    }

    /// One that is there already. A folder that was named is taken at its word, or refused; what merely is on the `PATH`
    /// is passed over if it will not do.
    fn chosen(self, assets: Option<&OsStr>, path: Option<&OsStr>) -> Result<Option<PathBuf>, PartsError> {
        let there = |folder: PathBuf| Some(folder.join(self.name())).filter(|program| program.is_file());
        if let Some(program) = assets.and_then(|folder| there(folder.into())) {
            let least = self.least();
            return if self.will_do(&program) { Ok(Some(program)) } else { Err(PartsError::TooOld { program, least }) };
        }
        let mut programs = path.into_iter().flat_map(env::split_paths).filter_map(there);
        Ok(programs.find(|program| self.will_do(program)))
    }

    /// The oldest that will do. An API server streams lists unasked since 1.34; it leaves that to an etcd that tells the
    /// progress of a watch, and etcd does so without mistakes since 3.5.8.
    fn least(self) -> &'static str {
        match self {
            Part::Etcd => "3.5.8",
            Part::ApiServer | Part::ControllerManager | Part::Proxy => "1.34",
        }
    }

    fn will_do(self, program: &Path) -> bool {
        let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
        output.is_ok_and(|output| {
            let have = version(&String::from_utf8_lossy(&output.stdout));
            have.is_some() && have >= version(self.least())
        })
    }
}

/// The first `1.2.3` or `v1.2.3` in what a program says of itself.
fn version(text: &str) -> Option<Vec<u32>> {
    text.split_whitespace().find_map(|word| {
        let numbers: Option<Vec<u32>> =
            word.trim_start_matches('v').split('.').map(|number| number.parse().ok()).collect();
        numbers.filter(|numbers| numbers.len() > 1)
    })
}

/// The folder with all four, built now unless they have been before.
fn build() -> Result<PathBuf, PartsError> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../controlplane/build");
    let output = Command::new(&script).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    match output {
        Err(source) => Err(PartsError::Start { script, source }),
        Ok(output) if !output.status.success() => Err(PartsError::Build { script }),
        Ok(output) => Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn fake(folder: &Path, says: &str) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let program = folder.join("etcd");
        fs::write(&program, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn the_named_folder_comes_before_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let named = fake(&folder.path().join("named"), "etcd Version: 3.6.8");
        let other = fake(&folder.path().join("other"), "etcd Version: 3.6.9");
        let (named_folder, other_folder) = (named.parent().unwrap().as_os_str(), other.parent().unwrap().as_os_str());
        assert_eq!(Part::Etcd.chosen(Some(named_folder), Some(other_folder)).unwrap(), Some(named.clone()));
        assert_eq!(Part::Etcd.chosen(None, Some(other_folder)).unwrap(), Some(other.clone()));
        // What it lacks may still be on the path.
        assert_eq!(Part::ApiServer.chosen(Some(named_folder), Some(other_folder)).unwrap(), None);
    }

    #[test]
    fn one_that_cannot_stream_lists_is_refused_if_named_and_passed_over_on_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let old = fake(&folder.path().join("old"), "etcd Version: 3.4.23");
        let new = fake(&folder.path().join("new"), "etcd Version: 3.5.21");
        let (old_folder, new_folder) = (old.parent().unwrap(), new.parent().unwrap());
        let refused = Part::Etcd.chosen(Some(old_folder.as_os_str()), None).unwrap_err();
        assert!(refused.to_string().ends_with("old/etcd in KUBEBUILDER_ASSETS is not known to be 3.5.8 or newer"));
        let path = env::join_paths([old_folder, new_folder]).unwrap();
        assert_eq!(Part::Etcd.chosen(None, Some(&path)).unwrap(), Some(new));
        assert_eq!(Part::Etcd.chosen(None, Some(old_folder.as_os_str())).unwrap(), None);
    }

    #[test]
    fn versions_compare_by_number() {
        assert_eq!(version("etcd Version: 3.6.8\nGit SHA: 1.x"), Some(vec![3, 6, 8]));
        assert_eq!(version("Kubernetes v1.36.3"), Some(vec![1, 36, 3]));
        assert!(version("v1.9.11") < version("1.34"));
        assert_eq!(version("unknown"), None);
    }
}
