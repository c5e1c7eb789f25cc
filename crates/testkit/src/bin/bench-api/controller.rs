//! The program that is measured, as a process of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// The kernel counts CPU time in these, on every architecture of Linux that matters.
const TICKS_PER_SECOND: u64 = 100;

/// A controller with its default settings. It ends with this, and with the thread that started it.
pub(crate) struct Controller {
    process: Child,
    log: PathBuf,
}

impl Controller {
    /// The folder gets its log.
    pub(crate) fn start(egret: &Path, kubeconfig: &Path, folder: &Path) -> anyhow::Result<Self> {
        let log = folder.join("controller.log");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(egret).arg("controller").arg("--kubeconfig").arg(kubeconfig);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy().to_lowercase();
            if text.starts_with("egret_") || text.ends_with("_proxy") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::null()).stdout(File::create(&log)?).stderr(File::options().append(true).open(&log)?);
        let process = command.spawn().context("failed to start setpriv")?;
        Ok(Self { process, log })
    }

    /// Fails with its last words if it has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.process.try_wait()? {
            bail!("the controller has ended, {status}:\n{}", fs::read_to_string(&self.log)?);
        }
        Ok(())
    }

    /// User and system time since it was started.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let stat = fs::read_to_string(self.file("stat")).context("failed to ask for the controller's CPU time")?;
        // The name, in parentheses, may have anything in it.
        let fields = stat.rsplit_once(") ").map(|(_, fields)| fields).context("a legal stat file")?;
        let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
    }

    /// The greatest resident size it ever had, in kB.
    pub(crate) fn peak_memory(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(self.file("status")).context("failed to ask for the controller's memory")?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|text| text.split_whitespace().next()?.parse().ok());
        peak.context("a legal status file")
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.process.id().to_string()).join(name)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It is ours, and SIGKILL cannot be refused.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
