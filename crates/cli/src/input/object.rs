//! The objects in a file.

use std::sync::Arc;

use egret_api::FieldPath;
use serde_json::Value;

use super::diagnostic::{Diagnostic, Origin, Severity};
use super::file::{Document, File, split};
use super::tree::SyntaxFault;
use super::{json, yaml};

/// One object, and where it came from.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

impl Object {
    /// What people call it: `EgressIP egress-a`, `Service shop/web`; as much of it as is there.
    pub(crate) fn label(&self) -> Option<String> {
        let text = |pointer: &str| self.value.pointer(pointer).and_then(Value::as_str);
        let kind = text("/kind")?;
        Some(match (text("/metadata/namespace"), text("/metadata/name")) {
            (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
            (None, Some(name)) => format!("{kind} {name}"),
            (_, None) => kind.to_owned(),
        })
    }
}

/// What a file holds.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// In the order of the text, lists taken apart.
    pub(crate) found: Vec<Object>,
    /// What is wrong with the rest.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// How many documents are none of Kubernetes, where that is nothing to complain about.
    pub(crate) foreign: usize,
}

impl Objects {
    /// `found` is whether the file was found in a folder: a must-gather holds YAML and JSON of all sorts.
    pub(crate) fn of(file: &Arc<File>, found: bool) -> Self {
        let mut all = Self::default();
        for range in split(file.text()) {
            let document = Document::new(file, range);
            let (values, fault) = parse(&document);
            all.diagnostics.extend(fault.map(|fault| Diagnostic::of_syntax(&document, fault)));
            for (document, value) in values {
                if found && value.get("kind").is_none() && value.get("apiVersion").is_none() {
                    all.foreign += 1;
                } else {
                    flatten(Object { value, origin: Origin::new(&document) }, &mut all);
                }
            }
        }
        all
    }
}

/// The values of a document: one or none, but for concatenated JSON.
fn parse(document: &Arc<Document>) -> (Vec<(Arc<Document>, Value)>, Option<SyntaxFault>) {
    let text = document.text();
    let body = text.strip_prefix("---").unwrap_or(text);
    let skipped = text.len() - body.len();
    let mut json_fault = None;
    // By the text, not by the file's name: standard input has none, and a document of a YAML file may be JSON.
    if body.trim_start().starts_with(['{', '[']) {
        let (values, fault) = json::parse(body);
        let start = document.range.start + skipped;
        let values: Vec<_> = values
            .into_iter()
            .map(|(range, value)| (Document::new(&document.file, range.start + start..range.end + start), value))
            .collect();
        json_fault = fault.map(|mut fault| {
            fault.span = fault.span.start + skipped..fault.span.end + skipped;
            fault
        });
        if json_fault.is_none() || !values.is_empty() {
            return (values, json_fault);
        }
    }
    match (yaml::parse(text), json_fault) {
        (Ok(value), _) => (value.map(|value| (Arc::clone(document), value)).into_iter().collect(), None),
        // It is meant as what it was understood as for longer.
        (Err(fault), Some(json)) if json.span.start >= fault.span.start => (Vec::new(), Some(json)),
        (Err(fault), _) => (Vec::new(), Some(fault)),
    }
}

/// Takes `List`, `EgressIPList` and so on apart; items of a typed list may lack the type, which then is the list's.
fn flatten(object: Object, all: &mut Objects) {
    let Object { mut value, origin } = object;
    let refuse = |path: &FieldPath, message: &str| {
        let help = "a document is one object with apiVersion, kind and metadata, or a List of such";
        Diagnostic::at(Severity::Error, message.to_owned(), origin.place(path)).with_help(help)
    };
    let Some(map) = value.as_object_mut() else {
        all.diagnostics.push(refuse(&FieldPath::default(), "this is not an object of Kubernetes"));
        return;
    };
    let item_kind = map.get("kind").and_then(Value::as_str).and_then(|kind| kind.strip_suffix("List"));
    let Some(item_kind) = item_kind.map(str::to_owned).filter(|_| map.contains_key("items")) else {
        all.found.push(Object { value, origin });
        return;
    };
    let api_version = map.get("apiVersion").cloned();
    match map.remove("items") {
        Some(Value::Array(items)) => {
            for (index, mut item) in items.into_iter().enumerate() {
                if let (false, Some(item)) = (item_kind.is_empty(), item.as_object_mut()) {
                    item.entry("kind").or_insert_with(|| item_kind.clone().into());
                    if let Some(api_version) = &api_version {
                        item.entry("apiVersion").or_insert_with(|| api_version.clone());
                    }
                }
                flatten(Object { value: item, origin: origin.item(index) }, all);
            }
        }
        // What Go writes for a list without items.
        Some(Value::Null) | None => {}
        Some(_) => all.diagnostics.push(refuse(&FieldPath::of(&["items"]), "the items of a List have to be a list")),
    }
}
