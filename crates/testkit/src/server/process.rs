//! A process that does not outlive this one.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Becomes the program, after leaving behind a watcher that reads a pipe from us. If that ends without a word, we are
/// gone, whatever the reason, and the watcher kills the program.
///
/// Not `PR_SET_PDEATHSIG`: that fires when the *thread* that started the process ends, and each test has its own.
const LEASHED: &str = r#"
    exec 3<&0 </dev/null
    { read -r _ <&3 || kill -KILL $$; } >/dev/null 2>&1 &
    exec 3<&-
    exec "$@"
"#;

/// A program that runs until this is dropped or this process ends.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    leash: ChildStdin,
}

impl Process {
    /// What the program says is appended to the log.
    pub(crate) fn start<A: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
        log: &Path,
    ) -> io::Result<Self> {
        let log = File::options().create(true).append(true).open(log)?;
        let mut command = Command::new("sh");
        command.args(["-c", LEASHED, "sh"]).arg(program).args(arguments);
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        // An interrupt from the keyboard is for the test; the leash tells the rest.
        command.process_group(0);
        let mut child = command.spawn()?;
        let leash = child.stdin.take().expect("it was asked for");
        Ok(Self { child, leash })
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Asks or forces it to do what the signal says.
    pub(crate) fn signal(&mut self, signal: Signal) -> io::Result<()> {
        // Its number may be somebody else's by now if it has ended and we have been told so.
        if self.ended()?.is_none() {
            kill_process(Pid::from_child(&self.child), signal)?;
        }
        Ok(())
    }
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
