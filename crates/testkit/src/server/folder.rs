//! The folder of one control plane, which does not outlive this process either.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Waits for the end of a pipe from us, then removes the folder. What still writes into it is being killed at the same
/// moment, so that the first try may come too early.
const KEEPER: &str = r#"
    read -r _
    tries=0
    until rm -rf "$1" || [ $tries -ge 100 ]; do tries=$((tries + 1)); sleep 0.05; done
"#;

/// A folder that only this user can read, gone when this is dropped or this process ends.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    keeper: Child,
}

impl Folder {
    pub(crate) fn new() -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("egret-server-").permissions(private).tempdir()?;
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "sh"]).arg(folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0);
        let keeper = command.spawn()?;
        Ok(Self { path: folder.keep(), keeper })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // A folder that cannot be removed fails no test.
        let _ = self.keeper.wait();
    }
}
