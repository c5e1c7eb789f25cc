//! A LabelSelector of an object, compiled.

use egret_core::{NodeSelector, Selector, SelectorFault, SelectorPart};
use serde_json::Value;

use crate::{Fault, FieldPath, Segment};

/// Compiles the selector at `path` of an object; `structural` are the faults of the object's schema check.
///
/// `faults` gets what compiling finds. A selector with a structural fault is faulty too, even where the API server would
/// only prune a misspelled field: `matchLabel` pruned away would leave a selector that matches everything.
pub(crate) fn compile(
    selector: &Value,
    path: &FieldPath,
    structural: &[Fault],
    faults: &mut Vec<Fault>,
) -> NodeSelector {
    let structural: Vec<&Fault> = structural.iter().filter(|fault| fault.path.starts_with(path)).collect();
    let mut all: Vec<SelectorFault> = structural
        .iter()
        .map(|fault| SelectorFault { part: part(fault, path), reason: fault.message.clone() })
        .collect();
    let compiled = Selector::compile(match_labels(selector), match_expressions(selector));
    for fault in compiled.as_ref().err().into_iter().flatten() {
        let at = position(&fault.part, path);
        // What the schema has already refused was replaced by an empty text, which says nothing more.
        if structural.iter().all(|known| !at.starts_with(&known.path)) {
            faults.push(Fault::new(at, fault.reason.clone()));
            all.push(fault.clone());
        }
    }
    match compiled {
        Ok(selector) if all.is_empty() => NodeSelector::Compiled(selector),
        _ => NodeSelector::Faulty(all),
    }
}

fn match_labels(selector: &Value) -> impl Iterator<Item = (&str, &str)> {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    labels.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn match_expressions(selector: &Value) -> impl Iterator<Item = (&str, &str, Vec<&str>)> {
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    expressions.into_iter().flatten().map(|expression| {
        let text = |key| expression.get(key).and_then(Value::as_str).unwrap_or_default();
        let values = expression.get("values").and_then(Value::as_array);
        let values = values.into_iter().flatten().map(|value| value.as_str().unwrap_or_default()).collect();
        (text("key"), text("operator"), values)
    })
}

fn position(part: &SelectorPart, selector: &FieldPath) -> FieldPath {
    let expression = |i: &usize| selector.key("matchExpressions").index(*i);
    match part {
        SelectorPart::MatchLabel(key) => selector.key("matchLabels").key(key),
        SelectorPart::Key(i) => expression(i).key("key"),
        SelectorPart::Operator(i) => expression(i).key("operator"),
        SelectorPart::Values(i) => expression(i).key("values"),
        SelectorPart::Value(i, j) => expression(i).key("values").index(*j),
        SelectorPart::Whole => selector.clone(),
    }
}

/// The part that a structural fault lies in.
fn part(fault: &Fault, selector: &FieldPath) -> SelectorPart {
    let below = fault.path.segments().get(selector.segments().len()..).unwrap_or_default();
    let name = |segment: Option<&Segment>| match segment {
        Some(Segment::Key(key)) => key.clone(),
        _ => String::new(),
    };
    match below {
        [Segment::Key(list), Segment::Index(i), rest @ ..] if list == "matchExpressions" => {
            match (name(rest.first()).as_str(), rest.get(1)) {
                ("operator", _) => SelectorPart::Operator(*i),
                ("values", Some(Segment::Index(j))) => SelectorPart::Value(*i, *j),
                ("values", _) => SelectorPart::Values(*i),
                _ => SelectorPart::Key(*i),
            }
        }
        [_, key, ..] => SelectorPart::MatchLabel(name(Some(key))),
        _ => SelectorPart::Whole,
    }
}
