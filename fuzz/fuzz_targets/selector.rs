//! Any selector: it compiles or says why not, one that compiles can be asked, and what it says of itself is true.

#![no_main]

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use egret_core::Selector;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    match_labels: Vec<(String, String)>,
    match_expressions: Vec<(String, Operator, Vec<String>)>,
    labels: BTreeMap<String, String>,
}

#[derive(Arbitrary, Debug)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Other(String),
}

impl Operator {
    fn as_str(&self) -> &str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Other(text) => text,
        }
    }
}

fuzz_target!(|input: Input| {
    let labels = input.match_labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let expressions = input.match_expressions.iter().map(|(key, operator, values)| {
        (key.as_str(), operator.as_str(), values.iter().map(String::as_str).collect::<Vec<_>>())
    });
    match Selector::compile(labels, expressions) {
        Ok(selector) => {
            let unfulfilled = selector.first_unfulfilled(&input.labels).is_some();
            assert_ne!(selector.matches(&input.labels), unfulfilled);
            assert!(!selector.to_string().contains('\0'));
        }
        Err(faults) => assert!(!faults.is_empty(), "refused without a reason"),
    }
});
