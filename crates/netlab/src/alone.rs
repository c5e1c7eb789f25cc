//! A test in namespaces of its own.

// A test that fails panics, and one that is skipped has nowhere else to say so.
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout)]

use std::env;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write as _;
use std::iter;
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::namespace::NAMES;
use crate::need::{Need, Way};
use crate::until::patient;

/// Set in the process that is inside; holds the name of the test.
const INSIDE: &str = "EGRET_LAB_INSIDE";

/// What is known to be missing here, in the words of [`Need`] and with commas between: what needs it is skipped, and
/// counted, with `CI` set too. Another machine has to have it then.
const WITHOUT: &str = "EGRET_LAB_WITHOUT";

/// Names a file that gets a line for every test: `ran NAME` or `skipped NAME: what is missing`.
const TALLY: &str = "EGRET_LAB_TALLY";

/// Much longer than any test of packets takes; a test that hangs must not hang for ever.
const LIMIT: Duration = Duration::from_mins(3);

/// How a test ends. Any error fails it.
pub type Outcome = Result<(), Box<dyn Error>>;

/// The name of the test function that this is written in, as [`alone`] wants it.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        let name = ::std::any::type_name_of_val(&here);
        name.trim_end_matches("::here")
    }};
}

/// Runs the body of a test in network and mount namespaces of its own: [`Alone`] with nothing special.
///
/// ```no_run
/// use egret_netlab::{Lab, alone, test_name};
///
/// #[test]
/// fn a_lab_can_be_built() {
///     alone(test_name!(), &[], || {
///         Lab::builder().nodes(2).build()?;
///         Ok(())
///     });
/// }
/// ```
pub fn alone(name: &str, needs: &[Need], body: impl FnOnce() -> Outcome) {
    Alone::new(name).needs(needs).run(body);
}

/// A test in network and mount namespaces of its own, where it is root and `/run` is empty.
///
/// A thread alone cannot do that: a user namespace is for single-threaded processes only. So the test binary is started
/// again in the namespaces, for this test only, and there the body runs. Everything that the test makes ends with it.
#[derive(Debug)]
#[must_use]
pub struct Alone {
    name: String,
    needs: Vec<Need>,
    limit: Duration,
    environment: Vec<(OsString, Option<OsString>)>,
    way: Way,
}

impl Alone {
    /// For the test of that name; see [`test_name!`].
    pub fn new(name: &str) -> Self {
        // The test runner knows it without the crate.
        let name = name.split_once("::").map_or(name, |(_, rest)| rest).to_owned();
        Self { name, needs: Vec::new(), limit: patient(LIMIT), environment: Vec::new(), way: Way::own() }
    }

    /// Where one of these is missing the test says so and is skipped; with `CI` set it fails, unless
    /// `EGRET_LAB_WITHOUT` names it.
    pub fn needs(mut self, needs: &[Need]) -> Self {
        self.needs.extend(needs);
        self
    }

    /// It has failed if it takes longer than this, instead of three minutes.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The process that the body runs in gets this variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// The process that the body runs in does not get this variable.
    pub fn without(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), None));
        self
    }

    /// Without the rights of root, whoever starts the tests.
    pub fn rootless(mut self) -> Self {
        if self.way == Way::Root {
            self.way = Way::Nobody;
        }
        self
    }

    /// Runs the body there.
    ///
    /// # Panics
    ///
    /// The body fails; or `CI` is set and something is missing.
    pub fn run(self, body: impl FnOnce() -> Outcome) {
        if is_inside(&self.name) {
            return self.inside(body);
        }
        if let Some(missing) = self.missing() {
            let without = env::var(WITHOUT).unwrap_or_default();
            // Without what a program said about it.
            let what = missing.split_once(" (").map_or(missing.as_str(), |(what, _)| what);
            let known = without.split(',').any(|known| known.trim() == what);
            assert!(env::var_os("CI").is_none() || known, "{} needs {missing}", self.name);
            tally(&format!("skipped {}: {missing}", self.name));
            return eprintln!("skipped: {} needs {missing}", self.name);
        }
        let binary = env::current_exe().expect("Linux knows");
        let mut command = self.way.command();
        if self.way == Way::Nobody {
            // Root may have built it where nobody may look.
            command.stdin(File::open(binary).expect("it runs")).arg("/proc/self/fd/0");
        } else {
            command.arg(binary);
        }
        command.args([&self.name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
        command.env(INSIDE, &self.name);
        for (name, value) in self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let output = command.output().expect("it was started before, to see what there is");
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        let passed = output.status.success() && out.contains("1 passed");
        assert!(passed, "{} failed in its namespace ({}):\n{out}\n{err}", self.name, output.status);
        tally(&format!("ran {}", self.name));
        print!("{out}");
        eprint!("{err}");
    }

    fn missing(&self) -> Option<String> {
        let mut needs = iter::once(Need::Namespaces).chain(self.needs.iter().copied());
        needs.find_map(|need| need.missing(self.way))
    }

    fn inside(self, body: impl FnOnce() -> Outcome) {
        prepare().unwrap_or_else(|error| panic!("{}: failed to prepare the namespaces: {error}", self.name));
        let (done, wait) = mpsc::channel::<()>();
        let (name, limit) = (self.name.clone(), self.limit);
        thread::spawn(move || {
            if wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{name} has not ended after {limit:?}");
                process::exit(124);
            }
        });
        let outcome = body();
        drop(done);
        if let Err(error) = outcome {
            panic!("{}: {}", self.name, chain(&*error));
        }
    }
}

/// An error and what it came from.
fn chain(error: &dyn Error) -> String {
    let cause = error.source().map(|cause| format!("\n  because: {}", chain(cause)));
    format!("{error}{}", cause.unwrap_or_default())
}

/// Whether this process is inside, for any test.
pub(crate) fn anybody_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

fn is_inside(name: &str) -> bool {
    env::var_os(INSIDE).is_some_and(|inside| inside == name)
}

fn prepare() -> Result<(), Box<dyn Error>> {
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
    fs::create_dir(NAMES)?;
    // Two hundred pods have more than a thousand sockets.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let up = process::Command::new("ip").args(["link", "set", "lo", "up"]).status()?;
    if up.success() { Ok(()) } else { Err("the loopback interface stays down".into()) }
}

/// A line at a time, so that processes do not get into each other's.
fn tally(line: &str) {
    let Some(file) = env::var_os(TALLY) else { return };
    let written = File::options().create(true).append(true).open(file).and_then(|mut file| writeln!(file, "{line}"));
    written.expect("the tally can be written");
}
