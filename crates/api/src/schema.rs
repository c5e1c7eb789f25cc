//! What an API server would refuse of an object, found all at once by its `OpenAPI` schema.

use std::fmt;

use serde_json::{Map, Value};

use crate::{Fault, FieldPath};

/// Longest edit distance at which a name is taken for a misspelling of another.
const MISSPELLING: usize = 2;

/// Checks `value` against `schema`: types, required fields, enums, items, properties and additionalProperties.
///
/// Null in a property is absent, as the API server prunes it there. A field that the schema does not know is a fault
/// only where a known name is close, because the API server drops it and the user would never learn why; with
/// `additionalProperties: true` nothing unknown is a fault.
pub(crate) fn check(schema: &Value, value: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    walk(schema, value, &Trail::Root, &mut faults);
    faults
}

/// The way down to a value; becomes a [`FieldPath`] only for a fault, as most of thousands of objects have none.
enum Trail<'a> {
    Root,
    Key(&'a Trail<'a>, &'a str),
    Index(&'a Trail<'a>, usize),
}

impl Trail<'_> {
    fn path(&self) -> FieldPath {
        match self {
            Self::Root => FieldPath::default(),
            Self::Key(parent, key) => parent.path().key(key),
            Self::Index(parent, index) => parent.path().index(*index),
        }
    }
}

fn walk(schema: &Value, value: &Value, trail: &Trail<'_>, faults: &mut Vec<Fault>) {
    if let Some(expected) = schema.get("type").and_then(Value::as_str)
        && !is_a(value, expected)
    {
        faults.push(wrong_type(value, expected, trail.path()));
        return;
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let allowed: Vec<_> = allowed.iter().filter_map(Value::as_str).collect();
        let fault = Fault::new(trail.path(), format!("{value} is not one of the allowed values"));
        faults.push(fault.help(format!("use one of: {}", allowed.join(", "))));
    }
    match value {
        Value::Array(list) => {
            let Some(items) = schema.get("items") else { return };
            for (i, item) in list.iter().enumerate() {
                walk(items, item, &Trail::Index(trail, i), faults);
            }
        }
        Value::Object(object) => walk_object(schema, object, trail, faults),
        _ => {}
    }
}

fn walk_object(schema: &Value, object: &Map<String, Value>, trail: &Trail<'_>, faults: &mut Vec<Fault>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let additional = schema.get("additionalProperties");
    let known = |key: &str| properties.and_then(|properties| properties.get(key));
    for (key, value) in object {
        let trail = Trail::Key(trail, key);
        match (known(key), additional) {
            (Some(_), _) if value.is_null() => {}
            (Some(schema), _) | (None, Some(schema)) => walk(schema, value, &trail, faults),
            (None, None) => {
                let names = properties.into_iter().flatten().map(|(name, _)| name.as_str());
                if let Some(name) = closest(key, names) {
                    let fault = Fault::new(trail.path(), format!("there is no field {key:?} here; it has no effect"));
                    faults.push(fault.help(format!("did you mean {name:?}?")));
                }
            }
        }
    }
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if object.get(name).is_none_or(Value::is_null) {
            faults.push(Fault::new(Trail::Key(trail, name).path(), "required, but missing"));
        }
    }
}

fn is_a(value: &Value, expected: &str) -> bool {
    match expected {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn wrong_type(value: &Value, expected: &str, path: FieldPath) -> Fault {
    let fault = Fault::new(path, format!("must be {}, not {}", with_article(expected), TypeOf(value)));
    match (expected, value) {
        ("string", Value::Bool(_) | Value::Number(_)) => fault.help(format!("quote it: \"{value}\"")),
        ("string", Value::Null) => fault.help("write \"\" for the empty string"),
        ("string", Value::Array(_) | Value::Object(_)) => fault.help("if this is JSON as text, quote all of it"),
        ("array", Value::String(_) | Value::Number(_)) => fault.help("write it as a list of one element"),
        ("boolean", Value::String(_)) => fault.help("write true or false without quotes"),
        ("integer" | "number", Value::String(_)) => fault.help("leave the quotes away"),
        _ => fault,
    }
}

fn with_article(expected: &str) -> &str {
    match expected {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "a boolean",
        "array" => "a list",
        "object" => "a map",
        other => other,
    }
}

struct TypeOf<'a>(&'a Value);

impl fmt::Display for TypeOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "a map",
        })
    }
}

/// The known name that `text` was probably meant to be: the same but for case, else one that ends with it
/// (`nodeSelector` for `egressNodeSelector`), else one within the edit distance of a misspelling.
fn closest<'a>(text: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let lower = text.to_lowercase();
    let long_enough = text.chars().count() > MISSPELLING;
    names
        .clone()
        .find(|name| name.to_lowercase() == lower)
        .or_else(|| names.clone().find(|name| long_enough && name.to_lowercase().ends_with(&lower)))
        .or_else(|| {
            let distances = names.map(|name| (distance(&lower, &name.to_lowercase()), name));
            let closest = distances.min()?;
            (long_enough && closest.0 <= MISSPELLING).then_some(closest.1)
        })
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, y) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages(value: &Value) -> Vec<String> {
        let schema = json!({
            "type": "object",
            "required": ["egressIPs"],
            "properties": {
                "egressIPs": {"type": "array", "items": {"type": "string"}},
                "egressNodeSelector": {"type": "object"},
                "podSelector": {"type": "object"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "by": {"type": "string", "enum": ["A", "B"]},
            }
        });
        check(&schema, value).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_fault_is_found_at_once_with_its_place() {
        let value = json!({"egressIPs": ["1.2.3.4", 5, null], "by": "C", "labels": {"a/b": true}});
        assert_eq!(
            messages(&value),
            [
                "by: \"C\" is not one of the allowed values",
                "egressIPs[1]: must be a string, not a number",
                "egressIPs[2]: must be a string, not null",
                "labels[\"a/b\"]: must be a string, not a boolean",
            ]
        );
    }

    #[test]
    fn null_is_absent() {
        assert_eq!(messages(&json!({"egressIPs": null, "by": null})), ["egressIPs: required, but missing"]);
    }

    #[test]
    fn an_unknown_field_is_a_fault_only_where_a_known_name_is_close() {
        let help = |key: &str| {
            let schema = json!({"properties": {"egressNodeSelector": {}, "podSelector": {}, "node": {}}});
            check(&schema, &json!({key: 1})).pop().and_then(|fault| fault.help)
        };
        for (key, name) in [
            ("egressNodeSelectors", Some("egressNodeSelector")),
            ("EGRESSNODESELECTOR", Some("egressNodeSelector")),
            ("nodeSelector", Some("egressNodeSelector")),
            ("podSelektor", Some("podSelector")),
            ("nodes", Some("node")),
            ("comment", None),
            ("x", None),
        ] {
            assert_eq!(help(key), name.map(|name| format!("did you mean {name:?}?")), "{key}");
        }
    }

    #[test]
    fn help_says_to_quote_what_yaml_took_for_something_else() {
        let schema = json!({"type": "string"});
        let help = |value| check(&schema, &value).pop().and_then(|fault| fault.help);
        assert_eq!(help(json!(true)), Some("quote it: \"true\"".to_owned()));
        assert_eq!(help(json!(1)), Some("quote it: \"1\"".to_owned()));
        assert_eq!(help(json!("1")), None);
    }
}
