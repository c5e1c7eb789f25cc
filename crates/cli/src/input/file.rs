//! The text of one file, and the documents in it.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::tree::Tree;

/// A text file that was read, with the name that people know it by.
#[derive(Debug)]
pub(crate) struct File {
    name: Arc<str>,
    text: String,
    /// Where each line begins; made when the first place is asked for.
    lines: OnceLock<Vec<usize>>,
}

impl File {
    pub(crate) fn new(name: &str, text: String) -> Arc<Self> {
        Arc::new(Self { name: name.into(), text, lines: OnceLock::new() })
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The number of the line that holds this byte, from 0, and the line's range without its end.
    fn line_at(&self, offset: usize) -> (usize, Range<usize>) {
        let lines = self.lines.get_or_init(|| {
            std::iter::once(0).chain(self.text.match_indices('\n').map(|(newline, _)| newline + 1)).collect()
        });
        let number = lines.partition_point(|&start| start <= offset).saturating_sub(1);
        let start = lines.get(number).copied().unwrap_or_default();
        let end = lines.get(number + 1).map_or(self.text.len(), |next| next - 1);
        let line = self.text.get(start..end).unwrap_or_default();
        (number, start..start + line.strip_suffix('\r').unwrap_or(line).len())
    }
}

/// A stretch of a file.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    file: Arc<File>,
    /// From 0.
    number: usize,
    line: Range<usize>,
    span: Range<usize>,
}

impl Place {
    /// The span is cut to its first line, and moved onto a character border where a parser counted otherwise.
    pub(crate) fn new(file: &Arc<File>, span: Range<usize>) -> Self {
        let text = file.text();
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let (number, line) = file.line_at(start);
        let start = start.min(line.end);
        let end = text.ceil_char_boundary(span.end.clamp(start, line.end));
        Self { file: Arc::clone(file), number, line, span: start..end }
    }

    pub(crate) fn file(&self) -> &Arc<str> {
        self.file.name()
    }

    /// From 1; `None` where the file has no text to point into.
    pub(crate) fn line(&self) -> Option<usize> {
        (!self.file.text().is_empty()).then_some(self.number + 1)
    }

    /// In characters, from 1.
    pub(crate) fn column(&self) -> Option<usize> {
        self.line().map(|_| self.before().chars().count() + 1)
    }

    /// The text of the line up to the span.
    pub(crate) fn before(&self) -> &str {
        self.file.text().get(self.line.start..self.span.start).unwrap_or_default()
    }

    /// The text of the span.
    pub(crate) fn marked(&self) -> &str {
        self.file.text().get(self.span.clone()).unwrap_or_default()
    }

    /// The text of the line behind the span.
    pub(crate) fn after(&self) -> &str {
        self.file.text().get(self.span.end..self.line.end).unwrap_or_default()
    }
}

/// One document of a file: what stands between two `---` lines, or one value of a file of concatenated JSON.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) file: Arc<File>,
    pub(crate) range: Range<usize>,
    /// Made when the first place in it is asked for, so that ten thousand faults in one list cost one walk.
    tree: OnceLock<Option<Tree>>,
}

impl Document {
    pub(crate) fn new(file: &Arc<File>, range: Range<usize>) -> Arc<Self> {
        Arc::new(Self { file: Arc::clone(file), range, tree: OnceLock::new() })
    }

    pub(crate) fn text(&self) -> &str {
        self.file.text().get(self.range.clone()).unwrap_or_default()
    }

    pub(crate) fn tree(&self) -> Option<&Tree> {
        self.tree.get_or_init(|| Tree::parse(self.text()).ok()).as_ref()
    }
}

/// The documents of a text.
///
/// They are cut apart before anything is parsed, so that an error in one of them cannot hide the others. YAML allows no
/// line that begins with the marker `---` or `...` inside a document, not even in a quoted or a block scalar, so the
/// text alone tells. Comments and directives (`%YAML`) in front of a marker belong to what follows it.
pub(crate) fn split(text: &str) -> Vec<Range<usize>> {
    let mut documents = Vec::new();
    let (mut start, mut offset, mut preamble) = (0, 0, true);
    for line in text.split_inclusive('\n') {
        let end = offset + line.len();
        if is_marker(line, "---") {
            if !preamble {
                documents.push(start..offset);
                start = offset;
            }
            preamble = false;
        } else if is_marker(line, "...") {
            documents.push(start..end);
            (start, preamble) = (end, true);
        } else {
            preamble &= matches!(line.trim_start().bytes().next(), None | Some(b'#' | b'%'));
        }
        offset = end;
    }
    documents.push(start..text.len());
    documents
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        split(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn documents_are_cut_at_marker_lines() {
        assert_eq!(texts("a: 1\n---\nb: 2\n--- # c\nc: 3"), ["a: 1\n", "---\nb: 2\n", "--- # c\nc: 3"]);
        assert_eq!(texts("a: 1\r\n---\r\nb: 2\r\n"), ["a: 1\r\n", "---\r\nb: 2\r\n"]);
        assert_eq!(texts("a: 1\n...\nb: 2\n"), ["a: 1\n...\n", "b: 2\n"]);
    }

    #[test]
    fn what_only_looks_like_a_marker_is_text() {
        assert_eq!(texts("a: |\n  ---\n----BEGIN\n ---\n").len(), 1);
    }

    #[test]
    fn a_preamble_belongs_to_the_document_behind_it() {
        assert_eq!(texts("# a dump\n%YAML 1.2\n---\na: 1\n"), ["# a dump\n%YAML 1.2\n---\na: 1\n"]);
    }

    #[test]
    fn a_place_counts_characters_and_keeps_to_one_line() {
        let file = File::new("f", "a: 1\nß: äöü x\nz".to_owned());
        let start = file.text().find('ö').unwrap();
        let place = Place::new(&file, start..file.text().len());
        assert_eq!((place.line(), place.column()), (Some(2), Some(5)));
        assert_eq!((place.before(), place.marked(), place.after()), ("ß: ä", "öü x", ""));
        let inside = Place::new(&file, start + 1..start + 1);
        assert_eq!(inside.column(), Some(5), "a byte inside a character is that character");
        assert_eq!(Place::new(&file, 900..901).line(), Some(3));
    }
}
