//! What a command has to say, as sections of notes and tables; written for a terminal or as Markdown.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, presets};

use crate::input::printable;

/// How the terminal wants it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// With colours.
    pub colour: bool,
    /// Columns; `None` where lines may have any length, as in a pipe.
    pub width: Option<u16>,
}

/// What a cell says about what it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing.
    #[default]
    Plain,
    /// All is well.
    Good,
    /// It will change.
    Change,
    /// It needs somebody.
    Bad,
}

/// A table of texts. Names and entries of the input are free text, so every text comes in as it may be printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    headers: Vec<&'static str>,
    rows: Vec<Vec<(String, Tone)>>,
}

impl Grid {
    pub(crate) fn new(headers: &[&'static str]) -> Self {
        Self { headers: headers.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [(String, Tone); N]) {
        self.rows.push(cells.into_iter().map(|(text, tone)| (printable(&text), tone)).collect());
    }
}

/// Shorthand for a cell.
pub(crate) fn cell(text: impl Into<String>) -> (String, Tone) {
    (text.into(), Tone::Plain)
}

/// A cell with a tone.
pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> (String, Tone) {
    (text.into(), tone)
}

/// A titled part of a report.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    title: String,
    notes: Vec<String>,
    grid: Option<Grid>,
}

impl Section {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: printable(&title.into()), notes: Vec::new(), grid: None }
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(printable(&note.into()));
        self
    }

    pub(crate) fn notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes.into_iter().map(|note| printable(&note)));
        self
    }

    /// With a table, unless it has no row; columns without a single text are left out.
    pub(crate) fn grid(mut self, mut grid: Grid) -> Self {
        for column in (0..grid.headers.len()).rev() {
            if grid.rows.iter().all(|row| row[column].0.is_empty()) {
                grid.headers.remove(column);
                for row in &mut grid.rows {
                    row.remove(column);
                }
            }
        }
        self.grid = Some(grid).filter(|grid| !grid.rows.is_empty());
        self
    }
}

/// The sections for a terminal or a pipe.
pub(crate) fn terminal(sections: &[Section], style: Style) -> String {
    let mut text = String::new();
    for section in sections {
        if !text.is_empty() {
            text.push('\n');
        }
        let title = &section.title;
        if style.colour {
            let _ = writeln!(text, "\x1b[1m{title}\x1b[0m");
        } else {
            let _ = writeln!(text, "{title}");
        }
        for note in &section.notes {
            for line in wrap(note, style.width) {
                let _ = writeln!(text, "  {line}");
            }
        }
        if let Some(grid) = &section.grid {
            text.push_str(&table(grid, style));
        }
    }
    text
}

/// The least that the last column gets before a table becomes blocks of lines.
const LAST_COLUMN: usize = 24;

