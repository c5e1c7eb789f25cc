//! Diagnostics as text for people; the only file that knows `annotate-snippets`.

use annotate_snippets::{AnnotationKind, Element, Level, Origin, Renderer, Snippet};

use super::diagnostic::{Diagnostic, Severity};
use super::file::Place;

/// How diagnostics are written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// With terminal colours.
    pub colour: bool,
    /// Columns of the terminal; longer source lines are cut.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, width: 100 }
    }
}

/// Columns that a source line cannot have: line number and frame.
const FRAME: usize = 12;

/// The least that is shown of a source line, however narrow the terminal.
const LEAST: usize = 20;

/// What stands for the part of a line that was cut off.
const CUT: &str = "...";

impl Diagnostic {
    /// The diagnostic over several lines, without a line break at the end.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let level = match self.severity() {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let renderer = if style.colour { Renderer::styled() } else { Renderer::plain() };
        let width = style.width.saturating_sub(FRAME).max(LEAST);
        let place = Excerpt::new(self.place(), PRIMARY, width);
        let earlier = self.earlier_place().map(|earlier| Excerpt::new(earlier, EARLIER, width));
        let mut group = level.primary_title(printable(self.message())).element(place.element(AnnotationKind::Primary));
        if let Some(earlier) = &earlier {
            group = group.element(earlier.element(AnnotationKind::Context));
        }
        if let Some(object) = self.object() {
            group = group.element(Level::NOTE.message(format!("in {}", printable(object))));
        }
        if let Some(help) = self.help() {
            group = group.element(Level::HELP.message(printable(help)));
        }
        // The lines are cut already: by the renderer's own measure they always fit.
        let text = renderer.term_width(usize::from(u16::MAX)).render(&[group]);
        let text = place.name(&text);
        match earlier {
            Some(earlier) => earlier.name(&text),
            None => text,
        }
    }
}

/// The renderer derives the column that it shows from the line that it is given. Ours may be cut, so it writes these
/// for the paths, which no input can contain where they are looked for, and the real position is put in afterwards.
const PRIMARY: char = '\u{E000}';
const EARLIER: char = '\u{E001}';

/// `--> file:line:column` and the source line with the span underlined.
struct Excerpt<'a> {
    place: &'a Place,
    mark: char,
    before: String,
    marked: String,
    after: String,
}

impl<'a> Excerpt<'a> {
    fn new(place: &'a Place, mark: char, width: usize) -> Self {
        let (before, marked, after) = cut(place, width);
        Self { place, mark, before: harmless(&before), marked: harmless(&marked), after: harmless(&after) }
    }

    fn element(&self, kind: AnnotationKind) -> Element<'_> {
        let Some(line) = self.place.line() else { return Origin::path(self.mark.to_string()).into() };
        let label = matches!(kind, AnnotationKind::Context).then_some("the earlier one");
        let span = self.before.len()..self.before.len() + self.marked.len();
        Snippet::source(format!("{}{}{}", self.before, self.marked, self.after))
            .line_start(line)
            .path(self.mark.to_string())
            .annotation(kind.span(span).label(label))
            .into()
    }

    /// Puts the file and the position where the mark is.
    fn name(&self, text: &str) -> String {
        let file = printable(self.place.file());
        let (shown, real) = match (self.place.line(), self.place.column()) {
            (Some(line), Some(column)) => {
                (format!("{}:{line}:{}", self.mark, self.before.chars().count() + 1), format!("{file}:{line}:{column}"))
            }
            _ => (self.mark.to_string(), file),
        };
        // The title stands in front of the position: a mark in it would be met first, so `printable` keeps none.
        text.replacen(&shown, &real, 1)
    }
}

/// What is before, in and after the span, together at most `width` characters.
///
/// Cut here and not by the renderer, which would first lay out the whole line: a dump in compact JSON is one line of
/// megabytes.
fn cut(place: &Place, width: usize) -> (String, String, String) {
    let (before, marked, after) = (place.before(), place.marked(), place.after());
    let length = |text: &str| text.chars().take(width + 1).count();
    if length(before) + length(marked) + length(after) <= width {
        return (before.to_owned(), marked.to_owned(), after.to_owned());
    }
    let marked = head(marked, width * 2 / 3);
    let room = width.saturating_sub(length(&marked));
    // What follows the value says less than what leads to it.
    let after_room = length(after).min(room / 3);
    let before = tail(before, room - after_room);
    let after = head(after, room.saturating_sub(length(&before)));
    (before, marked, after)
}

fn head(text: &str, room: usize) -> String {
    if text.chars().nth(room).is_none() {
        return text.to_owned();
    }
    let kept = text.chars().take(room.saturating_sub(CUT.len()));
    kept.chain(CUT.chars()).collect()
}

fn tail(text: &str, room: usize) -> String {
    let Some((start, _)) = text.char_indices().rev().nth(room.saturating_sub(CUT.len() + 1)) else {
        return text.to_owned();
    };
    if text.chars().rev().nth(room).is_none() {
        return text.to_owned();
    }
    format!("{CUT}{}", text.get(start..).unwrap_or_default())
}

/// A source line of the same length without what steers a terminal; the first set of control characters, up to U+001F,
/// the renderer draws itself.
fn harmless(line: &str) -> String {
    let replace = |c: char| if steers(c) && !c.is_ascii() { char::REPLACEMENT_CHARACTER } else { c };
    line.chars().map(replace).collect()
}

/// Whether a terminal would act on the character instead of showing it: control characters, line separators, and what
/// turns the direction of reading.
fn steers(character: char) -> bool {
    let turns = matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns || matches!(character, '\u{2028}' | '\u{2029}')
}

/// Without what steers a terminal and without our own marks: a manifest must not be able to do so through a text that
/// quotes it.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if steers(character) || matches!(character, PRIMARY | EARLIER) {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    printable
}
