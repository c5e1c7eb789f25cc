//! A YAML document as its parser saw it: every node with its place in the text.
//!
//! One walk of the parser gives both the value of a document ([`Tree::value`](super::yaml)) and, later and only where
//! something is wrong, the place of a value ([`Tree::locate`](super::locate)).

use std::collections::BTreeMap;
use std::ops::Range;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError};

/// How deep a document may nest. The limit of `serde_json`; Kubernetes objects stay below 30. The functions that
/// recurse over a document rely on it.
pub(crate) const MAX_DEPTH: usize = 128;

/// Why a text is not a document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxFault {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// The nodes of a document in the order of the text; empty for a document without any.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<u32>,
    /// The index of the first node that is not inside this one.
    pub(crate) next: u32,
    pub(crate) shape: Shape,
}

#[derive(Debug)]
pub(crate) enum Shape {
    /// `plain` is one whose text decides its type; any other is text.
    Scalar {
        text: Text,
        plain: bool,
    },
    /// Keys and values take turns.
    Map,
    List,
    /// Stands for the node of this index.
    Alias(u32),
}

#[derive(Debug)]
pub(crate) enum Text {
    /// A stretch of the document.
    Slice(Range<u32>),
    /// Had escapes or line breaks in it.
    Owned(Box<str>),
}

impl Text {
    fn new(source: &str, span: &Range<usize>, text: &str) -> Self {
        [span.clone(), span.start + 1..span.end.saturating_sub(1)]
            .into_iter()
            .find(|range| source.get(range.clone()) == Some(text))
            .map_or_else(|| Self::Owned(text.into()), |range| Self::Slice(narrow(&range)))
    }

    pub(crate) fn get<'a>(&'a self, source: &'a str) -> &'a str {
        match self {
            Self::Slice(range) => source.get(widen(range)).unwrap_or_default(),
            Self::Owned(text) => text,
        }
    }
}

/// Files above 1 GiB are refused before they get here.
fn narrow(range: &Range<usize>) -> Range<u32> {
    let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
    narrow(range.start)..narrow(range.end)
}

pub(crate) fn widen(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

impl Tree {
    /// # Errors
    /// The first thing in the text that is not YAML, a nesting beyond [`MAX_DEPTH`], or an alias to what it is in.
    pub(crate) fn parse(source: &str) -> Result<Self, SyntaxFault> {
        let mut options = granit_parser::options! {
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
        };
        options.set_emit_comments(false);
        let mut builder = Builder { source, tree: Self::default(), open: Vec::new(), anchors: BTreeMap::new() };
        for event in Parser::new_from_str_with_options(source, options) {
            let (event, span) = event.map_err(|error| scan_fault(source, &error))?;
            builder.take(event, span.byte_range().unwrap_or_default())?;
        }
        Ok(builder.tree)
    }

    /// The index of the first node behind `index`.
    pub(crate) fn next(&self, index: usize) -> usize {
        self.nodes.get(index).map_or(usize::MAX, |node| (node.next as usize).max(index + 1))
    }

    /// The nodes directly inside `index`, in order.
    pub(crate) fn children(&self, index: usize) -> impl Iterator<Item = usize> {
        let end = self.next(index);
        std::iter::successors(Some(index + 1), |&child| Some(self.next(child))).take_while(move |&child| child < end)
    }
}

struct Builder<'a> {
    source: &'a str,
    tree: Tree,
    open: Vec<usize>,
    anchors: BTreeMap<usize, u32>,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), SyntaxFault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                // An explicit tag of another scalar type overrules quotes, `!!str` overrules their absence.
                let plain = match tag.as_ref().and_then(|tag| tag.core_suffix()) {
                    Some("int" | "float" | "bool" | "null") => true,
                    Some(_) => false,
                    None => style == ScalarStyle::Plain,
                };
                let text = Text::new(self.source, &span, &text);
                self.push(Shape::Scalar { text, plain }, span, anchor);
            }
            Event::MappingStart(_, anchor, _) => self.start(Shape::Map, span, anchor)?,
            Event::SequenceStart(_, anchor, _) => self.start(Shape::List, span, anchor)?,
            Event::MappingEnd | Event::SequenceEnd => self.end(span.end),
            Event::Alias(anchor) => self.alias(anchor, span)?,
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, shape: Shape, span: Range<usize>, anchor: usize) -> usize {
        let index = self.tree.nodes.len();
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        if anchor != 0 {
            self.anchors.insert(anchor, number);
        }
        self.tree.nodes.push(Node { span: narrow(&span), next: number.saturating_add(1), shape });
        index
    }

    fn start(&mut self, shape: Shape, span: Range<usize>, anchor: usize) -> Result<(), SyntaxFault> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(span));
        }
        let index = self.push(shape, span, anchor);
        self.open.push(index);
        Ok(())
    }

    fn end(&mut self, end: usize) {
        let next = u32::try_from(self.tree.nodes.len()).unwrap_or(u32::MAX);
        if let Some(node) = self.open.pop().and_then(|index| self.tree.nodes.get_mut(index)) {
            node.next = next;
            node.span.end = u32::try_from(end).unwrap_or(u32::MAX).max(node.span.start);
        }
    }

    fn alias(&mut self, anchor: usize, span: Range<usize>) -> Result<(), SyntaxFault> {
        match self.anchors.get(&anchor).copied() {
            Some(target) if !self.open.contains(&(target as usize)) => {
                self.push(Shape::Alias(target), span, 0);
                Ok(())
            }
            _ => Err(SyntaxFault {
                span,
                message: "this alias stands inside the value that it refers to".to_owned(),
                help: Some("write the value out".to_owned()),
            }),
        }
    }
}

pub(crate) fn too_deep(span: Range<usize>) -> SyntaxFault {
    SyntaxFault {
        span,
        message: format!("the document nests more than {MAX_DEPTH} levels deep"),
        help: Some("no object of Kubernetes nests so deep; check what wrote this file".to_owned()),
    }
}

fn scan_fault(source: &str, error: &ScanError) -> SyntaxFault {
    let mut start = error.marker().byte_offset().unwrap_or_default();
    let help = match error.kind() {
        ErrorKind::RecursionLimitExceeded => return too_deep(start..start + 1),
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            // Reported behind it.
            if source.as_bytes().get(start.wrapping_sub(1)) == Some(&b'\t') {
                start -= 1;
            }
            "indent with spaces: YAML allows no tabs there"
        }
        ErrorKind::UnclosedQuotedScalar | ErrorKind::DocumentIndicatorInQuotedScalar => {
            "close the quote that is opened here or above"
        }
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence => "close the bracket that is opened here or above",
        ErrorKind::UnknownAnchor => "define the anchor (`&name`) before it is used, or put the text in quotes",
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => {
            "check the indentation; a text that contains \": \" has to be in quotes"
        }
        _ => "correct the YAML here, or in the lines just above",
    };
    SyntaxFault { span: start..start + 1, message: error.info(), help: Some(help.to_owned()) }
}
