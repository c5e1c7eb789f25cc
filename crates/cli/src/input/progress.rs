//! What is shown while a large input is read.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Is told how far the reading has come.
pub trait Progress {
    /// The next file is about to be read; so many objects were found before it.
    fn file(&self, name: &str, objects_so_far: usize);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn file(&self, _name: &str, _objects_so_far: usize) {}
}

/// One line on standard error that is gone when this value is dropped; nothing if that is no terminal.
#[derive(Debug)]
pub struct Spinner {
    bar: ProgressBar,
    since: Instant,
}

/// What is read faster than this is not worth a line that flashes.
const PATIENCE: Duration = Duration::from_millis(200);

impl Spinner {
    /// A line that is not drawn before the first file.
    #[must_use]
    pub fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), since: Instant::now() };
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} reading {wide_msg}") {
            bar.set_style(style);
        }
        Self { bar, since: Instant::now() }
    }
}

impl Default for Spinner {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Spinner {
    fn file(&self, name: &str, objects_so_far: usize) {
        if self.since.elapsed() >= PATIENCE {
            self.bar.set_message(format!("{name} ({objects_so_far} objects so far)"));
            self.bar.tick();
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