fn table(grid: &Grid, style: Style) -> String {
    // Only the last column is ever wrapped: half an address at the end of a line is misread.
    let last = grid.headers.len().saturating_sub(1);
    let widest = |column: usize| {
        let cells = grid.rows.iter().map(|row| row[column].0.as_str()).chain([grid.headers[column]]);
        cells.map(|text| text.chars().count()).max().unwrap_or_default()
    };
    let fixed: usize = (0..last).map(|column| widest(column) + 2).sum();
    if let Some(width) = style.width
        && usize::from(width) < fixed + widest(last).min(LAST_COLUMN) + 3
    {
        return blocks(grid, style);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(grid.headers.iter().map(Cell::new));
    match style.width {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.saturating_sub(1)),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    if style.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    for column in table.column_iter_mut().take(last) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    for row in &grid.rows {
        table.add_row(row.iter().map(|(text, tone)| match tone {
            Tone::Plain => Cell::new(text),
            Tone::Good => Cell::new(text).fg(Color::Green),
            Tone::Change => Cell::new(text).fg(Color::Yellow),
            Tone::Bad => Cell::new(text).fg(Color::Red).add_attribute(Attribute::Bold),
        }));
    }
    let mut text = String::new();
    for line in table.trim_fmt().lines() {
        let _ = writeln!(text, " {line}");
    }
    text
}

/// For terminals too narrow for a table: a block of lines for each row.
fn blocks(grid: &Grid, style: Style) -> String {
    let mut text = String::new();
    for (i, row) in grid.rows.iter().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        for (header, (cell, _)) in grid.headers.iter().zip(row).filter(|(_, (cell, _))| !cell.is_empty()) {
            for line in wrap(&format!("{header}: {cell}"), style.width) {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
    text
}

/// Breaks a note at spaces, so that it fits behind two columns of margin.
pub(crate) fn wrap(text: &str, width: Option<u16>) -> Vec<String> {
    let Some(width) = width else { return vec![text.to_owned()] };
    let width = usize::from(width).saturating_sub(2).max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Text that Markdown shows as it is. Digits, letters, dots and dashes need nothing inside a line.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\\' | '|' | '<' | '&' | '[' | ']' | '*' | '_' | '`' | '~') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// The sections as Markdown.
pub(crate) fn markdown(title: &str, sections: &[Section]) -> String {
    let mut text = format!("# {}\n", escape(title));
    for section in sections {
        let _ = writeln!(text, "\n## {}", escape(&section.title));
        for note in &section.notes {
            let _ = write!(text, "\n- {}", escape(note));
        }
        if !section.notes.is_empty() {
            text.push('\n');
        }
        if let Some(grid) = &section.grid {
            let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
            text.push('\n');
            text.push_str(&line(grid.headers.iter().map(|header| escape(header)).collect()));
            text.push_str(&line(grid.headers.iter().map(|_| "---".to_owned()).collect()));
            for row in &grid.rows {
                text.push_str(&line(row.iter().map(|(cell, _)| escape(cell)).collect()));
            }
        }
    }
    text
}

/// `1 node`, `2 nodes`.
pub(crate) fn count(number: usize, word: &str) -> String {
    match (number, word.strip_suffix('s')) {
        (1, _) => format!("1 {word}"),
        (_, Some(_)) => format!("{number} {word}es"),
        _ => format!("{number} {word}s"),
    }
}

/// The first few of `names`, and how many more there are.
pub(crate) fn few<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    /// What fits into a line beside a reason.
    const SHOWN: usize = 4;
    let names: Vec<&str> = names.into_iter().collect();
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 1 => format!("{shown} and {more} more"),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections() -> Vec<Section> {
        let mut grid = Grid::new(&["A", "WHY"]);
        grid.row([cell("x|y"), toned("one two three four five six seven", Tone::Bad)]);
        vec![Section::new("TITLE").note("a note of several words here").grid(grid), Section::new("EMPTY")]
    }

    #[test]
    fn a_pipe_gets_whole_lines_without_colour() {
        let text = terminal(&sections(), Style::default());
        assert!(text.contains("x|y  one two three four five six seven\n"), "{text}");
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn a_narrow_terminal_is_never_overrun() {
        let text = terminal(&sections(), Style { colour: false, width: Some(30) });
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
    }

    #[test]
    fn markdown_keeps_bars_out_of_its_columns() {
        let text = markdown("Plan", &sections());
        assert!(text.contains("| x\\|y | one two three four five six seven |"), "{text}");
    }

    #[test]
    fn free_text_steers_neither_terminal_nor_markdown() {
        let text = "a\u{1b}[2J\nb\u{202e}";
        let mut grid = Grid::new(&["A", "WHY"]);
        grid.row([cell(text), cell("[click](http://example.com) `x` *y* _z_ <b> &lt;")]);
        let sections = [Section::new(text).note(text).notes([text.to_owned()]).grid(grid)];
        let steers = |text: &str| text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}');
        for width in [None, Some(20)] {
            let text = terminal(&sections, Style { colour: false, width });
            assert!(!steers(&text) && text.contains("a\\u{1b}[2J\\nb"), "{text}");
        }
        let text = markdown("Plan", &sections);
        assert!(!steers(&text), "{text}");
        assert!(text.contains(r"\[click\](http://example.com) \`x\` \*y\* \_z\_ \<b> \&lt;"), "{text}");
    }

    #[test]
    fn long_lists_are_cut_with_a_count() {
        assert_eq!(few(["a", "b"]), "a, b");
        assert_eq!(few(["a", "b", "c", "d", "e", "f"]), "a, b, c, d and 2 more");
        assert_eq!([count(1, "node"), count(2, "node"), count(2, "address")], ["1 node", "2 nodes", "2 addresses"]);
    }
}
