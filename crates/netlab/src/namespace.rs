//! A network namespace, and how to be inside.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::panic;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::error::LabError;
use crate::settle;

/// Where `ip netns` looks for names.
pub(crate) const NAMES: &str = "/run/netns";

/// Where what hosts have in `/etc` beside what the machine has is kept.
const ETC: &str = "/run/etc";

/// A network namespace that lives as long as this, its sockets and its processes do.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    file: File,
    /// Whether its programs have an `/etc` of their own.
    own_etc: AtomicBool,
}

impl Namespace {
    /// A new one, which `ip -n NAME` and `ip netns exec NAME` know too.
    pub(crate) fn new(name: &str) -> Result<Self, LabError> {
        let file = on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        });
        let named = |file: File| {
            let target = target(name);
            File::create(&target)?;
            let source = format!("/proc/self/fd/{}", file.as_raw_fd());
            mount(Some(source.as_str()), &target, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
            Ok(file)
        };
        let file = file.and_then(named).map_err(|source| LabError::Namespace { name: name.to_owned(), source })?;
        Ok(Self { name: name.to_owned(), file, own_etc: AtomicBool::new(false) })
    }

    /// The one that this process is in, without a name that others know.
    pub(crate) fn own(name: &str) -> Result<Self, LabError> {
        let file = File::open("/proc/self/ns/net");
        let file = file.map_err(|source| LabError::Namespace { name: name.to_owned(), source })?;
        Ok(Self { name: name.to_owned(), file, own_etc: AtomicBool::new(false) })
    }

    /// How others find it.
    pub(crate) fn path(&self) -> PathBuf {
        target(&self.name)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Moves the calling thread, which must be one that nobody else uses, into the namespace.
    pub(crate) fn enter(&self) -> io::Result<()> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)?;
        Ok(())
    }

    /// Does something on a thread that is inside. A socket that is opened there stays there, whoever uses it.
    pub(crate) fn inside<R: Send>(&self, body: impl FnOnce() -> R + Send) -> R {
        on_a_thread(|| {
            self.enter().expect("a namespace that is open can be entered by who made it");
            body()
        })
    }

    /// Lines for `ip -batch`. It finds out of which family an address is, but for those of rules: lines that need it
    /// begin with `-6`, and come after the others.
    pub(crate) fn ip(&self, lines: &[String]) -> Result<(), LabError> {
        let text = |lines: &[&str]| lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
        let v6: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("-6 ")).collect();
        let other: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.starts_with("-6 ")).collect();
        if !other.is_empty() {
            self.tell(&["ip", "-batch", "-"], &text(&other))?;
        }
        if !v6.is_empty() {
            self.tell(&["ip", "-6", "-batch", "-"], &text(&v6))?;
        }
        Ok(())
    }

    /// Changes the ruleset in one transaction.
    pub(crate) fn nft(&self, text: &str) -> Result<(), LabError> {
        self.tell(&["nft", "-f", "-"], text).map(drop)
    }

    /// What a program that must succeed says on its standard output.
    pub(crate) fn tell(&self, program: &[&str], text: &str) -> Result<String, LabError> {
        let output = self.output(program, text)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(LabError::Program {
            program: program.join(" "),
            place: self.name.clone(),
            status: output.status,
            said: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
            told: text.to_owned(),
        })
    }

    /// Runs a program to its end.
    pub(crate) fn output(&self, program: &[&str], text: &str) -> Result<Output, LabError> {
        let failed = |source| LabError::Start { program: program.join(" "), place: self.name.clone(), source };
        let (name, arguments) = program.split_first().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.start(&mut command).map_err(failed)?;
        let mut input = child.stdin.take().expect("it was asked for");
        thread::scope(|scope| {
            // On a thread of its own: a program may talk before it has listened to everything. Or it never listens, and
            // then how it ends says why.
            scope.spawn(move || input.write_all(text.as_bytes()));
            child.wait_with_output()
        })
        .map_err(failed)
    }

    /// Starts a program.
    pub(crate) fn start(&self, command: &mut Command) -> io::Result<Child> {
        // A process starts where the thread is that starts it.
        self.inside(|| {
            if self.own_etc.load(Ordering::Acquire) {
                self.see_own_etc()?;
            }
            command.spawn()
        })
    }

    /// Gives programs that are started from now on a file below `/etc` that others do not see.
    pub(crate) fn write_etc(&self, path: &str, text: &str) -> Result<(), LabError> {
        let failed = |source| LabError::Etc { path: path.to_owned(), place: self.name.clone(), source };
        let [upper, work] = self.etc();
        let file = upper.join(path);
        let folder = file.parent().unwrap_or(&upper);
        fs::create_dir_all(&work).and_then(|()| fs::create_dir_all(folder)).map_err(failed)?;
        fs::write(file, text).map_err(failed)?;
        self.own_etc.store(true, Ordering::Release);
        Ok(())
    }

    fn etc(&self) -> [PathBuf; 2] {
        ["upper", "work"].map(|part| PathBuf::from(ETC).join(&self.name).join(part))
    }

    /// For the calling thread and what it starts.
    fn see_own_etc(&self) -> io::Result<()> {
        let [upper, work] = self.etc();
        unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS)?;
        let layers = format!("lowerdir=/etc,upperdir={},workdir={}", upper.display(), work.display());
        mount(Some("overlay"), "/etc", Some("overlay"), MsFlags::empty(), Some(layers.as_str()))?;
        Ok(())
    }

    /// Waits until these links carry packets.
    pub(crate) fn settle<L: AsRef<str> + Sync>(&self, links: &[L]) -> Result<(), LabError> {
        let links: Vec<&str> = links.iter().map(AsRef::as_ref).collect();
        let unsettled = self.inside(|| settle::settle(&links));
        if unsettled.is_empty() { Ok(()) } else { Err(LabError::Down { place: self.name.clone(), links: unsettled }) }
    }

    /// A kernel parameter by its path below `net`, such as `ipv4/ip_forward`.
    pub(crate) fn sysctl(&self, name: &str) -> Result<String, LabError> {
        let value = self.inside(|| fs::read_to_string(sysctl_file(name)));
        value.map(|text| text.trim_end().to_owned()).map_err(|source| self.sysctl_failed(name, source))
    }

    /// Sets kernel parameters in the order given.
    pub(crate) fn set_sysctls<N: AsRef<str> + Sync>(&self, values: &[(N, &str)]) -> Result<(), LabError> {
        self.inside(|| {
            values.iter().try_for_each(|(name, value)| {
                let name = name.as_ref();
                fs::write(sysctl_file(name), value).map_err(|source| self.sysctl_failed(name, source))
            })
        })
    }

    fn sysctl_failed(&self, name: &str, source: io::Error) -> LabError {
        LabError::Sysctl { name: name.to_owned(), place: self.name.clone(), source }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // All names go with the mount namespace anyway.
        let target = target(&self.name);
        let _ = umount2(&target, MntFlags::MNT_DETACH);
        let _ = fs::remove_file(target);
    }
}

fn target(name: &str) -> PathBuf {
    PathBuf::from(NAMES).join(name)
}

/// `/proc/sys` shows the namespace of the thread that looks.
fn sysctl_file(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys/net").join(name)
}

fn on_a_thread<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(body).join()).unwrap_or_else(|panic| panic::resume_unwind(panic))
}
