//! What people are told about their input, with the place in it.

use std::ops::Range;
use std::sync::Arc;

use egret_api::{Fault, FieldPath, Segment};
use serde_json::Value;

use super::file::{Document, File, Place};
use super::tree::SyntaxFault;

/// Where an object came from.
#[derive(Clone, Debug)]
pub struct Origin {
    document: Arc<Document>,
    /// From the document to the object: `items[3]`, or empty.
    prefix: FieldPath,
}

impl Origin {
    pub(crate) fn new(document: &Arc<Document>) -> Self {
        Self { document: Arc::clone(document), prefix: FieldPath::default() }
    }

    /// The origin of an object that came from no file: its own text, as YAML, by the name of where it is stored.
    pub(crate) fn of_stored(name: &str, object: &Value) -> Self {
        let text = serde_saphyr::to_string(object).unwrap_or_default();
        let whole = 0..text.len();
        Self::new(&Document::new(&File::new(name, text), whole))
    }

    /// The origin of an element of the list at this origin.
    pub(crate) fn item(&self, index: usize) -> Self {
        Self { document: Arc::clone(&self.document), prefix: self.prefix.key("items").index(index) }
    }

    /// The name of the file, `<stdin>` for standard input.
    #[must_use]
    pub fn file(&self) -> &str {
        self.document.file.name()
    }

    /// The line that the object begins on, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.place(&FieldPath::default()).line().unwrap_or(1)
    }

    /// The place of a value of the object; where it is absent, of the deepest thing on the way to it.
    pub(crate) fn place(&self, path: &FieldPath) -> Place {
        let segments: Vec<Segment> = self.prefix.segments().iter().chain(path.segments()).cloned().collect();
        let document = &self.document;
        let span = document.tree().and_then(|tree| tree.locate(document.text(), &segments)).unwrap_or_default();
        Place::new(&document.file, shift(&span, document.range.start))
    }
}

fn shift(span: &Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The input was used, though perhaps not as meant.
    Warning,
    /// Some of the input was not used.
    Error,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something in the input that people should know: what, where, and what to do.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    severity: Severity,
    message: String,
    place: Place,
    object: Option<String>,
    earlier: Option<Place>,
    help: Option<String>,
}

impl Diagnostic {
    /// An error at the value that a fault of an object is about.
    #[must_use]
    pub fn of_fault(origin: &Origin, fault: &Fault) -> Self {
        let mut diagnostic = Self::at(Severity::Error, fault.to_string(), origin.place(&fault.path));
        diagnostic.help.clone_from(&fault.help);
        diagnostic
    }

    /// The same as a warning.
    #[must_use]
    pub fn into_warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// With the object that it is about, for example `EgressIP egress-a`.
    #[must_use]
    pub fn with_object(mut self, object: impl Into<String>) -> Self {
        self.object = Some(object.into());
        self
    }

    pub(crate) fn at(severity: Severity, message: String, place: Place) -> Self {
        Self { severity, message, place, object: None, earlier: None, help: None }
    }

    /// About a file as a whole, whose text is not at hand.
    pub(crate) fn of_file(severity: Severity, name: &str, message: impl Into<String>) -> Self {
        Self::at(severity, message.into(), Place::new(&File::new(name, String::new()), 0..0))
    }

    pub(crate) fn of_syntax(document: &Document, fault: SyntaxFault) -> Self {
        let place = Place::new(&document.file, shift(&fault.span, document.range.start));
        let mut diagnostic = Self::at(Severity::Error, fault.message, place);
        diagnostic.help = fault.help;
        diagnostic
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn with_earlier(mut self, earlier: Place) -> Self {
        self.earlier = Some(earlier);
        self
    }

    /// How bad it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// What it is: lower case, no period.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The file, as people named it; `<stdin>` for standard input.
    #[must_use]
    pub fn file(&self) -> &str {
        self.place.file()
    }

    /// The line, from 1; `None` where it is about a file as a whole.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.place.line()
    }

    /// The column in characters, from 1.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.place.column()
    }

    /// The object that it is about, if that is known.
    #[must_use]
    pub fn object(&self) -> Option<&str> {
        self.object.as_deref()
    }

    /// File and line of the other place that it is about, if there is one.
    #[must_use]
    pub fn earlier(&self) -> Option<(&str, Option<usize>)> {
        self.earlier.as_ref().map(|place| (&**place.file(), place.line()))
    }

    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn earlier_place(&self) -> Option<&Place> {
        self.earlier.as_ref()
    }
}
