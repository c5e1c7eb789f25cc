//! Where a status that changes is shown: drawn over on a terminal, one block after the other in a pipe or a file.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use terminal_size::terminal_size_of;

use crate::report::Style;

/// Begins and ends a drawing that a terminal shows at once (one that does not know that ignores it), and in which a line
/// that is too long is cut: one that went on in the next row would push the last ones out of sight.
const BEGIN: &str = "\x1b[?2026h\x1b[?7l";
const END: &str = "\x1b[?7h\x1b[?2026l";

/// Where it is shown.
pub(super) struct Screen {
    terminal: bool,
    colour: bool,
    shown: Option<String>,
}

/// What is shown.
pub(super) struct Picture {
    /// One line above it.
    pub(super) title: String,
    /// The rest. Only if this changes there is something new.
    pub(super) text: String,
    /// For programs: without a title.
    pub(super) bare: bool,
}

impl Screen {
    /// Standard output.
    pub(super) fn new(style: Style) -> Self {
        Self { terminal: io::stdout().is_terminal(), colour: style.colour, shown: None }
    }

    /// How it wants things, as wide as it is now.
    pub(super) fn style(&self) -> Style {
        Style { colour: self.colour, width: self.size().map(|(width, _)| width) }
    }

    fn size(&self) -> Option<(u16, u16)> {
        let size = terminal_size_of(io::stdout()).filter(|_| self.terminal);
        size.map(|(width, height)| (width.0, height.0))
    }

    /// Shows it, unless it is what is shown already.
    ///
    /// # Errors
    /// If nobody reads it any more.
    pub(super) fn show(&mut self, picture: &Picture) -> io::Result<()> {
        if self.shown.as_ref() == Some(&picture.text) {
            return Ok(());
        }
        let text = match self.size() {
            Some((_, height)) => drawn(picture, height, self.shown.is_none()),
            None => block(picture, self.shown.is_none()),
        };
        self.shown = Some(picture.text.clone());
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// What is shown now has other measures than it was drawn for.
    pub(super) fn forget(&mut self) {
        self.shown = None;
    }
}

/// Each line takes the place of the one before (which is erased first: at the end of a line that fills its row the cursor
/// still stands on the last character); nothing else is cleared, so nothing flickers.
fn drawn(picture: &Picture, height: u16, first: bool) -> String {
    let mut text = String::from(BEGIN);
    text.push_str(if first { "\x1b[2J\x1b[H" } else { "\x1b[H" });
    let title = [picture.title.as_str(), ""];
    let lines: Vec<&str> = title.into_iter().filter(|_| !picture.bare).chain(picture.text.lines()).collect();
    // The last line is the cursor's.
    let room = usize::from(height).saturating_sub(1).max(1);
    let whole = lines.len() <= room;
    let kept = if whole { lines.len() } else { room.saturating_sub(1) };
    for line in &lines[..kept] {
        let _ = write!(text, "\x1b[K{line}\r\n");
    }
    if !whole {
        let _ = write!(text, "\x1b[K({} more lines; a higher terminal shows them)\r\n", lines.len() - kept);
    }
    text.push_str("\x1b[J");
    text.push_str(END);
    text
}

fn block(picture: &Picture, first: bool) -> String {
    let Picture { title, text, bare } = picture;
    match (bare, first) {
        (true, _) => text.clone(),
        (false, true) => format!("{title}\n\n{text}"),
        (false, false) => format!("\n{title}\n\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(lines: usize) -> Picture {
        let text = (1..=lines).fold(String::new(), |text, line| text + &format!("line {line}\n"));
        Picture { title: "title".to_owned(), text, bare: false }
    }

    #[test]
    fn a_drawing_takes_the_place_of_the_one_before_without_clearing_it() {
        let text = drawn(&picture(2), 24, false);
        assert!(!text.contains("\x1b[2J"), "{text:?}");
        assert_eq!(
            text,
            "\x1b[?2026h\x1b[?7l\x1b[H\x1b[Ktitle\r\n\x1b[K\r\n\x1b[Kline 1\r\n\x1b[Kline 2\r\n\x1b[J\x1b[?7h\x1b[?2026l"
        );
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let text = drawn(&picture(20), 10, true);
        assert_eq!(text.matches("\r\n").count(), 9, "{text:?}");
        assert!(text.contains("\x1b[Kline 6\r\n\x1b[K(14 more lines;"), "{text:?}");
    }

    #[test]
    fn blocks_are_set_apart_and_programs_get_no_titles() {
        assert_eq!(block(&picture(1), true), "title\n\nline 1\n");
        assert_eq!(block(&picture(1), false), "\ntitle\n\nline 1\n");
        let bare = Picture { bare: true, ..picture(1) };
        assert_eq!(block(&bare, false), "line 1\n");
    }
}
