//! The values of a JSON text.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::tree::SyntaxFault;

/// A value each, with its span; and what ended the text early, if something did.
pub(crate) type Values = (Vec<(Range<usize>, Value)>, Option<SyntaxFault>);

/// The values of a text of concatenated JSON (`kubectl get -o json` twice into one file).
pub(crate) fn parse(source: &str) -> Values {
    let mut values = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(source).into_iter::<Unique>();
    let mut start = 0;
    loop {
        match stream.next() {
            None => return (values, None),
            Some(Ok(Unique(value))) => {
                let end = stream.byte_offset();
                if !value.is_null() {
                    values.push((start..end, value));
                }
                start = end;
            }
            Some(Err(error)) => return (values, Some(syntax_fault(source, start, &error))),
        }
    }
}

/// `serde_json` counts lines from the first byte of the text, columns in bytes from 1, and 0 is the end of the line above.
fn syntax_fault(source: &str, from: usize, error: &serde_json::Error) -> SyntaxFault {
    let line_start = match error.line().saturating_sub(2) {
        _ if error.line() <= 1 => 0,
        before => source.match_indices('\n').nth(before).map_or(0, |(newline, _)| newline + 1),
    };
    let start = (line_start + error.column()).saturating_sub(1).clamp(from, source.len());
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message).to_owned();
    let mut length = 1;
    let (start, help) = if error.is_eof() {
        (source.trim_end().len().saturating_sub(1), "the text ends too early; was it cut off?")
    } else if let Some(name) = message.strip_prefix(DUPLICATE) {
        // The reader stands on the last byte of the key.
        length = name.len();
        (start.saturating_sub(name.len().saturating_sub(1)), "Kubernetes refuses such an object; remove one of the two")
    } else if message.starts_with("recursion limit") {
        (start, "no object of Kubernetes nests so deep; check what wrote this file")
    } else {
        (start, "correct the JSON here, or just above")
    };
    SyntaxFault { span: start..start + length, message, help: Some(help.to_owned()) }
}

const DUPLICATE: &str = "this map holds twice the key ";

/// A value in which no map has a key twice, as the API server demands; `serde_json` itself keeps the last one.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Unique)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("{DUPLICATE}{key:?}")));
            }
            let Unique(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(source: &str) -> SyntaxFault {
        parse(source).1.expect("the text is at fault")
    }

    #[test]
    fn concatenated_values_are_told_apart() {
        let source = "{\"a\": 1}\n[2]{\"b\":\"\\u00e4\"} null ";
        let (values, fault) = parse(source);
        assert_eq!(fault, None);
        let texts: Vec<_> = values.iter().map(|(range, _)| source[range.clone()].trim()).collect();
        assert_eq!(texts, ["{\"a\": 1}", "[2]", "{\"b\":\"\\u00e4\"}"]);
        assert_eq!(values[2].1, json!({"b": "ä"}));
    }

    #[test]
    fn values_before_a_fault_are_kept() {
        let (values, fault) = parse("{\"a\": 1}\n{\"a\" 1}");
        assert_eq!(values.len(), 1);
        let fault = fault.expect("a colon is missing");
        assert_eq!((fault.span.start, fault.message.as_str()), (14, "expected `:`"));
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused_where_it_stands() {
        let source = "{\n  \"a\": 1,\n  \"a\": 2}";
        let fault = fault(source);
        assert_eq!(fault.message, "this map holds twice the key \"a\"");
        assert_eq!(&source[fault.span.start..], "\"a\": 2}");
    }

    #[test]
    fn a_text_that_ends_early_is_at_fault_at_its_end() {
        assert_eq!(fault("{\"a\": [1,\n").span, 8..9);
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert!(fault(&"[".repeat(10_000)).message.starts_with("recursion limit"));
    }
}
