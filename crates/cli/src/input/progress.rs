//! What is shown while a large input is read and thought about.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Is told how far the reading has come.
pub trait Progress {
    /// The next file is about to be read; so many objects were found before it.
    fn file(&self, name: &str, objects_so_far: usize);

    /// Everything is read; so many objects were found.
    fn all(&self, _objects: usize) {}
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn file(&self, _name: &str, _objects_so_far: usize) {}
}

/// One line on standard error that is gone when this value is dropped; nothing if that is no terminal.
#[derive(Debug, Default)]
pub struct Spinner {
    line: Option<Line>,
}

#[derive(Debug)]
struct Line {
    bar: ProgressBar,
    message: Arc<Mutex<String>>,
    /// Draws the line, however long a single file takes; ends when its channel closes.
    drawing: Option<(Sender<()>, JoinHandle<()>)>,
}

/// What is answered faster than this is not worth a line that flashes.
const PATIENCE: Duration = Duration::from_millis(200);
/// Between two drawings.
const TICK: Duration = Duration::from_millis(100);

impl Spinner {
    /// A line that is not drawn before there is something to wait for.
    #[must_use]
    pub fn new() -> Self {
        Self { line: std::io::stderr().is_terminal().then(|| Line::new(ProgressBar::new_spinner())) }
    }

    fn tell(&self, message: String) {
        if let Some(line) = &self.line {
            *line.message.lock().unwrap_or_else(PoisonError::into_inner) = message;
        }
    }
}

impl Line {
    fn new(bar: ProgressBar) -> Self {
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        let message = Arc::new(Mutex::new(String::new()));
        let (stop, stopped) = channel();
        let (drawn, text) = (bar.clone(), Arc::clone(&message));
        let draw = move || {
            let mut wait = PATIENCE;
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                drawn.set_message(text.lock().unwrap_or_else(PoisonError::into_inner).clone());
                drawn.tick();
                wait = TICK;
            }
        };
        Self { bar, message, drawing: Some((stop, thread::spawn(draw))) }
    }
}

impl Progress for Spinner {
    fn file(&self, name: &str, objects_so_far: usize) {
        let name = super::printable(name);
        self.tell(match objects_so_far {
            0 => format!("reading {name}"),
            objects => format!("reading {name} ({objects} objects so far)"),
        });
    }

    fn all(&self, objects: usize) {
        self.tell(format!("{objects} objects read, thinking"));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.drawing.take() {
            drop(stop);
            // A panic there was told by itself, and cost no more than the line.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// A terminal that passes on what is written to it.
    #[derive(Debug)]
    struct Terminal(Mutex<Sender<String>>);

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            60
        }

        fn move_cursor_up(&self, _lines: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _lines: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _columns: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _columns: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            sender.send(text.to_owned()).map_err(io::Error::other)
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_large_file_is_told_while_it_is_read_and_thought_about() {
        let (sender, written) = channel();
        let target = ProgressDrawTarget::term_like(Box::new(Terminal(Mutex::new(sender))));
        let spinner = Spinner { line: Some(Line::new(ProgressBar::with_draw_target(None, target))) };
        let shown = |wanted: &str| {
            let mut texts = std::iter::from_fn(|| written.recv_timeout(Duration::from_secs(30)).ok());
            assert!(texts.any(|text| text.contains(wanted)), "{wanted}");
        };
        spinner.file("clu\u{1b}ster.yaml", 0);
        shown("reading clu\\u{1b}ster.yaml");
        spinner.all(16_500);
        shown("16500 objects read");
    }
}
