//! A process that does not outlive this one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;

use nix::sys::signal::kill;
use nix::unistd::Pid;

pub use nix::sys::signal::Signal;

use crate::error::LabError;
use crate::namespace::Namespace;
use crate::until::PAUSE;

/// Becomes the program, after leaving behind a watcher that reads a pipe from us. If that ends without a word, we are
/// gone, whatever the reason, and the watcher kills the program.
///
/// Not `PR_SET_PDEATHSIG`: that fires when the *thread* that started the process ends, and that one ends at once.
const LEASHED: &str = r#"
    exec 3<&0 </dev/null
    { read -r _ <&3 || kill -KILL $$; } >/dev/null 2>&1 &
    exec 3<&-
    exec "$@"
"#;

/// A program that runs until this is dropped or this process ends. What it says is in [`Process::log`].
#[derive(Debug)]
#[must_use = "the program is killed when this is dropped"]
pub struct Process {
    child: Child,
    leash: ChildStdin,
    log: PathBuf,
}

impl Process {
    /// Starts a program where this process is. Of the command, its program, arguments, environment and folder count. What
    /// it says is appended to the log.
    ///
    /// # Errors
    ///
    /// It cannot be started, or the log not be written.
    pub fn start(command: &Command, log: &Path) -> io::Result<Self> {
        Self::of(leashed(command, log)?.spawn()?, log.to_owned())
    }

    pub(crate) fn start_in(namespace: &Namespace, command: &Command, log: PathBuf) -> Result<Self, LabError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = |source| LabError::Start { program: name.clone(), place: namespace.name().to_owned(), source };
        let mut leashed = leashed(command, &log).map_err(failed)?;
        Self::of(namespace.start(&mut leashed).map_err(failed)?, log).map_err(failed)
    }

    fn of(mut child: Child, log: PathBuf) -> io::Result<Self> {
        let leash = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, leash, log })
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        // Unlike `Child::wait` with a pipe of its own: closing that would be the leash's word to kill.
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Asks or forces it to do what the signal says. Nothing happens if it has ended.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        // Its number may be somebody else's by now if it has ended and we have been told so.
        if self.ended()?.is_none() {
            let id = i32::try_from(self.id()).expect("Linux has no larger ones");
            kill(Pid::from_raw(id), signal)?;
        }
        Ok(())
    }

    /// What it has said so far, on both channels.
    #[must_use]
    pub fn said(&self) -> String {
        fs::read(&self.log).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
    }

    /// The file with what it says.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }
}

/// The same command on a leash.
fn leashed(command: &Command, log: &Path) -> io::Result<Command> {
    let out = File::options().create(true).append(true).open(log)?;
    let mut leashed = Command::new("sh");
    leashed.args(["-c", LEASHED, "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => leashed.env(name, value),
            None => leashed.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        leashed.current_dir(folder);
    }
    leashed.stdin(Stdio::piped()).stdout(out.try_clone()?).stderr(out);
    // An interrupt from the keyboard is for the test; the leash tells the rest.
    leashed.process_group(0);
    Ok(leashed)
}

impl Drop for Process {
    fn drop(&mut self) {
        // Neither can fail in a way that leaves it running: it is ours, and SIGKILL cannot be refused.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Only now does the watcher hear that there is nothing to kill, since from here on the number is free.
        let _ = self.leash.write_all(b"\n");
    }
}
